"""A client for tools that another program offers: the Model Context Protocol over stdin and stdout.

One JSON-RPC message a line. The server is started in the workspace, asked once for its tools, and killed at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from typing import Any

from interrupts import POLL_S, check

PROTOCOL = "2025-06-18"
CLIENT = {"name": "boxeval-agent", "version": "1"}
ANSWER_S = 60
LINE_BYTES = 8 * 1024 * 1024


class McpError(Exception):
    """The server cannot be started, does not answer, or answers with an error."""


class McpServer:
    """One running server. Calls of several threads wait for each other."""

    def __init__(self, name: str, command: list[str], cwd: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._number = 0
        self._held = b""
        try:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise McpError(f"{name} cannot be started: {error}") from None
        try:
            self._request(
                "initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": CLIENT}
            )
            self._send({"method": "notifications/initialized"})
        except BaseException:
            self.stop()
            raise

    def tools(self) -> list[dict[str, Any]]:
        """What the server offers: objects with `name`, `description` and `inputSchema`."""
        found, cursor = [], None
        while True:
            answer = self._request("tools/list", {"cursor": cursor} if cursor else {})
            found += [tool for tool in answer.get("tools", []) if isinstance(tool, dict)]
            cursor = answer.get("nextCursor")
            if not cursor:
                return found

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Run one tool and return its text. Raises McpError, with that text if the tool says that it failed."""
        answer = self._request("tools/call", {"name": tool, "arguments": arguments})
        parts = [part.get("text", "") for part in answer.get("content", []) if part.get("type") == "text"]
        text = "\n".join(parts)
        if answer.get("isError"):
            raise McpError(text)
        return text

    def stop(self) -> None:
        """Kill the server and what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._number += 1
            self._send({"id": self._number, "method": method, "params": params})
            answer = self._answer(self._number)
        if "error" in answer:
            raise McpError(f"{self.name}: {answer['error'].get('message', 'error')}")
        result = answer.get("result")
        return result if isinstance(result, dict) else {}

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise McpError(f"{self.name} is gone: {error}") from None

    def _answer(self, number: int) -> dict[str, Any]:
        """The answer to one request; what else the server has to say is passed over."""
        until = time.monotonic() + ANSWER_S
        while True:
            try:
                message = json.loads(self._line(until))
            except (ValueError, RecursionError):
                raise McpError(f"{self.name} does not speak the protocol") from None
            if isinstance(message, dict) and message.get("id") == number:
                return message

    def _line(self, until: float) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._held:
                if not ready.select(min(POLL_S, max(0.0, until - time.monotonic()))):
                    check()
                    if time.monotonic() >= until:
                        raise McpError(f"{self.name} did not answer within {ANSWER_S} s")
                    continue
                data = os.read(self._process.stdout.fileno(), 65_536)
                if not data or len(self._held) > LINE_BYTES:
                    raise McpError(f"{self.name} is gone" if not data else f"{self.name} answers too much")
                self._held += data
        line, _, self._held = self._held.partition(b"\n")
        return line
