"""The private runtime directory of a box: seeds of its role, over which it may write (contract G75)."""

from __future__ import annotations

from boxeval.formats.runtime_config import RUNTIME_DIRECTORY
from boxeval.sandbox.slot import AGENT, GRADE
from boxeval.spec.runtime import Role
from boxeval.trial.context import TrialContext

_ROLES = {AGENT: Role.CANDIDATE, GRADE: Role.CHECKS}


def runtime_volumes(context: TrialContext, area: str, name: str) -> dict[str, str]:
    """A volume by the path where box `name` of that area has it; nothing if there are no seeds for it."""
    seeds = context.fixtures.seeds_of(_ROLES[area], context.slot)
    if seeds is None:
        return {}
    return {
        RUNTIME_DIRECTORY: context.slot.overlay(context.trial_id, area, runtime_layer(name), (), seeds.key)
    }


def runtime_layer(name: str) -> str:
    """Name of the layer that takes what a box writes to its runtime directory."""
    return f"{name}-runtime"
