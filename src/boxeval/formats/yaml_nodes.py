"""YAML's events as a tree of nodes with places, bounded in depth, nodes and aliases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from boxeval.formats.place import Position

MAX_DEPTH = 64
MAX_ALIASES = 64

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Node:
    """One of scalar (`text`), list (`items`) or mapping (`pairs`). `plain`: a scalar without quotes."""

    position: Position
    tag: str | None = None
    text: str | None = None
    plain: bool = False
    items: list[Node] = field(default_factory=list)
    pairs: list[tuple[Node, Node]] | None = None


class Refused(yaml.MarkedYAMLError):
    """Well-formed YAML that we do not read."""

    def __init__(self, message: str, mark: Any) -> None:
        super().__init__(problem=message, problem_mark=mark)


def compose(text: str) -> Node | None:
    """The one document's root; None if there is none. Raises `yaml.YAMLError`."""
    events = yaml.parse(text, Loader=_LOADER)
    root: Node | None = None
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise Refused("a second document starts here; a file holds one", event.start_mark)
            if event.version or event.tags:
                raise Refused("directives such as `%YAML` are not supported", event.start_mark)
        elif isinstance(event, yaml.NodeEvent):
            root = _Composer(events).node(event, 1)
    return root


class _Composer:
    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.anchors: dict[str, Node] = {}
        self.aliases = 0

    def node(self, event: Any, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise Refused(f"is nested deeper than {MAX_DEPTH} levels", event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        node = Node((event.start_mark.line + 1, event.start_mark.column + 1), event.tag)
        if isinstance(event, yaml.ScalarEvent):
            node.text, node.plain = event.value, event.style in (None, "")
        elif isinstance(event, yaml.SequenceStartEvent):
            node.items = [self.node(item, depth + 1) for item in self.until(yaml.SequenceEndEvent)]
        else:
            node.pairs = [
                (self.node(key, depth + 1), self.node(next(self.events), depth + 1))
                for key in self.until(yaml.MappingEndEvent)
            ]
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def alias(self, event: Any) -> Node:
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise Refused(f"has more than {MAX_ALIASES} aliases", event.start_mark)
        if event.anchor not in self.anchors:
            raise Refused(f"alias `*{event.anchor}` has no anchor before it", event.start_mark)
        return self.anchors[event.anchor]

    def until(self, end: type) -> Iterator[Any]:
        for event in self.events:
            if isinstance(event, end):
                return
            yield event
