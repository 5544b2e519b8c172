"""A sealed run and every way to tamper with it that we know, one case at a time (known failures I1, I4, I5, I7).

`scripts/tamper.py` tries all of them, `tests/hostile/test_receipt_tampering.py` a sample. The order is fixed, and what
is random comes from the seed.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.errors import IncompleteError, TamperError, UnreadableError
from boxeval.receipts.envelope import PAYLOAD_TYPE, pae
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.recovery import Recovery
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.spec.plan import Plan
from boxeval.spec.trial import Collected, Observations, Trial

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33))))
MINE, THEIRS = KEY.trusted("test"), OTHER.trusted("other")
TRUST, BOTH = Trust((MINE,)), Trust((MINE, THEIRS))
REVOKED = Trust((MINE.model_copy(update={"revoked": True}),))
LATER = Trust((MINE.model_copy(update={"not_before": "2025-01-01T12:00:00.001Z"}),))
EARLIER = Trust((MINE.model_copy(update={"not_after": "2025-01-01T11:59:59.999Z"}),))
FIX = samples.task("fix")
HACK = samples.task("hack", verify={"forbid_paths": ("tests/",), "commands": ("true",)})
PLAN = samples.plan(FIX, HACK)
LEDGER, PLAN_FILE, CHECKPOINT = "ledger.jsonl", "plan.json", "checkpoint"
GIVEN_FILES = (LEDGER, PLAN_FILE, CHECKPOINT)

Files = dict[str, bytes]
"""Content by path below the run's directory."""
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


def write(directory: Path, key: SigningKey = KEY, plan: Plan = PLAN) -> Path:
    """Seal a run of two trials."""
    ledger = Ledger.create(directory, plan, key, now=lambda: samples.NOON)
    found = observed(ledger)
    for place in plan.trials:
        ledger.append(samples.trial(plan.task_of(place), found[place.task], place.repeat))
    ledger.close()
    return directory


def write_resumed(directory: Path) -> Path:
    """Seal a run that was interrupted, left with half a line, and taken up again."""
    ledger = Ledger.create(directory, PLAN, KEY, now=lambda: samples.NOON)
    found = observed(ledger)
    ledger.append(samples.trial(FIX, samples.fault("command_error")))
    ledger.append(samples.trial(HACK, found["hack"]))
    ledger.close("SIGINT")
    with (directory / LEDGER).open("ab") as torn:
        torn.write(b'{"payload":')
    with Recovery(directory, TRUST) as recovery:
        ledger = recovery.go_on(KEY, now=lambda: samples.NOON)
    ledger.append(samples.trial(FIX, found["fix"], attempt=2))
    ledger.close()
    return directory


def files_of(directory: Path) -> Files:
    """Everything in a run's directory."""
    return {
        str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()
    }


def other_runs(place: Path) -> dict[str, Files]:
    """Runs that are good themselves, by what they differ in."""
    again = samples.task("fix", identity=samples.sha("another version of fix"))
    return {
        "run": files_of(write(place / "other-run", plan=samples.plan(FIX, HACK, run_id="run-2"))),
        "version": files_of(write(place / "other-version", plan=samples.plan(again, HACK))),
        "key": files_of(write(place / "other-key", OTHER)),
    }


def apply(directory: Path, files: dict[str, bytes | None]) -> None:
    """Give files another content; None removes one."""
    for name, data in files.items():
        if data is None:
            (directory / name).unlink()
        else:
            (directory / name).write_bytes(data)


@dataclass(frozen=True, slots=True)
class Case:
    """One act of tampering: files with another content (None: removed), or another trust.

    `torn` if what it does to the end of the ledger, or to the checkpoint, is what a crash does too.
    """

    kind: str
    what: str
    files: dict[str, bytes | None] = field(default_factory=dict)
    trust: Trust = TRUST
    torn: bool = False


def verdict_on(directory: Path, case: Case, sealed: tuple[Trial, ...]) -> str:
    """`integrity`, `incomplete` or `unreadable` for a refusal, else `accepted`.

    Accepted is also what is called incomplete but tells of a trial that was not `sealed` so, in that order.
    """
    try:
        run = verify(directory, case.trust)
    except TamperError:
        return "integrity"
    except IncompleteError:
        return "incomplete"
    except UnreadableError:
        return "unreadable"
    if run.complete or run.trials != sealed[: len(run.trials)]:
        return "accepted"
    return "incomplete"


