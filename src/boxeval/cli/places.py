"""What the user named: a suite file, a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boxeval.errors import UnreadableError, UsageError

if TYPE_CHECKING:
    from boxeval.settings import Settings

RUN_HELP = "Id of a run, or the path of its directory if it has a `/`."
Run = Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
SuiteArgument = Annotated[
    Path | None,
    typer.Argument(metavar="SUITE", help="Suite file, or the name of a built-in suite such as quickstart."),
]
SuiteOption = Annotated[Path | None, typer.Option("--suite", metavar="FILE", help="The same, as an option.")]


def suite_file(argument: Path | None, option: Path | None) -> Path:
    """The one suite that was named. A bare name that is no file here means a built-in suite."""
    if (argument is None) == (option is None):
        raise UsageError("name one suite: as an argument or with --suite")
    named = argument or option
    assert named is not None
    if named.suffix or len(named.parts) != 1 or named.exists():
        return named

    from boxeval.settings import resource

    builtin = resource("suites") / f"{named}.yaml"
    if builtin.is_file():
        return builtin
    known = ", ".join(sorted(path.stem for path in resource("suites").glob("*.yaml"))) or "none"
    raise UsageError(f"{named}: no such file, and no built-in suite has that name (known: {known})")


def run_directory(run: str, settings: Settings) -> Path:
    """Directory of a run. UsageError for what cannot be an id, UnreadableError for a run not there."""
    if "\0" in run:
        raise UsageError("RUN holds a NUL byte")
    if "/" in run:
        if not _is_directory(Path(run)):
            raise UnreadableError(f"{run}: no such directory")
        return Path(run)
    if run in {"", ".", ".."} or "\\" in run:
        raise UsageError(f"{run!r} cannot be the id of a run; give an id, or a path with a `/`")
    if not _is_directory(settings.runs_dir / run):
        mend = (
            f"for the directory here say ./{run}"
            if _is_directory(Path(run))
            else "`boxeval runs` lists those there are"
        )
        raise UnreadableError(f"no run {run} in {settings.runs_dir}; {mend}")
    return settings.runs_dir / run


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        raise UnreadableError(f"{path}: cannot be read: {error.strerror}") from None
