"""What the doctor says where there is no engine, and how findings add up."""

import dataclasses
import json
import socket
from pathlib import Path

import pytest

from boxeval.sandbox.doctor import Diagnosis, Finding, examine


def by_name(diagnosis: Diagnosis) -> dict[str, Finding]:
    return {finding.name: finding for finding in diagnosis.findings}


def home(tmp_path: Path, host: str) -> dict[str, str]:
    return {"DOCKER_HOST": host, "BOXEVAL_HOME": str(tmp_path)}


def test_no_engine_is_one_failure_with_its_mend(tmp_path: Path) -> None:
    diagnosis = examine(home(tmp_path, f"unix://{tmp_path}/absent.sock"))
    engine = by_name(diagnosis)["engine"]
    assert not diagnosis.ok
    assert (engine.value, engine.state) == (f"none at unix://{tmp_path}/absent.sock", "fail")
    assert "apt-get install docker.io" in engine.meaning
    assert "\n" not in engine.meaning
    assert [finding.name for finding in diagnosis.findings if finding.state == "fail"] == ["engine"]


def test_a_socket_that_nobody_serves(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "docker.sock"))
    engine = by_name(examine(home(tmp_path, f"unix://{tmp_path}/docker.sock")))["engine"]
    assert engine.state == "fail"
    assert "no Docker Engine answers" in engine.meaning
    assert engine.meaning.endswith("start it, or set DOCKER_HOST")


def test_the_machine_is_looked_at_without_an_engine(tmp_path: Path) -> None:
    found = by_name(examine(home(tmp_path, f"unix://{tmp_path}/absent.sock")))
    assert f"GiB free at {tmp_path}" in found["disk for results"].value
    assert "base from packages" in found


@pytest.mark.parametrize(
    ("states", "ok"), [((), True), (("ok", "warn"), True), (("ok", "warn", "fail"), False)]
)
def test_a_warning_is_no_failure(states: tuple[str, ...], ok: bool) -> None:
    findings = tuple(Finding("x", "y", state) for state in states)  # type: ignore[arg-type]
    assert Diagnosis(findings).ok is ok


def test_a_diagnosis_can_be_written_as_json(tmp_path: Path) -> None:
    diagnosis = examine(home(tmp_path, f"unix://{tmp_path}/absent.sock"))
    again = json.loads(json.dumps(dataclasses.asdict(diagnosis)))
    assert again["findings"][0]["name"] == "engine"
