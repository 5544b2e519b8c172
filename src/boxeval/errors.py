"""Every error boxeval raises on purpose, named by the party at fault.

A trial's failure is never one of these: it is a value in the trial (see `boxeval.spec.trial.Outcome`).
An error ends a command, and `exit_code` is the code that the command then returns (docs/exit-codes.md).
"""

from __future__ import annotations

from dataclasses import dataclass


class BoxevalError(Exception):
    """Our own fault: nothing better is known about it."""

    exit_code = 70


class UsageError(BoxevalError):
    """The command line, a setting or an id is wrong."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file that a user wrote. `line` and `column` count from 1; 0 means unknown."""

    file: str
    path: str
    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


class SuiteError(BoxevalError):
    """A suite, policy or script file is wrong. Holds every problem found, in file order."""

    exit_code = 2

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


class FixtureError(BoxevalError):
    """A workspace's files cannot be taken as they are: missing, escaping, hostile, over a cap."""

    exit_code = 2


class EngineError(BoxevalError):
    """The container engine, or the way to it, failed. Never becomes a score."""

    exit_code = 3


class EngineMissing(EngineError):
    """No engine answers, or we may not talk to it."""

    exit_code = 2


class EngineUnsupported(EngineError):
    """An engine answers but cannot do what isolation needs."""

    exit_code = 2


class ImageError(EngineError):
    """An image is missing and can be neither pulled nor built."""


class IsolationError(EngineError):
    """What the engine applied is not what the policy asked for, or something outlived the kill."""


class BoxError(EngineError):
    """A box did not start, or ended without its shim's report."""


class NoRoom(EngineError):
    """A slot's capped disk is too full for what should come next. After a turn that is the candidate's doing."""


class HostileTree(BoxevalError):
    """A tree or stream from a box breaks a cap or is malformed: the candidate's doing."""

    exit_code = 3


class TamperError(BoxevalError):
    """Something sealed was changed, or its key is not trusted."""

    exit_code = 4


class IncompleteError(BoxevalError):
    """A run ended early or receipts are missing, but nothing was changed."""

    exit_code = 3


class UnreadableError(BoxevalError):
    """A run or artifact cannot be found or read."""

    exit_code = 1


class StorageError(BoxevalError):
    """Results cannot be written."""

    exit_code = 70
