"""`boxeval.regex`, `json`, `schema` and `output`: checks of the final message, which children grade (`examiner`)."""

from __future__ import annotations

from boxeval.graders.interface import Bench, Phase, seen_of
from boxeval.rules.check_consistency import unavailable
from boxeval.spec.checks import TextCheck
from boxeval.spec.graded import CheckSeen, EvidencePart


class TextGrader:
    """Needs a complete final message (G4)."""

    phase = Phase.OUTPUT

    def grade(self, check: TextCheck, bench: Bench) -> CheckSeen:
        """What the child makes of the message."""
        message = bench.message
        if verdict := unavailable(message):
            return seen_of(check, verdict)
        verdict = bench.grade_text(check, bench.message_text())
        return seen_of(check, verdict, evidence=(EvidencePart(name="message", sha256=message.sha256 or ""),))