def is_right(case: Case, verdict: str) -> bool:
    """A torn tail is incomplete, the rest integrity."""
    return verdict == "integrity" or (case.torn and verdict == "incomplete")


def cases(golden: Files, others: dict[str, Files], seed: int, step: int = 1) -> Iterator[Case]:
    """All cases, then random ones without end. `others` are runs by what they differ in.

    With a `step`, only every so manyth value and place is changed.
    """
    yield from line_moves(golden)
    yield from leaf_changes(golden, step)
    yield from duplicate_keys(golden, step)
    yield from reformatted(golden)
    yield from downgrades(golden)
    yield from foreign_keys(golden)
    yield from between_runs(golden, others)
    yield from blob_changes(golden)
    yield from cuts(golden, step)
    yield from inserts(golden, step, random.Random(f"insert {seed}"))
    yield from flips(golden, step)
    yield from random_edits(golden, random.Random(f"random {seed}"))


def flips(golden: Files, step: int) -> Iterator[Case]:
    """Two bits of every byte of every file: the last, and one that goes from place to place."""
    for name, data in golden.items():
        last = last_line(data) if name == LEDGER else len(data)
        for place, bit in ((at, bit) for at in range(0, len(data), step) for bit in (0, 1 + at % 7)):
            changed = data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]
            yield Case("bit flipped", f"{name} {place}.{bit}", {name: changed}, torn=place >= last)


def cuts(golden: Files, step: int) -> Iterator[Case]:
    """Every file cut to every shorter length, and without each single byte."""
    for name, data in golden.items():
        in_ledger = name == LEDGER
        last = last_line(data) if in_ledger else len(data)
        for place in range(0, len(data), step):
            yield Case("truncated", f"{name} to {place}", {name: data[:place]}, torn=in_ledger)
            without = data[:place] + data[place + 1 :]
            if without != data:
                yield Case("byte removed", f"{name} {place}", {name: without}, torn=place >= last)
        if name in GIVEN_FILES:
            yield Case("file removed", name, {name: None}, torn=name in (LEDGER, CHECKPOINT))


def inserts(golden: Files, step: int, chance: random.Random) -> Iterator[Case]:
    """A byte at every place of every file, and behind it."""
    for name, data in golden.items():
        last = last_line(data) if name == LEDGER else len(data) + 1
        for place in range(0, len(data) + 1, step):
            changed = data[:place] + bytes([chance.randrange(256)]) + data[place:]
            yield Case("byte inserted", f"{name} {place}", {name: changed}, torn=place >= last)
    for more in (b"\n", b"\0", b" ", b"{}\n", golden[LEDGER], lines_of(golden)[-1]):
        for name in GIVEN_FILES:
            yield Case(
                "bytes added", f"{name} {more[:9]!r}", {name: golden[name] + more}, torn=name == LEDGER
            )


def line_moves(golden: Files) -> Iterator[Case]:
    """Lines deleted, doubled, swapped, copied over others, reversed, and respaced."""
    lines = lines_of(golden)
    for what, moved in reorderings(lines):
        is_prefix = moved == lines[: len(moved)]
        kind = "line deleted" if what.startswith("without") else "line moved or doubled"
        yield Case(kind, what, {LEDGER: b"".join(moved)}, torn=is_prefix)


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


def leaf_changes(golden: Files, step: int) -> Iterator[Case]:
    """Every value of every receipt, envelope and of the plan: null, gone, another one."""
    lines = lines_of(golden)
    for i, line in enumerate(lines):
        envelope = json.loads(line)
        for what, forged in forgeries(payload_of(line), step):
            new = enveloped(rfc8785.dumps(forged), envelope["signatures"][0])
            yield Case("receipt's value changed", f"line {i + 1} {what}", with_line(lines, i, new))
        for what, forged in forgeries(envelope, 1):
            new = rfc8785.dumps(forged) + b"\n"
            yield Case("envelope's value changed", f"line {i + 1} {what}", with_line(lines, i, new))
    for what, forged in forgeries(json.loads(golden[PLAN_FILE]), step):
        yield Case("plan's value changed", what, {PLAN_FILE: rfc8785.dumps(forged)})


def duplicate_keys(golden: Files, step: int) -> Iterator[Case]:
    """Every key of every object twice, with one value or two; receipts under a good signature."""
    lines = lines_of(golden)
    for i, line in enumerate(lines):
        for what, text in doubled(payload_of(line), step):
            yield Case("key twice, signed", f"line {i + 1} {what}", with_line(lines, i, signed(text)))
        for what, text in doubled(json.loads(line), 1):
            yield Case("key twice", f"envelope {i + 1} {what}", with_line(lines, i, text + b"\n"))
    for what, text in doubled(json.loads(golden[PLAN_FILE]), step):
        yield Case("key twice", f"plan {what}", {PLAN_FILE: text})


