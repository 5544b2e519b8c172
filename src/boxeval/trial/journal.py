"""Reads the agent's session ledger out of the trial's private home, once nothing in it can change any more."""

from __future__ import annotations

from collections.abc import Iterator

from boxeval.errors import HostileTree
from boxeval.rules.journal import read_journal
from boxeval.spec.journal import Journal
from boxeval.spec.policy import CollectCaps
from boxeval.spec.trial import EntryKind
from boxeval.trial.context import TrialContext

JOURNAL_BYTES = 8 * 1024 * 1024
CAPS = CollectCaps(bytes=JOURNAL_BYTES, members=1, depth=16)


def collect_journal(context: TrialContext, path: str) -> Journal:
    """The ledger at `path`, relative to the home, with its bytes among the blobs. Raises EngineError.

    One that is not there, too large or no regular file is told in the result: the agent is to blame for it.
    """
    held = bytearray()

    def keep(pieces: Iterator[bytes]) -> str:
        for piece in pieces:
            held.extend(piece)
        return context.blobs.put(bytes(held))

    try:
        told = list(context.slot.keeper.collect_home((path.encode(),), CAPS, keep))
    except HostileTree as error:
        return Journal(sha256=None, fault=str(error)[:300])
    if not told:
        return Journal(sha256=None, fault="there is no session ledger")
    new = told[0].change.new
    if new is None or new.kind is not EntryKind.FILE:
        return Journal(sha256=None, fault="the session ledger is not a regular file")
    return read_journal(bytes(held))
