"""The runs below a directory, for `boxeval runs`: counted by their files, for verifying takes long."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from boxeval.errors import UnreadableError
from boxeval.receipts.canonical import MAX_BYTES, MalformedError, read
from boxeval.receipts.ledger import CHECKPOINT, LEDGER, PLAN
from boxeval.receipts.storage import open_regular, read_regular
from boxeval.reports.columns import table
from boxeval.reports.words import UNKNOWN
from boxeval.spec.plan import Plan

TAIL_BYTES = 1024
"""A multiple of four, so that it is base64 of its own."""
_TRIAL = re.compile(rb'"trialId":"([^"\\]+)","wallMs":\d+\},"type":"trial"\},"format":')
"""How the canonical receipt of a trial ends."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run by its files alone. With `state` unreadable the rest is unknown."""

    run_id: str
    state: str
    suite: str = UNKNOWN
    created_at: str = UNKNOWN
    planned: int = 0
    receipts: int = 0

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        names = {"run_id": "runId", "created_at": "createdAt"}
        return {names.get(name, name): value for name, value in asdict(self).items()}


def listed_runs(runs_dir: Path) -> list[ListedRun]:
    """Every run directory, by name; ids sort by time. UnreadableError if it cannot be looked at."""
    try:
        paths = sorted(path for path in runs_dir.iterdir() if path.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UnreadableError(f"{runs_dir}: cannot be read: {error.strerror}") from None
    return [_listed(path) for path in paths]


def render_listing(runs: list[ListedRun]) -> str:
    """A table, or one line if there is nothing."""
    if not runs:
        return "no runs yet\n"
    rows = [
        (
            run.run_id,
            run.suite,
            run.state,
            f"{run.receipts}/{run.planned}" if run.planned else "",
            run.created_at,
        )
        for run in runs
    ]
    lines = table(("run", "suite", "state", "receipts", "created"), rows)
    return "\n".join([*lines, "counted, not verified: `boxeval verify RUN` checks one"]) + "\n"


def _listed(directory: Path) -> ListedRun:
    try:
        plan = read(Plan, read_regular(directory / PLAN, MAX_BYTES))
        with open_regular(directory / LEDGER) as ledger:
            sealed = {match[1] for line in ledger if (match := _TRIAL.search(_payload(line)))}
    except (OSError, MalformedError):
        return ListedRun(directory.name, "unreadable")
    closed = (directory / CHECKPOINT).is_file()
    return ListedRun(
        run_id=directory.name,
        state="closed" if closed else "open or interrupted",
        suite=plan.suite.id,
        created_at=plan.created_at,
        planned=len(plan.trials),
        receipts=len(sealed),
    )


def _payload(line: bytes) -> bytes:
    """The end of what a ledger line holds, unchecked."""
    encoded = line.partition(b'"payload":"')[2].partition(b'"')[0]
    try:
        return base64.b64decode(encoded[-TAIL_BYTES:])
    except binascii.Error:
        return b""
