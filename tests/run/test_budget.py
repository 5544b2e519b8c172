"""Money and disk of a run, before its trials and between them."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import run_samples as samples
from boxeval.errors import StorageError
from boxeval.gateway.purse import Purse
from boxeval.run.budget import Budget, require_disk
from boxeval.spec.models import Budget as ModelBudget
from boxeval.spec.policy import CollectCaps, Policy

MIB = 1024 * 1024
POLICY = Policy(version=1, id="default", collect=CollectCaps(bytes=100 * MIB))


def disk_of(free_mib: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free_mib * MIB))


@pytest.mark.contract("P22")
@pytest.mark.parametrize(
    ("jobs", "free_mib", "fits"), [(1, 164, True), (1, 163, False), (3, 364, True), (3, 363, False)]
)
def test_a_run_wants_room_for_the_first_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, free_mib: int, fits: bool
) -> None:
    """64 MiB and 100 MiB for each job."""
    disk_of(free_mib, monkeypatch)
    run = tmp_path / "not" / "yet" / "there"
    if fits:
        require_disk(run, jobs, [POLICY], "")
        return
    with pytest.raises(
        StorageError, match=f"{free_mib} MiB are free, but {jobs} trials .* {free_mib + 1} MiB"
    ) as caught:
        require_disk(run, jobs, [POLICY], "")
    assert caught.value.exit_code == 70


def test_the_engine_wants_room_too_where_it_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk_of(255, monkeypatch)
    require_disk(tmp_path, 1, [POLICY], str(tmp_path / "elsewhere"))
    with pytest.raises(StorageError, match="the engine needs 256 MiB"):
        require_disk(tmp_path, 1, [POLICY], str(tmp_path))


@pytest.mark.contract("P22", "S19")
def test_past_the_disk_a_trial_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(tmp_path, {"default": POLICY}, Purse(ModelBudget()))
    disk_of(164, monkeypatch)
    assert budget.exhausted("default") is None
    disk_of(163, monkeypatch)
    assert "has 163 MiB left" in str(budget.exhausted("default"))


def test_void_attempts_of_an_earlier_session_have_cost_money_too(tmp_path: Path) -> None:
    purse = Purse(ModelBudget(tokens=1000), 1.0, of_run=True)
    budget = Budget(tmp_path, {"default": POLICY}, purse)
    purse.take(samples.traffic(cost_usd=0.6))
    assert budget.exhausted("default") is None
    purse.take(samples.traffic(cost_usd=0.6))
    assert budget.exhausted("default") == "run_budget_cost: this run may use 1.0 USD of its model"
