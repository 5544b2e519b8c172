"""A skill that a prompt names: `$plugin:skill`, or `$skill` of the workspace (G48, G49). Pure."""

from __future__ import annotations

import re

REPOSITORY = ".agents/skills"
"""Where a workspace has its skills: `NAME/SKILL.md` below it."""


def parts_of(token: str) -> tuple[str | None, str]:
    """The plugin, if it is one's, and the skill."""
    plugin, colon, skill = token[1:].rpartition(":")
    return (plugin if colon else None), skill


def occurrences(token: str, prompt: str) -> int:
    """How often exactly this token stands in a prompt; a longer name that begins with it is another token."""
    return len(re.findall(rf"(?<![A-Za-z0-9_$-]){re.escape(token)}(?![A-Za-z0-9_:-])", prompt))
