"""The client of the keeper (images/keeper): tree work and the gateway's door, by requests over its stdio."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from boxeval.errors import BoxError, EngineError, NoRoom
from boxeval.sandbox.attach import Attachment
from boxeval.sandbox.changes import NO_OLD_CONTENT, ChangeStream, ContentSink, OldContent
from boxeval.sandbox.keeper_frames import (
    FixtureAnswer,
    ListedEntry,
    PresentAnswer,
    RollbackAnswer,
    answer_of,
    parsed,
)
from boxeval.sandbox.waits import Waits
from boxeval.spec.policy import CollectCaps, Policy
from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind

M = TypeVar("M", bound=BaseModel)
PIECE = 1 << 18
PATHS_BYTES = 1 << 18
"""Of the paths in one frame."""
GATEWAY_PORT = 8377


class KeeperClient:
    """Requests to one keeper, one at a time."""

    def __init__(self, attachment: Attachment, waits: Waits | None = None) -> None:
        self._attachment, self._waits = attachment, waits or Waits()

    def request(self, op: str, **arguments: Any) -> dict[str, Any]:
        """Send one request and return its answer. A refusal is an EngineError, for lack of room a NoRoom."""
        self._send(op, arguments)
        return self._answer(op)

    def put_fixture(self, key: str, policy: Policy, digest: str, entries: Iterable[FixtureEntry]) -> None:
        """Write a fixture into the cache under `key`; the keeper checks that its digest is `digest`."""
        self._send("put_fixture", {"key": key, "uid": policy.uid, "gid": policy.gid, "digest": digest})
        self._send_entries(entries)
        self._answer("put_fixture")

    def fill_layer(
        self, name: str, policy: Policy, entries: Iterable[FixtureEntry], hide: Iterable[bytes] = ()
    ) -> None:
        """Write entries into an empty layer; the layers below show nothing at the paths of `hide`."""
        hidden = [_b64(path) for path in hide]
        self._send("fill_layer", {"name": name, "uid": policy.uid, "gid": policy.gid, "hide": hidden})
        self._send_entries(entries)
        self._answer("fill_layer")

    def fill_home(self, policy: Policy, entries: Iterable[FixtureEntry]) -> None:
        """Write entries into the empty home that the slot's boxes share."""
        self._send("fill_home", {"uid": policy.uid, "gid": policy.gid})
        self._send_entries(entries)
        self._answer("fill_home")

    def collect(
        self,
        layers: Sequence[str],
        base: str,
        caps: CollectCaps,
        sink: ContentSink,
        old: OldContent = NO_OLD_CONTENT,
        *,
        below: Sequence[str] = (),
    ) -> ChangeStream:
        """Every change that `layers` make to the layers `below` over fixture `base`, to be read at once and to the end.

        Both lists are topmost first.
        """
        self._send(
            "collect",
            {
                "layers": list(layers),
                "below": list(below),
                "base": base,
                "caps": caps.model_dump(by_alias=False),
                "old_bytes": old.file_bytes,
                "all_old_bytes": old.all_bytes,
            },
        )
        until = time.monotonic() + caps.time_ms / 1000 + self._waits.collect_s
        return ChangeStream(lambda: self._receive(until), caps, old, sink)

    def collect_home(self, paths: Sequence[bytes], caps: CollectCaps, sink: ContentSink) -> ChangeStream:
        """Everything at `paths` of the private home that the boxes of the slot share, as created.

        The paths are plain and relative; what is not there is left out. To be read at once and to the end.
        """
        self._send(
            "collect_home", {"paths": [_b64(path) for path in paths], "caps": caps.model_dump(by_alias=False)}
        )
        until = time.monotonic() + caps.time_ms / 1000 + 30
        return ChangeStream(lambda: self._receive(until), caps, NO_OLD_CONTENT, sink)

    def rollback(
        self, layer: str, below: Sequence[str], base: str, paths: Iterable[bytes]
    ) -> tuple[tuple[bytes, str], ...]:
        """Make `paths` in `layer` what they are in the layers `below` (topmost first) over fixture `base`.

        Returns the paths that could not be put back, each with the name of an errno. The layer must not be mounted.
        """
        self._send("rollback", {"layer": layer, "below": list(below), "base": base})
        batch: list[str] = []
        size = 0
        for path in paths:
            batch.append(_b64(path))
            size += len(batch[-1])
            if size > PATHS_BYTES:
                self._attachment.send(b"E", json.dumps(batch).encode())
                batch, size = [], 0
        self._attachment.send(b"E", json.dumps(batch).encode())
        self._attachment.send(b"Z")
        answer = self._answer("rollback")
        return parsed(RollbackAnswer, json.dumps(answer).encode()).faults

    def list_fixture(self, key: str) -> Iterator[tuple[bytes, EntryKind]]:
        """Path and kind of everything in a cached fixture, to be read at once and to the end."""
        self._send("list_fixture", {"key": key})
        until = time.monotonic() + self._waits.answer_s
        kind, payload = self._receive(until)
        while kind == b"E":
            entry = parsed(ListedEntry, payload)
            yield entry.path, entry.kind
            kind, payload = self._receive(until)
        if "error" in (answer := answer_of(kind, payload)):
            raise EngineError(f"keeper: list_fixture: {answer['error']}")

    def has_fixture(self, key: str) -> bool:
        """Whether a complete fixture has this key."""
        return self._asked(PresentAnswer, "has_fixture", key=key).present

    def fixture(self, key: str) -> FixtureAnswer:
        """A fixture that is there."""
        return self._asked(FixtureAnswer, "fixture", key=key)

    def adopt(
        self,
        key: str,
        policy: Policy,
        layer: str,
        base: str,
        inside: str,
        notes: Mapping[str, Iterable[bytes]],
    ) -> FixtureAnswer:
        """Make fixture `key` of a layer over fixture `base`, or of what is below `inside` in it.

        `notes` are lists of paths by the names that `FixtureAnswer` has for them.
        """
        return self._asked(
            FixtureAnswer,
            "adopt",
            key=key,
            uid=policy.uid,
            gid=policy.gid,
            layer=layer,
            base=base,
            inside=inside,
            notes={name: [_b64(path) for path in paths] for name, paths in notes.items()},
        )

    def _asked(self, model: type[M], op: str, **arguments: Any) -> M:
        return parsed(model, json.dumps(self.request(op, **arguments)).encode())

    def _send(self, op: str, arguments: dict[str, Any]) -> None:
        self._attachment.send(b"Q", json.dumps({"op": op, **arguments}).encode())

    def _send_entries(self, entries: Iterable[FixtureEntry]) -> None:
        self._attachment.send_all(_frames_of(entries))

    def _answer(self, op: str) -> dict[str, Any]:
        answer = answer_of(*self._receive(time.monotonic() + self._waits.answer_s))
        if "error" in answer:
            raise EngineError(f"keeper: {op}: {answer['error']}")
        if "cap" in answer:
            raise NoRoom(f"keeper: {op}: {answer['cap']}")
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


def _frames_of(entries: Iterable[FixtureEntry]) -> Iterator[tuple[bytes, bytes]]:
    for entry in entries:
        head = {
            "path": _b64(entry.path),
            "kind": entry.kind.value,
            "mode": entry.mode,
            "size": entry.size_bytes,
            "link": _b64(entry.link),
        }
        yield b"E", json.dumps(head).encode()
        left = entry.size_bytes
        if entry.open is not None:
            with entry.open() as source:
                while left > 0:
                    # A source that shrank meanwhile is filled up here and refused by its digest there.
                    piece = source.read(min(PIECE, left)) or b"\0" * min(PIECE, left)
                    yield b"D", piece
                    left -= len(piece)
    yield b"Z", b""


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
