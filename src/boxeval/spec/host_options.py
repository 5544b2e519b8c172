"""What a suite may say of how an agent is started and what is kept of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from boxeval.spec.base import Record

AgentName = Literal[
    "codex", "claude", "gemini", "opencode", "mini-swe-agent", "aider", "clio", "command", "reference"
]
ArtifactName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
SkillName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
SkillText = Annotated[str, StringConstraints(min_length=1, max_length=65_536)]
HomePath = Annotated[str, StringConstraints(min_length=1, max_length=255)]


class HostOptions(Record):
    """Settings of an agent; one that the agent does not have is refused."""

    entrypoint: Literal["exec", "app-server"] | None = Field(
        None, description="How Codex is run; `exec` unless named."
    )
    effort: Literal["low", "medium", "high"] | None = Field(
        None, description="Reasoning effort (codex, claude)."
    )
    skills: Annotated[dict[SkillName, SkillText], Field(max_length=32)] = Field(
        default_factory=dict,
        description="Skills put into the private home, by name: the whole of each SKILL.md (codex, claude).",
    )
    transcripts: bool = Field(False, description="Show graders the agent's own session files, read-only.")
    artifacts: Annotated[dict[ArtifactName, HomePath], Field(max_length=32)] = Field(
        default_factory=dict, description="Subtrees of the private home that graders may read, by name."
    )
