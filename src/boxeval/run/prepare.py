"""From a request to a plan: read the suite, its policies and fixtures, find the images. Nothing runs yet."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from boxeval import __version__
from boxeval.errors import ImageError, UsageError
from boxeval.formats.fixtures import Fixture, GitSource, fixture_recipe
from boxeval.formats.references import idle
from boxeval.formats.sources import read_extensions, read_sources
from boxeval.formats.suite_v2 import LoadedSuite, load_suite
from boxeval.gateway.sources import Sources as ModelSources
from boxeval.graders.examiner import Examiner
from boxeval.graders.preflight import preflight
from boxeval.receipts.ledger import utc_now
from boxeval.receipts.recovery import Recovery
from boxeval.rules.planning import PlanInputs, check_memory, default_jobs, make_plan
from boxeval.rules.same_plan import differences
from boxeval.rules.selection import Selection, grader_image_of, image_of, select
from boxeval.run.build import build_digest
from boxeval.run.case_extension import supply
from boxeval.run.case_run import PreparedCase, prepare_case
from boxeval.run.events import RunRequest, Watcher
from boxeval.run.models import PreparedModels, prepare_models, refuse_upstream
from boxeval.run.out_of_reach import refuse_keys, refuse_mounts
from boxeval.run.prepare_images import have_images, plan_images
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import GRADER, KEEPER, ImageInfo
from boxeval.settings import Settings
from boxeval.spec.checks import FileCheck, GitHeadCheck
from boxeval.spec.plan import Plan, PlannedImage, PlannedTrial, Provenance
from boxeval.spec.runtime import Role
from boxeval.spec.suite import Target, Task
from boxeval.trial.extension_room import ExtensionSource

Sources = Mapping[tuple[str, str], Fixture | GitSource]
SHOWN_DIFFERENCES = 5


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan and the things that it names."""

    plan: Plan
    directory: Path
    sources: Sources
    extensions: Mapping[tuple[str, str], ExtensionSource]
    images: Mapping[str, ImageInfo]
    keeper: ImageInfo
    jobs: int
    models: ModelSources
    seeds: Mapping[Role, Fixture]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What of a suite is to be run, and what that needs, read."""

    loaded: LoadedSuite
    case: PreparedCase | None
    selection: Selection
    tasks: Sequence[Task]
    pairs: Sequence[tuple[Task, Target]]
    sources: Sources
    extensions: Mapping[tuple[str, str], ExtensionSource]
    models: PreparedModels


def prepare(
    request: RunRequest,
    engine: Engine,
    settings: Settings,
    watcher: Watcher,
    recovery: Recovery | None = None,
) -> Prepared:
    """Read everything a run needs, and plan it.

    With a `recovery` that very run is to go on: UsageError names what is not as it was. An image that cannot be
    had makes its trials void, since others may run; without a keeper there is no run (ImageError).
    """
    chosen = _choose(request, *_load(request, settings, watcher), settings)
    case = chosen.case
    allow_network = request.allow_network or (case is not None and case.asks_a_provider)
    if not allow_network:
        _refuse_network(chosen.sources)
        refuse_upstream(chosen.models.planned)
    names = _image_names(chosen)
    images, faults = have_images(engine, names | {KEEPER}, watcher.note)
    if KEEPER in faults:
        raise ImageError(f"{KEEPER}: {faults[KEEPER]}")
    recorded = recovery.run.plan if recovery else None
    plan = _plan(
        chosen,
        request,
        settings,
        plan_images(names, images, faults),
        provenance(engine),
        recorded,
        allow_network,
    )
    if recovery:
        _require_same(recovery.run.plan, plan, recovery.remaining)
        plan = recovery.run.plan
    _require_policies(plan, engine, request)
    return Prepared(
        plan,
        chosen.loaded.directory,
        chosen.sources,
        chosen.extensions,
        images,
        images[KEEPER],
        _jobs(plan, request.jobs or (case and case.jobs) or settings.jobs, engine),
        chosen.models.sources(None if recovery else request.record),
        case.seeds if case else {},
    )


def _load(
    request: RunRequest, settings: Settings, watcher: Watcher
) -> tuple[LoadedSuite, PreparedCase | None]:
    """The suite, or that of a case; what is to be said of it is noted."""
    case = None
    if request.case:
        case = prepare_case(request.case, settings, supply(request.case, settings, watcher.note))
    loaded = case.suite if case else load_suite(request.suite)
    loaded = idle(loaded) if request.idle else loaded
    keys = (request.key_file, "--key"), (request.keyring_file, "--keyring")
    refuse_mounts(loaded, settings, (request.out, "--out"), *keys)
    for note in case.notes if case else ():
        watcher.note(f"note: {note}")
    with Examiner() as examiner:
        found = preflight(loaded, examiner)
    for warning in (*loaded.warnings, *found):
        watcher.note(f"warning: {warning}")
    return loaded, case


def _choose(
    request: RunRequest, loaded: LoadedSuite, case: PreparedCase | None, settings: Settings
) -> _Chosen:
    selection = Selection(request.targets, request.tasks, request.tags, request.smoke)
    targets, tasks = select(loaded.suite, selection)
    pairs = [(task, target) for target in targets for task in tasks]
    read = read_sources(loaded, {task.id for task in tasks})
    refuse_keys(loaded, tasks, read, settings)
    used = read_extensions(loaded, {task.id for task in tasks})
    return _Chosen(
        loaded,
        case,
        selection,
        tasks,
        pairs,
        sources={(task.id, target.id): read[task.id] for task, target in pairs},
        extensions={
            (task.id, target.id): ExtensionSource(task.verify.extension, loaded.directory, used[task.id])
            for task, target in pairs
            if task.verify.extension is not None
        },
        models=prepare_models(loaded, pairs, request, settings),
    )


def _image_names(chosen: _Chosen) -> set[str]:
    """Images of candidates and graders, and the one whose Git and programs read what boxeval itself may not."""
    suite = chosen.loaded.suite
    names = {image_of(suite, *pair) for pair in chosen.pairs}
    names |= {grader_image_of(suite, *pair) for pair in chosen.pairs}
    if (
        any(isinstance(source, GitSource) for source in chosen.sources.values())
        or any(task.workspace.written for task in chosen.tasks)
        or any(
            isinstance(check, FileCheck | GitHeadCheck)
            for task in chosen.tasks
            for check in task.verify.checks
        )
    ):
        names.add(GRADER)
    return names


def _plan(
    chosen: _Chosen,
    request: RunRequest,
    settings: Settings,
    images: Mapping[str, PlannedImage],
    made_by: Provenance,
    recorded: Plan | None,
    allow_network: bool,
) -> Plan:
    loaded, suite = chosen.loaded, chosen.loaded.suite
    recipes = {
        (task.id, target.id): fixture_recipe(
            task.workspace, chosen.sources[task.id, target.id], image_of(suite, task, target)
        )
        for task, target in chosen.pairs
    }
    return make_plan(
        PlanInputs(
            run_id=recorded.run_id if recorded else new_run_id(),
            created_at=recorded.created_at if recorded else utc_now(),
            suite=suite,
            suite_sha256=loaded.sha256,
            file_name=loaded.file.name,
            policies=loaded.policies,
            fixture_recipes=recipes,
            extensions={pair: source.files.digest for pair, source in chosen.extensions.items()},
            images=images,
            provenance=made_by,
            models=chosen.models.planned,
            selection=chosen.selection,
            model=request.model,
            judge=request.judge,
            repeats=request.repeats,
            hermetic=settings.hermetic,
            allow_network=allow_network,
            case=chosen.case.run if chosen.case else None,
        )
    )


def _require_policies(plan: Plan, engine: Engine, request: RunRequest) -> None:
    """The engine must have each policy's runtime, and the operator must allow each way out."""
    for name, policy in plan.policies.items():
        engine.require_runtime(policy.runtime)
        if policy.network == "allowlist" and not request.allow_network:
            raise UsageError(
                f"policy {name}: lets candidates reach {', '.join(policy.allow)}; allow it with --allow-network"
            )


