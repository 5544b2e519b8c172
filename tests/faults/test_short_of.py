"""The controller runs out of file descriptors, of disk and of inodes: a run ends told, and what is sealed verifies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxeval.errors import BoxevalError
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import verify
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import build_all
from boxeval.settings import Settings
from engine_runs import forget, settings_in, write_suite
from faulty_runs import SUITE, is_right, swept, told

pytestmark = pytest.mark.engine
LIMITED = """
import os, resource, sys
files = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
os.execv(sys.executable, [sys.executable, "-m", "boxeval", *sys.argv[2:]])
"""
ON_TMPFS = """
mount -t tmpfs -o "$1" none "$2"
if [ "$6" = fill ]; then
    (while [ ! -s "$2/out/ledger.jsonl" ]; do sleep 0.02; done; exec dd if=/dev/zero of="$2/filler" bs=4k 2>&-) &
fi
"$3" -m boxeval run "$4" --jobs 1 --out "$2/out" >&2
echo "run $?"
"$3" -m boxeval verify "$2/out" >&2
echo "verify $?"
cp -r "$2/out" "$5" 2>/dev/null || true
"""


@pytest.fixture
def settings(tmp_path: Path, cache: Path, engine: Engine) -> Iterator[Settings]:
    build_all(engine, note=lambda _: None)
    settings = settings_in(tmp_path / "bx", cache)
    yield settings
    forget(settings)


def environ(settings: Settings) -> dict[str, str]:
    places = {"BOXEVAL_HOME": str(settings.data_dir.parent), "BOXEVAL_CACHE_DIR": str(settings.cache_dir)}
    return {**os.environ, **places, "BOXEVAL_ENGINE_TIMEOUT_S": "12"}


@pytest.mark.parametrize("files", [9, 14, 20, 30])
def test_too_few_descriptors(files: int, tmp_path: Path, settings: Settings) -> None:
    suite, out = write_suite(tmp_path, SUITE), tmp_path / "out"
    arguments = [str(files), "run", str(suite), "--jobs", "2", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *arguments],
        env=environ(settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (1, 2, 3, 70), (done.stdout, done.stderr)
    assert "Too many open files" in done.stdout + done.stderr or "GOOD" in done.stdout or "RED" in done.stdout
    assert "Traceback" not in done.stderr
    if (out / "plan.json").exists():
        run_id = json.loads((out / "plan.json").read_text())["runId"]
        try:
            trials = verify(out, Trust.local(settings)).trials
        except BoxevalError as error:
            assert error.exit_code in (1, 3)
            trials = ()
        for trial in trials:
            assert is_right(trial), told(trial)
        assert swept(settings, run_id, ("told",)) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")
@pytest.mark.skipif(not shutil.which("unshare"), reason="a mount of one's own needs unshare")
@pytest.mark.parametrize(
    ("room", "then"), [("size=12k", ""), ("size=80m", "fill"), ("nr_inodes=4", ""), ("nr_inodes=9", "")]
)
def test_results_on_a_full_disk(room: str, then: str, tmp_path: Path, settings: Settings) -> None:
    """Too small to begin, filled up by somebody in mid-run, out of inodes at the start and later."""
    suite, small, copy = write_suite(tmp_path, SUITE), tmp_path / "small", tmp_path / "copy"
    small.mkdir()
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ON_TMPFS, "-"]
    done = subprocess.run(
        [*command, room, str(small), sys.executable, str(suite), str(copy), then],
        env=environ(settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    codes = dict(line.split() for line in done.stdout.splitlines())
    # A trial that begins while the disk is filling is not begun at all: void, and the fault of what the run may use.
    told_full = ("No space left on device", "0 MiB are free")
    assert (codes["run"] == "70" and any(words in done.stderr for words in told_full)) or (
        codes["run"] == "3" and then == "fill" and "void: budget_exhausted: the disk of" in done.stderr
    ), done.stderr
    assert "Traceback" not in done.stderr
    # Never 4: what a full disk leaves is not whole, but nothing in it was changed.
    assert codes["verify"] in ("1", "3"), done.stderr
    if (copy / "plan.json").exists() and codes["verify"] == "3":
        try:
            trials = verify(copy, Trust.local(settings)).trials
        except BoxevalError:
            trials = ()
        for trial in trials:
            assert is_right(trial), told(trial)
