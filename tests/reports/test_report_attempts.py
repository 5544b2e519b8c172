"""Known failures H3 and H4: a trial that was tried again is one sample, and every format lists the attempts."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.recovery import Recovery
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.reports.formats import Format, render
from boxeval.verdicts.aggregate import aggregate, exit_code

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
TRUST = Trust((KEY.trusted("test"),))
LATER = "2025-01-01T13:00:00.000Z"


@pytest.fixture
def run(tmp_path: Path) -> VerifiedRun:
    """Void, taken up again, passed; and a trial that passed at once."""
    fix, other = samples.task("fix"), samples.task("other")
    ledger = Ledger.create(tmp_path / "run", samples.plan(fix, other), KEY, now=lambda: samples.NOON)
    ledger.append(samples.trial(fix, samples.fault("command_error", "the engine hung up")))
    ledger.append(samples.trial(other, samples.seen()))
    ledger.close()
    with Recovery(tmp_path / "run", TRUST) as recovery:
        ledger = recovery.go_on(KEY, now=lambda: LATER)
    ledger.append(samples.trial(fix, samples.seen(), attempt=2))
    ledger.close()
    return verify(tmp_path / "run", TRUST)


@pytest.mark.contract("P19", "P24")
def test_it_counts_once_and_is_told_in_every_format(run: VerifiedRun) -> None:
    report = aggregate(run)
    assert (report.totals.trials, report.totals.passed, report.totals.void) == (2, 2, 0)
    assert exit_code(report) == 0
    why = "void: command_error: the engine hung up"
    for form in (Format.TEXT, Format.MD):
        told = render(form, report, run)
        assert "attempt 2 decides: passed" in told
        assert why in told
        assert LATER in told
    lines = {line["key"]: line for line in json.loads(render(Format.JSON, report, run))["trials"]}
    assert [one["attempt"] for one in lines["fix[base]#1"]["others"]] == [1]
    assert lines["fix[base]#1"]["others"][0]["outcome"]["failureClass"] == "command_error"
    assert (lines["fix[base]#1"]["attempt"], lines["other[base]#1"]["others"]) == (2, [])
    cases = Xml.fromstring(render(Format.JUNIT, report, run)).iter("testcase")
    properties = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")} for case in cases
    }
    assert properties == {"fix[base]#1": {"attempt 1": why}, "other[base]#1": {}}
