"""What every test stands on: a home of its own, known contract ids, and an engine left as it was found."""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
import time
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).parent / "engine"
pytest_plugins = ["agent_fixtures", "engine_fixtures", "gateway_fixtures", "grader_fixtures"]

PROMISES = {
    name
    for section in tomllib.loads(Path(__file__).with_name("contract.toml").read_text("utf-8")).values()
    for name in section
}


@pytest.fixture(autouse=True)
def boxeval_home(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A private HOME and BOXEVAL_HOME for each test, subprocesses included. Returns the latter."""
    engine = request.node.get_closest_marker("engine")
    for name in list(os.environ):
        if name == "BOXEVAL_BASE_IMAGE" and engine:
            continue  # the images to test were built upon it
        if name.startswith(("BOXEVAL_", "XDG_")) or name in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"}:
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("BOXEVAL_HOME", str(home / "boxeval"))
    if engine:
        # Builds of one image are kept apart by locks in the cache, so all workers must share it.
        base = tmp_path_factory.getbasetemp()
        shared = base.parent if hasattr(request.config, "workerinput") else base
        monkeypatch.setenv("BOXEVAL_CACHE_DIR", str(shared / "shared-cache"))
    return home / "boxeval"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is in tests/engine needs an engine; a claim on a promise that does not exist is a mistake in the test."""
    for item in items:
        if ENGINE in item.path.parents:
            item.add_marker(pytest.mark.engine)
    wrong = [
        f"{item.nodeid}: {name!r}"
        for item in items
        for mark in item.iter_markers("contract")
        for name in mark.args or ("(empty)",)
        if name not in PROMISES
    ]
    if wrong:
        raise pytest.UsageError("unknown contract id, see tests/contract.toml:\n" + "\n".join(wrong))


GRACE_S = 15
"""Removal of the last boxes may still be under way when the last test ends."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session if anything that its tests made is still on the engine. The xdist controller asks."""
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    homes = _home_ids(session.config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]
    left = _left_on_engine(homes) if homes else []
    deadline = time.monotonic() + GRACE_S
    while left and time.monotonic() < deadline:
        time.sleep(0.5)
        left = _left_on_engine(homes)
    if left:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.write_line("")
            for line in left:
                reporter.write_line(f"left on the engine by these tests: {line}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _home_ids(base: Path) -> set[str]:
    """Ids of every boxeval home that these tests made. They sit near the top of a test's directory."""
    ids = set()
    for folder, below, files in os.walk(base):
        if "home-id" in files:
            ids.add(Path(folder, "home-id").read_text().strip())
        if len(Path(folder).relative_to(base).parts) > 5:
            below.clear()
    return ids


def _left_on_engine(homes: set[str]) -> list[str]:
    """What is still there of these homes. Their caches are no leftover of a run, so they are removed here."""
    from boxeval.errors import EngineError
    from boxeval.sandbox.engine import connect
    from boxeval.sandbox.ownership import CACHE, OWNER, RUN
    from boxeval.sandbox.slot import remove_volume

    try:
        engine = connect()
    except EngineError:
        return []
    try:
        for volume in engine.api.volumes(filters={"label": CACHE})["Volumes"] or []:
            if volume["Labels"].get(OWNER) in homes:
                # In use means that a container is left, and that is told below.
                with contextlib.suppress(EngineError):
                    remove_volume(engine, volume["Name"])
        found = {
            "container": engine.api.containers(all=True, filters={"label": RUN}),
            "volume": engine.api.volumes(filters={"label": RUN})["Volumes"] or [],
            "network": engine.api.networks(filters={"label": RUN}),
        }
    finally:
        engine.close()
    return [
        f"{kind} {(one.get('Names') or [one.get('Name')])[0]}"
        for kind, objects in found.items()
        for one in objects
        if one["Labels"].get(OWNER, "").partition(".")[0] in homes
    ]


@pytest.fixture
def tools() -> Iterator[Path]:
    """A directory that boxes may show at its own path, which one below /tmp cannot, wherever the tests lie."""
    with tempfile.TemporaryDirectory(prefix="boxeval-tools-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(autouse=True)
def unconnected(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let go of sockets that could not connect: the engine's SDK leaves each open until the garbage is collected.

    Without an engine there are many, and a later test of the same process would be blamed for them.
    """
    yield
    if request.path.parent.name == "faults":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
