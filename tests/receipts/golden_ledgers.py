"""Keeps a ledger of the current format for later versions: `python tests/receipts/golden_ledgers.py NAME`.

NAME is a version, say 0.2.0. Run it, with tests/ in PYTHONPATH, when the format of receipts or the rules behind them
have changed, and commit what it writes to tests/receipts/golden/NAME. Never change what is there: it stands for ledgers
that users have.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.recovery import Recovery
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.spec.trial import Collected

GOLDEN = Path(__file__).parent / "golden"
KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
TRUST = Trust((KEY.trusted("golden"),))


def write(directory: Path, name: str) -> None:
    """A run with a receipt of every kind, which was interrupted and taken up again."""
    fix = samples.task("fix", collect=("tokens.total",))
    hack = samples.task("hack", verify={"forbid_paths": ("tests/",), "commands": ("true",)})
    bound = samples.task("bound", writes=("src/",))
    plan = samples.plan(fix, hack, bound, samples.task("late"))
    made = plan.provenance.model_copy(update={"boxeval": name})
    plan = plan.model_copy(update={"provenance": made})
    ledger = Ledger.create(directory, plan, KEY, now=lambda: samples.NOON)
    out = ledger.blobs.put(b"1 failed")
    failing = samples.box(samples.command(1, stdout=samples.capture(b"1 failed", out)))
    change = samples.change("src/a.py", sha256=ledger.blobs.put(b"x = 1\n"), size_bytes=6, mode=0o644)
    changed = Collected(changes=(change,))
    ledger.append(
        samples.trial(fix, samples.seen(grader=failing, collected=changed, traffic=samples.traffic()))
    )
    ledger.append(
        samples.trial(hack, samples.seen(collected=Collected(changes=(samples.change("tests/t.py"),))))
    )
    ledger.append(samples.trial(plan.tasks[3], samples.fault("command_error", "no such image")))
    ledger.close("SIGINT")
    with (directory / "ledger.jsonl").open("ab") as torn:
        torn.write(b'{"payload":')
    with Recovery(directory, TRUST) as recovery:
        ledger = recovery.go_on(KEY, now=lambda: samples.NOON)
    outside = Collected(changes=(samples.change("tests/a.py"),))
    enforced = samples.bounded(bound, outside, Collected())
    ledger.append(samples.trial(bound, samples.seen(collected=outside, enforced=enforced)))
    ledger.append(samples.trial(plan.tasks[3], samples.seen(), attempt=2))
    ledger.close()


def told(run: VerifiedRun) -> dict[str, Any]:
    """What a reader of any version must take a run for."""
    return {
        "complete": run.complete,
        "resumedAt": list(run.resumed_at),
        "checkpoint": run.checkpoint,
        "trials": [
            [
                f"{trial.task}[{trial.target}]#{trial.repeat}",
                trial.attempt,
                str(trial.outcome.task),
                trial.outcome.failure_class and str(trial.outcome.failure_class),
            ]
            for trial in run.trials
        ],
    }


def main() -> None:
    """Write one golden ledger with what it says."""
    place = GOLDEN / sys.argv[1]
    place.mkdir(parents=True)
    write(place / "run", sys.argv[1])
    expected = {**told(verify(place / "run", TRUST)), "public": base64.b64encode(KEY.public).decode()}
    (place / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


if __name__ == "__main__":
    main()