def reformatted(golden: Files) -> Iterator[Case]:
    """The same data in another spelling; receipts under a good signature."""
    lines = lines_of(golden)
    for number, spell in enumerate(SPELLINGS):
        for i, line in enumerate(lines):
            payload = rfc8785.dumps(payload_of(line))
            if spell(payload) != payload:
                new = signed(spell(payload))
                yield Case("respelt, signed", f"line {i + 1} {number}", with_line(lines, i, new))
            if spell(line[:-1]) != line[:-1]:
                new = spell(line[:-1]).replace(b"\n", b" ") + b"\n"
                yield Case("respelt", f"envelope {i + 1} {number}", with_line(lines, i, new))
        if (plan := spell(golden[PLAN_FILE])) != golden[PLAN_FILE]:
            yield Case("respelt", f"plan {number}", {PLAN_FILE: plan})


SPELLINGS: tuple[Callable[[bytes], bytes], ...] = (
    lambda p: json.dumps(dict(reversed(json.loads(p).items())), separators=(",", ":")).encode(),
    lambda p: json.dumps(json.loads(p), indent=1).encode(),
    lambda p: p.replace(b":1,", b":1.0,", 1),
    lambda p: p.replace(b":1,", b":1e0,", 1),
    lambda p: p.replace(b'"type"', b'"\\u0074ype"', 1),
    lambda p: p.replace(b"/", b"\\/", 1),
    lambda p: p + b" ",
    lambda p: b" " + p,
)


def downgrades(golden: Files) -> Iterator[Case]:
    """Older and newer formats, other payload types, envelopes without or with more signatures."""
    lines = lines_of(golden)
    for i, line in enumerate(lines):
        envelope = json.loads(line)
        signature = envelope["signatures"][0]
        payload = payload_of(line)
        for name in ("boxeval.receipt/0", "boxeval.receipt/2", "boxeval.receipt", "", None):
            forged = enveloped(rfc8785.dumps({**payload, "format": name}), signature)
            yield Case("downgraded", f"line {i + 1} format {name}", with_line(lines, i, forged))
        changes: tuple[dict[str, Any], ...] = (
            {"payloadType": "application/json"},
            {"payloadType": ""},
            {"signatures": []},
            {"signatures": [signature, signature]},
            {"signatures": [{**signature, "sig": ""}]},
            {"signatures": [{"keyid": signature["keyid"], "sig": None}]},
            {"signatures": [{**signature, "alg": "none"}]},
            {"signatures": None},
        )
        for change in changes:
            new = rfc8785.dumps({**envelope, **change}) + b"\n"
            yield Case("downgraded", f"line {i + 1} {change}", with_line(lines, i, new))
        bare = rfc8785.dumps(payload) + b"\n"
        yield Case("downgraded", f"line {i + 1} without an envelope", with_line(lines, i, bare))
    plan = json.loads(golden[PLAN_FILE])
    for name in ("boxeval.plan/0", "boxeval.plan/2", ""):
        yield Case("downgraded", f"plan {name}", {PLAN_FILE: rfc8785.dumps({**plan, "format": name})})


def foreign_keys(golden: Files) -> Iterator[Case]:
    """Lines signed by a key that is not trusted, or trusted but not this run's; keys revoked or not in force."""
    lines = lines_of(golden)
    for i, line in enumerate(lines):
        new = signed(rfc8785.dumps(payload_of(line)), OTHER)
        for trust in (TRUST, BOTH):
            yield Case("foreign key", f"line {i + 1}", with_line(lines, i, new), trust)
        mislabelled = json.loads(new)
        mislabelled["signatures"][0]["keyid"] = KEY.keyid
        yield Case("foreign key", f"line {i + 1}", with_line(lines, i, rfc8785.dumps(mislabelled) + b"\n"))
    for what, trust in (("nobody", Trust()), ("another", Trust((THEIRS,)))):
        yield Case("foreign key", f"{what} is trusted", {}, trust)
    for what, trust in (("revoked", REVOKED), ("not yet in force", LATER), ("no more in force", EARLIER)):
        yield Case("key revoked or not in force", what, {}, trust)


