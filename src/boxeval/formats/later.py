"""Parts of the documented grammar that this version does not have: refused by name, never ignored."""

from __future__ import annotations

from typing import Any

from boxeval.formats.place import show
from boxeval.formats.typed import Refusals
from boxeval.spec.base import Record
from boxeval.spec.suite import Defaults, Suite, SuiteInfo, Task

NOT_YET = "is not supported yet by this version"

_KEYS: dict[type[Record], tuple[str, ...]] = {
    Suite: ("evidence",),
    SuiteInfo: ("suite",),
    Defaults: ("kind", "evidence"),
    Task: (
        *("kind", "deviation", "tier", "services"),
        "evidence",
    ),
}


def _image(value: Any) -> str | None:
    return f"`build` {NOT_YET}; name an image" if isinstance(value, dict) and "build" in value else None


def _network(value: Any) -> str | None:
    return (
        f"network {show(value)} {NOT_YET}; a policy may have `network: allowlist`"
        if isinstance(value, str)
        else None
    )


REFUSALS = Refusals(
    keys={model: dict.fromkeys(names, NOT_YET) for model, names in _KEYS.items()},
    values={"image": _image, "network": _network},
)
