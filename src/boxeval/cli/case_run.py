"""`run --case-file`: one case from its flags to its result, with the exit codes of contract G61."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from boxeval.cli.case_options import CaseOptions
from boxeval.cli.output import complain, say, warn
from boxeval.errors import BoxevalError, EngineError, FixtureError, SuiteError, UsageError
from boxeval.run.signals import Interrupted

if TYPE_CHECKING:
    from boxeval.run.events import RunEnd, RunRequest
    from boxeval.settings import Settings
    from boxeval.spec.case_result import CaseResult

INVALID, INTERNAL = 64, 70
_BEFORE = (UsageError, SuiteError, FixtureError, EngineError)
"""What a run that has begun does not raise: such faults are in its trials then."""


def run_case(
    case: CaseOptions, base: RunRequest, *, model: str | None, as_json: bool, quiet: bool, foreign: list[str]
) -> int:
    """Run a case and print its result; returns the exit code.

    `base` has what case runs share with those of suites. `foreign` are flags of suite runs that were given.
    """
    try:
        _refuse(case, foreign)
        return _run(case, base, model, as_json, quiet)
    except BoxevalError as error:
        code = INVALID if isinstance(error, _BEFORE) else INTERNAL
        for line in str(error).splitlines():
            complain(line)
        if as_json:
            say(_without_run(code, str(error)))
        return code
    except Interrupted as end:
        if as_json:
            say(_without_run(128 + end.number, f"{end} came before the run began"))
        return 128 + end.number


def _refuse(case: CaseOptions, foreign: list[str]) -> None:
    if foreign:
        raise UsageError(f"{', '.join(foreign)}: of suite runs; a --case-file run does not take it")
    if case.codex_bin:
        warn("note: --codex-bin is not used: the agent of the image runs, whatever the host has")
    if case.codex_auth_file:
        from boxeval.run.codex_auth import key_in

        key_in(case.codex_auth_file)
        warn("note: --codex-auth-file goes to the gateway alone, and only for a model of a provider")


def _run(case: CaseOptions, base: RunRequest, model: str | None, as_json: bool, quiet: bool) -> int:
    from boxeval.cli.run import execute
    from boxeval.run.case_choices import CaseChoices
    from boxeval.settings import load_settings

    names = CaseChoices.__dataclass_fields__.keys() & CaseOptions.__dataclass_fields__.keys()
    shared = {name: getattr(case, name) for name in names}
    choices = CaseChoices(
        **shared,
        model=model,
        protected_roots=tuple(case.protected_root or ()),
        extension_sources=tuple(case.extension_source or ()),
        replaced_graders=tuple(case.replace_builtin_grader or ()),
    )
    request = replace(base, case=choices.absolute())
    return execute(request, None, load_settings(), partial(tell_case, as_json=as_json), quiet=quiet)


def tell_case(end: RunEnd, request: RunRequest, settings: Settings, *, as_json: bool) -> int:
    """Verify what was written, keep the files that are derived from it, print the result, give the exit code."""
    from boxeval.cli.verified import trust_of, verified
    from boxeval.reports.cases import render
    from boxeval.run.case_files import write_case_files

    with _as_internal():
        trust = trust_of(settings, key_file=request.key_file)
        run = verified(end.directory, trust, end.checkpoint)
        result = write_case_files(run, end.directory)
    say(_printed(result) if as_json else render([result]))
    for name in end.left_behind:
        complain(f"left behind on the engine: {name}; `boxeval clean` removes it")
    if end.interrupted_by:
        return 128 + end.interrupted_by
    return result.exit_code or (INTERNAL if end.left_behind else 0)


@contextmanager
def _as_internal() -> Iterator[None]:
    """What cannot be verified right after it was written is our own fault, whoever changed it."""
    try:
        yield
    except BoxevalError as error:
        raise BoxevalError(str(error)) from error


def _printed(result: CaseResult) -> str:
    return result.model_dump_json(indent=2, by_alias=True)


def _without_run(code: int, message: str) -> str:
    from boxeval.rules.case_states import UNSEEN
    from boxeval.spec.case_result import CaseResult, Diagnostic

    named = {INVALID: "invalid", INTERNAL: "internal"}.get(code, "interrupted")
    return _printed(
        CaseResult(
            **{name: getattr(UNSEEN, name) for name in type(UNSEEN).model_fields},
            exit_code=code,
            diagnostic=Diagnostic(code=named, message=message[:4096]),
        )
    )
