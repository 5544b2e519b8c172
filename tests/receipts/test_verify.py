from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.errors import IncompleteError, TamperError, UnreadableError
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust, TrustedKey
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.spec.outcome import TaskState
from boxeval.spec.trial import Collected, EntryKind

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
TRUST = Trust((KEY.trusted("test"),))
TASK = samples.task()
PLAN = samples.plan(TASK, repeats=3)
ALL = {f"fix-base-{n}": samples.seen() for n in (1, 2, 3)}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    samples.write_run(tmp_path / "run", KEY, PLAN, ALL)
    return tmp_path / "run"


def test_a_good_run_is_given_back_whole(run: Path) -> None:
    found = verify(run, TRUST)
    assert found.complete
    assert (found.missing, found.problems) == ((), ())
    assert found.plan == PLAN
    assert [t.trial_id for t in found.trials] == list(ALL)
    assert all(t.outcome.task is TaskState.PASSED for t in found.trials)
    assert (found.keyid, found.key_label) == (KEY.keyid, "test")
    assert (found.opened_at, found.closed_at, found.interrupted_by) == (samples.NOON, samples.NOON, None)
    assert found.checkpoint == (run / "checkpoint").read_text().strip()


def test_verifying_needs_neither_engine_nor_network() -> None:
    script = (
        "import sys, pathlib; from boxeval.receipts.verify import verify;"
        "assert not {'docker', 'requests', 'http.client', 'rich'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_only_verify_makes_a_verified_run(run: Path) -> None:
    found = verify(run, TRUST)
    fields = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
    with pytest.raises(TypeError):
        VerifiedRun(**fields)
    for token in (None, object(), True, verify):
        with pytest.raises(TypeError, match=r"only .*verify"):
            VerifiedRun(**fields, made_by=token)
    with pytest.raises((TypeError, ValueError)):
        dataclasses.replace(found, trials=())  # type: ignore[call-arg]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.trials = ()  # type: ignore[misc]


@pytest.mark.contract("V20")
def test_a_run_that_was_never_closed_is_incomplete_and_names_what_is_missing(tmp_path: Path) -> None:
    samples.write_run(tmp_path / "run", KEY, PLAN, {"fix-base-2": samples.seen()}, close=False)
    found = verify(tmp_path / "run", TRUST)
    assert not found.complete
    assert found.missing == ("fix[base]#1", "fix[base]#3")
    assert found.checkpoint is None
    assert any("closing line is missing" in p for p in found.problems)
    assert any("fix[base]#1, fix[base]#3" in p for p in found.problems)


def test_a_closed_run_without_all_trials_is_incomplete(tmp_path: Path) -> None:
    samples.write_run(tmp_path / "run", KEY, PLAN, {"fix-base-1": samples.seen()})
    found = verify(tmp_path / "run", TRUST)
    assert not found.complete
    assert found.missing == ("fix[base]#2", "fix[base]#3")


def test_deleting_the_last_receipts_is_noticed(run: Path) -> None:
    """Known failure H5: 48 of 50 ran, and the report was green."""
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (run / "ledger.jsonl").write_bytes(b"".join(lines[:2]))
    found = verify(run, TRUST)
    assert not found.complete
    assert found.missing == ("fix[base]#2", "fix[base]#3")
    assert any("checkpoint file says that the run was closed" in p for p in found.problems)


def test_a_torn_last_line_is_incomplete_and_never_counted(run: Path) -> None:
    """Known failure I1. `make tamper` tears it at every byte."""
    whole = (run / "ledger.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    start = len(whole) - len(lines[-1])
    for length in (
        start,
        start + 1,
        start + 2,
        *range(start + 3, len(whole) - 3, 97),
        len(whole) - 2,
        len(whole) - 1,
    ):
        (run / "ledger.jsonl").write_bytes(whole[:length])
        found = verify(run, TRUST)
        assert not found.complete
        assert found.checkpoint is None
        assert len(found.trials) == 3
        if length > start:
            assert any("line 5 is torn" in p for p in found.problems)


def test_a_torn_trial_is_missing_and_the_others_stay(tmp_path: Path) -> None:
    run = tmp_path / "run"
    samples.write_run(run, KEY, PLAN, ALL, close=False)
    whole = (run / "ledger.jsonl").read_bytes()
    start = len(whole) - len(whole.splitlines(keepends=True)[-1])
    for length in (start + 1, start + 100, len(whole) - 2, len(whole) - 1):
        (run / "ledger.jsonl").write_bytes(whole[:length])
        (run / "extra.tmp").touch()
        (run / "blobs" / ".tmp-0").touch()
        found = verify(run, TRUST)
        assert found.missing == ("fix[base]#3",)
        assert [t.repeat for t in found.trials] == [1, 2]


def test_a_last_line_of_zeros_is_torn_too(tmp_path: Path) -> None:
    """What some file systems leave of a last write after a power cut."""
    samples.write_run(tmp_path / "run", KEY, PLAN, ALL, close=False)
    with (tmp_path / "run" / "ledger.jsonl").open("ab") as out:
        out.write(b"\0" * 200 + b"\n")
    assert not verify(tmp_path / "run", TRUST).complete


def test_a_lost_checkpoint_file_is_incomplete(run: Path) -> None:
    (run / "checkpoint").unlink()
    found = verify(run, TRUST)
    assert not found.complete
    assert found.problems == ("the checkpoint file is missing",)


def test_a_pinned_checkpoint_fixes_the_run(run: Path, tmp_path: Path) -> None:
    pinned = (run / "checkpoint").read_text()
    assert verify(run, TRUST, checkpoint=pinned).complete
    other = tmp_path / "again"
    samples.write_run(
        other, KEY, PLAN, {**ALL, "fix-base-1": samples.seen(grader=samples.box(samples.command(1)))}
    )
    assert verify(other, TRUST).complete
    with pytest.raises(TamperError, match="given checkpoint is not this run's"):
        verify(other, TRUST, checkpoint=pinned)
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (run / "ledger.jsonl").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(TamperError, match="lost its closing line"):
        verify(run, TRUST, checkpoint=pinned)


@pytest.mark.parametrize("left", [(), ("blobs",)])
def test_a_directory_without_a_run_is_unreadable(tmp_path: Path, left: tuple[str, ...]) -> None:
    for name in left:
        (tmp_path / name).mkdir()
    with pytest.raises(UnreadableError, match="holds no run"):
        verify(tmp_path, TRUST)
    with pytest.raises(UnreadableError, match="no such run directory"):
        verify(tmp_path / "none", TRUST)


def test_a_ledger_without_a_whole_line_says_nothing(run: Path) -> None:
    whole = (run / "ledger.jsonl").read_bytes()
    for content in (b"", whole[:50]):
        (run / "ledger.jsonl").write_bytes(content)
        with pytest.raises(IncompleteError, match="before its first line"):
            verify(run, TRUST)
    (run / "ledger.jsonl").unlink()
    with pytest.raises(IncompleteError, match=r"ledger\.jsonl is missing"):
        verify(run, TRUST)


def test_what_is_not_a_regular_file_is_not_read(run: Path, tmp_path: Path) -> None:
    for name in ("ledger.jsonl", "plan.json"):
        kept = (run / name).read_bytes()
        (run / name).unlink()
        os.mkfifo(run / name)
        with pytest.raises(UnreadableError, match="not a regular file"):
            verify(run, TRUST)
        (run / name).unlink()
        (tmp_path / name).write_bytes(kept)
        (run / name).symlink_to(tmp_path / name)
        with pytest.raises(UnreadableError):
            verify(run, TRUST)
        (run / name).unlink()
        (run / name).write_bytes(kept)
    (run / "checkpoint").unlink()
    (run / "checkpoint").symlink_to("/etc/passwd")
    with pytest.raises(TamperError, match="checkpoint"):
        verify(run, TRUST)


def entry(**changes: Any) -> Trust:
    return Trust((TrustedKey(**{**KEY.trusted("test").model_dump(by_alias=False), **changes}),))


@pytest.mark.parametrize(
    ("trust", "reason"),
    [
        (Trust(), "not trusted"),
        (Trust((SigningKey(Ed25519PrivateKey.generate()).trusted(),)), "not trusted"),
        (entry(revoked=True), "revoked"),
        (entry(not_before="2025-01-01T12:00:00.001Z"), "not in force"),
        (entry(not_after="2025-01-01T11:59:59Z"), "not in force"),
    ],
)
def test_only_trusted_keys_in_force_count(run: Path, trust: Trust, reason: str) -> None:
    with pytest.raises(TamperError, match=reason) as raised:
        verify(run, trust)
    assert raised.value.exit_code == 4


def test_a_key_that_expired_during_the_run_is_refused(tmp_path: Path) -> None:
    times = iter(["2025-01-01T00:00:00Z", "2025-01-03T00:00:00Z"])
    ledger = Ledger.create(tmp_path / "run", PLAN, KEY, now=lambda: next(times))
    ledger.close()
    with pytest.raises(TamperError, match="closed at 2025-01-03"):
        verify(tmp_path / "run", entry(not_after="2025-01-02T00:00:00Z"))
    assert verify(tmp_path / "run", entry(not_after="2025-01-03T00:00:00Z"))


def test_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "run", PLAN, KEY, now=lambda: "yesterday").close()
    with pytest.raises(TamperError, match="no time"):
        verify(tmp_path / "run", TRUST)


def evidence_run(directory: Path) -> dict[str, str]:
    """A run that points to one blob of each kind; returns their digests by name."""
    ledger = Ledger.create(directory, PLAN, KEY, now=lambda: samples.NOON)
    names = ("agent", "measure", "grader", "file", "traffic")
    shas = {name: ledger.blobs.put(name.encode()) for name in names}
    boxes = {
        role: samples.box(samples.command(stdout=samples.capture(role.encode(), shas[role])))
        for role in ("agent", "measure", "grader")
    }
    changes = (
        samples.change("out.txt", sha256=shas["file"], size_bytes=4),
        samples.change("gone.txt", "deleted", None, was=EntryKind.FILE),
        samples.change("link", kind=EntryKind.SYMLINK, link="/etc/passwd"),
    )
    observed = samples.seen(
        **boxes,
        collected=Collected(changes=changes),
        traffic=samples.traffic(log=shas["traffic"]),
    )
    ledger.append(samples.trial(TASK, observed, 1))
    ledger.append(samples.trial(TASK, observed, 2))
    ledger.append(samples.trial(TASK, observed, 3))
    ledger.close()
    return shas


@pytest.mark.contract("G71")
@pytest.mark.parametrize("name", ["agent", "measure", "grader", "file", "traffic"])
def test_all_evidence_must_be_there_and_unchanged(tmp_path: Path, name: str) -> None:
    shas = evidence_run(tmp_path / "run")
    assert verify(tmp_path / "run", TRUST).complete
    blob = tmp_path / "run" / "blobs" / shas[name][:2] / shas[name]
    blob.write_bytes(b"other")
    with pytest.raises(TamperError, match=f"line 2: its evidence.*{shas[name]}"):
        verify(tmp_path / "run", TRUST)
    blob.unlink()
    with pytest.raises(TamperError, match="missing"):
        verify(tmp_path / "run", TRUST)


def test_a_stray_blob_must_be_what_its_name_says_once_a_run_is_closed(tmp_path: Path) -> None:
    for closed in (True, False):
        run = tmp_path / str(closed)
        samples.write_run(run, KEY, PLAN, ALL, close=closed)
        (run / "blobs" / "ab").mkdir()
        (run / "blobs" / "ab" / ("ab" * 32)).touch()
        (run / "notes.txt").touch()
    with pytest.raises(TamperError, match="not what its name says"):
        verify(tmp_path / "True", TRUST)
    assert any("no receipt points to it" in p for p in verify(tmp_path / "False", TRUST).problems)


def resealed(directory: Path, *trials: Any, plan: Any = PLAN) -> Path:
    """A run by the trusted key itself that claims these trials."""
    ledger = Ledger.create(directory, plan, KEY, now=lambda: samples.NOON)
    for one in trials:
        ledger.append(one)
    ledger.close()
    return directory


def test_a_verdict_that_does_not_follow_is_refused_even_with_a_good_signature(tmp_path: Path) -> None:
    failing = samples.trial(TASK, samples.seen(grader=samples.box(samples.command(1))), 1)
    passing = samples.trial(TASK, samples.seen(), 1)
    forged = failing.model_copy(update={"outcome": passing.outcome})
    with pytest.raises(TamperError, match=r"line 2: fix\[base\]#1: its outcome does not follow"):
        verify(resealed(tmp_path / "1", forged), TRUST)
    for metrics in (
        {**failing.metrics, "verifier.exitCode": 0},
        {**failing.metrics, "verifier.exitCode": True},
        {k: v for k, v in failing.metrics.items() if k != "cost.usd"},
        {**failing.metrics, "more": None},
    ):
        forged = failing.model_copy(update={"metrics": metrics})
        run = resealed(tmp_path / str(len(list(tmp_path.iterdir())) + 1), forged)
        with pytest.raises(TamperError, match=r"line 2: fix\[base\]#1: its metrics do not follow"):
            verify(run, TRUST)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"trial_id": "other"}, "not in the plan"),
        ({"trial_id": "fix-base-2"}, "its trial id is that of"),
        ({"task": "other"}, "its trial id is that of"),
        ({"target": "other"}, "its trial id is that of"),
        ({"repeat": 3}, "its trial id is that of"),
        ({"identity": samples.sha("other")}, "other inputs than planned"),
        ({"attempt": 2}, "attempt 2 .* where 1 is due"),
    ],
)
def test_a_trial_of_another_place_is_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    one = samples.trial(TASK, samples.seen(), 1).model_copy(update=changes)
    with pytest.raises(TamperError, match=reason):
        verify(resealed(tmp_path / "run", one), TRUST)


