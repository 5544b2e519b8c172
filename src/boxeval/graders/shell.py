"""`boxeval.shell`: a command over what the candidate left, in a box of its own (G14-G21)."""

from __future__ import annotations

from boxeval.graders.interface import Bench, Phase, seen_of
from boxeval.rules.box_checks import STDOUT_BYTES, shell_verdict
from boxeval.sandbox.job import Job, shell
from boxeval.spec.checks import ShellCheck
from boxeval.spec.graded import CheckSeen


class ShellGrader:
    """Exit code first, then what is asserted of stdout."""

    phase = Phase.SHELL

    def grade(self, check: ShellCheck, bench: Bench) -> CheckSeen:
        """Run the command and look at its end."""
        configuration = check.configuration
        wanted = STDOUT_BYTES if configuration.asserts_text else None
        job = Job(shell(configuration.run), bench.environment(), stdout_bytes=wanted)
        ran = bench.run(job, configuration.timeout_ms)
        verdict = shell_verdict(configuration, ran.result)
        return seen_of(check, verdict or bench.grade_text(check, ran.stdout), box=ran.result)
