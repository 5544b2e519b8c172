"""Cassettes: recorded once through a provider, and given again to the same requests and to no others."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway_client import chat, messages, responses

from boxeval.errors import StorageError, UsageError
from boxeval.gateway.cassette import Cassette, Exchange, Recorder, read_cassette
from boxeval.gateway.endpoints import CHAT
from boxeval.gateway.interface import Asked, Question
from boxeval.gateway.keyring import Keyring, Secret
from boxeval.gateway.replay import EXPLAINED, ReplayedRelay, first_difference, without
from boxeval.gateway.server import Gateway, Route
from boxeval.gateway.sources import Sources
from boxeval.receipts.canonical import canonical
from boxeval.spec.models import PlannedUpstream
from provider import answers, provider

KEY = "sk-canary-0123456789"
NAME = "big-model"


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two questions over chat, one of them twice, and a stream over messages; the key was in one question."""
    path = tmp_path_factory.mktemp("tape") / "tape.jsonl"
    with provider(answers("one")) as playing:
        keyring = Keyring({"KEY": Secret(KEY, playing.url)}, {})
        keyring.get("KEY")
        sources = Sources(keyring, {}, Recorder(path, keyring.redactor()), keyring.redactor())
        with tempfile.TemporaryDirectory() as directory, Gateway(Path(directory) / "s", sources) as gateway:
            place = PlannedUpstream(base_url=playing.url, model=NAME, key="KEY")
            base = gateway.open_route(place).path
            chat(gateway.socket_path, base, model=NAME, messages=said("hi"), user="random-1")
            playing.act = answers("two")
            chat(gateway.socket_path, base, model=NAME, messages=said("hi"), user="random-2")
            chat(gateway.socket_path, base, model=NAME, messages=said(f"is {KEY} good?"))
            messages(gateway.socket_path, base, model=NAME, messages=said("stream"), stream=True)
        sources.close()
    return path


@contextmanager
def replayed(cassette: Cassette, ignore: tuple[str, ...] = ()) -> Iterator[tuple[Gateway, Route]]:
    sources = Sources(cassettes={cassette.sha256: cassette})
    planned = cassette.planned(ignore)
    assert planned.wires == ("chat", "messages")
    with tempfile.TemporaryDirectory() as directory, Gateway(Path(directory) / "s", sources) as gateway:
        yield gateway, gateway.open_route(planned)


def text(answered: Any) -> Any:
    return answered.json["choices"][0]["message"]["content"]


def test_a_cassette_is_private_and_holds_no_secret_and_no_header(tape: Path) -> None:
    assert stat.S_IMODE(tape.stat().st_mode) == 0o600
    content = tape.read_text()
    assert KEY not in content and "[redacted]" in content
    assert "uthorization" not in content
    head, *lines = map(json.loads, content.splitlines())
    assert head["format"] == "boxeval.cassette/1"
    assert [line["wire"] for line in lines] == ["chat", "chat", "chat", "messages"]


def test_the_same_requests_get_the_same_answers_in_order(tape: Path) -> None:
    with replayed(read_cassette(tape)) as (gateway, route):
        path = gateway.socket_path
        # A field that a client makes up for each request is not looked at.
        assert text(chat(path, route.path, model=NAME, messages=said("hi"), user="another")) == "one"
        assert text(chat(path, route.path, model=NAME, messages=said("hi"))) == "two"
        stream = messages(path, route.path, model=NAME, messages=said("stream"), stream=True)
        assert stream.headers["content-type"] == "text/event-stream"
        assert b"message_stop" in stream.body
        traffic = gateway.close_route(route.token).traffic
    assert (traffic.requests, traffic.input_tokens, traffic.cost_usd) == (3, 3000, 0)


def test_each_trial_begins_at_the_beginning(tape: Path) -> None:
    cassette = read_cassette(tape)
    for _ in "12":
        with replayed(cassette) as (gateway, route):
            assert text(chat(gateway.socket_path, route.path, model=NAME, messages=said("hi"))) == "one"


