"""Keys by the command line: make, list, export, trust, revoke."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boxeval.cli.app import call


def test_a_key_from_making_to_revoking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["keys", "ls"]) == 0
    assert capsys.readouterr().out == "no keys yet; the first run makes one\n"
    assert call(["keys", "make", "night \x1b[2Jbuild", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert call(["keys", "ls"]) == 0
    assert capsys.readouterr().out == f"{made['keyid']}  signs here  night \\x1b[2Jbuild\n"
    assert call(["keys", "export", made["keyid"][:8]]) == 0
    exported = capsys.readouterr().out
    assert json.loads(exported)["keys"] == [made]
    assert call(["keys", "revoke", made["keyid"]]) == 0
    assert capsys.readouterr().out.startswith(f"revoked: {made['keyid']}")
    assert call(["keys", "ls", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["revoked"], listed["signsHere"]) == (True, True)

    (tmp_path / "trust.json").write_text(exported)
    assert call(["keys", "trust", str(tmp_path / "trust.json")]) == 0
    assert capsys.readouterr().out.startswith("revoked, and stays so: ")


def test_keys_of_others_are_trusted_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BOXEVAL_HOME", str(tmp_path / "other"))
    assert call(["keys", "make", "theirs", "--json"]) == 0
    keyid = json.loads(capsys.readouterr().out)["keyid"]
    assert call(["keys", "export", keyid]) == 0
    (tmp_path / "theirs.json").write_text(capsys.readouterr().out)
    monkeypatch.setenv("BOXEVAL_HOME", str(tmp_path / "mine"))
    assert call(["keys", "trust", str(tmp_path / "theirs.json")]) == 0
    assert capsys.readouterr().out == f"trusted: {keyid}  theirs\n"
    assert call(["keys", "ls"]) == 0
    assert capsys.readouterr().out == f"{keyid}  trusted     theirs\n"
