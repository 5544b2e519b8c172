"""`doctor` and `clean`: this machine and its engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boxeval.cli.output import say, say_json, warn
from boxeval.cli.places import Json
from boxeval.reports.escape import escape

if TYPE_CHECKING:
    from boxeval.sandbox.probes import ProbeReport
    from boxeval.spec.policy import Policy


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(doctor)
    app.command()(clean)


def doctor(
    probe: Annotated[
        bool, typer.Option("--probe", help="Try in real boxes whether each promise of a policy holds.")
    ] = False,
    policy: Annotated[
        str, typer.Option("--policy", help="The policy to try: a name, or a file ending in .yaml.")
    ] = "default",
    as_json: Json = False,
) -> None:
    """Say what is here, what is missing and what that means. Exits 1 if boxeval cannot work, or a promise fails."""
    from dataclasses import asdict

    from boxeval.formats.policy import load_policy
    from boxeval.sandbox.doctor import examine

    asked = load_policy(policy, Path.cwd())
    diagnosis = examine()
    report = _probe(asked) if probe and diagnosis.ok else None
    ok = diagnosis.ok and (report is None or report.ok)
    if as_json:
        probes = None if report is None else asdict(report) | {"ok": report.ok}
        findings = [asdict(finding) for finding in diagnosis.findings]
        say_json({"ok": ok, "findings": findings, **({"probes": probes} if probe else {})})
    else:
        width = max((len(finding.name) for finding in diagnosis.findings), default=0)
        for finding in diagnosis.findings:
            meaning = f"  ({escape(finding.meaning)})" if finding.meaning else ""
            say(f"{finding.state:<4}  {finding.name.ljust(width)}  {escape(finding.value)}{meaning}")
        say("boxeval can work here" if diagnosis.ok else "boxeval cannot work here: mend what says fail")
        if report is not None:
            _say_probes(report)
    if not ok:
        raise typer.Exit(1)


def _probe(policy: Policy) -> ProbeReport:
    from boxeval.agents.environment import base_environment
    from boxeval.sandbox.engine import connect
    from boxeval.sandbox.probes import prepare, run_probes
    from boxeval.settings import load_settings

    engine = connect()
    try:
        return run_probes(prepare(engine, policy, load_settings(), base_environment, warn))
    finally:
        engine.close()


def _say_probes(report: ProbeReport) -> None:
    """One line a check; the answers of both boxes on one line where they are the same."""
    boxes: dict[tuple[str, bool, str], list[str]] = {}
    for result in report.results:
        boxes.setdefault((result.name, result.ok, result.detail), []).append(result.box)
    width = max(len(name) for name, _, _ in boxes)
    say("")
    for (name, ok, detail), where in boxes.items():
        state = "ok" if ok else "RED"
        say(f"{state:<4}  {name.ljust(width)}  {', '.join(where):<13}  {escape(detail)}")
    count, red = len(report.results), len(report.red)
    say(f"policy {report.policy}: {count - red} of {count} checks hold" + (f", {red} RED" if red else ""))


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
