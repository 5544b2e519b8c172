"""Grading texts again from the evidence that was kept. How to grade is handed in: receipts know no graders."""

from __future__ import annotations

from collections.abc import Callable

from boxeval.receipts.blobs import BlobStore
from boxeval.rules.check_consistency import decided
from boxeval.spec.checks import Check, ShellCheck, TextCheck
from boxeval.spec.extension_use import ExtensionSeen, ExtensionUse
from boxeval.spec.graded import CheckSeen, CheckStatus, CheckVerdict
from boxeval.spec.plan import PlannedTask, PlannedTrial
from boxeval.spec.trial import Observations, Trial

Regrade = Callable[[Check, bytes], CheckVerdict]
"""The verdict of a check on its text: the final message, or the stdout of a shell check."""

Reread = Callable[[ExtensionUse, ExtensionSeen, Callable[[str], bytes]], str | None]
"""What of an extension's results does not follow from its answers, which are read by their digests."""


Retell = Callable[[PlannedTask, Observations, Callable[[str], bytes]], str | None]
"""What of an agent's record does not follow from its streams and session files."""


class Regrading:
    """Holds sealed verdicts against what grading gives now. Adds to `notes` what it could not hold."""

    def __init__(
        self,
        blobs: BlobStore,
        regrade: Regrade | None,
        reread: Reread | None,
        retell: Retell | None,
        notes: list[str],
    ) -> None:
        self._blobs, self._regrade, self._reread, self._retell = blobs, regrade, reread, retell
        self._notes = notes

    def fault(self, place: PlannedTrial, task: PlannedTask, trial: Trial) -> str | None:
        """A verdict that does not follow from its evidence; None if all do."""
        faults = (self._agent, self._texts, self._extension)
        return next((fault for look in faults if (fault := look(place, task, trial))), None)

    def _agent(self, place: PlannedTrial, task: PlannedTask, trial: Trial) -> str | None:
        if trial.observations.agent_record is None:
            return None
        if self._retell is None:
            self._notes.append(f"{place.key}: the agent's stream was not read again")
            return None
        return self._retell(task, trial.observations, self._blobs.get)

    def _extension(self, place: PlannedTrial, task: PlannedTask, trial: Trial) -> str | None:
        seen, use = trial.observations.extension, task.verify.extension
        if seen is None or use is None:
            return None
        if self._reread is None:
            self._notes.append(f"{place.key}: the extension's answer was not read again")
            return None
        return self._reread(use, seen, self._blobs.get)

    def _texts(self, place: PlannedTrial, task: PlannedTask, trial: Trial) -> str | None:
        """Two verdicts on a text that differ by a time limit may."""
        for check, found in zip(task.verify.checks, trial.observations.checks, strict=False):
            if decided(task, check, found, trial.observations) is not None:
                continue
            text = self._text(check, found, trial.observations)
            if text is None or self._regrade is None:
                why = "its text was not kept whole" if self._regrade else "no graders were given"
                self._notes.append(f"{place.key}: check {check.id} was not graded again: {why}")
                continue
            again = self._regrade(check, text)
            if again.status is found.status:
                continue
            if CheckStatus.ERROR in (again.status, found.status) and (again.limit or found.limit):
                self._notes.append(
                    f"{place.key}: check {check.id} ran into a limit: {again.reason or found.reason}"
                )
                continue
            return (
                f"the verdict of check {check.id} is {found.status}, and grading again gives {again.status}"
            )
        return None

    def _text(self, check: Check, found: CheckSeen, seen: Observations) -> bytes | None:
        if isinstance(check, TextCheck) and seen.message and seen.message.sha256:
            return self._blobs.get(seen.message.sha256)
        if not isinstance(check, ShellCheck) or not found.box or not found.box.commands:
            return None
        out = found.box.commands[0].stdout
        if not out.size_bytes:
            return b""
        return self._blobs.get(out.kept) if out.kept and not out.truncated else None
