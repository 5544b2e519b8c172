"""The session ledger: one JSON line for everything that was said and done, only ever appended to."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


class Ledger:
    """Writes each entry through at once. If it cannot, that is worth one warning, not the session."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 0
        self._warned = False

    def add(self, kind: str, **fields: object) -> None:
        """Append `{"seq": n, "at": seconds, "type": kind, …fields}`."""
        self._number += 1
        entry = {"seq": self._number, "at": round(time.time(), 3), "type": kind, **fields}
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            with os.fdopen(os.open(self._path, flags, 0o600), "ab") as file:
                file.write(json.dumps(entry).encode() + b"\n")
        except OSError as error:
            if not self._warned:
                sys.stderr.write(f"agent: the session is not recorded: {error}\n")
                self._warned = True
