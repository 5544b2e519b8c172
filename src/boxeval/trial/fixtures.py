"""Bring a task's fixture into the keeper's cache, once per content; set-up and Git run in a box.

What set-up commands leave becomes a fixture of its own, so a trial over it costs no more than one over plain files.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from boxeval.agents.environment import candidate_environment
from boxeval.errors import BoxError, EngineError
from boxeval.formats.boundaries import named
from boxeval.formats.fixtures import Fixture, GitSource, inline_fixture, read_fixture
from boxeval.rules.paths import readable
from boxeval.rules.protect import holding as directories_of
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import Job, shell
from boxeval.sandbox.keeper_frames import FixtureAnswer
from boxeval.sandbox.reaper import Reaper
from boxeval.sandbox.shim_frames import CommandEnd
from boxeval.sandbox.slot import AGENT, Slot
from boxeval.spec.outcome import FailureClass
from boxeval.spec.plan import PlannedTask
from boxeval.spec.runtime import Role
from boxeval.spec.trial import EntryKind, FixtureNotes
from boxeval.spec.workspace import Workspace, WorkspaceKind
from boxeval.trial.boxes import run_turn, settle_box
from boxeval.trial.cancel import Cancel
from boxeval.trial.fault import StageFault
from boxeval.trial.git_jobs import Fetch, Writing, notes_of

GIT = "git"
"""Role of the box in which a repository is cloned."""
HISTORY = "history"
"""Role of the box in which Git writes commits and files."""


@dataclass(frozen=True, slots=True)
class FixtureRef:
    """A fixture in the keeper's cache: its key there, the digest of its tree, and what there is to know of it.

    Submodules are empty directories; of `lfs_pointers` there is the pointer alone.
    """

    key: str
    digest: str
    submodules: tuple[bytes, ...] = ()
    lfs_pointers: tuple[bytes, ...] = ()

    @property
    def notes(self) -> FixtureNotes | None:
        """The same for the receipt; None if there is nothing to tell."""
        submodules, pointers = (tuple(map(readable, paths)) for paths in (self.submodules, self.lfs_pointers))
        return FixtureNotes(submodules=submodules, lfs_pointers=pointers) if submodules or pointers else None


class FixtureStore:
    """All fixtures of a run.

    `sources` is by task and target, `seeds` by the role of boxes that get them in their runtime directory. Threads may
    ask for the same fixture at once.
    """

    def __init__(
        self,
        sources: Mapping[tuple[str, str], Fixture | GitSource],
        run_id: str,
        git_image: ImageInfo | None,
        seeds: Mapping[Role, Fixture] | None = None,
    ) -> None:
        self._sources, self._run_id, self._git_image = sources, run_id, git_image
        self._seeds = seeds or {}
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._entries: dict[str, Mapping[str, EntryKind]] = {}
        self._holding: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}

    def ensure(self, task: PlannedTask, trial_id: str, making: Making) -> FixtureRef:
        """The task's fixture, made if it is not cached. Raises StageFault if set-up fails."""
        source = self._sources[task.task, task.target]
        if isinstance(source, Fixture):
            base = self._plain(source, making.slot)
        else:
            base = self._checkout(source, task, trial_id, making)
        if written := task.workspace.written:
            base = self._write(base, Writing(written), trial_id, making)
        if not task.workspace.setup:
            return base
        return self._set_up(base, task, trial_id, making)

    def with_files(self, base: FixtureRef, files: Fixture, slot: Slot) -> FixtureRef:
        """A fixture with further files, which take the place of those that it has at their paths."""
        key = _key(slot, f"with {files.digest} {base.key}")
        with self._one_at_a_time(key):
            made = _cached(slot, key)
            if made is None:
                layer, policy = f"{AGENT}.files", slot.policy
                slot.keeper.request("layer", name=layer, uid=policy.uid, gid=policy.gid)
                slot.keeper.fill_layer(layer, policy, files.entries())
                made = _ref(key, slot.keeper.adopt(key, policy, layer, base.key, "", {}))
                slot.keeper.request("drop_layer", name=layer)
        return replace(base, key=made.key, digest=made.digest)

    def seeds_of(self, role: Role, slot: Slot) -> FixtureRef | None:
        """What the runtime directory of a role's boxes holds; None if that is nothing."""
        return self._plain(self._seeds[role], slot) if role in self._seeds else None

    def entries(self, fixture: FixtureRef, slot: Slot) -> Mapping[str, EntryKind]:
        """Kinds of all entries of a cached fixture, by path as reports write it."""
        with self._lock:
            known = self._entries.get(fixture.key)
        if known is None:
            known = {readable(path): kind for path, kind in slot.keeper.list_fixture(fixture.key)}
            with self._lock:
                self._entries[fixture.key] = known
        return known

    def holding(self, patterns: tuple[str, ...], fixture: FixtureRef, slot: Slot) -> frozenset[str]:
        """The directories of a cached fixture that hold something that a pattern names."""
        with self._lock:
            known = self._holding.get((fixture.key, patterns))
        if known is None:
            known = directories_of(named(self.entries(fixture, slot), patterns))
            with self._lock:
                self._holding[fixture.key, patterns] = known
        return known

    def _plain(self, fixture: Fixture, slot: Slot) -> FixtureRef:
        key = _key(slot, fixture.digest)
        with self._one_at_a_time(key):
            if not slot.keeper.has_fixture(key):
                slot.keeper.put_fixture(key, slot.policy, fixture.digest, fixture.entries())
        return FixtureRef(key, fixture.digest)

    def _set_up(self, base: FixtureRef, task: PlannedTask, trial_id: str, making: Making) -> FixtureRef:
        key = _key(making.slot, f"setup {making.image.image_id} {task.fixture_recipe} {base.digest}")
        with self._one_at_a_time(key):
            if cached := _cached(making.slot, key):
                return replace(base, key=cached.key, digest=cached.digest)
            env = candidate_environment(task, making.image.path_env)
            timeout_ms = task.agent_timeout_ms
            jobs = tuple(Job(shell(text), env, timeout_ms=timeout_ms) for text in task.workspace.setup)
            made = making.make(key, base, jobs, trial_id, "setup", "")
            return replace(base, key=made.key, digest=made.digest)

    def _write(self, base: FixtureRef, writing: Writing, trial_id: str, making: Making) -> FixtureRef:
        """What Git is to write over the source."""
        image = self._with_git()
        content = hashlib.sha256(writing.content).hexdigest()
        key = _key(making.slot, f"written {content} {image.image_id} {base.digest}")
        with self._one_at_a_time(key):
            if cached := _cached(making.slot, key):
                return replace(base, key=cached.key, digest=cached.digest)
            jobs = writing.jobs(image)
            made = replace(making, image=image).make(key, base, jobs, trial_id, HISTORY, "")
            return replace(base, key=made.key, digest=made.digest)

    def _with_git(self) -> ImageInfo:
        if self._git_image is None:
            raise StageFault(FailureClass.COMMAND_ERROR, "boxeval/grader, which has Git, is not available")
        return self._git_image

    def _checkout(self, source: GitSource, task: PlannedTask, trial_id: str, making: Making) -> FixtureRef:
        image = self._with_git()
        wanted = source.commit or source.checkout or "HEAD"
        fetch = Fetch(source.url, wanted, task.workspace.history == "none")
        if source.location is None:
            # A branch may move between runs; a commit may not.
            pinned = source.commit or f"{wanted} {self._run_id}"
            base = self._plain(_empty(), making.slot)
            recipe = f"{source.url} {pinned}"
        else:
            base = self._plain(_snapshot(source.location, task.workspace.size_limit), making.slot)
            recipe = f"{base.digest} {wanted}"
        key = _key(making.slot, f"git {recipe} {image.image_id} {task.workspace.history}")
        with self._one_at_a_time(key):
            if cached := _cached(making.slot, key):
                return cached
            made = replace(making, image=image, bridge=source.needs_network)
            return made.make(key, base, fetch.jobs(image), trial_id, GIT, fetch.inside)

    def _one_at_a_time(self, key: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())


