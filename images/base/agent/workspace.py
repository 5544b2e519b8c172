"""Where the agent may read and write. This keeps an agent to its task; what keeps it in is the box."""

from __future__ import annotations

import os
import stat
from pathlib import Path

FILE_BYTES = 8 * 1024 * 1024


class ToolError(Exception):
    """A tool call that did not work; its text is what the model gets to read."""


class Denied(ToolError):
    """A tool call that permissions do not allow."""

    def __init__(self, what: str) -> None:
        super().__init__(f"permission denied: {what}")


class Workspace:
    """Paths below one directory, links followed before they are judged."""

    def __init__(self, root: str) -> None:
        self.root = Path(root).resolve()

    def resolve(self, path: str) -> Path:
        """Absolute path of `path`, which is relative to the workspace. Raises ToolError if it is outside."""
        try:
            resolved = (self.root / path).resolve()
        except (RuntimeError, ValueError) as error:  # a loop of links, a NUL
            raise ToolError(f"{path!r} is no path: {error}") from None
        if not resolved.is_relative_to(self.root):
            raise Denied(f"{path} is outside the workspace")
        return resolved

    def name(self, resolved: Path) -> str:
        """The path as the model should see it."""
        return str(resolved.relative_to(self.root))

    def read(self, path: str) -> str:
        """Text of a regular file, of at most 8 MiB. Raises ToolError, OSError."""
        # A FIFO would block for ever if it were opened first and looked at later.
        descriptor = os.open(self.resolve(path), os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ToolError(f"{path} is not a regular file")
            if status.st_size > FILE_BYTES:
                raise ToolError(f"{path} has {status.st_size} bytes; at most {FILE_BYTES} can be read")
            return file.read(FILE_BYTES).decode("utf-8", "replace")

    def write(self, path: str, text: str) -> int:
        """Replace a file whole or not at all; returns its size in bytes. Raises ToolError, OSError."""
        resolved = self.resolve(path)
        data = text.encode("utf-8", "backslashreplace")
        mode = 0o644
        if resolved.exists():
            if not resolved.is_file():
                raise ToolError(f"{path} is not a regular file")
            mode = stat.S_IMODE(resolved.stat().st_mode)
        resolved.parent.mkdir(parents=True, exist_ok=True)
        draft = resolved.with_name(f".draft-{os.getpid()}")
        try:
            draft.write_bytes(data)
            draft.chmod(mode)
            draft.replace(resolved)
        finally:
            draft.unlink(missing_ok=True)
        return len(data)
