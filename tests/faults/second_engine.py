"""A second `dockerd` that a test may kill and fill up. It has data, network and mounts of its own, and needs root.

Its data lie in a tmpfs that only it sees, so they are gone with it. (In the network of the first engine, it would take
that one's bridge away.)
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from boxeval.errors import EngineError
from boxeval.sandbox.engine import Engine, connect
from boxeval.sandbox.images import build_all

SCRIPT = """
mkdir -p {place}/data {place}/none
mount -t tmpfs -o size={mib}m none {place}/data
if [ -d /run/containerd ]; then mount --bind {place}/none /run/containerd; fi
ip link set lo up
echo $$ >{place}/holder
sleep infinity &
wait
"""
DOCKERD = (
    "dockerd --host unix://{place}/docker.sock --data-root {place}/data --exec-root {place}/run "
    "--pidfile {place}/docker.pid --bridge=none --iptables=false"
)
START_S = 60


class SecondEngine:
    """Namespaces that last, and a daemon in them that comes and goes."""

    def __init__(self, place: Path, mib: int) -> None:
        self._place = place
        self._log = (place / "log").open("wb")
        script = SCRIPT.format(place=place, mib=mib)
        command = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", script]
        self._holder = subprocess.Popen(command, stdout=self._log, stderr=self._log, start_new_session=True)
        self._daemon: subprocess.Popen[bytes] | None = None
        _until((place / "holder").exists, "its namespaces")

    @property
    def host(self) -> str:
        return f"unix://{self._place}/docker.sock"

    @property
    def data(self) -> Path:
        """Its data, seen from here."""
        return Path(f"/proc/{self._holder.pid}/root{self._place}/data")

    def start(self) -> None:
        """Return when it answers."""
        inside = ["nsenter", f"--target={self._holder.pid}", "--net", "--mount"]
        command = DOCKERD.format(place=self._place).split()
        self._daemon = subprocess.Popen(
            [*inside, *command], stdout=self._log, stderr=self._log, start_new_session=True
        )
        _until(self._answers, "the second engine")

    def kill(self) -> None:
        """As a crash does; what runs in its containers goes on until it is there again."""
        assert self._daemon is not None
        pids = [self._place / "docker.pid", self._place / "run" / "containerd" / "containerd.pid"]
        for file in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)
            # Nobody may have reaped it yet, and then the next one would take it for alive.
            file.unlink()
        self._daemon.wait(20)
        (self._place / "docker.sock").unlink()

    def connect(self) -> Engine:
        return connect({**os.environ, "DOCKER_HOST": self.host})

    def load(self, engine: Engine) -> None:
        """Give it boxeval's images, from the first engine."""
        names = [image.tag for image in build_all(engine, note=lambda _: None)]
        url = f"{engine.api.base_url}/v{engine.api.api_version}/images/get"
        ours = self.connect()
        try:
            with engine.api.get(url, params={"names": names}, stream=True) as archive:
                for _ in ours.api.load_image(archive.iter_content(1 << 20)):  # type: ignore[no-untyped-call]
                    pass
        finally:
            ours.close()

    def close(self) -> None:
        """End it and all that runs in it."""
        if self._daemon is not None and self._daemon.poll() is None:
            self._daemon.terminate()
            os.kill(int((self._place / "docker.pid").read_text()), signal.SIGTERM)
            self._daemon.wait(30)
        os.killpg(self._holder.pid, signal.SIGKILL)
        self._holder.wait(20)
        self._log.close()

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except EngineError:
            assert self._daemon is not None
            assert self._daemon.poll() is None, (self._place / "log").read_text()[-2000:]
            return False
        return True


def _until(condition: object, what: str) -> None:
    until = time.monotonic() + START_S
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until, f"{what} did not come up"
        time.sleep(0.1)


@contextmanager
def second_engine(mib: int) -> Iterator[SecondEngine]:
    """A second engine with `mib` MiB for its data, running."""
    # Short, because the path of a socket below it may be 107 bytes long.
    with tempfile.TemporaryDirectory(prefix="bx", dir="/var/tmp") as place:
        engine = SecondEngine(Path(place), mib)
        try:
            engine.start()
            yield engine
        finally:
            engine.close()
