"""What an extension is told is bounded, so that no candidate can make the request one that cannot be sent."""

from __future__ import annotations

from typing import Any

import pytest

import run_samples as samples
from boxeval.graders.extension_evidence import describe_params, evaluate_params, name_in, prepare_params
from boxeval.graders.extension_exchange import encode, make_request
from boxeval.graders.extension_hosts import host_streams
from boxeval.spec.agent_record import (
    AgentRecord,
    ClaimedUsage,
    Completeness,
    ExecCall,
    HostArtifact,
    NativeCall,
    NativeSession,
    SkillActivations,
    TurnEnd,
    TurnRecord,
)
from boxeval.spec.extension import EvaluateParams, Method
from boxeval.spec.extension_use import ExtensionUse
from boxeval.spec.graded import EvidencePart, FinalMessage, MessageStatus
from boxeval.spec.suite import Runner
from boxeval.spec.trial import Collected, Observations
from boxeval.trial.extension import host_capabilities

USE = ExtensionUse(command=("x",))
TASK = samples.task()


def told(seen: Observations, message: bytes | None = None) -> EvaluateParams:
    params = evaluate_params(TASK, USE, seen, {}, message, {})
    encode(make_request("boxeval", Method.EVALUATE, params))
    return params


@pytest.mark.contract("G64")
def test_long_names_and_a_message_of_control_characters_are_told_in_part() -> None:
    changes = tuple(samples.change("é" * 1000 + f"/{n:04}") for n in range(4096))
    message = b"\x01" * (1024 * 1024)
    complete = FinalMessage(status=MessageStatus.COMPLETE, size_bytes=len(message), sha256=samples.EMPTY)
    params = told(samples.seen(collected=Collected(changes=changes), message=complete), message)
    said, changed, _ = params.observations
    assert (said.completeness, changed.completeness) == ("partial", "partial")
    assert changed.data["count"] == 4096
    assert 0 < len(changed.data["changes"]) < 4096  # type: ignore[arg-type]


def test_evidence_with_a_long_name_can_be_told() -> None:
    part = EvidencePart(name="docs/" + "n" * 200 + ".md", sha256=samples.EMPTY)
    seen = samples.seen(checks=(samples.checked(evidence=(part,)),))
    (*_, reference) = told(seen).builtin_checks
    assert reference.evidence_refs == (part.name[-128:],)


HOST = "boxeval.host.codex"
STREAM = HostArtifact(id=f"{HOST}.events", status=Completeness.COMPLETE, sha256="a" * 64, size_bytes=7)
TURN = TurnRecord(
    turn="prompt", end=TurnEnd.COMPLETED, usage=ClaimedUsage(input=2, output=1), artifacts=(STREAM,)
)


def native(calls: int, **more: Any) -> NativeSession:
    made = tuple(NativeCall(ordinal=n, name="get_goal", namespace="\\" * 256) for n in range(calls))
    made_ids = tuple(ExecCall(ordinal=n, id="\\" * 256) for n in range(calls))
    return NativeSession(status=Completeness.COMPLETE, calls=made, exec_calls=made_ids, **more)


@pytest.mark.contract("G42", "G45", "G47", "G66")
def test_what_an_agent_left_is_told_by_its_host() -> None:
    record = AgentRecord(
        host=HOST,
        turns=(TURN, TURN.model_copy(update={"usage": None})),
        native=native(1, boundaries=(3,)),
        skills=SkillActivations(status=Completeness.UNAVAILABLE, reason="no log"),
    )
    told_of = {one.id: one for one in told(samples.seen(agent_record=record)).observations}
    assert told_of[f"{HOST}.usage"].completeness == "partial"
    assert told_of[f"{HOST}.native-calls"].completeness == "complete"
    assert told_of[f"{HOST}.native-calls"].data["calls"][0]["name"] == "get_goal"  # type: ignore[index,call-overload]
    assert told_of[f"{HOST}.continuation"].data == {"boundaries": [3]}
    skills = told_of["boxeval.host.skill-activations"]
    assert (skills.completeness, skills.data) == ("unavailable", {"activations": [], "reason": "no log"})
    assert {one.source for name, one in told_of.items() if "host" in name} == {HOST}
    assert list(host_streams(record)) == [
        (f"{HOST}.events", "a" * 64, 7),
        (f"{HOST}.events.2", "a" * 64, 7),
    ]
    assert name_in("sevro", f"{HOST}.native-calls") == "sevro.codex.native-calls"
    assert name_in("sevro", f"{HOST}.events.2") == "sevro.codex.events.2"
    assert name_in("sevro", "boxeval.host.skill-activations") == "sevro.host.skill-activations"


@pytest.mark.contract("G64")
def test_many_calls_are_told_in_part() -> None:
    message = b"x" * 1024 * 1024
    complete = FinalMessage(status=MessageStatus.COMPLETE, size_bytes=len(message), sha256=samples.EMPTY)
    changes = tuple(samples.change("é" * 1000 + f"/{n:04}") for n in range(4096))
    for calls, completeness in ((1024, "complete"), (1025, "partial")):
        record = AgentRecord(host=HOST, turns=(TURN,), native=native(calls))
        seen = samples.seen(agent_record=record, message=complete, collected=Collected(changes=changes))
        [found] = [one for one in told(seen, message).observations if one.id == f"{HOST}.native-calls"]
        assert (found.completeness, len(found.data["calls"])) == (completeness, 1024)  # type: ignore[arg-type]


@pytest.mark.contract("G66")
def test_a_host_that_goes_on_with_a_session_says_so() -> None:
    def offered(agent: str | None) -> set[str]:
        runner = Runner.model_validate({"kind": "agent", "agent": agent} if agent else {"kind": "scripted"})
        return set(describe_params("sevro", host_capabilities(runner)).host_capabilities)

    both = {"sevro.host.exec", "sevro.host.continuation"}
    assert offered("codex") == offered("claude") == offered(None) == both
    assert offered("aider") == {"sevro.host.exec"} == set(describe_params("sevro").host_capabilities)


def test_two_prompts_are_told_as_a_prompt_and_a_follow_up() -> None:
    runners = [Runner.model_validate({"kind": "scripted", "prompt": name}) for name in ("a", "b")]
    asked = [samples.planned_step("s").model_copy(update={"runner": runner}) for runner in runners]
    for steps, said in (
        ((), ("true", None)),
        (asked, ("a", "b")),
        ([*asked, asked[0]], ("a\nb\na", None)),
    ):
        case = prepare_params(samples.task(steps=tuple(steps)), USE).case
        assert (case.prompt, case.follow_up_prompt) == said
