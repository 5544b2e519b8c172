"""A client for OpenAI Chat Completions: one request, one reply, and few retries.

A 4xx answer is final, since asking the same again would fail the same way. After a lost connection or a 5xx
answer the request is sent again, twice at most.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from interrupts import interruptible

TIMEOUT_S = 600
RETRY_DELAYS_S = (0.2, 1.0)
REPLY_BYTES = 16 * 1024 * 1024


class ModelError(Exception):
    """The model cannot be reached, refuses, or does not speak the protocol."""


@dataclass(frozen=True)
class Call:
    """A tool call as the model wrote it; `arguments` should be a JSON object, but nothing says that it is."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """One answer: `message` as received (it goes back in the next request), and what it says."""

    message: dict[str, object]
    text: str | None
    calls: tuple[Call, ...]
    usage: dict[str, int | None]


class ChatClient:
    """Talks to one model. Each request has a connection of its own, so a long tool run cannot outlive it."""

    def __init__(self, base_url: str, api_key: str, model: str) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ModelError(f"OPENAI_BASE_URL: not a web address: {base_url!r}")
        secure = parts.scheme == "https"
        self._connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._host, self._port = parts.hostname, parts.port
        self._path = parts.path.rstrip("/") + "/chat/completions"
        self._headers = {
            "Authorization": f"Bearer {api_key}",
            "Content-Type": "application/json",
            "User-Agent": "boxeval-agent/1",
        }
        self._model = model

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> ChatClient:
        """Raises ModelError naming the variable that is missing."""
        names = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "BOXEVAL_MODEL")
        missing = [name for name in names if not environ.get(name)]
        if missing:
            raise ModelError(f"{missing[0]} is not set")
        return cls(*(environ[name] for name in names))

    def complete(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Reply:
        """Ask for the next message. Raises ModelError."""
        offered = {"tools": tools} if tools else {}
        body = json.dumps({"model": self._model, "messages": messages, **offered}).encode()
        for delay in (*RETRY_DELAYS_S, None):
            try:
                with interruptible():
                    status, answer = self._post(body)
            except (OSError, http.client.HTTPException) as error:
                failure = f"no answer: {type(error).__name__}: {error}"
            else:
                if status == 200:
                    return read_reply(answer)
                failure = f"HTTP {status}: {_error_text(answer)}"
                if status < 500:
                    raise ModelError(failure)
            if delay is None:
                raise ModelError(failure)
            with interruptible():
                time.sleep(delay)
        raise AssertionError("the last try returns or raises")

    def _post(self, body: bytes) -> tuple[int, bytes]:
        connection = self._connect(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request("POST", self._path, body, self._headers)
            response = connection.getresponse()
            return response.status, response.read(REPLY_BYTES)
        finally:
            connection.close()


def read_reply(answer: bytes) -> Reply:
    """Take a `chat.completion` apart. Raises ModelError."""
    try:
        body = json.loads(answer)
        message = body["choices"][0]["message"]
        text = message.get("content")
        calls = tuple(
            Call(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        )
        usage = body.get("usage") or {}
        used = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ModelError(f"the answer is no chat completion: {error!r}") from None
    strings = [value for call in calls for value in (call.id, call.name, call.arguments)]
    if not all(isinstance(value, str) for value in strings) or not isinstance(text, (str, type(None))):
        raise ModelError("the answer is no chat completion: a string is missing")
    return Reply(message, text, calls, used)


def _error_text(answer: bytes) -> str:
    """The message of an error object, else the start of whatever came."""
    try:
        error = json.loads(answer)["error"]
        return f"{error.get('code')}: {error.get('message')}"[:500]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return answer[:200].decode("utf-8", "replace")
