"""Proof that a policy holds on this engine: the probe runs in real boxes, and boxes are looked at from outside.

Nothing here is asked of the policy's words: every check tries the thing itself (docs/threat-model.md has the
table of promises, settings, checks and what turns each of them red).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from boxeval.errors import EngineError, IsolationError
from boxeval.sandbox.probes.ground import BOXES, BoxRole, Ground, prepare
from boxeval.sandbox.probes.inside import look_inside
from boxeval.sandbox.probes.live import LIVE, memory_limit
from boxeval.sandbox.probes.outside import OUTSIDE
from boxeval.sandbox.probes.report import ProbeReport, ProbeResult, Verdict
from boxeval.sandbox.sweep import of_run

__all__ = ["ProbeReport", "ProbeResult", "prepare", "run_probes"]


def run_probes(ground: Ground) -> ProbeReport:
    """Run every check, and leave nothing. A check that fails to run is red; EngineError only for the set-up."""
    with ground:
        found = [result for role in BOXES for result in _look_at(ground, role)]
        for name, check in OUTSIDE.items():
            found.append(ProbeResult(name, "host", *_carry_out(partial(check, ground))))
    left = of_run(ground.engine, ground.owner, ground.run_id)
    found.append(
        ProbeResult("nothing-left", "host", not left, ", ".join(one.name for one in left) or "nothing")
    )
    return ProbeReport(ground.policy.id, tuple(found))


def _look_at(ground: Ground, role: BoxRole) -> list[ProbeResult]:
    """All checks on one box: from inside, from outside while it lives, and by using up its memory."""
    found: list[ProbeResult] = []
    with ground.box(role) as box:
        try:
            box.start()
        except IsolationError as error:
            return [ProbeResult("settings", role, False, str(error))]
        found.append(
            ProbeResult("settings", role, True, "the engine and the kernel applied what was asked for")
        )
        found += look_inside(ground, box, role)
        checks = LIVE | {"memory-limit": memory_limit}
        found += [
            ProbeResult(name, role, *_carry_out(partial(check, ground, box)))
            for name, check in checks.items()
        ]
    return found


def _carry_out(check: Callable[[], Verdict]) -> Verdict:
    """A check that cannot be carried out shows nothing, which is red."""
    try:
        return check()
    except EngineError as error:
        return Verdict(False, str(error))
