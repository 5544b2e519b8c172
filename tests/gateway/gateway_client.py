"""A client of the gateway's unix socket for these tests."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boxeval.gateway.interface import PLACEHOLDER_KEY
from boxeval.spec.models import Script

MODEL = "scripted-small"
PLACEHOLDER = PLACEHOLDER_KEY


def script(*turns: dict[str, Any], **usage: Any) -> Script:
    """A script from plain data, as a suite would have it."""
    data: dict[str, Any] = {"turns": turns}
    if usage:
        data["usage"] = usage
    return Script.model_validate(data, strict=False)


class UnixConnection(http.client.HTTPConnection):
    """HTTP to a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("gateway", timeout=10)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(str(self.path))


@dataclass(frozen=True)
class Answered:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error, after checking the whole shape of OpenAI's error object."""
        (error,) = self.json.values()
        assert set(self.json) == {"error"}
        assert {"message", "type", "code"} <= set(error)
        assert isinstance(error["message"], str) and isinstance(error["type"], str)
        return str(error["code"])


def request(
    path: Path,
    target: str,
    body: bytes | None = None,
    method: str = "POST",
    key: str | None = PLACEHOLDER_KEY,
    headers: dict[str, str] | None = None,
) -> Answered:
    """One request on a connection of its own."""
    connection = UnixConnection(path)
    try:
        sent = {} if key is None else {"Authorization": f"Bearer {key}"}
        connection.request(method, target, body, {**sent, **(headers or {})})
        response = connection.getresponse()
        return Answered(response.status, response.read(), {k.lower(): v for k, v in response.getheaders()})
    finally:
        connection.close()


def chat(path: Path, base: str, **more: Any) -> Answered:
    """One chat completion with a single user message."""
    data = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], **more}
    return request(path, f"{base}/chat/completions", json.dumps(data).encode())


def raw(path: Path, data: bytes) -> bytes:
    """Send bytes as they are, end the sending side, and read all that comes."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(10)
        peer.connect(str(path))
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
        got = b""
        while piece := peer.recv(65_536):
            got += piece
        return got


def responses(path: Path, base: str, **more: Any) -> Answered:
    """One response with a single user message."""
    data = {"model": MODEL, "input": [{"type": "message", "role": "user", "content": "hi"}], **more}
    return request(path, f"{base}/responses", json.dumps(data).encode())


def messages(path: Path, base: str, **more: Any) -> Answered:
    """One message with a single user message before it, as Anthropic's clients send it."""
    data = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}], **more}
    headers = {"x-api-key": PLACEHOLDER_KEY, "anthropic-version": "2023-06-01"}
    return request(path, f"{base}/messages?beta=true", json.dumps(data).encode(), key=None, headers=headers)


def named_events(body: bytes) -> list[dict[str, Any]]:
    """Server-sent events whose name is the type of their data, which is checked."""
    *blocks, rest = body.split(b"\n\n")
    assert rest == b""
    found = []
    for block in blocks:
        name, data = block.split(b"\n")
        assert name.startswith(b"event: ") and data.startswith(b"data: ")
        found.append(json.loads(data.removeprefix(b"data: ")))
        assert found[-1]["type"] == name.removeprefix(b"event: ").decode()
    return found
