"""Fixtures from inline files, directories, archives and git. Digests by the rule of `boxeval.spec.tree`."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from boxeval.errors import FixtureError
from boxeval.formats.fixtures import Fixture, GitSource, fixture_recipe, git_source, read_fixture
from boxeval.spec.workspace import Workspace


def workspace(kind: str, **fields: object) -> Workspace:
    return Workspace.model_validate({"kind": kind, **fields})


def listing(fixture: Fixture) -> dict[str, tuple[str, int, bytes]]:
    """Path to kind, mode, and content or link target."""
    found = {}
    for entry in fixture.entries():
        content = entry.link
        if entry.open is not None:
            with entry.open() as stream:
                content = stream.read()
            assert len(content) == entry.size_bytes
        found[os.fsdecode(entry.path)] = (entry.kind.value, entry.mode, content)
    assert len(found) == fixture.members
    return found


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make_tree(root: Path) -> None:
    root.mkdir()
    (root / "sub").mkdir(mode=0o755)
    (root / "a.txt").write_bytes(b"hello")
    (root / "a.txt").chmod(0o644)
    (root / "sub" / "run.sh").write_bytes(b"")
    (root / "sub" / "run.sh").chmod(0o755)
    (root / "sub" / "link").symlink_to("../a.txt")


TREE = {
    "a.txt": ("file", 0o644, b"hello"),
    "sub": ("directory", 0o755, b""),
    "sub/link": ("symlink", 0o777, b"../a.txt"),
    "sub/run.sh": ("file", 0o755, b""),
}
TREE_DIGEST = sha256(
    b"file\0a.txt\0000644\0" + sha256(b"hello").encode() + b"\n"
    b"directory\0sub\0000755\0\n"
    b"symlink\0sub/link\0000777\0../a.txt\n"
    b"file\0sub/run.sh\0000755\0" + sha256(b"").encode() + b"\n"
)  # fmt: skip


def test_inline_files() -> None:
    files: dict[str, object] = {"./sub//b": "é", "a": {"text": "#!", "mode": "0755"}}
    fixture = read_fixture(workspace("inline", files=files), Path())
    assert listing(fixture) == {
        "a": ("file", 0o755, b"#!"),
        "sub": ("directory", 0o755, b""),
        "sub/b": ("file", 0o644, "é".encode()),
    }
    assert fixture.size_bytes == 4
    assert listing(fixture) == listing(fixture)


def test_an_empty_inline_fixture() -> None:
    fixture = read_fixture(workspace("inline", files={}), Path())
    assert (listing(fixture), fixture.digest) == ({}, sha256(b""))


@pytest.mark.contract("S10")
@pytest.mark.parametrize("kind", ["temp-copy", "local"])
def test_a_directory_and_its_digest(tmp_path: Path, kind: str) -> None:
    make_tree(tmp_path / "tree")
    fixture = read_fixture(workspace(kind, path="tree"), tmp_path)
    assert listing(fixture) == TREE
    assert [entry.path for entry in fixture.entries()] == [b"a.txt", b"sub", b"sub/link", b"sub/run.sh"]
    assert (fixture.digest, fixture.size_bytes, fixture.members) == (TREE_DIGEST, 5, 4)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_an_archive_of_the_same_tree_has_the_same_digest(tmp_path: Path, mode: Any, form: int) -> None:
    make_tree(tmp_path / "tree")
    with tarfile.open(tmp_path / "t.tar", mode, format=form) as tar:
        tar.add(tmp_path / "tree", arcname=".")
    fixture = read_fixture(workspace("archive", path="t.tar"), tmp_path)
    assert listing(fixture) == TREE
    assert (fixture.digest, fixture.size_bytes) == (TREE_DIGEST, 5)


def test_archives_are_read_by_a_python_without_extraction_filters(tmp_path: Path) -> None:
    """Debian 12 has Python 3.11.2; they came with 3.11.4."""
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("empty.txt"))
    code = (
        "import tarfile, sys, pathlib\n"
        "vars(tarfile).pop('data_filter', None)\n"
        "from boxeval.formats.archive import read_archive\n"
        "print(read_archive(pathlib.Path(sys.argv[1]), (), 1000, 'here').members)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t.tar")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_git_archives_and_long_names_are_read(tmp_path: Path) -> None:
    name = "d/" * 60 + "n" * 200 + "é"
    with tarfile.open(
        tmp_path / "t.tar", "w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "a" * 40}
    ) as tar:
        tar.addfile(tarfile.TarInfo(name))
    found = listing(read_fixture(workspace("archive", path="t.tar"), tmp_path))
    assert found[name] == ("file", 0o644, b"")
    assert len(found) == 61


def test_xz_with_several_streams(tmp_path: Path) -> None:
    import lzma

    make_tree(tmp_path / "tree")
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        tar.add(tmp_path / "tree", arcname=".")
    data = (tmp_path / "t.tar").read_bytes()
    (tmp_path / "t.tar.xz").write_bytes(lzma.compress(data[:700]) + b"\0" * 4 + lzma.compress(data[700:]))
    assert read_fixture(workspace("archive", path="t.tar.xz"), tmp_path).digest == TREE_DIGEST


@pytest.mark.parametrize("kind", ["temp-copy", "archive"])
@pytest.mark.parametrize(
    ("excludes", "left"),
    [
        (["sub"], {"a.txt"}),
        (["sub/"], {"a.txt"}),
        (["/a.txt"], {"sub", "sub/link", "sub/run.sh"}),
        (["./a.txt"], {"sub", "sub/link", "sub/run.sh"}),
        (["*", "!a.txt"], {"a.txt"}),
        (["run.sh"], {"a.txt", "sub", "sub/link"}),
        (["/run.sh"], {"a.txt", "sub", "sub/link", "sub/run.sh"}),
    ],
)
def test_excludes_are_gitignore_patterns(
    tmp_path: Path, kind: str, excludes: list[str], left: set[str]
) -> None:
    make_tree(tmp_path / "tree")
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        tar.add(tmp_path / "tree", arcname=".")
    source = workspace(kind, path="tree" if kind == "temp-copy" else "t.tar", excludes=tuple(excludes))
    assert set(listing(read_fixture(source, tmp_path))) == left


def test_special_bits_are_dropped_and_odd_names_are_kept(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "set").write_bytes(b"x")
    (root / "set").chmod(0o6755)
    odd = os.fsdecode(b"\xff\xfe\n\x1b")
    (root / odd).write_bytes(b"")
    fixture = read_fixture(workspace("temp-copy", path="tree"), tmp_path)
    assert listing(fixture)["set"] == ("file", 0o755, b"x")
    assert odd in listing(fixture)


@pytest.mark.parametrize(
    ("link", "target", "fine"),
    [
        ("l", "a", True),
        ("l", "missing", True),
        ("l", "l", True),
        ("d/l", "../a", True),
        ("l", ".", True),
        ("l", "/etc/passwd", False),
        ("l", "..", False),
        ("l", "../x", False),
        ("d/l", "../../x", False),
        ("d/l", "in/../..", True),
        ("l", "d/in/../../../x", False),
        ("l", "missing/../../x", False),
        ("l", "d/in/../../..", False),
    ],
)
def test_symlinks_must_stay_inside(tmp_path: Path, link: str, target: str, fine: bool) -> None:
    root = tmp_path / "tree"
    (root / "d" / "e").mkdir(parents=True)
    (root / "a").write_bytes(b"")
    (root / "d" / "in").symlink_to("e")
    (root / link).symlink_to(target)
    source = workspace("temp-copy", path="tree")
    if fine:
        assert listing(read_fixture(source, tmp_path))[link] == ("symlink", 0o777, target.encode())
    else:
        with pytest.raises(
            FixtureError, match=f"workspace `tree`: `{link}` is a symlink that leads out of the tree"
        ):
            read_fixture(source, tmp_path)


def test_a_chain_of_symlinks_that_leaves_is_found(tmp_path: Path) -> None:
    """`up/..` is the parent of where `up` points: outside, though each link alone looks fine."""
    root = tmp_path / "tree"
    (root / "d").mkdir(parents=True)
    (root / "d" / "up").symlink_to("..")
    (root / "l").symlink_to("d/up/../x")
    with pytest.raises(FixtureError, match=r"`l` is a symlink that leads out of the tree, to `d/up/\.\./x`"):
        read_fixture(workspace("temp-copy", path="tree"), tmp_path)


def test_special_files_are_refused_by_name_unless_left_out(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    os.mkfifo(root / "pipe")
    with pytest.raises(FixtureError, match="workspace `tree`: `pipe` is a FIFO; leave it out with"):
        read_fixture(workspace("temp-copy", path="tree"), tmp_path)
    assert listing(read_fixture(workspace("temp-copy", path="tree", excludes=("pipe",)), tmp_path)) == {}
    (root / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "s"))
        with pytest.raises(FixtureError, match="`s` is a socket"):
            read_fixture(workspace("temp-copy", path="tree"), tmp_path)


def test_caps(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "/".join("d" * 129)).mkdir(parents=True)
    with pytest.raises(FixtureError, match="is deeper than 128 directories"):
        read_fixture(workspace("temp-copy", path="tree"), tmp_path)
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(1 << 40)
    (tmp_path / "big").mkdir()
    (tmp_path / "sparse").rename(tmp_path / "big" / "sparse")
    with pytest.raises(FixtureError) as caught:
        read_fixture(workspace("local", path="big", sizeLimit=5), tmp_path)
    assert str(caught.value) == (
        "workspace `big`: is larger than 5 bytes; leave files out with `workspace.excludes`, "
        "or raise `workspace.sizeLimit`"
    )
    with pytest.raises(FixtureError, match="is larger than 1 bytes"):
        read_fixture(workspace("inline", files={"a": "xx"}, sizeLimit=1), tmp_path)


def test_exactly_the_limit_is_fine(tmp_path: Path) -> None:
    make_tree(tmp_path / "tree")
    assert read_fixture(workspace("temp-copy", path="tree", sizeLimit=5), tmp_path).size_bytes == 5


def test_missing_and_wrong_paths(tmp_path: Path) -> None:
    make_tree(tmp_path / "tree")
    for kind in ("temp-copy", "local", "archive"):
        with pytest.raises(FixtureError, match="workspace `nope`: does not exist in"):
            read_fixture(workspace(kind, path="nope"), tmp_path)
    with pytest.raises(FixtureError, match="cannot be read as a directory: Not a directory"):
        read_fixture(workspace("temp-copy", path="tree/a.txt"), tmp_path)
    with pytest.raises(FixtureError, match="is not a file; kind `archive` takes a tar archive"):
        read_fixture(workspace("archive", path="tree"), tmp_path)


@pytest.mark.parametrize("after", [b"HELLO", b"hello!", b"hell"])
def test_a_file_that_changes_after_it_was_read_is_an_error_of_its_reader(
    tmp_path: Path, after: bytes
) -> None:
    make_tree(tmp_path / "tree")
    fixture = read_fixture(workspace("temp-copy", path="tree"), tmp_path)
    (tmp_path / "tree" / "a.txt").write_bytes(after)
    with pytest.raises(FixtureError, match=r"`a\.txt` changed while it was read"):
        listing(fixture)


def test_a_directory_that_becomes_a_symlink_is_not_followed(tmp_path: Path) -> None:
    make_tree(tmp_path / "tree")
    fixture = read_fixture(workspace("temp-copy", path="tree"), tmp_path)
    (tmp_path / "tree" / "sub").rename(tmp_path / "moved")
    (tmp_path / "tree" / "sub").symlink_to(tmp_path / "moved")
    with pytest.raises(
        FixtureError, match=r"`sub/run.sh` cannot be read any more: (Not a directory|Too many)"
    ):
        listing(fixture)


def test_an_archive_that_changes_is_an_error(tmp_path: Path) -> None:
    for number, text in enumerate((b"one", b"two")):
        (tmp_path / "f").write_bytes(text)
        with tarfile.open(tmp_path / f"{number}.tar", "w") as tar:
            tar.add(tmp_path / "f", "f")
    fixture = read_fixture(workspace("archive", path="0.tar"), tmp_path)
    (tmp_path / "1.tar").rename(tmp_path / "0.tar")
    with pytest.raises(FixtureError, match=r"workspace `0.tar`: changed while it was read"):
        list(fixture.entries())


def run_git(directory: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(command, cwd=directory, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repo"
    path.mkdir()
    run_git(path, "init", "-q", "-b", "main")
    run_git(path, "commit", "-q", "--allow-empty", "-m", "one")
    run_git(path, "tag", "v1")
    run_git(path, "checkout", "-q", "-b", "side/branch")
    run_git(path, "commit", "-q", "--allow-empty", "-m", "two")
    run_git(path, "checkout", "-q", "main")
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("checkout", [None, "main", "v1", "side/branch"])
def test_refs_of_a_local_repository_become_commits(
    repository: Path, packed: bool, checkout: str | None
) -> None:
    expected = run_git(repository, "rev-parse", checkout or "HEAD")
    if packed:
        run_git(repository, "pack-refs", "--all")
    source = git_source(workspace("git", path="repo", checkout=checkout), repository.parent)
    assert source == GitSource(repository, None, expected, checkout)


def test_bare_repositories(repository: Path) -> None:
    head = run_git(repository, "rev-parse", "HEAD")
    run_git(repository.parent, "clone", "-q", "--bare", "repo", "bare")
    assert git_source(workspace("git", path="bare"), repository.parent).commit == head


def test_repositories_that_hold_only_a_part_are_refused(repository: Path) -> None:
    run_git(repository, "worktree", "add", "-q", "--detach", "../linked", "v1")
    with pytest.raises(FixtureError, match="is a linked work tree or a submodule; name its main repository"):
        git_source(workspace("git", path="linked"), repository.parent)
    run_git(repository.parent, "clone", "-q", "--shared", "repo", "shared")
    with pytest.raises(FixtureError, match="borrows objects from another repository"):
        git_source(workspace("git", path="shared"), repository.parent)
    run_git(repository.parent / "shared", "repack", "-adq")
    (repository.parent / "shared" / ".git" / "objects" / "info" / "alternates").unlink()
    git_source(workspace("git", path="shared"), repository.parent)


def test_git_sources_that_are_refused(repository: Path) -> None:
    (repository.parent / "plain").mkdir()
    with pytest.raises(FixtureError, match="workspace `plain`: is not a git repository"):
        git_source(workspace("git", path="plain"), repository.parent)
    with pytest.raises(FixtureError, match="no branch or tag `nope` can be read there; give `commit`"):
        git_source(workspace("git", path="repo", checkout="nope"), repository.parent)
    with pytest.raises(FixtureError, match="does not exist"):
        git_source(workspace("git", path="gone"), repository.parent)


def test_reading_refs_runs_nothing_of_the_repository(repository: Path, tmp_path: Path) -> None:
    """Known failure E1."""
    canary = tmp_path / "canary"
    with (repository / ".git" / "config").open("a") as config:
        config.write(f'[core]\nfsmonitor = "touch {canary}"\nhooksPath = {tmp_path}\n')
    git_source(workspace("git", path="repo"), repository.parent)
    assert not canary.exists()


def test_only_a_url_needs_a_network() -> None:
    url = "https://example.org/r.git"
    assert git_source(workspace("git", url=url, commit="a" * 40), Path()).needs_network
    assert not git_source(workspace("git", url="file:///r.git", commit="a" * 40), Path()).needs_network


def test_recipes_know_content_set_up_and_image_but_no_path(tmp_path: Path) -> None:
    make_tree(tmp_path / "one")
    make_tree(tmp_path / "two")

    def recipe(path: str, image: str = "i", **fields: object) -> str:
        source = workspace("temp-copy", path=path, **fields)
        return fixture_recipe(source, read_fixture(source, tmp_path), image)

    plain = recipe("one")
    assert plain == recipe("two") == recipe("one", "other")
    assert recipe("one", setup=("make",)) not in (plain, recipe("one", "other", setup=("make",)))
    assert recipe("one", excludes=("sub",)) != plain
    commit = workspace("git", path="anywhere", commit="a" * 40)
    here = GitSource(tmp_path / "a", None, "a" * 40, None)
    there = GitSource(None, "https://example.org/b", "a" * 40, None)
    assert fixture_recipe(commit, here, "i") == fixture_recipe(commit, there, "i")
    alone, full = (workspace("git", path="a", commit="a" * 40, history=h) for h in ("none", "full"))
    assert fixture_recipe(full, here, "i") == fixture_recipe(commit, here, "i")
    assert fixture_recipe(alone, here, "i") != fixture_recipe(commit, here, "i")
    assert fixture_recipe(commit, GitSource(None, "u", None, "main"), "i") != fixture_recipe(
        commit, GitSource(None, "v", None, "main"), "i"
    )