def test_counts_that_no_receipt_could_hold_are_refused(tmp_path: Path) -> None:
    """Each half can be sealed, their sum cannot."""
    observed = samples.seen(traffic=samples.traffic(input_tokens=2**53 - 1, output_tokens=1))
    one = samples.trial(TASK, observed, 1)
    forged = one.model_copy(update={"metrics": {**one.metrics, "tokens.total": 1}})
    with pytest.raises(TamperError, match="its metrics do not follow"):
        verify(resealed(tmp_path / "run", forged), TRUST)


def test_a_trial_sealed_twice_is_refused(tmp_path: Path) -> None:
    one = samples.trial(TASK, samples.seen(), 1)
    with pytest.raises(TamperError, match=r"line 3: attempt 1 .* where 2 is due: a duplicate"):
        verify(resealed(tmp_path / "run", one, one), TRUST)
    second = one.model_copy(update={"attempt": 2})
    assert len(verify(resealed(tmp_path / "again", one, second), TRUST).trials) == 2


@pytest.mark.parametrize(
    "plan",
    [
        PLAN.model_copy(update={"trials": PLAN.trials + PLAN.trials[:1]}),
        PLAN.model_copy(update={"tasks": PLAN.tasks * 2}),
        PLAN.model_copy(update={"tasks": (samples.task("other"),)}),
        PLAN.model_copy(
            update={"trials": (*PLAN.trials, PLAN.trials[0].model_copy(update={"trial_id": "again"}))}
        ),
    ],
)
def test_a_plan_that_names_a_thing_twice_or_not_at_all_is_refused(tmp_path: Path, plan: Any) -> None:
    with pytest.raises(TamperError, match="plan"):
        verify(resealed(tmp_path / "run", plan=plan), TRUST)


