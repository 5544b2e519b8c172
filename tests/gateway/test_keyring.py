"""Where the operator's keys come from, and where they may go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boxeval.errors import UsageError
from boxeval.gateway.keyring import read_keyring
from boxeval.gateway.prices import priced
from boxeval.rules.providers import place_of
from boxeval.spec.models import Pricing, UpstreamModel

KEY = "sk-canary-0123456789"
ENVIRON = {
    "OPENAI_API_KEY": KEY,
    "AWS_SECRET_ACCESS_KEY": "aws-canary-0123",
    "SHORT": "abc",
    "LOCAL": "local-canary",
}


def written(path: Path, content: object, mode: int = 0o600) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(mode)
    return path


@pytest.mark.contract("P21", "G50")
def test_a_key_goes_nowhere_but_below_its_url(tmp_path: Path) -> None:
    entries = {
        "MINE": {"value": "mine-canary-0123", "url": "https://models.example/v1/"},
        "BORROWED": {"env": "LOCAL", "url": "http://127.0.0.1:8000"},
        "HOMELESS": {"value": "homeless-canary"},
    }
    keyring = read_keyring(written(tmp_path / "keys.json", entries), ENVIRON)
    assert keyring.key_for("MINE", "https://models.example/v1").value == "mine-canary-0123"
    assert keyring.key_for("MINE", "https://models.example/v1/eu").value == "mine-canary-0123"
    assert keyring.key_for("BORROWED", "http://127.0.0.1:8000/v1").value == "local-canary"
    assert keyring.key_for("OPENAI_API_KEY", "https://api.openai.com/v1").value == KEY
    for name, url in (
        ("MINE", "https://models.example.evil.example/v1"),
        ("MINE", "https://models.example/v12"),
        ("MINE", "http://models.example/v1"),
        ("OPENAI_API_KEY", "https://evil.example/v1"),
        ("AWS_SECRET_ACCESS_KEY", "https://evil.example/v1"),
        ("HOMELESS", "https://models.example/v1"),
    ):
        with pytest.raises(UsageError) as caught:
            keyring.key_for(name, url)
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "keys.json", {"A": {"value": KEY, "url": "https://models.example"}}, mode)
    with pytest.raises(UsageError, match="chmod 600"):
        read_keyring(path, {})


@pytest.mark.parametrize(
    "content",
    [
        KEY,
        f'{{"A": {{"value": "{KEY}"',
        [KEY],
        {"A": KEY},
        {"A": {"value": KEY, "env": "B"}},
        {"A": {"value": [KEY]}},
        {"A": {"value": KEY, "URL": "https://models.example"}},
        {"A": {"url": "https://models.example"}},
        "[" * 100_000,
    ],
)
def test_a_bad_file_is_refused_without_telling_what_is_in_it(tmp_path: Path, content: object) -> None:
    with pytest.raises(UsageError) as caught:
        read_keyring(written(tmp_path / "keys.json", content), {})
    assert KEY not in str(caught.value)


def test_a_secret_that_is_missing_or_cannot_be_redacted_is_refused() -> None:
    keyring = read_keyring(None, {**ENVIRON, "NUL": "abc\ndefghi", "EMPTY": ""})
    for name, said in (
        ("NOBODY", "neither"),
        ("EMPTY", "neither"),
        ("SHORT", "at least"),
        ("NUL", "printable"),
    ):
        with pytest.raises(UsageError, match=said):
            keyring.get(name)
    for path in (Path("/nonexistent/keys.json"), Path("/")):
        with pytest.raises(UsageError, match="keyring /"):
            read_keyring(path, {})


def test_what_was_looked_up_is_redacted_and_nothing_shows_it() -> None:
    keyring = read_keyring(None, ENVIRON)
    secret = keyring.get("OPENAI_API_KEY")
    assert KEY not in repr(secret) + repr(keyring)
    assert keyring.redactor()(f"it is {KEY}".encode()) == b"it is [redacted]"


def test_a_price_is_the_suites_own_else_the_tables_with_its_date_else_none() -> None:
    known = UpstreamModel(upstream="anthropic", model="claude-sonnet-4-5")
    place = priced(place_of(known), known)
    assert place.pricing == Pricing(input=3, output=15, cache_read=0.3, cache_write=3.75)
    assert place.prices_of == "2025-11-01"
    page = Path(__file__).parents[2] / "docs" / "gateway.md"
    assert f"as of {place.prices_of}" in page.read_text()
    assert (place.base_url, place.key) == ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")
    own = known.model_copy(update={"pricing": Pricing(input=1, output=2)})
    assert priced(place_of(own), own).pricing == Pricing(input=1, output=2)
    assert priced(place_of(own), own).prices_of is None
    for model in (
        UpstreamModel(upstream="anthropic", model="claude-sonnet-4-5-unheard-of"),
        UpstreamModel(upstream="http://127.0.0.1:8000/v1", model="gpt-5"),
    ):
        assert priced(place_of(model), model).pricing is None
