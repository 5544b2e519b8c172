"""mini-swe-agent: `mini`, whose trajectory follows on standard output once it has ended."""

from __future__ import annotations

from boxeval.agents import trajectory
from boxeval.agents.host import Command, Host, Request
from boxeval.sandbox.job import HOME

KEPT = f"{HOME}/.local/share/mini-swe-agent"
_RUN = f"""
mkdir -p {KEPT}
code=0
mini "$@" --task "$(cat)" --output {KEPT}/trajectory.json >&2 </dev/null || code=$?
cat {KEPT}/trajectory.json 2>/dev/null || true
exit $code
"""


def _command(request: Request) -> Command:
    env = {
        "MSWEA_CONFIGURED": "1",
        "MSWEA_SILENT_STARTUP": "1",
        # What a request costs is the gateway's to say.
        "MSWEA_COST_TRACKING": "ignore_errors",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    url = f"model.model_kwargs.api_base={request.model.base_url}"
    options = (
        "--yolo",
        "--exit-immediately",
        "--cost-limit",
        "0",
        "--model",
        f"openai/{request.model.model}",
    )
    argv = ("sh", "-e", "-c", _RUN, "sh", *options, "--config", "mini.yaml", "--config", url)
    return Command(argv, env, request.prompt.encode())


HOST = Host(
    name="mini-swe-agent",
    version=("mini", "--version"),
    protocols=("chat",),
    command=_command,
    read=trajectory.read,
    sessions=(".local/share/mini-swe-agent",),
)
