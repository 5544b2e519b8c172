"""The client of the keeper (images/keeper): tree work and the gateway's door, by requests over its stdio."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from boxeval.errors import BoxError, EngineError, HostileTree
from boxeval.sandbox.attach import Attachment
from boxeval.spec.policy import CollectCaps, Policy
from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind

PIECE = 1 << 18
ANSWER_S = 300
GATEWAY_PORT = 8377


@dataclass(frozen=True, slots=True)
class RawChange:
    """One difference as the keeper tells it. `kind` None: deleted; `was` None: created."""

    path: bytes
    kind: EntryKind | None
    was: EntryKind | None
    mode: int | None
    size_bytes: int | None
    link: bytes | None


class ContentSink(Protocol):
    """Takes the content of changed files, piece by piece."""

    def __call__(self, pieces: Iterator[bytes]) -> str:
        """Read all pieces to the end; return the SHA-256 of the whole."""


class KeeperClient:
    """Requests to one keeper, one at a time."""

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment

    def request(self, op: str, timeout_s: float = ANSWER_S, **arguments: Any) -> dict[str, Any]:
        """Send one request and return its answer. A refusal is an EngineError."""
        self._send(op, arguments)
        return self._answer(op, time.monotonic() + timeout_s)

    def put_fixture(self, key: str, policy: Policy, digest: str, entries: Iterable[FixtureEntry]) -> None:
        """Write a fixture into the cache under `key`; the keeper checks that its digest is `digest`."""
        self._send("put_fixture", {"key": key, "uid": policy.uid, "gid": policy.gid, "digest": digest})
        self._send_entries(entries)
        self._answer("put_fixture", time.monotonic() + ANSWER_S)

    def fill_layer(self, name: str, policy: Policy, entries: Iterable[FixtureEntry]) -> None:
        """Write entries into an empty layer."""
        self._send("fill_layer", {"name": name, "uid": policy.uid, "gid": policy.gid})
        self._send_entries(entries)
        self._answer("fill_layer", time.monotonic() + ANSWER_S)

    def collect(
        self, layer: str, base: str, caps: CollectCaps, sink: ContentSink
    ) -> Iterator[tuple[RawChange, str | None]]:
        """Yield every change of `layer` against fixture `base`, with the digest of a regular file's content.

        Raises HostileTree if a cap is broken; what the keeper counts is counted here once more.
        """
        self._send("collect", {"layer": layer, "base": base, "caps": caps.model_dump(by_alias=False)})
        until = time.monotonic() + caps.time_ms / 1000 + 30
        received = members = 0
        kind, payload = self._receive(until)

        def content() -> Iterator[bytes]:
            nonlocal kind, payload, received
            kind, payload = self._receive(until)
            while kind == b"D":
                received += len(payload)
                if received > caps.bytes:
                    raise HostileTree(f"more than {caps.bytes} bytes")
                yield payload
                kind, payload = self._receive(until)

        while kind == b"E":
            members += 1
            if members > caps.members:
                raise HostileTree(f"more than {caps.members} entries")
            change = _change(json.loads(payload))
            digest = sink(content())
            yield change, digest if change.kind is EntryKind.FILE else None
        answer = _parse(kind, payload)
        if "cap" in answer:
            raise HostileTree(answer["cap"])
        if "error" in answer:
            raise EngineError(f"keeper: collect: {answer['error']}")

    def _send(self, op: str, arguments: dict[str, Any]) -> None:
        self._attachment.send(b"Q", json.dumps({"op": op, **arguments}).encode())

    def _send_entries(self, entries: Iterable[FixtureEntry]) -> None:
        for entry in entries:
            head = {
                "path": _b64(entry.path),
                "kind": entry.kind.value,
                "mode": entry.mode,
                "size": entry.size_bytes,
                "link": _b64(entry.link),
            }
            self._attachment.send(b"E", json.dumps(head).encode())
            left = entry.size_bytes
            if entry.open is not None:
                with entry.open() as source:
                    while left > 0:
                        piece = source.read(min(PIECE, left))
                        # A source that shrank meanwhile is filled up here and refused by its digest there.
                        piece = piece or b"\0" * min(PIECE, left)
                        self._attachment.send(b"D", piece)
                        left -= len(piece)
        self._attachment.send(b"Z")

    def _answer(self, op: str, until: float) -> dict[str, Any]:
        answer = _parse(*self._receive(until))
        if "error" in answer:
            raise EngineError(f"keeper: {op}: {answer['error']}")
        return answer

    def _receive(self, until: float) -> tuple[bytes, bytes]:
        try:
            frame = self._attachment.receive(until)
        except TimeoutError:
            raise BoxError("the keeper did not answer in time") from None
        if frame is None:
            said = self._attachment.stderr.decode("utf-8", "backslashreplace").strip()
            raise BoxError("the keeper is gone" + (f": {said[-300:]}" if said else ""))
        return frame


def _parse(kind: bytes, payload: bytes) -> dict[str, Any]:
    if kind != b"A":
        raise BoxError("the keeper sent an unexpected frame")
    answer: dict[str, Any] = json.loads(payload)
    return answer


def _change(entry: dict[str, Any]) -> RawChange:
    link = entry.get("link")
    return RawChange(
        path=base64.b64decode(entry["path"]),
        kind=EntryKind(entry["kind"]) if "kind" in entry else None,
        was=EntryKind(entry["was"]) if entry["was"] else None,
        mode=entry.get("mode"),
        size_bytes=entry.get("size"),
        link=None if link is None else base64.b64decode(link),
    )


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
