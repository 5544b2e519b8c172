"""Boxeval's own images: what is in them, built once however many ask, pruned without touching others."""

import hashlib
import io
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from boxeval.errors import EngineError, ImageError
from boxeval.sandbox import images as images_module
from boxeval.sandbox import recipes
from boxeval.sandbox.build import PACKAGES_FILE
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.image_info import inspect, labels
from boxeval.sandbox.images import ImageInfo, build_all, ensure, list_images, prune
from boxeval.settings import resource

SHIPPED = resource("images")


def run(engine: Engine, image: str, script: str, user: str = "0:0") -> str:
    """Output of a shell script in a throwaway container; fails the test if the script fails."""
    container = engine.api.create_container(
        image,
        entrypoint=["sh", "-ec", script],
        user=user,
        host_config=engine.api.create_host_config(network_mode="none"),
    )["Id"]
    try:
        engine.api.start(container)
        code = engine.api.wait(container)["StatusCode"]
        output = bytes(engine.api.logs(container)).decode()
    finally:
        engine.api.remove_container(container, force=True)
    assert code == 0, output
    return output


@pytest.fixture(scope="module")
def built(engine: Engine, cache: Path) -> dict[str, ImageInfo]:
    del cache
    return {image.name: image for image in build_all(engine, note=lambda _: None)}


@pytest.mark.contract("P22")
def test_labels_tell_the_recipe_and_the_packages(engine: Engine, built: dict[str, ImageInfo]) -> None:
    for name, image in built.items():
        listed = run(engine, image.tag, f"cat {PACKAGES_FILE}")
        told = labels(inspect(engine, image.tag) or {})
        assert told == {
            "boxeval.image": name,
            "boxeval.recipe": image.recipe,
            "boxeval.packages": hashlib.sha256(listed.encode()).hexdigest(),
            "boxeval.cache": "1",
        }
        lines = listed.splitlines()
        assert lines == sorted(lines)
        assert {"bash", "coreutils", "git", "python3", "ca-certificates"} <= {
            line.partition("=")[0] for line in lines
        }
        assert image.packages == told["boxeval.packages"]
        assert image.tag == f"{name}:{str(image.recipe)[:16]}"


@pytest.mark.contract("P22")
def test_what_is_here_is_not_built_again(engine: Engine, built: dict[str, ImageInfo]) -> None:
    notes: list[str] = []
    assert {image.name: image for image in build_all(engine, note=notes.append)} == built
    assert notes == []


@pytest.mark.parametrize("name", ["boxeval/base", "boxeval/grader"])
def test_a_box_image_gives_its_user_no_way_up(engine: Engine, built: dict[str, ImageInfo], name: str) -> None:
    assert run(engine, built[name].tag, "find / -xdev -perm /6000 -type f") == ""
    script = (
        "id -u; id -g; id -un; echo ~; stat -c '%u:%g %a' /workspace /home/agent /.boxeval; ls -A /workspace"
    )
    assert run(engine, built[name].tag, script, user="10001:10001").split("\n") == [
        "10001", "10001", "agent", "/home/agent", "10001:10001 755", "10001:10001 700", "0:0 755", "",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["boxeval/base", "boxeval/grader"])
def test_git_works_in_a_workspace_of_another_owner(
    engine: Engine, built: dict[str, ImageInfo], name: str
) -> None:
    script = "git init -q /tmp/w; chown -R 10002 /tmp/w; cd /tmp/w; git status --porcelain"
    assert run(engine, built[name].tag, script) == ""


def test_each_image_has_what_its_box_needs(engine: Engine, built: dict[str, ImageInfo]) -> None:
    assert (
        run(engine, built["boxeval/base"].tag, "test -f /opt/boxeval/agent/__main__.py; ls -A /home/agent")
        == ""
    )
    assert run(engine, built["boxeval/grader"].tag, "ls /opt") == ""
    run(
        engine,
        built["boxeval/keeper"].tag,
        "test -x /opt/boxeval/tools/shim; test -f /opt/boxeval/keeper/__main__.py",
    )
    # Static, so that they run in any image.
    assert run(engine, built["boxeval/keeper"].tag, _PROGRAM_HEADERS).split() == ["static", "static"]


_PROGRAM_HEADERS = """python3 - <<'END'
import struct
for name in ("shim", "probe"):
    data = open(f"/opt/boxeval/tools/{name}", "rb").read()
    offset, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    kinds = [struct.unpack_from("<I", data, offset + index * size)[0] for index in range(count)]
    print("INTERP" if 3 in kinds else "static")
END
"""


@pytest.fixture
def own_images(engine: Engine, built: dict[str, ImageInfo], tmp_path: Path) -> Iterator[Path]:
    """A copy of the recipes whose grader is like no other; what is built from it goes after the test."""
    del built
    folder = tmp_path / "images"
    shutil.copytree(SHIPPED, folder)
    change(folder)
    made: set[str] = set()
    yield folder
    made = set(json.loads((tmp_path / "made").read_text())) if (tmp_path / "made").exists() else made
    for tag in made:
        with suppress(EngineError), engine_errors("clean up"):
            engine.api.remove_image(tag)


