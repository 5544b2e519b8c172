"""What `run --resume` is asked for: the flags of the first time, or those given with the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxeval.errors import UsageError
from boxeval.run.events import RunRequest
from boxeval.run.remember import forget, recall, remember, request_of
from boxeval.settings import Settings, load_settings

FIRST = RunRequest(
    suite=Path("s.yaml"), out=Path("out"), jobs=2, tasks=("a", "b"), smoke=True, max_failures=3
)


@pytest.fixture
def settings() -> Settings:
    return load_settings()


def test_a_request_comes_back_with_absolute_paths_and_without_its_directory(settings: Settings) -> None:
    remember(settings, "run-1", FIRST)
    again = recall(settings, "run-1")
    assert again.suite == Path("s.yaml").absolute()
    assert (again.out, again.jobs, again.tasks, again.smoke) == (None, 2, ("a", "b"), True)
    (place,) = (settings.data_dir / "requests").iterdir()
    assert place.stat().st_mode & 0o777 == 0o600
    forget(settings, "run-1")
    forget(settings, "run-1")
    with pytest.raises(UsageError, match="name its suite"):
        recall(settings, "run-1")


@pytest.mark.contract("P19")
def test_resuming_takes_the_flags_of_the_first_time(settings: Settings) -> None:
    remember(settings, "run-1", FIRST)
    request = request_of(RunRequest(suite=Path(), jobs=7), settings, "run-1")
    assert (request.jobs, request.tasks, request.max_failures) == (7, ("a", "b"), None)
    assert request_of(RunRequest(suite=Path()), settings, "run-1").jobs == 2


def test_with_the_suite_named_the_flags_are_as_given(settings: Settings) -> None:
    asked = RunRequest(suite=Path("other.yaml"), tasks=("a",))
    assert request_of(asked, settings, "run-unknown") == asked


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (RunRequest(suite=Path(), tasks=("a",)), "the same selection"),
        (RunRequest(suite=Path(), model="m"), "the same selection"),
        (RunRequest(suite=Path(), out=Path("x")), "--out does not go with --resume"),
        (RunRequest(suite=Path()), "name its suite"),
    ],
)
def test_what_cannot_be_is_refused(asked: RunRequest, words: str, settings: Settings) -> None:
    with pytest.raises(UsageError, match=words):
        request_of(asked, settings, "run-1")


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff"])
def test_a_broken_file_is_as_none(settings: Settings, content: bytes) -> None:
    remember(settings, "run-1", FIRST)
    (settings.data_dir / "requests" / "run-1.json").write_bytes(content)
    with pytest.raises(UsageError, match="name its suite"):
        recall(settings, "run-1")
