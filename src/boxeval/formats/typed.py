"""From plain values to a frozen type, with pydantic's errors in the words and places of the user's file."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from boxeval.errors import Problem
from boxeval.formats import wording
from boxeval.formats.place import Path, Step, dotted, show
from boxeval.formats.yaml_source import Source
from boxeval.spec.base import Record
from boxeval.spec.metrics import did_you_mean

R = TypeVar("R", bound=Record)
MAX_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class Refusals:
    """Keys and values that are known but refused, with what to say: by type, then key."""

    keys: Mapping[type[Record], Mapping[str, str]] = field(default_factory=dict)
    values: Mapping[str, Callable[[Any], str | None]] = field(default_factory=dict)


def check(source: Source, kind: type[R], refusals: Refusals | None = None) -> tuple[R | None, list[Problem]]:
    """The document as a `kind` (None if it is not one), and every problem, those of the YAML included."""
    problems = list(source.problems)
    if source.tree is None:
        return None, problems or [source.problem((), "is empty")]
    if not isinstance(source.tree, dict):
        return None, [*problems, source.problem((), "must be a mapping of keys to values")]
    try:
        value = kind.model_validate_json(json.dumps(source.tree), by_alias=True, by_name=False)
    except ValidationError as error:
        told = _Teller(source, kind, refusals or Refusals()).tell(error)
        seen = {problem.path for problem in problems if problem.path}
        return None, problems + [problem for problem in told if problem.path not in seen]
    return value, problems


@dataclass(frozen=True, slots=True)
class _Fault:
    """One error of pydantic: `path` exists in the document, `rest` is what pydantic's location adds to it."""

    path: Path
    rest: tuple[Step, ...]
    type: str
    context: Mapping[str, Any]
    message: str

    @property
    def in_union(self) -> bool:
        lone = len(self.rest) == 1 and (self.type == "missing" or self.rest[0] == "[key]")
        return bool(self.rest) and not lone


