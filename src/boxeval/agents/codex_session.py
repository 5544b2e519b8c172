"""Codex's own session files: direct control calls, code-mode submissions, spawned children (G45-G47, G77). Pure.

Only names and ordinals are taken, never an argument, a prompt or an output. The files are the candidate's to write: one
that does not fit is told as partial or unavailable, and the absence of a call in it proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from boxeval.agents.stream import StreamFault, natural, parse, word
from boxeval.spec.agent_record import CALLS, ChildRollout, Completeness, ExecCall, NativeCall, NativeSession

CONTROLS = frozenset(
    {
        *("get_goal", "create_goal", "update_goal"),
        *(
            "spawn_agent",
            "send_input",
            "send_message",
            "wait_agent",
            "resume_agent",
            "close_agent",
            "list_agents",
        ),
    }
)
CODE_MODE = "exec"
CHILDREN = 8


@dataclass(slots=True)
class _Session:
    thread: str | None = None
    ordinal: int = -1
    calls: list[NativeCall] = field(default_factory=list)
    submissions: list[ExecCall] = field(default_factory=list)
    spawns: dict[str, None] = field(default_factory=dict)
    """Call ids of spawn requests."""
    accepted: list[str] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    """The ordinal at which each turn begins."""
    last_words: str | None = None
    returns: list[bool] = field(default_factory=list)
    fault: str | None = None


def read(files: Mapping[str, bytes], thread: str | None) -> NativeSession:
    """What the session of `thread` tells. `files` are all that were retained, by path."""
    if thread is None:
        return NativeSession(status=Completeness.UNAVAILABLE, reason="the stream names no thread")
    sessions = [_read(data) for path, data in sorted(files.items()) if path.endswith(".jsonl")]
    own = [session for session in sessions if session.thread == thread]
    if len(own) != 1:
        reason = (
            "there is no session file of the thread" if not own else "several session files are of the thread"
        )
        return NativeSession(status=Completeness.UNAVAILABLE, reason=reason)
    (root,) = own
    children = tuple(_child(child, sessions) for child in root.accepted[:CHILDREN])
    longest = max(len(root.calls), len(root.submissions))
    return NativeSession(
        status=Completeness.PARTIAL if root.fault else Completeness.COMPLETE,
        reason=root.fault,
        calls=tuple(root.calls[:CALLS]),
        exec_calls=tuple(root.submissions[:CALLS]),
        children=children,
        truncated=longest > CALLS or len(root.accepted) > CHILDREN,
        boundaries=tuple(max(ordinal - 1, 0) for ordinal in root.turns[1:]),
    )


def _child(thread: str, sessions: list[_Session]) -> ChildRollout:
    found = [session for session in sessions if session.thread == thread]
    status: Literal["available", "unavailable", "ambiguous", "partial"] = "available"
    if len(found) != 1:
        status = "ambiguous" if found else "unavailable"
        return ChildRollout(status=status, thread=thread)
    if found[0].fault:
        status = "partial"
    return ChildRollout(status=status, thread=thread, returned=found[0].returns == [True])


def _read(data: bytes) -> _Session:
    session = _Session()
    try:
        for entry in _entries(data):
            _take(session, entry)
    except StreamFault as fault:
        session.fault = str(fault)
    return session


def _entries(data: bytes) -> Iterator[dict[str, Any]]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise StreamFault("the session file is not UTF-8") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            entry = parse(line, f"line {number} of the session file")
            if not isinstance(entry, dict):
                raise StreamFault(f"line {number} of the session file is not a JSON object")
            yield entry


def _take(session: _Session, entry: dict[str, Any]) -> None:
    ordinal, payload = natural(entry.get("ordinal")), entry.get("payload")
    if ordinal is None or ordinal <= session.ordinal or not isinstance(payload, dict):
        raise StreamFault("the session file's ordinals do not grow")
    session.ordinal = ordinal
    if entry.get("type") == "session_meta":
        if session.thread is not None:
            raise StreamFault("the session file begins twice")
        session.thread = word(payload.get("id"))
    elif entry.get("type") == "event_msg" and payload.get("type") == "task_started":
        session.turns.append(ordinal)
    elif entry.get("type") == "event_msg" and payload.get("type") == "turn_aborted" and session.turns:
        session.turns.pop()  # Codex begins one by itself for a goal, and ends it with the program
    elif entry.get("type") == "event_msg" and payload.get("type") == "task_complete":
        last = payload.get("last_agent_message")
        session.returns.append(bool(session.last_words) and last == session.last_words)
    elif entry.get("type") == "response_item":
        _take_item(session, ordinal, payload)


def _take_item(session: _Session, ordinal: int, item: dict[str, Any]) -> None:
    kind, name, call_id = item.get("type"), item.get("name"), item.get("call_id")
    if kind == "function_call" and isinstance(name, str) and name in CONTROLS:
        namespace = item.get("namespace")
        space = word(namespace) if isinstance(namespace, str) else None
        session.calls.append(NativeCall(ordinal=ordinal, name=name, namespace=space))
        if name == "spawn_agent" and isinstance(call_id, str):
            session.spawns[call_id] = None
    elif kind == "custom_tool_call" and name == CODE_MODE:
        told = word(call_id) if isinstance(call_id, str) else None
        session.submissions.append(ExecCall(ordinal=ordinal, id=told))
    elif kind == "function_call_output" and isinstance(call_id, str) and call_id in session.spawns:
        child = _spawned(item.get("output"))
        if child is not None:
            session.accepted.append(child)
    elif kind == "message" and item.get("role") == "assistant":
        blocks = item.get("content")
        texts = [b.get("text") for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []
        session.last_words = "".join(text for text in texts if isinstance(text, str)) or None


def _spawned(output: object) -> str | None:
    """The thread that an accepted spawn names."""
    try:
        told = json.loads(output) if isinstance(output, str) else output
    except (ValueError, RecursionError):
        return None
    child = told.get("agent_id") if isinstance(told, dict) else None
    return word(child) if isinstance(child, str) and child else None
