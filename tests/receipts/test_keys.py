from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519

from boxeval.errors import StorageError, UsageError
from boxeval.receipts.keys import (
    FIRST_LABEL,
    export_public,
    list_keys,
    load_signing_key,
    make_key,
    revoke,
    trust,
)
from boxeval.receipts.trust import Trust, instant
from boxeval.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"BOXEVAL_HOME": str(tmp_path / "boxeval")})


def test_the_first_run_makes_one_key_and_later_ones_use_it(settings: Settings) -> None:
    key = load_signing_key(settings)
    assert load_signing_key(settings).keyid == key.keyid
    (known,) = list_keys(settings)
    assert known.signs_here
    assert known.key.label == FIRST_LABEL == "this machine's key"
    assert known.key.keyid == key.keyid == hashlib.sha256(key.public).hexdigest()
    assert base64.b64decode(known.key.public) == key.public


@pytest.mark.contract("G71")
def test_keys_are_for_their_owner_alone(settings: Settings) -> None:
    key = make_key(settings, "laptop")
    folder = settings.keys_dir
    assert (folder / "signing" / f"{key.keyid}.pem").stat().st_mode & 0o777 == 0o600
    assert (folder / "trusted.json").stat().st_mode & 0o777 == 0o600
    assert (folder / "signing").stat().st_mode & 0o777 == 0o700


def test_two_first_runs_at_once_make_one_key(settings: Settings) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(load_signing_key(settings).keyid)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(list_keys(settings)) == 1


def test_the_oldest_key_that_is_in_force_signs(settings: Settings) -> None:
    first, second = make_key(settings, "one"), make_key(settings, "two")
    assert load_signing_key(settings).keyid == first.keyid
    revoke(settings, first.keyid)
    assert load_signing_key(settings).keyid == second.keyid
    revoke(settings, second.keyid[:16])
    third = load_signing_key(settings).keyid
    assert third not in {first.keyid, second.keyid}


def test_a_key_file_is_used_as_given_and_before_the_setting(settings: Settings, tmp_path: Path) -> None:
    key = make_key(settings, "one")
    file = settings.keys_dir / "signing" / f"{key.keyid}.pem"
    ci = load_settings({"BOXEVAL_HOME": str(tmp_path / "ci"), "BOXEVAL_KEY_FILE": str(file)})
    assert load_signing_key(ci).keyid == key.keyid
    other = make_key(settings, "two")
    assert load_signing_key(ci, settings.keys_dir / "signing" / f"{other.keyid}.pem").keyid == other.keyid
    assert list_keys(ci) == ()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_that_others_may_read_is_refused_with_its_mend(settings: Settings, mode: int) -> None:
    key = make_key(settings, "one")
    file = settings.keys_dir / "signing" / f"{key.keyid}.pem"
    file.chmod(mode)
    with pytest.raises(UsageError, match=f"chmod 600 {file}"):
        load_signing_key(settings)


def pem(private: object, password: bytes | None = None) -> bytes:
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return private.private_bytes(  # type: ignore[attr-defined, no-any-return]
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a private key"),
        (b"\xff\x00 not pem", "not a private key"),
        (pem(ed25519.Ed25519PrivateKey.generate(), b"secret"), "without a password"),
        (pem(x25519.X25519PrivateKey.generate()), "not an Ed25519 key"),
    ],
)
def test_a_file_that_holds_no_usable_key_is_refused(
    settings: Settings, tmp_path: Path, content: bytes, reason: str
) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(UsageError, match=reason):
        load_signing_key(settings, file)


def test_a_missing_key_and_a_directory_are_refused(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_signing_key(settings, tmp_path / "none.pem")
    with pytest.raises(UsageError, match="directory"):
        load_signing_key(settings, tmp_path)


def test_a_home_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="keys"):
        load_signing_key(load_settings({"BOXEVAL_HOME": str(tmp_path / "file")}))


def test_an_exported_key_is_trusted_elsewhere(settings: Settings, tmp_path: Path) -> None:
    key = make_key(settings, "laptop")
    file = tmp_path / "laptop.json"
    file.write_text(export_public(settings, key.keyid[:16]))
    assert json.loads(file.read_text()) == {
        "format": "boxeval.trust/1",
        "keys": [
            {
                "keyid": key.keyid,
                "public": base64.b64encode(key.public).decode(),
                "label": "laptop",
                "notBefore": None,
                "notAfter": None,
                "revoked": False,
            }
        ],
    }
    elsewhere = load_settings({"BOXEVAL_HOME": str(tmp_path / "elsewhere")})
    (entry,) = trust(elsewhere, file)
    assert entry.keyid == key.keyid
    (known,) = list_keys(elsewhere)
    assert not known.signs_here
    assert load_signing_key(elsewhere).keyid != key.keyid


