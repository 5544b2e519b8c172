"""Taking up a run that ended early: what is kept, what is run again, what is cut off, who may."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.errors import (
    BoxevalError,
    IncompleteError,
    StorageError,
    TamperError,
    UnreadableError,
    UsageError,
)
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.recovery import Recovery
from boxeval.receipts.trust import Trust, TrustedKey
from boxeval.receipts.verify import verify

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
TRUST = Trust((KEY.trusted("test"),))
TASK = samples.task()
PLAN = samples.plan(TASK, repeats=3)
PASS, FAIL = samples.seen(), samples.seen(grader=samples.box(samples.command(1)))
VOID = samples.fault("command_error", "no such image")
CANCELLED = samples.seen(cancelled=True, grader=None)
LATER = "2025-01-01T13:00:00.000Z"


def write(directory: Path, *observed: Any, close: bool = False) -> Path:
    """A run of three planned trials; one receipt for each given observation, None for none."""
    seen = {f"fix-base-{n}": one for n, one in enumerate(observed, 1) if one}
    samples.write_run(directory, KEY, PLAN, seen, close=close)
    return directory


def bodies(directory: Path) -> list[dict[str, Any]]:
    lines = (directory / "ledger.jsonl").read_bytes().splitlines()
    return [json.loads(base64.b64decode(json.loads(line)["payload"]))["body"] for line in lines]


def finish(directory: Path, observed: Any = PASS) -> str:
    """Go on with a run: every remaining trial gives `observed`."""
    with Recovery(directory, TRUST) as recovery:
        ledger = recovery.go_on(KEY, now=lambda: LATER)
        for place in recovery.remaining:
            attempt = recovery.attempts.get(place.trial_id, 0) + 1
            ledger.append(samples.trial(TASK, observed, place.repeat, attempt=attempt))
        return ledger.close()


@pytest.mark.contract("P19")
def test_what_has_a_verdict_is_kept_and_the_rest_is_run(tmp_path: Path) -> None:
    """Known failure H11: failures stay, only what was void, cancelled or missing is run again."""
    run = write(tmp_path / "run", FAIL, VOID, CANCELLED, close=True)
    with Recovery(run, TRUST) as recovery:
        assert [place.key for place in recovery.remaining] == ["fix[base]#2", "fix[base]#3"]
        assert recovery.attempts == {"fix-base-1": 1, "fix-base-2": 1, "fix-base-3": 1}
        assert (recovery.times, recovery.is_over) == (0, False)
    kept = (run / "ledger.jsonl").read_bytes()
    finish(run)
    assert (run / "ledger.jsonl").read_bytes().startswith(kept)
    found = verify(run, TRUST)
    assert found.complete
    assert [(t.trial_id, t.attempt) for t in found.trials] == [
        ("fix-base-1", 1),
        ("fix-base-2", 1),
        ("fix-base-3", 1),
        ("fix-base-2", 2),
        ("fix-base-3", 2),
    ]
    assert (found.opened_at, found.resumed_at, found.closed_at) == (samples.NOON, (LATER,), LATER)
    assert [body["type"] for body in bodies(run)] == [
        "opened", "trial", "trial", "trial", "closed", "resumed", "trial", "trial", "closed",
    ]  # fmt: skip


def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    run = write(tmp_path / "run", PASS)
    checkpoint = finish(run)
    found = verify(run, TRUST, checkpoint=checkpoint)
    assert (found.complete, len(found.trials)) == (True, 3)
    assert bodies(run)[2] == {
        "type": "resumed",
        "runId": "run-1",
        "plan": bodies(run)[0]["plan"],
        "at": LATER,
        "tornBytes": 0,
        "tornSha256": None,
    }


@pytest.mark.slow
@pytest.mark.contract("P19")
def test_a_torn_last_line_is_cut_off_and_told(tmp_path: Path) -> None:
    """Known failure I1: that trial is run again, the others are kept, nothing is appended behind half a line."""
    run = write(tmp_path / "run", PASS, FAIL)
    ledger = run / "ledger.jsonl"
    whole = ledger.read_bytes()
    start = len(b"".join(whole.splitlines(keepends=True)[:-1]))
    for length in (start, start + 1, *range(start + 2, len(whole), 397), len(whole) - 1):
        ledger.write_bytes(whole[:length])
        (run / "checkpoint").unlink(missing_ok=True)
        finish(run)
        found = verify(run, TRUST)
        assert (found.complete, len(found.trials), found.missing) == (True, 3, ()), length
        assert ledger.read_bytes().startswith(whole[:start])
        (record,) = [body for body in bodies(run) if body["type"] == "resumed"]
        torn = whole[start:length]
        expected = (len(torn), hashlib.sha256(torn).hexdigest() if torn else None)
        assert (record["tornBytes"], record["tornSha256"]) == expected


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"not JSON\n", b'{"payload":"', b"x" * 100_000])
def test_whatever_stands_behind_the_last_whole_line_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    run = write(tmp_path / "run", PASS)
    with (run / "ledger.jsonl").open("ab") as out:
        out.write(tail)
    finish(run)
    assert verify(run, TRUST).complete
    assert [b["tornBytes"] for b in bodies(run) if b["type"] == "resumed"] == [len(tail)]


def test_a_repair_that_is_killed_anywhere_can_be_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is written over the torn line, and only then the rest is cut off."""
    run = write(tmp_path / "run", PASS)
    ledger = run / "ledger.jsonl"
    before = ledger.read_bytes()
    write_at = os.pwrite
    for tail in (b'{"payl', b"z" * 5000):
        seen: list[bytes] = []

        def partly(
            descriptor: int, data: bytes, offset: int, tail: bytes = tail, seen: list[bytes] = seen
        ) -> int:
            for length in (*range(0, len(data), 211), len(data) - 1, len(data)):
                seen.append(before + data[:length] + tail[length:])
            return write_at(descriptor, data, offset)

        ledger.write_bytes(before + tail)
        with monkeypatch.context() as patch, Recovery(run, TRUST) as recovery:
            patch.setattr(os, "pwrite", partly)
            recovery.go_on(KEY).release()
        for state in seen:
            ledger.write_bytes(state)
            finish(run)
            found = verify(run, TRUST)
            assert (found.complete, len(found.trials)) == (True, 3)
            (run / "checkpoint").unlink()


