"""What the workers seal: a record that no receipt can carry costs its trial, and not the run."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import run_samples as samples
from boxeval.receipts.keys import SigningKey
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.run.ledgers import append
from boxeval.spec.outcome import FailureClass, Weight

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
TASK = samples.task()


def test_a_record_that_cannot_be_sealed_costs_one_trial(tmp_path: Path) -> None:
    plan = samples.plan(TASK, repeats=2)
    ledger = Ledger.create(tmp_path / "run", plan, KEY)
    spoiled = samples.trial(TASK, samples.seen(), 1)
    spoiled = spoiled.model_copy(update={"metrics": {**spoiled.metrics, "cost.usd": 1e17}})
    for place, trial in zip(plan.trials, (spoiled, samples.trial(TASK, samples.seen(), 2)), strict=True):
        append(ledger, place, TASK, trial)
    ledger.close()
    run = verify(tmp_path / "run", Trust((KEY.trusted(),)))
    assert run.complete
    first, second = run.trials
    assert (first.outcome.weight, first.outcome.failure_class) == (Weight.VOID, FailureClass.COMMAND_ERROR)
    assert "run-error" in (first.outcome.detail or "")
    assert second.outcome.weight is Weight.SCORED
