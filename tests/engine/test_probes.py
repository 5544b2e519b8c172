"""`boxeval doctor --probe` on the real engine: green for every shipped policy, and told in a table and in JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from boxeval.agents.environment import base_environment
from boxeval.errors import EngineUnsupported
from boxeval.formats.policy import load_policy
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.probes import prepare
from boxeval.sandbox.probes.inside import INSIDE, read_answers
from boxeval.settings import load_settings
from boxeval.spec.policy import Policy


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "boxeval", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.contract("G31")
@pytest.mark.parametrize("policy", ["default", "strict"])
def test_every_shipped_policy_holds(policy: str, keeper_image: ImageInfo, grader_image: ImageInfo) -> None:
    del keeper_image, grader_image
    end = doctor("--probe", "--policy", policy, "--json")
    answer = json.loads(end.stdout)
    assert [result for result in answer["probes"]["results"] if not result["ok"]] == []
    assert (end.returncode, answer["ok"], answer["probes"]["ok"]) == (0, True, True)
    assert answer["probes"]["policy"] == policy
    names = {result["name"] for result in answer["probes"]["results"]}
    assert len(names) >= 35
    for box in ("agent", "grader"):
        assert set(INSIDE) <= {r["name"] for r in answer["probes"]["results"] if r["box"] == box}


def test_a_red_check_is_a_negative_answer(
    tmp_path: Path, keeper_image: ImageInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old engine's own filter lets through what boxeval's does not."""
    del keeper_image
    (tmp_path / "open.yaml").write_text("version: 1\nid: open\nseccomp: engine-default\n")
    monkeypatch.chdir(tmp_path)
    end = doctor("--probe", "--policy", "open.yaml")
    assert end.returncode == 1
    (line,) = [line for line in end.stdout.splitlines() if line.split()[1:2] == ["socket-families"]]
    assert line.startswith("RED ")
    assert "agent, grader" in line
    assert end.stdout.splitlines()[-1].startswith("policy open: ")


def test_a_policy_that_is_none() -> None:
    end = doctor("--probe", "--policy", "laxest")
    assert end.returncode == 2
    assert "there is no policy `laxest`" in end.stderr


def test_a_runtime_that_the_engine_lacks_is_refused_by_name(engine: Engine, policy: Policy) -> None:
    assert "runsc" not in engine.facts.runtimes, "this test needs an engine without runsc"
    wanted = policy.model_copy(update={"runtime": "runsc"})
    with pytest.raises(EngineUnsupported, match=r"^runtime runsc: docker has .*runc"):
        prepare(engine, wanted, load_settings(os.environ), base_environment, lambda _: None)


def test_the_probe_and_its_reader_have_the_same_checks() -> None:
    source = (Path(__file__).parents[2] / "images" / "probe" / "probe.c").read_text()
    table = source.partition("} checks[] = {")[2].partition("};")[0]
    assert [line.split('"')[1] for line in table.splitlines() if '"' in line] == list(INSIDE)


@pytest.mark.parametrize(
    "output", [b"", b"\xff\n{}\n[]\n1\nnull\n", b'{"name": "user", "ok": "yes", "detail": 1}\n']
)
def test_answers_that_are_none_are_red(output: bytes) -> None:
    answers = read_answers(output, "agent")
    assert [answer.name for answer in answers] == list(INSIDE)
    assert not any(answer.ok for answer in answers)


def test_shipped_policies_have_the_filter(tmp_path: Path) -> None:
    assert {load_policy(name, tmp_path).seccomp for name in ("default", "strict")} == {"boxeval"}
