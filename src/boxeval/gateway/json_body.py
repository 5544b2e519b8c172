"""Reading JSON: a request's as strictly as a hostile peer deserves, an answer's as far as it is understood."""

from __future__ import annotations

import json
import math
from typing import Any

from boxeval.gateway.interface import Heard, malformed
from boxeval.spec.base import SAFE

SNAPSHOT_CHARACTERS = 16
"""A shorter text may well come again in a piece of its own."""
TEXT_CHARACTERS = 1024 * 1024


def read_json(body: bytes) -> Any:
    """Strict JSON: UTF-8, no NaN or Infinity, bounded depth and digits. Raises `RequestError`."""
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise malformed("the body is nested too deeply", "invalid_json") from None
    except ValueError as error:
        raise malformed(f"the body is not JSON: {error}", "invalid_json") from None


def weight_of(body: bytes) -> int:
    """About how many bytes of memory its JSON takes, at most: what is empty takes 25 times what it is written with."""
    containers = body.count(b"[") + body.count(b"{")
    return len(body) + 72 * containers + 30 * body.count(b'"') + 32 * body.count(b",")


def read_object(data: Any) -> dict[str, Any]:
    """The body as an object with a model and a `stream` that is a boolean, which all protocols share."""
    if not isinstance(data, dict):
        raise malformed("the body must be a JSON object")
    if not isinstance(data.get("model"), str):
        raise malformed("model: must be a string")
    if not isinstance(data.get("stream") or False, bool):
        raise malformed("stream: must be true or false")
    return data


def objects(value: Any, name: str) -> list[dict[str, Any]]:
    """A list of objects, which may be absent."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise malformed(f"{name}: must be a list of objects")
    return value


def text_of(content: Any, name: str) -> str:
    """The words of a content that is a string or a list of parts; parts without text count for nothing."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in objects(content, name)]
    return "\n".join(text for text in parts if isinstance(text, str))


def compact_text(value: Any) -> str:
    """JSON as one text, for what is looked at as words."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def role_of(message: Any, known: frozenset[str], name: str) -> str:
    """Who said a message."""
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str) or role not in known:
        raise malformed(f"{name}: must be an object with a known role")
    return role


def at(data: Any, *path: str) -> Any:
    """What an answer of a provider holds at a path of keys; None if it is not shaped so."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def count(data: Any, *path: str) -> int:
    """A number of tokens at a path of keys; 0 for whatever cannot be one."""
    value = at(data, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= SAFE else 0


def listed(data: Any, *path: str) -> list[dict[str, Any]]:
    """The objects of a list at a path of keys."""
    value = at(data, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def hear_text(delta: Any, heard: Heard) -> None:
    """Add a piece of the model's words. One that begins with all that came before is a snapshot, not a piece."""
    if not isinstance(delta, str) or not delta:
        return
    if (
        len(heard.text) >= SNAPSHOT_CHARACTERS
        and len(delta) > len(heard.text)
        and delta.startswith(heard.text)
    ):
        heard.snapshots += 1
        heard.text = delta
    elif len(heard.text) < TEXT_CHARACTERS:
        heard.text += delta


def hear_id(message_id: Any, heard: Heard) -> None:
    """Note which message this is, if it is told."""
    if isinstance(message_id, str) and message_id:
        heard.message_id = message_id


def hear_call(call_id: Any, heard: Heard) -> None:
    """Note a tool call by its id."""
    if isinstance(call_id, str) and call_id:
        heard.calls.add(call_id)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value
