"""Images of others: pulled once, and when they cannot be had the line says which of three things is wrong."""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from images_registry import Registry, layer

from boxeval.errors import EngineError, ImageError
from boxeval.sandbox import pull as pull_module
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.image_info import inspect
from boxeval.sandbox.images import ensure, list_images
from boxeval.sandbox.pull import RegistryError
from boxeval.verdicts.aggregate import aggregate, exit_code
from engine_runs import forget, run, settings_in, write_suite

WORDS = {"x86_64": "amd64", "aarch64": "arm64"}
PLAIN = {"Env": ["PATH=/own/bin:/bin", "LANG=C"], "Volumes": {"/data": {}}}


@pytest.fixture
def registry() -> Iterator[Registry]:
    registry = Registry()
    yield registry
    registry.close()


@pytest.fixture
def name(engine: Engine, registry: Registry) -> Iterator[str]:
    """A name in the registry that no other test uses; the image is removed after the test."""
    name = f"{registry.name}/boxeval-test-{secrets.token_hex(4)}:v1"
    yield name
    with suppress(EngineError), engine_errors("clean up"):
        engine.api.remove_image(name)


def ours(engine: Engine) -> str:
    return WORDS.get(engine.facts.architecture, engine.facts.architecture)


def repository(name: str) -> str:
    return name.partition("/")[2]


def content() -> list[bytes]:
    return [layer({"file": secrets.token_bytes(16)})]


def failure(engine: Engine, name: str) -> ImageError:
    with pytest.raises(ImageError) as caught:
        ensure(engine, name, note=lambda _: None)
    assert str(caught.value).startswith(f"{name}: ")
    assert "\n" not in str(caught.value)
    return caught.value


def test_pulled_once_and_described(engine: Engine, registry: Registry, name: str) -> None:
    registry.put(repository(name), ours(engine), content(), PLAIN)
    notes: list[str] = []
    first = ensure(engine, name, note=notes.append)
    assert notes == [f"pulling {name}"]
    asked = len(registry.requests)
    assert ensure(engine, name, note=notes.append) == first
    assert len(registry.requests) == asked
    assert (first.name, first.path_env, first.volumes) == (name, "/own/bin:/bin", ("/data",))
    assert (first.recipe, first.packages) == (None, None)
    assert first.image_id.startswith("sha256:")


def test_pulled_by_digest(engine: Engine, registry: Registry, name: str) -> None:
    digest = registry.put(repository(name), ours(engine), content(), PLAIN)
    pinned = f"{name.rpartition(':')[0]}@{digest}"
    try:
        assert ensure(engine, pinned, note=lambda _: None).image_id.startswith("sha256:")
    finally:
        engine.api.remove_image(pinned)


def test_missing_tag(engine: Engine, name: str) -> None:
    error = failure(engine, name)
    assert "no such image here or in 127.0.0.1" in str(error)
    assert not isinstance(error, RegistryError)


def test_index_without_our_architecture(engine: Engine, registry: Registry, name: str) -> None:
    inner = registry.put("inner:v1", "s390x", content(), PLAIN)
    registry.put_index(repository(name), inner, "s390x")
    assert "not made for this engine's architecture" in str(failure(engine, name))


def test_single_image_of_another_architecture(engine: Engine, registry: Registry, name: str) -> None:
    registry.put(repository(name), "s390x", content(), PLAIN)
    assert f"made for s390x, this engine runs {ours(engine)}" in str(failure(engine, name))


def test_rate_limit_is_the_registrys_not_the_images(engine: Engine, registry: Registry, name: str) -> None:
    registry.status = 429
    error = failure(engine, name)
    assert isinstance(error, RegistryError)
    assert "cannot be reached" in str(error)


def test_nothing_listens(engine: Engine) -> None:
    started = time.monotonic()
    error = failure(engine, "localhost:1/x:y")
    assert time.monotonic() - started < 20
    assert isinstance(error, RegistryError)
    assert "the registry localhost:1 cannot be reached" in str(error)
    assert "docker load" in str(error)


