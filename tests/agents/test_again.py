"""What is sealed of an agent's turn must follow from the stream that was kept (G42, G71): one change, one fault."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

import run_samples as samples
from boxeval.agents.again import record_fault
from boxeval.spec.agent_record import (
    AgentRecord,
    CallEnd,
    ClaimedCall,
    ClaimedUsage,
    Completeness,
    HostArtifact,
    NativeSession,
    RetainedFile,
    RetainedTree,
    TurnEnd,
    TurnRecord,
)
from boxeval.spec.graded import FinalMessage, MessageStatus
from boxeval.spec.suite import Runner, RunnerKind
from boxeval.spec.trial import Observations

TASK = samples.task(runner=Runner(kind=RunnerKind.AGENT, agent="codex", prompt="x"))
EVENTS: list[dict[str, Any]] = [
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "status": "completed"}},
    {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "done"}},
    {"type": "turn.completed", "usage": {"input_tokens": 20, "cached_input_tokens": 5, "output_tokens": 4}},
]
STREAM = "".join(f"{json.dumps(event)}\n" for event in EVENTS).encode()
SESSION = json.dumps({"ordinal": 0, "type": "session_meta", "payload": {"id": "t1"}}).encode() + b"\n"
BLOBS = {hashlib.sha256(data).hexdigest(): data for data in (STREAM, SESSION)}
KEPT, LOG = BLOBS
TURN = TurnRecord(
    turn="agent",
    end=TurnEnd.COMPLETED,
    session="t1",
    usage=ClaimedUsage(input=20, output=4, cache_read=5),
    calls=(ClaimedCall(ordinal=2, name="command_execution", id="i1", end=CallEnd.COMPLETED),),
    artifacts=(HostArtifact(id="boxeval.host.codex.events", status=Completeness.COMPLETE, sha256=KEPT),),
)
DONE = FinalMessage(status=MessageStatus.COMPLETE, size_bytes=4, sha256=hashlib.sha256(b"done").hexdigest())
SESSIONS = RetainedTree(
    id="boxeval.host.codex.sessions",
    status=Completeness.COMPLETE,
    files=(RetainedFile(path=".codex/sessions/r.jsonl", size_bytes=len(SESSION), sha256=LOG),),
)


def sealed(
    message: FinalMessage | None = DONE, record: dict[str, Any] | None = None, **turn: Any
) -> Observations:
    kept = TURN.model_copy(update=turn)
    told = AgentRecord(host="boxeval.host.codex", turns=(kept,)).model_copy(update=record or {})
    box = samples.box(samples.command(stdout=samples.capture(STREAM, KEPT)))
    return samples.seen(agent=box, grader=None, message=message, agent_record=told)


def fault(seen: Observations) -> str | None:
    return record_fault(TASK, seen, BLOBS.__getitem__)


@pytest.mark.contract("G42", "G71")
def test_a_record_that_follows_from_its_stream() -> None:
    assert fault(sealed()) is None
    assert fault(samples.seen()) is None


@pytest.mark.contract("G42", "G71")
@pytest.mark.parametrize(
    "changes",
    [
        {"end": TurnEnd.FAILED},
        {"session": "t2"},
        {"usage": ClaimedUsage(input=19, output=4, cache_read=5)},
        {"usage": None},
        {"calls": ()},
        {"reason": "because"},
        {"artifacts": ()},
        {"artifacts": (TURN.artifacts[0].model_copy(update={"sha256": LOG}),)},
    ],
)
def test_one_that_does_not(changes: dict[str, Any]) -> None:
    assert (fault(sealed(**changes)) or "").startswith("turn agent of the agent: ")


@pytest.mark.contract("G40", "G71")
def test_the_message_and_the_count_of_turns_follow_too() -> None:
    other = DONE.model_copy(update={"sha256": LOG})
    missing = FinalMessage(status=MessageStatus.MISSING, reason="none")
    for message in (other, missing, None):
        assert fault(sealed(message)) == "the final message does not follow from the agent's stream"
    for record in ({"turns": ()}, {"turns": (TURN, TURN)}, {"host": "boxeval.host.claude"}):
        assert fault(sealed(record=record)) == "the agent's record does not have its turns"


@pytest.mark.contract("G45", "G71")
def test_control_calls_follow_from_the_session_files() -> None:
    good = NativeSession(status=Completeness.COMPLETE)
    assert fault(sealed(record={"native": good})) == "the agent's control calls have no session file"
    for native, said in (
        (good, None),
        (None, "the agent's control calls do not follow from its session files"),
        (
            good.model_copy(update={"truncated": True}),
            "the agent's control calls do not follow from its session files",
        ),
    ):
        assert fault(sealed(record={"native": native, "transcripts": SESSIONS})) == said
