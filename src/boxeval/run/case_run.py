"""A run of a case from its choices to its verified result: the same run as a suite's, with files beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from boxeval.agents.environment import credential_like
from boxeval.errors import UsageError
from boxeval.formats.case import LoadedCase, load_case
from boxeval.formats.case_sources import named_source
from boxeval.formats.case_suite import Choice, case_suite
from boxeval.formats.fixtures import Fixture
from boxeval.formats.project import project_digest
from boxeval.formats.protected import ProtectedRoots
from boxeval.formats.run_settings import LoadedSettings, load_settings_file
from boxeval.formats.runtime_config import NO_RUNTIME, Runtime, load_runtime
from boxeval.formats.suite_v2 import LoadedSuite
from boxeval.run.case_choices import CaseChoices
from boxeval.run.case_extension import Supplied
from boxeval.run.out_of_reach import own_places
from boxeval.settings import Settings
from boxeval.spec.case_run import CaseRun, Route
from boxeval.spec.models import UpstreamModel
from boxeval.spec.runtime import Role


@dataclass(frozen=True, slots=True)
class PreparedCase:
    """A case as a suite, the choices that the plan keeps, and what there is to tell before it runs."""

    suite: LoadedSuite
    run: CaseRun
    jobs: int | None
    seeds: Mapping[Role, Fixture]
    notes: tuple[str, ...]

    @property
    def asks_a_provider(self) -> bool:
        """Whether the operator named a model that is asked over a network; a case says nothing of one by itself."""
        return any(isinstance(model, UpstreamModel) for model in self.suite.suite.models.values())


def prepare_case(
    choices: CaseChoices,
    settings: Settings,
    supplied: Supplied | None = None,
    environ: Mapping[str, str] = os.environ,
) -> PreparedCase:
    """Read and check everything that the flags name. Raises `UsageError` or `SuiteError`; starts nothing.

    `supplied` is what an extension answered, if one supplies the case.
    """
    chosen = load_settings_file(choices.run_settings_file)
    loaded = supplied.loaded if supplied else _from_file(choices)
    choice = _choice(choices, chosen)
    _check_condition(choices, chosen)
    threshold = _threshold(choices, chosen)
    results_root = (choices.results_root or settings.runs_dir).absolute()
    protected = _protected(choices, settings, results_root)
    runtime = _runtime(choices, environ, protected)
    judge = _semantic(choices, chosen)
    repository = _repository(choices, loaded, protected, results_root)
    suite = case_suite(loaded, choice, runtime, repository, judge, supplied.use if supplied else None)
    if supplied:
        suite = replace(suite, directory=supplied.directory)
    for policy in suite.policies.values():
        if fault := protected.mounts_fault(policy.mounts):
            raise UsageError(f"policy `{policy.id}`: {fault}")
    run = CaseRun(
        condition="passive",
        threshold=threshold,
        candidate=_told(Route(host=choice.host, model=choice.model, effort=choice.effort)),
        semantic=_told(judge) if judge else None,
        project=project_digest(choices.project_root, (results_root,)) if choices.project_root else None,
        runtime=runtime.digest,
        settings=chosen.digest,
        dry=choices.dry,
    )
    return PreparedCase(suite, run, chosen.choose(None, "jobs"), runtime.seeds, runtime.notes)


def _from_file(choices: CaseChoices) -> LoadedCase:
    if choices.case_file is None:
        raise UsageError("a case needs --case-file or --extension-command-file")
    loaded = load_case(choices.case_file)
    if choices.case_id not in (None, loaded.case.id):
        raise UsageError(f"--case-id {choices.case_id}: the case in {choices.case_file} is {loaded.case.id}")
    return loaded


def _choice(choices: CaseChoices, chosen: LoadedSettings) -> Choice:
    host, model = chosen.choose(choices.host, "host"), chosen.choose(choices.model, "model")
    if host is None:
        raise UsageError("a case needs --host, e.g. --host reference")
    if model is None:
        raise UsageError("a case needs --model, e.g. --model script:FILE")
    effort = chosen.choose(choices.effort, "effort")
    return Choice(host, model, effort, chosen.choose(choices.trials, "trials", 1) or 1)


def _check_condition(choices: CaseChoices, chosen: LoadedSettings) -> None:
    condition = chosen.choose(choices.condition, "condition", "passive")
    if condition != "passive":
        raise UsageError(
            f"--condition {condition}: only `passive` can be had, and it is never taken for another"
        )


def _threshold(choices: CaseChoices, chosen: LoadedSettings) -> float:
    threshold = chosen.choose(choices.threshold, "threshold", 1.0)
    if threshold is None or not 0 < threshold <= 1:
        raise UsageError(f"--threshold {threshold}: must be above 0 and at most 1")
    return threshold


def _semantic(choices: CaseChoices, chosen: LoadedSettings) -> Route | None:
    host = chosen.choose(choices.semantic_host, "semantic_host")
    model = chosen.choose(choices.semantic_model, "semantic_model")
    if (host is None) != (model is None):
        raise UsageError("--semantic-host and --semantic-model go together")
    return Route(host=host, model=model) if host else None


def _told(route: Route) -> Route:
    """The route as it is kept: of a file of the host no more than its name."""
    form, colon, file = (route.model or "").partition(":")
    if colon and form in ("script", "replay"):
        return route.model_copy(update={"model": f"{form}:{Path(file).name}"})
    return route


def _protected(choices: CaseChoices, settings: Settings, results_root: Path) -> ProtectedRoots:
    own = [
        *own_places(settings),
        (results_root, "--results-root"),
    ]
    if choices.case_file:
        own.append((choices.case_file.absolute().parent, "the directory of the case file"))
    if choices.extension_command_file:
        own += [
            (choices.extension_command_file.absolute().parent, "the directory of the extension's command")
        ]
        own += [(source, "a source of the extension") for source in choices.extension_sources]
    if choices.project_root:
        own.append((choices.project_root, "--project-root"))
    if choices.case_source_root:
        own.append((choices.case_source_root, "--case-source-root"))
    return ProtectedRoots.of(choices.protected_roots, own)


def _runtime(choices: CaseChoices, environ: Mapping[str, str], protected: ProtectedRoots) -> Runtime:
    if choices.runtime_config_file is None:
        return NO_RUNTIME
    home = Path("~").expanduser()
    return load_runtime(choices.runtime_config_file, environ, credential_like, protected, home)


def _repository(
    choices: CaseChoices, loaded: LoadedCase, protected: ProtectedRoots, results_root: Path
) -> Path | None:
    name = loaded.case.fixture.source_ref
    if name is None:
        return None
    place = named_source(name, choices.case_source_map_file, choices.case_source_root)
    if fault := protected.source_fault(place):
        raise UsageError(f"sourceRef {name}: {fault}")
    if results_root.resolve().is_relative_to(place):
        raise UsageError(f"--results-root {results_root}: lies in the repository of sourceRef {name}")
    return place
