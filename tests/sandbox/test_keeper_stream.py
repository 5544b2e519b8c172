"""A keeper that lies, stutters or never ends is an error in bounded time, never a crash, a hang or a score."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from boxeval.errors import BoxError, EngineError, HostileTree
from boxeval.sandbox.attach import Attachment
from boxeval.sandbox.changes import OldContent, Told
from boxeval.sandbox.keeper import KeeperClient
from boxeval.sandbox.waits import Waits
from boxeval.spec.policy import CollectCaps, Policy

CAPS = CollectCaps(bytes=1000, members=5, depth=4, name_bytes=10, path_bytes=30, time_ms=1000)
OLD = OldContent(file_bytes=8, all_bytes=12)
Frame = tuple[bytes, Any]
GOOD_END: Frame = (b"A", {"repositories": []})


class Keep:
    def close(self) -> None: ...


def block(data: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + struct.pack(">I", len(data)) + data


def framed(kind: bytes, payload: Any) -> bytes:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return kind + struct.pack(">I", len(data)) + data


Client = Callable[..., KeeperClient]


@pytest.fixture
def client() -> Iterator[Client]:
    """A client whose keeper says just these bytes and then hangs up, or goes on for ever."""
    opened: list[socket.socket] = []
    feeders: list[threading.Thread] = []

    def make(*said: bytes, again: bytes = b"") -> KeeperClient:
        ours, theirs = socket.socketpair()
        opened.extend((ours, theirs))

        def feed() -> None:
            try:
                theirs.sendall(b"".join(said))
                while again:
                    theirs.sendall(again)
                theirs.shutdown(socket.SHUT_WR)
            except OSError:
                pass

        feeders.append(threading.Thread(target=feed))
        feeders[-1].start()
        return KeeperClient(Attachment(ours, Keep()), Waits(1))

    yield make
    for one in opened:
        one.close()
    for feeder in feeders:
        feeder.join(5)
        assert not feeder.is_alive()


def drink(pieces: Iterator[bytes]) -> str:
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def collected(client: KeeperClient) -> list[Told]:
    return list(client.collect("agent.x", "base", CAPS, drink, OLD))


def b64(name: bytes) -> str:
    return base64.b64encode(name).decode()


def new_file(path: bytes = b"a", size: int = 0, **more: Any) -> Frame:
    return b"E", {"path": b64(path), "kind": "file", "mode": 0o644, "size": size, **more}


def old_file(data: bytes, size: int | None = None) -> dict[str, Any]:
    return {
        "was": "file",
        "wasMode": 0o644,
        "wasSize": len(data) if size is None else size,
        "wasSha256": hashlib.sha256(data).hexdigest(),
    }


def test_an_honest_keeper_is_understood(client: Client) -> None:
    frames: list[Frame] = [
        new_file(b"d/a", 3),
        (b"D", b"ab"),
        (b"D", b"c"),
        new_file(b"b", 1, **old_file(b"old")),
        (b"D", b"x"),
        (b"B", b"o"),
        (b"B", b"ld"),
        (
            b"E",
            {"path": b64(b"\xff"), "was": "symlink", "wasMode": 0o777, "wasSize": 1, "wasLink": b64(b"\xfe")},
        ),
        (b"E", {"path": b64(b"e"), **old_file(b"")}),
        (b"A", {"repositories": [b64(b"sub")]}),
    ]
    stream = client(block(b"".join(framed(*frame) for frame in frames))).collect("l", "b", CAPS, drink, OLD)
    told = {one.change.path: one for one in stream}
    assert told[b"d/a"].sha256 == hashlib.sha256(b"abc").hexdigest()
    assert (told[b"b"].old, told[b"e"].old, told[b"d/a"].old) == (b"old", b"", None)
    assert told[b"\xff"].change.old and told[b"\xff"].change.old.link == b"\xfe"
    assert stream.repositories == (b"sub",)


HOSTILE: dict[str, list[Frame]] = {
    "no JSON": [(b"E", b"{")],
    "not UTF-8": [(b"E", b'{"path": "\xff"}')],
    "nested without end": [(b"E", b"[" * 100_000)],
    "an array": [(b"E", [])],
    "no path": [(b"E", {"kind": "file", "mode": 1, "size": 1})],
    "a path that is a number": [(b"E", {"path": 1, "kind": "file", "mode": 1, "size": 1})],
    "a path that is no base64": [(b"E", {"path": "*", "kind": "file", "mode": 1, "size": 1})],
    "an unknown kind": [(b"E", {"path": b64(b"a"), "kind": "door", "mode": 1, "size": 1})],
    "an unknown key": [new_file(more=1)],
    "a size that is text": [new_file(size="1")],  # type: ignore[arg-type]
    "a size that is a float": [new_file(size=1.0)],  # type: ignore[arg-type]
    "a negative size": [new_file(size=-1)],
    "a huge size": [new_file(size=2**80)],
    "a mode with a type": [(b"E", {"path": b64(b"a"), "kind": "file", "mode": 0o100644, "size": 0})],
    "no mode": [(b"E", {"path": b64(b"a"), "kind": "file", "size": 0})],
    "nothing to nothing": [(b"E", {"path": b64(b"a")})],
    "a file with a link": [new_file(link=b64(b"x"))],
    "a link without one": [(b"E", {"path": b64(b"a"), "kind": "symlink", "mode": 0, "size": 0})],
    "a digest that is none": [new_file(**{**old_file(b""), "wasSha256": "0"})],
    "the same path twice": [new_file(), new_file(), GOOD_END],
    "too many entries": [new_file(b"%d" % n) for n in range(6)],
    "content without a file": [(b"E", {"path": b64(b"a"), "kind": "fifo", "mode": 0, "size": 0}), (b"D", b"x")],
    "more than announced": [new_file(size=2), (b"D", b"xxx")],
    "less than announced": [new_file(size=2), (b"D", b"x"), GOOD_END],
    "empty pieces": [new_file(size=2), (b"D", b"")],
    "more than the cap": [new_file(b"a", 900), (b"D", b"x" * 900), new_file(b"b", 900), (b"D", b"x" * 900)],
    "old content that was not asked for": [new_file(**old_file(b"x" * 9)), (b"B", b"x" * 9)],
    "more old content than asked for": [
        new_file(b"a", **old_file(b"x" * 8)), (b"B", b"x" * 8), new_file(b"b", **old_file(b"x" * 8)), (b"B", b"x" * 8),
    ],
    "old content of another digest": [new_file(**old_file(b"xy")), (b"B", b"xz")],
    "old content of nothing": [new_file(), (b"B", b"x"), GOOD_END],
    "an unknown frame": [(b"?", b"")],
    "a request": [(b"Q", {"op": "reset"})],
    "the end of a fixture": [(b"Z", b"")],
    "an answer that is no JSON": [(b"A", b"nope")],
    "an answer nested without end": [(b"A", b"[" * 100_000)],
    "an answer that is an array": [(b"A", [])],
    "an answer without what was asked": [(b"A", {})],
    "an answer of another type": [(b"A", {"repositories": [1]})],
    "nothing": [],
    "an entry and nothing more": [new_file()],
    **{
        f"path {path!r}": [new_file(path)]
        for path in (
            b"", b"/", b"/etc/passwd", b"..", b"../x", b"a/../b", b"a/..", b".", b"a/./b", b"a//b", b"a/", b"a\0b",
            b"x" * 11, b"a/b/c/d/e", b"aaaaaaaaaa/" * 3 + b"a",
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_stream_is_an_engine_error(name: str, client: Client) -> None:
    with pytest.raises(EngineError):
        collected(client(block(b"".join(framed(*frame) for frame in HOSTILE[name]))))


@pytest.mark.parametrize(
    "before", [[], [new_file(size=9), (b"D", b"x")], [new_file(**old_file(b"xy")), (b"B", b"x")]]
)
def test_a_cap_that_the_keeper_reports_is_the_trees_fault(before: list[Frame], client: Client) -> None:
    frames = [*before, (b"A", {"cap": "more than 5 entries"})]
    with pytest.raises(HostileTree, match="more than 5 entries"):
        collected(client(block(b"".join(framed(*frame) for frame in frames))))


@pytest.mark.parametrize("answer", [{"error": "no such layer"}, {"error": 5}, {"error": {"a": []}}])
def test_a_refusal_is_an_engine_error(answer: object, client: Client) -> None:
    with pytest.raises(EngineError, match="keeper: collect"):
        collected(client(block(framed(b"A", answer))))


@pytest.mark.parametrize(
    ("said", "again"),
    [
        (b"", block(framed(*new_file()))),
        (block(framed(*new_file(size=2**50))), block(framed(b"D", b"x" * 900))),
        (block(framed(*new_file(size=2**50))), block(framed(b"D", b""))),
        (block(framed(*new_file(size=2**50))), block(framed(b"D", b"x"))),
        (block(b"E\x7f\xff\xff\xff"), block(b"x" * 1000)),
        (block(b"E\x00\x0f\xff\xff") + b"\x01\0\0\0\xff\xff\xff\xff", b"x" * 65536),
    ],
    ids=["entries", "content", "empty content", "slow content", "a huge frame", "a huge block"],
)
def test_an_endless_stream_ends(said: bytes, again: bytes, client: Client) -> None:
    began = time.monotonic()
    with pytest.raises(EngineError):
        collected(client(said, again=again))
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_a_stream_of_complaints_alone_ends_with_the_time_that_it_has(client: Client) -> None:
    attached = client(again=block(b"complaint", stream=2))
    began = time.monotonic()
    with pytest.raises(BoxError, match="in time"):
        attached.request("hello")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda keeper: keeper.has_fixture("k"), {"present": "yes"}),
        (lambda keeper: keeper.has_fixture("k"), {}),
        (lambda keeper: keeper.fixture("k"), {"digest": "0" * 64, "submodules": "x"}),
        (lambda keeper: keeper.fixture("k"), {"digest": "../../etc"}),
        (
            lambda keeper: keeper.adopt("k", Policy(version=1, id="p"), "agent.x", "", "", {}),
            {"digest": None},
        ),
    ],
)
def test_answers_of_a_wrong_type_are_engine_errors(
    ask: Callable[[KeeperClient], object], answer: object, client: Client
) -> None:
    with pytest.raises(EngineError):
        ask(client(block(framed(b"A", answer))))


def test_a_frame_may_be_cut_anywhere(client: Client) -> None:
    whole = b"".join(framed(*frame) for frame in (new_file(b"a", 2), (b"D", b"xy"), GOOD_END))
    pieces = [block(whole[at : at + 1]) + block(b"noise", stream=2) for at in range(len(whole))]
    assert [one.change.path for one in collected(client(*pieces))] == [b"a"]