def test_a_silent_registry_is_waited_for_with_a_bound(
    engine: Engine, registry: Registry, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.silent = threading.Event()
    monkeypatch.setattr(pull_module, "SILENCE_S", 1)
    started = time.monotonic()
    assert isinstance(failure(engine, name), RegistryError)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("name", ["boxeval/unknown", "boxeval/base:0000000000000000"])
def test_a_name_of_ours_is_never_asked_of_a_registry(engine: Engine, name: str) -> None:
    """Whoever owns that name in a public registry must not get to run code here."""
    assert failure(engine, name).args[0].endswith("it has boxeval/keeper, boxeval/base, boxeval/grader")


def test_a_base_that_would_be_built_upon_itself(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOXEVAL_BASE_IMAGE", "boxeval/rootfs")
    with pytest.raises(ImageError, match=r"^BOXEVAL_BASE_IMAGE: boxeval/rootfs would be built upon itself"):
        ensure(engine, "boxeval/grader", note=lambda _: None)


def test_a_base_that_cannot_be_had_has_no_substitute(
    engine: Engine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOXEVAL_BASE_IMAGE", name)
    with pytest.raises(ImageError, match="no such image here"):
        ensure(engine, "boxeval/grader", note=lambda _: None)
    assert not any(image.current for image in list_images(engine))


def test_trials_whose_image_cannot_be_had_are_void_at_once_and_named(
    engine: Engine, registry: Registry, name: str, tmp_path: Path, cache: Path
) -> None:
    """Known failure C10: a missing tag, another architecture, a registry that is down. None becomes a score."""
    registry.put(repository(name), "s390x", content(), PLAIN)
    images = {"tag": f"{registry.name}/none:v1", "architecture": name, "registry": "localhost:1/x:y"}
    task = """
      - id: {}
        image: "{}"
        workspace: {{kind: inline, files: {{a: "one\\n"}}}}
        runner: {{kind: external-command, command: "true"}}
        verify: {{commands: ["true"]}}
    """
    suite = write_suite(tmp_path, "tasks:" + "".join(task.format(*pair) for pair in images.items()))
    settings = settings_in(tmp_path / "bx", cache)
    try:
        end, verified = run(suite, settings)
    finally:
        forget(settings)
    said = {
        "tag": "no such image here or in 127.0.0.1",
        "architecture": f"made for s390x, this engine runs {ours(engine)}",
        "registry": "the registry localhost:1 cannot be reached",
    }
    for trial in verified.trials:
        outcome = trial.outcome
        assert (outcome.task, outcome.failure_class, outcome.weight) == (
            "not_assessed",
            "command_error",
            "void",
        )
        assert said[trial.task] in (outcome.detail or "")
        assert trial.observations.agent is None, "nothing has run"
    report = aggregate(verified)
    assert (exit_code(report), report.totals.void, report.totals.pass_rate) == (3, 3, None)
    assert end.left_behind == ()


@pytest.mark.slow
@pytest.mark.contract("P22")
def test_the_base_is_pulled_where_it_can_be(
    engine: Engine, registry: Registry, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way from a pinned base image in a registry to the grader."""
    del cache
    source = ensure(engine, "boxeval/rootfs", note=lambda _: None)
    exported = b"".join(_file_system(engine, source.image_id))
    digest = registry.put("base:v1", ours(engine), [exported], {"Env": [f"PATH={source.path_env}"]})
    pinned = f"{registry.name}/base@{digest}"
    monkeypatch.setenv("BOXEVAL_BASE_IMAGE", pinned)
    notes: list[str] = []
    made = [ensure(engine, "boxeval/grader", note=notes.append)]
    try:
        made.append(ensure(engine, "boxeval/rootfs", note=notes.append))
        assert f"pulling {pinned}" in notes
        assert not any("mmdebstrap" in note for note in notes)
        assert made[1].recipe != source.recipe
        assert made[1].packages == source.packages
        again: list[str] = []
        assert ensure(engine, "boxeval/grader", note=again.append) == made[0]
        assert again == []
    finally:
        for image in made:
            engine.api.remove_image(image.tag)
        engine.api.remove_image(pinned)
    assert inspect(engine, pinned) is None


def _file_system(engine: Engine, image: str) -> Iterator[bytes]:
    container = engine.api.create_container(image, ["true"])["Id"]
    try:
        yield from engine.api.export(container)
    finally:
        engine.api.remove_container(container)
