"""Skill activation by the hooks' log (G43): a whole body in what a tool returned, and nothing else."""

from __future__ import annotations

import json

import pytest

from boxeval.agents.hosts import HOSTS
from boxeval.agents.skills import read
from boxeval.spec.agent_record import Completeness
from boxeval.spec.host_options import HostOptions

GUIDE = "---\nname: guide\n---\nRead the README first.\n"
SKILLS = {"guide": GUIDE, "other": "---\nname: other\n---\nSomething else.\n"}


def log(*responses: object) -> bytes:
    return b"".join(
        json.dumps({"tool_response": one, "tool_input": {"c": GUIDE}}).encode() + b"\n" for one in responses
    )


@pytest.mark.contract("G43")
def test_a_skill_is_activated_where_its_whole_body_came_back() -> None:
    cut = GUIDE[: len(GUIDE) // 2]
    found = read(log("nothing", f"1\n{GUIDE}2", {"file": {"content": [GUIDE]}}, cut, "guide"), SKILLS, 5)
    # The command of every event has the body too, and does not count.
    assert [(one.skill, one.ordinal) for one in found.seen] == [("guide", 1), ("guide", 2)]
    assert (found.status, found.reason) == (Completeness.COMPLETE, None)


@pytest.mark.parametrize(
    ("data", "calls", "status"),
    [
        (None, 0, Completeness.COMPLETE),
        (None, 2, Completeness.UNAVAILABLE),
        (log("x") + b"{", 1, Completeness.PARTIAL),
        # Claude Code's own way to start a skill: the body is not in what the hook is told.
        (b'{"tool_name": "Skill", "tool_response": {"success": true}}', 1, Completeness.PARTIAL),
        (b"[1]\n", 1, Completeness.PARTIAL),
        (b"\xff\n", 1, Completeness.PARTIAL),
        (b"[" * 100_000, 1, Completeness.PARTIAL),
        (log(*[GUIDE] * 4097), 1, Completeness.PARTIAL),
    ],
)
@pytest.mark.contract("G43")
def test_a_log_with_gaps_is_never_complete(data: bytes | None, calls: int, status: Completeness) -> None:
    found = read(data, SKILLS, calls)
    assert found.status is status
    assert len(found.seen) <= 4096


@pytest.mark.parametrize(("agent", "folder"), [("codex", ".codex/skills"), ("claude", ".claude/skills")])
def test_skills_go_into_the_home_only_where_the_task_asks(agent: str, folder: str) -> None:
    assert HOSTS[agent].files(HostOptions()) == {}
    files = HOSTS[agent].files(HostOptions(skills={"guide": GUIDE}))
    assert files[f"{folder}/guide/SKILL.md"] == GUIDE.encode()
