"""Writes docs/cli.md and src/boxeval/cli/help.txt from the command line itself; `--check` only compares."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from boxeval.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
INTRODUCTION = """# Command line

Made from the command line by `python scripts/cli_docs.py`; do not edit.
"""


def helps(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    """The full name and the help text of a command and of all below it."""
    yield context.command_path, command.get_help(context).rstrip() + "\n"
    for name, below in getattr(command, "commands", {}).items():
        yield from helps(
            below, below.context_class(below, info_name=name, parent=context, **below.context_settings)
        )


def files() -> dict[Path, str]:
    """Every generated file and what it should hold."""
    root = typer.main.get_command(app)
    pages = list(helps(root, root.context_class(root, info_name="boxeval", **root.context_settings)))
    body = "".join(f"\n## `{name}`\n\n```text\n{text}```\n" for name, text in pages)
    return {
        ROOT / "src" / "boxeval" / "cli" / "help.txt": pages[0][1],
        ROOT / "docs" / "cli.md": INTRODUCTION + body,
    }


def main(arguments: list[str]) -> int:
    """Write, or compare and name what differs."""
    stale = 0
    for path, text in files().items():
        if arguments == ["--check"]:
            if not path.is_file() or path.read_text("utf-8") != text:
                sys.stderr.write(f"{path.relative_to(ROOT)} is stale: run python scripts/cli_docs.py\n")
                stale = 1
        else:
            path.write_text(text, "utf-8")
    return stale


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
