"""What a provider would do for a request beside answering it: search, fetch, run or connect, with a network of its own.

A candidate without a network must not have that one instead (docs/adr/0019-hosted-tools.md). It can write its requests
itself, whatever its agent does, so this is decided on the way to the provider. Tools that a provider would run are
taken out, since some agents offer them by default; places that it would fetch from are refused. What is not known to
be harmless is taken for a tool of the provider's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from boxeval.gateway.interface import malformed

Data = Mapping[str, Any]

_OWN = {
    "chat": ("function", "custom"),
    "responses": ("function", "custom", "local_shell", "apply_patch", "computer", "tool_search"),
    "messages": ("custom", "bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_"),
}
"""How the kinds of tools begin that the client itself runs, by protocol, and those that reach nothing."""
_HOSTED_KEYS = ("web_search_options", "mcp_servers", "plugins", "prompt")
"""Of a request: a search, servers to connect to, and what is stored at the provider and may name tools."""
_NAMESPACE = "namespace"
_PLACES = {"image_url": ("image_url",), "input_image": ("image_url",), "input_file": ("file_url",)}
"""Kinds of parts of a message with the keys whose value may be a place to fetch from."""
_SOURCED = ("image", "document")


def confined(wire: str, data: Data) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A request without what its provider would reach for it, and the names of what was taken out.

    Raises `RequestError` for a part of a message that the provider would fetch.
    """
    for place in _fetched(data):
        raise malformed(
            f"{place[:200]!r} would be fetched by the provider; send the content itself", "hosted_refused"
        )
    withheld = [key for key in _HOSTED_KEYS if data.get(key) is not None]
    kept = {key: value for key, value in data.items() if key not in withheld}
    if isinstance(tools := kept.get("tools"), list):
        kept["tools"] = list(_own(wire, tools, withheld))
        if not kept["tools"]:
            kept = {key: value for key, value in kept.items() if key not in ("tools", "tool_choice")}
    return kept, tuple(withheld)


def _own(wire: str, tools: list[Any], withheld: list[str]) -> Iterator[Any]:
    for tool in tools:
        kind = tool.get("type") if isinstance(tool, dict) else None
        if isinstance(tool, dict) and kind == _NAMESPACE and isinstance(tool.get("tools"), list):
            yield {**tool, "tools": list(_own(wire, tool["tools"], withheld))}
        elif _is_own(wire, kind) or (kind == "shell" and _is_local(tool)):
            yield tool
        else:
            withheld.append(str(kind)[:64])


def _is_own(wire: str, kind: object) -> bool:
    if kind is None:
        return wire == "messages"  # there a tool of the client's needs no kind
    return isinstance(kind, str) and kind.startswith(_OWN[wire])


def _is_local(tool: Data) -> bool:
    """Whether a shell of this request is the client's."""
    place = tool.get("environment")
    return place is None or (isinstance(place, dict) and place.get("type") == "local")


def _fetched(data: Data) -> Iterator[str]:
    """Places in messages that are no data themselves. Input of tool calls is text of the model's, whatever it says."""
    left: list[Any] = [data.get(key) for key in ("messages", "input", "system")]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left.extend(one)
        elif isinstance(one, dict):
            kind = one.get("type")
            if kind == "tool_use":
                continue
            yield from _places(one, kind)
            left.extend(one.values())


def _places(part: Data, kind: object) -> Iterator[str]:
    values = [part.get(key) for key in _PLACES.get(kind, ())] if isinstance(kind, str) else []
    source = part.get("source") if kind in _SOURCED else None
    if isinstance(source, dict) and source.get("type") == "url":
        values.append(source.get("url"))
    for value in values:
        place = value.get("url") if isinstance(value, dict) else value
        if isinstance(place, str) and not place.lower().startswith("data:"):
            yield place
