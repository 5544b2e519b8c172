"""Which hosts a box may reach: by the name that it asks for, and by the address that the name has then.

A name that is not on the list is not even looked up, since a look-up alone can carry data out. A name that is may
still lead to an address that is nobody's business: one that is not public is refused unless an entry names it as an
address, so that no name can be made to point into the operator's network.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = frozenset({80, 443})
"""Of an entry that names none."""
_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of an allowlist: a network, or a name (with `is_wildcard`, all names below it)."""

    ports: frozenset[int]
    network: Network | None = None
    name: str = ""
    is_wildcard: bool = False


def parse_entry(text: str) -> Entry:
    """`example.org`, `*.example.org`, an address or a CIDR, each with `:PORT` if not 80 and 443; IPv6 then in brackets.

    Raises `ValueError` with a reason.
    """
    host, ports = _split(text.lower())
    try:
        return Entry(ports, network=ipaddress.ip_network(host))
    except ValueError as error:
        if "/" in host or ":" in host:
            raise ValueError(f"is no network: {error}") from None
    name = host.removeprefix("*.")
    if not _NAME.fullmatch(name) or len(name) > 253 or _NUMBER.fullmatch(name.rpartition(".")[2]):
        raise ValueError("is no host, `*.` and a host, address or CIDR")
    return Entry(ports, name=name, is_wildcard=host.startswith("*."))


class Allowlist:
    """Entries, all good."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._entries = tuple(parse_entry(entry) for entry in entries)

    def names(self, host: str, port: int) -> str | None:
        """Why a host that was asked for may not even be looked up; None if it may. Of an address this is all."""
        if (address := address_of(host)) is not None:
            return self.admits(address, port)
        if not _NAME.fullmatch(host) or _NUMBER.fullmatch(host.rpartition(".")[2]):
            return "is no host name"
        if any(_names(entry, host) and port in entry.ports for entry in self._entries):
            return None
        return "is not on the list"

    def admits(self, address: Address, port: int) -> str | None:
        """Why an address may not be connected to; None if it may."""
        for entry in self._entries:
            if entry.network is not None and address in entry.network and port in entry.ports:
                return None
        return "is not on the list"

    def resolved(self, address: Address, port: int) -> str | None:
        """The same for the address of a name that is on the list: a public one may be reached."""
        if is_public(address) or self.admits(address, port) is None:
            return None
        return f"has the address {address}, which is not a public one"


def address_of(host: str) -> Address | None:
    """A host that is an address. An IPv4 address written as an IPv6 one is that IPv4 address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return _plain(address)


def is_public(address: Address) -> bool:
    """Whether it is an address of the public Internet, by itself and by whatever address may be written into it."""
    plain = _plain(address)
    if isinstance(plain, ipaddress.IPv6Address) and (plain.sixtofour or plain.teredo or plain in _TRANSLATED):
        return False
    return plain.is_global and not plain.is_multicast


_TRANSLATED = ipaddress.ip_network("64:ff9b::/32")
"""Leads to IPv4 addresses through a translator (RFC 6052, RFC 8215)."""


def _plain(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _names(entry: Entry, host: str) -> bool:
    return bool(entry.name) and (host.endswith(f".{entry.name}") if entry.is_wildcard else host == entry.name)


def _split(text: str) -> tuple[str, frozenset[int]]:
    """An entry's host and ports."""
    host, colon, port = text.rpartition(":")
    if text.startswith("["):
        inner, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError("has a bracket that does not end")
        return inner, _ports(rest[1:]) if rest else PORTS
    if not colon or ":" in host:
        return text, PORTS
    return host, _ports(port)


def _ports(text: str) -> frozenset[int]:
    if not _PORT.fullmatch(text) or not 0 < int(text) < 65_536:
        raise ValueError("has no port from 1 to 65535 after its colon")
    return frozenset({int(text)})
