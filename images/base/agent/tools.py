"""The six tools: what the model is told about them, and what each one does.

A tool never ends the session. Whatever goes wrong becomes its result, so that the model can adapt.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mcp import McpError, McpServer
from shell import Shell
from workspace import Denied, ToolError, Workspace

OUTPUT_BYTES = 50 * 1024
BASH_DEFAULT_S = 60
BASH_LIMIT_S = 600
CHANGERS = frozenset({"write", "edit"})
WRITERS = CHANGERS | {"bash"}
VERIFIED = "exit code 0\n"
"""How the result of a command begins that ended well."""


@dataclass(frozen=True)
class Result:
    """What the model gets to read about a call."""

    text: str
    error: bool = False
    blocked: bool = False


@dataclass(frozen=True)
class Tool:
    """A tool's description and JSON Schema properties; all of `required` must be given."""

    description: str
    properties: dict[str, dict[str, Any]]
    required: tuple[str, ...]

    def schema(self, name: str) -> dict[str, Any]:
        """The entry in a request's `tools`."""
        parameters = {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }
        function = {"name": name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _integer(description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description}


TOOLS = {
    "read": Tool(
        "Read a text file.",
        {
            "path": _string("File to read."),
            "offset": _integer("First line to show, counted from 1."),
            "limit": _integer("How many lines to show."),
        },
        ("path",),
    ),
    "write": Tool(
        "Create a file, or replace all of it. Missing directories are made.",
        {"path": _string("File to write."), "content": _string("Its whole content.")},
        ("path", "content"),
    ),
    "edit": Tool(
        "Replace text in a file. The text must occur exactly once, unless `all` is true.",
        {
            "path": _string("File to change."),
            "old": _string("Text to find."),
            "new": _string("Text to put in its place."),
            "all": {"type": "boolean", "description": "Replace every occurrence."},
        },
        ("path", "old", "new"),
    ),
    "bash": Tool(
        "Run a bash command in the workspace. What it starts in the background ends with it.",
        {
            "command": _string("The command."),
            "timeout_s": _integer(f"Seconds before it is killed: {BASH_DEFAULT_S} if not given."),
        },
        ("command",),
    ),
    "glob": Tool(
        "List files whose path matches a pattern such as **/*.py.",
        {"pattern": _string("The pattern."), "path": _string("Directory to look in.")},
        ("pattern",),
    ),
    "grep": Tool(
        "Find lines that match a regular expression (Python syntax).",
        {
            "pattern": _string("The regular expression."),
            "path": _string("File or directory to search."),
            "glob": _string("Only files whose name matches this, such as *.py."),
        },
        ("pattern",),
    ),
}

TYPES = {"string": str, "integer": int, "boolean": bool}


class Toolbox:
    """Runs tool calls in one workspace; several threads may do so at the same time."""

    def __init__(
        self, workspace: Workspace, read_only: bool = False, servers: Sequence[McpServer] = ()
    ) -> None:
        self._workspace = workspace
        self._read_only = read_only
        self._shell = Shell(str(workspace.root))
        self._changing = threading.Lock()  # two edits of one file in a batch must not lose one of them
        self._tools: dict[str, Callable[..., str]] = {
            "read": self._read,
            "write": self._write,
            "edit": self._edit,
            "bash": self._bash,
            "glob": self._glob,
            "grep": self._grep,
        }
        self._remote = {
            f"{server.name}__{tool.get('name')}": (server, tool)
            for server in servers
            for tool in server.tools()
        }

    def schemas(self) -> list[dict[str, Any]]:
        """For a request's `tools`. What permissions forbid is offered too: being refused is an answer."""
        own = [tool.schema(name) for name, tool in TOOLS.items()]
        return own + [_remote_schema(name, tool) for name, (_, tool) in self._remote.items()]

    def run(self, name: str, arguments: str) -> Result:
        """Run one call and say what came of it, in at most 50 KiB."""
        try:
            if name not in TOOLS and name not in self._remote:
                raise ToolError(f"there is no tool {name}; there are {', '.join((*TOOLS, *self._remote))}")
            if self._read_only and (name in WRITERS or name in self._remote):
                raise Denied(f"{name} is not allowed in a read-only session")
            if name in self._remote:
                return Result(_bounded(self._call_remote(name, arguments)))
            return Result(_bounded(self._tools[name](**_arguments(TOOLS[name], arguments))))
        except ToolError as error:
            return Result(_bounded(f"error: {error}"), error=True, blocked=isinstance(error, Denied))
        except OSError as error:
            return Result(_bounded(f"error: {error.strerror or error}"), error=True)
        except Exception as error:
            return Result(_bounded(f"error: {type(error).__name__}: {error}"), error=True)

    def stop(self) -> None:
        """Kill what is running."""
        self._shell.stop()

    def _call_remote(self, name: str, arguments: str) -> str:
        server, tool = self._remote[name]
        try:
            return server.call(tool["name"], _object(arguments))
        except McpError as error:
            raise ToolError(str(error)) from None

    def _read(self, path: str, offset: int = 1, limit: int | None = None) -> str:
        lines = self._workspace.read(path).splitlines(keepends=True)
        start = offset - 1
        return "".join(lines[start : None if limit is None else start + limit])

    def _write(self, path: str, content: str) -> str:
        with self._changing:
            size = self._workspace.write(path, content)
        return f"wrote {size} bytes to {path}"

    def _edit(self, path: str, old: str, new: str, all: bool = False) -> str:
        if not old:
            raise ToolError("old: must not be empty")
        with self._changing:
            text = self._workspace.read(path)
            count = text.count(old)
            if count == 0:
                raise ToolError(f"{path} does not contain the text to replace")
            if count > 1 and not all:
                raise ToolError(f"{path} contains the text {count} times; give more of its surroundings")
            self._workspace.write(path, text.replace(old, new))
        return f"replaced {count} time{'' if count == 1 else 's'} in {path}"

    def _bash(self, command: str, timeout_s: int = BASH_DEFAULT_S) -> str:
        timeout_s = min(timeout_s, BASH_LIMIT_S)
        ended = self._shell.run(command, timeout_s, OUTPUT_BYTES - 200)
        if ended.timed_out:
            raise ToolError(f"killed after {timeout_s} s\n{ended.output}")
        return f"exit code {ended.exit_code}\n{ended.output}"

    def _glob(self, pattern: str, path: str = ".") -> str:
        try:
            found = list(self._workspace.resolve(path).glob(pattern))
        except (ValueError, NotImplementedError, IndexError) as error:
            raise ToolError(f"pattern: {error}") from None
        names = sorted(self._workspace.name(each) for each in found if self._is_file(each))
        return "\n".join(names) or "no files found"

    def _grep(self, pattern: str, path: str = ".", glob: str = "*") -> str:
        try:
            expression = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolError(f"pattern: {error}") from None
        top = self._workspace.resolve(path)
        hits, size = [], 0
        for file in [top] if top.is_file() else _files(top, glob):
            for number, line in self._lines(file):
                if expression.search(line):
                    hits.append(f"{self._workspace.name(file)}:{number}:{line}")
                    size += len(hits[-1])
            if size > OUTPUT_BYTES:
                break
        return "\n".join(hits) or "no matches"

    def _lines(self, file: Path) -> Iterator[tuple[int, str]]:
        """Numbered lines of a text file; none of what is binary, too large or cannot be read."""
        try:
            text = self._workspace.read(str(file))
        except (ToolError, OSError):
            return
        if "\0" not in text:
            yield from enumerate(text.splitlines(), start=1)

    def _is_file(self, path: Path) -> bool:
        """Whether this is a file of the workspace, after following links."""
        try:
            return self._workspace.resolve(str(path)).is_file()
        except ToolError:
            return False


def _files(top: Path, pattern: str) -> Iterator[Path]:
    """Regular files below `top` in a fixed order, links not followed."""
    for folder, below, names in os.walk(top):
        below[:] = sorted(name for name in below if name != ".git")
        for name in sorted(names):
            path = Path(folder, name)
            if fnmatch(name, pattern) and not path.is_symlink():
                yield path


def _remote_schema(name: str, tool: dict[str, Any]) -> dict[str, Any]:
    """A server's tool, in a request's `tools`. What it takes is for the server to check."""
    parameters = tool.get("inputSchema") or {"type": "object"}
    function = {"name": name, "description": tool.get("description") or "", "parameters": parameters}
    return {"type": "function", "function": function}


def _object(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise ToolError("the arguments are not JSON") from None
    if not isinstance(given, dict):
        raise ToolError("the arguments are not a JSON object")
    return given


def _arguments(tool: Tool, text: str) -> dict[str, Any]:
    """Read a call's arguments against the tool's schema. Raises ToolError naming the first mistake."""
    given = _object(text)
    for name in tool.required:
        if name not in given:
            raise ToolError(f"{name}: is missing")
    for name, value in given.items():
        if name not in tool.properties:
            raise ToolError(f"{name}: is unknown; there are {', '.join(tool.properties)}")
        kind = tool.properties[name]["type"]
        if type(value) is not TYPES[kind]:  # not isinstance: true is no integer
            raise ToolError(f"{name}: must be of type {kind}")
        if kind == "integer" and given[name] < 1:
            raise ToolError(f"{name}: must be at least 1")
    return given


def _bounded(text: str) -> str:
    """At most 50 KiB, cut at a character."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= OUTPUT_BYTES:
        return data.decode()
    note = f"\n[{len(data)} bytes in all, cut here]"
    return data[: OUTPUT_BYTES - len(note)].decode("utf-8", "ignore") + note
