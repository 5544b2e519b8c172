"""Counting on the wire: the same numbers however the bytes are cut into pieces, and honest ones if they are cut off."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxeval.gateway.endpoints import GEMINI, WIRES
from boxeval.gateway.interface import Answer, Asked, Call, Usage, Wire
from boxeval.gateway.meter import Meter
from boxeval.gateway.redact import REDACTED, Redactor
from boxeval.gateway.sse import event

ANSWERS = st.builds(
    Answer,
    number=st.integers(1, 9),
    text=st.none() | st.text(max_size=30),
    calls=st.lists(
        st.builds(Call, st.uuids().map(str), st.just("bash"), st.just({"command": "é\n\ndata: x"})),
        max_size=3,
    ).map(tuple),
    is_refusal=st.booleans(),
    usage=st.builds(
        lambda fresh, read, write, output: Usage(fresh + read + write, output, read, write),
        *[st.integers(0, 10_000)] * 4,
    ),
)
ASKED = Asked("m", True, include_usage=True)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(places)]


@pytest.mark.contract("S21", "S23")
@pytest.mark.parametrize("wire", [*WIRES.values(), GEMINI], ids=lambda wire: wire.name)
@given(answer=ANSWERS, cuts=st.lists(st.integers(0, 5000), max_size=12), is_stream=st.booleans())
def test_an_answer_is_counted_alike_in_whatever_pieces_it_comes(
    wire: Wire, answer: Answer, cuts: list[int], is_stream: bool
) -> None:
    body = json.dumps(wire.body(answer, ASKED, 0)).encode()
    data = b"".join(wire.events(answer, ASKED, 0)) if is_stream else body
    meter = Meter(wire, is_stream)
    for piece in pieces(data, cuts):
        meter.feed(piece)
    meter.end()
    heard = meter.heard
    expected = answer.usage
    if wire.name != "messages":  # OpenAI's protocols have no field for it in what we write
        expected = Usage(expected.input, expected.output, expected.cache_read)
    assert heard.usage == expected
    assert heard.is_whole
    if answer.text or not answer.is_refusal:
        assert heard.is_refusal is answer.is_refusal
    assert heard.calls == {call.id for call in answer.calls}
    assert (heard.snapshots, heard.usages_told) == (0, 1)


@pytest.mark.contract("S21")
@pytest.mark.parametrize("wire", [*WIRES.values(), GEMINI], ids=lambda wire: wire.name)
def test_a_stream_that_is_cut_is_not_whole(wire: Wire) -> None:
    data = b"".join(wire.events(Answer(1, "Done.", (), Usage(70, 30)), ASKED, 0))
    for end in range(len(data) - 2):
        meter = Meter(wire, True)
        meter.feed(data[:end])
        assert not meter.heard.is_whole


def heard_text(wire: Wire, *deltas: str) -> int:
    meter = Meter(wire, True)
    for delta in deltas:
        meter.feed(event({"choices": [{"delta": {"content": delta}}]}))
    return meter.heard.snapshots


@pytest.mark.contract("S28")
def test_a_piece_that_repeats_all_before_it_is_a_snapshot() -> None:
    wire = WIRES["/chat/completions"]
    text = "the quick brown fox jumps"
    assert heard_text(wire, text, " over", " the dog") == 0
    assert heard_text(wire, text, f"{text} over", f"{text} over the dog") == 2
    assert heard_text(wire, "ha", "ha", "haha") == 0  # too short to tell


@pytest.mark.contract("S28")
def test_usage_that_comes_with_every_chunk_is_told_more_than_once() -> None:
    meter = Meter(WIRES["/chat/completions"], True)
    for total in (1, 2, 3):
        meter.feed(event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": total}}))
    assert meter.heard.usages_told == 3
    assert meter.heard.usage == Usage(5, 3)


@pytest.mark.parametrize("wire", [*WIRES.values(), GEMINI], ids=lambda wire: wire.name)
@given(data=st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["type", "usage", "choices", "delta", "item", "response", "message", "content", "id", "object",
             "input_tokens", "output_tokens", "tool_calls", "output", "content_block"]
        ),
        inner,
        max_size=3,
    )
    | inner.map(lambda value: {"type": "response.completed", "response": value})
    | inner.map(lambda value: {"type": "message_start", "message": value}),
    max_leaves=8,
))  # fmt: skip
def test_whatever_a_provider_sends_is_read_without_a_fault(wire: Wire, data: object) -> None:
    meter = Meter(wire, True)
    meter.feed(event(data))
    usage = meter.heard.usage
    assert usage is None or min(usage.input, usage.output) >= 0


@given(
    secret=st.text("ab-", min_size=6, max_size=9),
    text=st.text("ab-", max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=9),
)
def test_no_secret_gets_through_a_stream_however_it_is_cut(secret: str, text: str, cuts: list[int]) -> None:
    redact = Redactor([secret])
    whole = f"{text}{secret}{text}".encode()
    shown = b"".join(redact.stream(pieces(whole, cuts)))
    assert shown == redact(whole)
    assert secret.encode() not in shown.replace(REDACTED, b"|")


def test_the_longer_of_two_secrets_goes_first_and_json_writes_them_otherwise() -> None:
    redact = Redactor(["key-one", "key-one-and-more", 'with"quote', "tiny"])
    assert redact(b"key-one-and-more key-one tiny") == b"[redacted] [redacted] tiny"
    assert redact(json.dumps({"k": 'with"quote'}).encode()) == b'{"k": "[redacted]"}'
    assert list(redact.stream([b"nothing is held", b" here"])) == [b"nothing is held", b" here"]
