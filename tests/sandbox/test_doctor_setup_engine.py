"""scripts/setup-engine: stale files of a killed daemon, starting one, and what is said when there is none.

Every place that the script looks at is moved into a scratch folder, and `dockerd` is a stand-in from PATH
that serves /_ping, so no real engine is touched.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "setup-engine"
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="the script starts an engine only as root: run as root"
)

DOCKERD = """#!{python}
import os, socket, sys
run = os.environ["BOXEVAL_RUN_DIR"]
with open(run + "/starts", "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
if os.path.exists(run + "/docker.pid"):
    sys.exit("pid file found, ensure docker is not running or delete " + run + "/docker.pid")
if os.path.exists(run + "/no-iptables") and "--iptables=false" not in sys.argv:
    sys.exit("failed to start daemon: Error initializing network controller: iptables failed: no table")
if os.path.exists(run + "/broken"):
    sys.exit("failed to start daemon: error initializing graphdriver: no space")
with open(run + "/docker.pid", "w") as file:
    file.write(str(os.getpid()))
server = socket.socket(socket.AF_UNIX)
server.bind(run + "/docker.sock")
server.listen()
while True:
    client, _ = server.accept()
    client.recv(1000)
    client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nOK")
    client.close()
"""


@dataclass
class Machine:
    """A scratch machine: its /var/run, its programs, its release."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("run", "bin"):
            (self.root / name).mkdir()
        # Where another user may read it, too.
        self.script = Path(shutil.copy(SCRIPT, self.root))
        self.release("ID=debian\n")
        self.environment = {
            "PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHON": sys.executable,
            "BOXEVAL_RUN_DIR": str(self.run),
            "BOXEVAL_OS_RELEASE": str(self.root / "os-release"),
            "BOXEVAL_DOCKERD_LOG": str(self.root / "dockerd.log"),
            "BOXEVAL_ENGINE_WAIT_S": "10",
        }

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    def release(self, text: str) -> None:
        (self.root / "os-release").write_text(text)

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def with_dockerd(self) -> None:
        self.program("dockerd", DOCKERD.format(python=sys.executable))

    def without_dockerd(self) -> None:
        """Only the named programs in PATH, so that a dockerd of the real machine is not found."""
        names = "sh cat tr grep rm sleep setsid nohup tail cut id flock mkdir ln head dirname env"
        for name in names.split():
            if path := shutil.which(name):
                (self.bin / name).symlink_to(path)
        self.environment["PATH"] = str(self.bin)

    def setup(
        self, *arguments: str, prefix: tuple[str, ...] = (), **more: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*prefix, "/bin/sh", str(self.script), *arguments],
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def starts(self) -> list[str]:
        place = self.run / "starts"
        return place.read_text().splitlines() if place.exists() else []

    def stop(self) -> None:
        place = self.run / "docker.pid"
        if place.exists() and self.starts():
            os.kill(int(place.read_text()), signal.SIGKILL)


@pytest.fixture
def machine() -> Iterator[Machine]:
    # A socket's path may be 107 bytes long, and pytest's folders are long.
    root = Path(tempfile.mkdtemp(prefix="bx", dir="/tmp"))
    root.chmod(0o755)
    machine = Machine(root)
    yield machine
    machine.stop()
    shutil.rmtree(root)


def only_line(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 2, result
    assert result.stdout == ""
    *_, line = result.stderr.splitlines()
    assert line.startswith("setup-engine: ")
    return line


def dead_pid() -> str:
    process = subprocess.Popen(["true"])
    process.wait()
    return str(process.pid)


def stale_files(machine: Machine, pid: str) -> list[Path]:
    containerd = machine.run / "docker" / "containerd"
    containerd.mkdir(parents=True)
    (machine.run / "docker.pid").write_text(pid)
    (containerd / "containerd.pid").write_text(pid)
    files = [machine.run / "docker.pid", machine.run / "docker.sock"]
    files += [containerd / name for name in ("containerd.pid", "containerd.sock", "containerd.sock.ttrpc")]
    for file in files:
        file.touch()
    return files


def test_files_of_a_dead_daemon_go(machine: Machine) -> None:
    files = stale_files(machine, dead_pid())
    assert machine.setup("--remove-stale").returncode == 0
    assert [file for file in files if file.exists()] == []


def test_files_whose_pid_is_now_another_program_go(machine: Machine) -> None:
    files = stale_files(machine, str(os.getpid()))
    assert machine.setup("--remove-stale").returncode == 0
    assert [file for file in files if file.exists()] == []


@pytest.mark.parametrize("content", ["", "\n", "not a number"])
def test_a_torn_pid_file_goes(machine: Machine, content: str) -> None:
    files = stale_files(machine, content)
    assert machine.setup("--remove-stale").returncode == 0
    assert [file for file in files if file.exists()] == []


def test_files_of_a_living_daemon_stay(machine: Machine) -> None:
    sleep = machine.bin / "dockerd"
    shutil.copy(shutil.which("sleep") or "", sleep)
    with subprocess.Popen([sleep, "60"]) as living:
        files = stale_files(machine, str(living.pid))
        assert machine.setup("--remove-stale").returncode == 0
        living.kill()
    # The pid is no containerd's, so only those files are stale.
    assert [file.name for file in files if file.exists()] == ["docker.pid", "docker.sock"]


def test_files_of_a_daemon_that_is_dead_but_not_yet_reaped_go(machine: Machine) -> None:
    sleep = machine.bin / "dockerd"
    shutil.copy(shutil.which("sleep") or "", sleep)
    with subprocess.Popen([sleep, "60"]) as zombie:
        zombie.kill()
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        files = stale_files(machine, str(zombie.pid))
        assert machine.setup("--remove-stale").returncode == 0
    assert [file for file in files if file.exists()] == []


def test_an_engine_that_answers_is_taken_as_it_is(machine: Machine) -> None:
    machine.with_dockerd()
    with subprocess.Popen([machine.bin / "dockerd"], env=machine.environment) as engine:
        while not (machine.run / "docker.sock").exists():
            time.sleep(0.01)
        time.sleep(0.1)
        result = machine.setup()
        assert (result.returncode, result.stderr) == (0, "")
        assert len(machine.starts()) == 1
        other = machine.setup(DOCKER_HOST=f"unix://{machine.run}/docker.sock")
        assert (other.returncode, other.stderr) == (0, "")
        engine.kill()
    (machine.run / "starts").unlink()


def test_a_named_engine_is_never_replaced(machine: Machine) -> None:
    machine.with_dockerd()
    line = only_line(machine.setup(DOCKER_HOST="unix:///absent/docker.sock"))
    assert "nothing answers at DOCKER_HOST=unix:///absent/docker.sock" in line
    assert "unset DOCKER_HOST" in line
    assert machine.starts() == []


def test_a_named_engine_by_tcp(machine: Machine) -> None:
    assert "nothing answers at DOCKER_HOST=tcp://127.0.0.1:1" in only_line(
        machine.setup(DOCKER_HOST="tcp://127.0.0.1:1")
    )


def test_another_system_is_told_what_to_install(machine: Machine) -> None:
    machine.release("ID=fedora\n")
    line = only_line(machine.setup())
    assert "no Docker Engine answers" in line
    assert "install a Docker Engine" in line


@needs_root
def test_without_root_it_says_so(machine: Machine) -> None:
    line = only_line(
        machine.setup(prefix=("setpriv", "--reuid=65534", "--clear-groups"), PYTHON="/usr/bin/python3")
    )
    assert "as root this script does both" in line


@needs_root
def test_no_permission_on_the_socket(machine: Machine) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(machine.run / "docker.sock"))
        (machine.run / "docker.sock").chmod(0o600)
        line = only_line(
            machine.setup(prefix=("setpriv", "--reuid=65534", "--clear-groups"), PYTHON="/usr/bin/python3")
        )
    assert f"no permission on {machine.run}/docker.sock" in line
    assert "group" in line


@needs_root
def test_a_daemon_is_started_over_what_a_killed_one_left(machine: Machine) -> None:
    machine.with_dockerd()
    stale_files(machine, str(os.getpid()))
    result = machine.setup()
    assert result.returncode == 0, result.stderr
    assert machine.starts() == [""]
    assert "starting dockerd" in result.stderr
    again = machine.setup()
    assert (again.returncode, again.stderr) == (0, "")


@needs_root
def test_two_at_once_start_one_daemon(machine: Machine) -> None:
    machine.with_dockerd()
    both = [
        subprocess.Popen(["/bin/sh", machine.script], env=machine.environment, stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [process.wait(60) for process in both] == [0, 0]
    assert machine.starts() == [""]


@needs_root
def test_without_working_iptables_it_does_without(machine: Machine) -> None:
    machine.with_dockerd()
    (machine.run / "no-iptables").touch()
    result = machine.setup()
    assert result.returncode == 0, result.stderr
    assert machine.starts()[0] == ""
    assert machine.starts()[-1] == "--iptables=false --bridge=none"


@needs_root
def test_a_daemon_that_does_not_start_shows_its_last_words(machine: Machine) -> None:
    machine.with_dockerd()
    (machine.run / "broken").touch()
    line = only_line(machine.setup())
    assert "dockerd did not start" in line
    assert "error initializing graphdriver: no space" in line


@needs_root
def test_a_missing_daemon_is_installed_from_the_distribution(machine: Machine) -> None:
    machine.without_dockerd()
    prepared = machine.root / "prepared"
    prepared.write_text(DOCKERD.format(python=sys.executable))
    prepared.chmod(0o755)
    machine.program(
        "apt-get",
        f'#!/bin/sh\necho "$@" >> {machine.root}/apt\n'
        f"[ $1 = update ] || /bin/cp -p {prepared} {machine.bin}/dockerd\n",
    )
    result = machine.setup()
    assert result.returncode == 0, result.stderr
    assert (machine.root / "apt").read_text().splitlines() == [
        "update -q",
        "install -q -y --no-install-recommends docker.io",
    ]
    assert "installing docker.io from the distribution" in result.stderr


@needs_root
def test_an_archive_that_cannot_be_reached(machine: Machine) -> None:
    machine.without_dockerd()
    machine.program("apt-get", "#!/bin/sh\necho 'Err: could not resolve' >&2\nexit 100\n")
    assert "apt-get could not install docker.io" in only_line(machine.setup())


def test_unknown_argument(machine: Machine) -> None:
    assert "unknown argument --frobnicate" in only_line(machine.setup("--frobnicate"))
