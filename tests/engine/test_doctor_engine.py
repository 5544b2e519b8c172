"""The doctor against the real engine."""

import os
from collections.abc import Callable

import pytest

from boxeval.errors import EngineError
from boxeval.sandbox import doctor
from boxeval.sandbox.doctor import examine
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.ownership import OWNER, Owner
from boxeval.settings import load_settings


def left_over(engine: Engine) -> list[object]:
    """What this test's own home left; another test may be at work at the same time."""
    owner = Owner.here(load_settings().data_dir)
    wanted = {"label": ["boxeval.role=doctor", f"{OWNER}={owner.label}"]}
    return [
        *engine.api.containers(all=True, filters=wanted),
        *(engine.api.volumes(filters=wanted)["Volumes"] or []),
    ]


def test_a_working_engine(engine: Engine, keeper_image: ImageInfo) -> None:
    diagnosis = examine(os.environ)
    found = {finding.name: finding for finding in diagnosis.findings}
    assert diagnosis.ok, diagnosis
    assert engine.facts.version in found["engine"].value
    assert found["api"].value == engine.facts.api_version
    assert engine.facts.runtime_version in found["runtime"].value
    assert found["storage driver"].value == engine.facts.storage_driver
    assert found["processors"].value == str(engine.facts.cpus)
    assert keeper_image.tag in found["boxeval/keeper"].value
    assert (found["overlay volumes"].value, found["overlay volumes"].state) == ("work", "ok")
    assert left_over(engine) == []


def test_overlay_volumes_that_do_not_work(
    engine: Engine, keeper_image: ImageInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option that no kernel knows stands for a kernel that refuses the mount."""
    del keeper_image
    monkeypatch.setattr("boxeval.sandbox.overlay_trial.OVERLAY", "no_such_option=1")
    diagnosis = examine(os.environ)
    (finding,) = (finding for finding in diagnosis.findings if finding.name == "overlay volumes")
    assert (finding.value, finding.state) == ("do not work", "fail")
    assert "\n" not in finding.meaning
    assert not diagnosis.ok
    assert left_over(engine) == []


@pytest.mark.parametrize("broken", [doctor._limits, doctor._engine_disk])
def test_an_engine_that_fails_in_the_middle(
    monkeypatch: pytest.MonkeyPatch, broken: Callable[..., object]
) -> None:
    def fail(_: Engine) -> None:
        raise EngineError("engine info: it went away")

    monkeypatch.setattr(doctor, broken.__name__, fail)
    diagnosis = examine(os.environ)
    assert not diagnosis.ok
    assert any("it went away" in finding.meaning for finding in diagnosis.findings)
