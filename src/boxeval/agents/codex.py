"""Codex: `codex exec --json`, or `codex app-server` over stdio through a small client in the image."""

from __future__ import annotations

import json

from boxeval.agents import codex_server_stream, codex_session, codex_stream, preparation, skills
from boxeval.agents.host import Command, Host, Request
from boxeval.agents.preparation import PluginProgram
from boxeval.sandbox.job import WORKSPACE
from boxeval.spec.host_options import HostOptions

SERVER_CLIENT = "/opt/boxeval/agents/codex/app_server.py"

UNTRUSTED = f'projects={{"{WORKSPACE}"={{trust_level="untrusted"}}}}'
"""Codex then heeds no configuration of the workspace."""


def _command(request: Request) -> Command:
    """The box is the sandbox, so Codex's own is off. Its analytics would wait for a network that is not there."""
    provider = {
        "name": "boxeval",
        "base_url": request.model.base_url,
        "env_key": "OPENAI_API_KEY",
        "wire_api": "responses",
    }
    table = ",".join(f"{key}={json.dumps(value)}" for key, value in provider.items())
    settings = (
        f"model={json.dumps(request.model.model)}",
        'model_provider="boxeval"',
        f"model_providers.boxeval={{{table}}}",
        "analytics.enabled=false",
        "check_for_update_on_startup=false",
        *((UNTRUSTED,) if request.options.fixture_configuration else ()),
        *(
            (f"model_reasoning_effort={json.dumps(request.options.effort)}",)
            if request.options.effort
            else ()
        ),
    )
    configuration = tuple(word for setting in settings for word in ("-c", setting))
    prompt = request.prompt.encode()
    if request.options.entrypoint == "app-server":
        client = ("python3", "-I", SERVER_CLIENT, request.session or "")
        return Command((*client, "codex", "app-server", *configuration), stdin=prompt)
    bypass = ("--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust")
    resume = ("resume", request.session) if request.session else ()
    argv = ("codex", "exec", "--json", "--skip-git-repo-check", *bypass, *configuration, *resume, "-")
    return Command(argv, stdin=prompt)


def _files(options: HostOptions) -> dict[str, bytes]:
    hooks = {".codex/hooks.json": skills.settings().encode()} if options.skills else {}
    return {**hooks, **skills.prepared(".codex/skills", options.skills), **preparation.files(options)}


HOST = Host(
    name="codex",
    version=("codex", "--version"),
    protocols=("responses",),
    command=_command,
    read=codex_stream.read,
    readers={"app-server": codex_server_stream.read},
    configuration=(".codex",),
    plugins=PluginProgram(
        ("codex", "plugin", "marketplace", "add"), ("codex", "plugin", "add"), ".codex/plugins/cache"
    ),
    sessions=(".codex/sessions",),
    native=codex_session.read,
    continues=True,
    files=_files,
)
