"""Names and labels of everything we create: nothing else is ever removed, nothing of ours is forgotten.

`boxeval.owner` is this home's id and this boot's id; `boxeval.controller` is pid, start time and pid namespace of the
process that made the object, so that a recycled pid is not mistaken for a live controller, nor one in another container
for a dead one. `boxeval.deadline` is in seconds since that boot, so that no step of the wall clock makes a sweep take
what is in use.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

RUN, TRIAL, ROLE = "boxeval.run", "boxeval.trial", "boxeval.role"
OWNER, CONTROLLER, DEADLINE, CACHE = (
    "boxeval.owner",
    "boxeval.controller",
    "boxeval.deadline",
    "boxeval.cache",
)


@dataclass(frozen=True, slots=True)
class Owner:
    """Who we are to the engine."""

    home: str
    boot: str
    controller: str

    @classmethod
    def here(cls, data_dir: Path) -> Owner:
        """This process, on this boot, with the home id kept in `data_dir`."""
        return cls(
            _home_id(data_dir), _boot_id(), f"{os.getpid()}.{_start_time(os.getpid())}.{_pid_namespace()}"
        )

    @property
    def label(self) -> str:
        """Value of `boxeval.owner`."""
        return f"{self.home}.{self.boot}"

    def labels(self, run_id: str, role: str, lifetime_s: float, trial_id: str = "") -> dict[str, str]:
        """Labels of one object of a run, which should be gone after `lifetime_s`."""
        return {
            RUN: run_id,
            TRIAL: trial_id,
            ROLE: role,
            OWNER: self.label,
            CONTROLLER: self.controller,
            DEADLINE: str(int(since_boot_s() + lifetime_s)),
        }

    def is_orphan(self, labels: dict[str, str], now_s: float) -> bool:
        """True for an object of this home whose controller is gone, or which is past its deadline."""
        if RUN not in labels:
            return False
        home, _, boot = labels.get(OWNER, "").partition(".")
        if home != self.home:
            return False
        if boot != self.boot or now_s > _number(labels.get(DEADLINE, "")):
            return True
        return not is_alive(labels.get(CONTROLLER, ""))


def is_alive(controller: str) -> bool:
    """Whether the process of a `boxeval.controller` label still runs, or is in a namespace that we cannot look into."""
    parts = controller.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return False
    pid, started, namespace = parts
    return namespace != _pid_namespace() or _start_time(int(pid)) == started


def since_boot_s() -> float:
    """The clock of deadlines: nobody sets it, and a label of another boot is told by `boxeval.owner`."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _number(text: str) -> float:
    return float(text) if text.isdigit() else 0.0


def _start_time(pid: int) -> str:
    """Field 22 of /proc/PID/stat, ticks since boot; empty if there is no such process, or only what its parent has
    not reaped yet.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:16]


def _home_id(data_dir: Path) -> str:
    place = data_dir / "home-id"
    if not place.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        draft = data_dir / f".home-id-{secrets.token_hex(8)}"
        draft.write_text(secrets.token_hex(8))
        # A link appears whole, and only the first of two processes gets it.
        with contextlib.suppress(FileExistsError):
            place.hardlink_to(draft)
        draft.unlink()
    return place.read_text().strip()
