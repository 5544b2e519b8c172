"""The envelope around what is signed: DSSE with one Ed25519 signature (docs/receipts.md)."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated, Any, Literal

from pydantic import Field

from boxeval.receipts.canonical import MalformedError, OtherVersionError, canonical, read
from boxeval.receipts.keys import SigningKey
from boxeval.spec.base import Record, Sha256
from boxeval.spec.receipt import Receipt

PAYLOAD_TYPE = "application/vnd.boxeval.receipt+json"


class Signature(Record):
    """A signature over the envelope's pre-authentication encoding, in base64."""

    keyid: Sha256
    sig: str


class Signed(Record):
    """What all envelopes have. `payload` is canonical bytes, in base64."""

    payload: str
    signatures: Annotated[tuple[Signature, ...], Field(min_length=1, max_length=1)]

    @property
    def keyid(self) -> str:
        """Whose signature this says it is."""
        return self.signatures[0].keyid

    @property
    def payload_bytes(self) -> bytes:
        """The signed bytes."""
        return _decode(self.payload, "payload")

    @property
    def signature(self) -> bytes:
        """The signature's bytes."""
        return _decode(self.signatures[0].sig, "sig")


class Envelope(Signed):
    """One ledger line, without its newline: around a `Receipt`."""

    payload_type: Literal["application/vnd.boxeval.receipt+json"] = "application/vnd.boxeval.receipt+json"


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def seal(receipt: Receipt, key: SigningKey) -> bytes:
    """Sign a receipt; return its ledger line without the newline."""
    return canonical(Envelope(**sign(PAYLOAD_TYPE, receipt, key)))


def sign(payload_type: str, body: Record, key: SigningKey) -> dict[str, Any]:
    """Sign a record; return what an envelope of that type has beside the type."""
    payload = canonical(body)
    signature = Signature(keyid=key.keyid, sig=_encode(key.sign(pae(payload_type, payload))))
    return {"payload": _encode(payload), "signatures": (signature,)}


BRACKETS = 8
"""More than an envelope has, whatever is in it."""


def is_no_envelope(line: bytes) -> bool:
    """Whether a line is not even to be parsed: nobody has signed it yet, and as JSON it may take gigabytes."""
    return line.count(b"[") + line.count(b"{") > BRACKETS


def open_line(line: bytes) -> Envelope:
    """Read an envelope, strictly; `MalformedError` says what is wrong. The signature is not checked here."""
    if is_no_envelope(line):
        raise MalformedError("not an envelope")
    try:
        return read(Envelope, line)
    except OtherVersionError as error:
        # Versions are told apart by what is signed, and of this nothing can be believed.
        raise MalformedError(f"not an envelope: {error}") from None


def line_hash(line: bytes) -> str:
    """SHA-256 over a line's bytes without its newline: the next receipt's `previous`."""
    return hashlib.sha256(line).hexdigest()


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(text: str, name: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise MalformedError(f"{name}: not base64") from None
    if _encode(data) != text:
        raise MalformedError(f"{name}: not canonical base64")
    return data
