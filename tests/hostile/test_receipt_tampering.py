"""Known failures I1, I4, I5 and I7 and more: whatever is done to a sealed run, it is never taken for good."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import rfc8785

import run_samples as samples
import tamper_cases as tampering
from boxeval.errors import BoxevalError, IncompleteError, TamperError, UnreadableError
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from tamper_cases import BOTH, FIX, HACK, KEY, OTHER, TRUST, signed, write

SAMPLE = 1000


def lines_of(directory: Path) -> list[bytes]:
    return (directory / "ledger.jsonl").read_bytes().splitlines(keepends=True)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("golden") / "run")


@pytest.fixture
def run(golden: Path, tmp_path: Path) -> Path:
    shutil.copytree(golden, tmp_path / "run")
    return tmp_path / "run"


def taken_for_good(directory: Path, trust: Trust = TRUST) -> bool:
    """Whether a reader would count this run. Only the errors that name a party count as a refusal."""
    try:
        return verify(directory, trust).complete
    except (TamperError, IncompleteError, UnreadableError):
        return False


def test_the_golden_run_is_good_in_the_first_place(golden: Path) -> None:
    assert taken_for_good(golden)


@pytest.mark.slow
def test_some_of_every_way_to_tamper(run: Path, tmp_path: Path) -> None:
    """`make tamper` tries all of them. A torn tail is incomplete, the rest integrity."""
    golden, sealed = tampering.files_of(run), verify(run, TRUST).trials
    tried: Counter[str] = Counter()
    every = tampering.cases(golden, tampering.other_runs(tmp_path), seed=1, step=211)
    for case in islice(every, SAMPLE):
        tampering.apply(run, case.files)
        verdict = tampering.verdict_on(run, case, sealed)
        tampering.apply(run, {name: golden[name] for name in case.files})
        assert tampering.is_right(case, verdict), (case.kind, case.what, verdict)
        tried[case.kind] += 1
    assert len(tried) == 21
    assert tried["random edits"] > 50
    assert taken_for_good(run)


def test_a_line_missing_before_the_end_is_tampering_and_is_named(run: Path) -> None:
    lines = lines_of(run)
    (run / "ledger.jsonl").write_bytes(b"".join([lines[0], *lines[2:]]))
    with pytest.raises(TamperError, match="line 2: says that it is receipt 2, not 1"):
        verify(run, TRUST)


@pytest.mark.parametrize("text", ["passed", "failed"])
def test_a_duplicate_key_is_refused_even_under_a_good_signature(run: Path, text: str) -> None:
    """Known failure I5: readers that take the first and readers that take the last would disagree."""
    lines = lines_of(run)
    payload = base64.b64decode(json.loads(lines[-2])["payload"])
    twice = payload.replace(b'"task":"passed"', b'"task":"failed","task":"%s"' % text.encode(), 1)
    assert twice != payload
    (run / "ledger.jsonl").write_bytes(b"".join([*lines[:-2], signed(twice)]))
    with pytest.raises(TamperError, match="line 3: the key 'task' is there twice"):
        verify(run, TRUST)
    envelope = lines[-2].replace(b'{"payload":', b'{"payload":"","payload":', 1)
    (run / "ledger.jsonl").write_bytes(b"".join([*lines[:-2], envelope, lines[-1]]))
    with pytest.raises(TamperError, match="twice"):
        verify(run, TRUST)


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda p: p.replace(b'"wallMs":1234', b'"wallMs":1234.0', 1),
        lambda p: p.replace(b'"wallMs":1234', b'"wallMs":1.234e3', 1),
        lambda p: p.replace(b'"wallMs":1234', b'"wallMs": 1234', 1),
        lambda p: p.replace(b'"type":"trial"', b'"type":"\\u0074rial"', 1),
        lambda p: json.dumps(dict(reversed(json.loads(p).items())), separators=(",", ":")).encode(),
        lambda p: json.dumps(json.loads(p), indent=1).encode(),
        lambda p: p.replace(b'"wallMs":1234', b'"wallMs":NaN', 1),
        lambda p: p + b"\n",
        lambda _: b"[" * 200_000,
    ],
)
def test_a_reformatted_receipt_is_refused_even_under_a_good_signature(
    run: Path, rewrite: Callable[[bytes], bytes]
) -> None:
    lines = lines_of(run)
    payload = base64.b64decode(json.loads(lines[1])["payload"])
    assert rewrite(payload) != payload
    (run / "ledger.jsonl").write_bytes(lines[0] + signed(rewrite(payload)))
    with pytest.raises(TamperError, match="line 2"):
        verify(run, TRUST)


def test_a_receipt_of_another_run_is_refused(run: Path, tmp_path: Path) -> None:
    """Known failure I7: a passing receipt laid over a failing trial, from another run or suite version."""
    elsewhere = write(tmp_path / "elsewhere", plan=samples.plan(FIX, HACK, run_id="run-2"))
    ours, theirs = lines_of(run), lines_of(elsewhere)
    for i in range(len(ours)):
        (run / "ledger.jsonl").write_bytes(b"".join([*ours[:i], theirs[i], *ours[i + 1 :]]))
        assert not taken_for_good(run), f"line {i + 1}"
    (run / "ledger.jsonl").write_bytes(b"".join(theirs))
    with pytest.raises(TamperError, match=r"plan\.json"):
        verify(run, TRUST)
    shutil.copy(elsewhere / "plan.json", run / "plan.json")
    with pytest.raises(TamperError, match="checkpoint"):
        verify(run, TRUST)


def rebound(payload: dict[str, Any], **body: Any) -> bytes:
    return signed(rfc8785.dumps({**payload, "body": {**payload["body"], **body}}))


@pytest.mark.parametrize(
    ("body", "reason"),
    [({"runId": "run-2"}, "run run-2, not to run-1"), ({"plan": "0" * 64}, "another plan")],
)
def test_a_receipt_bound_elsewhere_is_refused_though_its_chain_fits(
    run: Path, body: Any, reason: str
) -> None:
    lines = lines_of(run)
    payload = json.loads(base64.b64decode(json.loads(lines[1])["payload"]))
    (run / "ledger.jsonl").write_bytes(lines[0] + rebound(payload, **body))
    with pytest.raises(TamperError, match=f"line 2: .*{reason}"):
        verify(run, TRUST)


def test_a_foreign_key_is_refused_for_the_run_and_for_a_single_line(run: Path, tmp_path: Path) -> None:
    with pytest.raises(TamperError, match="not trusted"):
        verify(write(tmp_path / "theirs", OTHER), TRUST)
    lines = lines_of(run)
    payload = base64.b64decode(json.loads(lines[1])["payload"])
    (run / "ledger.jsonl").write_bytes(b"".join([lines[0], signed(payload, OTHER)]))
    with pytest.raises(TamperError, match="not trusted"):
        verify(run, TRUST)
    with pytest.raises(TamperError, match="line 2: signed by other"):
        verify(run, BOTH)
    mislabelled = json.loads(signed(payload, OTHER))
    mislabelled["signatures"][0]["keyid"] = KEY.keyid
    (run / "ledger.jsonl").write_bytes(lines[0] + rfc8785.dumps(mislabelled) + b"\n")
    with pytest.raises(TamperError, match="does not hold"):
        verify(run, TRUST)


def test_a_revoked_key_refuses_everything_it_signed(run: Path) -> None:
    revoked = Trust((KEY.trusted("test").model_copy(update={"revoked": True}),))
    with pytest.raises(TamperError, match="revoked"):
        verify(run, revoked)


@pytest.mark.parametrize(
    "body",
    [
        {
            "type": "closed",
            "runId": "run-1",
            "count": 3,
            "root": "0" * 64,
            "at": samples.NOON,
            "interruptedBy": None,
        },
        {
            "type": "closed",
            "runId": "run-1",
            "count": 2,
            "root": "1" * 64,
            "at": samples.NOON,
            "interruptedBy": None,
        },
        {"type": "opened", "runId": "run-1", "trials": 2, "at": samples.NOON},
    ],
)
def test_a_signed_line_that_says_something_wrong_is_refused(run: Path, body: dict[str, Any]) -> None:
    lines = lines_of(run)
    closing = json.loads(base64.b64decode(json.loads(lines[-1])["payload"]))
    forged = {**closing, "body": {**body, "plan": closing["body"]["plan"]}}
    (run / "ledger.jsonl").write_bytes(b"".join([*lines[:-1], signed(rfc8785.dumps(forged))]))
    with pytest.raises(TamperError, match="line 4"):
        verify(run, TRUST)


@pytest.mark.contract("V47")
@pytest.mark.parametrize(
    "rewrite",
    [
        lambda p: p.replace(b'"error":null,', b"", 1),
        lambda p: p.replace(b"{", b'{"aNote":"x",', 1),
        lambda p: p.replace(b'"execution":"completed"', b'"execution":"half-way"', 1),
        lambda p: p.replace(b'"type":"trial"', b'"type":"trial-2"', 1),
        lambda p: p.replace(b"boxeval.receipt/1", b"boxeval.receipt/2", 1),
    ],
)
def test_what_a_trusted_key_sealed_in_another_form_is_refused_by_name_and_not_called_tampered(
    run: Path, rewrite: Callable[[bytes], bytes]
) -> None:
    lines = lines_of(run)
    payload = base64.b64decode(json.loads(lines[1])["payload"])
    assert rewrite(payload) != payload
    (run / "ledger.jsonl").write_bytes(lines[0] + signed(rewrite(payload)))
    with pytest.raises(UnreadableError, match=r"line 2: sealed by another version of boxeval"):
        verify(run, TRUST)
    unsigned = json.loads(lines[1]) | {"payload": base64.b64encode(rewrite(payload)).decode()}
    (run / "ledger.jsonl").write_bytes(lines[0] + rfc8785.dumps(unsigned) + b"\n")
    with pytest.raises(TamperError, match="line 2"):
        verify(run, TRUST)


def test_a_signed_opening_must_announce_what_the_plan_has_and_come_first(run: Path) -> None:
    lines = lines_of(run)
    opening = json.loads(base64.b64decode(json.loads(lines[0])["payload"]))
    (run / "ledger.jsonl").write_bytes(rebound(opening, trials=3))
    with pytest.raises(TamperError, match="announces 3 trials, but the plan has 2"):
        verify(run, TRUST)
    trial = json.loads(base64.b64decode(json.loads(lines[1])["payload"]))
    (run / "ledger.jsonl").write_bytes(rebound({**trial, "index": 0, "previous": "0" * 64}))
    with pytest.raises(TamperError, match="line 1: is a trial receipt"):
        verify(run, TRUST)


def test_side_files_are_never_read(run: Path) -> None:
    """Nothing in the directory beside plan, ledger, checkpoint and blobs can change a word of the result."""
    before = verify(run, TRUST)
    (run / "trusted.json").write_text("{}")
    (run / "report.json").write_text('{"passed": 1000}')
    (run / "keys").mkdir()
    os.mkfifo(run / "pipe")
    (run / "blobs" / ".tmp-1").touch()
    after = verify(run, TRUST)
    assert (after.trials, after.problems, after.complete) == (before.trials, before.problems, True)


def test_random_garbage_is_refused_by_an_error_with_a_name(run: Path) -> None:
    chance = random.Random(7)
    for size in (1, 10, 1000, 100_000):
        garbage = chance.randbytes(size)
        for name in ("ledger.jsonl", "plan.json", "checkpoint"):
            kept = (run / name).read_bytes()
            for content in (garbage, garbage + b"\n", kept + garbage, garbage + kept, b"\n" * size):
                (run / name).write_bytes(content)
                with pytest.raises(BoxevalError):
                    if not verify(run, TRUST).complete:
                        raise IncompleteError
            (run / name).write_bytes(kept)
