"""Trees that are made to break a reader (section D of the known failures), in whole trials with sealed receipts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from boxeval.receipts.verify import VerifiedRun
from boxeval.reports.formats import Format, render
from boxeval.rules.patch import FILE
from boxeval.rules.paths import readable
from boxeval.settings import Settings
from boxeval.spec.trial import Trial
from boxeval.verdicts.aggregate import aggregate
from engine_runs import loosen, run, write_suite
from patch_trees import apply, read

NAMES = [
    b"\xff\xfe",
    b"new\nline",
    b"\x1b[2J\x1b]0;x\x07",
    b"-rf",
    b"x" * 255,
    b"a\\xffb",
    b"a\xffb",
    b"\xe2\x80\xae",
    b" ",
]
MAKE = f"""
import os
for name in {NAMES!r}:
    open(name, 'wb').close()
    os.makedirs(b'd/' + name)
    os.symlink(name, b'd/' + name + b'/l')
"""
DEEP = """
import os
for _ in range(20_000):
    os.mkdir('d')
    os.chdir('d')
"""
SWAP = """
import os, signal, subprocess, sys, time
if len(sys.argv) == 1:
    subprocess.Popen([sys.executable, '-c', sys.orig_argv[2], 'again'], start_new_session=True)
    time.sleep(0.5)
    sys.exit()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
graded, guarded = open('answer', 'a'), open('guard', 'a')
os.mkdir('out')
open('out/passwd', 'w').close()
while True:
    os.rename('out', 'real')
    os.symlink('/etc', 'out')
    os.unlink('out')
    os.rename('real', 'out')
    for file in graded, guarded:
        print('more', file=file, flush=True)
"""
FROZEN = (
    "cp answer /tmp/before; sleep 0.5; cmp answer /tmp/before; grep -q more answer; test $(cat guard) = safe"
)
SUITE = f"""\
tasks:
  - id: swaps
    workspace: {{kind: inline, files: {{answer: "one\\n", guard: "safe\\n"}}}}
    protect: [guard]
    runner: {{kind: external-command, command: python3, args: ["-c", {json.dumps(SWAP)}]}}
    verify: {{commands: [{json.dumps(FROZEN)}]}}
  - id: names
    workspace: &w {{kind: inline, files: {{a.txt: "one\\n"}}}}
    runner: {{kind: external-command, command: python3, args: ["-c", {json.dumps(MAKE)}]}}
    verify: {{commands: ["test -e ./-rf"]}}
  - id: deep
    workspace: {{kind: inline, files: {{a.txt: "one\\n"}}}}
    runner: {{kind: external-command, command: python3, args: ["-c", {json.dumps(DEEP)}]}}
    verify: {{commands: ["true"]}}
  - id: many
    workspace: {{kind: inline, files: {{a.txt: "one\\n"}}}}
    runner: {{kind: external-command, command: "test ! -e d; mkdir m; cd m; seq 5000 | xargs touch"}}
    verify: {{commands: ["test $(ls m | wc -l) = 5000"]}}
  - id: outside
    workspace: {{kind: inline, files: {{answer.json: "{{}}"}}}}
    runner:
      kind: external-command
      command: |
        rm answer.json; ln -s /etc/passwd answer.json; ln -s /proc/self/environ env; ln -s ../../other-trial/receipt up
        ln -s HOST/canary host; ln -s / root; mkfifo pipe; truncate -s 100M sparse
    verify: {{commands: ["test -L answer.json"]}}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("hostile")
    (home / "canary").write_text("content of the host")
    write_suite(home, SUITE.replace("HOST", str(home)).replace("&w ", ""))
    more = {"workspaceInodes: 2000": "workspaceInodes: 50000", "fileSizeMib: 8": "fileSizeMib: 200"}
    loosen(home, more | {"bytes: 4000000": "bytes: 200000000"})
    return home


@pytest.fixture(scope="module")
def finished(home: Path, settings: Settings) -> VerifiedRun:
    """One slot for all, so that what one trial leaves would be there in the next."""
    return run(home / "suite.yaml", settings, jobs=1)[1]


def trial_of(finished: VerifiedRun, name: str) -> Trial:
    return next(trial for trial in finished.trials if trial.task == name)


