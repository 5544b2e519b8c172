"""What an agent left is evidence only if complete, and under its own name (G44); the probe has its verdict (G56)."""

from __future__ import annotations

from typing import Any

import pytest

import run_samples as samples
from boxeval.rules.agent_evidence import has_host_evidence
from boxeval.rules.metrics import measure
from boxeval.rules.verdict import decide
from boxeval.spec.agent_record import (
    AgentRecord,
    ClaimedUsage,
    Completeness,
    HostArtifact,
    NativeSession,
    Preflight,
    RetainedTree,
    SkillActivations,
    TurnEnd,
    TurnRecord,
)
from boxeval.spec.host_options import HostOptions
from boxeval.spec.outcome import Outcome
from boxeval.spec.suite import Runner, RunnerKind

TASK = samples.task(
    runner=Runner(
        kind=RunnerKind.AGENT, agent="codex", prompt="x", host=HostOptions(artifacts={"notes": "n"})
    )
)
EVENTS = HostArtifact(id="boxeval.host.codex.events", status=Completeness.COMPLETE, sha256="a" * 64)
NOTES = RetainedTree(id="notes", status=Completeness.COMPLETE)


def record(*, tree: RetainedTree | None = NOTES, **turn: Any) -> AgentRecord:
    given: dict[str, Any] = {"turn": "agent", "end": TurnEnd.COMPLETED, "artifacts": (EVENTS,), **turn}
    trees = (tree,) if tree else ()
    return AgentRecord(host="boxeval.host.codex", turns=(TurnRecord(**given),), artifacts=trees)


def outcome(said: AgentRecord) -> Outcome:
    observed = samples.seen(agent_record=said)
    return decide(TASK, observed, measure(TASK, observed, 1))


@pytest.mark.parametrize("name", ["boxeval.host.codex.events", "sevro.codex.events", "boxeval.host.events"])
@pytest.mark.contract("G42", "G55")
def test_the_stream_is_evidence_by_any_of_its_names(name: str) -> None:
    assert has_host_evidence(name, samples.seen(agent_record=record()))
    partial = EVENTS.model_copy(update={"status": Completeness.PARTIAL})
    assert not has_host_evidence(name, samples.seen(agent_record=record(artifacts=(partial,))))
    assert not has_host_evidence(name, samples.seen(agent_record=record(artifacts=())))
    assert not has_host_evidence(name, samples.seen())
    assert not has_host_evidence("boxeval.host.claude.events", samples.seen(agent_record=record()))


@pytest.mark.parametrize("kind", ["skill-reads", "initial-skill-reads", "follow-up-skill-reads"])
@pytest.mark.contract("G44")
def test_retired_names_are_missing_whatever_is_there(kind: str) -> None:
    artifact = EVENTS.model_copy(update={"id": f"boxeval.host.codex.{kind}"})
    skills = SkillActivations(status=Completeness.COMPLETE)
    observed = samples.seen(agent_record=record(artifacts=(artifact,)).model_copy(update={"skills": skills}))
    assert not has_host_evidence(f"sevro.codex.{kind}", observed)
    assert has_host_evidence("boxeval.host.skill-activations", observed)


def test_usage_is_evidence_if_every_turn_has_it() -> None:
    usage = ClaimedUsage(input=1, output=1)
    assert has_host_evidence("boxeval.host.usage", samples.seen(agent_record=record(usage=usage)))
    assert not has_host_evidence("boxeval.host.usage", samples.seen(agent_record=record()))


@pytest.mark.parametrize(
    ("end", "words"), [(TurnEnd.ERROR, "line 3 starts a second thread"), (TurnEnd.INCOMPLETE, "no turn")]
)
@pytest.mark.contract("G38")
def test_a_turn_that_its_stream_does_not_complete_fails_and_is_not_void(end: TurnEnd, words: str) -> None:
    found = outcome(record(end=end, reason=words))
    assert (found.failure_class, found.weight, found.task) == ("runner_failed", "scored", "failed")
    assert words in (found.detail or "")


@pytest.mark.parametrize(
    ("preflight", "failure"),
    [
        (Preflight(breaches=("the environment has GH_TOKEN",)), "isolation_failed"),
        (Preflight(broken="the agent does not say its version"), "command_error"),
    ],
)
@pytest.mark.contract("G56")
def test_a_probe_that_finds_something_makes_the_trial_void(preflight: Preflight, failure: str) -> None:
    found = outcome(record(preflight=preflight, end=TurnEnd.INCOMPLETE))
    assert (found.failure_class, found.weight) == (failure, "void")
    assert outcome(record(preflight=Preflight(version="1"))).task == "passed"


@pytest.mark.parametrize(
    "tree",
    [
        None,
        RetainedTree(id="notes", status=Completeness.UNAVAILABLE, reason="there is nothing at its path"),
        RetainedTree(
            id="notes", status=Completeness.PARTIAL, reason="1 links or special files were left out"
        ),
    ],
)
@pytest.mark.contract("G37")
def test_a_declared_artifact_that_is_missing_or_unsafe_is_a_grading_error(tree: RetainedTree | None) -> None:
    found = outcome(record(tree=tree))
    assert (found.failure_class, found.grading, found.weight) == ("grader_error", "error", "void")
    assert outcome(record()).task == "passed"
    # A candidate can bring that about, so nothing that has failed becomes void by it.
    verify = {"commands": ("true",), "assertions": (samples.wants("latency.wallMs", "lt", 0),)}
    seen = samples.seen(agent_record=record(tree=tree))
    failed = samples.trial(samples.task(runner=TASK.runner, verify=verify), seen).outcome
    assert (failed.failure_class, failed.weight) == ("assertion_failed", "scored")


@pytest.mark.contract("G47")
def test_a_continuation_is_evidence_once_there_was_one() -> None:
    for status, boundaries, has in (
        ("complete", (3,), True),
        ("complete", (), False),
        ("partial", (3,), False),
    ):
        native = NativeSession(status=Completeness(status), boundaries=boundaries)
        seen = samples.seen(agent_record=record().model_copy(update={"native": native}))
        assert has_host_evidence("sevro.codex.continuation", seen) is has
