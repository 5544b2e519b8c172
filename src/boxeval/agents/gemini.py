"""Gemini CLI: headless, with its prompt on standard input.

It speaks Google's own protocol, which the gateway has for scripted models (docs/gateway.md).
"""

from __future__ import annotations

import json

from boxeval.agents import gemini_stream
from boxeval.agents.host import Command, Host, Request
from boxeval.spec.host_options import HostOptions

SETTINGS = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
"""Without it a base URL of one's own means a kind of authentication that headless mode then refuses."""


def _command(request: Request) -> Command:
    env = {
        "GEMINI_API_KEY": request.model.api_key,
        "GOOGLE_GEMINI_BASE_URL": request.model.base_url.removesuffix("/v1"),
        "GEMINI_TELEMETRY_ENABLED": "false",
    }
    argv = (
        "gemini",
        "--output-format",
        "stream-json",
        "--yolo",
        "--skip-trust",
        "--model",
        request.model.model,
    )
    return Command(argv, env, request.prompt.encode())


def _files(_options: HostOptions) -> dict[str, bytes]:
    return {".gemini/settings.json": json.dumps(SETTINGS).encode()}


HOST = Host(
    name="gemini",
    version=("gemini", "--version"),
    protocols=("gemini",),
    command=_command,
    read=gemini_stream.read,
    background=("gemini-*",),
    configuration=(".gemini/settings.json",),
    sessions=(".gemini/tmp",),
    files=_files,
)
