"""Keys of this machine: the private ones that sign, and the list of public ones that it trusts.

keys/signing/<keyid>.pem    PKCS #8, mode 0600
keys/trusted.json           a trust file (docs/receipts.md), in the order of adding
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boxeval.errors import StorageError, UsageError
from boxeval.receipts.storage import replace, write_new
from boxeval.receipts.trust import SHOWN_DIGITS, Trust, TrustedKey, TrustFile, key_id, merged, read_trust_file
from boxeval.settings import Settings

FIRST_LABEL = "this machine's key"
MAX_PEM_BYTES = 64 * 1024
MIN_PREFIX = 8


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private Ed25519 key. Its bytes are in no `repr`."""

    private: Ed25519PrivateKey

    @property
    def public(self) -> bytes:
        """The 32 raw public bytes."""
        return self.private.public_key().public_bytes_raw()

    @property
    def keyid(self) -> str:
        """SHA-256 of the raw public bytes, in hex."""
        return key_id(self.public)

    def sign(self, data: bytes) -> bytes:
        """The 64-byte signature over data."""
        return self.private.sign(data)

    def trusted(self, label: str = "") -> TrustedKey:
        """An entry for a trust file."""
        return TrustedKey(keyid=self.keyid, public=base64.b64encode(self.public).decode("ascii"), label=label)


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key that this machine knows; `signs_here` if its private half is here too."""

    key: TrustedKey
    signs_here: bool


def make_key(settings: Settings, label: str) -> SigningKey:
    """Make a signing key and trust it here. `StorageError` if it cannot be written."""
    with _locked(settings):
        return _make(settings, label)


def load_signing_key(settings: Settings, path: Path | None = None) -> SigningKey:
    """The key to sign with: `path`, else the setting's, else the oldest usable one here, maybe a new one."""
    if file := path or settings.key_file:
        return _load(file)
    with _locked(settings):
        now = datetime.now(UTC)
        for key in Trust.local(settings).keys:
            pem = _pem(settings, key.keyid)
            if pem.exists() and not key.revoked and key.covers(now):
                return _load(pem)
        return _make(settings, FIRST_LABEL)


def key_of_run(settings: Settings, keyid: str, path: Path | None = None) -> SigningKey:
    """The key that a run was sealed with, which alone can go on with it. `UsageError` if it is not here."""
    file = path or settings.key_file or _pem(settings, keyid)
    key = _load(file) if path or file.exists() else None
    if key is None or key.keyid != keyid:
        raise UsageError(
            f"the run is sealed with key {keyid[:SHOWN_DIGITS]}, which is not "
            f"{'that of ' + str(file) if key else 'here'}; give it with --key FILE"
        )
    return key


def list_keys(settings: Settings) -> tuple[KnownKey, ...]:
    """Every key that this machine knows, in the order of adding."""
    return tuple(KnownKey(key, _pem(settings, key.keyid).exists()) for key in Trust.local(settings).keys)


def export_public(settings: Settings, name: str) -> str:
    """The text of a trust file with one key, given its id or the id's first digits (8 or more)."""
    return _text((_named(Trust.local(settings).keys, name),))


def trust(settings: Settings, file: Path) -> tuple[TrustedKey, ...]:
    """Trust the keys of a file here; return their entries as they now are. A revoked key stays revoked."""
    given = read_trust_file(file).keys
    with _locked(settings):
        keys = merged((*Trust.local(settings).keys, *given))
        _save(settings, keys)
    wanted = {key.keyid for key in given}
    return tuple(key for key in keys if key.keyid in wanted)


def revoke(settings: Settings, name: str) -> TrustedKey:
    """Refuse a key from now on, with everything that it ever signed; return its entry."""
    with _locked(settings):
        keys = Trust.local(settings).keys
        gone = _named(keys, name).model_copy(update={"revoked": True})
        _save(settings, tuple(gone if key.keyid == gone.keyid else key for key in keys))
    return gone


def _make(settings: Settings, label: str) -> SigningKey:
    key = SigningKey(Ed25519PrivateKey.generate())
    pem = key.private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = _pem(settings, key.keyid)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_new(file, pem)
    except OSError as error:
        raise StorageError(f"{file}: key cannot be written: {error.strerror or error}") from error
    _save(settings, (*Trust.local(settings).keys, key.trusted(label)))
    return key


def _load(file: Path) -> SigningKey:
    try:
        with file.open("rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{file}: key is not a regular file")
            if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise UsageError(f"{file}: others can read this key; mend it with: chmod 600 {file}")
            pem = stream.read(MAX_PEM_BYTES)
    except OSError as error:
        raise UsageError(f"{file}: key cannot be read: {error.strerror or error}") from None
    try:
        private = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UsageError(f"{file}: not a private key in PEM without a password") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise UsageError(f"{file}: not an Ed25519 key; make one with: boxeval keys make LABEL")
    return SigningKey(private)


def _save(settings: Settings, keys: tuple[TrustedKey, ...]) -> None:
    file = settings.keys_dir / "trusted.json"
    try:
        replace(file, _text(keys).encode())
    except OSError as error:
        raise StorageError(f"{file}: cannot be written: {error.strerror or error}") from error


def _text(keys: tuple[TrustedKey, ...]) -> str:
    return json.dumps(TrustFile(keys=keys).model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def _named(keys: tuple[TrustedKey, ...], name: str) -> TrustedKey:
    fitting = [key for key in keys if len(name) >= MIN_PREFIX and key.keyid.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(key.keyid[:SHOWN_DIGITS] for key in keys) or "none"
    raise UsageError(f"{name!r} names no key here (8 or more first digits of its id do); known: {known}")


def _pem(settings: Settings, keyid: str) -> Path:
    return settings.keys_dir / "signing" / f"{keyid}.pem"


@contextmanager
def _locked(settings: Settings) -> Iterator[None]:
    """One process at a time changes the keys: two first runs at once make one key."""
    try:
        settings.keys_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (settings.keys_dir / ".lock").open("wb")
    except OSError as error:
        raise StorageError(f"{settings.keys_dir}: keys cannot be kept: {error.strerror or error}") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
