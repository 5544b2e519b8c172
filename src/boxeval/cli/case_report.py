"""`report --result-file`: results of case runs, each checked against the ledger that it names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from boxeval.cli.output import say
from boxeval.cli.verified import trust_of, verified
from boxeval.errors import IncompleteError, UnreadableError, UsageError
from boxeval.reports.formats import Format

if TYPE_CHECKING:
    from boxeval.settings import Settings
    from boxeval.spec.case_result import CaseResult


def report_cases(files: list[Path], form: Format, trust: list[Path] | None) -> None:
    """Verify the runs, compare every file that was derived from them, and print the results."""
    from boxeval.reports.cases import render
    from boxeval.settings import load_settings

    if form not in (Format.TEXT, Format.JSON):
        raise UsageError(f"--format {form}: results of case runs are printed as text or json")
    if len({file.resolve() for file in files}) != len(files):
        raise UsageError("--result-file: a file is named twice")
    settings = load_settings()
    checked = [_checked(file, settings, trust) for file in files]
    results = [result for result, _ in checked]
    if form is Format.JSON:
        shown = ",\n".join(result.model_dump_json(indent=2, by_alias=True) for result in results)
        say(f'{{"format": "boxeval.case-report/1", "results": [\n{shown}\n]}}')
    else:
        say(render(results))
    if not all(complete for _, complete in checked):
        raise typer.Exit(IncompleteError.exit_code)


def _checked(file: Path, settings: Settings, trust: list[Path] | None) -> tuple[CaseResult, bool]:
    """A result, and whether its run is whole. One of no run at all has nothing to be compared with."""
    from boxeval.run.case_files import RUN, check_files, read_result

    try:
        result = read_result(file)
    except OSError as error:
        raise UnreadableError(f"{file}: cannot be read: {error.strerror or error}") from None
    if result.evidence_path is None:
        return result, True
    directory = Path(result.evidence_path)
    run = verified(directory, trust_of(settings, trust), result.checkpoint)
    if run.checkpoint is not None and result.checkpoint not in (None, run.checkpoint):
        raise IncompleteError(
            f"{file}: is of before run {result.run_id} went on; {directory / RUN} is its result now"
        )
    check_files(run, directory, result)
    return result, run.complete
