"""`boxeval.human`: a person decides, later, with `boxeval grade` (V41)."""

from __future__ import annotations

from boxeval.graders.interface import Bench, Phase, seen_of
from boxeval.rules.human import human_verdict
from boxeval.spec.checks import HumanCheck
from boxeval.spec.graded import CheckSeen


class HumanGrader:
    """Unavailable until somebody has decided."""

    phase = Phase.SEMANTIC

    def grade(self, check: HumanCheck, _bench: Bench) -> CheckSeen:
        """There is no statement yet when a trial is graded."""
        return seen_of(check, human_verdict(check, None))
