"""`pip install boxeval` is enough: a wheel holds everything that a run reads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_a_wheel_holds_images_policies_suites_and_the_schema(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("boxeval-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind in ("images", "policies", "suites"):
        shipped = {
            f"boxeval/data/{place.relative_to(ROOT)}"
            for place in (ROOT / kind).rglob("*")
            if place.is_file() and "__pycache__" not in place.parts
        }
        assert shipped
        assert shipped <= names
    assert "boxeval/data/docs/suite.schema.json" in names
    assert "boxeval/py.typed" in names
    assert "boxeval/cli/help.txt" in names
