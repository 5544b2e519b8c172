"""No registry and an empty engine: everything is made from Debian packages, on a second engine of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "prove-empty-engine"
BOXEVAL = Path(sys.executable).with_name("boxeval")
MISSING = [tool for tool in ("dockerd", "slirp4netns", "mmdebstrap") if not shutil.which(tool)]


@pytest.mark.slow
@pytest.mark.contract("P22")
@pytest.mark.skipif(os.geteuid() != 0, reason="a second dockerd needs root")
@pytest.mark.skipif(bool(MISSING), reason=f"a second dockerd needs {', '.join(MISSING)}: apt-get install it")
def test_images_come_from_packages_alone() -> None:
    environment = {**os.environ, "BOXEVAL": str(BOXEVAL), "PYTHON": sys.executable}
    result = subprocess.run(
        [SCRIPT], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900
    )
    assert result.returncode == 0, result.stderr
    assert "no registry can be reached" in result.stderr
    assert "from packages of" in result.stderr
    for name in ("boxeval/keeper:", "boxeval/base:", "boxeval/grader:"):
        assert name in result.stdout
    assert "overlay volumes     work" in result.stdout
