"""`validate` and `schema`: a suite before anything runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from boxeval.cli.output import camel, say, say_json, warn
from boxeval.cli.places import Json, SuiteArgument, SuiteOption, suite_file
from boxeval.reports.escape import escape

if TYPE_CHECKING:
    from boxeval.errors import Problem

schema_app = typer.Typer(no_args_is_help=True, help="Print JSON Schemas, for editors and other programs.")


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(validate)
    app.command()(check)
    app.add_typer(schema_app, name="schema")


def validate(suite: SuiteArgument = None, suite_option: SuiteOption = None, as_json: Json = False) -> None:
    """Check a suite and every file it names. Nothing is started; every mistake is told with its place."""
    from boxeval.errors import SuiteError
    from boxeval.formats.sources import read_extensions, read_sources
    from boxeval.formats.suite_v2 import load_suite
    from boxeval.graders.examiner import Examiner
    from boxeval.graders.preflight import preflight
    from boxeval.reports.words import plural
    from boxeval.run.out_of_reach import refuse_mounts
    from boxeval.settings import load_settings

    path = suite_file(suite, suite_option)
    try:
        loaded = load_suite(path)
        refuse_mounts(loaded, load_settings(os.environ))
        every = {task.id for task in loaded.suite.tasks}
        read_sources(loaded, every)
        read_extensions(loaded, every)
        with Examiner() as examiner:
            warnings = (*loaded.warnings, *preflight(loaded, examiner))
    except SuiteError as error:
        if not as_json:
            raise
        say_json({"valid": False, "problems": [_problem(problem) for problem in error.problems]})
        raise typer.Exit(error.exit_code) from error
    tasks, targets = len(loaded.suite.tasks), len(loaded.suite.matrix.targets)
    if as_json:
        say_json(
            {
                "valid": True,
                "suite": loaded.suite.suite.id,
                "sha256": loaded.sha256,
                "tasks": tasks,
                "targets": targets,
                "problems": [],
                "warnings": [_problem(warning) for warning in warnings],
            }
        )
        return
    for warning in warnings:
        warn(f"warning: {warning}")
    say(f"{escape(str(path))}: good: {plural(tasks, 'task')} for {plural(targets, 'target')}")


def check(
    suite: SuiteArgument = None,
    suite_option: SuiteOption = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, metavar="N", help="Trials at a time.")] = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing before the result.")] = False,
) -> None:
    """Run a suite's own solutions, and candidates that do nothing. Exits 1 if one does not end as it should."""
    import sys

    from boxeval.errors import IncompleteError
    from boxeval.reports.live import watching
    from boxeval.run.reference_check import check_references
    from boxeval.run.signals import watched
    from boxeval.settings import load_settings

    path, settings = suite_file(suite, suite_option), load_settings()
    with watched() as signals, watching(sys.stderr, quiet=quiet) as watcher:
        found = check_references(path, watcher, settings, signals, jobs)
    if as_json:
        say_json({"ok": all(one.good for one in found), "checks": [camel(one) for one in found]})
    else:
        words = {True: "ok", False: "RED", None: "void"}
        for one in found:
            say(f"{words[one.good]:<4}  {escape(one.key)}: {escape(one.detail)}")
    if any(one.good is False for one in found):
        raise typer.Exit(1)
    if any(one.good is None for one in found):
        raise typer.Exit(IncompleteError.exit_code)


def _problem(problem: Problem) -> dict[str, object]:
    return {name: getattr(problem, name) for name in ("file", "line", "column", "path", "message")}


@schema_app.command("suite")
def schema_suite() -> None:
    """Print the schema of suite files."""
    from boxeval.formats.schema import suite_schema

    say_json(suite_schema())


@schema_app.command("policy")
def schema_policy() -> None:
    """Print the schema of policy files."""
    from boxeval.spec.policy import Policy

    say_json(Policy.model_json_schema())


@schema_app.command("extension")
def schema_extension() -> None:
    """Print the schema of all messages to and from extensions."""
    from boxeval.spec.extension_messages import extension_schema

    say_json(extension_schema())


@schema_app.command("report")
def schema_report() -> None:
    """Print the schema of what `boxeval report --format json` writes."""
    from boxeval.reports.json import report_schema

    say_json(report_schema())
