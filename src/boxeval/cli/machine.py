"""`doctor` and `clean`: this machine and its engine."""

from __future__ import annotations

from typing import Annotated

import typer

from boxeval.cli.output import say, say_json
from boxeval.cli.places import Json
from boxeval.reports.escape import escape


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(doctor)
    app.command()(clean)


def doctor(as_json: Json = False) -> None:
    """Say what is here, what is missing and what that means. Exits 1 if boxeval cannot work."""
    from dataclasses import asdict

    from boxeval.sandbox.doctor import examine

    diagnosis = examine()
    if as_json:
        say_json({"ok": diagnosis.ok, "findings": [asdict(finding) for finding in diagnosis.findings]})
    else:
        width = max((len(finding.name) for finding in diagnosis.findings), default=0)
        for finding in diagnosis.findings:
            meaning = f"  ({escape(finding.meaning)})" if finding.meaning else ""
            say(f"{finding.state:<4}  {finding.name.ljust(width)}  {escape(finding.value)}{meaning}")
        say("boxeval can work here" if diagnosis.ok else "boxeval cannot work here: mend what says fail")
    if not diagnosis.ok:
        raise typer.Exit(1)


def clean(
    dry: Annotated[bool, typer.Option("--dry", help="Only say what would go.")] = False,
    cache: Annotated[
        bool, typer.Option("--cache", help="Cached fixtures too; they are made again when needed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove what dead runs of this home left on the engine. Nothing of a live run, and nothing of others."""
    from boxeval.sandbox.engine import connect
    from boxeval.sandbox.ownership import Owner
    from boxeval.sandbox.sweep import clean as sweep
    from boxeval.settings import load_settings

    gone = sweep(connect(), Owner.here(load_settings().data_dir), dry=dry, cache=cache)
    if as_json:
        say_json({"dry": dry, "removed": [{"kind": one.kind, "name": one.name} for one in gone]})
        return
    for one in gone:
        say(f"{'would remove' if dry else 'removed'} {one.kind} {escape(one.name)}")
    if not gone:
        say("nothing to remove")