def change(folder: Path) -> None:
    with (folder / "grader" / "Dockerfile").open("a") as file:
        file.write(f"LABEL test={secrets.token_hex(8)}\n")


BUILDER = """
import sys
from pathlib import Path
from boxeval.sandbox import recipes
recipes.resource = lambda kind: Path(sys.argv[1])
from boxeval.sandbox.engine import connect
from boxeval.sandbox.images import ensure
sys.stdin.readline()
image = ensure(connect(), "boxeval/grader", note=lambda line: print("note", line))
print("made", image.tag, image.image_id)
"""


def build_in_two_processes(folder: Path, caches: list[Path]) -> list[str]:
    """Let two processes go at once; returns all their lines."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", BUILDER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "BOXEVAL_CACHE_DIR": str(cache)},
        )
        for cache in caches
    ]
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    lines = [line for process in processes for line in process.communicate(timeout=300)[0].splitlines()]
    assert [process.returncode for process in processes] == [0, 0]
    made = {line.split()[1] for line in lines if line.startswith("made")}
    (folder.parent / "made").write_text(json.dumps(sorted(made)))
    return lines


@pytest.mark.contract("P22")
def test_two_processes_make_one_build(own_images: Path, tmp_path: Path) -> None:
    lines = build_in_two_processes(own_images, [tmp_path / "cache"] * 2)
    assert sum(line.startswith("note building boxeval/grader") for line in lines) == 1
    assert len({line for line in lines if line.startswith("made")}) == 1


def test_two_users_without_a_common_lock_do_not_break_each_other(own_images: Path, tmp_path: Path) -> None:
    lines = build_in_two_processes(own_images, [tmp_path / "one", tmp_path / "two"])
    assert len({line.split()[1] for line in lines if line.startswith("made")}) == 1


@pytest.fixture
def private(engine: Engine, own_images: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An image of ours under a name that no one else builds: pruning it here disturbs no other test."""
    name = f"boxeval/test{secrets.token_hex(4)}"
    (own_images / "grader").rename(own_images / name.partition("/")[2])
    monkeypatch.setattr(recipes, "resource", lambda _: own_images)
    monkeypatch.setitem(recipes.PARENTS, name, ("boxeval/rootfs",))
    ensure(engine, name, note=lambda _: None)
    monkeypatch.setattr(images_module, "PARENTS", {name: ()})
    yield name
    monkeypatch.undo()
    for image in engine.api.images(name):
        for tag in image["RepoTags"]:
            engine.api.remove_image(tag, force=True)


@pytest.mark.contract("P22")
def test_prune_takes_old_images_and_drafts_and_nothing_of_others(
    engine: Engine, private: str, own_images: Path
) -> None:
    folder = own_images / private.partition("/")[2] / "Dockerfile"
    (old,) = list_images(engine)
    assert (old.current, old.in_use) == (True, False)
    assert old.size_bytes > 10_000_000
    theirs = f"{private}-user:mine"
    for tag, source in ((theirs, old.tag), (f"{private}:mine", old.tag), (f"{private}:draft-0123", old.tag)):
        list(
            engine.api.build(
                fileobj=io.BytesIO(f"FROM {source}\nLABEL by={tag}\n".encode()), tag=tag, rm=True
            )
        )
    container = engine.api.create_container(old.tag, ["true"])["Id"]
    try:
        folder.write_text(folder.read_text() + "LABEL newer=1\n")
        new = ensure(engine, private, note=lambda _: None)
        assert {(i.tag, i.current, i.in_use) for i in list_images(engine)} == {
            (old.tag, False, True),
            (new.tag, True, False),
            (f"{private}:draft-0123", False, False),
        }
        removed, freed_bytes = prune(engine)
        assert [image.tag for image in removed] == [f"{private}:draft-0123"]
        assert freed_bytes >= 0
        engine.api.remove_container(container)
        assert [image.tag for image in prune(engine)[0]] == [old.tag]
        assert [image.tag for image in list_images(engine)] == [new.tag]
        assert [image.tag for image in prune(engine, keep_current=False)[0]] == [new.tag]
        assert inspect(engine, theirs) is not None
        assert inspect(engine, f"{private}:mine") is not None
    finally:
        with suppress(EngineError), engine_errors("clean up"):
            engine.api.remove_container(container)
        engine.api.remove_image(theirs)


def test_a_build_that_fails_is_one_line_and_leaves_no_draft(
    engine: Engine, private: str, own_images: Path
) -> None:
    before = list_images(engine)
    marker = secrets.token_hex(8)
    with (own_images / private.partition("/")[2] / "Dockerfile").open("a") as file:
        file.write(f"LABEL failed={marker}\nUSER 0\nRUN echo the last words; exit 7\n")
    with pytest.raises(ImageError) as caught:
        ensure(engine, private, note=lambda _: None)
    assert "\n" not in str(caught.value)
    assert "returned a non-zero code: 7" in str(caught.value)
    assert "the last words" in str(caught.value)
    assert [image.tag for image in list_images(engine)] == [image.tag for image in before]
    assert engine.api.images(filters={"label": f"failed={marker}"}, all=True) == []
