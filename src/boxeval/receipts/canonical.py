"""One byte form for every record (RFC 8785), and a reader that takes no other.

Writing: every field goes out under its public name, `None` as `null`, so that a null is signed like any
value. Reading: the bytes must be strict JSON, fit the type, and be exactly what writing the result gives
again. A duplicate key, an unknown or missing field, another order, a space, `1.0` for `1` or a second
spelling of a string all break the last rule.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from typing import NoReturn, TypeVar

import rfc8785
from pydantic import ValidationError

from boxeval.spec.base import Record

R = TypeVar("R", bound=Record)
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MAX_DEPTH = 64
MAX_BYTES = 256 * 1024 * 1024
MAX_INTEGER = 2**53 - 1
"""Past this, JSON readers disagree on what an integer is (RFC 7493)."""
_EXPONENT_FROM = 1e21
"""Smaller whole floats are written as digits, and so read back as integers."""


class MalformedError(ValueError):
    """Bytes that are not the canonical form of the record they should be; or a value that has none."""


class OtherVersionError(MalformedError):
    """Canonical bytes of a record that has other fields or values than this version's."""


def canonical(record: Record) -> bytes:
    """The RFC 8785 bytes of a record. A number that would not read back as itself raises `MalformedError`."""
    return canonical_json(record.model_dump(mode="json", by_alias=True))


def canonical_json(tree: Json) -> bytes:
    """The RFC 8785 bytes of plain JSON data."""
    for value in _leaves(tree):
        if isinstance(value, float) and value.is_integer() and MAX_INTEGER < abs(value) < _EXPONENT_FROM:
            raise MalformedError(f"the number {value!r} is too large to be sealed")
    try:
        return rfc8785.dumps(tree)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise MalformedError(f"cannot be sealed: {error}") from None


def digest(record: Record) -> str:
    """SHA-256 of the canonical bytes, in hex."""
    return hashlib.sha256(canonical(record)).hexdigest()


def read(kind: type[R], data: bytes, limit: int = MAX_BYTES) -> R:
    """The record whose canonical bytes are exactly `data`; else `MalformedError` says why not."""
    if canonical_json(strict_json(data, limit)) != data:
        raise MalformedError("not in canonical form: it was re-formatted, or names a field twice")
    try:
        record = kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise OtherVersionError(f"{place}: {first['msg']}" if place else first["msg"]) from None
    if canonical(record) != data:
        raise OtherVersionError("it lacks fields")
    return record


def strict_json(data: bytes, limit: int = MAX_BYTES, depth: int = MAX_DEPTH) -> Json:
    """Parse JSON, refusing what parsers disagree on: duplicate keys, NaN, huge numbers, nesting beyond `depth`."""
    if len(data) > limit:
        raise MalformedError(f"larger than {limit} bytes")
    try:
        tree: Json = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=_no_constant,
        )
    except UnicodeDecodeError:
        raise MalformedError("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise MalformedError(f"not JSON: {error}") from None
    except RecursionError:
        raise MalformedError(f"nested deeper than {depth}") from None
    for _ in _leaves(tree, depth):
        pass
    return tree


def _leaves(tree: Json, depth: int = MAX_DEPTH) -> Iterator[Json]:
    """Every value that holds no other, without recursion; refuses what is nested deeper than `depth`."""
    level: list[Json] = [tree]
    for _ in range(depth + 1):
        below: list[Json] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            else:
                yield value
        if not below:
            return
        level = below
    raise MalformedError(f"nested deeper than {depth}")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise MalformedError(f"the key {twice!r} is there twice")
    return fields


def _integer(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > MAX_INTEGER:
        raise MalformedError(f"the number {text[:20]} is out of range")
    return int(text)


def _finite(text: str) -> float:
    if len(text) > 64 or not math.isfinite(float(text)):
        raise MalformedError(f"the number {text[:20]} is out of range")
    return float(text)


def _no_constant(name: str) -> NoReturn:
    raise MalformedError(f"{name} is not JSON")
