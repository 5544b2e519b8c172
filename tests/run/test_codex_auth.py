"""The key of a Codex auth file: read for the gateway, never shown (contract G50, G53)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxeval.errors import UsageError
from boxeval.run.case_choices import CaseChoices
from boxeval.run.case_run import prepare_case
from boxeval.run.codex_auth import key_in
from boxeval.run.events import RunRequest
from boxeval.run.models import prepare_models
from boxeval.settings import load_settings
from case_samples import write_case

SECRET = "sk-CANARY-0123456789"


@pytest.mark.contract("G53")
def test_what_is_read_of_it(tmp_path: Path) -> None:
    file = tmp_path / "auth.json"
    for text, found in (
        (f'{{"OPENAI_API_KEY": "{SECRET}", "tokens": null}}', {"OPENAI_API_KEY": SECRET}),
        ('{"OPENAI_API_KEY": null, "tokens": {"access_token": "x"}}', {}),
        ("[]", {}),
    ):
        file.write_text(text)
        assert key_in(file) == found
    for text in (f'{{"OPENAI_API_KEY": "{SECRET}"', "[" * 100_000):
        file.write_text(text)
        with pytest.raises(UsageError) as caught:
            key_in(file)
        assert str(caught.value) == "--codex-auth-file: is not JSON"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UsageError, match="cannot be read"):
        key_in(file)


@pytest.mark.contract("G50")
def test_the_gateway_has_the_key_and_the_plan_has_not(tmp_path: Path) -> None:
    file = tmp_path / "auth.json"
    file.write_text(f'{{"OPENAI_API_KEY": "{SECRET}"}}')
    choices = CaseChoices(
        case_file=write_case(tmp_path / "cases"),
        results_root=tmp_path / "results",
        host="reference",
        model="upstream:openai/gpt-x",
        codex_auth_file=file,
    )
    settings = load_settings()
    case = prepare_case(choices, settings)
    assert case.asks_a_provider
    [task], [target] = case.suite.suite.tasks, case.suite.suite.matrix.targets
    request = RunRequest(Path("case.json"), case=choices)
    models = prepare_models(case.suite, [(task, target)], request, settings)
    [planned] = models.planned.values()
    assert models.keyring.key_for("OPENAI_API_KEY", "https://api.openai.com/v1").value == SECRET
    assert SECRET not in planned.model_dump_json() + case.run.model_dump_json() + repr(models.keyring)
    with pytest.raises(UsageError, match="OPENAI_API_KEY: is neither in the keyring nor in the environment"):
        prepare_models(case.suite, [(task, target)], RunRequest(Path("case.json")), settings)