def between_runs(golden: Files, others: dict[str, Files]) -> Iterator[Case]:
    """Every line and file of another run in this one's place, alone and all together but one."""
    lines = lines_of(golden)
    for what, other in others.items():
        theirs = lines_of(other)
        for i in range(len(lines)):
            for j, line in enumerate(theirs):
                if line != lines[i]:
                    moved = with_line(lines, i, line)
                    yield Case("from another run", f"{what}: line {j + 1} over {i + 1}", moved, BOTH)
        for name in GIVEN_FILES:
            if other[name] != golden[name]:
                yield Case("from another run", f"{what}: {name}", {name: other[name]}, BOTH)
                rest: dict[str, bytes | None] = {n: other[n] for n in GIVEN_FILES if n != name}
                if any(rest[n] != golden[n] for n in rest):
                    yield Case("from another run", f"{what}: all but {name}", rest, BOTH)


def blob_changes(golden: Files) -> Iterator[Case]:
    """Evidence that is missing, empty, longer, or other evidence."""
    blobs = [name for name in golden if name.startswith("blobs/")]
    for name in blobs:
        yield Case("evidence changed", f"{name} removed", {name: None})
        yield Case("evidence changed", f"{name} empty", {name: b""})
        yield Case("evidence changed", f"{name} twice", {name: golden[name] * 2})
        for other in blobs:
            if golden[other] != golden[name]:
                yield Case("evidence changed", f"{other} as {name}", {name: golden[other]})


def random_edits(golden: Files, chance: random.Random) -> Iterator[Case]:
    """Up to eight edits in one file: bytes replaced, removed, repeated, moved. Without end."""
    names = sorted(golden)
    while True:
        name = chance.choice(names)
        data = bytearray(golden[name])
        for _ in range(chance.randint(2, 8)):
            at, size = chance.randrange(len(data) or 1), chance.randint(1, 40)
            piece = data[at : at + size]
            how = chance.randrange(4)
            if how == 0:
                data[at : at + size] = chance.randbytes(len(piece))
            elif how == 1:
                del data[at : at + size]
            else:
                to = chance.randrange(len(data) or 1) if how == 2 else at
                data[to:to] = piece
        if data != golden[name]:
            yield Case("random edits", name, {name: bytes(data)}, torn=name == LEDGER)


def last_line(ledger: bytes) -> int:
    """Where the last line begins, less the newline before it: without that, the last line is a longer one."""
    return ledger.rindex(b"\n", 0, len(ledger) - 1)


def lines_of(files: Files) -> Lines:
    return files[LEDGER].splitlines(keepends=True)


def payload_of(line: bytes) -> Any:
    return json.loads(base64.b64decode(json.loads(line)["payload"]))


def with_line(lines: Lines, number: int, line: bytes) -> dict[str, bytes | None]:
    return {LEDGER: b"".join([*lines[:number], line, *lines[number + 1 :]])}


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


def forgeries(tree: Any, step: int) -> Iterator[tuple[str, Any]]:
    """The tree with one value changed, for each value in it and each way to change it."""
    for path in islice(leaves(tree), 0, None, step):
        for change in (to_null, gone, mutated):
            forged = replaced(tree, path, change)
            if forged != tree or rfc8785.dumps(forged) != rfc8785.dumps(tree):
                yield f"{change.__name__} {path}", forged


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


def doubled(tree: Any, step: int) -> Iterator[tuple[str, bytes]]:
    """Canonical JSON but for one key that is there twice: the same value, or another one first or last."""
    for path in islice(leaves(tree), 0, None, step):
        if isinstance(path[-1], str):
            for extra in ("same", "first", "last"):
                yield f"{path} {extra}", _twice(tree, path, extra).encode()


def _twice(tree: Any, path: tuple[Any, ...], extra: str) -> str:
    def member(name: str, text: str) -> str:
        return f"{_text(name)}:{text}"

    if isinstance(tree, list):
        inner = (_twice(v, path[1:], extra) if i == path[0] else _text(v) for i, v in enumerate(tree))
        return f"[{','.join(inner)}]"
    members = []
    for name in sorted(tree):
        own = member(name, _text(tree[name]))
        if name != path[0]:
            members.append(own)
        elif len(path) > 1:
            members.append(member(name, _twice(tree[name], path[1:], extra)))
        else:
            other = member(name, '"forged"')
            members += {"same": [own, own], "first": [other, own], "last": [own, other]}[extra]
    return f"{{{','.join(members)}}}"


def _text(tree: Any) -> str:
    return rfc8785.dumps(tree).decode()
