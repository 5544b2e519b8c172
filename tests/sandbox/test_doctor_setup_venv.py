"""scripts/setup-venv: runs only when something changed, and says what is missing in one line."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "setup-venv"

# A Python that makes "virtual environments" of itself and whose pip writes down what it was asked.
PYTHON = """#!/bin/sh
case "$*" in
*version_info\\ \\<*) exec {python} "$@" ;;
*ensurepip*) [ ! -e {root}/no-ensurepip ] ;;
*version_info*) echo python3.12-venv ;;
*"-m venv --clear .venv") mkdir -p .venv/bin && cp {root}/python .venv/bin/python ;;
*"-m pip install"*) echo "$*" >> {root}/pip; [ ! -e {root}/no-index ] ;;
*--version) echo Python 3.12.1 ;;
esac
"""


@dataclass
class Checkout:
    """A scratch checkout with the script, a pyproject.toml and the stand-in for Python."""

    root: Path

    def __post_init__(self) -> None:
        (self.root / "scripts").mkdir()
        shutil.copy(SCRIPT, self.root / "scripts")
        (self.root / "pyproject.toml").write_text("[project]\n")
        self.program("python", PYTHON.format(python=sys.executable, root=self.root))

    def program(self, name: str, text: str) -> Path:
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def setup(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(self.root / "python"), **more}
        return subprocess.run(
            ["/bin/sh", self.root / "scripts" / "setup-venv", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def installs(self) -> list[str]:
        place = self.root / "pip"
        return [line.split()[-1] for line in place.read_text().splitlines()] if place.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "checkout").mkdir()
    return Checkout(tmp_path / "checkout")


def only_line(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 2, result
    *_, line = result.stderr.splitlines()
    assert line.startswith("setup-venv: ")
    return line


def test_once_is_enough(checkout: Checkout) -> None:
    assert checkout.setup().returncode == 0
    again = checkout.setup()
    assert (again.returncode, again.stderr) == (0, "")
    assert checkout.installs() == ["."]


def test_an_installation_for_work_serves_for_use_too(checkout: Checkout) -> None:
    assert checkout.setup("dev").returncode == 0
    assert checkout.setup().returncode == 0
    assert checkout.installs() == [".[dev]"]
    assert checkout.setup("dev").stderr == ""


def test_one_for_use_does_not_serve_for_work(checkout: Checkout) -> None:
    checkout.setup()
    assert checkout.setup("dev").returncode == 0
    assert checkout.installs() == [".", ".[dev]"]


def test_a_changed_project_is_installed_again(checkout: Checkout) -> None:
    checkout.setup()
    (checkout.root / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert checkout.setup().returncode == 0
    assert checkout.installs() == [".", "."]


def test_a_moved_checkout_is_installed_again(checkout: Checkout) -> None:
    checkout.setup()
    moved = checkout.root.rename(checkout.root.parent / "moved")
    shutil.copytree(moved, checkout.root)  # the stand-in names its first place
    other = Checkout.__new__(Checkout)
    other.root = moved
    assert "installing" in other.setup().stderr


def test_a_failed_installation_is_tried_again(checkout: Checkout) -> None:
    (checkout.root / "no-index").touch()
    assert "pip could not install boxeval" in only_line(checkout.setup())
    (checkout.root / "no-index").unlink()
    assert checkout.setup().returncode == 0


def test_python_too_old(checkout: Checkout) -> None:
    old = checkout.program("old", '#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n')
    line = only_line(checkout.setup(PYTHON=str(old)))
    assert line.startswith("setup-venv: Python 3.11 or newer is needed")
    assert "is Python 3.9.2" in line


def test_no_python(checkout: Checkout) -> None:
    assert "Python 3.11 or newer is needed" in only_line(checkout.setup(PYTHON="/absent/python"))


def test_no_ensurepip_and_no_root(checkout: Checkout) -> None:
    (checkout.root / "no-ensurepip").touch()
    checkout.program("id", "#!/bin/sh\necho 1000\n")
    line = only_line(checkout.setup(PATH=f"{checkout.root}:/usr/bin:/bin"))
    assert line.endswith("install python3.12-venv (Debian, Ubuntu: apt-get install python3.12-venv)")


def test_no_ensurepip_as_root(checkout: Checkout) -> None:
    (checkout.root / "no-ensurepip").touch()
    checkout.program("id", "#!/bin/sh\necho 0\n")
    checkout.program("apt-get", f'#!/bin/sh\necho "$@" >> {checkout.root}/apt\n')
    result = checkout.setup(PATH=f"{checkout.root}:{os.defpath}")
    assert result.returncode == 0, result.stderr
    assert (checkout.root / "apt").read_text().splitlines() == [
        "update -q",
        "install -q -y --no-install-recommends python3.12-venv",
    ]


def test_unknown_argument(checkout: Checkout) -> None:
    assert "unknown argument prod" in only_line(checkout.setup("prod"))
