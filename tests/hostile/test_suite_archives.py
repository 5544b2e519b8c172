"""Crafted archives as fixtures (known failure D1). Nothing of them may ever be made or touched outside.

Each case is a way past Python's extraction filters or past tarsafe; the canary next to the archive must keep
its content, mode and time, and no new file may appear.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import tarsafe  # type: ignore[import-untyped]

from boxeval.errors import FixtureError
from boxeval.formats.fixtures import read_fixture
from boxeval.spec.workspace import Workspace

Member = tuple[tarfile.TarInfo, bytes]


def member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"", **more: object
) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def symlink(name: str, target: str) -> Member:
    return member(name, tarfile.SYMTYPE, target)


def hard_link(name: str, target: str) -> Member:
    return member(name, tarfile.LNKTYPE, target)


def archive(members: list[Member], form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder for the archive, beside a canary that must be as it was afterwards."""
    outside = tmp_path / "outside"
    outside.mkdir()
    canary = outside / "canary"
    canary.write_bytes(b"untouched")
    canary.chmod(0o640)
    os.utime(canary, ns=(1, 1))
    (tmp_path / "suite").mkdir()
    yield tmp_path / "suite"
    status = canary.stat()
    assert (canary.read_bytes(), status.st_mode & 0o7777, status.st_mtime_ns) == (b"untouched", 0o640, 1)
    assert sorted(path.name for path in outside.iterdir()) == ["canary"]
    assert {path.name for path in tmp_path.iterdir()} <= {"outside", "suite", "home"}
    assert {path.name for path in (tmp_path / "suite").iterdir()} == {"t.tar"}


def refused(place: Path, data: bytes, size_limit: int = 1 << 20) -> str:
    (place / "t.tar").write_bytes(data)
    workspace = Workspace.model_validate({"kind": "archive", "path": "t.tar", "sizeLimit": size_limit})
    with pytest.raises(FixtureError) as caught:
        read_fixture(workspace, place)
    message = str(caught.value)
    assert message.startswith("workspace `t.tar`: ")
    assert message.isprintable()
    return message


CANARY = "../outside/canary"

