"""Why a trial cannot begin."""

from __future__ import annotations

from boxeval.spec.outcome import FailureClass
from boxeval.spec.trial import SetupFault


class StageFault(Exception):
    """The candidate cannot be started, and it is not its doing."""

    def __init__(self, failure_class: FailureClass, detail: str) -> None:
        self.fault = SetupFault(failure_class=failure_class, detail=detail[:300])
        super().__init__(detail)
