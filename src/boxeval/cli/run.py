"""`run`: from a suite file to a verified report."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boxeval.cli.case_options import CaseExit, CaseOptions, taking
from boxeval.cli.output import complain, say, warn
from boxeval.cli.places import SuiteArgument, SuiteOption, run_directory, suite_file
from boxeval.cli.verified import trust_of, verified
from boxeval.errors import IncompleteError, StorageError, UsageError
from boxeval.reports.formats import FORMATS, Format

if TYPE_CHECKING:
    from boxeval.receipts.verify import VerifiedRun
    from boxeval.run.events import RunEnd, RunRequest
    from boxeval.settings import Settings
    from boxeval.spec.report import Report

Several = list[str] | None
Tell = Callable[["RunEnd", "RunRequest", "Settings"], int]


def add_to(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(taking(run))


def run(
    suite: SuiteArgument = None,
    suite_option: SuiteOption = None,
    target: Annotated[
        Several, typer.Option("--target", metavar="ID", help="Only this target. May be given again.")
    ] = None,
    task: Annotated[
        Several, typer.Option("--task", metavar="ID", help="Only this task. May be given again.")
    ] = None,
    tag: Annotated[
        Several, typer.Option("--tag", metavar="TAG", help="Only tasks with this tag. May be given again.")
    ] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Only tasks marked as smoke.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="The built-in suite of small tasks for a real model.")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Model for every target.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", metavar="NAME", help="Model that judges, for every task.")
    ] = None,
    repeat: Annotated[
        int | None, typer.Option("--repeat", min=1, metavar="N", help="Repeats instead of the matrix's.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, metavar="N", help="Trials at a time.  [default: by cores and memory]"),
    ] = None,
    max_failures: Annotated[
        int | None,
        typer.Option(
            "--max-failures", min=1, metavar="N", help="Start nothing new after so many unexpected failures."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Directory of this run; new or empty.")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            help="Go on with a run that ended early: what has no verdict is run, the rest is kept.",
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Private key to sign with.")
    ] = None,
    allow_network: Annotated[
        bool,
        typer.Option(
            "--allow-network",
            help="Let git workspaces be fetched, models be asked and allowed hosts be reached.",
        ),
    ] = False,
    keyring: Annotated[
        Path | None, typer.Option("--keyring", metavar="FILE", help="Keys of model providers.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="Write what real models say to a new cassette."),
    ] = None,
    short_report: Annotated[
        Path | None, typer.Option("--report", metavar="PATH", help="Also write a short JSON report here.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", metavar=FORMATS, help="Format of the report at the end.")
    ] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing before the report.")] = False,
    *,
    case: CaseOptions,
) -> None:
    """Run a suite, or a case with --case-file or --extension-command-file. Progress goes to standard error."""
    if case.is_case:
        from boxeval.cli.case_run import run_case
        from boxeval.run.events import RunRequest

        own = {
            "SUITE": suite,
            "--suite": suite_option,
            "--target": target,
            "--task": task,
            "--tag": tag,
            "--smoke": smoke,
            "--live": live,
            "--repeat": repeat,
            "--max-failures": max_failures,
            "--out": out,
            "--resume": resume,
            "--allow-network": allow_network,
            "--report": short_report,
            "--format": form is not Format.TEXT,
        }
        foreign = [name for name, given in own.items() if given]
        file = case.case_file or case.extension_command_file or Path()
        base = RunRequest(file, jobs=jobs, key_file=key, keyring_file=keyring, record=record)
        code = run_case(case, base, model=model, as_json=as_json, quiet=quiet, foreign=foreign)
        raise CaseExit(code)
    if given := case.given():
        raise UsageError(f"{', '.join(given)}: only with --case-file or --extension-command-file")
    from boxeval.run.events import RunRequest
    from boxeval.settings import load_settings

    if short_report and not short_report.absolute().parent.is_dir():
        raise UsageError(f"--report {short_report}: its folder does not exist")
    settings = load_settings()
    if live:
        if suite or suite_option:
            raise UsageError("--live is a suite itself; leave out the other")
        suite_option = Path("live")
    asked = RunRequest(
        suite=Path() if resume and suite is suite_option is None else suite_file(suite, suite_option),
        out=out,
        jobs=jobs,
        targets=tuple(target or ()),
        tasks=tuple(task or ()),
        tags=tuple(tag or ()),
        smoke=smoke,
        model=model,
        judge=judge,
        repeats=repeat,
        max_failures=max_failures,
        key_file=key,
        allow_network=allow_network,
        keyring_file=keyring,
        record=record,
    )
    tell = partial(_tell, short_report=short_report, form=Format.JSON if as_json else form)
    raise typer.Exit(execute(asked, resume, settings, tell, quiet=quiet))


def execute(request: RunRequest, resume: str | None, settings: Settings, tell: Tell, *, quiet: bool) -> int:
    """Run under a watch for signals, from before anything is drawn until everything is told."""
    from boxeval.reports.live import watching
    from boxeval.run.controller import run_suite
    from boxeval.run.signals import watched

    with watched() as signals, ExitStack() as stack:
        recovery = None
        if resume is not None:
            from boxeval.receipts.recovery import Recovery
            from boxeval.run.remember import request_of

            directory = run_directory(resume, settings)
            recovery = stack.enter_context(Recovery(directory, trust_of(settings, key_file=request.key_file)))
            if recovery.is_over:
                warn(f"nothing to do: every trial of {resume} has its verdict")
            else:
                request = request_of(request, settings, recovery.run.plan.run_id)
        with watching(sys.stderr, quiet=quiet) as watcher:
            end = run_suite(request, watcher, settings, signals, recovery)
        try:
            return tell(end, request, settings)
        except StorageError:
            # After a SIGHUP there may be nobody left to tell, and what was sealed stays sealed.
            if not end.interrupted_by:
                raise
            return 128 + end.interrupted_by


def _tell(
    end: RunEnd, request: RunRequest, settings: Settings, *, short_report: Path | None, form: Format
) -> int:
    """Verify what was written, print what it says, and give the exit code."""
    if request.case:
        from boxeval.cli.case_run import tell_case

        return tell_case(end, request, settings, as_json=form is Format.JSON)
    from boxeval.reports.formats import render
    from boxeval.verdicts.aggregate import aggregate, exit_code

    run = verified(end.directory, trust_of(settings, key_file=request.key_file), end.checkpoint)
    report = aggregate(run)
    if short_report:
        _write_short(short_report, report, run)
    say(render(form, report, run))
    place = [line for line in (f"run: {end.directory}", end.checkpoint) if line]
    if form is Format.TEXT:
        from boxeval.reports.escape import escape

        say("\n".join(map(escape, place)))
    else:
        for line in place:
            warn(line)
    for name in end.left_behind:
        complain(f"left behind on the engine: {name}; `boxeval clean` removes it")
    if end.interrupted_by:
        return 128 + end.interrupted_by
    return exit_code(report) or (IncompleteError.exit_code if end.left_behind else 0)


def _write_short(path: Path, report: Report, verified: VerifiedRun) -> None:
    from boxeval.reports.short import render_short

    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with draft.open("x", encoding="utf-8") as file:
            file.write(render_short(report, verified))
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise StorageError(f"--report {path}: cannot be written: {error.strerror}") from error
