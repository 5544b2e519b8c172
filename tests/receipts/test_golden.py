"""Ledgers of the versions that there were are read as what they are, or refused by version; never as something else."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from golden_ledgers import GOLDEN, TRUST, told, write

from boxeval.errors import UnreadableError
from boxeval.receipts.verify import verify

CURRENT = "0.1.0.dev2"
"""What `write` still writes, in today's format: what is in it has not changed since that version."""
LEDGERS = sorted(place.name for place in GOLDEN.iterdir())


@pytest.mark.contract("V47")
@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_of_any_version_is_read_as_what_it_is_or_refused_by_version(name: str) -> None:
    expected = expected_of(name)
    try:
        assert told(verify(GOLDEN / name / "run", TRUST)) == expected
    except UnreadableError as error:
        assert re.search(
            r"line \d+: sealed by another version of boxeval .*; verify it with the version", str(error)
        )


def expected_of(name: str) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((GOLDEN / name / "expected.json").read_text())
    return {key: value for key, value in expected.items() if key != "public"}


@pytest.mark.contract("V47")
def test_a_ledger_of_this_version_is_read_as_the_same_run_was_before(tmp_path: Path) -> None:
    """A positive control: not everything is refused, and the verdicts on the same evidence have stayed."""
    write(tmp_path / "run", CURRENT)
    found, expected = told(verify(tmp_path / "run", TRUST)), expected_of(CURRENT)
    del found["checkpoint"], expected["checkpoint"]  # of bytes, which are another format's
    assert found == expected


@pytest.mark.contract("V47")
def test_a_verdict_by_other_rules_is_refused_by_the_version_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fields fit and its signature holds, but this version would have decided otherwise: that is no tampering."""
    from boxeval.receipts import verify as verifying

    write(tmp_path / "run", "0.0.1")
    assert verify(tmp_path / "run", TRUST).complete
    monkeypatch.setattr(verifying, "measure", lambda *_: {"another.metric": 1})
    with pytest.raises(UnreadableError, match=r"boxeval 0\.0\.1 made it; verify it with that version"):
        verify(tmp_path / "run", TRUST)


def test_a_golden_ledger_is_held_to_its_bytes(tmp_path: Path) -> None:
    """A positive control: a change is seen whatever the version."""
    for name in LEDGERS:
        shutil.copytree(GOLDEN / name / "run", tmp_path / name)
        ledger = tmp_path / name / "ledger.jsonl"
        ledger.write_bytes(ledger.read_bytes().replace(b"payload", b"payloae", 1))
        with pytest.raises(Exception, match=r"ledger\.jsonl line 1"):
            verify(tmp_path / name, TRUST)
