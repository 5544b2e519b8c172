"""Where things are kept, and what a name on the command line means."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxeval.cli.places import run_directory, suite_file
from boxeval.errors import UnreadableError, UsageError
from boxeval.settings import load_settings


@pytest.mark.contract("S46")
@pytest.mark.parametrize(
    ("environ", "data", "cache"),
    [
        ({"XDG_DATA_HOME": "/x/data", "XDG_CACHE_HOME": "/x/cache"}, "/x/data/boxeval", "/x/cache/boxeval"),
        ({"XDG_DATA_HOME": "/x/data", "BOXEVAL_HOME": "/h"}, "/h/data", "/h/cache"),
        ({"BOXEVAL_HOME": "/h", "BOXEVAL_DATA_DIR": "/d"}, "/d", "/h/cache"),
        ({"BOXEVAL_HOME": "/h", "BOXEVAL_CACHE_DIR": "/c"}, "/h/data", "/c"),
    ],
)
def test_a_role_beats_the_home_and_the_home_beats_xdg(
    environ: dict[str, str], data: str, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOXEVAL_HOME")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert (str(settings.data_dir), str(settings.cache_dir)) == (data, cache)
    assert settings.runs_dir == settings.data_dir / "runs"


def test_a_run_is_a_path_if_it_has_a_slash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings()
    (settings.runs_dir / "one").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert run_directory("one", settings) == settings.runs_dir / "one"
    assert run_directory("./one", settings) == Path("one")
    assert run_directory(str(tmp_path / "two"), settings) == tmp_path / "two"
    with pytest.raises(UnreadableError, match=r"for the directory here say ./two$"):
        run_directory("two", settings)
    with pytest.raises(UnreadableError, match="`boxeval runs` lists"):
        run_directory("three", settings)
    with pytest.raises(UsageError):
        run_directory("./a\0b", settings)


@pytest.mark.parametrize("run", ["x" * 300, f"./{'x' * 300}"])
def test_a_run_that_no_file_system_can_hold(run: str) -> None:
    settings = load_settings()
    settings.runs_dir.mkdir(parents=True)
    with pytest.raises(UnreadableError, match="cannot be read: File name too long"):
        run_directory(run, settings)


def test_a_file_beats_a_built_in_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxeval.settings.resource", lambda kind: tmp_path / kind)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "quickstart.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert suite_file(Path("quickstart"), None) == tmp_path / "suites" / "quickstart.yaml"
    (tmp_path / "quickstart").touch()
    assert suite_file(Path("quickstart"), None) == Path("quickstart")
    assert suite_file(None, Path("missing.yaml")) == Path("missing.yaml")
    with pytest.raises(UsageError, match="known: quickstart"):
        suite_file(Path("quikstart"), None)
