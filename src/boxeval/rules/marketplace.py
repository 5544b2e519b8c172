"""What a plugin marketplace says it has, out of its files (G51). Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MANIFEST = ".claude-plugin/marketplace.json"
"""Codex and Claude Code both read this one."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_PATH = re.compile(r"[A-Za-z0-9._ /-]{1,1024}")


class MarketplaceFault(Exception):
    """The files are no marketplace that can be installed from; the text says why, on one line."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A marketplace's name, and the files of each plugin, relative to the plugin, by the plugin's name."""

    name: str
    plugins: Mapping[str, Mapping[str, str]]


def offer_of(files: Mapping[str, str]) -> Offer:
    """Read the manifest. Raises `MarketplaceFault`, also for a source that is not in the marketplace itself."""
    for path in files:
        if not _PATH.fullmatch(path) or any(part in ("", ".", "..") for part in path.split("/")):
            raise MarketplaceFault(f"{path!r} is no plain relative path of letters, digits, `._-` and spaces")
    if MANIFEST not in files:
        raise MarketplaceFault(f"it has no `{MANIFEST}`")
    try:
        manifest = json.loads(files[MANIFEST])
    except (ValueError, RecursionError):
        raise MarketplaceFault(f"`{MANIFEST}` is not JSON") from None
    told = manifest if isinstance(manifest, dict) else {}
    plugins = told.get("plugins")
    if not isinstance(plugins, list):
        raise MarketplaceFault(f"`{MANIFEST}` has no list `plugins`")
    found: dict[str, Mapping[str, str]] = {}
    for number, plugin in enumerate(plugins):
        name, inner = _plugin(plugin, number, files)
        if name in found:
            raise MarketplaceFault(f"`{MANIFEST}` has plugin `{name}` twice")
        found[name] = inner
    return Offer(_named(told.get("name"), "the marketplace"), found)


def _plugin(plugin: Any, number: int, files: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    told = plugin if isinstance(plugin, dict) else {}
    name = _named(told.get("name"), f"plugin {number}")
    source = told.get("source")
    if not isinstance(source, str) or not source.startswith("./") or ".." in source.split("/"):
        raise MarketplaceFault(
            f"the source of plugin `{name}` is not local: it must be a path that begins with `./`"
        )
    root = source[2:].rstrip("/")
    inner = {path[len(root) + 1 :]: text for path, text in files.items() if path.startswith(f"{root}/")}
    if not root or not inner:
        raise MarketplaceFault(f"plugin `{name}` has no files of its own below `{source}`")
    return name, inner


def _named(name: object, what: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise MarketplaceFault(f"`{MANIFEST}`: the name of {what} must be small letters, digits and `-`")
    return name