def test_a_run_copied_elsewhere_still_verifies(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "copy")
    assert verify(tmp_path / "copy", TRUST).complete


@pytest.mark.contract("S29", "S39")
def test_a_boundary_verdict_must_follow_from_the_changes(tmp_path: Path) -> None:
    """Sealed by the right key and with its right digest, and yet not what the changes give."""
    task = samples.task(writes=("w/",))
    plan = samples.plan(task)
    outside = Collected(changes=(samples.change("tests/a.py"),))
    honest = samples.seen(collected=outside, enforced=samples.bounded(task, outside, Collected()))
    samples.write_run(tmp_path / "honest", KEY, plan, {"fix-base-1": honest})
    assert verify(tmp_path / "honest", TRUST).trials[0].metrics["boundary.violationsRolledBack"] == 1
    clean = samples.seen(collected=outside, enforced=samples.bounded(task, Collected()))
    samples.write_run(tmp_path / "forged", KEY, plan, {"fix-base-1": clean})
    with pytest.raises(TamperError, match="the boundary verdict on agent does not follow from its changes"):
        verify(tmp_path / "forged", TRUST)


@pytest.mark.parametrize("name", ["ledger.jsonl", "plan.json"])
def test_what_no_trusted_key_vouches_for_is_not_even_parsed(tmp_path: Path, name: str) -> None:
    """A line or plan may be of 256 MiB: as empty arrays that would be gigabytes of the verifier's memory."""
    run = tmp_path / "run"
    samples.write_run(run, KEY, PLAN, {})
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    bomb = b"[" + b"[]," * 1_000_000 + b"0]\n"
    (run / name).write_bytes(b"".join([lines[0], bomb, *lines[1:]]) if name == "ledger.jsonl" else bomb)
    tracemalloc.start()
    try:
        with pytest.raises(TamperError, match=r"not an envelope|first line commits"):
            verify(run, TRUST)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
