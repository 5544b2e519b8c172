"""Asks a model of the gateway from outside: for the judge of a trial, whose route no box can reach."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from boxeval.gateway.interface import PLACEHOLDER_KEY
from boxeval.spec import judged

ANSWER_BYTES = 16 * 1024 * 1024
ANSWER_TOKENS = 4096
"""Where a protocol wants a limit."""


class NoAnswer(Exception):
    """The model's side failed, or answered with no text; says why."""


class Client:
    """One question at a time to one route, in its `wire`: `chat` or `messages`. `timeout_s` is for each."""

    def __init__(
        self, socket_path: Path, base_path: str, model_name: str, timeout_s: float, wire: str = "chat"
    ) -> None:
        self._path, self._base, self._model, self._timeout_s = socket_path, base_path, model_name, timeout_s
        self._wire = wire
        self._open: http.client.HTTPConnection | None = None
        self._is_over = False

    def ask(self, system: str, user: str) -> str:
        """The text of the model's answer. Raises `NoAnswer`."""
        endpoint, data = self._question(system, user)
        body = json.dumps({"model": self._model, **data})
        connection = self._open = _Local(self._path, self._timeout_s)
        try:
            connection.connect()
            if self._is_over:
                raise NoAnswer("it was given up")
            head = {"Authorization": f"Bearer {PLACEHOLDER_KEY}", "Content-Type": "application/json"}
            connection.request("POST", f"{self._base}{endpoint}", body.encode(), head)
            response = connection.getresponse()
            raw = response.read(ANSWER_BYTES + 1)
        except TimeoutError:
            raise NoAnswer(f"no answer within {self._timeout_s:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(f"the connection broke: {error}") from error
        finally:
            self._open = None
            connection.close()
        return _text_of(response.status, raw, self._wire)

    def _question(self, system: str, user: str) -> tuple[str, dict[str, Any]]:
        asked = {"role": "user", "content": user}
        if self._wire == "messages":
            return "/messages", {"max_tokens": ANSWER_TOKENS, "system": system, "messages": [asked]}
        return "/chat/completions", {"messages": [{"role": "system", "content": system}, asked]}

    def kill(self) -> None:
        """Give up the question that is on its way, from any thread; none is asked after it."""
        self._is_over = True
        if (connection := self._open) is not None and (peer := connection.sock) is not None:
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)


class _Local(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("gateway", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _text_of(status: int, raw: bytes, wire: str) -> str:
    try:
        data: Any = json.loads(raw)
    except ValueError:
        raise NoAnswer(f"an answer that is no JSON, with status {status}") from None
    if status != 200:
        fault = data.get("error") if isinstance(data, dict) else None
        said = fault.get("message") if isinstance(fault, dict) else None
        raise NoAnswer(f"status {status}: {_valid(str(said)[:200])}")
    try:
        if wire == "messages":
            text, end = "".join(part.get("text", "") for part in data["content"]), data.get("stop_reason")
        else:
            choice = data["choices"][0]
            text, end = choice["message"]["content"], choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise NoAnswer("an answer without a message") from None
    if not isinstance(text, str) or not text.strip():
        raise NoAnswer("an answer without text")
    if end not in ("stop", "end_turn", None):
        raise NoAnswer(f"an answer that ended by {end!r}")
    return _valid(text[: judged.ANSWER_BYTES + 1])  # so much is too long already


def _valid(text: str) -> str:
    """The text without halves of surrogate pairs, which no receipt can carry."""
    return text.encode("utf-8", "replace").decode()
