"""The real reference agent as a subprocess, against a real gateway, with a forwarder like the keeper's.

Nothing is isolated here: these are fast checks of the agent and of what the suites say, not of boxes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boxeval.gateway.interface import PLACEHOLDER_KEY
from boxeval.gateway.route import RouteTraffic
from boxeval.gateway.server import Gateway
from boxeval.settings import resource
from boxeval.spec.models import Script

AGENT = resource("images") / "base" / "agent"
MODEL = "scripted-small"


def script(*turns: dict[str, Any]) -> Script:
    """A script from plain data, as a suite would have it."""
    return Script.model_validate({"turns": turns}, strict=False)


def calls(*pairs: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A turn that asks for a batch of tools."""
    return {"calls": [{"tool": tool, "input": given} for tool, given in pairs]}


def call(tool: str, **given: Any) -> dict[str, Any]:
    """A turn that asks for one tool."""
    return calls((tool, given))


def agent_environment(
    workspace: Path,
    home: Path,
    base_url: str,
    permissions: str = "full",
    options: dict[str, Any] | None = None,
) -> dict[str, str]:
    """As `candidate_environment` builds it, but with places of this machine."""
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "BOXEVAL_WORKSPACE": str(workspace),
        "BOXEVAL_PERMISSIONS": permissions,
        "BOXEVAL_OPTIONS": json.dumps(options or {}),
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": PLACEHOLDER_KEY,
        "BOXEVAL_MODEL": MODEL,
    }


def start_agent(workspace: Path, env: dict[str, str]) -> subprocess.Popen[bytes]:
    """The agent as its image starts it, waiting for its prompt."""
    return subprocess.Popen(
        [sys.executable, "-I", "-B", str(AGENT)],
        cwd=workspace,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@dataclass(frozen=True)
class Session:
    """What one session of the agent left."""

    exit_code: int
    stdout: str
    stderr: str
    ledger: list[dict[str, Any]]
    closed: RouteTraffic

    @property
    def results(self) -> list[str]:
        """Texts of all tool results, in order."""
        return [entry["text"] for entry in self.ledger if entry["type"] == "tool"]

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Bodies of all requests, as the gateway recorded them."""
        return [json.loads(line)["request"] for line in self.closed.log.splitlines()]


def run_agent(
    workspace: Path,
    home: Path,
    turns: Script,
    prompt: str = "Do it.",
    permissions: str = "full",
    options: dict[str, Any] | None = None,
) -> Session:
    """One whole session."""
    with served(turns) as (gateway, token, base_url):
        env = agent_environment(workspace, home, base_url, permissions, options)
        with start_agent(workspace, env) as process:
            out, err = process.communicate(prompt.encode(), timeout=60)
        return Session(
            process.returncode, out.decode(), err.decode(), read_ledger(home), gateway.close_route(token)
        )


def read_ledger(home: Path) -> list[dict[str, Any]]:
    """Entries of the session ledger, none if there is no ledger."""
    path = home / ".boxeval" / "session.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


@contextlib.contextmanager
def served(turns: Script) -> Iterator[tuple[Gateway, str, str]]:
    """A gateway with one route, its token, and a base URL that leads to it over TCP."""
    with tempfile.TemporaryDirectory() as directory, Gateway(Path(directory) / "gateway.sock") as gateway:
        route = gateway.open_route(turns, MODEL)
        with forwarded(gateway.socket_path) as port:
            yield gateway, route.token, f"http://127.0.0.1:{port}{route.path}"


@contextlib.contextmanager
def forwarded(target: Path) -> Iterator[int]:
    """A loopback port whose connections go to a unix socket, as the keeper's forwarder does it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept, args=(listener, target))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listener: socket.socket, target: Path) -> None:
    pumps = []
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            break
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(str(target))
        for source, sink in ((client, upstream), (upstream, client)):
            pumps.append(threading.Thread(target=_pump, args=(source, sink)))
            pumps[-1].start()
    for pump in pumps:
        pump.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with source, contextlib.suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
