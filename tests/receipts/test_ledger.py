from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.errors import BoxevalError, StorageError, UsageError
from boxeval.receipts import merkle
from boxeval.receipts.canonical import canonical, digest
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
TRUST = Trust((KEY.trusted("test"),))
TASK = samples.task()
PLAN = samples.plan(TASK, repeats=5)


def trial(repeat: int) -> Any:
    return samples.trial(TASK, samples.seen(), repeat)


def payloads(directory: Path) -> list[dict[str, Any]]:
    lines = (directory / "ledger.jsonl").read_bytes().splitlines()
    return [json.loads(b64decode(json.loads(line)["payload"])) for line in lines]


def test_a_ledger_holds_opening_trials_and_closing_bound_together(tmp_path: Path) -> None:
    run = tmp_path / "run"
    ledger = Ledger.create(run, PLAN, KEY, now=lambda: samples.NOON)
    for repeat in range(1, 6):
        ledger.append(trial(repeat))
    assert ledger.sealed == 5
    checkpoint = ledger.close()

    assert (run / "plan.json").read_bytes() == canonical(PLAN)
    raw = (run / "ledger.jsonl").read_bytes()
    assert raw.endswith(b"\n")
    hashes = [hashlib.sha256(line).hexdigest() for line in raw.splitlines()]
    receipts = payloads(run)
    assert [r["index"] for r in receipts] == list(range(7))
    assert [r["previous"] for r in receipts] == ["0" * 64, *hashes[:-1]]
    assert [r["body"]["type"] for r in receipts] == ["opened", *["trial"] * 5, "closed"]
    assert receipts[0]["body"] == {
        "type": "opened",
        "runId": "run-1",
        "plan": digest(PLAN),
        "trials": 5,
        "at": samples.NOON,
    }
    root = merkle.root([bytes.fromhex(h) for h in hashes[:-1]])
    assert (receipts[-1]["body"]["count"], receipts[-1]["body"]["root"]) == (6, root)
    assert checkpoint == f"boxeval checkpoint 1 run-1 6 {root} {hashes[-1]} {KEY.keyid}"
    assert (run / "checkpoint").read_text() == checkpoint + "\n"


@pytest.mark.contract("G71")
def test_everything_of_a_run_is_for_its_owner_alone(tmp_path: Path) -> None:
    samples.write_run(tmp_path / "run", KEY, PLAN, {"fix-base-1": samples.seen()})
    for path in [tmp_path / "run", *(tmp_path / "run").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.contract("G71")
def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    samples.write_run(tmp_path / "run", KEY, PLAN, {})
    before = {p: p.read_bytes() for p in (tmp_path / "run").iterdir() if p.is_file()}
    with pytest.raises(UsageError, match="not empty"):
        Ledger.create(tmp_path / "run", PLAN, KEY)
    assert {p: p.read_bytes() for p in (tmp_path / "run").iterdir() if p.is_file()} == before
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="in use"):
        Ledger.create(tmp_path / "file", PLAN, KEY)


def test_a_directory_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        Ledger.create(tmp_path / "file" / "run", PLAN, KEY)


def test_a_plan_that_cannot_be_sealed_is_refused_before_anything_runs(tmp_path: Path) -> None:
    huge = samples.plan(samples.task(verify={"assertions": (samples.wants("tokens.total", "lt", 2**60),)}))
    with pytest.raises(UsageError, match="sealed"):
        Ledger.create(tmp_path / "run", huge, KEY)


