"""A recipe's digest: what it covers and what it must not depend on."""

import io
import os
from pathlib import Path

import pytest

from boxeval.errors import ImageError
from boxeval.sandbox.recipes import FINAL, PARENTS, load_recipe, pack

ORIGIN = "packages bookworm"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A small `images/` with the folders that the keeper's recipe reads."""
    for name in ("rootfs", "shim", "probe", "keeper"):
        (tmp_path / "images" / name).mkdir(parents=True)
        (tmp_path / "images" / name / "Dockerfile").write_text(f"FROM scratch\n# {name}\n")
    (tmp_path / "images" / "keeper" / "inner").mkdir()
    (tmp_path / "images" / "keeper" / "inner" / "tool").write_text("tool\n")
    return tmp_path / "images"


def digest(images: Path, origin: str = ORIGIN) -> str:
    return load_recipe("boxeval/keeper", origin, images).digest


def packed(images: Path) -> bytes:
    context = io.BytesIO()
    pack(load_recipe("boxeval/keeper", ORIGIN, images).files, context)
    return context.getvalue()


@pytest.mark.contract("P22")
def test_tag_names_the_first_sixteen_digits(images: Path) -> None:
    recipe = load_recipe("boxeval/keeper", ORIGIN, images)
    assert len(recipe.digest) == 64
    assert recipe.tag == f"boxeval/keeper:{recipe.digest[:16]}"


@pytest.mark.parametrize("name", ["keeper", "probe", "shim", "rootfs"])
def test_a_changed_byte_here_or_in_a_parent_changes_it(images: Path, name: str) -> None:
    before = digest(images)
    with (images / name / "Dockerfile").open("a") as file:
        file.write("#")
    assert digest(images) != before


def test_a_new_name_for_the_same_content_changes_it(images: Path) -> None:
    before = digest(images)
    (images / "keeper" / "inner" / "tool").rename(images / "keeper" / "inner" / "other")
    assert digest(images) != before


def test_the_origin_of_the_root_file_system_changes_it(images: Path) -> None:
    assert digest(images) != digest(images, "packages trixie")


def test_the_way_of_the_checkout_does_not_change_it(images: Path) -> None:
    before = digest(images)
    tool = images / "keeper" / "inner" / "tool"
    tool.chmod(0o700)
    os.utime(tool, (1, 1))
    (images / "keeper" / "__pycache__").mkdir()
    (images / "keeper" / "__pycache__" / "tool.pyc").write_bytes(b"x")
    (images / "keeper" / ".tool.swp").write_bytes(b"x")
    assert digest(images) == before


def test_the_context_is_the_same_bytes_each_time(images: Path) -> None:
    first = packed(images)
    os.utime(images / "keeper" / "Dockerfile", (1, 1))
    assert packed(images) == first


def test_arguments_name_the_parents_by_tag(images: Path) -> None:
    recipe = load_recipe("boxeval/keeper", ORIGIN, images)
    rootfs, probe = recipe.parents
    assert recipe.arguments == {"ROOTFS": rootfs.tag, "PROBE": probe.tag}


def test_a_folder_without_a_dockerfile_is_one_line(images: Path) -> None:
    (images / "shim" / "Dockerfile").unlink()
    with pytest.raises(ImageError, match=r"shim: no Dockerfile there; reinstall boxeval$"):
        digest(images)


def test_every_shipped_recipe_can_be_read() -> None:
    digests = {load_recipe(name, ORIGIN).digest for name in PARENTS}
    assert len(digests) == len(PARENTS)
    assert set(FINAL) < set(PARENTS)