CASES: dict[str, list[Member]] = {
    "absolute path": [member("/etc/x", data=b"x")],
    "path with ..": [member("../outside/new", data=b"x")],
    "path with .. inside": [member("a/../../outside/new", data=b"x")],
    "directory with ..": [member("../outside/newdir", tarfile.DIRTYPE)],
    "exit and re-entry": [member("a/../../suite/new", tarfile.DIRTYPE)],
    "empty name": [member("", data=b"x")],
    "empty-named symlink": [symlink("", "/etc")],
    "root as a file": [member("./", data=b"x", type=tarfile.REGTYPE)],
    "root as a symlink": [symlink(".", "/etc")],
    "absolute symlink": [symlink("l", "/etc/passwd")],
    "symlink with ..": [symlink("l", CANARY)],
    "symlink in a folder": [member("d", tarfile.DIRTYPE), symlink("d/l", "../../outside")],
    "empty symlink": [symlink("l", "")],
    "symlink chain, then a file through it": [
        symlink("a", "."),
        symlink("a/b", ".."),
        member("a/b/outside/new", data=b"x"),
    ],
    "chain of harmless links": [
        member("d", tarfile.DIRTYPE),
        symlink("d/up", ".."),
        symlink("l", "d/up/../outside"),
    ],
    "realpath overflow, CVE-2025-4517": [
        *(symlink(f"{'d' * 200}{n}", ("d" * 200 + f"{n - 1}") if n else ".") for n in range(20)),
        symlink("escape", f"{'d' * 200}19/../../outside/canary"),
    ],
    "file below a symlink": [symlink("l", "d"), member("l/x", data=b"x")],
    "file below a file": [member("f", data=b"x"), member("f/x", data=b"x")],
    "hard link out": [hard_link("h", CANARY)],
    "hard link to a symlink, CVE-2025-4330": [symlink("l", CANARY), hard_link("h", "l")],
    "hard link to a file of its own": [member("f", data=b"x"), hard_link("h", "f")],
    "link replaced by a folder": [symlink("l", "d"), member("l", tarfile.DIRTYPE)],
    "file twice": [member("f", data=b"good"), member("./f", data=b"evil")],
    "character device": [member("d", tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "block device": [member("d", tarfile.BLKTYPE)],
    "FIFO": [member("p", tarfile.FIFOTYPE)],
    "unknown type": [member("u", b"Z", data=b"x")],
    "sparse file": [member("s", tarfile.GNUTYPE_SPARSE)],
    "sparse by header": [member("s", data=b"x", pax_headers={"GNU.sparse.size": "999999999999"})],
    "size by header": [member("s", data=b"x", pax_headers={"size": "999999"})],
    "long name": [member("n" * 256)],
    "long path": [member("/".join(["d" * 200] * 21))],
    "deep path": [member("d/" * 128 + "f")],
    "path by header": [member("f", data=b"x", pax_headers={"path": "../outside/new"})],
    "link by header": [member("l", tarfile.SYMTYPE, "f", pax_headers={"linkpath": CANARY})],
}


@pytest.mark.parametrize("name", CASES)
def test_crafted_archives_are_refused(place: Path, name: str) -> None:
    refused(place, archive(CASES[name]))


@pytest.mark.parametrize("name", CASES)
def test_our_own_checks_do_not_lean_on_tarsafe(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(tarsafe.TarSafe, "extractall", lambda *_, **__: None)
    refused(place, archive(CASES[name]))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("FIFO", "`p` is a FIFO"),
        ("hard link to a file of its own", "`h` is a hard link; pack it with --hard-dereference"),
        ("file twice", "`f` is there twice"),
        ("file below a file", "`f` is a file and has entries below it"),
        ("file below a symlink", "`l` is a symlink and has entries below it"),
        ("chain of harmless links", "`l` is a symlink that leads out of the tree, to `d/up/../outside`"),
        ("long name", "has a name of more than 255 bytes"),
        ("deep path", "is deeper than 128 directories"),
        ("unknown type", "`u` is of the unknown type"),
    ],
)
def test_the_reason_names_the_entry(place: Path, name: str, said: str) -> None:
    assert said in refused(place, archive(CASES[name]))


def test_special_bits_are_dropped(place: Path) -> None:
    (place / "t.tar").write_bytes(
        archive([member("f", mode=0o7777), member("d", tarfile.DIRTYPE, mode=0o1777)])
    )
    workspace = Workspace.model_validate({"kind": "archive", "path": "t.tar"})
    entries = {entry.path: entry.mode for entry in read_fixture(workspace, place).entries()}
    assert entries == {b"f": 0o777, b"d": 0o777}


def test_symlinks_to_a_sibling_of_their_folder_are_fine(place: Path) -> None:
    members = [member("tool/cli.js"), member("bin", tarfile.DIRTYPE), symlink("bin/tool", "../tool/cli.js")]
    (place / "t.tar").write_bytes(archive(members))
    workspace = Workspace.model_validate({"kind": "archive", "path": "t.tar"})
    assert read_fixture(workspace, place).members == 4


@pytest.mark.parametrize(
    "pack", [lambda data: data, gzip.compress, lzma.compress], ids=["plain", "gzip", "xz"]
)
def test_bombs_stop_at_the_size_limit(place: Path, pack: object) -> None:
    data = archive([member("zeros", data=bytes(8 << 20))])
    assert "is larger than 1024 bytes" in refused(place, pack(data), size_limit=1024)  # type: ignore[operator]


def test_a_bomb_that_is_no_tar_stops_while_it_is_unpacked(place: Path) -> None:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as stream:
        for _ in range(80):
            stream.write(bytes(1 << 20))
    assert "is larger than 1024 bytes" in refused(place, packed.getvalue(), size_limit=1024)


def header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    """One hand-made header block with a right checksum."""
    fields = (
        name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + size.ljust(12, b"\0") + b"0" * 11 + b"\0"
    )
    block = (fields + b" " * 8 + kind).ljust(512, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def test_a_hand_made_header_is_well_formed(place: Path) -> None:
    (place / "t.tar").write_bytes(header(b"f", b"00000000002") + b"ab".ljust(512, b"\0") + bytes(1024))
    workspace = Workspace.model_validate({"kind": "archive", "path": "t.tar"})
    for entry in read_fixture(workspace, place).entries():
        assert entry.open is not None
        with entry.open() as stream:
            assert stream.read() == b"ab"


def test_a_negative_size_does_not_read_for_ever(place: Path) -> None:
    """CVE-2025-8194."""
    data = header(b"a", b"00000000000") + header(b"b", (-512).to_bytes(12, "big", signed=True)) + bytes(1024)
    assert "has an entry of negative size at byte 512" in refused(place, data)


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K", b"X"])
def test_a_huge_extended_header_is_not_parsed(place: Path, kind: bytes) -> None:
    """CVE-2024-6232: time quadratic in the header's length."""
    data = header(b"h", b"%011o" % (1 << 20), kind) + b"1" * (1 << 20) + bytes(1024)
    assert "has an extended header of more than 64 KiB at byte 0" in refused(place, data)


@pytest.mark.parametrize("kind", [b"1", b"2", b"5", b"6"])
def test_content_where_none_can_be_hides_no_header(place: Path, kind: bytes) -> None:
    data = header(b"d", b"%011o" % 512, kind) + header(b"hidden", b"00000000000") + bytes(1024)
    assert "has an entry at byte 0 with content that its kind does not have" in refused(place, data)


def test_damage_in_the_middle_is_not_the_end(place: Path) -> None:
    data = bytearray(archive([member("a"), member("b"), member("c")]))
    data[512 + 148] ^= 1
    assert "is damaged at byte 512" in refused(place, bytes(data))


def test_a_cut_archive(place: Path) -> None:
    data = archive([member("a", data=b"x" * 2000)])
    assert "unexpected end of data" in refused(place, data[:1024])
    two = archive([member("a", data=b"x"), member("b")])
    assert "is damaged at byte 1024" in refused(place, two[:1100])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (bytes(10240), "is empty"),
        (b"text that is no archive", "is not a tar archive"),
        (b"x" * 1024, "is not a tar archive"),
        (b"PK\3\4" + bytes(100), "is a zip archive; only tar is read"),
        (b"\x28\xb5\x2f\xfd" + bytes(100), "is a zstd archive"),
        (b"\x1f\x8b" + bytes(100), "cannot be unpacked"),
        (gzip.compress(bytes(4096), mtime=0)[:-9], "cannot be unpacked"),
        (b"BZh9" + bytes(100), "cannot be unpacked"),
        (b"\xfd7zXZ\0" + bytes(100), "cannot be unpacked"),
        (lzma.compress(bytes(4096))[:-9], "cannot be unpacked: the file ends in the middle"),
    ],
)
def test_files_that_are_no_archive(place: Path, data: bytes, said: str) -> None:
    assert said in refused(place, data)
