"""Which package archives this machine's own release comes from.

A mirror that the machine was given, and the keyring that it trusts, are used as they are. Archives of third
parties, which often use the release's name too, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_KEYRING = re.compile(r"(debian|ubuntu)-archive-keyring")
_SUITES = re.compile(r"(?P<release>[a-z]+)(-updates|-security|/updates)?")


@dataclass(frozen=True, slots=True)
class Archive:
    """One package archive: `main` of one suite at one URI."""

    uri: str
    suite: str
    signed_by: str

    def line(self) -> str:
        """As one line of a sources.list."""
        signed = f"[signed-by={self.signed_by}] " if self.signed_by else ""
        return f"deb {signed}{self.uri} {self.suite} main"


def archives(release: str, etc: Path = Path("/etc/apt")) -> tuple[Archive, ...]:
    """The archives of `release` (its code name) that `etc` configures; empty if there are none."""
    files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    found: dict[Archive, None] = {}
    for file in files:
        if not file.is_file() or file.suffix not in {".list", ".sources"}:
            continue
        text = file.read_text("utf-8", errors="replace")
        for entry in _stanzas(text) if file.suffix == ".sources" else _lines(text):
            for archive in _of_release(entry, release):
                found[archive] = None
    return tuple(found)


def _of_release(entry: dict[str, str], release: str) -> Iterator[Archive]:
    signed_by = entry.get("signed-by", "")
    if "deb" not in entry.get("types", "").split() or entry.get("enabled", "yes").lower() in {
        "no",
        "false",
        "0",
    }:
        return
    if "main" not in entry.get("components", "").split() or (signed_by and not _KEYRING.search(signed_by)):
        return
    for uri in entry.get("uris", "").split():
        for suite in entry.get("suites", "").split():
            match = _SUITES.fullmatch(suite)
            if match and match["release"] == release and uri.startswith(("http://", "https://")):
                yield Archive(uri, suite, signed_by)


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    """Entries of a deb822 file, keys in lower case."""
    for block in re.split(r"\n\s*\n", text):
        entry: dict[str, str] = {}
        key = ""
        for line in block.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace():
                entry[key] = f"{entry.get(key, '')} {line.strip()}"
            elif ":" in line:
                name, _, value = line.partition(":")
                key = name.strip().lower()
                entry[key] = value.strip()
        yield entry


_ONE_LINE = re.compile(
    r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>.+)"
)


def _lines(text: str) -> Iterator[dict[str, str]]:
    """Entries of a one-line-style file, in the words of deb822."""
    for line in text.splitlines():
        match = _ONE_LINE.fullmatch(line.partition("#")[0].strip())
        if match:
            options = dict(option.partition("=")[::2] for option in (match["options"] or "").split())
            yield {
                "types": "deb",
                "uris": match["uri"],
                "suites": match["suite"],
                "components": match["components"],
                "signed-by": options.get("signed-by", ""),
            }
