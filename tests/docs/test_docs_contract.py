"""The list of promises is whole, and the table counts them right."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SECTIONS = tomllib.loads((ROOT / "tests" / "contract.toml").read_text("utf-8"))
PROMISES = {name: promise for section in SECTIONS.values() for name, promise in section.items()}


def test_every_promise_is_listed_once_with_a_title() -> None:
    wanted = [
        f"{letter}{n}"
        for letter, last in (("G", 77), ("S", 52), ("V", 47), ("P", 28))
        for n in range(1, last + 1)
    ]
    assert list(PROMISES) == wanted
    assert sum(len(section) for section in SECTIONS.values()) == len(wanted)
    for promise in PROMISES.values():
        assert set(promise) <= {"title", "na", "lacks"}
        assert all(text.strip() and "\n" not in text for text in promise.values())


def test_the_table_counts_by_state() -> None:
    table = runpy.run_path(str(ROOT / "scripts" / "contracts.py"))["table"]
    promises = {
        "G1": {"title": "a"},
        "G2": {"title": "b"},
        "S1": {"title": "c", "na": "why"},
        "S2": {"title": "d"},
        "S3": {"title": "e", "lacks": "more"},
    }
    assert table(promises, Counter({"G1": 2, "S2": 1, "S3": 1})) == [
        "G1   covered by 2 tests     a",
        "G2   open                   b",
        "S1   n/a: why               c",
        "S2   covered by 1 test      d",
        "S3   in part by 1 test, lacks: more e",
        "contracts: 2 covered, 2 open, 1 n/a",
    ]


@pytest.mark.slow
def test_an_unknown_id_fails_the_collection(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_bytes((ROOT / "tests" / "conftest.py").read_bytes())
    for fixtures in (ROOT / "tests").glob("*_fixtures.py"):
        (tmp_path / fixtures.name).touch()
    (tmp_path / "contract.toml").write_bytes((ROOT / "tests" / "contract.toml").read_bytes())
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\nmarkers = contract(*ids): x\n")
    test = tmp_path / "test_x.py"
    for marker, good in (('"G1", "S52"', True), ('"G78"', False), ("", False)):
        test.write_text(f"import pytest\n@pytest.mark.contract({marker})\ndef test_x(): pass\n")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) is good, done.stdout
        assert good or re.search(r"unknown contract id.*\n.*test_x", done.stdout + done.stderr)
