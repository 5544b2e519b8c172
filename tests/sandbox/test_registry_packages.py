"""Packages for agents' images: what is not what the lock says never gets into a build context."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from boxeval.errors import ImageError
from boxeval.sandbox.recipes import AGENT_IMAGES, PackedFile, Recipe, RecipeFile, load_recipe
from boxeval.sandbox.registry_packages import LOCK, REQUIREMENTS, agent_version, fetch, listed


def archive(files: dict[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for name, (content, mode) in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size, member.mode = len(content), mode
            packed.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def entry(data: bytes, **more: Any) -> dict[str, Any]:
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
    keep = {"bin/tool": "bin/tool", "lib/*": "cli/"}
    return {"name": "tool", "version": "1.0", "integrity": f"sha512-{digest}", "keep": keep, **more}


def recipe(npm: list[dict[str, Any]], requirements: str | None = None) -> Recipe:
    lock = {"name": "tool", "version": "1.0", "npm": npm}
    files = [RecipeFile(LOCK, json.dumps(lock).encode())]
    if requirements is not None:
        files.append(RecipeFile(REQUIREMENTS, requirements.encode()))
    return Recipe("boxeval/agents/tool", tuple(files), (), "")


def cached(cache: Path, data: bytes) -> Path:
    place = cache / "npm" / "tool@1.0.tgz"
    place.parent.mkdir(parents=True)
    place.write_bytes(data)
    return place


def read(files: list[tuple[PackedFile, bytes]]) -> dict[str, tuple[bytes, int]]:
    return {file.path: (content, file.mode) for file, content in files}


def fetched(made: Recipe, cache: Path, architecture: str = "amd64") -> dict[str, tuple[bytes, int]]:
    return read([(file, file.content.read()) for file in fetch(made, architecture, "3.11", cache)])


def test_only_what_is_kept_of_a_package_gets_in(tmp_path: Path) -> None:
    data = archive({"bin/tool": (b"x", 0o755), "lib/a.js": (b"y", 0o644), "README": (b"z", 0o644)})
    cached(tmp_path, data)
    assert fetched(recipe([entry(data)]), tmp_path) == {
        "files/bin/tool": (b"x", 0o755),
        "files/cli/lib/a.js": (b"y", 0o644),
    }


def test_another_hash_is_refused_and_forgotten(tmp_path: Path) -> None:
    place = cached(tmp_path, archive({"bin/tool": (b"evil", 0o755)}))
    with pytest.raises(ImageError, match=r"tool@1\.0: its hash is not the one of the lock"):
        fetched(recipe([entry(b"good")]), tmp_path)
    assert not place.exists()


@pytest.mark.parametrize("name", ["lib/../../etc/passwd", "lib/../../../x"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    data = archive({name: (b"x", 0o644)})
    cached(tmp_path, data)
    with pytest.raises(ImageError, match="no plain path"):
        fetched(recipe([entry(data)]), tmp_path)


def test_an_architecture_that_the_agent_is_not_made_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no package of it for riscv64"):
        fetched(recipe([entry(b"x", architecture="amd64")]), tmp_path, "riscv64")


def test_a_wheel_is_laid_out_and_its_hash_must_be_listed(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("tool/__init__.py", "a = 1")
        wheel.writestr("tool-1.0.data/purelib/more.py", "b = 2")
        wheel.writestr("tool-1.0.data/scripts/tool", "#!python")
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    for listed_hash, fault in ((digest, None), ("0" * 64, "its hash is not in")):
        made = recipe([], f"tool==1.0 \\\n    --hash=sha256:{listed_hash}\n")
        place = tmp_path / listed_hash / "pypi" / f"{made.digest[:16]}-amd64-3.11"
        place.mkdir(parents=True)
        (place / "tool-1.0-py3-none-any.whl").write_bytes(buffer.getvalue())
        if fault:
            with pytest.raises(ImageError, match=fault):
                fetched(made, tmp_path / listed_hash)
            assert not place.exists()
        else:
            assert set(fetched(made, tmp_path / listed_hash)) == {"files/tool/__init__.py", "files/more.py"}


@pytest.mark.parametrize("name", AGENT_IMAGES)
@pytest.mark.contract("P22")
def test_every_agent_s_lock_pins_all_by_version_and_hash(name: str) -> None:
    made = load_recipe(AGENT_IMAGES[name], "packages bookworm")
    lock = json.loads(made.file(LOCK))
    assert lock["name"] == name
    assert agent_version(made) == lock["version"]
    for package in lock["npm"]:
        assert len(base64.b64decode(package["integrity"].removeprefix("sha512-"), validate=True)) == 64
    files = {file.path for file in made.files}
    if REQUIREMENTS in files:
        for block in re.split(r"\n(?=\S)", made.file(REQUIREMENTS).decode().strip()):
            assert re.fullmatch(r"[\w.-]+==\S+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+", block), (
                block
            )
    lines = listed(made, "amd64").decode().splitlines()
    assert lines == sorted(set(lines))
    assert any(line.endswith(f"={lock['version']}") or f"={lock['version']}-" in line for line in lines)
