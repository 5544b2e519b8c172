"""Where the root file system comes from, and what is said when it cannot be made."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from boxeval.errors import ImageError
from boxeval.sandbox import rootfs
from boxeval.sandbox.rootfs import PackagesOrigin, packages_origin


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ('ID=debian\nVERSION_CODENAME=trixie\nVERSION_ID="13"\n', "trixie"),
        ("ID=ubuntu\nVERSION_CODENAME=noble\nID_LIKE=debian\n", "noble"),
        ('ID="debian"\nVERSION_CODENAME="bookworm"\n', "bookworm"),
        ("ID=linuxmint\nID_LIKE=ubuntu\nVERSION_CODENAME=wilma\n", "bookworm"),
        ("ID=fedora\nVERSION_ID=42\n", "bookworm"),
        ("", "bookworm"),
    ],
)
def test_release_is_the_machines_own_only_where_its_archive_is_at_hand(
    tmp_path: Path, text: str, release: str
) -> None:
    (tmp_path / "os-release").write_text(text)
    assert packages_origin(tmp_path / "os-release") == PackagesOrigin(release)


def test_no_os_release(tmp_path: Path) -> None:
    assert packages_origin(tmp_path / "absent") == PackagesOrigin("bookworm")


def test_neither_tool_and_not_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ImageError) as caught:
        rootfs._bootstrap_tool(lambda _: None)
    assert "\n" not in str(caught.value)
    assert "apt-get install mmdebstrap" in str(caught.value)
    assert "BOXEVAL_BASE_IMAGE" in str(caught.value)


def test_as_root_on_debian_it_is_said_and_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notes: list[str] = []
    calls = tmp_path / "calls"
    fake = tmp_path / "apt-get"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
    fake.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(rootfs, "read_os_release", lambda: {"ID": "debian"})
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert rootfs._bootstrap_tool(notes.append) == "mmdebstrap"
    assert calls.read_text().splitlines() == ["update -q", "install -q -y --no-install-recommends mmdebstrap"]
    assert any("installing it with apt-get" in note for note in notes)


def test_a_tool_that_fails_is_one_line_with_its_last_words() -> None:
    command = ["sh", "-c", "echo first >&2; echo 'E: no such release' >&2; exit 25"]
    with pytest.raises(ImageError) as caught:
        rootfs._call(command, os.environ)
    assert str(caught.value) == "sh ended with status 25: first | E: no such release"


def test_an_interrupted_tool_may_clean_up(tmp_path: Path) -> None:
    """Ctrl-C while the root file system is made: the tool gets SIGTERM and is waited for."""
    tool = "cd $0; trap 'echo clean > cleaned; exit 1' TERM; echo > ready; while :; do sleep 0.05; done"
    command = ["sh", "-c", tool, str(tmp_path)]
    # A job in the background is started with SIGINT ignored, and would pass that on.
    script = (
        "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"from boxeval.sandbox import rootfs; rootfs._call({command}, os.environ)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 20
        while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(20) == -signal.SIGINT
        finally:
            process.terminate()
    assert (tmp_path / "cleaned").read_text() == "clean\n"


def test_debootstrap_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ImageError, match="debootstrap needs root: install mmdebstrap"):
        rootfs._debootstrap("bookworm", ["bash"], "true", ())
