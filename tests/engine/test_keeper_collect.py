"""What a candidate changed is told by content, whatever it did to the tree, and the host's own files are
never touched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from boxeval.errors import EngineError, HostileTree
from boxeval.sandbox.box import Box
from boxeval.sandbox.changes import NO_OLD_CONTENT, OldContent, Told
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.keeper_frames import Side
from boxeval.sandbox.slot import Slot, remove_volume
from boxeval.spec.policy import CollectCaps
from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind
from engine_trees import digest_of, directory, file, put, symlink

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/agent"}
TREE = [
    directory("d"),
    file("d/deep", b"deep\n"),
    file("d/other", b"other\n"),
    file("f", b"first\n"),
    symlink("link", "f"),
    file("run", b"#!/bin/sh\n", 0o755),
]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def drink(pieces: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


@pytest.fixture
def changes_of(slot: Slot, grader_image: ImageInfo) -> Iterator[Callable[..., dict[bytes, Any]]]:
    """Run a script over a fixture and return its changes by path."""
    made: list[tuple[Box, str]] = []

    def run(
        script: str,
        tree: list[FixtureEntry] = TREE,
        caps: CollectCaps | None = None,
        old: OldContent = NO_OLD_CONTENT,
    ) -> dict[bytes, Told]:
        slot.reset()
        key = put(slot, tree)
        workspace = slot.agent_workspace("t", "agent", key)
        box = slot.box(f"t{len(made)}", "agent", grader_image, workspace, 600)
        made.append((box, workspace))
        box.start()
        end = box.run(Job(shell(script), ENV), last=True)
        assert end.exit_code == 0, end.stderr.kept
        assert box.settle().settled
        box.remove()
        remove_volume(slot.yard.engine, workspace)
        stream = slot.keeper.collect(["agent.agent"], key, caps or slot.policy.collect, drink, old)
        found = {told.change.path: told for told in stream}
        run.repositories = stream.repositories  # type: ignore[attr-defined]
        return found

    yield run
    for box, workspace in made:
        box.remove()
        remove_volume(slot.yard.engine, workspace)


def kinds(changes: dict[bytes, Told]) -> dict[bytes, tuple[str | None, str | None]]:
    return {
        path: (
            told.change.old.kind.value if told.change.old else None,
            told.change.new.kind.value if told.change.new else None,
        )
        for path, told in changes.items()
    }


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("true", {}),
        ("touch f; cat f > f.new; mv f.new f", {}),
        ("printf 'second\\n' > f", {b"f": ("file", "file")}),
        ("rm f", {b"f": ("file", None)}),
        ("touch empty", {b"empty": (None, "file")}),
        ("chmod 0600 f", {b"f": ("file", "file")}),
        ("chmod 0700 d", {b"d": ("directory", "directory")}),
        ("rm -r d", {b"d": ("directory", None), b"d/deep": ("file", None), b"d/other": ("file", None)}),
        ("rm -r d; mkdir d; printf 'deep\\n' > d/deep", {b"d/other": ("file", None)}),
        ("mv d e", {
            b"d": ("directory", None), b"d/deep": ("file", None), b"d/other": ("file", None),
            b"e": (None, "directory"), b"e/deep": (None, "file"), b"e/other": (None, "file"),
        }),
        ("rm link; ln -s d link", {b"link": ("symlink", "symlink")}),
        ("rm f; ln -s /etc/passwd f", {b"f": ("file", "symlink")}),
        ("rm f; mkdir f; touch f/x", {b"f": ("file", "directory"), b"f/x": (None, "file")}),
        ("rm -r d; printf x > d", {
            b"d": ("directory", "file"), b"d/deep": ("file", None), b"d/other": ("file", None),
        }),
        ("rm -r d; ln -s /etc d", {
            b"d": ("directory", "symlink"), b"d/deep": ("file", None), b"d/other": ("file", None),
        }),
        ("mkfifo p", {b"p": (None, "fifo")}),
        ("rm f; mkfifo f", {b"f": ("file", "fifo")}),
        ("python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"", {b"s": (None, "socket")}),
        ("ln f hard", {b"hard": (None, "file")}),
        ("ln f hard; echo more >> hard", {b"f": ("file", "file"), b"hard": (None, "file")}),
        ("! mknod w c 0 0; ! mknod n c 1 3; ! mknod b b 7 0; ! mknod f.w c 0 0", {}),
        ("python3 -c \"import os\nfor n in ('trusted', 'user'):\n"
         "  try: os.setxattr('d', n + '.overlay.opaque', b'y')\n  except OSError: pass\"", {}),
        ("chmod 0 d/deep; chmod 0 d", {b"d": ("directory", "directory"), b"d/deep": ("file", "file")}),
    ],
)  # fmt: skip
@pytest.mark.contract("S24")
def test_changes_by_content(script: str, wanted: dict[bytes, Any], changes_of: Callable[..., Any]) -> None:
    assert kinds(changes_of(script)) == wanted


def test_contents_modes_and_links_are_exact(changes_of: Callable[..., Any]) -> None:
    script = "printf 'new\\r\\n\\0' > new; chmod 0750 new; ln -s 'a b' l; truncate -s 5000000 sparse"
    found = changes_of(script)
    assert found[b"new"].change.new == Side(EntryKind.FILE, 0o750, 6)
    assert found[b"new"].sha256 == sha(b"new\r\n\0")
    assert found[b"l"].change.new.link == b"a b"
    assert found[b"sparse"].change.new == Side(EntryKind.FILE, 0o644, 5_000_000)
    assert found[b"sparse"].sha256 == sha(bytes(5_000_000))


def test_what_was_there_before_is_exact(changes_of: Callable[..., Any]) -> None:
    script = "rm -r d; printf 1234567 > run; ln -sf d link; rm f; mkdir f"
    found = changes_of(script, old=OldContent(file_bytes=10, all_bytes=16))
    was = {path: (told.change.old, told.old) for path, told in found.items()}
    assert was == {
        b"d": (Side(EntryKind.DIRECTORY, 0o755, found[b"d"].change.old.size_bytes), None),
        b"d/deep": (Side(EntryKind.FILE, 0o644, 5, sha256=sha(b"deep\n")), b"deep\n"),
        b"d/other": (Side(EntryKind.FILE, 0o644, 6, sha256=sha(b"other\n")), b"other\n"),
        b"f": (Side(EntryKind.FILE, 0o644, 6, sha256=sha(b"first\n")), None),  # 5 + 6 + 6 are more than 16
        b"link": (Side(EntryKind.SYMLINK, 0o777, 1, b"f"), None),
        b"run": (Side(EntryKind.FILE, 0o755, 10, sha256=sha(b"#!/bin/sh\n")), None),
    }


@pytest.mark.parametrize(
    ("script", "nested"),
    [
        ("mkdir -p sub/.git; touch sub/x", (b"sub",)),
        ("touch have/deep/x", (b"have",)),
        ("rm -r have/.git", (b"have",)),
        ("mkdir .git; touch f2", ()),
        ("touch d/x", ()),
    ],
)
@pytest.mark.contract("S33")
def test_nested_repositories_that_changed_are_told(
    script: str, nested: tuple[bytes, ...], changes_of: Callable[..., Any]
) -> None:
    tree = [
        *TREE,
        directory("have"),
        directory("have/.git"),
        file("have/.git/HEAD", b""),
        directory("have/deep"),
    ]
    changes_of(script, sorted(tree, key=lambda entry: entry.path))
    assert changes_of.repositories == nested  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", [b"\xff\xfe", b"new\nline", b"\x1b[2J", b"-rf", b"x" * 255, b"back\\slash", "é".encode()]
)
def test_hostile_names_are_carried_as_bytes(name: bytes, changes_of: Callable[..., Any]) -> None:
    script = f"python3 -c \"open(bytes.fromhex('{name.hex()}'), 'w').close()\""
    assert list(changes_of(script)) == [name]


@pytest.mark.parametrize(
    ("script", "caps", "reason"),
    [
        ("head -c 3000 /dev/zero > a; head -c 3000 /dev/zero > b", {"bytes": 5000}, "5000 bytes"),
        ("for i in 1 2 3 4 5 6; do touch $i; done", {"members": 5}, "5 entries"),
        ("mkdir -p 1/2/3/4/5/6", {"depth": 4}, "4 directories"),
        ("touch aaaaaaaaaaaa", {"name_bytes": 10}, "too long"),
        ("mkdir aaaa bbbb; mkdir aaaa/bbbb; touch aaaa/bbbb/cccc", {"path_bytes": 12}, "too long"),
        ("rm -r d", {"members": 2}, "2 entries"),
        (
            "python3 -c \"import os\nfor i in range(400): os.setxattr('f', f'user.{i:0240}', b'')\"",
            {},
            "more attributes",
        ),
    ],
)
def test_each_cap_is_an_error_and_not_a_short_list(
    script: str, caps: dict[str, int], reason: str, changes_of: Callable[..., Any]
) -> None:
    with pytest.raises(HostileTree, match=reason):
        changes_of(script, caps=CollectCaps(**caps))


def test_a_deep_tree_is_refused_and_can_be_removed(changes_of: Callable[..., Any], slot: Slot) -> None:
    nest = "python3 -c \"\nimport os\nfor i in range(1900): os.mkdir('x'); os.chdir('x')\""
    with pytest.raises(HostileTree, match="128 directories"):
        changes_of(nest)
    slot.reset()
    assert changes_of("true") == {}


def test_a_fixture_with_another_digest_is_refused(slot: Slot) -> None:
    with pytest.raises(EngineError, match="digest"):
        slot.keeper.put_fixture("wrong", slot.policy, "0" * 64, [file("a", b"a")])
    assert slot.keeper.request("has_fixture", key="wrong") == {"present": False}


@pytest.mark.parametrize("path", ["../out", "/abs", "a/../b", "a//b", ".", ""])
def test_the_keeper_refuses_paths_that_leave_the_fixture(path: str, slot: Slot) -> None:
    with pytest.raises(EngineError, match="not plain"):
        slot.keeper.put_fixture("wrong", slot.policy, "0" * 64, [file(path, b"a")])


def test_a_box_cannot_write_its_fixture(changes_of: Callable[..., Any]) -> None:
    changes_of("printf changed > f; rm -r d")
    assert changes_of("grep -q first f; test -f d/deep") == {}


def test_nothing_of_one_trial_is_there_in_the_next(changes_of: Callable[..., Any]) -> None:
    changes_of("touch mark ~/mark /tmp/mark /dev/shm/mark")
    left = (
        'test ! -e mark; test ! -e ~/mark; test ! -e /tmp/mark; test ! -e /dev/shm/mark; test -z "$(ls -A ~)"'
    )
    assert changes_of(left) == {}


def test_a_port_of_the_last_box_is_free_for_the_next(changes_of: Callable[..., Any]) -> None:
    serve = (
        "python3 - <<'E'\nimport socket\ns = socket.socket(); s.bind(('127.0.0.1', 5000)); s.listen()\n"
        "c = socket.create_connection(('127.0.0.1', 5000)); a, _ = s.accept(); a.close(); c.recv(1); c.close()\nE"
    )
    changes_of(serve)
    changes_of(serve)


def test_the_fixture_cache_is_bounded_by_what_was_wanted_last(slot: Slot) -> None:
    for name in ("first", "second", "third"):
        tree = [file("name", f"{slot.yard.run_id} {name}".encode())]
        slot.keeper.put_fixture(f"bound-{name}", slot.policy, digest_of(tree), tree)
    assert slot.keeper.request("has_fixture", key="bound-first") == {"present": True}
    kept = len(slot.keeper.request("fixtures")["keys"])
    # Nothing was unused for an hour, so nothing goes, whatever the number.
    assert slot.keeper.request("trim_fixtures", keep=0, unused_s=3600) == {"dropped": []}
    dropped = slot.keeper.request("trim_fixtures", keep=1, unused_s=-1)["dropped"]
    assert len(dropped) == kept - 1
    assert "bound-first" not in dropped
    assert {"bound-second", "bound-third"} <= set(dropped)
