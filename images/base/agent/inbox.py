"""Steering: what the user has to say while the agent works. Files in a directory, taken in order of their names."""

from __future__ import annotations

from pathlib import Path


class Inbox:
    """Looked into before every turn. A message is a file `NAME.txt`; once taken it is called `NAME.taken`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def take(self) -> list[str]:
        """New messages, oldest name first. What cannot be read is left where it is."""
        found = []
        for path in sorted(self._directory.glob("*.txt")):
            try:
                text = path.read_text("utf-8", "replace")
                path.rename(path.with_suffix(".taken"))
            except OSError:
                continue
            found.append(text)
        return found
