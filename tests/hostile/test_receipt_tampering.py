"""Known failures I1, I4, I5 and I7 and more: whatever is done to a sealed run, it is never taken for good."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.errors import BoxevalError, IncompleteError, TamperError, UnreadableError
from boxeval.receipts.envelope import PAYLOAD_TYPE, pae
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.spec.trial import Collected, Observations

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33))))
TRUST = Trust((KEY.trusted("test"),))
BOTH = Trust((KEY.trusted("test"), OTHER.trusted("other")))
FIX, HACK = (
    samples.task("fix"),
    samples.task("hack", verify={"forbid_paths": ("tests/",), "commands": ("true",)}),
)
PLAN = samples.plan(FIX, HACK)

Lines = list[bytes]


def observed(ledger: Ledger) -> dict[str, Observations]:
    """`fix` fails and `hack` passes, with evidence of every kind."""
    out = ledger.blobs.put(b"1 failed")
    box = samples.box(samples.command(1, stdout=samples.capture(b"1 failed", out)))
    change = samples.change(
        "src/a.py", "modified", sha256=ledger.blobs.put(b"x = 1\n"), size_bytes=6, mode=0o644
    )
    return {
        "fix": samples.seen(grader=box, collected=Collected(changes=(change,)), traffic=samples.traffic()),
        "hack": samples.seen(measure=samples.box()),
    }


def write(directory: Path, key: SigningKey = KEY, plan: Any = PLAN) -> Path:
    ledger = Ledger.create(directory, plan, key, now=lambda: samples.NOON)
    found = observed(ledger)
    for place in plan.trials:
        ledger.append(samples.trial(plan.task_of(place), found[place.task], place.repeat))
    ledger.close()
    return directory


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


def lines_of(directory: Path) -> Lines:
    return (directory / "ledger.jsonl").read_bytes().splitlines(keepends=True)


def test_the_golden_run_is_good_in_the_first_place(golden: Path) -> None:
    assert taken_for_good(golden)


@pytest.mark.parametrize("name", ["ledger.jsonl", "plan.json", "checkpoint"])
def test_no_flipped_byte_passes(run: Path, name: str) -> None:
    whole = (run / name).read_bytes()
    chance = random.Random(name)
    places = range(len(whole)) if len(whole) < 300 else sorted(chance.sample(range(len(whole)), 300))
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << chance.randrange(8)
        (run / name).write_bytes(changed)
        assert not taken_for_good(run), f"byte {place}"


def test_no_flipped_byte_of_the_evidence_passes(run: Path) -> None:
    for blob in [p for p in (run / "blobs").rglob("*") if p.is_file()]:
        whole = blob.read_bytes()
        for place in range(len(whole)):
            blob.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(TamperError):
                verify(run, TRUST)
        blob.write_bytes(whole)


@pytest.mark.parametrize("name", ["ledger.jsonl", "plan.json", "checkpoint"])
def test_no_shortened_or_lengthened_file_passes(run: Path, name: str) -> None:
    whole = (run / name).read_bytes()
    cuts = {0, 1, len(whole) // 2, *range(max(0, len(whole) - 40), len(whole))}
    for length in cuts:
        (run / name).write_bytes(whole[:length])
        assert not taken_for_good(run), f"cut to {length}"
    for more in (b"\n", b"\0", b" ", b"{}\n", whole, whole.splitlines(keepends=True)[-1]):
        (run / name).write_bytes(whole + more)
        assert not taken_for_good(run), f"with {more[:20]!r} behind"
    (run / name).unlink()
    assert not taken_for_good(run)


def reorderings(lines: Lines) -> Iterator[tuple[str, Lines]]:
    for i in range(len(lines)):
        yield f"without line {i + 1}", lines[:i] + lines[i + 1 :]
        yield f"line {i + 1} twice", lines[: i + 1] + lines[i:]
        yield f"line {i + 1} again at the end", [*lines, lines[i]]
        for j in range(i):
            swapped = list(lines)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            yield f"lines {j + 1} and {i + 1} swapped", swapped
            copied = list(lines)
            copied[i] = lines[j]
            yield f"line {j + 1} over line {i + 1}", copied
    yield "backwards", lines[::-1]
    yield "blank line between", [lines[0], b"\n", *lines[1:]]
    yield "carriage returns", [line[:-1] + b"\r\n" for line in lines]
    yield "byte order mark", [b"\xef\xbb\xbf" + lines[0], *lines[1:]]


def test_no_deleted_moved_or_repeated_line_passes(run: Path) -> None:
    for what, lines in reorderings(lines_of(run)):
        (run / "ledger.jsonl").write_bytes(b"".join(lines))
        assert not taken_for_good(run), what


def test_a_line_missing_before_the_end_is_tampering_and_is_named(run: Path) -> None:
    lines = lines_of(run)
    (run / "ledger.jsonl").write_bytes(b"".join([lines[0], *lines[2:]]))
    with pytest.raises(TamperError, match="line 2: says that it is receipt 2, not 1"):
        verify(run, TRUST)


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a JSON tree, the containers too."""
    if path:
        yield path
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, value in children:
        yield from leaves(value, (*path, name))


def replaced(tree: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    copy = json.loads(json.dumps(tree))
    holder = copy
    for part in path[:-1]:
        holder = holder[part]
    change(holder, path[-1])
    return copy


def to_null(holder: Any, name: Any) -> None:
    holder[name] = None


def gone(holder: Any, name: Any) -> None:
    del holder[name]


def mutated(holder: Any, name: Any) -> None:
    old = holder[name]
    if isinstance(old, bool):
        holder[name] = not old
    elif isinstance(old, int | float):
        holder[name] = old + 1
    elif isinstance(old, str):
        holder[name] = old[:-1] + ("0" if old[-1:] != "0" else "1")
    elif old is None:
        holder[name] = "x"
    elif isinstance(old, dict):
        old["extra"] = 1
    else:
        old.append(None)


def enveloped(payload: bytes, signature: dict[str, str]) -> bytes:
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [signature],
    }
    return rfc8785.dumps(envelope) + b"\n"  # type: ignore[arg-type, unused-ignore]


def signed(payload: bytes, key: SigningKey = KEY) -> bytes:
    sig = base64.b64encode(key.sign(pae(PAYLOAD_TYPE, payload))).decode()
    return enveloped(payload, {"keyid": key.keyid, "sig": sig})


def test_every_leaf_of_every_receipt_is_signed(run: Path) -> None:
    """Known failure I4: nulls that escape the signature, and 63 fields of 76 that were not signed."""
    lines = lines_of(run)
    tried = 0
    for i, line in enumerate(lines):
        envelope = json.loads(line)
        payload = json.loads(base64.b64decode(envelope["payload"]))
        for path in leaves(payload):
            for change in (to_null, gone, mutated):
                forged = replaced(payload, path, change)
                if forged == payload:
                    continue
                new = enveloped(rfc8785.dumps(forged), envelope["signatures"][0])
                (run / "ledger.jsonl").write_bytes(b"".join([*lines[:i], new, *lines[i + 1 :]]))
                tried += 1
                with pytest.raises(TamperError):
                    verify(run, TRUST)
    assert tried > 500


def test_every_leaf_of_the_plan_is_sealed(run: Path) -> None:
    plan = json.loads((run / "plan.json").read_bytes())
    for path in leaves(plan):
        for change in (to_null, gone, mutated):
            forged = replaced(plan, path, change)
            if forged == plan:
                continue
            (run / "plan.json").write_bytes(rfc8785.dumps(forged))
            with pytest.raises(TamperError, match=r"plan\.json"):
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
