"""`report`, `verify`, `show` and `runs`: what is there after a run. None of them needs an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boxeval.cli.output import complain, say, say_json
from boxeval.cli.places import RUN_HELP, Json, Run
from boxeval.cli.verified import TrustFiles, read_run
from boxeval.errors import IncompleteError, TamperError, UnreadableError, UsageError
from boxeval.reports.formats import FORMATS, Format

if TYPE_CHECKING:
    from boxeval.receipts.verify import VerifiedRun

INCOMPLETE = IncompleteError.exit_code

runs_app = typer.Typer(invoke_without_command=True, help="List the runs of this machine.")


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(report)
    app.command()(verify)
    app.command()(show)
    app.add_typer(runs_app, name="runs")


def report(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help=RUN_HELP)] = None,
    result_file: Annotated[
        list[Path] | None,
        typer.Option("--result-file", metavar="FILE", help="Result of a case run. May be given again."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", metavar=FORMATS, help="Output format.")] = Format.TEXT,
    trust: TrustFiles = None,
) -> None:
    """Verify a run and print its report. Exits 3 if the run is incomplete, else 0 whatever its verdicts."""
    if (run is None) == (not result_file):
        raise UsageError("name a run, or results of case runs with --result-file")
    if run is None:
        from boxeval.cli.case_report import report_cases

        report_cases(result_file or [], form, trust)
        return
    from boxeval.reports.formats import render
    from boxeval.reports.words import is_incomplete
    from boxeval.verdicts.aggregate import aggregate

    verified = read_run(run, trust)
    result = aggregate(verified)
    say(render(form, result, verified))
    if is_incomplete(result):
        raise typer.Exit(INCOMPLETE)


def verify(
    run: Run,
    trust: TrustFiles = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="LINE|FILE", help="The line that was pinned elsewhere."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check that nothing of a run was changed. Needs no engine and no network."""
    try:
        verified = read_run(run, trust, checkpoint)
    except (TamperError, IncompleteError, UnreadableError) as error:
        if as_json:
            states = {TamperError: "tampered", IncompleteError: "incomplete", UnreadableError: "unreadable"}
            say_json({"state": states[type(error)], "problems": [str(error)]})
        else:
            words = {
                TamperError: "TAMPERED or untrusted",
                IncompleteError: "INCOMPLETE",
                UnreadableError: "UNREADABLE",
            }
            complain(f"{words[type(error)]}: {error}")
        raise typer.Exit(error.exit_code) from error
    if as_json:
        say_json(_verified_json(verified))
    else:
        from boxeval.reports.text import render_verified

        say(render_verified(verified))
    if not verified.complete:
        raise typer.Exit(INCOMPLETE)


def _verified_json(run: VerifiedRun) -> dict[str, object]:
    return {
        "state": "good" if run.complete else "incomplete",
        "problems": list(run.problems),
        "missing": list(run.missing),
        "runId": run.plan.run_id,
        "planned": len(run.plan.trials),
        "receipts": len(run.trials),
        "keyid": run.keyid,
        "keyLabel": run.key_label,
        "openedAt": run.opened_at,
        "resumedAt": list(run.resumed_at),
        "closedAt": run.closed_at,
        "interruptedBy": run.interrupted_by,
        "checkpoint": run.checkpoint,
    }


def show(
    run: Run,
    trial: Annotated[
        str | None,
        typer.Argument(
            metavar="TRIAL", help="A trial as reports name it, e.g. 'fix-bug[shell]#1', or its id."
        ),
    ] = None,
    trust: TrustFiles = None,
    as_json: Json = False,
) -> None:
    """Show one run, or one trial with all that was seen of it."""
    from boxeval.reports.show import render_run, render_trial
    from boxeval.verdicts.aggregate import aggregate

    verified = read_run(run, trust)
    if trial is None:
        if as_json:
            trials = [one.model_dump(mode="json") for one in verified.trials]
            say_json({"plan": verified.plan.model_dump(mode="json"), "trials": trials})
        else:
            say(render_run(verified, aggregate(verified)))
        return
    attempts = [
        one
        for one in verified.trials
        if trial in (one.trial_id, one.task, f"{one.task}[{one.target}]#{one.repeat}")
    ]
    if not attempts:
        if trial in verified.missing:
            raise IncompleteError(f"{trial}: planned, but it has no receipt")
        known = ", ".join(planned.key for planned in verified.plan.trials[:10])
        raise UsageError(f"no trial {trial} in this run; it has {known}")
    if as_json:
        say_json([one.model_dump(mode="json") for one in attempts])
    else:
        say("\n".join(render_trial(verified, one) for one in attempts))


@runs_app.callback()
def _default(context: typer.Context, as_json: Json = False) -> None:
    if context.invoked_subcommand is None:
        list_runs(as_json)


@runs_app.command("ls")
def list_runs(as_json: Json = False) -> None:
    """List runs, the newest last. They are counted, not verified."""
    from boxeval.reports.listing import listed_runs, render_listing
    from boxeval.settings import load_settings

    runs = listed_runs(load_settings().runs_dir)
    if as_json:
        say_json([run.as_json() for run in runs])
    else:
        say(render_listing(runs))


@runs_app.command("prune")
def prune_runs(
    keep: Annotated[
        int | None, typer.Option("--keep", min=0, metavar="N", help="Keep the newest N runs.")
    ] = None,
    older_than: Annotated[
        int | None, typer.Option("--older-than", min=0, metavar="DAYS", help="Keep runs that are younger.")
    ] = None,
    dry: Annotated[bool, typer.Option("--dry", help="Only say what would go.")] = False,
    as_json: Json = False,
) -> None:
    """Remove old runs of this machine, with their evidence. A run that is under way stays."""
    from boxeval.reports.escape import escape
    from boxeval.reports.words import plural, size
    from boxeval.run.retention import prune
    from boxeval.settings import load_settings

    gone = prune(load_settings(), keep=keep, older_than_days=older_than, dry=dry)
    freed_bytes = sum(run.size_bytes for run in gone)
    if as_json:
        say_json({"dry": dry, "removed": [run.run_id for run in gone], "freedBytes": freed_bytes})
        return
    word = "would remove" if dry else "removed"
    for run in gone:
        say(f"{word} {escape(run.run_id)}  {size(run.size_bytes)}")
    say(f"{word} {plural(len(gone), 'run')}, {size(freed_bytes)}")