def test_a_disk_that_is_full_leaves_what_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write(tmp_path / "run", PASS)
    before = (run / "ledger.jsonl").read_bytes()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, Recovery(run, TRUST) as recovery:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StorageError, match="No space left on device"):
            recovery.go_on(KEY)
    assert (run / "ledger.jsonl").read_bytes() == before


def test_several_times_is_like_once(tmp_path: Path) -> None:
    run = write(tmp_path / "run", VOID, close=True)
    first = (run / "checkpoint").read_text().strip()
    with Recovery(run, TRUST) as recovery:
        recovery.go_on(KEY).release()
    assert (run / "checkpoint").read_text().strip() == first
    found = verify(run, TRUST)
    assert not found.complete
    assert not any("checkpoint" in problem for problem in found.problems)
    finish(run, VOID)
    last = finish(run)
    found = verify(run, TRUST, checkpoint=last)
    assert found.complete
    assert len(found.resumed_at) == 3
    assert [t.attempt for t in found.trials if t.trial_id == "fix-base-1"] == [1, 2, 3]


def test_a_checkpoint_of_an_earlier_closing_vouches_for_no_more_than_it_saw(tmp_path: Path) -> None:
    run = write(tmp_path / "run", PASS, VOID, close=True)
    first = (run / "checkpoint").read_text().strip()
    last = finish(run)
    assert verify(run, TRUST, checkpoint=last).complete
    found = verify(run, TRUST, checkpoint=first)
    assert not found.complete
    assert "does not fix what came after" in found.problems[0]
    (run / "checkpoint").write_text(f"{first}\n")
    found = verify(run, TRUST)
    assert not found.complete
    assert "of an earlier closing line" in found.problems[0]
    with pytest.raises(TamperError, match="the given checkpoint is not this run's"):
        verify(run, TRUST, checkpoint=last.replace(" 7 ", " 8 "))


def test_a_run_that_is_over_only_gets_back_a_lost_checkpoint(tmp_path: Path) -> None:
    run = write(tmp_path / "run", PASS, FAIL, PASS, close=True)
    checkpoint = (run / "checkpoint").read_bytes()
    ledger = (run / "ledger.jsonl").read_bytes()
    (run / "checkpoint").unlink()
    with Recovery(run, TRUST) as recovery:
        assert (recovery.remaining, recovery.is_over) == ((), True)
        assert recovery.renew_checkpoint() == checkpoint.decode().strip()
    assert (run / "checkpoint").read_bytes() == checkpoint
    assert (run / "ledger.jsonl").read_bytes() == ledger


