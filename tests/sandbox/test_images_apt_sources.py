"""Which of a machine's package archives belong to its own release."""

from pathlib import Path

import pytest

from boxeval.sandbox.apt_sources import archives

DEBIAN = """\
Types: deb
# a comment in between
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb deb-src
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
UBUNTU = """\
Types: deb
URIs: http://mirror.example/ubuntu/
Suites: noble noble-updates
 noble-backports noble-security
Components: main universe
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg
"""


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


def lines(etc: Path, release: str) -> list[str]:
    return [archive.line() for archive in archives(release, etc)]


def test_debian_in_the_new_style(etc: Path) -> None:
    (etc / "sources.list.d" / "debian.sources").write_text(DEBIAN)
    signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    assert lines(etc, "bookworm") == [
        f"deb {signed} http://mirror.example/debian bookworm main",
        f"deb {signed} http://mirror.example/debian bookworm-updates main",
        f"deb {signed} http://mirror.example/debian-security bookworm-security main",
    ]


def test_ubuntu_keeps_its_mirror_and_leaves_backports_out(etc: Path) -> None:
    (etc / "sources.list.d" / "ubuntu.sources").write_text(UBUNTU)
    assert [(one.uri, one.suite) for one in archives("noble", etc)] == [
        ("http://mirror.example/ubuntu/", "noble"),
        ("http://mirror.example/ubuntu/", "noble-updates"),
        ("http://mirror.example/ubuntu/", "noble-security"),
    ]


def test_the_old_style(etc: Path) -> None:
    (etc / "sources.list").write_text(
        "# deb http://off.example/debian bookworm main\n"
        "deb http://a.example/debian bookworm main non-free-firmware  # ours\n"
        "deb [arch=amd64 signed-by=/k/debian-archive-keyring.gpg] http://b.example bookworm main\n"
        "deb-src http://a.example/debian bookworm main\n"
        "deb cdrom:[Debian 12]/ bookworm main\n"
    )
    assert lines(etc, "bookworm") == [
        "deb http://a.example/debian bookworm main",
        "deb [signed-by=/k/debian-archive-keyring.gpg] http://b.example bookworm main",
    ]


def test_third_parties_are_left_out(etc: Path) -> None:
    (etc / "sources.list.d" / "docker.list").write_text(
        "deb [signed-by=/etc/apt/keyrings/docker.asc] https://docker.example/linux/debian bookworm stable\n"
    )
    (etc / "sources.list.d" / "vendor.list").write_text(
        "deb [signed-by=/k/vendor.gpg] https://packages.vendor.example/debian bookworm main\n"
    )
    (etc / "sources.list.d" / "old.list.disabled").write_text("deb http://a.example/debian bookworm main\n")
    assert lines(etc, "bookworm") == []


def test_disabled_entries_and_other_releases_are_left_out(etc: Path) -> None:
    (etc / "sources.list.d" / "debian.sources").write_text(
        DEBIAN.replace("Types: deb\n", "Types: deb\nEnabled: no\n")
    )
    assert [archive.suite for archive in archives("bookworm", etc)] == ["bookworm-security"]
    assert archives("trixie", etc) == ()


def test_nothing_configured(tmp_path: Path) -> None:
    assert archives("bookworm", tmp_path / "absent") == ()
