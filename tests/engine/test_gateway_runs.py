"""Whole runs against a real model's stand-in, its cassette, and hosts beyond the box."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from boxeval.errors import UsageError
from boxeval.receipts.blobs import BlobStore
from boxeval.settings import Settings
from engine_runs import Silent, forget, run, settings_in, write_suite
from provider import answers, provider

KEY = "sk-canary-7d1f5c-0123456789"
HEAD = """\
version: 2
suite: {{id: test, title: Test, visibility: local}}
defaults: {{policy: small.yaml, timeoutMs: 30000}}
models:
  real: {{upstream: "{url}", model: big-model, key: LAB_KEY, pricing: {{input: 2, output: 8}}}}
  taped: {{replay: tape.jsonl}}
matrix: {{targets: [{{id: one, model: {model}}}]}}
"""
TASKS = """
tasks:
  - id: ask
    secrets: [LAB_KEY]
    workspace: {kind: inline, files: {a: "one\\n"}}
    runner: {kind: scripted, prompt: "Say it."}
    verify: {commands: ["env"]}
"""


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    made = settings_in(tmp_path / "bx", cache)
    yield made
    forget(made)


def keyring(directory: Path, url: str) -> Path:
    place = directory / "keyring.json"
    place.write_text(json.dumps({"LAB_KEY": {"env": "LAB_SECRET", "url": url}}))
    place.chmod(0o600)
    return place


@pytest.mark.contract("G50", "P21", "S21")
def test_a_real_model_is_asked_recorded_and_replayed_and_its_key_stays_outside(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_SECRET", KEY)
    tape, notes = tmp_path / "suite" / "tape.jsonl", Silent()
    # The provider gives the key away in its answer, and the agent prints the answer.
    with provider(answers(f"The key is {KEY}.")) as playing:
        suite = write_suite(tmp_path / "suite", TASKS, HEAD.format(url=playing.url, model="real"))
        tape.touch()  # so that the suite's other model is not missing
        request = {"keyring_file": keyring(tmp_path, playing.url), "allow_network": True}
        with pytest.raises(UsageError, match="allow it with --allow-network"):
            run(suite, settings, keyring_file=request["keyring_file"])
        tape.unlink()
        monkeypatch.chdir(tmp_path)
        (tmp_path / "suite" / "suite.yaml").write_text(
            HEAD.format(url=playing.url, model="real").replace("  taped: {replay: tape.jsonl}\n", "") + TASKS
        )
        end, verified = run(suite, settings, notes, record=tape, **request)
        assert [headers["authorization"] for _, headers, _ in playing.asked] == [f"Bearer {KEY}"]
        said = playing.asked[0][2]["messages"]
    (trial,) = verified.trials
    assert trial.outcome.task == "passed"
    traffic = trial.observations.traffic
    assert traffic is not None and (traffic.requests, traffic.input_tokens) == (1, 1000)
    assert traffic.cost_usd == 0.0028  # 1000 x 2 + 100 x 8, in dollars for a million
    kept = [place for place in (*end.directory.rglob("*"), tape) if place.is_file()]
    assert (end.directory / "sessions.jsonl") in kept
    for place in kept:
        assert KEY.encode() not in place.read_bytes(), place
    assert any(b"The key is [redacted]." in place.read_bytes() for place in kept if place != tape)
    assert KEY not in str(said) + str(notes.notes)
    suite = write_suite(tmp_path / "suite", TASKS, HEAD.format(url="http://127.0.0.1:9", model="taped"))
    _, again = run(suite, settings)
    (trial,) = again.trials
    assert trial.outcome.task == "passed", trial.outcome
    traffic = trial.observations.traffic
    assert traffic is not None and (traffic.requests, traffic.input_tokens, traffic.cost_usd) == (1, 1000, 0)


class Here(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"here")

    def log_message(self, *_: object) -> None:
        """Nothing is told."""


@contextmanager
def site() -> Iterator[int]:
    """A server of the host that a box would reach only if it had a network, or a way through the gateway."""
    with ThreadingHTTPServer(("127.0.0.2", 0), Here) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


LOOK = """
import urllib.error, urllib.request
def look(url, proxied=True):
    handlers = [] if proxied else [urllib.request.ProxyHandler({})]
    try:
        return urllib.request.build_opener(*handlers).open(url, timeout=20).read().decode()
    except urllib.error.HTTPError as error:
        return str(error.code)
    except OSError as error:
        return "unreachable"
print(look("http://127.0.0.2:PORT/"), look("http://127.0.0.3:PORT/"), look("http://evil.example/"))
print(look("http://127.0.0.2:PORT/", proxied=False))
"""


@pytest.mark.contract("P10")
def test_a_candidate_reaches_what_its_policy_names_and_its_grader_nothing(
    tmp_path: Path, settings: Settings
) -> None:
    with site() as port:
        script = LOOK.replace("PORT", str(port))
        suite = write_suite(
            tmp_path,
            """
            tasks:
              - id: look
                workspace: {kind: inline, files: {look.py: ""}}
                runner: {kind: external-command, command: "python3 -I look.py > found.txt"}
                verify: {commands: ["cat found.txt", "! env | grep -i proxy", "python3 -I look.py"]}
            """,
        )
        suite.write_text(suite.read_text().replace('{look.py: ""}', json.dumps({"look.py": script})))
        small = tmp_path / "small.yaml"
        small.write_text(small.read_text() + f"network: allowlist\nallow: ['127.0.0.2:{port}']\n")
        with pytest.raises(UsageError, match=f"127.0.0.2:{port}; allow it with --allow-network"):
            run(suite, settings)
        end, verified = run(suite, settings, allow_network=True)
    (trial,) = verified.trials
    assert trial.outcome.task == "passed", trial.outcome
    grader = trial.observations.grader
    assert grader is not None and grader.commands[0].stdout.kept and grader.commands[2].stdout.kept
    blobs = BlobStore(end.directory / "blobs")
    candidate = blobs.get(grader.commands[0].stdout.kept).decode()
    assert candidate.split() == ["here", "403", "403", "unreachable"]
    graded = blobs.get(grader.commands[2].stdout.kept).decode()
    assert graded.split() == ["unreachable"] * 4
    egress = trial.observations.egress
    assert egress is not None
    assert [(seen.host, seen.reached, seen.refused) for seen in egress.hosts] == [
        ("127.0.0.2", 1, 0),
        ("127.0.0.3", 0, 1),
        ("evil.example", 0, 1),
    ]
