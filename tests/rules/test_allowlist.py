"""Which hosts a box may reach, by name and by address."""

from __future__ import annotations

import ipaddress

import pytest

from boxeval.rules.allowlist import Allowlist, is_public, parse_entry

LIST = Allowlist(
    (
        "example.org",
        "*.Example.net",
        "dav.example.org:8443",
        "10.1.0.0/16",
        "192.0.2.7:8000",
        "[2001:db8::1]:443",
    )
)


@pytest.mark.contract("P10")
@pytest.mark.parametrize(
    ("host", "port", "is_good"),
    [
        ("example.org", 443, True),
        ("example.org", 80, True),
        ("example.org", 22, False),
        ("www.example.org", 443, False),
        ("example.org.evil.test", 443, False),
        ("evilexample.org", 443, False),
        ("a.example.net", 443, True),
        ("a.b.example.net", 443, True),
        ("example.net", 443, False),
        (".example.net", 443, False),
        ("dav.example.org", 8443, True),
        ("dav.example.org", 443, False),
        ("10.1.255.255", 443, True),
        ("10.2.0.1", 443, False),
        ("::ffff:10.1.0.1", 443, True),
        ("::ffff:10.2.0.1", 443, False),
        ("192.0.2.7", 8000, True),
        ("192.0.2.7", 443, False),
        ("2001:db8::1", 443, True),
        ("2001:db8::2", 443, False),
        # Other spellings of addresses, which resolvers understand and the list does not.
        ("167837953", 443, False),
        ("0x0a010001", 443, False),
        ("010.1.0.1", 443, False),
        ("10.1.1", 443, False),
        ("exa mple.org", 443, False),
        ("example.org\0", 443, False),
        ("", 443, False),
    ],
)
def test_a_host_is_reached_if_it_is_on_the_list(host: str, port: int, is_good: bool) -> None:
    assert (LIST.names(host, port) is None) is is_good


@pytest.mark.contract("P10")
@pytest.mark.parametrize(
    ("address", "is_good"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.2.0.1", False),
        ("10.1.0.1", True),  # named by its network
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),  # where clouds keep credentials
        ("100.100.100.200", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fd00:ec2::254", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:169.254.169.254", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b:1::a9fe:a9fe", False),
        ("2002:7f00:1::", False),
        ("2001:0:7f00:1::", False),
    ],
)
def test_a_name_may_not_lead_where_it_has_no_business(address: str, is_good: bool) -> None:
    assert (LIST.resolved(ipaddress.ip_address(address), 443) is None) is is_good


def test_documentation_and_benchmark_networks_are_not_public() -> None:
    for address in ("192.0.2.1", "198.18.0.1", "203.0.113.9", "2001:db8::5"):
        assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("", "is no host"),
        ("*", "is no host"),
        ("*.*.org", "is no host"),
        ("a.*.org", "is no host"),
        ("https://example.org", "has no port"),
        ("example.org/path", "is no network"),
        ("10.0.0.1/8", "is no network"),
        ("10.0.0.0/33", "is no network"),
        ("1.2.3", "is no host"),
        ("[::1", "bracket"),
        ("example.org:0", "port"),
        ("example.org:65536", "port"),
        ("example.org:http", "port"),
        ("exämple.org", "is no host"),
        ("-a.org", "is no host"),
        ("a..org", "is no host"),
    ],
)
def test_what_is_no_entry_is_told_why(entry: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_entry(entry)
