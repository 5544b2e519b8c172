"""Reading a ledger: lines signed by one trusted key, in order, each bound to the one before."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from boxeval.errors import TamperError, UnreadableError
from boxeval.receipts.canonical import MAX_BYTES, MalformedError, OtherVersionError, read
from boxeval.receipts.envelope import Envelope, is_no_envelope, line_hash, open_line, pae
from boxeval.receipts.ledger import NO_LINE
from boxeval.receipts.storage import open_regular
from boxeval.receipts.trust import SHOWN_DIGITS, Trust, TrustedKey
from boxeval.spec.receipt import Closed, Receipt, Resumed


@dataclass(frozen=True, slots=True)
class Line:
    """A line that holds: its number counts from 1, `end` is where the next one begins."""

    number: int
    receipt: Receipt
    hash: str
    key: TrustedKey
    end: int


def refuse(number: int, reason: str) -> TamperError:
    """The error for one ledger line."""
    return TamperError(f"ledger.jsonl line {number}: {reason}")


def other_version(place: str, error: OtherVersionError) -> UnreadableError:
    """The error for what is whole, but sealed by a boxeval whose records have another form."""
    return UnreadableError(
        f"{place}: sealed by another version of boxeval ({error}); verify it with the version that made it"
    )


def read_chain(path: Path, trust: Trust) -> tuple[tuple[Line, ...], str | None]:
    """Every line, and why the last one is torn, if it is. `TamperError` for all else that does not hold."""
    lines: list[Line] = []
    torn: str | None = None
    with open_regular(path) as stream:
        while raw := stream.readline(MAX_BYTES + 1):
            number = len(lines) + 1
            if torn:
                raise refuse(number, torn)
            torn = _torn(raw)
            if torn is None:
                lines.append(_check(raw[:-1], lines[-1] if lines else None, trust))
    return tuple(lines), torn


def _torn(raw: bytes) -> str | None:
    """What makes a line one that was not written to its end; a fault only the last line may have."""
    if not raw.endswith(b"\n"):
        return "has no end"
    if is_no_envelope(raw):
        return None
    try:
        json.loads(raw[:-1])
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        return f"not JSON: {error}"
    except (ValueError, RecursionError):
        return None  # no half of a line; why it is refused is told where it is read strictly
    return None


def _check(line: bytes, before: Line | None, trust: Trust) -> Line:
    number = before.number + 1 if before else 1
    try:
        envelope = open_line(line)
        key = _signer(envelope, number, trust)
        receipt = read(Receipt, envelope.payload_bytes)
    except OtherVersionError as error:
        # Its signature holds, so it is what a trusted key sealed: nothing was changed.
        raise other_version(f"ledger.jsonl line {number}", error) from None
    except MalformedError as error:
        raise refuse(number, str(error)) from None
    if before and before.key.keyid != key.keyid:
        raise refuse(number, f"signed by {key.name}, but line 1 by {before.key.name}")
    if receipt.index != number - 1:
        raise refuse(
            number, f"says that it is receipt {receipt.index}, not {number - 1}: lines were moved or removed"
        )
    if receipt.previous != (before.hash if before else NO_LINE):
        raise refuse(number, "does not follow the line before it: lines were changed, moved or removed")
    if before and isinstance(before.receipt.body, Closed) and not isinstance(receipt.body, Resumed):
        raise refuse(number, "stands behind the closing line and resumes nothing")
    return Line(number, receipt, line_hash(line), key, (before.end if before else 0) + len(line) + 1)


def _signer(envelope: Envelope, number: int, trust: Trust) -> TrustedKey:
    key = trust.find(envelope.keyid)
    if key is None:
        raise refuse(number, f"signed by key {envelope.keyid[:SHOWN_DIGITS]}, which is not trusted")
    if key.revoked:
        raise refuse(number, f"signed by {key.name}, which is revoked")
    if not key.verifies(envelope.signature, pae(envelope.payload_type, envelope.payload_bytes)):
        raise refuse(number, f"its signature by {key.name} does not hold: it was changed")
    return key
