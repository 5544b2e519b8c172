"""Fixtures on the real engine. One keeper serves a whole test module; every test resets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boxeval.sandbox.box import Box
from boxeval.sandbox.engine import Engine, connect
from boxeval.sandbox.images import ImageInfo, ensure
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.slot import Slot, Yard, remove_volume
from boxeval.settings import Settings
from boxeval.spec.policy import Limits, Policy
from boxeval.spec.tree import FixtureEntry
from engine_runs import forget, settings_in
from engine_trees import put


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine that the machine offers. Without one these tests fail: nothing stands in for it."""
    engine = connect()
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One cache for all workers of the session: builds of one image are kept apart by locks in it."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if hasattr(request.config, "workerinput") else base) / "shared-cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOXEVAL_CACHE_DIR", str(shared))
        yield shared


@pytest.fixture(scope="session")
def keeper_image(engine: Engine, cache: Path) -> ImageInfo:  # noqa: ARG001
    return ensure(engine, "boxeval/keeper", note=lambda _: None)


@pytest.fixture(scope="session")
def grader_image(engine: Engine, cache: Path) -> ImageInfo:  # noqa: ARG001
    return ensure(engine, "boxeval/grader", note=lambda _: None)


@pytest.fixture(scope="session")
def policy() -> Policy:
    """Small limits, so that breaking them is quick."""
    limits = Limits(
        memory_mib=128,
        pids=64,
        open_files=256,
        file_size_mib=8,
        workspace_mib=16,
        workspace_inodes=2000,
        home_mib=4,
        tmp_mib=4,
        shm_mib=1,
        output_kib=64,
    )
    return Policy(version=1, id="small", limits=limits)


@pytest.fixture(scope="module")
def yard(engine: Engine, keeper_image: ImageInfo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    home = tmp_path_factory.mktemp("owner")
    owner = Owner.here(home)
    yard = Yard(
        engine=engine,
        owner=owner,
        run_id=f"test-{owner.home[:8]}",
        keeper_image=keeper_image,
        cache_dir=home,
        gateway_dir=None,
        lifetime_s=900,
    )
    yield yard
    for volume in (yard.fixtures_volume, yard.tools_volume):
        remove_volume(engine, volume)


@pytest.fixture(scope="module")
def open_slot(yard: Yard, policy: Policy) -> Iterator[Slot]:
    slot = Slot.open(yard, "slot", policy)
    yield slot
    slot.close()


@pytest.fixture
def slot(open_slot: Slot) -> Slot:
    """The module's slot, empty."""
    open_slot.reset()
    return open_slot


MakeBox = Callable[..., Box]


@pytest.fixture
def make_box(slot: Slot, grader_image: ImageInfo) -> Iterator[MakeBox]:
    """Make a box over a fixture (empty unless given). All are removed after the test."""
    made: list[tuple[Box, str]] = []

    def make(entries: list[FixtureEntry] | None = None, name: str = "t", bridge: bool = False) -> Box:
        key = put(slot, entries or [])
        workspace = slot.agent_workspace(f"t{len(made)}", f"{name}{len(made)}", key)
        try:
            box = slot.box(f"t{len(made)}", "agent", grader_image, workspace, 600, bridge=bridge)
        except BaseException:
            remove_volume(slot.yard.engine, workspace)
            raise
        made.append((box, workspace))
        return box

    yield make
    for box, workspace in made:
        box.remove()
        remove_volume(slot.yard.engine, workspace)


@pytest.fixture
def own(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    """Settings of one test, over the session's images; its caches go at the end."""
    settings = settings_in(tmp_path / "own", cache)
    yield settings
    forget(settings)


@pytest.fixture(scope="module")
def settings(home: Path, cache: Path) -> Iterator[Settings]:
    """Settings of a module that has its suite in a fixture `home`; its caches go at the end."""
    settings = settings_in(home / "home", cache)
    yield settings
    forget(settings)
