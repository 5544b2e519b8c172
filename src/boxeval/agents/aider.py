"""aider: one message; the answers to it and their usage follow on standard output once it has ended."""

from __future__ import annotations

from boxeval.agents import aider_history
from boxeval.agents.host import Command, Host, Request
from boxeval.sandbox.job import HOME, TMP

KEPT = f"{HOME}/.aider"
_RUN = f"""
mkdir -p {KEPT}
cat > {TMP}/prompt
code=0
aider "$@" --message-file {TMP}/prompt --llm-history-file {TMP}/exchanges >&2 </dev/null || code=$?
grep '^> Tokens: ' {KEPT}/chat.md 2>/dev/null || true
awk '/^LLM RESPONSE /{{ on = 1 }} /^TO LLM /{{ on = 0 }} on' {TMP}/exchanges 2>/dev/null || true
exit $code
"""
"""Its chat history has what each exchange took; of the exchanges themselves the requests are left out."""


def _command(request: Request) -> Command:
    """Its histories go to the home, and it commits nothing: what it changed is what the trial collects."""
    options = (
        *("--model", f"openai/{request.model.model}", "--openai-api-base", request.model.base_url),
        *(
            "--yes-always",
            "--no-pretty",
            "--no-stream",
            "--no-git",
            "--no-check-update",
            "--analytics-disable",
        ),
        *("--no-show-model-warnings", "--no-show-release-notes", "--no-detect-urls", "--no-fancy-input"),
        *("--chat-history-file", f"{KEPT}/chat.md", "--input-history-file", f"{KEPT}/input"),
    )
    env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return Command(("sh", "-e", "-c", _RUN, "sh", *options), env, request.prompt.encode())


HOST = Host(
    name="aider",
    version=("aider", "--version"),
    protocols=("chat",),
    command=_command,
    read=aider_history.read,
    configuration=(".aider.conf.yml",),
    sessions=(".aider",),
)
