"""An image that knows nothing of boxeval is shut as tightly as ours, and its tools find a home."""

from __future__ import annotations

import io
import os
import posixpath
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxeval.errors import ImageError
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.image_info import require_visible_workspace
from boxeval.sandbox.images import ImageInfo
from engine_runs import run, settings_in, write_suite

DOCKERFILE = """\
FROM {base}
USER 0
RUN sed -i /agent/d /etc/passwd && rm -rf /workspace /home/agent /.boxeval
ENV CANARY=of-the-image
VOLUME /data /workspace/ /home/agent /.boxeval/../tmp
ENTRYPOINT ["/bin/false"]
HEALTHCHECK --interval=1s CMD touch /workspace/health
USER daemon
"""


@pytest.fixture(scope="module")
def odd_image(engine: Engine, grader_image: ImageInfo) -> Iterator[str]:
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        text = DOCKERFILE.format(base=grader_image.tag).encode()
        info = tarfile.TarInfo("Dockerfile")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    context.seek(0)
    name = f"boxeval-test-odd:{os.getpid()}"
    for line in engine.api.build(fileobj=context, custom_context=True, tag=name, rm=True, decode=True):
        assert "error" not in line, line
    yield name
    engine.api.remove_image(name)


@pytest.mark.parametrize(
    "volume", ["/workspace/data", "/workspace/./a/../b/", "/.boxeval", "/proc", "/dev/x"]
)
def test_an_image_that_would_hide_the_fixture_is_refused(volume: str) -> None:
    """Known failure D4."""
    with pytest.raises(ImageError, match=f"^odd: declares a volume at {posixpath.normpath(volume)}, which"):
        require_visible_workspace("odd", {"Config": {"Volumes": {"/data": {}, volume: {}}}})


def test_a_foreign_image(odd_image: str, tmp_path: Path, cache: Path, engine: Engine) -> None:
    """Known failures C15 (no such user in the image) and D4 (a volume of the image over the fixture)."""
    suite = write_suite(
        tmp_path,
        f"""
tasks:
  - id: odd
    image: "{odd_image}"
    workspace: {{kind: inline, files: {{a.txt: "one\\n"}}}}
    runner:
      kind: external-command
      commands:
        - test "$(id -u):$(id -g):$(id -G)" = 10001:10001:10001
        - test -z "$CANARY"
        - grep -qx one a.txt; test "$(stat -c %a:%u ~)" = 700:10001
        - test "$(python3 -c 'import os; print(os.path.expanduser("~"))')" = /home/agent
        - git config --global user.name someone; test -f ~/.gitconfig
        - df -k /data | grep -q '^tmpfs *4096 '
        - sleep 1.5; test ! -e health; touch /data/x; echo two > a.txt
    verify: {{commands: ["grep -qx two a.txt", "test ! -e /data/x", "test -z \\"$CANARY\\""]}}
""",
    )
    before = {v["Name"] for v in engine.api.volumes()["Volumes"] or ()}
    _, verified = run(suite, settings_in(tmp_path / "bx", cache))
    assert verified.trials[0].outcome.task == "passed", verified.trials[0].outcome
    anonymous = {v["Name"] for v in engine.api.volumes()["Volumes"] or ()} - before
    assert not {name for name in anonymous if len(name) == 64}
