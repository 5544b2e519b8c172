"""The probe before a fresh request, in real boxes: content with one as promised, not with a weakened one (G56)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boxeval.agents import preflight
from boxeval.agents.environment import base_environment
from boxeval.sandbox import box as box_module
from boxeval.sandbox.box import Box
from boxeval.spec.agent_record import Preflight
from engine_fixtures import MakeBox

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def probed(box: Box, **more: str) -> Preflight:
    env = base_environment("/usr/local/bin:/usr/bin:/bin")
    box.start()
    end = box.run(preflight.probe(("echo", "tool 1.2"), {**env, **more}), last=True)
    box.settle()
    assert end.exit_code == 0
    return preflight.read(end.stdout.kept, env, (), (), end.wall_ms)


@pytest.mark.contract("G50", "G56")
def test_the_probe_sees_what_a_box_has_too_much(
    make_box: MakeBox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = probed(make_box())
    assert (found.breaches, found.broken, found.version) == ((), None, "tool 1.2")
    assert probed(make_box(bridge=True), MY_TOKEN="x").breaches == (
        "the environment has MY_TOKEN",
        "there is a network device eth0",
        "there is a route by eth0",
    )
    right = box_module._config

    def weak(spec: box_module.BoxSpec) -> dict[str, Any]:
        config = right(spec)
        binds = [*(config["HostConfig"].get("Binds") or ()), f"{tmp_path}:/project:ro"]
        return config | {"HostConfig": config["HostConfig"] | {"Binds": binds}}

    monkeypatch.setattr(box_module, "_config", weak)
    monkeypatch.setattr(box_module, "engine_differences", lambda *_: ())
    monkeypatch.setattr(box_module, "kernel_differences", lambda *_: ())
    assert probed(make_box()).breaches == ("there is a mount at /project",)
