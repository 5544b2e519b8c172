"""`soak`: suites again and again, and whether anything grows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boxeval.cli.output import say, say_json, warn
from boxeval.cli.verified import trust_of
from boxeval.errors import StorageError, UsageError

if TYPE_CHECKING:
    from boxeval.spec.soak import SoakReport

SUITES = ("load", "boundary", "chaos", "loop")


def add_to(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(soak)


def soak(
    suites: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SUITE]...", help="Suite files.  [default: the four below suites/soak]"),
    ] = None,
    hours: Annotated[float, typer.Option("--hours", metavar="H", help="How long, in hours.")] = 1.0,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, metavar="N", help="Trials at a time.  [default: by cores and memory]"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write everything measured here, as JSON.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Repeat suites, and print how memory, descriptors, disk and engine objects grow."""
    from boxeval.reports.soak import render_soak
    from boxeval.run.signals import watched
    from boxeval.run.soak import soak as run_soak
    from boxeval.settings import load_settings, resource

    if not 0 < hours <= 24 * 366:
        raise UsageError(f"--hours {hours}: must be more than 0, and at most a year")
    if out and not out.absolute().parent.is_dir():
        raise UsageError(f"--out {out}: its folder does not exist")
    settings = load_settings()
    files = suites or [resource("suites") / "soak" / f"{name}.yaml" for name in SUITES]
    with watched() as signals:
        report = run_soak(files, hours, settings, signals, warn, lambda: trust_of(settings), jobs)
    if out:
        _write(out, report)
    if as_json:
        say_json(report.model_dump(mode="json"))
    else:
        say(render_soak(report))
    if report.interrupted_by:
        raise typer.Exit(128 + report.interrupted_by)
    # 1 beats 3, as for a single run.
    codes = {one.code for one in report.rounds}
    raise typer.Exit(1 if 1 in codes else max(codes, default=3))


def _write(path: Path, report: SoakReport) -> None:
    try:
        path.write_text(report.model_dump_json(indent=2) + "\n", "utf-8")
    except OSError as error:
        raise StorageError(f"--out {path}: cannot be written: {error.strerror}") from error
