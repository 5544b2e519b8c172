"""Every parser that reads hostile bytes, as a function of bytes that must end without an error that has no name.

`scripts/fuzz.py` runs each for its share of the time, `tests/hostile/test_fuzz_targets.py` a little. A target lets
pass what its reader promises to raise and nothing else, and checks what must hold of what was read.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import tamper_cases as tampering
from boxeval.errors import (
    BoxError,
    BoxevalError,
    EngineError,
    FixtureError,
    HostileTree,
    SuiteError,
    UsageError,
)
from boxeval.formats.case import load_case
from boxeval.formats.fixtures import read_fixture
from boxeval.formats.suite_v2 import load_suite
from boxeval.formats.yaml_source import parse
from boxeval.gateway.cassette import read_cassette
from boxeval.gateway.chat import Chat
from boxeval.gateway.connection import Connection
from boxeval.gateway.interface import RequestError, WireError
from boxeval.gateway.json_body import read_json
from boxeval.gateway.messages import Messages
from boxeval.gateway.meter import Meter
from boxeval.gateway.proxy import place_of, token_of
from boxeval.gateway.responses import Responses
from boxeval.gateway.server import Gateway
from boxeval.receipts.canonical import MalformedError, canonical, canonical_json, read, strict_json
from boxeval.receipts.chain import read_chain
from boxeval.receipts.envelope import Envelope
from boxeval.receipts.trust import TrustFile, read_trust_file
from boxeval.reports.escape import escape, escape_lines
from boxeval.rules.line_diff import Work, edits
from boxeval.rules.patch import Blob, TooLarge, quoted, section
from boxeval.rules.paths import raw_name, readable
from boxeval.sandbox.attach import Attachment
from boxeval.sandbox.capture import Bounded
from boxeval.sandbox.changes import OldContent
from boxeval.sandbox.keeper import KeeperClient
from boxeval.sandbox.keeper_frames import (
    FixtureAnswer,
    ListedEntry,
    PresentAnswer,
    RollbackAnswer,
    answer_of,
    change_of,
    parsed,
)
from boxeval.sandbox.settings import kernel_differences
from boxeval.sandbox.shim_frames import command_end, facts_of, last_report
from boxeval.spec.models import Script
from boxeval.spec.plan import Plan
from boxeval.spec.policy import CollectCaps, Policy
from boxeval.spec.receipt import Receipt
from boxeval.spec.workspace import Workspace
from boxeval.trial.git_jobs import notes_of
from fuzz_told import TOLD

CAPS = CollectCaps(bytes=4096, members=16, depth=4, path_bytes=128, name_bytes=32)
WIRES = (Chat(), Responses(), Messages())


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Goes with the process."""
    return tempfile.TemporaryDirectory(prefix="boxeval-fuzz-")


def place() -> Path:
    """A directory of this process, for readers that want a file."""
    return Path(_directory().name)


def file(name: str, data: bytes) -> Path:
    path = place() / name
    path.write_bytes(data)
    return path


class Peer:
    """The other end of a connection, which says `data` and hangs up."""

    def __init__(self, data: bytes) -> None:
        self._data, self.heard = io.BytesIO(data), bytearray()

    def recv(self, size: int) -> bytes:
        # In odd pieces, so that what is read in several goes is seen too.
        return self._data.read(min(size, 7 + self._data.tell() % 61))

    def sendall(self, data: bytes) -> None:
        self.heard += data

    def settimeout(self, seconds: float) -> None:
        pass

    def shutdown(self, how: int) -> None:
        pass

    def close(self) -> None:
        pass


def keeper_frames(data: bytes) -> None:
    for model in (FixtureAnswer, ListedEntry, PresentAnswer, RollbackAnswer):
        with contextlib.suppress(BoxError):
            parsed(model, data)
    with contextlib.suppress(BoxError):
        answer_of(data[:1], data[1:])
    with contextlib.suppress(BoxError):
        change = change_of(data, CAPS)
        assert b"\0" not in change.path
        assert not any(part in (b"", b".", b"..") for part in change.path.split(b"/"))


def keeper_stream(data: bytes) -> None:
    taken = 0

    def sink(pieces: Iterator[bytes]) -> str:
        nonlocal taken
        content = b"".join(pieces)
        taken += len(content)
        return hashlib.sha256(content).hexdigest()

    peer = Peer(data)
    client = KeeperClient(Attachment(peer, peer))  # type: ignore[arg-type]
    with contextlib.suppress(BoxError, EngineError, HostileTree):
        list(client.collect(["agent.x"], "base", CAPS, sink, OldContent(64, 256)))
    assert taken <= CAPS.bytes


def shim_frames(data: bytes) -> None:
    with contextlib.suppress(BoxError):
        command_end(data, Bounded(8), Bounded(8))
    with contextlib.suppress(BoxError):
        last_report(data)
    kernel_differences(Policy(version=1, id="default"), facts_of(data))
    peer = Peer(data)
    attached = Attachment(peer, peer)  # type: ignore[arg-type]
    with contextlib.suppress(BoxError):
        while attached.receive(float("inf")):
            pass


