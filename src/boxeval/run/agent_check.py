"""`boxeval agents check`: the probe that precedes every fresh request, in a real box, without a model or a task."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from boxeval.agents import preflight
from boxeval.agents.environment import base_environment
from boxeval.agents.host import Host
from boxeval.formats.fixtures import inline_fixture
from boxeval.formats.policy import load_policy
from boxeval.rules.selection import AGENT_IMAGES
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import KEEPER, ensure
from boxeval.sandbox.ownership import Owner
from boxeval.sandbox.reaper import Reaper
from boxeval.sandbox.settings import MIB
from boxeval.sandbox.slot import Slot, Yard
from boxeval.settings import Settings
from boxeval.spec.agent_record import Preflight

LIFETIME_S = 900


def check_agents(
    engine: Engine, hosts: Iterable[Host], settings: Settings, note: Callable[[str], None]
) -> Iterator[tuple[Host, Preflight]]:
    """Probe agents one after another, under the default policy. Builds the images that are missing."""
    engine.require_overlay_volumes()
    policy = load_policy("default", Path.cwd())
    yard = Yard(
        engine=engine,
        owner=Owner.here(settings.data_dir),
        run_id=f"check-{secrets.token_hex(4)}",
        keeper_image=ensure(engine, KEEPER, note=note),
        cache_dir=settings.cache_dir,
        gateway_dir=None,
        lifetime_s=LIFETIME_S,
    )
    with ExitStack() as undo:
        slot = Slot.open(yard, "slot", policy)
        undo.callback(slot.close)
        reaper = Reaper(engine)
        undo.callback(reaper.drain, lambda: False)
        fixture = inline_fixture({}, policy.limits.workspace_mib * MIB)
        if not slot.keeper.has_fixture(fixture.digest):
            slot.keeper.put_fixture(fixture.digest, policy, fixture.digest, fixture.entries())
        for number, host in enumerate(hosts):
            yield host, _check(slot, reaper, fixture.digest, host, f"agent{number}", note)


def _check(
    slot: Slot, reaper: Reaper, fixture: str, host: Host, name: str, note: Callable[[str], None]
) -> Preflight:
    image = ensure(slot.yard.engine, AGENT_IMAGES + host.name, note=note)
    slot.reset()
    workspace = slot.agent_workspace("check", name, fixture)
    box = slot.box("check", name, image, workspace, LIFETIME_S, shares_private=True)
    try:
        env = base_environment(image.path_env)
        box.start()
        end = box.run(preflight.probe(host.version, env), last=True)
        box.settle()
    finally:
        reaper.take(box, (workspace,))
    mounts = [mount.target for mount in slot.policy.mounts]
    return preflight.read(end.stdout.kept, env, (*mounts, *image.volumes), (), end.wall_ms)
