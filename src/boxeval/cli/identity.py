"""`identity`: the named dimensions of what was run, and in which of them two runs differ (contract G70)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from boxeval.cli.output import say, say_json
from boxeval.cli.places import Json, Run
from boxeval.cli.verified import TrustFiles, read_run
from boxeval.errors import TamperError, UsageError

if TYPE_CHECKING:
    from boxeval.receipts.verify import VerifiedRun

Named = dict[str, dict[str, str]]
"""Digests by dimension, by `task[target]`."""


def add_to(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(identity)


def identity(
    run: Run,
    other: Annotated[str | None, typer.Argument(metavar="OTHER", help="A run to compare it with.")] = None,
    allow_difference: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-difference", metavar="NAME", help="A dimension that may differ. May be given again."
        ),
    ] = None,
    trust: TrustFiles = None,
    as_json: Json = False,
) -> None:
    """Show the identity of each task by its dimensions, or those in which two runs differ.

    Exits 1 if they differ in a dimension that --allow-difference does not name.
    """
    from boxeval.rules.identity import DIMENSIONS

    allowed = set(allow_difference or ())
    if unknown := sorted(allowed - set(DIMENSIONS)):
        raise UsageError(f"--allow-difference {unknown[0]}: the dimensions are {', '.join(DIMENSIONS)}")
    one = _named(read_run(run, trust))
    if other is None:
        if as_json:
            say_json(one)
        else:
            say("\n".join(line for cell, named in one.items() for line in _shown(cell, named)))
        return
    differ = compared(one, _named(read_run(other, trust)))
    refused = sorted({name for names in differ.values() for name in names} - allowed)
    if as_json:
        say_json({"equal": not differ, "differences": differ, "refused": refused})
    else:
        from boxeval.reports.escape import escape

        lines = [f"{escape(cell)}: {', '.join(names)}" for cell, names in differ.items()]
        say("\n".join(lines) if lines else "equal")
    if refused:
        raise typer.Exit(1)


def compared(one: Named, other: Named) -> dict[str, list[str]]:
    """The dimensions that differ, for each task that both have; a task that one lacks differs in `case`."""
    from boxeval.rules.identity import DIMENSIONS

    found = {}
    for cell in (*one, *(cell for cell in other if cell not in one)):
        if cell not in one or cell not in other:
            found[cell] = ["case"]
        elif names := [name for name in DIMENSIONS if one[cell].get(name) != other[cell].get(name)]:
            found[cell] = names
    return found


def _named(verified: VerifiedRun) -> Named:
    from boxeval.rules.identity import digests, dimensions
    from boxeval.rules.identity import identity as digest_of

    plan, named = verified.plan, {}
    for task in plan.tasks:
        found = dimensions(plan, task)
        if digest_of(found) != task.identity:
            raise TamperError(
                f"{task.task}: its identity is not that of its dimensions; another version made it"
            )
        named[f"{task.task}[{task.target}]"] = digests(found)
    return named


def _shown(cell: str, named: dict[str, str]) -> list[str]:
    from boxeval.reports.escape import escape

    return [escape(cell), *(f"  {name:<16} {sha256}" for name, sha256 in named.items())]
