"""The command line as a whole: which commands there are, and how every ending becomes an exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from boxeval.cli import agents, extension, grade, identity, images, keys, machine, results, run, soak, suites
from boxeval.cli.case_options import CaseExit
from boxeval.cli.output import complain, warn
from boxeval.errors import BoxevalError, SuiteError, UsageError
from boxeval.run.signals import Interrupted

app = typer.Typer(
    name="boxeval",
    help="Run coding agents and untrusted graders in throwaway containers, and seal what was seen.",
    epilog="Exit codes: 0 good, 1 a negative answer, 2 usage, 3 incomplete, 4 integrity, 70 our own fault, "
    "128+N ended by signal N.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    # A fixed width keeps help the same on every terminal, in docs/cli.md and in help.txt.
    context_settings={"terminal_width": 100, "help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from boxeval import __version__

        typer.echo(f"boxeval {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version


for _group in (run, suites, results, soak, grade, identity, images, agents, machine, keys, extension):
    _group.add_to(app)


def _of_parser(code: int, arguments: list[str]) -> int:
    """A run of a case that cannot even be parsed is invalid in the words of its own codes (contract G61)."""
    from boxeval.rules.case_states import INVALID

    of_case = arguments[:1] == ["run"] and any(word.split("=")[0] == "--case-file" for word in arguments)
    return INVALID if of_case and code == UsageError.exit_code else code


def call(arguments: list[str]) -> int:
    """Run one command line to its exit code. Nothing escapes but the code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, as by `>&-`: then nobody wants to read it
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  open to the end
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        typer.main.get_command(app).main(args=arguments, prog_name="boxeval")
    except CaseExit as end:
        return end.exit_code
    except SystemExit as end:
        return _of_parser(end.code if isinstance(end.code, int) else 0, arguments)
    except SuiteError as error:
        for problem in error.problems:
            warn(str(problem))
        return error.exit_code
    except BoxevalError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except Interrupted as end:
        return 128 + end.number
    except Exception as error:
        complain(f"{type(error).__name__}: {error}; this is a fault in boxeval")
        if os.environ.get("BOXEVAL_DEBUG") == "1":
            import traceback

            for line in traceback.format_exc().splitlines():
                warn(line)
        return 70
    return 0
