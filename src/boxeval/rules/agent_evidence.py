"""Which evidence an agent of others left, by the names of `requiredEvidence`, and what its lack makes of grading.

`sevro.codex.events` is read as `boxeval.host.codex.events`. Names that were retired are never complete: nothing that is
there today is what they once meant (G44).
"""

from __future__ import annotations

import re

from boxeval.rules.rows import execution_of, void
from boxeval.spec.agent_record import AgentRecord, Completeness, HostArtifact, RetainedTree
from boxeval.spec.outcome import FailureClass, Grading, Outcome
from boxeval.spec.plan import PlannedTask
from boxeval.spec.trial import Observations

RETIRED = ("skill-reads", "initial-skill-reads", "follow-up-skill-reads")
_NAME = re.compile(r"(?:boxeval\.host|boxeval|sevro\.host|sevro)\.(?:(?P<host>[a-z-]+)\.)?(?P<kind>[a-z-]+)")


def has_host_evidence(name: str, seen: Observations) -> bool:
    """Whether the trial has this evidence, complete and of the agent that the name names."""
    found, record = _NAME.fullmatch(name), seen.agent_record
    if found is None or record is None or not record.turns or found["kind"] in RETIRED:
        return False
    if found["host"] not in (None, record.host.rpartition(".")[2]):
        return False
    return _complete(found["kind"], record)


def _complete(kind: str, record: AgentRecord) -> bool:
    if kind in ("sessions", "transcripts"):
        return record.transcripts is not None and record.transcripts.status is Completeness.COMPLETE
    if kind == "usage":
        return all(turn.usage is not None for turn in record.turns)
    if kind == "skill-activations":
        return record.skills is not None and record.skills.status is Completeness.COMPLETE
    if kind == "native-calls":
        return record.native is not None and record.native.status is Completeness.COMPLETE
    if kind == "continuation":
        native = record.native
        return native is not None and native.status is Completeness.COMPLETE and bool(native.boundaries)
    if kind == "explicit-invocation":
        told = [turn.invocation for turn in record.turns if turn.invocation]
        return bool(told) and all(one.status is Completeness.COMPLETE for one in told)
    every = [[artifact for artifact in turn.artifacts if _ends(artifact, kind)] for turn in record.turns]
    return all(every) and all(artifact.status is Completeness.COMPLETE for each in every for artifact in each)


def _ends(artifact: HostArtifact, kind: str) -> bool:
    return artifact.id.rpartition(".")[2] == kind


def unreadable_artifact(task: PlannedTask, seen: Observations) -> Outcome | None:
    """A declared subtree of the home that is missing or not all there makes grading an error (G37).

    A candidate can bring that about, and gains nothing: without it the trial is no pass.
    """
    wanted = task.runner.host.artifacts if task.runner.host else {}
    trees: dict[str, RetainedTree] = (
        {tree.id: tree for tree in seen.agent_record.artifacts} if seen.agent_record else {}
    )
    for name in wanted:
        tree = trees.get(name)
        if tree is None or tree.status is not Completeness.COMPLETE:
            reason = tree.reason if tree else "nothing was read of it"
            detail = f"the candidate's artifact {name}: {reason}"
            return void(FailureClass.GRADER_ERROR, detail, execution_of(task, seen), Grading.ERROR)
    return None
