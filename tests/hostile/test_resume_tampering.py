"""A run that was taken up again: whatever is done to its ledger, it is never taken for good."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from test_receipt_tampering import lines_of, taken_for_good

import run_samples as samples
from boxeval.errors import TamperError
from boxeval.receipts.envelope import line_hash
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.recovery import Recovery
from boxeval.receipts.verify import verify
from tamper_cases import KEY, TRUST, reorderings, signed

TASK = samples.task()
PLAN = samples.plan(TASK, repeats=2)
TYPES = ["opened", "trial", "trial", "closed", "resumed", "trial", "closed"]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Opened, a void trial, a pass, closed; resumed, the void trial again, closed."""
    directory = tmp_path_factory.mktemp("golden") / "run"
    ledger = Ledger.create(directory, PLAN, KEY, now=lambda: samples.NOON)
    ledger.append(samples.trial(TASK, samples.fault("command_error"), 1))
    ledger.append(samples.trial(TASK, samples.seen(), 2))
    ledger.close("SIGINT")
    with Recovery(directory, TRUST) as recovery:
        ledger = recovery.go_on(KEY, now=lambda: samples.NOON)
    ledger.append(samples.trial(TASK, samples.seen(), 1, attempt=2))
    ledger.close()
    return directory


@pytest.fixture
def run(golden: Path, tmp_path: Path) -> Path:
    shutil.copytree(golden, tmp_path / "run")
    return tmp_path / "run"


def payload_of(line: bytes) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(base64.b64decode(json.loads(line)["payload"]))
    return payload


def rechained(lines: list[bytes], start: int) -> list[bytes]:
    """The lines from `start` on, signed anew with the index and hash that their place asks for."""
    made = lines[:start]
    for line in lines[start:]:
        payload = {**payload_of(line), "index": len(made), "previous": line_hash(made[-1][:-1])}
        made.append(signed(rfc8785.dumps(payload)))
    return made


def test_the_golden_run_is_good_in_the_first_place(golden: Path) -> None:
    assert taken_for_good(golden)
    assert [payload_of(line)["body"]["type"] for line in lines_of(golden)] == TYPES


def test_no_deleted_moved_or_repeated_line_passes(run: Path) -> None:
    for what, lines in reorderings(lines_of(run)):
        (run / "ledger.jsonl").write_bytes(b"".join(lines))
        assert not taken_for_good(run), what


def test_no_cut_at_a_line_passes(run: Path) -> None:
    """The first four lines were a closed run of their own, and say with it that a trial is void."""
    lines = lines_of(run)
    for count in range(len(lines)):
        (run / "ledger.jsonl").write_bytes(b"".join(lines[:count]))
        assert not taken_for_good(run), count
    (run / "ledger.jsonl").write_bytes(b"".join(lines[:4]))
    with pytest.raises(TamperError, match="checkpoint: is not the line"):
        verify(run, TRUST)


def test_no_flipped_byte_of_the_lines_between_passes(run: Path) -> None:
    """`make tamper` flips all of them."""
    whole = (run / "ledger.jsonl").read_bytes()
    lines = lines_of(run)
    start, end = len(b"".join(lines[:3])), len(b"".join(lines[:5]))
    for place in range(start, end, 37):
        changed = bytearray(whole)
        changed[place] ^= 2
        (run / "ledger.jsonl").write_bytes(changed)
        assert not taken_for_good(run), place


@pytest.mark.parametrize(
    ("without", "reason"),
    [
        ([4], "line 5: stands behind the closing line and resumes nothing"),
        ([1], "line 3: counts 3 lines before it, but there are 2"),
    ],
)
def test_lines_left_out_by_who_has_the_key_are_refused_by_the_rules(
    run: Path, without: list[int], reason: str
) -> None:
    kept = [line for number, line in enumerate(lines_of(run)) if number not in without]
    (run / "ledger.jsonl").write_bytes(b"".join(rechained(kept, 1)))
    with pytest.raises(TamperError, match=reason):
        verify(run, TRUST)


def test_an_earlier_closing_line_is_held_to_its_root(run: Path) -> None:
    lines = lines_of(run)
    closing = payload_of(lines[3])
    closing["body"]["root"] = "0" * 64
    forged = [*lines[:3], signed(rfc8785.dumps(closing)), *lines[4:]]
    (run / "ledger.jsonl").write_bytes(b"".join(rechained(forged, 4)))
    with pytest.raises(TamperError, match="line 4: its Merkle root"):
        verify(run, TRUST)


def test_a_resumed_run_without_its_opening_is_none(run: Path) -> None:
    lines = lines_of(run)
    first = {**payload_of(lines[4]), "index": 0, "previous": "0" * 64}
    (run / "ledger.jsonl").write_bytes(signed(rfc8785.dumps(first)))
    with pytest.raises(TamperError, match="line 1: is a resumed receipt, not the opening"):
        verify(run, TRUST)
