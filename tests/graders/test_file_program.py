"""The program that reads a candidate's file: whatever the file costs is a fault of the file, and never of a grader."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import boxeval

START = """
import json, sys
sys.path.insert(0, sys.argv[1])
from boxeval.graders import file_program
file_program.ROOT, file_program.CPU_S = sys.argv[2], float(sys.argv[3])
file_program.main(sys.argv[4], json.loads(sys.argv[5]), int(sys.argv[6]))
"""
MIB = 1024 * 1024


def facts(
    root: Path, grader: str, *, cpu_s: float = 10, memory_bytes: int = 512 * MIB, **configuration: Any
) -> Any:
    source = str(Path(boxeval.__file__).parent.parent)
    given = [source, str(root), str(cpu_s), f"boxeval.{grader}", json.dumps(configuration), str(memory_bytes)]
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", START, *given], stdout=subprocess.PIPE, check=True, timeout=60
    )
    return json.loads(ran.stdout)


@pytest.mark.slow
@pytest.mark.contract("V40")
def test_a_document_that_needs_more_memory_than_there_is_is_the_candidates_doing(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"[" + b"{}," * 400_000 + b"7]")
    assert facts(tmp_path, "state", file="a.json", pointer="/400000") == {"found": True, "value": 7}
    found = facts(tmp_path, "state", file="a.json", pointer="/400000", memory_bytes=32 * MIB)
    assert found == {"fault": "is too much to read"}


@pytest.mark.contract("V40")
def test_a_file_that_needs_more_time_than_there_is_is_the_candidates_doing(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"{}\n" * 200_000)
    assert "processor time" in facts(tmp_path, "log-parse", file="log", cpu_s=0.05)["fault"]


@pytest.mark.contract("V40")
def test_what_a_database_says_of_itself_is_cut(tmp_path: Path) -> None:
    """An answer past its cap is none, and a check without one is an error that nobody scores."""
    database = sqlite3.connect(tmp_path / "a.db")
    database.execute("CREATE TABLE a (x)")
    database.execute("PRAGMA writable_schema=ON")
    database.execute("UPDATE sqlite_master SET sql = 'nonsense', name = ?", ("n" * 200_000,))
    database.commit()
    database.close()
    found = facts(tmp_path, "state", file="a.db", query="SELECT x FROM a")
    assert found["fault"].startswith("cannot be queried: malformed database schema")
    assert len(found["fault"]) == 300
