"""opencode: `opencode run`, with boxeval's model as a provider of its own."""

from __future__ import annotations

import json

from boxeval.agents import opencode_stream
from boxeval.agents.host import Command, Host, Request


def _command(request: Request) -> Command:
    model = f"boxeval/{request.model.model}"
    configuration = {
        "model": model,
        "small_model": model,
        "autoupdate": False,
        "share": "disabled",
        "provider": {
            "boxeval": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "boxeval",
                "options": {"baseURL": request.model.base_url, "apiKey": request.model.api_key},
                "models": {request.model.model: {"name": request.model.model}},
            }
        },
    }
    env = {
        "OPENCODE_CONFIG_CONTENT": json.dumps(configuration),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }
    session = ("--session", request.session) if request.session else ()
    # A title keeps it from asking the model for one.
    argv = ("opencode", "run", "--format", "json", "--pure", "--auto", "--title", "boxeval", *session)
    return Command(argv, env, request.prompt.encode())


HOST = Host(
    name="opencode",
    version=("opencode", "--version"),
    protocols=("chat",),
    command=_command,
    read=opencode_stream.read,
    configuration=(".opencode", "opencode.json", "opencode.jsonc"),
    sessions=tuple(f".local/share/opencode/opencode.db{end}" for end in ("", "-wal", "-shm")),
    continues=True,
)
