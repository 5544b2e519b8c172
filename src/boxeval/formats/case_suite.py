"""A case and the choices of its run as a suite of one task, so that there is one way to run both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from boxeval.errors import UsageError
from boxeval.formats.agent_files import agent_files_fault
from boxeval.formats.case import LoadedCase, workspace_of
from boxeval.formats.place import show
from boxeval.formats.runtime_config import Runtime
from boxeval.formats.suite_v2 import DEFAULT_POLICY, LoadedSuite, complete
from boxeval.spec.case import Case
from boxeval.spec.case_run import Route
from boxeval.spec.checks import AnyCheck, JudgedCheck
from boxeval.spec.extension_use import ExtensionUse
from boxeval.spec.metrics import did_you_mean
from boxeval.spec.models import Model, ReplayModel, ScriptModel, UpstreamModel
from boxeval.spec.suite import (
    Defaults,
    Matrix,
    Runner,
    RunnerKind,
    Step,
    Suite,
    SuiteInfo,
    Target,
    Task,
    Verify,
    Visibility,
)

MODEL = "candidate"
"""Name of the candidate's model in the suite."""
JUDGE = "judge"
"""And of the judge's."""
PROVIDERS = {"codex": "openai", "claude": "anthropic"}
"""Whose models a host takes if `--model` gives a bare name."""
REFERENCE = "reference"
HOSTS = (REFERENCE, "codex", "claude", "gemini", "opencode", "mini-swe-agent", "aider")
CONTINUES = (REFERENCE, "codex", "claude", "opencode")
"""Hosts that go on with a session, as a follow-up prompt needs."""
KEEP_INERT = (REFERENCE, "codex", "claude")
"""Hosts that do not heed an agent's configuration in a fixture: that of reference knows none."""
FIRST, FOLLOW_UP = "prompt", "follow-up"
"""Turns of a case with two prompts."""
WITH_EFFORT, EFFORTS = ("codex", "claude"), ("low", "medium", "high")
MODEL_FORMS = (
    "script:FILE, replay:FILE, upstream:PROVIDER/NAME, or the NAME of a model of the host's own provider"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Who answers a case, and how often."""

    host: str
    model: str
    effort: str | None
    trials: int


def case_suite(
    loaded: LoadedCase,
    choice: Choice,
    runtime: Runtime,
    repository: Path | None,
    judge: Route | None = None,
    extension: ExtensionUse | None = None,
) -> LoadedSuite:
    """The suite of a case. Raises `SuiteError` with every problem of the case, `UsageError` for a choice."""
    case = loaded.case
    if case.fixture_configuration is None and (fault := agent_files_fault(case.fixture, repository)):
        raise UsageError(f"{loaded.file}: {fault}; `fixtureConfiguration: inert` lets it be there, unheeded")
    _check_judge(case.checks, judge)
    models = {MODEL: model_of(choice.model, choice.host)}
    if judge is not None:
        _known_host(judge.host)
        models[JUDGE] = model_of(judge.model or "", judge.host, "--semantic-model")
    suite = Suite(
        version=2,
        suite=SuiteInfo(id=case.id, title=f"Case {case.id}", visibility=Visibility.LOCAL),
        matrix=Matrix(
            targets=(Target(id=choice.host, model=MODEL, thinking=choice.effort, env=runtime.env),),
            repeats=choice.trials,
        ),
        defaults=Defaults(judge=JUDGE if judge else None),
        models=models,
        tasks=(
            Task(
                id=case.id,
                workspace=workspace_of(case.fixture),
                **_asked(case, choice, runtime),
                verify=Verify(env=runtime.env, checks=case.checks, extension=extension),
                required_evidence=case.required_evidence,
            ),
        ),
    )
    made = complete(suite, [], loaded.source, loaded.sha256, loaded.file)
    policy = made.policies[DEFAULT_POLICY]
    shown = policy.model_copy(update={"mounts": (*policy.mounts, *runtime.mounts)})
    repositories = {case.fixture.source_ref: repository} if case.fixture.source_ref and repository else {}
    return replace(made, policies=made.policies | {DEFAULT_POLICY: shown}, repositories=repositories)


def _asked(case: Case, choice: Choice, runtime: Runtime) -> dict[str, Any]:
    """How a host takes its turn, or two of one session, as fields of a task. Raises `UsageError`."""
    tree = _host(choice, runtime, case.fixture_configuration)
    if case.follow_up_prompt is None:
        return {"runner": Runner.model_validate(tree | {"prompt": case.prompt})}
    if choice.host not in CONTINUES:
        raise UsageError(
            f"followUpPrompt: host {choice.host} cannot go on with a session ({_list(CONTINUES)} can)"
        )
    if choice.host == REFERENCE:
        tree["options"] = {"continue_session": True}
    prompts = {FIRST: case.prompt, FOLLOW_UP: case.follow_up_prompt}
    steps = tuple(Step(id=name, prompt=prompt) for name, prompt in prompts.items())
    return {"runner": Runner.model_validate(tree), "steps": steps}


def _host(choice: Choice, runtime: Runtime, configuration: str | None) -> dict[str, Any]:
    """The runner of a host without its prompt. Raises `UsageError` for no host, or for what it does not have."""
    host, state = choice.host, runtime.host_options
    if host == REFERENCE:
        if state:
            raise UsageError(
                f"host {host} has no {_list(state)} of a runtime configuration; {_list(HOSTS[1:])} do"
            )
        return {"kind": RunnerKind.SCRIPTED}
    _known_host(host)
    options: dict[str, Any] = {**state}
    if configuration is not None:
        if host not in KEEP_INERT:
            raise UsageError(
                f"fixtureConfiguration: host {host} cannot leave it unheeded ({_list(KEEP_INERT)} can)"
            )
        options["fixture_configuration"] = configuration
    if choice.effort is not None and host in WITH_EFFORT:
        if choice.effort not in EFFORTS:
            raise UsageError(f"--effort {choice.effort}: host {host} has {', '.join(EFFORTS)}")
        options["effort"] = choice.effort
    return {"kind": RunnerKind.AGENT, "agent": host, **({"host": options} if options else {})}


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


def _known_host(host: str) -> None:
    if host not in HOSTS:
        known = ", ".join(HOSTS)
        raise UsageError(f"there is no host {show(host)}{did_you_mean(host, HOSTS)} (known: {known})")


def _check_judge(checks: Iterable[AnyCheck], judge: Route | None) -> None:
    needs = next((check for check in checks if isinstance(check, JudgedCheck)), None)
    if needs and judge is None:
        raise UsageError(f"check {needs.id} needs a judge: --semantic-host HOST and --semantic-model MODEL")


def model_of(text: str, host: str, flag: str = "--model") -> Model:
    """What `--model`, or another flag, names. Files are relative to the working directory. Raises `UsageError`."""
    form, colon, rest = text.partition(":")
    if colon and form in ("script", "replay"):
        file = Path(rest).absolute()
        if not rest or not file.is_file():
            raise UsageError(f"{flag} {show(text)}: there is no such file")
        return ScriptModel(script=str(file)) if form == "script" else ReplayModel(replay=str(file))
    if colon and form == "upstream":
        provider, _, name = rest.rpartition("/")
    else:
        provider, name = PROVIDERS.get(host, ""), text
    if not provider or not name:
        raise UsageError(f"{flag} {show(text)}: host {show(host)} wants {MODEL_FORMS}")
    return UpstreamModel(upstream=provider, model=name)
