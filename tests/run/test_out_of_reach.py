"""No workspace is a copy of the keys that sign runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxeval.errors import UsageError
from boxeval.formats.sources import read_sources
from boxeval.formats.suite_v2 import load_suite
from boxeval.receipts.keys import make_key
from boxeval.run.out_of_reach import refuse_keys
from boxeval.settings import load_settings

SUITE = """
version: 2
suite: {{id: s, title: S, visibility: local}}
matrix: {{targets: [{{id: t}}]}}
tasks:
  - id: copy
    workspace: {{kind: temp-copy, path: {path}, excludes: {excludes}}}
    runner: {{kind: external-command, command: "true"}}
    verify: {{commands: ["true"]}}
"""


@pytest.mark.contract("G31")
@pytest.mark.parametrize(
    ("path", "excludes", "refused"),
    [
        (".", [], True),
        ("home/data", [], True),
        ("home/data/keys", [], True),
        ("home/data/keys/signing", [], True),
        (".", ["home/data/keys/"], False),
        ("project", [], False),
    ],
)
def test_keys_are_in_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, excludes: list[str], refused: bool
) -> None:
    monkeypatch.setenv("BOXEVAL_HOME", str(tmp_path / "home"))
    settings = load_settings()
    make_key(settings, "machine")
    (tmp_path / "project").mkdir()
    file = tmp_path / "suite.yaml"
    file.write_text(SUITE.format(path=path, excludes=excludes))
    loaded = load_suite(file)
    read = read_sources(loaded, {"copy"})
    if refused:
        with pytest.raises(UsageError, match="would hold boxeval's keys"):
            refuse_keys(loaded, loaded.suite.tasks, read, settings)
    else:
        refuse_keys(loaded, loaded.suite.tasks, read, settings)
