"""Which public keys a verifier believes, and when."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import ValidationError, field_validator, model_validator

from boxeval.errors import UsageError
from boxeval.receipts.canonical import MalformedError, strict_json
from boxeval.receipts.storage import read_regular
from boxeval.settings import Settings
from boxeval.spec.base import Record, Sha256

MAX_TRUST_BYTES = 1024 * 1024
SHOWN_DIGITS = 16


def key_id(public: bytes) -> str:
    """A key's id: SHA-256 of its 32 raw public bytes, in hex."""
    return hashlib.sha256(public).hexdigest()


def instant(text: str) -> datetime:
    """A time in RFC 3339 with its offset; `ValueError` if it is not one."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment


class TrustedKey(Record):
    """A public key that may be believed. A run fits if it opened and closed within the two times."""

    keyid: Sha256
    public: str
    label: str = ""
    not_before: str | None = None
    not_after: str | None = None
    revoked: bool = False

    @field_validator("not_before", "not_after")
    @classmethod
    def _is_instant(cls, text: str | None) -> str | None:
        if text is not None:
            instant(text)
        return text

    @model_validator(mode="after")
    def _id_fits(self) -> TrustedKey:
        try:
            raw = base64.b64decode(self.public, validate=True)
        except binascii.Error:
            raise ValueError("public is not base64") from None
        if len(raw) != 32 or key_id(raw) != self.keyid:
            raise ValueError("keyid is not the SHA-256 of the 32 bytes of public")
        return self

    @property
    def name(self) -> str:
        """What people see: the label, and the id's first digits."""
        short = self.keyid[:SHOWN_DIGITS]
        return f"{self.label} ({short})" if self.label else short

    def verifies(self, signature: bytes, data: bytes) -> bool:
        """Whether the signature over the data is this key's."""
        public = Ed25519PublicKey.from_public_bytes(base64.b64decode(self.public))
        try:
            public.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    def covers(self, moment: datetime) -> bool:
        """Whether the key was in force then."""
        starts = instant(self.not_before) if self.not_before else moment
        ends = instant(self.not_after) if self.not_after else moment
        return starts <= moment <= ends

    def narrowed(self, other: TrustedKey) -> TrustedKey:
        """Both entries for one key at once: the stricter of each."""
        starts = [t for t in (self.not_before, other.not_before) if t]
        ends = [t for t in (self.not_after, other.not_after) if t]
        return self.model_copy(
            update={
                "label": self.label or other.label,
                "not_before": max(starts, key=instant, default=None),
                "not_after": min(ends, key=instant, default=None),
                "revoked": self.revoked or other.revoked,
            }
        )


class TrustFile(Record):
    """What a verifier is given, and what `boxeval keys export` writes."""

    format: Literal["boxeval.trust/1"] = "boxeval.trust/1"
    keys: tuple[TrustedKey, ...]


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys that one verification believes. Empty trusts nobody."""

    keys: tuple[TrustedKey, ...] = ()

    @classmethod
    def load(cls, files: Sequence[Path]) -> Trust:
        """The keys of files. `UsageError` names one that is missing, malformed, or in a run's directory."""
        return cls(merged(key for file in files for key in read_trust_file(file).keys))

    @classmethod
    def local(cls, settings: Settings) -> Trust:
        """The keys that this machine trusts; none before its first run."""
        file = settings.keys_dir / "trusted.json"
        try:
            return cls.load([file]) if file.exists() else cls()
        except PermissionError as error:
            raise UsageError(f"{file}: trust file cannot be read: {error.strerror}") from None

    def plus(self, other: Trust) -> Trust:
        """The keys of both."""
        return Trust(merged((*self.keys, *other.keys)))

    def find(self, keyid: str) -> TrustedKey | None:
        """The entry of a key, revoked or not; None if nobody vouches for it."""
        return next((key for key in self.keys if key.keyid == keyid), None)


def merged(keys: Iterable[TrustedKey]) -> tuple[TrustedKey, ...]:
    """One entry a key, in order of first appearance; what one entry forbids, no other allows."""
    entries: dict[str, TrustedKey] = {}
    for key in keys:
        known = entries.get(key.keyid)
        entries[key.keyid] = known.narrowed(key) if known else key
    return tuple(entries.values())


def read_trust_file(file: Path) -> TrustFile:
    """Read and check a trust file; `UsageError` if it cannot be used."""
    _refuse_inside_run(file)
    try:
        data = read_regular(file.resolve(), MAX_TRUST_BYTES)
        strict_json(data, MAX_TRUST_BYTES)
        return TrustFile.model_validate_json(data)
    except OSError as error:
        raise UsageError(f"{file}: trust file cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{file}: not a trust file: {place}: {first['msg']}") from None
    except MalformedError as error:
        raise UsageError(f"{file}: not a trust file: {error}") from None


def _refuse_inside_run(file: Path) -> None:
    for parent in {*file.absolute().parents, *file.resolve().parents}:
        if (parent / "ledger.jsonl").exists() and (parent / "plan.json").exists():
            raise UsageError(
                f"{file}: a key inside a run's directory is never trusted; get it from who made the run"
            )
