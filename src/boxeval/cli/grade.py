"""`grade`: a person decides what the suite leaves to a person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from boxeval.cli.output import say
from boxeval.cli.places import run_directory
from boxeval.cli.verified import trust_of, verified
from boxeval.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    from boxeval.run.decide import Awaited


def add_to(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(grade)


def grade(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id or directory of a run.")],
    trial: Annotated[
        str | None,
        typer.Argument(metavar="[TRIAL]", help="Id or key of a trial; without it, list what waits."),
    ] = None,
    check: Annotated[
        str | None, typer.Option("--check", metavar="ID", help="The check, if several of the trial wait.")
    ] = None,
    verdict: Annotated[
        str | None, typer.Option("--verdict", metavar="pass|fail", help="What you decide.")
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why.")] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Your name.  [default: the key's label]")
    ] = None,
    statement: Annotated[
        Path | None,
        typer.Option("--statement", metavar="FILE", help="Take a verdict that was signed elsewhere instead."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Private key to sign with.")
    ] = None,
) -> None:
    """Decide a check of kind boxeval.human; the signed verdict is sealed into the run."""
    from dataclasses import replace

    from boxeval.receipts.keys import key_of_run, load_signing_key
    from boxeval.run import decide
    from boxeval.run.case_files import write_case_files
    from boxeval.settings import load_settings

    settings = load_settings()
    directory = run_directory(run, settings)
    trust = trust_of(settings, key_file=key)
    found = verified(directory, trust, None)
    if trial is None:
        waiting = decide.awaited(found)
        for one in waiting:
            _show(one)
        if waiting:
            raise typer.Exit(IncompleteError.exit_code)
        say("nothing waits for a person")
        return
    one = decide.find(found, trial, check)
    signing = load_signing_key(settings, key or settings.key_file)
    # A person may have a key of their own, and only the run's goes on with it.
    own = signing.keyid == found.keyid
    sealing = signing if own else key_of_run(replace(settings, key_file=None), found.keyid)
    if statement is not None:
        if verdict or reason or by:
            raise UsageError("--statement has a verdict, a reason and a name in it; leave the others out")
        envelope = decide.read_statement(statement)
    else:
        if verdict not in ("pass", "fail") or not (reason or "").strip():
            _show(one)
            raise UsageError("decide with --verdict pass or --verdict fail, and --reason")
        entry = trust.find(signing.keyid)
        name = by or (entry.label if entry else "")
        envelope = decide.stated(found, one, _word(verdict), reason or "", name, signing)
    done = decide.apply(directory, trust, one, envelope, sealing)
    if found.plan.case is not None:
        write_case_files(verified(directory, trust, None), directory)
    say(f"{done.task}[{done.target}]#{done.repeat}: {done.outcome.task}")


def _word(verdict: str) -> Literal["pass", "fail"]:
    return "pass" if verdict == "pass" else "fail"


def _show(one: Awaited) -> None:
    from boxeval.reports.escape import escape

    trial = one.trial
    key = f"{trial.task}[{trial.target}]#{trial.repeat}"
    say(f"{trial.trial_id} {key} {one.check.id}: {escape(one.check.configuration.question)}")
