"""How a ledger opens, is resumed and closes: steps 5, 6 and 11 of `boxeval.receipts.verify.verify`."""

from __future__ import annotations

from pathlib import Path

from boxeval.errors import TamperError
from boxeval.receipts import merkle
from boxeval.receipts.chain import Line, refuse
from boxeval.receipts.ledger import CHECKPOINT, LEDGER, checkpoint_line
from boxeval.receipts.storage import read_regular
from boxeval.receipts.trust import instant
from boxeval.spec.receipt import Closed, Resumed, Sealed


def check_closings(lines: tuple[Line, ...]) -> tuple[str, ...]:
    """Step 5; returns the checkpoint that each closing line gives."""
    hashes = [bytes.fromhex(line.hash) for line in lines]
    checkpoints = []
    for before, line in enumerate(lines):
        closed = line.receipt.body
        if not isinstance(closed, Closed):
            continue
        if closed.count != before:
            raise refuse(line.number, f"counts {closed.count} lines before it, but there are {before}")
        if closed.root != merkle.root(hashes[:before]):
            raise refuse(line.number, "its Merkle root is not that of the lines before it")
        checkpoints.append(checkpoint_line(closed, line.hash, line.key.keyid))
    return tuple(checkpoints)


def check_times(lines: tuple[Line, ...]) -> None:
    """Step 6."""
    key = lines[0].key
    for line in lines:
        body = line.receipt.body
        if isinstance(body, Sealed):
            continue
        what = f"{LEDGER}: the run {'was ' if isinstance(body, Resumed) else ''}{body.type} at"
        try:
            covered = key.covers(instant(body.at))
        except ValueError:
            raise TamperError(f"{what} {body.at!r}, which is no time") from None
        if not covered:
            raise TamperError(f"{what} {body.at}, when {key.name} was not in force")


def check_checkpoint(file: Path, closings: tuple[str, ...], closed: bool, pinned: str | None) -> list[str]:
    """Step 11. A resumed run has the checkpoint of its last closing line in the file until it is closed again."""
    if pinned is not None and pinned.strip() not in closings:
        reason = (
            "is not this run's" if closings else "is of a closed run, and this one has lost its closing line"
        )
        raise TamperError(f"the given checkpoint {reason}")
    problems = []
    if pinned is not None and (pinned.strip() != closings[-1] or not closed):
        problems.append(
            "the given checkpoint is of an earlier closing line, and does not fix what came after it"
        )
    try:
        found = read_regular(file, 4096).decode("utf-8", "replace")
    except FileNotFoundError:
        return [*problems, f"the {CHECKPOINT} file is missing"] if closed else problems
    except OSError as error:
        raise TamperError(f"{CHECKPOINT}: {error.strerror or error}") from None
    if not closings:
        return [*problems, f"the {CHECKPOINT} file says that the run was closed: lines were removed"]
    if found.removesuffix("\n") not in closings or not found.endswith("\n"):
        raise TamperError(f"{CHECKPOINT}: is not the line that the ledger gives")
    if closed and found != f"{closings[-1]}\n":
        problems.append(
            f"the {CHECKPOINT} file is of an earlier closing line: the run ended before it was renewed"
        )
    return problems
