"""The key in a Codex auth file: for the gateway, and for nobody else (contract G50, G53)."""

from __future__ import annotations

import json
from pathlib import Path

from boxeval.errors import UsageError
from boxeval.receipts.storage import read_regular

MAX_BYTES = 1024 * 1024
KEY = "OPENAI_API_KEY"


def key_in(path: Path) -> dict[str, str]:
    """The API key by its variable; nothing if the file has none, as after a login. `UsageError` never shows it."""
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise UsageError(f"--codex-auth-file: cannot be read: {error.strerror or error}") from None
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError("--codex-auth-file: is not JSON") from None
    key = tree.get(KEY) if isinstance(tree, dict) else None
    return {KEY: key} if isinstance(key, str) and key else {}
