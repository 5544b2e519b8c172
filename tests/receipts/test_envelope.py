from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boxeval.receipts.canonical import MalformedError
from boxeval.receipts.envelope import open_line, pae, seal
from boxeval.receipts.keys import SigningKey
from boxeval.spec.receipt import Opened, Receipt

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
RECEIPT = Receipt(
    index=0, previous="0" * 64, body=Opened(run_id="r", plan="a" * 64, trials=1, at="2025-01-01T00:00:00Z")
)
PAYLOAD = (
    b'{"body":{"at":"2025-01-01T00:00:00Z","plan":"'
    + b"a" * 64
    + b'","runId":"r","trials":1,"type":"opened"},'
    b'"format":"boxeval.receipt/1","index":0,"previous":"' + b"0" * 64 + b'"}'
)


def test_the_encoding_that_is_signed_is_that_of_the_dsse_specification() -> None:
    assert (
        pae("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_line_holds_the_payload_and_a_signature_that_any_ed25519_accepts() -> None:
    line = seal(RECEIPT, KEY)
    tree = json.loads(line)
    assert base64.b64decode(tree["payload"]) == PAYLOAD
    assert tree["payloadType"] == "application/vnd.boxeval.receipt+json"
    (signature,) = tree["signatures"]
    assert signature["keyid"] == KEY.keyid
    signed = b"DSSEv1 36 application/vnd.boxeval.receipt+json %d %s" % (len(PAYLOAD), PAYLOAD)
    KEY.private.public_key().verify(base64.b64decode(signature["sig"]), signed)
    assert b"\n" not in line


def test_reading_gives_the_parts_back() -> None:
    envelope = open_line(seal(RECEIPT, KEY))
    assert envelope.payload_bytes == PAYLOAD
    assert envelope.keyid == KEY.keyid
    assert len(envelope.signature) == 64


@pytest.mark.parametrize(
    "mutate",
    [
        lambda t: t | {"extra": 1},
        lambda t: t | {"payloadType": "application/json"},
        lambda t: t | {"signatures": []},
        lambda t: t | {"signatures": t["signatures"] * 2},
        lambda t: t | {"signatures": [t["signatures"][0] | {"more": 1}]},
        lambda t: t | {"payload": t["payload"] + "\n"},
        lambda t: t | {"payload": "*"},
        lambda t: {k: v for k, v in t.items() if k != "payload"},
    ],
)
def test_an_envelope_of_another_shape_is_refused(mutate) -> None:  # type: ignore[no-untyped-def]
    tree = mutate(json.loads(seal(RECEIPT, KEY)))
    line = json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(MalformedError):
        _ = open_line(line).payload_bytes


def test_base64_with_stray_bits_is_refused() -> None:
    """Two texts for the same bytes would give one receipt two line hashes."""
    tree = json.loads(seal(RECEIPT, KEY))
    tree["payload"] = "QQ=="
    assert open_line(json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()).payload_bytes == b"A"
    tree["payload"] = "QR=="
    with pytest.raises(MalformedError, match="base64"):
        _ = open_line(json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()).payload_bytes
