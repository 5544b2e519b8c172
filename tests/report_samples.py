"""A verified run with one trial of every kind, full of text that tries to break a report."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.spec.box import Capture
from boxeval.spec.plan import SuiteRef
from boxeval.spec.trial import Collected

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
HOSTILE = (
    b"\x1b[2J\x1b[H\x1b]8;;http://evil\x07PASSED\x1b]8;;\x07\rGOOD: all passed\x00\x0b]]><failure/>&amp;"
    b"\xff\xfe\xed\xa0\x80\xef\xbf\xbe \xe2\x80\xae| `x` ``` <img src=x onerror=alert(1)> @user #1 | --- |\n"
    b"```\n# heading\n* item\n</testcase></testsuite>\n"
)
HOSTILE_NAME = "-rf\n\x1b[2K\u202etxt.\\xff| `a` <b>]]>\ufffe\x9b"
EXPECTED_KINDS = {
    "ok[base]#1": "passed",
    "bad[base]#1": "failed",
    "cheat[base]#1": "failed as intended",
    "other[base]#1": "failed otherwise than intended",
    "weak[base]#1": "passed, but was to fail",
    "broken[base]#1": "void",
    "idle[base]#1": "not counted",
    "lost[base]#1": "missing",
}
"""By hand from the outcomes table: what each trial below is."""


def kept(ledger: Ledger, data: bytes, truncated: bool = False) -> Capture:
    return Capture(
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        truncated=truncated,
        kept=ledger.blobs.put(data) if data else None,
    )


def every_kind(directory: Path, **plan: Any) -> VerifiedRun:
    """Seal and verify the run that EXPECTED_KINDS describes."""
    forbid = {"commands": ("true",), "forbid_paths": ("secret",)}
    tasks = [
        samples.task("ok"),
        samples.task(
            "bad", title=f"Hostile {HOSTILE_NAME}", verify={"commands": ("make test | tee </log>",)}
        ),
        samples.task("cheat", expect="failed", expect_class="forbidden_path", verify=forbid),
        samples.task("other", expect="failed", expect_class="forbidden_path", verify=forbid),
        samples.task("weak", expect="failed"),
        samples.task("broken"),
        samples.task("idle", verify={}),
        samples.task("lost"),
    ]
    planned = samples.plan(
        *tasks,
        suite=SuiteRef(
            id="s", title=f"T {HOSTILE_NAME}", visibility="local", sha256=samples.sha("s"), file="s.yaml"
        ),
        **plan,
    )
    ledger = Ledger.create(directory, planned, KEY, now=lambda: samples.NOON)
    content = ledger.blobs.put(b"x")
    red = samples.command(
        3, stdout=kept(ledger, HOSTILE), stderr=kept(ledger, b"E " + HOSTILE * 20, truncated=True)
    )
    changes = tuple(
        samples.change(path, sha256=content, size_bytes=1, mode=0o644)
        for path in (HOSTILE_NAME, "a\nb", "a\\nb", "a\\x0ab", "\\xff\\xfe", "e" * 255, "last")
    )
    observed = {
        "ok": samples.seen(),
        "bad": samples.seen(grader=samples.box(red), collected=Collected(changes=changes)),
        "cheat": samples.seen(
            collected=Collected(changes=(samples.change("secret", sha256=content, size_bytes=1),))
        ),
        "other": samples.seen(grader=samples.box(samples.command(1))),
        "weak": samples.seen(),
        "broken": samples.fault("command_error", f"engine said {HOSTILE_NAME}"),
        "idle": samples.seen(grader=None),
    }
    for place in planned.trials:
        if place.task in observed:
            ledger.append(samples.trial(planned.task_of(place), observed[place.task], place.repeat))
    ledger.close()
    return verify(directory, Trust((KEY.trusted(f"label {HOSTILE_NAME}"),)))


def all_good(directory: Path) -> VerifiedRun:
    """Seal and verify a run of two passing trials."""
    planned = samples.plan(samples.task("ok"), repeats=2)
    samples.write_run(directory, KEY, planned, {f"ok-base-{n}": samples.seen() for n in (1, 2)})
    return verify(directory, Trust((KEY.trusted("test"),)))
