"""What is kept of an agent's private home after its last turn, and how graders see it: read-only (G36, G37)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from boxeval.agents import skills
from boxeval.agents.host import Host
from boxeval.agents.hosts import host_of
from boxeval.errors import HostileTree
from boxeval.rules.paths import raw_name, readable
from boxeval.sandbox.slot import GRADE
from boxeval.spec.agent_record import AgentRecord, Completeness, RetainedFile, RetainedTree, SkillActivations
from boxeval.spec.host_options import HostOptions
from boxeval.spec.policy import CollectCaps
from boxeval.spec.tree import FixtureEntry
from boxeval.spec.trial import EntryKind
from boxeval.trial.context import TrialContext
from boxeval.trial.trees import file_entry, with_directories

TRANSCRIPTS = CollectCaps(bytes=5 * 1024 * 1024, members=4096, path_bytes=1024)
ARTIFACT = CollectCaps(bytes=8 * 1024 * 1024, members=4096, path_bytes=1024)
ALL_ARTIFACTS = 32 * 1024 * 1024
ALL_PATHS = 8 * 1024 * 1024
"""Characters of all their paths: these are in the receipt, which is one line of bounded size."""
SHOWN_AT = "/boxeval"
"""Where a grader's box has what it is shown."""
_FOLLOWS = (EntryKind.FILE, EntryKind.DIRECTORY)


@dataclass(frozen=True, slots=True)
class Shown:
    """Volumes by the path where graders see them, and the variables that name these paths."""

    volumes: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


def retain(context: TrialContext, record: AgentRecord) -> AgentRecord:
    """Read the agent's sessions and the declared subtrees out of the home, once nothing of the trial is alive."""
    host, options = _host(context), _options(context)
    if host is None:
        return record
    sessions = _read(context, f"{host.id}.sessions", [path.encode() for path in host.sessions], TRANSCRIPTS)
    left, room, trees = ALL_ARTIFACTS, ALL_PATHS, []
    for name, path in options.artifacts.items():
        tree = RetainedTree(id=name, status=Completeness.UNAVAILABLE, reason="all artifacts are too large")
        if left > 0 and room > 0:
            caps = ARTIFACT.model_copy(update={"bytes": min(ARTIFACT.bytes, left)})
            tree = _read(context, name, [path.encode()], caps)
        left -= sum(file.size_bytes for file in tree.files)
        room -= sum(len(file.path) for file in tree.files)
        trees.append(tree)
    native = None
    if host.native and sessions.files:
        files = {file.path: context.blobs.get(file.sha256) for file in sessions.files}
        native = host.native(files, record.turns[-1].session if record.turns else None)
    seen = _activations(context, record, options) if options.skills else None
    kept = {"transcripts": sessions, "artifacts": tuple(trees), "native": native, "skills": seen}
    return record.model_copy(update=kept)


def _activations(context: TrialContext, record: AgentRecord, options: HostOptions) -> SkillActivations:
    caps = CollectCaps(bytes=skills.LOG_BYTES, members=1)
    log = _read(context, skills.LOG, [skills.LOG.encode()], caps)
    if log.reason and log.files:
        return SkillActivations(status=Completeness.PARTIAL, reason=log.reason)
    data = context.blobs.get(log.files[0].sha256) if log.files else None
    return skills.read(data, options.skills, sum(len(turn.calls) for turn in record.turns))


def _read(context: TrialContext, name: str, paths: Sequence[bytes], caps: CollectCaps) -> RetainedTree:
    """Files of some subtrees. What is missing, not followed or past a cap is told, and what came before it is kept."""
    files: list[RetainedFile] = []
    skipped, has_directory = 0, False

    def keep(pieces: Iterator[bytes]) -> str:
        return context.blobs.put_stream(pieces)[0]

    reason = None
    try:
        for told in context.slot.keeper.collect_home(paths, caps, keep):
            new = told.change.new
            if new is None or new.kind not in _FOLLOWS:
                skipped += 1
            elif told.sha256 is not None:
                path = readable(told.change.path)
                files.append(RetainedFile(path=path, size_bytes=new.size_bytes, sha256=told.sha256))
            has_directory |= new is not None and new.kind is EntryKind.DIRECTORY
    except HostileTree as error:
        reason = str(error)[:300]
    if reason is None and skipped:
        reason = f"{skipped} links or special files were left out"
    if not files and not has_directory:
        return RetainedTree(
            id=name, status=Completeness.UNAVAILABLE, reason=reason or "there is nothing at its path"
        )
    status = Completeness.PARTIAL if reason else Completeness.COMPLETE
    return RetainedTree(id=name, status=status, reason=reason, files=tuple(files))