def test_many_threads_append_to_one_chain(tmp_path: Path) -> None:
    planned = samples.plan(TASK, repeats=24)
    ledger = Ledger.create(tmp_path / "run", planned, KEY, now=lambda: samples.NOON)
    threads = [threading.Thread(target=ledger.append, args=(trial(n),)) for n in range(1, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()
    run = verify(tmp_path / "run", TRUST)
    assert run.complete
    assert len(run.trials) == 24


def test_nothing_is_added_behind_the_closing_line(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY)
    ledger.close("SIGINT")
    assert payloads(tmp_path / "run")[-1]["body"]["interruptedBy"] == "SIGINT"
    with pytest.raises(BoxevalError, match="closed"):
        ledger.append(trial(1))
    with pytest.raises(BoxevalError, match="closed"):
        ledger.close()


class Disk:
    """Stands in for `os.pwrite` or `os.fsync`: fails while `fault` is set."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.fault: int | str | None = None

    def __call__(self, descriptor: int, *rest: Any) -> Any:
        if isinstance(self.fault, int):
            raise OSError(self.fault, os.strerror(self.fault))
        if self.fault == "short":
            data, offset = rest
            return self.real(descriptor, data[: len(data) // 2], offset)
        if self.fault == "interrupt":
            data, offset = rest
            self.real(descriptor, data[:10], offset)
            raise KeyboardInterrupt
        return self.real(descriptor, *rest)


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO, errno.EDQUOT, "short"])
def test_a_failed_write_leaves_whole_lines_and_says_how_many_trials_are_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int | str
) -> None:
    disk = Disk(os.pwrite)
    monkeypatch.setattr("os.pwrite", disk)
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY, now=lambda: samples.NOON)
    ledger.append(trial(1))
    ledger.append(trial(2))
    before = (tmp_path / "run" / "ledger.jsonl").read_bytes()
    disk.fault = fault
    with pytest.raises(StorageError, match="2 trials are safely sealed") as raised:
        ledger.append(trial(3))
    assert raised.value.exit_code == 70
    assert (tmp_path / "run" / "ledger.jsonl").read_bytes() == before
    disk.fault = None
    ledger.append(trial(4))
    ledger.close()
    run = verify(tmp_path / "run", TRUST)
    assert run.missing == ("fix[base]#3", "fix[base]#5")


def test_an_interrupt_in_the_middle_of_a_write_tears_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(os.pwrite)
    monkeypatch.setattr("os.pwrite", disk)
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY, now=lambda: samples.NOON)
    disk.fault = "interrupt"
    with pytest.raises(KeyboardInterrupt):
        ledger.append(trial(1))
    disk.fault = None
    ledger.close("SIGINT")
    assert verify(tmp_path / "run", TRUST).interrupted_by == "SIGINT"


def test_behind_a_torn_line_that_cannot_be_cut_off_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, cut = Disk(os.pwrite), Disk(os.ftruncate)
    monkeypatch.setattr("os.pwrite", disk)
    monkeypatch.setattr("os.ftruncate", cut)
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY, now=lambda: samples.NOON)
    ledger.append(trial(1))
    disk.fault, cut.fault = "short", errno.EIO
    with pytest.raises(StorageError, match="1 trials are safely sealed"):
        ledger.append(trial(2))
    disk.fault = cut.fault = None
    torn = (tmp_path / "run" / "ledger.jsonl").read_bytes()
    for step in (lambda: ledger.append(trial(3)), ledger.close):
        with pytest.raises(BoxevalError, match="torn"):
            step()
    assert (tmp_path / "run" / "ledger.jsonl").read_bytes() == torn
    run = verify(tmp_path / "run", TRUST)
    assert not run.complete
    assert [t.repeat for t in run.trials] == [1]


def test_after_a_failed_fsync_the_ledger_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = Disk(os.fsync)
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY, now=lambda: samples.NOON)
    ledger.append(trial(1))
    monkeypatch.setattr("os.fsync", sync)
    sync.fault = errno.EIO
    with pytest.raises(StorageError, match="1 trials are safely sealed"):
        ledger.append(trial(2))
    sync.fault = None
    with pytest.raises(BoxevalError, match="disk failed"):
        ledger.append(trial(3))
    assert [t.repeat for t in verify(tmp_path / "run", TRUST).trials] == [1]


def test_a_receipt_never_outlives_its_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY, now=lambda: samples.NOON)
    ledger.blobs.put(b"evidence")
    before = (tmp_path / "run" / "ledger.jsonl").read_bytes()
    sync = Disk(os.fsync)
    sync.fault = errno.ENOSPC
    monkeypatch.setattr("os.fsync", sync)
    with pytest.raises(StorageError, match=r"evidence.*0 trials are safely sealed"):
        ledger.append(trial(1))
    assert (tmp_path / "run" / "ledger.jsonl").read_bytes() == before


def test_a_checkpoint_that_cannot_be_written_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY, now=lambda: samples.NOON)

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", full)
        with pytest.raises(StorageError, match=r"checkpoint.*No space left.*0 trials are safely sealed"):
            ledger.close()
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["blobs", "ledger.jsonl", "plan.json"]
    assert "the checkpoint file is missing" in verify(tmp_path / "run", TRUST).problems


def test_a_trial_that_cannot_be_sealed_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY, now=lambda: samples.NOON)
    with pytest.raises(StorageError, match="0 trials are safely sealed"):
        whole = trial(1)
        ledger.append(whole.model_copy(update={"metrics": {**whole.metrics, "tokens.total": 2**60}}))
    ledger.append(trial(1))
    assert ledger.sealed == 1


def test_a_receipt_that_no_reader_would_take_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY, now=lambda: samples.NOON)
    monkeypatch.setattr("boxeval.receipts.ledger.MAX_BYTES", 100)
    with pytest.raises(StorageError, match="larger than 100 bytes"):
        ledger.append(trial(1))


def test_a_directory_that_cannot_be_made_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(StorageError, match="No space left"):
        Ledger.create(tmp_path / "run", PLAN, KEY)


def test_each_line_is_durable_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One write and one fsync a line, in this order."""
    calls: list[str] = []
    real_write, real_sync = os.pwrite, os.fsync
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY)

    def write(*args: Any) -> int:
        calls.append("write")
        return real_write(*args)

    def sync(descriptor: int) -> None:
        calls.append("fsync")
        real_sync(descriptor)

    monkeypatch.setattr("os.pwrite", write)
    monkeypatch.setattr("os.fsync", sync)
    ledger.append(trial(1))
    assert calls == ["write", "fsync"]
