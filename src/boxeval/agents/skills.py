"""Skills put into an agent's home, and passive hooks that log what its tools gave back (G43). Pure.

A skill counts as activated when the whole body of its prepared SKILL.md is in what a tool returned. No command is
looked at. The log lies in the candidate's own home: what it shows is the candidate's claim.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from boxeval.agents.stream import StreamFault, parse
from boxeval.spec.agent_record import Completeness, SkillActivation, SkillActivations

LOG = ".boxeval-hooks.jsonl"
LOG_BYTES = 8 * 1024 * 1024
SEEN = 4096
OWN_TOOL = "Skill"
"""Claude Code's. Its body goes to the model by another way than the tool's result."""
HOOKS: dict[str, Any] = {
    "PostToolUse": [
        {"matcher": "*", "hooks": [{"type": "command", "command": f'{{ cat; echo; }} >>"$HOME/{LOG}"'}]}
    ]
}
"""Both Codex and Claude Code take this form. The hook says nothing, and so changes nothing."""


def prepared(folder: str, skills: Mapping[str, str]) -> dict[str, bytes]:
    """The files of skills below a folder of the home."""
    return {f"{folder}/{name}/SKILL.md": text.encode() for name, text in skills.items()}


def read(log: bytes | None, skills: Mapping[str, str], calls: int) -> SkillActivations:
    """What the log shows; None is no log, which is complete only if the agent tells of no tool call at all."""
    if log is None:
        if calls == 0:
            return SkillActivations(status=Completeness.COMPLETE)
        return SkillActivations(status=Completeness.UNAVAILABLE, reason="the hooks left no log")
    seen: list[SkillActivation] = []
    reason = None
    try:
        for ordinal, event in _events(log):
            told = list(_strings(event.get("tool_response")))
            if event.get("tool_name") == OWN_TOOL:
                reason = "a skill was started by a tool whose hooks are not told what the skill says"
            for name, text in skills.items():
                body = text.strip()
                if any(body in one for one in told):
                    seen.append(SkillActivation(skill=name, ordinal=ordinal))
    except StreamFault as fault:
        reason = str(fault)
    if len(seen) > SEEN:
        reason = f"more than {SEEN} activations"
    status = Completeness.PARTIAL if reason else Completeness.COMPLETE
    return SkillActivations(status=status, reason=reason, seen=tuple(seen[:SEEN]))


def _events(log: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = log.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise StreamFault("the hooks' log is not UTF-8") from None
    ordinal = 0
    for line in lines:
        if line.strip():
            event = parse(line, f"event {ordinal} of the hooks' log")
            if not isinstance(event, dict):
                raise StreamFault(f"event {ordinal} of the hooks' log is not a JSON object")
            yield ordinal, event
            ordinal += 1


def _strings(value: Any) -> Iterator[str]:
    """All texts in JSON of bounded size, without recursion."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)


def settings() -> str:
    """The hooks as one JSON document."""
    return json.dumps({"hooks": HOOKS})
