"""Providers that boxeval knows by name, and where a key may be sent."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from boxeval.spec.models import PlannedUpstream, UpstreamModel


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: where it is, which variable has its key by custom, which protocols it speaks."""

    base_url: str
    key: str
    wires: frozenset[str]


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", frozenset({"chat", "responses"})),
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", frozenset({"messages"})),
}
WIRES = frozenset({"chat", "responses", "messages"})


def place_of(model: UpstreamModel) -> PlannedUpstream:
    """Base URL and name of the key of a model, without a price. Raises `ValueError` for what cannot be a place."""
    if provider := PROVIDERS.get(model.upstream):
        return PlannedUpstream(base_url=provider.base_url, model=model.model, key=model.key or provider.key)
    parts = urlsplit(model.upstream)
    more = parts.username or parts.query or parts.fragment
    if parts.scheme not in {"http", "https"} or not parts.hostname or more or parts.port == 0:
        names = ", ".join(f"`{name}`" for name in PROVIDERS)
        raise ValueError(f"names no provider ({names}), and is no http or https base URL")
    if model.key and parts.scheme == "http" and not is_this_machine(parts.hostname):
        raise ValueError("is http; a key is sent over https, or to this machine only")
    return PlannedUpstream(base_url=model.upstream.rstrip("/"), model=model.model, key=model.key)


def wires_of(base_url: str) -> frozenset[str]:
    """The protocols that are spoken there; all of them where nobody knows."""
    return next((known.wires for known in PROVIDERS.values() if known.base_url == base_url), WIRES)


def is_this_machine(host: str) -> bool:
    """Whether a host's name or address is that of the loopback."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