def test_a_run_that_lacks_only_its_closing_line_is_closed(tmp_path: Path) -> None:
    run = write(tmp_path / "run", PASS, FAIL, PASS)
    with Recovery(run, TRUST) as recovery:
        assert (recovery.remaining, recovery.is_over) == ((), False)
    finish(run)
    assert verify(run, TRUST).complete


@pytest.mark.contract("P19")
def test_only_one_process_has_a_run(tmp_path: Path) -> None:
    run = write(tmp_path / "run", PASS)
    with Recovery(run, TRUST) as recovery:
        with pytest.raises(UsageError, match="another boxeval is running this run"):
            Recovery(run, TRUST)
        ledger = recovery.go_on(KEY)
    script = (
        "import sys; from pathlib import Path; from boxeval.receipts.recovery import Recovery;"
        "from boxeval.receipts.trust import Trust; from boxeval.errors import UsageError\n"
        "try: Recovery(Path(sys.argv[1]), Trust())\nexcept UsageError: sys.exit(7)"
    )
    process = subprocess.run([sys.executable, "-c", script, str(run)], timeout=60, check=False)
    assert process.returncode == 7
    ledger.close()
    Recovery(run, TRUST).close()


def test_a_run_under_way_cannot_be_taken_up(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY)
    with pytest.raises(UsageError, match="another boxeval"):
        Recovery(tmp_path / "run", TRUST)
    ledger.release()
    Recovery(tmp_path / "run", TRUST).close()
    with pytest.raises(BoxevalError, match="nothing can be added"):
        ledger.append(samples.trial(TASK, PASS))


def test_what_a_dead_writer_left_half_done_goes_and_evidence_stays(tmp_path: Path) -> None:
    run = tmp_path / "run"
    ledger = Ledger.create(run, PLAN, KEY, now=lambda: samples.NOON)
    kept = ledger.blobs.put(b"1 failed")
    ledger.blobs.put(b"of a trial that was never sealed")
    seen = samples.seen(grader=samples.box(samples.command(1, stdout=samples.capture(b"1 failed", kept))))
    ledger.append(samples.trial(TASK, seen))
    ledger.release()
    broken = run / "blobs" / "ab" / ("ab" + "0" * 62)
    broken.parent.mkdir(exist_ok=True)
    broken.write_bytes(b"")  # as a power cut leaves it
    (run / "blobs" / ".tmp-1").write_bytes(b"half")
    (run / ".tmp-2").write_bytes(b"half")
    assert any("no receipt points to it" in problem for problem in verify(run, TRUST).problems)
    finish(run)
    assert verify(run, TRUST).complete
    assert not broken.exists()
    assert not list(run.rglob(".tmp-*"))


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda run: (run / "ledger.jsonl").write_bytes(b""), IncompleteError),
        (lambda run: (run / "ledger.jsonl").write_bytes(b'{"pay'), IncompleteError),
        (lambda run: (run / "ledger.jsonl").unlink(), IncompleteError),
        (lambda run: (run / "plan.json").unlink(), TamperError),
        (lambda run: (run / "plan.json").write_bytes(b"{}"), TamperError),
        (lambda run: [(run / name).unlink() for name in ("plan.json", "ledger.jsonl")], UnreadableError),
    ],
)
def test_what_does_not_verify_is_not_gone_on_with(
    tmp_path: Path, damage: Any, error: type[Exception]
) -> None:
    run = write(tmp_path / "run", PASS)
    damage(run)
    with pytest.raises(error):
        Recovery(run, TRUST)


def test_a_closed_run_that_lost_its_end_is_not_run_to_a_better_one(tmp_path: Path) -> None:
    run = write(tmp_path / "run", PASS, FAIL, PASS, close=True)
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (run / "ledger.jsonl").write_bytes(b"".join(lines[:2]))
    with pytest.raises(TamperError, match="lines were removed"):
        Recovery(run, TRUST)


def test_a_stranger_s_run_and_one_by_a_revoked_key_are_refused(tmp_path: Path) -> None:
    run = write(tmp_path / "run", PASS)
    revoked: TrustedKey = KEY.trusted("test").model_copy(update={"revoked": True})
    for trust in (Trust(), Trust((revoked,))):
        with pytest.raises(TamperError):
            Recovery(run, trust)