@dataclass(frozen=True, slots=True)
class Making:
    """Where and with what a fixture is made in a box; with `bridge` the box has a network."""

    slot: Slot
    image: ImageInfo
    reaper: Reaper
    cancel: Cancel
    bridge: bool = False

    def make(
        self, key: str, base: FixtureRef, jobs: tuple[Job, ...], trial_id: str, role: str, inside: str
    ) -> FixtureRef:
        """Run `jobs` over `base`; what they leave (below `inside` alone, if it is given) becomes fixture
        `key`.
        """
        slot = self.slot
        workspace = slot.agent_workspace(trial_id, role, base.key)
        timeout_ms = jobs[0].timeout_ms
        lifetime_s = timeout_ms / 1000 + 900
        box = slot.box(trial_id, role, self.image, workspace, lifetime_s, bridge=self.bridge)
        try:
            run_turn(box, jobs, timeout_ms, self.cancel)
            settle_box(box)
        finally:
            self.reaper.take(box, (workspace,))
        end = box.end
        if end.error or end.differences or not end.settled:
            raise EngineError(end.error or "; ".join(end.differences) or "a set-up box did not settle")
        if end.commands and (failed := end.commands[-1]).exit_code != 0:
            said = _SAID.get(role, _set_up_said)
            raise StageFault(FailureClass.SETUP_FAILED, said(len(end.commands), jobs, failed))
        notes = notes_of(end.commands[-1].stdout.kept) if role == GIT else {}
        try:
            made = slot.keeper.adopt(
                key, slot.policy, f"{AGENT}.{role}", "" if inside else base.key, inside, notes
            )
        except BoxError:
            raise  # the keeper is gone: nothing that the set-up left is to blame
        except EngineError as error:
            raise StageFault(FailureClass.SETUP_FAILED, str(error)) from error
        slot.keeper.request("drop_layer", name=f"{AGENT}.{role}")
        return _ref(key, made)


