"""Runs boxeval as a process, as a user would."""

from __future__ import annotations

import os
import subprocess
import sys


def boxeval(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "boxeval", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, **environ},
        check=False,
    )
