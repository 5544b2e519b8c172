"""Which models a run prepares, and what it refuses before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from boxeval.errors import UsageError
from boxeval.formats.suite_v2 import load_suite
from boxeval.run.events import RunRequest
from boxeval.run.models import PreparedModels, prepare_models, refuse_upstream
from boxeval.settings import load_settings
from boxeval.spec.models import PlannedReplay, PlannedUpstream

KEY = "sk-canary-0123456789"
TAPE = (
    '{"format":"boxeval.cassette/1","recorded":"2026-01-01"}\n'
    '{"wire":"messages","model":"big","request":{},"status":200,"contentType":"application/json","body":"{}"}\n'
)
SUITE: dict[str, Any] = {
    "version": 2,
    "suite": {"id": "s", "title": "S", "visibility": "local"},
    "models": {
        "real": {"upstream": "openai", "model": "gpt-5"},
        "team": {"upstream": "https://models.example/v1", "model": "big", "key": "TEAM_KEY"},
        "taped": {"replay": "tape.jsonl"},
        "play": {"script": {"turns": [{"text": "x"}]}},
    },
    "matrix": {"targets": [{"id": "one"}]},
    "tasks": [
        {
            "id": "t",
            "workspace": {"kind": "inline", "files": {}},
            "runner": {"kind": "scripted", "prompt": "p"},
            "verify": {"commands": ["true"]},
        }
    ],
}


def prepared(
    directory: Path, model: str, *, task: dict[str, Any] | None = None, verify: Any = None, **request: Any
) -> PreparedModels:
    suite = json.loads(json.dumps(SUITE))
    suite["matrix"]["targets"][0]["model"] = model
    suite["tasks"][0] |= task or {}
    suite["tasks"][0]["verify"] |= verify or {}
    (directory / "tape.jsonl").write_text(TAPE)
    (directory / "s.yaml").write_text(json.dumps(suite))
    loaded = load_suite(directory / "s.yaml")
    pairs = [(task, target) for task in loaded.suite.tasks for target in loaded.suite.matrix.targets]
    return prepare_models(loaded, pairs, RunRequest(loaded.file, **request), load_settings({}))


def keyring(directory: Path) -> Path:
    place = directory / "keys.json"
    place.write_text(json.dumps({"TEAM_KEY": {"value": KEY, "url": "https://models.example/v1"}}))
    place.chmod(0o600)
    return place


@pytest.mark.contract("G50", "P21")
def test_only_what_is_asked_needs_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert set(prepared(tmp_path, "play").planned) == {"play"}
    with pytest.raises(UsageError, match="secret OPENAI_API_KEY: is neither"):
        prepared(tmp_path, "real")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    real = prepared(tmp_path, "real").planned["real"]
    assert isinstance(real, PlannedUpstream)
    assert (real.base_url, real.key, real.prices_of) == (
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "2025-11-01",
    )
    assert KEY not in real.model_dump_json()


@pytest.mark.contract("G50", "P21")
def test_a_key_of_the_keyring_is_for_tasks_that_name_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="task t: model team needs the key TEAM_KEY; name it in `secrets`"):
        prepared(tmp_path, "team", keyring_file=keyring(tmp_path))
    named = {"secrets": ["TEAM_KEY"]}
    with pytest.raises(UsageError, match="secret TEAM_KEY: is neither"):
        prepared(tmp_path, "team", task=named)
    made = prepared(tmp_path, "team", task=named, keyring_file=keyring(tmp_path))
    assert made.sources(None).redactor(f"it is {KEY}".encode()) == b"it is [redacted]"
    with pytest.raises(UsageError, match="is asked over a network"):
        refuse_upstream(made.planned)


def test_a_cassette_is_read_and_named_by_what_it_holds(tmp_path: Path) -> None:
    made = prepared(tmp_path, "taped")
    (planned,) = (model for name, model in made.planned.items() if name == "taped")
    assert isinstance(planned, PlannedReplay)
    assert (planned.model, planned.wires) == ("big", ("messages",))
    assert made.cassettes.keys() == {planned.cassette}
    refuse_upstream(made.planned)


def test_a_judge_is_prepared_like_a_model(tmp_path: Path) -> None:
    made = prepared(tmp_path, "play", verify={"judge": "taped"})
    assert set(made.planned) == {"play", "taped"}
    made = prepared(tmp_path, "play", judge="taped")
    assert set(made.planned) == {"play", "taped"}


def test_there_must_be_something_to_record(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to record"):
        prepared(tmp_path, "play", record=tmp_path / "new.jsonl")
    assert not (tmp_path / "new.jsonl").exists()
