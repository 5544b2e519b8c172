"""Known holes by version: what counts as mended, and what the doctor says of a version of a distribution."""

from __future__ import annotations

import pytest

from boxeval.sandbox.holes import HOLES, is_mended, is_repackaged, known_holes, parse
from boxeval.settings import PACKAGE

RUNC_RACES = ("1.2.8", "1.3.3")


def names(**versions: str) -> set[str]:
    return {name for hole, _ in known_holes(versions) for name in hole.names}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.0.0-rc94", "1.0.0-rc95"),
        ("1.0.0-rc95", "1.0.0"),
        ("1.1.5+ds1", "1.1.12"),
        ("1.9.0", "1.10.0"),
        ("20.10.24+dfsg1", "v23.0.0"),
        ("28.5.2", "29.5.1"),
    ],
)
def test_versions_are_compared_by_number(older: str, newer: str) -> None:
    first, second = parse(older), parse(newer)
    assert first is not None
    assert second is not None
    assert first < second


@pytest.mark.parametrize("text", ["", "unknown", "dev", "library-import"])
def test_what_is_no_version_has_no_holes(text: str) -> None:
    assert parse(text) is None
    assert names(runc=text, docker=text, containerd=text) == set()


@pytest.mark.parametrize(
    ("version", "mended"),
    [
        ("1.1.15", False),
        ("1.2.7", False),
        ("1.2.8", True),
        ("1.2.9", True),
        ("1.3.0", False),
        ("1.3.2", False),
        ("1.3.3", True),
        ("1.4.0", True),
    ],
)
def test_each_mended_line_counts_for_itself(version: str, mended: bool) -> None:
    parsed = parse(version)
    assert parsed is not None
    assert is_mended(parsed, RUNC_RACES) is mended


def test_a_line_between_two_mended_ones_is_not() -> None:
    version = parse("24.0.9")
    assert version is not None
    assert not is_mended(version, ("23.0.11", "25.0.5", "26.0.0"))


def test_runc_by_version() -> None:
    assert "CVE-2024-21626" in names(runc="1.1.11")
    assert "CVE-2024-21626" not in names(runc="1.1.12")
    assert {"CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"} <= names(runc="1.1.12")
    assert names(runc="1.3.3") == set()


def test_engines_by_version() -> None:
    assert {"CVE-2018-15664", "CVE-2026-41568", "CVE-2026-31431", "CVE-2022-24769"} <= names(docker="20.10.5")
    assert "CVE-2022-24769" not in names(docker="20.10.24+dfsg1")
    assert "io_uring" in names(docker="24.0.7")
    assert names(docker="29.5.1", containerd="2.0.4") == set()


@pytest.mark.parametrize(
    ("version", "repackaged"),
    [
        ("1.1.5+ds1", True),
        ("1.6.20~ds1", True),
        ("20.10.24+dfsg1", True),
        ("1.1.7-0ubuntu1", True),
        ("1.1.12-4.el9", True),
        ("1.1.5", False),
        ("v1.2.8", False),
        ("1.0.0-rc95", False),
    ],
)
def test_versions_of_distributions_may_be_patched(version: str, repackaged: bool) -> None:
    assert is_repackaged(version) is repackaged


def test_every_hole_says_what_it_means_in_one_line() -> None:
    for hole in HOLES:
        assert hole.component in {"docker", "containerd", "runc"}
        assert all(parse(fixed) for fixed in hole.fixed)
        assert "\n" not in hole.what + hole.answer


def test_files_of_a_box_never_travel_by_the_engine_s_archive_calls() -> None:
    """Known failure D2. The one call reads a list out of an image that boxeval has just built itself."""
    found = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if {"get_archive", "put_archive"} & set(path.read_text("utf-8").replace("(", ".").split("."))
    ]
    assert found == ["sandbox/build.py"]
