"""Files that an agent would take for its own configuration, in a fixture: refused (contract G52)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from boxeval.formats.paths import normal
from boxeval.formats.place import show
from boxeval.spec.case import CaseFixture

CONFIGURATION = (
    *(".codex", ".claude/settings.json", ".claude/settings.local.json", ".mcp.json", ".lsp.json"),
    *(".gemini/settings.json", ".opencode", "opencode.json", "opencode.jsonc", ".aider.conf.yml"),
)
"""Files, and directories with all in them. Skills and instructions are no configuration."""


def agent_files_fault(fixture: CaseFixture, repository: Path | None) -> str | None:
    """What of it is in the declared files or in the work tree of the repository; None if nothing is."""
    declared = [*(fixture.files or ()), *(path for commit in fixture.commits or () for path in commit.files)]
    found = _among(map(normal, declared))
    if found is None and repository is not None:
        found = next((name for name in CONFIGURATION if (repository / name).exists()), None)
    if found is None:
        return None
    return f"the fixture has {show(found)}, which an agent takes for its own configuration"


def _among(paths: Iterable[str]) -> str | None:
    for path in paths:
        for name in CONFIGURATION:
            if path.casefold() == name or path.casefold().startswith(f"{name}/"):
                return path
    return None
