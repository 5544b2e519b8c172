"""`extension`: for those who write one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from boxeval.cli.output import camel, say, say_json, warn
from boxeval.cli.places import Json
from boxeval.errors import UsageError
from boxeval.reports.escape import escape

if TYPE_CHECKING:
    from boxeval.run.extension_check import Finding

extension_app = typer.Typer(no_args_is_help=True, help="Extensions: checks by an executable of your own.")
_SAID_LINES = 10


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(extension_app, name="extension")


@extension_app.command()
def check(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...",
            help="Program and arguments. Words that are paths of files below this directory go into the box; put `--` "
            "before a command with options.",
        ),
    ],
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar="PATH", help="Another file or directory that it needs. May be given again."
        ),
    ] = None,
    configuration: Annotated[
        Path | None,
        typer.Option("--configuration", metavar="FILE", help="JSON object to send as its configuration."),
    ] = None,
    verdict_policy: Annotated[
        str | None, typer.Option("--verdict-policy", metavar="ID", help="Select one of its verdict policies.")
    ] = None,
    protocol: Annotated[
        Literal["boxeval", "sevro"], typer.Option("--protocol", help="Whose names it speaks.")
    ] = "boxeval",
    image: Annotated[
        str, typer.Option("--image", metavar="IMAGE", help="Image of its boxes.")
    ] = "boxeval/grader",
    as_json: Json = False,
) -> None:
    """Ask an extension everything once, in the boxes that it will have. Exits 1 if an answer cannot be used."""
    from pydantic import ValidationError

    from boxeval.formats.case_extension import load_configuration
    from boxeval.formats.extension_files import extension_faults
    from boxeval.formats.place import dotted
    from boxeval.run.extension_check import check_extension
    from boxeval.run.extensions import extension_room
    from boxeval.settings import load_settings
    from boxeval.spec.extension_use import ExtensionUse

    try:
        use = ExtensionUse(
            command=tuple(command),
            sources=tuple(source or ()),
            configuration=load_configuration(configuration, "--configuration"),
            verdict_policy=verdict_policy,
            protocol=protocol,
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(f"{dotted(first['loc'])}: {first['msg']}") from None
    for place, fault in extension_faults(use):
        raise UsageError(f"{dotted(place)}: {fault}")
    with extension_room(use, Path.cwd(), load_settings(), image, warn) as room:
        found = check_extension(room)
    if as_json:
        say_json({"ok": all(one.ok for one in found), "methods": [camel(one) for one in found]})
    else:
        _say(found)
    if not all(one.ok for one in found):
        raise typer.Exit(1)


def _say(found: tuple[Finding, ...]) -> None:
    """A line a method, then what each that failed wrote to standard error."""
    for one in found:
        size = "" if one.answer_bytes is None else f"{one.answer_bytes} B"
        took = "" if one.wall_ms is None else f"{one.wall_ms} ms"
        say(f"{'ok' if one.ok else 'RED':<4}  {one.method:<8}  {took:>8}  {size:>10}  {escape(one.detail)}")
    for one in found:
        lines = [] if one.ok else one.diagnostics.strip().splitlines()[-_SAID_LINES:]
        if lines:
            say(f"standard error of {one.method}, its end:")
        for line in lines:
            say(f"    {escape(line)}")
    red = sum(not one.ok for one in found)
    say(f"{red} of {len(found)} answers cannot be used" if red else "every answer can be used")
