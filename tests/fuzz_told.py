"""What agents, graders, judges and their programs tell, as functions of bytes: see `fuzz_targets`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

from boxeval.agents import (
    aider_history,
    claude_stream,
    clio_stream,
    codex_server_stream,
    codex_stream,
    gemini_stream,
    opencode_stream,
    trajectory,
)
from boxeval.agents.stream import Output
from boxeval.graders.child.documents import document
from boxeval.graders.extension_exchange import ProtocolFault, make_request, read_answer
from boxeval.graders.files import answer_of as answer_of_program
from boxeval.receipts.canonical import canonical
from boxeval.rules import json_values
from boxeval.rules.journal import read_journal
from boxeval.rules.judging import read_outcomes
from boxeval.rules.linear_pattern import PatternError, linear_pattern
from boxeval.spec.extension import Method
from extension_samples import ASKED
from extension_samples import box as extension_box

STREAM_READERS = (
    aider_history.read,
    claude_stream.read,
    clio_stream.read,
    clio_stream.read_context,
    codex_server_stream.read,
    codex_stream.read,
    gemini_stream.read,
    opencode_stream.read,
    trajectory.read,
)
REQUEST = make_request("boxeval", Method.DESCRIBE, ASKED).model_copy(update={"id": "0" * 16})


def answers(data: bytes) -> None:
    """What graders read as JSON, and the pointer into it."""
    text, _, pointer = data.decode("utf-8", "replace").rpartition("\x1f")
    with contextlib.suppress(json_values.NotJson):
        tree = json_values.parse(text)
        json.dumps(tree, allow_nan=False)
        assert json_values.equal(tree, tree)
        json_values.shown(tree)
        if json_values.pointer_fault(pointer) is None:
            with contextlib.suppress(json_values.NoValue):
                json_values.resolve(tree, pointer)


def documents(data: bytes) -> None:
    """What graders take for a message's document, and what their programs tell."""
    for exact in (False, True):
        with contextlib.suppress(json_values.NotJson):
            json.dumps(document(data.decode("utf-8", "replace"), exact), allow_nan=False)
    answer_of_program(data)


def agent_streams(data: bytes) -> None:
    for read_stream in STREAM_READERS:
        found = read_stream(Output(data, len(data), 0))
        for text in (found.message, found.session, found.reason, *(call.name for call in found.calls)):
            (text or "").encode()
        if found.usage is not None:
            canonical(found.usage)


def extension_answers(data: bytes) -> None:
    with contextlib.suppress(ProtocolFault):
        canonical(read_answer(REQUEST, extension_box(len(data)), data))


def judge_answers(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        found = read_outcomes(data.decode("utf-8", "replace"), {"one", "two"})
        assert set(found) == {"one", "two"}


def journal(data: bytes) -> None:
    read_journal(data)


def linear_patterns(data: bytes) -> None:
    pattern, _, text = data.decode("utf-8", "replace").partition("\x1f")
    with contextlib.suppress(PatternError):
        linear_pattern(pattern).search(text)


TOLD: dict[str, Callable[[bytes], None]] = {
    "answers": answers,
    "documents": documents,
    "agent-streams": agent_streams,
    "extension-answers": extension_answers,
    "judge-answers": judge_answers,
    "journal": journal,
    "linear-patterns": linear_patterns,
}
