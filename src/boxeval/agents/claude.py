"""Claude Code: `claude -p`, which reads the prompt from its standard input."""

from __future__ import annotations

from boxeval.agents import claude_stream, preparation, skills
from boxeval.agents.host import Command, Host, Request
from boxeval.agents.preparation import PluginProgram
from boxeval.spec.host_options import HostOptions


def _command(request: Request) -> Command:
    """The box is the sandbox, so every permission is given. What it would fetch or report on the way is off."""
    effort = ("--effort", request.options.effort) if request.options.effort else ()
    resume = ("--resume", request.session) if request.session else ()
    argv = ("claude", "-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions")
    env = {
        "IS_SANDBOX": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    inert = (
        ("--setting-sources", "user", "--strict-mcp-config") if request.options.fixture_configuration else ()
    )
    hooks = ("--settings", skills.settings()) if request.options.skills else ()
    return Command(
        (*argv, "--model", request.model.model, *effort, *hooks, *inert, *resume),
        env,
        request.prompt.encode(),
    )


def _files(options: HostOptions) -> dict[str, bytes]:
    return {**skills.prepared(".claude/skills", options.skills), **preparation.files(options)}


HOST = Host(
    name="claude",
    version=("claude", "--version"),
    protocols=("messages",),
    command=_command,
    read=claude_stream.read,
    background=("claude-*",),
    configuration=(".claude/settings.json", ".claude/settings.local.json", ".mcp.json", ".lsp.json"),
    plugins=PluginProgram(
        ("claude", "plugin", "marketplace", "add"), ("claude", "plugin", "install"), ".claude/plugins/cache"
    ),
    sessions=(".claude/projects",),
    continues=True,
    files=_files,
)