def _set_up_said(number: int, jobs: tuple[Job, ...], end: CommandEnd) -> str:
    command = jobs[number - 1].argv[-1][:120]
    last = "".join(f" ({line[:120]})" for line in _stderr(end)[-1:])
    return f"set-up command {number} of {len(jobs)} {_how(end)}: {command}{last}"


def _git_said(_number: int, _jobs: tuple[Job, ...], end: CommandEnd) -> str:
    """Git says first what failed, and then much on what else could be tried."""
    lines = _stderr(end)
    why = next((line for line in lines if line.startswith(("fatal:", "error:"))), "".join(lines[-1:]))
    return f"the repository cannot be cloned: {why[:200] or _how(end)}"


def _history_said(_number: int, _jobs: tuple[Job, ...], end: CommandEnd) -> str:
    last = "".join(_stderr(end)[-1:])
    return f"the fixture's files cannot be written: {last[:200] or _how(end)}"


_SAID = {GIT: _git_said, HISTORY: _history_said}


def _how(end: CommandEnd) -> str:
    if end.timed_out:
        return "timed out"
    if end.signal:
        return f"ended by signal {end.signal}"
    return end.spawn_error or f"exited {end.exit_code}"


def _stderr(end: CommandEnd) -> list[str]:
    return end.stderr.kept.decode("utf-8", "backslashreplace").strip().splitlines()


def _key(slot: Slot, text: str) -> str:
    """A cache key. The owner of the files is part of it, since a box of another user could not write them."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:40]
    return f"{digest}.{slot.policy.uid}.{slot.policy.gid}"


def _cached(slot: Slot, key: str) -> FixtureRef | None:
    if not slot.keeper.has_fixture(key):
        return None
    return _ref(key, slot.keeper.fixture(key))


def _ref(key: str, made: FixtureAnswer) -> FixtureRef:
    return FixtureRef(key, made.digest, made.submodules, made.lfs_pointers)


def _snapshot(repository: Path, size_limit: int) -> Fixture:
    return read_fixture(Workspace(kind=WorkspaceKind.LOCAL, path=".", size_limit=size_limit), repository)


def _empty() -> Fixture:
    return inline_fixture({}, 1)