def archive(data: bytes) -> None:
    for name in ("t.tar", "t.tar.gz"):
        packed = gzip.compress(data, 1) if name.endswith("gz") else data
        path = file(name, packed)
        with contextlib.suppress(FixtureError):
            workspace = Workspace.model_validate({"kind": "archive", "path": path.name})
            for entry in read_fixture(workspace, path.parent).entries():
                assert not entry.path.startswith(b"/")
                assert b".." not in entry.path.split(b"/")
                if entry.open is not None:
                    with entry.open() as content:
                        assert len(content.read(1 << 20)) <= 1 << 20


def yaml_source(data: bytes) -> None:
    try:
        parse(data, "s.yaml")
    except SuiteError as error:
        assert error.problems
        assert all(str(problem).isprintable() for problem in error.problems)


def suite(data: bytes) -> None:
    try:
        load_suite(file("s.yaml", data))
    except SuiteError as error:
        assert error.problems
        assert all(str(problem).isprintable() for problem in error.problems)


def ledger(data: bytes) -> None:
    with contextlib.suppress(BoxevalError):
        read_chain(file("ledger.jsonl", data), tampering.TRUST)


def canonical_records(data: bytes) -> None:
    for kind in (Envelope, Receipt, Plan, TrustFile):
        with contextlib.suppress(MalformedError):
            assert canonical(read(kind, data)) == data
    with contextlib.suppress(MalformedError):
        tree = strict_json(data)
        again = canonical_json(tree)
        assert canonical_json(strict_json(again)) == again


def trust_file(data: bytes) -> None:
    with contextlib.suppress(UsageError):
        read_trust_file(file("trust.json", data))


@cache
def _gateway() -> Gateway:
    return Gateway(place() / "s")


def gateway_http(data: bytes) -> None:
    script = Script.model_validate({"turns": [{"text": "a"}, {"text": "b"}]}, strict=False)
    route = _gateway().open_route(script, "m")
    peer = Peer(data.replace(b"TOKEN", route.token.encode()))
    Connection(peer, _gateway()._find, _gateway()._find_egress).serve()  # type: ignore[arg-type]
    _gateway().close_route(route.token)
    assert not peer.heard or peer.heard.startswith(b"HTTP/1.1 ")


def egress(data: bytes) -> None:
    method, _, target = data.decode("latin-1").partition(" ")
    with contextlib.suppress(RequestError):
        token_of({"proxy-authorization": target})
    with contextlib.suppress(RequestError):
        host, port = place_of(method, target)
        assert host
        assert 0 < port < 65536


def gateway_bodies(data: bytes) -> None:
    for wire in WIRES:
        with contextlib.suppress(RequestError):
            wire.read(read_json(data))


def gateway_answers(data: bytes) -> None:
    for wire in WIRES:
        for is_stream in (False, True):
            meter = Meter(wire, is_stream)
            half = len(data) // 2
            meter.feed(data[:half])
            meter.feed(data[half:])
            meter.end()


def cassette(data: bytes) -> None:
    with contextlib.suppress(UsageError, WireError):
        read_cassette(file("c.jsonl", data))


def patches(data: bytes) -> None:
    path, _, rest = data.partition(b"\0")
    old, _, new = rest.partition(b"\xff\0\xff")
    with contextlib.suppress(TooLarge):
        section(path or b"a", Blob("100644", old), Blob("100755", new), Work(20_000), 1 << 20)
    lines_a, lines_b = old.splitlines(keepends=True), new.splitlines(keepends=True)
    made, at = [], 0
    for edit in edits(lines_a, lines_b, Work(2000)):
        made += lines_a[at : edit.old_from] + lines_b[edit.new_from : edit.new_to]
        at = edit.old_to
    assert made + lines_a[at:] == lines_b


def names(data: bytes) -> None:
    assert raw_name(readable(data)) == data
    for text in (escape(readable(data)), *escape_lines(data)):
        assert all(char == " " or unicodedata.category(char)[0] not in "CZ" for char in text)
    one, _, other = data.partition(b"\0")
    assert (escape(readable(one)) == escape(readable(other))) == (one == other)
    assert b"\n" not in quoted(data)
    notes_of(data)


def case(data: bytes) -> None:
    try:
        load_case(file("case.yaml", data))
    except SuiteError as error:
        assert error.problems
        assert all(str(problem).isprintable() for problem in error.problems)


TARGETS: dict[str, Callable[[bytes], None]] = {
    **TOLD,
    "keeper-frames": keeper_frames,
    "keeper-stream": keeper_stream,
    "shim-frames": shim_frames,
    "archive": archive,
    "yaml-source": yaml_source,
    "suite": suite,
    "ledger": ledger,
    "canonical": canonical_records,
    "trust-file": trust_file,
    "gateway-http": gateway_http,
    "egress": egress,
    "gateway-bodies": gateway_bodies,
    "gateway-answers": gateway_answers,
    "cassette": cassette,
    "patches": patches,
    "names": names,
    "case": case,
}
"""By name; `fuzz_seeds.seeds` has inputs for each."""
