"""A pull is bounded, and its failure says in one line which of three things went wrong."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, cast

import docker
import pytest

from boxeval.errors import EngineError, ImageError
from boxeval.sandbox import pull as pull_module
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.pull import RegistryError, pull

Answer = Callable[[BaseHTTPRequestHandler], None]


class FakeEngine:
    """An engine that only knows how to fail a pull."""

    def __init__(self) -> None:
        self.pulls = 0
        self.answer: Answer = lambda _: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.pulls += 1
                outer.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = False
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        host = f"tcp://127.0.0.1:{self.server.server_port}"
        self.client = docker.APIClient(base_url=host, version="1.41", timeout=5)
        self.engine = Engine(host, self.client)
        self.engine.__dict__["facts"] = SimpleNamespace(architecture="x86_64")

    def close(self) -> None:
        self.client.close()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    monkeypatch.setattr(pull_module, "_unreachable", {})
    fake = FakeEngine()
    yield fake
    fake.close()


def refuses(status: int, message: str) -> Answer:
    """The engine refuses at once, as it does when the registry denies the manifest."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        body = json.dumps({"message": message}).encode()
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer


def tells(*messages: dict[str, Any]) -> Answer:
    """The engine answers 200 and tells its progress, an error among it."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        for message in messages:
            request.wfile.write(json.dumps(message).encode() + b"\r\n")

    return answer


NOT_FOUND = [
    "manifest for example.com/a:b not found: manifest unknown: manifest unknown",
    "pull access denied for a, repository does not exist or may require 'docker login': denied",
]
WRONG_ARCHITECTURE = ["no matching manifest for linux/amd64 in the manifest list entries"]
UNREACHABLE = [
    'Get "https://example.com/v2/": dial tcp: lookup example.com: no such host',
    'Get "https://example.com/v2/": dial tcp 10.0.0.1:443: connect: connection refused',
    'Get "https://example.com/v2/": net/http: request canceled (Client.Timeout exceeded)',
    "toomanyrequests: You have reached your pull rate limit",
    "received unexpected HTTP status: 503 Service Unavailable",
]


def failure(fake: FakeEngine, reference: str = "example.com/a:b") -> ImageError:
    with pytest.raises(ImageError) as caught:
        pull(fake.engine, reference, lambda _: None)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{reference}: ")
    return caught.value


@pytest.mark.parametrize("said", NOT_FOUND)
def test_not_found(fake: FakeEngine, said: str) -> None:
    fake.answer = refuses(404, said)
    error = failure(fake)
    assert "no such image here or in example.com; correct the name" in str(error)
    assert not isinstance(error, RegistryError)


@pytest.mark.parametrize("said", WRONG_ARCHITECTURE)
def test_wrong_architecture(fake: FakeEngine, said: str) -> None:
    fake.answer = tells({"status": "Pulling from a"}, {"error": said, "errorDetail": {"message": said}})
    assert "not made for this engine's architecture (x86_64)" in str(failure(fake))


@pytest.mark.parametrize("said", UNREACHABLE)
def test_unreachable(fake: FakeEngine, said: str) -> None:
    fake.answer = refuses(500, said)
    error = failure(fake)
    assert isinstance(error, RegistryError)
    assert "the registry example.com cannot be reached" in str(error)
    assert said in str(error)


def test_an_unreachable_registry_is_asked_once(fake: FakeEngine) -> None:
    fake.answer = refuses(500, UNREACHABLE[0])
    failure(fake, "example.com/a:b")
    failure(fake, "example.com/c:d")
    assert fake.pulls == 1
    failure(fake, "other.example.com/a:b")
    assert fake.pulls == 2


def test_a_missing_image_is_asked_for_again(fake: FakeEngine) -> None:
    fake.answer = refuses(404, NOT_FOUND[0])
    failure(fake)
    failure(fake)
    assert fake.pulls == 2


def test_silence_is_bounded(fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_module, "SILENCE_S", 0.3)
    done = threading.Event()
    fake.answer = lambda _: cast(None, done.wait(20))
    started = time.monotonic()
    error = failure(fake)
    done.set()
    assert time.monotonic() - started < 5
    assert isinstance(error, RegistryError)
    assert "gave no answer in 0.3 s" in str(error)


def test_an_error_without_a_known_cause_keeps_the_engines_words(fake: FakeEngine) -> None:
    fake.answer = tells({"error": "no space\nleft on device"})
    assert str(failure(fake)).endswith("The engine said: no space left on device")


def test_an_engine_that_hangs_up_is_no_registrys_fault(fake: FakeEngine) -> None:
    fake.answer = lambda _: None
    with pytest.raises(EngineError, match="the engine hung up") as caught:
        pull(fake.engine, "example.com/a:b", lambda _: None)
    assert not isinstance(caught.value, ImageError)


def test_what_is_no_name_is_not_asked_for(fake: FakeEngine) -> None:
    assert "not an image name" in str(failure(fake, "http://example.com/a"))
    assert fake.pulls == 0


def test_success(fake: FakeEngine) -> None:
    notes: list[str] = []
    fake.answer = tells({"status": "Pulling from a"}, {"status": "Status: Downloaded newer image"})
    pull(fake.engine, "example.com/a:b", notes.append)
    assert notes == ["pulling example.com/a:b"]