def test_trusting_a_revoked_key_again_leaves_it_revoked(settings: Settings, tmp_path: Path) -> None:
    key = make_key(settings, "laptop")
    file = tmp_path / "laptop.json"
    file.write_text(export_public(settings, key.keyid))
    revoke(settings, key.keyid)
    (entry,) = trust(settings, file)
    assert entry.revoked
    assert all(k.key.revoked for k in list_keys(settings))


@pytest.mark.parametrize("name", ["", "abc", "f" * 64, "0123456789abcdef"])
def test_a_name_that_fits_no_key_lists_those_that_are_there(settings: Settings, name: str) -> None:
    key = make_key(settings, "laptop")
    with pytest.raises(UsageError, match=key.keyid[:16]):
        export_public(settings, name)


def entry(**changes: object) -> dict[str, object]:
    public = bytes(range(32))
    fields: dict[str, object] = {
        "keyid": hashlib.sha256(public).hexdigest(),
        "public": base64.b64encode(public).decode(),
    }
    return {**fields, **changes}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("[]", "not a trust file"),
        ('{"keys":[],"keys":[]}', "twice"),
        (json.dumps({"keys": [entry()], "extra": 1}), "extra"),
        (json.dumps({"format": "boxeval.trust/2", "keys": []}), "format"),
        (json.dumps({"keys": [entry(keyid="0" * 64)]}), "keyid is not"),
        (json.dumps({"keys": [entry(public="AA==")]}), "keyid is not"),
        (json.dumps({"keys": [entry(public="*")]}), "not base64"),
        (json.dumps({"keys": [entry(notBefore="yesterday")]}), "notBefore"),
        (json.dumps({"keys": [entry(notAfter="2025-01-01T00:00:00")]}), "time zone"),
        (json.dumps({"keys": [entry(revoked="no")]}), "revoked"),
    ],
)
def test_a_malformed_trust_file_is_refused_with_its_name(tmp_path: Path, content: str, reason: str) -> None:
    file = tmp_path / "trust.json"
    file.write_text(content)
    with pytest.raises(UsageError, match=rf"trust\.json.*{reason}"):
        Trust.load([file])


def test_a_missing_trust_file_is_refused_but_no_local_one_trusts_nobody(
    settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="No such file"):
        Trust.load([tmp_path / "none.json"])
    assert Trust.local(settings).keys == ()


def test_of_two_entries_for_a_key_the_stricter_holds(tmp_path: Path) -> None:
    one, two = tmp_path / "1.json", tmp_path / "2.json"
    one.write_text(
        json.dumps({"keys": [entry(notBefore="2025-01-01T00:00:00Z", notAfter="2026-01-01T00:00:00Z")]})
    )
    two.write_text(json.dumps({"keys": [entry(notBefore="2025-06-01T00:00:00Z", revoked=True, label="x")]}))
    for files in ([one, two], [two, one]):
        (key,) = Trust.load(files).keys
        assert (key.not_before, key.not_after) == ("2025-06-01T00:00:00Z", "2026-01-01T00:00:00Z")
        assert key.revoked
        assert key.label == "x"


def test_the_edges_of_a_keys_time_belong_to_it(tmp_path: Path) -> None:
    file = tmp_path / "trust.json"
    file.write_text(
        json.dumps({"keys": [entry(notBefore="2025-01-01T00:00:00Z", notAfter="2025-01-02T00:00:00+01:00")]})
    )
    (key,) = Trust.load([file]).keys
    assert key.covers(instant("2025-01-01T00:00:00.000Z"))
    assert key.covers(instant("2025-01-01T23:00:00Z"))
    assert not key.covers(instant("2025-01-01T23:00:00.001Z"))
    assert not key.covers(instant("2024-12-31T23:59:59.999Z"))


@pytest.mark.parametrize("through_link", [False, True])
def test_a_trust_file_inside_a_run_is_never_believed(tmp_path: Path, through_link: bool) -> None:
    run = tmp_path / "run"
    (run / "deep").mkdir(parents=True)
    for name in ("plan.json", "ledger.jsonl"):
        (run / name).touch()
    file = run / "deep" / "trust.json"
    file.write_text(json.dumps({"keys": [entry()]}))
    if through_link:
        link = tmp_path / "mine.json"
        link.symlink_to(file)
        file = link
    with pytest.raises(UsageError, match="never trusted"):
        Trust.load([file])


@pytest.mark.slow
@pytest.mark.usefixtures("boxeval_home")
def test_processes_share_the_lock() -> None:
    script = (
        "from boxeval.settings import load_settings; from boxeval.receipts.keys import load_signing_key;"
        "print(load_signing_key(load_settings()).keyid)"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    ids = {run.communicate(timeout=60)[0] for run in runs}
    assert len(ids) == 1