def test_another_request_is_an_error_that_shows_the_difference(tape: Path) -> None:
    with replayed(read_cassette(tape)) as (gateway, route):
        answered = chat(gateway.socket_path, route.path, model=NAME, messages=said("hello"))
        assert (answered.status, answered.code) == (400, "not_recorded")
        message = answered.json["error"]["message"]
        assert 'nearest is answer 1; /messages/0/content: recorded "hi", sent "hello"' in message
        other = responses(gateway.socket_path, route.path, model=NAME)
        assert "nothing was recorded over responses" in other.json["error"]["message"]
        for _ in "12":
            chat(gateway.socket_path, route.path, model=NAME, messages=said("hi"))
        again = chat(gateway.socket_path, route.path, model=NAME, messages=said("hi"))
        assert "recorded 2 times" in again.json["error"]["message"]
        traffic = gateway.close_route(route.token).traffic
    assert traffic.error is not None and "not_recorded" in traffic.error
    # A candidate chooses what it asks, so this excuses nothing.
    assert not traffic.failed_before_first_turn


def test_what_a_candidate_sends_cannot_spoil_the_receipt_nor_order_work(tape: Path) -> None:
    with replayed(read_cassette(tape)) as (gateway, route):
        told = [
            chat(gateway.socket_path, route.path, model=NAME, messages=said("\ud800")).json["error"][
                "message"
            ]
            for _ in range(EXPLAINED + 1)
        ]
        traffic = gateway.close_route(route.token).traffic
    canonical(traffic)
    assert ["nearest is" in message for message in told] == [True] * EXPLAINED + [False]


def test_what_the_suite_names_may_differ(tape: Path) -> None:
    with replayed(read_cassette(tape), ("/messages/0/content", "/temperature")) as (gateway, route):
        sent = chat(gateway.socket_path, route.path, model=NAME, messages=said("hello"), temperature=0.3)
        assert text(sent) == "one"


def test_pointers_and_differences() -> None:
    data = {"a": [{"b/c": 1, "d~": 2}, 3], "e": 4}
    assert without(data, ["/a/0/b~1c", "/a/0/d~0", "/e", "/nowhere/else", "/a/7"]) == {"a": [{}, 3]}
    assert without(data, ["/a/1"]) == {"a": [{"b/c": 1, "d~": 2}, None], "e": 4}
    assert data["e"] == 4
    items = {"input": [{"id": 1, "role": "user"}, "x", {"id": 2}], "*": 5}
    assert without(items, ["/input/*/id"]) == {"input": [{"role": "user"}, "x", {}], "*": 5}
    assert without(items, ["/*", "/input/*"]) == {"input": [None, None, None]}
    assert first_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == ("/a/1/b", 2, 3)
    pointer, _, more = first_difference({"a": [1]}, {"a": [1, 2]})
    assert (pointer, more) == ("/a/1", 2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is none of format"),
        (b"not json\n", "is none of format"),
        (b'{"format":"boxeval.cassette/9"}\n', "is none of format"),
        (b'{"format":"boxeval.cassette/1"}\n', "has no answer in it"),
        (b'{"format":"boxeval.cassette/1"}\n{"wire":"chat"}\n', "line 2: is no recorded answer"),
        (b'{"format":"boxeval.cassette/1"}\n' + b"[" * 100_000 + b"\n", "line 2: is no recorded answer"),
    ],
)
def test_a_bad_cassette_is_one_clear_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "tape.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        read_cassette(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_cassette(tmp_path / "missing")


def test_nothing_is_recorded_over(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    path.write_text("precious")
    with pytest.raises(UsageError, match="is there already"):
        Recorder(path, Keyring({}, {}).redactor())
    assert path.read_text() == "precious"


def test_a_record_that_cannot_be_written_is_told_in_the_end(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "tape.jsonl", Keyring({}, {}).redactor())
    recorder._file.close()
    recorder._file = os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb")
    asked = Asked(model=NAME, stream=False)
    question = Question(CHAT, "/chat/completions", asked, {"model": NAME})
    recorder.add(question, ReplayedRelay(Exchange("chat", NAME, {}, 200, "application/json", b"{}")), b"{}")
    with pytest.raises(StorageError, match="No space left"):
        recorder.close()
