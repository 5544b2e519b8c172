"""Help, version, and what it costs to ask for them."""

from __future__ import annotations

import resource
import runpy
import statistics
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from cli_process import boxeval

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
COMMANDS = (
    "run",
    "validate",
    "report",
    "verify",
    "images",
    "doctor",
    "clean",
    "keys",
    "schema",
    "runs",
    "show",
)


def test_shipped_help_and_page_are_those_of_the_command_line() -> None:
    generated = runpy.run_path(str(ROOT / "scripts" / "cli_docs.py"))["files"]()
    assert {path.name for path in generated} == {"help.txt", "cli.md"}
    for path, text in generated.items():
        assert path.read_text("utf-8") == text, f"{path.name} is stale: make docs"


def test_help_is_the_same_by_every_way() -> None:
    shipped = (ROOT / "src" / "boxeval" / "cli" / "help.txt").read_text("utf-8")
    assert boxeval("--help").stdout == shipped
    assert boxeval("-h", COLUMNS="40").stdout == shipped
    from boxeval.cli.app import call

    assert call(["--help"]) == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_without_escape_codes(command: str) -> None:
    done = boxeval(command, "--help", FORCE_COLOR="1", TERM="xterm-256color")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: boxeval {command} ")
    assert "\x1b" not in done.stdout
    assert f"\n  {command} " in boxeval("--help").stdout


def test_nothing_asked_is_a_usage_error_with_help() -> None:
    done = boxeval()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: boxeval ")


def test_version_by_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    from boxeval.cli.app import call

    expected = f"boxeval {metadata.version('boxeval')}\n"
    assert boxeval("--version").stdout == expected
    assert call(["--version"]) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(argument: str) -> None:
    script = (
        "import sys; before = set(sys.modules); sys.argv[1:] = [%r];"
        "from boxeval.__main__ import main; main();"
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('boxeval')), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script % argument], capture_output=True, text=True, check=True
    )
    assert done.stderr == "['__future__']\n"


@pytest.mark.parametrize("command", ["validate", "report", "verify", "runs", "keys", "schema"])
def test_commands_without_an_engine_never_import_it(command: str) -> None:
    script = (
        "import sys; from boxeval.cli.app import call; call([%r, '--help']);"
        "assert not {'docker', 'requests', 'rich', 'jsonschema', 'cryptography'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script % command], capture_output=True, check=True)


def test_help_costs_at_most_six_empty_processes() -> None:
    """In processor time, since what else a machine does makes both wait."""

    def processor_s(*arguments: str) -> float:
        spent = []
        for _ in range(7):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return statistics.median(spent)

    assert processor_s("-m", "boxeval", "--help") <= 6 * processor_s("-c", "pass")