@contextmanager
def shown_to_graders(context: TrialContext, record: AgentRecord | None) -> Iterator[Shown]:
    """Volumes for what the task shows its graders, each made of a layer of its own; removed in the end."""
    host, options = _host(context), _options(context)
    if record is None or host is None or not (options.transcripts or options.artifacts):
        yield Shown()
        return
    made = {}
    if options.transcripts and record.transcripts:
        made["transcripts"] = _transcripts(context, host, record.transcripts)
    for tree in record.artifacts:
        made[f"artifact-{tree.id.replace('_', '-')}"] = _under(
            context, tree.files, options.artifacts[tree.id]
        )
    volumes: dict[str, str] = {}
    env: dict[str, str] = {}
    try:
        for name, entries in made.items():
            volume = _volume(context, name, entries)
            volumes[f"{SHOWN_AT}/{name}"] = volume
            variable = name.upper().replace("-", "_")
            env |= {f"{prefix}_CANDIDATE_{variable}": f"{SHOWN_AT}/{name}" for prefix in ("BOXEVAL", "SEVRO")}
        yield Shown(volumes, env)
    finally:
        context.reaper.take(None, tuple(volumes.values()))


def _volume(context: TrialContext, name: str, entries: Sequence[FixtureEntry]) -> str:
    slot, layer = context.slot, f"{GRADE}.{name}"
    slot.keeper.request("layer", name=layer, uid=slot.policy.uid, gid=slot.policy.gid)
    slot.keeper.fill_layer(layer, slot.policy, entries)
    return slot.layer_volume(context.trial_id, name, layer)


def _transcripts(context: TrialContext, host: Host, tree: RetainedTree) -> list[FixtureEntry]:
    """`index.json`, which tells what is missing, and the agent's own tree below its name."""
    told = {
        "host": host.id,
        "tree": host.name,
        "status": str(tree.status),
        "reason": tree.reason,
        "files": len(tree.files),
        "bytes": sum(file.size_bytes for file in tree.files),
    }
    index = json.dumps({"version": 1, "agents": [told]}, indent=2).encode()
    entries = _tree(context, [(host.name.encode() + b"/" + raw_name(file.path), file) for file in tree.files])
    return sorted([*entries, file_entry(b"index.json", index)], key=lambda entry: entry.path)


def _under(context: TrialContext, files: Sequence[RetainedFile], root: str) -> list[FixtureEntry]:
    """The files below a declared directory, by their paths in it."""
    start = root.encode() + b"/"
    named = [(raw_name(file.path), file) for file in files]
    return _tree(
        context, [(path.removeprefix(start), file) for path, file in named if path.startswith(start)]
    )


def _tree(context: TrialContext, files: Sequence[tuple[bytes, RetainedFile]]) -> list[FixtureEntry]:
    def entry(path: bytes, file: RetainedFile) -> FixtureEntry:
        read = partial(_open, context, file.sha256)
        return FixtureEntry(path, EntryKind.FILE, 0o444, file.size_bytes, open=read)

    return with_directories(entry(path, file) for path, file in files)


def _open(context: TrialContext, sha256: str) -> io.BytesIO:
    return io.BytesIO(context.blobs.get(sha256))


def _host(context: TrialContext) -> Host | None:
    return host_of(context.task.runner)


def _options(context: TrialContext) -> HostOptions:
    return context.task.runner.host or HostOptions()
