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
PluginName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
SkillToken = Annotated[
    str, StringConstraints(pattern=r"^\$(?:[a-z0-9][a-z0-9-]{0,63}:)?[a-z0-9][a-z0-9-]{0,63}$")
]
MARKETPLACE_FILES = 1024
HomePath = Annotated[str, StringConstraints(min_length=1, max_length=255)]


class Marketplace(Record):
    """A plugin marketplace: text files by their paths, `.claude-plugin/marketplace.json` among them."""

    files: Annotated[dict[str, str], Field(min_length=1, max_length=MARKETPLACE_FILES)] = Field(
        description="Path in the marketplace, and text."
    )


class Plugins(Record):
    """Plugins that are installed into the private home before every fresh request (codex, claude)."""

    marketplace: Annotated[str, StringConstraints(min_length=1, max_length=4096)] | Marketplace = Field(
        description="A directory relative to the suite, or its files."
    )
    install: Annotated[tuple[PluginName, ...], Field(min_length=1, max_length=32)] = Field(
        description="All plugins that the marketplace has, by name."
    )


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
    plugins: Plugins | None = Field(
        None, description="Plugins of a local marketplace, to be installed (codex, claude)."
    )
    invoke: SkillToken | None = Field(
        None,
        description="`$plugin:skill`, or `$skill` of the workspace's `.agents/skills`; a prompt has it once (codex).",
    )
    fixture_configuration: Literal["inert"] | None = Field(
        None,
        description="`inert`: an agent's own configuration may be in the workspace, and is not heeded (codex, claude).",
    )
    transcripts: bool = Field(False, description="Show graders the agent's own session files, read-only.")
    artifacts: Annotated[dict[ArtifactName, HomePath], Field(max_length=32)] = Field(
        default_factory=dict, description="Subtrees of the private home that graders may read, by name."
    )
