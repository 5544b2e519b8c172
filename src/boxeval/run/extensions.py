"""Extensions outside of a run: boxes to ask one in, an author's check of one, and the cases that one supplies."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from boxeval.agents.environment import base_environment
from boxeval.formats.extension_files import read_extension
from boxeval.formats.fixtures import Fixture, fixture_of
from boxeval.formats.policy import load_policy
from boxeval.graders.extension_evidence import HOST_CAPABILITIES, describe_params
from boxeval.graders.extension_rules import check_cases, negotiate
from boxeval.receipts.blobs import BlobStore
from boxeval.sandbox.engine import Engine, connect
from boxeval.sandbox.images import KEEPER, ensure
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.reaper import Reaper
from boxeval.sandbox.slot import Slot, Yard
from boxeval.settings import Settings
from boxeval.spec.extension import (
    DescribeResult,
    ExtensionCase,
    ResolveParams,
    ResolveResult,
    Selectors,
)
from boxeval.spec.extension_use import ExtensionUse, Negotiated
from boxeval.trial.cancel import Cancel
from boxeval.trial.extension_room import ExtensionSource, Room

LIFETIME_S = 3600
SAMPLE = fixture_of("sample", [(b"README.md", 0o644, b"# Sample\n\nA candidate wrote this.\n")], 1024)
PROJECT_ROOT = "file:///project"
"""All that an extension learns of where the project lies: nothing."""
Note = Callable[[str], None]


@contextmanager
def extension_room(
    use: ExtensionUse, directory: Path, settings: Settings, image: str, note: Note
) -> Iterator[Room]:
    """Boxes for an extension in a slot of their own, over a workspace of sample files. Leaves nothing.

    Raises FixtureError for files that cannot be read, EngineError if no box is to be had.
    """
    source = ExtensionSource(use, directory, read_extension(use, directory))
    policy = load_policy("default", directory)
    with ExitStack() as undo:
        engine = connect()
        undo.callback(engine.close)
        engine.require_overlay_volumes()
        grader = ensure(engine, image, note=note)
        slot = Slot.open(_yard(engine, settings, note), "slot", policy)
        undo.callback(slot.close)
        reaper = Reaper(engine)
        undo.callback(_drain, reaper, note)
        kept = undo.enter_context(tempfile.TemporaryDirectory(prefix="boxeval-"))
        slot.reset()
        room = Room(
            source=source,
            slot=slot,
            trial_id="extension",
            fixture=_fixture(slot, SAMPLE),
            image=grader,
            env=base_environment(grader.path_env),
            lifetime_s=LIFETIME_S,
            reaper=reaper,
            blobs=BlobStore(Path(kept) / "blobs"),
            cancel=Cancel(),
        )
        room.furnish()
        yield room


def open_extension(room: Room, of_host: Sequence[str] = HOST_CAPABILITIES) -> Negotiated:
    """Discovery, with what the candidate's agent can do. Raises ProtocolFault."""
    use = room.source.use
    asked = describe_params(use.protocol, of_host)
    return negotiate(use.protocol, asked, room.ask(DescribeResult, asked), use)


def resolve(room: Room, wanted: Sequence[str] | None = None) -> tuple[ExtensionCase, ...]:
    """The cases that an extension has, or those of them that are wanted. Raises ProtocolFault."""
    selectors = Selectors(case_ids=None if wanted is None else tuple(wanted))
    params = ResolveParams(
        project_root=PROJECT_ROOT, selectors=selectors, configuration=room.source.use.configuration
    )
    return check_cases(room.ask(ResolveResult, params), wanted)


def _yard(engine: Engine, settings: Settings, note: Note) -> Yard:
    return Yard(
        engine=engine,
        owner=Owner.here(settings.data_dir),
        run_id=f"extension-{secrets.token_hex(4)}",
        keeper_image=ensure(engine, KEEPER, note=note),
        cache_dir=settings.cache_dir,
        gateway_dir=None,
        lifetime_s=LIFETIME_S,
    )


def _fixture(slot: Slot, files: Fixture) -> str:
    policy = slot.policy
    key = f"{files.digest[:40]}.{policy.uid}.{policy.gid}"
    if not slot.keeper.has_fixture(key):
        slot.keeper.put_fixture(key, policy, files.digest, files.entries())
    return key


def _drain(reaper: Reaper, note: Note) -> None:
    for line in reaper.drain():
        note(f"left behind on the engine: {line}; `boxeval clean` removes it")