class _Teller:
    def __init__(self, source: Source, kind: type[Record], refusals: Refusals) -> None:
        self.source = source
        self.kind = kind
        self.refusals = refusals

    def tell(self, error: ValidationError) -> list[Problem]:
        faults = [
            self.placed((), e["loc"], e["type"], e.get("ctx", {}), e["msg"])
            for e in error.errors(include_url=False, include_input=False)
        ]
        return list(dict.fromkeys(self.resolve(faults)))

    def data(self, path: Path) -> Any:
        value = self.source.tree
        for step in path:
            value = value[step]
        return value

    def placed(
        self, path: Path, location: tuple[Step, ...], kind: str, context: Mapping[str, Any], message: str
    ) -> _Fault:
        value = self.data(path)
        for index, step in enumerate(location):
            known = isinstance(value, dict) and step in value
            if not known and not (isinstance(value, list) and isinstance(step, int) and step < len(value)):
                return _Fault(path, location[index:], kind, context, message)
            value, path = value[step], (*path, step)
        return _Fault(path, (), kind, context, message)

    def resolve(self, faults: Iterable[_Fault]) -> Iterable[Problem]:
        """Problems of faults, those of a union's branches reduced to the branch that was meant."""
        unions: dict[Path, list[_Fault]] = {}
        for fault in faults:
            if fault.in_union:
                unions.setdefault(fault.path, []).append(fault)
            elif problem := self.problem(fault):
                yield problem
        for path, members in unions.items():
            yield from self.union(path, members)

    def union(self, path: Path, faults: list[_Fault]) -> Iterable[Problem]:
        branches: dict[str, list[_Fault]] = {}
        for fault in faults:
            inner = self.placed(path, fault.rest[1:], fault.type, fault.context, fault.message)
            branches.setdefault(str(fault.rest[0]), []).append(inner)
        value = self.data(path)
        fitting = [tag for tag in branches if wording.branch_shape(tag) == wording.shape(value)]
        if len(fitting) > 1:
            complete = [
                tag
                for tag in fitting
                if not any(f.type == "missing" and f.path == path for f in branches[tag])
            ]
            if len(complete) != 1:
                complete = [tag for tag in fitting if not any(_is_stranger(f, path) for f in branches[tag])]
            if len(complete) != 1:
                needs = [f"`{key}`" for model in self.models(path) for key in _required(model)[:1]]
                yield self.source.problem(path, f"must have exactly one of {', '.join(needs)}")
                return
            fitting = complete
        if fitting:
            yield from self.resolve(branches[fitting[0]])
            return
        text = self.refused_value(path) or wording.wrong_type(
            list(branches), value, self.source.unquoted.get(path)
        )
        yield self.source.problem(path, text)

    def problem(self, fault: _Fault) -> Problem | None:
        path = fault.path
        if fault.type == "missing":
            return self.missing(path, str(fault.rest[-1]))
        if fault.rest:
            return self.source.problem(
                path, f"this key {wording.message(fault.type, fault.context, path[-1])}", at_key=True
            )
        if fault.type == "extra_forbidden":
            return self.unknown_key(path)
        if refused := self.refused_value(path):
            return self.source.problem(path, refused)
        value = self.data(path)
        if fault.type.startswith("union_tag_"):
            return self.source.problem(path, wording.tag(value, fault.context))
        if fault.type == "too_short" and value:
            return None  # its items have problems of their own, and pydantic counts only the good ones
        if branch := wording.WANTED.get(fault.type):
            return self.source.problem(
                path, wording.wrong_type([branch], value, self.source.unquoted.get(path))
            )
        return self.source.problem(path, wording.message(fault.type, fault.context, value, fault.message))

    def missing(self, path: Path, key: str) -> Problem | None:
        refused = {name for model in self.models(path) for name in self.refusals.keys.get(model, {})}
        if refused & self.data(path).keys():
            return None
        hint = "; write `version: 2`" if (path, key) == ((), "version") else ""
        return self.source.problem(path, f"key `{key}` is missing{hint}")

    def unknown_key(self, path: Path) -> Problem:
        key = str(path[-1])
        models = self.models(path[:-1])
        for model in models:
            if said := self.refusals.keys.get(model, {}).get(key):
                return self.source.problem(path, f"`{key}` {said}", at_key=True)
        known = [f.alias or name for model in models for name, f in model.model_fields.items()]
        message = f"unknown key {show(key)}{did_you_mean(key, known)}"
        return Problem(self.source.file, dotted(path[:-1]), message, *self.source.key_position(path))

    def refused_value(self, path: Path) -> str | None:
        says = self.refusals.values.get(str(path[-1])) if path else None
        return says(self.data(path)) if says else None

    def models(self, path: Path) -> list[type[Record]]:
        return list(_models_at(self.kind, path))


def _is_stranger(fault: _Fault, path: Path) -> bool:
    """Whether it is about a key of the value at `path` that the branch does not have."""
    return fault.type == "extra_forbidden" and fault.path[:-1] == path


def _models_at(annotation: Any, path: Path) -> Iterable[type[Record]]:
    """Every record type that may stand at `path` below a value of this type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        yield from _models_at(arguments[0], path)
    elif origin in (typing.Union, types.UnionType):
        for argument in arguments:
            yield from _models_at(argument, path)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not path:
            yield typing.cast(type[Record], annotation)
        for field_info in annotation.model_fields.values():
            if path and field_info.alias == path[0]:
                yield from _models_at(field_info.annotation, path[1:])
    elif path and origin in (tuple, list):
        yield from _models_at(arguments[0], path[1:])
    elif path and origin is dict:
        yield from _models_at(arguments[1], path[1:])


def _required(model: type[Record]) -> list[str]:
    return [f.alias or name for name, f in model.model_fields.items() if f.is_required()]