def _jobs(plan: Plan, wanted: int | None, engine: Engine) -> int:
    """Trials at a time, for which there must be memory."""
    facts = engine.facts
    jobs = wanted or default_jobs(facts.cpus, facts.memory_bytes, plan.policies.values())
    jobs = min(jobs, len(plan.trials))
    check_memory(jobs, plan.policies, facts.memory_bytes)
    return jobs


def _require_same(recorded: Plan, now: Plan, remaining: Iterable[PlannedTrial]) -> None:
    if found := differences(recorded, now, {(trial.task, trial.target) for trial in remaining}):
        more = f"; and {len(found) - SHOWN_DIFFERENCES} more" if len(found) > SHOWN_DIFFERENCES else ""
        raise UsageError(
            f"run {recorded.run_id} cannot go on, for it was planned with something else: "
            f"{'; '.join(found[:SHOWN_DIFFERENCES])}{more}; put that back, or start a new run"
        )


def new_run_id() -> str:
    """Sortable by time, and unique: UTC to the second and 24 random bits."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def provenance(engine: Engine) -> Provenance:
    """Versions of what makes a run; nothing that names the machine."""
    facts = engine.facts
    return Provenance(
        boxeval=__version__,
        build=build_digest(),
        python=platform.python_version(),
        engine=facts.name,
        engine_version=facts.version,
        runtime=f"{facts.runtime} {facts.runtime_version}",
        storage_driver=facts.storage_driver,
        cgroup_version=facts.cgroup_version,
        kernel=facts.kernel,
        architecture=facts.architecture,
    )


def _refuse_network(sources: Sources) -> None:
    for (task, _), source in sources.items():
        if isinstance(source, GitSource) and source.needs_network:
            raise UsageError(
                f"task {task}: {source.url} must be fetched over a network; allow it with --allow-network "
                "(for the box that fetches it, and no other)"
            )
