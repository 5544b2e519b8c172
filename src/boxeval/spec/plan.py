"""The plan: everything that will run, fixed before the first container starts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from boxeval.spec.base import Natural, Positive, Record, Sha256
from boxeval.spec.case_run import CaseRun
from boxeval.spec.chaos import Fault
from boxeval.spec.models import Budget, PlannedModel
from boxeval.spec.policy import Policy
from boxeval.spec.suite import Assertion, Runner, StepVerify, Verify
from boxeval.spec.workspace import Workspace


class PlannedImage(Record):
    """An image by name, and what it was when the plan was made.

    `image_id` None: it could not be had, `fault` says why.
    """

    name: str
    image_id: str | None = None
    recipe: Sha256 | None = Field(None, description="Of boxeval's own images.")
    packages: Sha256 | None = Field(
        None, description="Digest over the resolved package list of boxeval's own images."
    )
    fault: str | None = None


class PlannedStep(Record):
    """A step of a task with everything resolved. `writes` None: the whole workspace."""

    id: str
    runner: Runner
    writes: tuple[str, ...] | None = None
    timeout_ms: Positive
    verify: StepVerify | None = None
    verify_timeout_ms: Positive
    faults: tuple[Fault, ...] = ()


class PlannedTask(Record):
    """A task with every default and file reference resolved, for one target."""

    task: str
    target: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    expect: Literal["passed", "failed"] | None = None
    expect_class: str | None = None
    exclusive: bool = False
    dry: bool = Field(False, description="Everything is prepared, and nothing is started.")
    image: str
    grader_image: str
    policy: str
    workspace: Workspace
    fixture_recipe: Sha256 = Field(description="Digest over the fixture's sources, set-up commands included.")
    runner: Runner
    steps: tuple[PlannedStep, ...] = Field((), description="If there are any, `runner` takes no turn itself.")
    writes: tuple[str, ...] | None = Field(None, description="Of the single turn; None: the whole workspace.")
    protect: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    model: PlannedModel | None = None
    judge: PlannedModel | None = Field(None, description="Asked by graders alone.")
    thinking: str | None = Field(None, description="Effort asked of the model.")
    env: dict[str, str] = Field(default_factory=dict)
    verify: Verify = Field(description="Without the graders that its extension replaces.")
    extension_sources: Sha256 | None = Field(None, description="Over the files of its extension.")
    required_evidence: tuple[str, ...] = ()
    collect: tuple[str, ...] = ()
    k: Positive | None = Field(None, description="Of pass@k; None: as many as there are trials.")
    agent_timeout_ms: Positive
    grader_timeout_ms: Positive
    identity: Sha256


class PlannedTrial(Record):
    """One trial to be. `key` is `task[target]#repeat`."""

    trial_id: str
    task: str
    target: str
    repeat: Positive

    @property
    def key(self) -> str:
        """The name that reports use."""
        return f"{self.task}[{self.target}]#{self.repeat}"


class SuiteRef(Record):
    """The suite by name and by the digest of its bytes."""

    id: str
    title: str
    visibility: str
    sha256: Sha256
    file: str = Field(description="The file's name, without folders.")


class Provenance(Record):
    """What made the run: versions only, no host names or paths."""

    boxeval: str
    build: Sha256 | None = Field(None, description="Over boxeval's own files.")
    python: str
    engine: str
    engine_version: str
    runtime: str
    storage_driver: str
    cgroup_version: str
    kernel: str
    architecture: str
    storage_path: Literal["overlay-volumes"] = "overlay-volumes"


class Plan(Record):
    """Every trial, in the order repeat, target, task (S17)."""

    format: Literal["boxeval.plan/1"] = "boxeval.plan/1"
    run_id: str
    created_at: str
    suite: SuiteRef
    tasks: tuple[PlannedTask, ...]
    trials: tuple[PlannedTrial, ...]
    policies: dict[str, Policy]
    images: dict[str, PlannedImage]
    thresholds: tuple[Assertion, ...] = ()
    max_cost_usd: float | None = None
    budget: Budget = Budget()
    selection: dict[str, str] = Field(
        default_factory=dict, description="Filters that were on, e.g. task, tag, target."
    )
    left_out: Natural = Field(0, description="Trials of the suite that the selection left out.")
    hermetic: bool = True
    allow_network: bool = Field(False, description="Boxes that fetched a git workspace had a network.")
    case: CaseRun | None = Field(None, description="Set for a run of case files.")
    provenance: Provenance

    def task_of(self, trial: PlannedTrial) -> PlannedTask:
        """The planned task of a trial."""
        return next(t for t in self.tasks if t.task == trial.task and t.target == trial.target)
