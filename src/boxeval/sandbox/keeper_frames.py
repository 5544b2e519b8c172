"""What a keeper sends, checked before it is believed: it reads hostile trees, so its stream is hostile too."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from boxeval.errors import BoxError
from boxeval.spec.base import Natural, Sha256
from boxeval.spec.policy import CollectCaps
from boxeval.spec.trial import EntryKind

M = TypeVar("M", bound=BaseModel)


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError("is not base64") from None


Name = Annotated[bytes, BeforeValidator(_decoded)]


class Frame(BaseModel):
    """Strict and closed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)


class _Entry(Frame):
    path: Name
    kind: EntryKind | None = None
    mode: Natural | None = None
    size: Natural | None = None
    link: Name | None = None
    was: EntryKind | None = None
    was_mode: Natural | None = None
    was_size: Natural | None = None
    was_sha256: Sha256 | None = None
    was_link: Name | None = None


class CollectAnswer(Frame):
    """After the last entry: changed directories below the top that are repositories of their own."""

    repositories: tuple[Name, ...]


class RollbackAnswer(Frame):
    """Paths that could not be put back, each with the name of an errno; `more` could not be listed."""

    faults: tuple[tuple[Name, str], ...]
    more: Natural


class ListedEntry(Frame):
    """One entry of a fixture."""

    path: Name
    kind: EntryKind


class FixtureAnswer(Frame):
    """A complete fixture: the digest of its tree, and what was noted when it was made."""

    digest: Sha256
    submodules: tuple[Name, ...] = ()
    lfs_pointers: tuple[Name, ...] = ()


class PresentAnswer(Frame):
    """Whether a fixture is there."""

    present: bool


@dataclass(frozen=True, slots=True)
class Side:
    """An entry before or after the turn. `sha256` is known for what was there before only."""

    kind: EntryKind
    mode: int
    size_bytes: int
    link: bytes | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class RawChange:
    """One difference as the keeper tells it. `new` None: deleted; `old` None: created."""

    path: bytes
    new: Side | None
    old: Side | None


def change_of(payload: bytes, caps: CollectCaps) -> RawChange:
    """The change that an E frame tells. Raises BoxError if it is none, or breaks the caps that were sent."""
    entry = parsed(_Entry, payload)
    change = RawChange(
        entry.path,
        _side(entry.kind, entry.mode, entry.size, entry.link, None),
        _side(entry.was, entry.was_mode, entry.was_size, entry.was_link, entry.was_sha256),
    )
    if change.new is None and change.old is None:
        raise BoxError("the keeper sent a change from nothing to nothing")
    if fault := _path_fault(entry.path, caps):
        raise BoxError(f"the keeper sent a path that {fault}")
    return change


def _side(
    kind: EntryKind | None, mode: int | None, size: int | None, link: bytes | None, sha256: str | None
) -> Side | None:
    if kind is None and (mode, size, link, sha256) == (None,) * 4:
        return None
    if kind is None or mode is None or size is None or mode > 0o7777:
        raise BoxError("the keeper sent an entry without its kind, mode or size")
    if (link is not None) != (kind is EntryKind.SYMLINK):
        raise BoxError("the keeper sent a link target of what is no link, or none of one")
    return Side(kind, mode, size, link, sha256)


def _path_fault(path: bytes, caps: CollectCaps) -> str | None:
    parts = path.split(b"/")
    if b"\0" in path or any(part in (b"", b".", b"..") for part in parts):
        return "is not plain and relative"
    if len(path) > caps.path_bytes or len(parts) > caps.depth or len(parts[-1]) > caps.name_bytes:
        return "is longer or deeper than its caps"
    return None


def parsed(model: type[M], payload: bytes) -> M:
    """The payload as `model`, or BoxError."""
    try:
        return model.model_validate_json(payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BoxError(f"the keeper sent what is no {model.__name__.strip('_')}: {first['msg']}") from None


def answer_of(kind: bytes, payload: bytes) -> dict[str, Any]:
    """The object in an A frame, or BoxError."""
    if kind != b"A":
        raise BoxError(f"the keeper sent an unexpected frame {kind!r}")
    try:
        answer = json.loads(payload)
    except (ValueError, RecursionError):
        raise BoxError("the keeper sent an answer that is no JSON") from None
    if not isinstance(answer, dict):
        raise BoxError("the keeper sent an answer that is no object")
    return answer
