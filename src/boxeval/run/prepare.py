"""From a request to a plan: read the suite, its policies and fixtures, find the images. Nothing runs yet."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from boxeval import __version__
from boxeval.errors import ImageError, UsageError
from boxeval.formats.fixtures import Fixture, GitSource, fixture_recipe
from boxeval.formats.references import idle
from boxeval.formats.sources import read_extensions, read_sources
from boxeval.formats.suite_v2 import load_suite
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
from boxeval.run.case_run import prepare_case
from boxeval.run.events import RunRequest, Watcher
from boxeval.run.models import prepare_models, refuse_upstream
from boxeval.run.out_of_reach import refuse_keys, refuse_mounts
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import GRADER, KEEPER, ImageInfo, ensure
from boxeval.sandbox.rootfs import stop_bootstrap
from boxeval.settings import Settings
from boxeval.spec.checks import FileCheck, GitHeadCheck
from boxeval.spec.plan import Plan, PlannedImage, PlannedTrial, Provenance
from boxeval.spec.runtime import Role
from boxeval.trial.extension_room import ExtensionSource

Sources = Mapping[tuple[str, str], Fixture | GitSource]
BUILDS_AT_ONCE = 4
SHOWN_DIFFERENCES = 5
STOP_S = 5.0
"""For builds to end after an interrupt; what they left unfinished is a draft that `images prune` removes."""


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
    recorded = recovery.run.plan if recovery else None
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
    selection = Selection(request.targets, request.tasks, request.tags, request.smoke)
    targets, tasks = select(loaded.suite, selection)
    pairs = [(task, target) for target in targets for task in tasks]
    read = read_sources(loaded, {task.id for task in tasks})
    refuse_keys(loaded, tasks, read, settings)
    sources = {(task.id, target.id): read[task.id] for task, target in pairs}
    models = prepare_models(loaded, pairs, request, settings)
    used = read_extensions(loaded, {task.id for task in tasks})
    extensions = {
        (task.id, target.id): ExtensionSource(task.verify.extension, loaded.directory, used[task.id])
        for task, target in pairs
        if task.verify.extension is not None
    }
    allow_network = request.allow_network or (case is not None and case.asks_a_provider)
    if not allow_network:
        _refuse_network(sources)
        refuse_upstream(models.planned)
    recipes = {
        (task.id, target.id): fixture_recipe(
            task.workspace, sources[task.id, target.id], image_of(loaded.suite, task, target)
        )
        for task, target in pairs
    }
    names = {image_of(loaded.suite, *pair) for pair in pairs}
    names |= {grader_image_of(loaded.suite, *pair) for pair in pairs}
    if any(isinstance(s, GitSource) for s in sources.values()) or any(t.workspace.written for t in tasks):
        names.add(GRADER)
    if any(isinstance(check, FileCheck | GitHeadCheck) for task in tasks for check in task.verify.checks):
        names.add(GRADER)
    images, faults = _images(engine, names | {KEEPER}, watcher)
    if KEEPER in faults:
        raise ImageError(f"{KEEPER}: {faults[KEEPER]}")
    plan = make_plan(
        PlanInputs(
            run_id=recorded.run_id if recorded else new_run_id(),
            created_at=recorded.created_at if recorded else utc_now(),
            suite=loaded.suite,
            suite_sha256=loaded.sha256,
            file_name=loaded.file.name,
            policies=loaded.policies,
            fixture_recipes=recipes,
            extensions={pair: source.files.digest for pair, source in extensions.items()},
            images={name: _planned(name, images.get(name), faults.get(name)) for name in names},
            provenance=provenance(engine),
            models=models.planned,
            selection=selection,
            model=request.model,
            judge=request.judge,
            repeats=request.repeats,
            hermetic=settings.hermetic,
            allow_network=allow_network,
            case=case.run if case else None,
        )
    )
    if recovery:
        _require_same(recovery.run.plan, plan, recovery.remaining)
        plan = recovery.run.plan
    for name, policy in plan.policies.items():
        engine.require_runtime(policy.runtime)
        if policy.network == "allowlist" and not request.allow_network:
            raise UsageError(
                f"policy {name}: lets candidates reach {', '.join(policy.allow)}; allow it with --allow-network"
            )
    facts = engine.facts
    wanted = request.jobs or (case and case.jobs) or settings.jobs
    jobs = wanted or default_jobs(facts.cpus, facts.memory_bytes, plan.policies.values())
    jobs = min(jobs, len(plan.trials))
    check_memory(jobs, plan.policies, facts.memory_bytes)
    return Prepared(
        plan,
        loaded.directory,
        sources,
        extensions,
        images,
        images[KEEPER],
        jobs,
        models.sources(None if recovery else request.record),
        case.seeds if case else {},
    )


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


def _images(
    engine: Engine, names: Iterable[str], watcher: Watcher
) -> tuple[dict[str, ImageInfo], dict[str, str]]:
    """Have every image; return those that can be had, and for the others why not."""

    def have(name: str) -> ImageInfo | str:
        try:
            return ensure(engine, name, note=watcher.note)
        except ImageError as error:
            return str(error)

    wanted = sorted(names)
    pool = ThreadPoolExecutor(BUILDS_AT_ONCE)
    building = {name: pool.submit(have, name) for name in wanted}
    try:
        answers = {name: future.result() for name, future in building.items()}
    except BaseException:
        # The engine drops a build whose client hangs up.
        stop_bootstrap()
        engine.close()
        wait(building.values(), STOP_S)
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    for answer in answers.values():
        if isinstance(answer, str):
            watcher.note(f"warning: {answer}")
    return (
        {name: answer for name, answer in answers.items() if isinstance(answer, ImageInfo)},
        {name: answer for name, answer in answers.items() if isinstance(answer, str)},
    )


def _planned(name: str, image: ImageInfo | None, fault: str | None) -> PlannedImage:
    if image is None:
        return PlannedImage(name=name, fault=fault)
    return PlannedImage(name=name, image_id=image.image_id, recipe=image.recipe, packages=image.packages)