def test_names_of_any_bytes_are_told_apart_and_in_every_report(finished: VerifiedRun, tmp_path: Path) -> None:
    """D12."""
    trial = trial_of(finished, "names")
    assert trial.outcome.task == "passed", trial.outcome
    assert trial.observations.collected
    paths = {change.path for change in trial.observations.collected.changes}
    wanted = {readable(prefix + name) for name in NAMES for prefix in (b"", b"d/")}
    assert wanted | {readable(b"d/" + name + b"/l") for name in NAMES} | {"d"} == paths
    assert len(paths) == 3 * len(NAMES) + 1
    report = aggregate(finished)
    for form in Format:
        text = render(form, report, finished)
        assert not set(text) & {"\x1b", "\x07", "\u202e", "\0"}, form
        text.encode()
    patch = trial.observations.collected.patch
    assert patch and patch.sha256 and patch.complete, patch
    (tmp_path / "tree").mkdir()
    apply(tmp_path / "tree", finished.blobs.get(patch.sha256))
    tree = read(tmp_path / "tree")
    assert {path for path, blob in tree.items() if blob.mode == FILE} == set(NAMES)
    assert len(tree) == 2 * len(NAMES)


def test_a_tree_of_20_000_nested_directories_fails_its_trial_and_leaves_nothing(
    finished: VerifiedRun,
) -> None:
    trial = trial_of(finished, "deep")
    assert trial.observations.agent
    assert trial.observations.agent.commands[0].exit_code == 0, "the tree was really built"
    assert (trial.outcome.failure_class, trial.outcome.weight) == ("resource_limit", "scored")
    assert trial.observations.collected
    assert trial.observations.collected.limit == "deeper than 128 directories"
    assert trial.observations.collected.patch is None
    assert trial.metrics["patch.bytes"] is None


def test_thousands_of_entries_after_it_in_the_same_slot(finished: VerifiedRun) -> None:
    trial = trial_of(finished, "many")
    assert trial.outcome.task == "passed", trial.outcome
    assert trial.metrics["patch.filesChanged"] == 5000


def test_nothing_is_collected_before_what_swaps_it_is_dead(finished: VerifiedRun) -> None:
    """Known failures A9 and D2: a process of another session, deaf to SIGTERM, holds files and swaps a directory for a
    link to /etc, again and again.
    """
    trial = trial_of(finished, "swaps")
    assert trial.outcome.task == "passed", trial.outcome
    agent, seen = trial.observations.agent, trial.observations
    assert agent
    assert (agent.orphans, agent.survivors, agent.settled) == (1, 0, True)
    assert seen.collected
    assert seen.enforced
    assert [path.path for path in seen.enforced.restored] == ["guard"]
    changes = {change.path: change for change in seen.collected.changes}
    assert changes.keys() <= {"answer", "guard", "out", "out/passwd", "real", "real/passwd"}
    assert {change.link for change in changes.values()} <= {None, "/etc"}
    patch = seen.collected.patch
    assert patch
    assert patch.sha256
    assert b"root:" not in finished.blobs.get(patch.sha256)


def test_nothing_of_the_host_is_read_through_links(finished: VerifiedRun) -> None:
    """D5 and D9."""
    trial = trial_of(finished, "outside")
    assert trial.outcome.task == "passed", trial.outcome
    assert trial.observations.collected
    changes = {change.path: change for change in trial.observations.collected.changes}
    assert changes["answer.json"].link == "/etc/passwd"
    assert changes["answer.json"].sha256 is None
    assert changes["pipe"].kind == "fifo"
    assert changes["sparse"].size_bytes == 100 * 1024 * 1024
    contents = [finished.blobs.get(name) for name in finished.blobs.names()]
    assert not any(b"content of the host" in data or b"root:" in data for data in contents)
    assert not any(os.environ["PATH"].encode() in data for data in contents)
    patch = trial.observations.collected.patch
    assert patch and patch.sha256 is None, "a file larger than a patch may be"
    assert patch.reasons == (
        "the patch, or what it is made of, is too large, at: sparse",
        "neither a file nor a link: pipe",
    )
