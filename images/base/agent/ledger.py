"""The session ledger: one JSON line for everything that was said and done, only ever appended to.

All sessions of one home share a file, and each line says whose it is. A session's last line is its receipt: how
it ended, and a digest over its lines, so that a reader can tell a whole record from a torn or changed one.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMAT = 1


class Ledger:
    """Writes each entry through at once. If it cannot, that is worth one warning, not the session."""

    def __init__(
        self, path: Path, role: str = "main", session: str | None = None, parent: str | None = None
    ) -> None:
        self._path = path
        self._number = 0
        self._usage: dict[str, int] = {}
        self._warned = False
        self.role, self.parent = role, parent
        self.session = session or self.next_name(role)

    def begin(self, **fields: object) -> None:
        """The first line of a session."""
        self.add("session", format=FORMAT, role=self.role, parent=self.parent, **fields)

    def add(self, kind: str, **fields: object) -> None:
        """Append `{"session", "seq", "at" (seconds), "type": kind, …fields}`."""
        self._number += 1
        at = round(time.time(), 3)
        self._write({"session": self.session, "seq": self._number, "at": at, "type": kind, **fields})

    def count(self, usage: dict[str, int | None]) -> None:
        """Add what one answer of the model says that it used."""
        for name, value in usage.items():
            if isinstance(value, int):
                self._usage[name] = self._usage.get(name, 0) + value

    def seal(self, reason: str, exit_code: int, text: str) -> None:
        """The last line: the receipt. Its digest covers all lines before it and the receipt itself."""
        self._number += 1
        receipt = {
            "session": self.session,
            "seq": self._number,
            "at": round(time.time(), 3),
            "type": "receipt",
            "role": self.role,
            "parent": self.parent,
            "reason": reason,
            "exit": exit_code,
            "usage": self._usage or None,
            "text": text,
        }
        # Read back, since a signal may have come between a line and a note of it.
        digest = hashlib.sha256(
            b"".join(line for line, entry in self._lines() if entry.get("session") == self.session)
        )
        digest.update(canonical(receipt))
        self._write({**receipt, "digest": digest.hexdigest()})

    def next_name(self, role: str) -> str:
        """`main.1`, `worker.2`: the next session of a role in this file."""
        begun = [
            entry for entry in self.entries() if entry.get("type") == "session" and entry.get("role") == role
        ]
        return f"{role}.{len(begun) + 1}"

    def entries(self) -> Iterator[dict[str, Any]]:
        """Everything that is in the file, of all sessions."""
        return (entry for _, entry in self._lines())

    def _lines(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        try:
            data = self._path.read_bytes()
        except OSError:
            return
        for line in data.splitlines(keepends=True):
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):  # torn by the end of an earlier session
                continue
            if isinstance(entry, dict):
                yield line, entry

    def _write(self, entry: dict[str, object]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, line)  # whole, in one call: workers append to the same file
            finally:
                os.close(descriptor)
        except OSError as error:
            if not self._warned:
                sys.stderr.write(f"agent: the session is not recorded: {error}\n")
                self._warned = True


def canonical(entry: dict[str, object]) -> bytes:
    """One way to write an entry, for its digest."""
    return json.dumps(entry, sort_keys=True, separators=(",", ":")).encode()
