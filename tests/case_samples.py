"""Case files and what a run of one needs, for tests that need no engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CASE: dict[str, Any] = {
    "id": "say-ready",
    "prompt": "Answer with one word: ready.",
    "fixture": {"files": {"README.md": "a fixture\n"}},
    "checks": [{"id": "ready", "grader": "sevro.regex", "configuration": {"pattern": "^ready$"}}],
    "requiredEvidence": [],
}
SCRIPT = "turns:\n  - text: ready\n"


def write_case(directory: Path, **changes: Any) -> Path:
    """A case file; a value of None takes its key away."""
    tree = {key: value for key, value in {**CASE, **changes}.items() if value is not None}
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "case.json"
    file.write_text(json.dumps(tree, indent=2))
    return file


def write_script(directory: Path, text: str = SCRIPT) -> str:
    """A scripted model, as `--model` names it."""
    file = directory / "model.yaml"
    file.write_text(text)
    return f"script:{file}"
