"""One exchange with an extension, without the process: the bytes of a request, and the judgement of what came back.

Everything that an extension writes is hostile input. Whatever is wrong with it is a `ProtocolFault`, and whoever
catches one makes it a grading error: neither a pass nor a failure of the candidate.
"""

from __future__ import annotations

import secrets
from typing import Any, TypeVar

from pydantic import ValidationError

from boxeval.receipts.canonical import MalformedError, canonical_json, strict_json
from boxeval.spec.base import Record
from boxeval.spec.box import BoxResult
from boxeval.spec.extension import (
    DISCOVERY,
    EXTENSION,
    MESSAGE_BYTES,
    Dialect,
    Method,
)
from boxeval.spec.extension_messages import (
    ANSWERS,
    REQUESTS,
    Failure,
    Request,
    Result,
)

R = TypeVar("R", bound=Record)
ANSWER_DEPTH = 48
"""Levels of an answer. In a receipt its parts lie a few levels deeper than here."""
_SHOWN = 300


class ProtocolFault(ValueError):
    """An exchange that gives nothing to grade by. The text is one line for people, led by the method."""


def make_request(dialect: Dialect, method: Method, params: Record) -> Request:
    """A request with an id of its own."""
    protocol = f"{dialect}.{DISCOVERY if method is Method.DESCRIBE else EXTENSION}"
    given: dict[str, Any] = {
        "protocol": protocol,
        "id": secrets.token_hex(8),
        "method": method.value,
        "params": params,
    }
    return REQUESTS[method].model_validate(given)


def encode(request: Request) -> bytes:
    """The bytes for the process's stdin. Raises `ProtocolFault` past the cap."""
    data = request.model_dump_json(by_alias=True, exclude_none=True).encode()
    if len(data) > MESSAGE_BYTES:
        raise ProtocolFault(
            f"{request.method}: the request would have {len(data)} bytes, more than {MESSAGE_BYTES}"
        )
    return data


def read_answer(request: Request, box: BoxResult, stdout: bytes) -> Result:
    """The result that a process gave, by how its box ended and what it wrote to stdout. Raises `ProtocolFault`."""
    if fault := _ending(box):
        raise ProtocolFault(f"{request.method}: {fault}")
    try:
        return _parse(request, stdout)
    except _Bad as error:
        raise ProtocolFault(f"{request.method}: {error}") from None


class _Bad(ValueError):
    """A response that is none."""


def _ending(box: BoxResult) -> str | None:
    """Why the process's end says that its answer is not to be read."""
    if box.error is not None:
        return box.error
    if len(box.commands) != 1:
        return "its process left no report"
    end = box.commands[0]
    if end.timed_out:
        return f"no answer in time; it was ended after {end.wall_ms} ms"
    if end.spawn_error:
        return f"the command cannot be started: {end.spawn_error}"
    if box.oom_kills:
        return "it ran out of memory"
    if end.exit_code != 0:
        return f"it ended by signal {end.signal}" if end.signal else f"it exited {end.exit_code}"
    if end.stdout.size_bytes > MESSAGE_BYTES:
        return f"it wrote {end.stdout.size_bytes} bytes, more than {MESSAGE_BYTES}"
    if end.stdout.size_bytes == 0:
        return "it exited 0 without an answer"
    return None


def _parse(request: Request, data: bytes) -> Result:
    try:
        tree = strict_json(data, MESSAGE_BYTES, ANSWER_DEPTH)
        canonical_json(tree)  # parts of it go into the receipt, which does not carry every number
    except MalformedError as error:
        raise _Bad(f"its answer is not one JSON document: {error}") from None
    if not isinstance(tree, dict):
        raise _Bad("its answer is not a JSON object")
    for name, sent in (("protocol", request.protocol), ("id", request.id), ("method", request.method)):
        if tree.get(name) != sent:
            raise _Bad(f"its answer has {name} {_shown(tree.get(name))}, and the request has {sent!r}")
    if ("result" in tree) == ("error" in tree):
        raise _Bad("its answer needs exactly one of `result` and `error`")
    if "error" in tree:
        failure = _typed(Failure, data)
        raise _Bad(f"it answered with the error {failure.error.code}: {_line(failure.error.message)}")
    result: Result = _typed(ANSWERS[Method(request.method)], data).result
    return result


def _typed(kind: type[R], data: bytes) -> R:
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _Bad(
            f"its answer does not follow the schema at {_line(place)}: {_line(first['msg'])}"
        ) from None


def _shown(value: object) -> str:
    return "none" if value is None else _line(repr(value))


def _line(text: str) -> str:
    """One line of bounded length; whoever prints it still escapes it."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1]}…"
