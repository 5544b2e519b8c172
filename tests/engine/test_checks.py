"""Checks on the real engine: commands, files and HEAD over what candidates left, some of it hostile."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from boxeval.receipts.verify import VerifiedRun
from boxeval.sandbox.slot import AGENT
from boxeval.settings import Settings
from boxeval.spec.graded import CheckSeen
from boxeval.spec.trial import Trial
from boxeval.trial.fixtures import _key
from engine_runs import Silent, run, write_suite

ORACLE = "secret-7b1f"
PLANTED = """\
echo secret-7"b"1f > known; grep -rsl 'secret-7[b]1f' /workspace >/dev/null; rm known
for place in /workspace /home /tmp /dev/shm /run /var /etc /.boxeval /proc/mounts /proc/[0-9]*/cmdline \
/proc/[0-9]*/environ; do if grep -rsl 'secret-7[b]1f' $place; then exit 1; fi; done
ln -s /etc/passwd p1; mkfifo p2; mkdir -m 0 p3; ln -s p4 p4; mkdir -m 555 p5; echo planted > p6; chmod 0 p6
(setsid sh -c 'trap "" TERM; while :; do echo good > flip; echo bad > flip; done' >/dev/null 2>&1 &)
until test -e flip; do sleep 0.05; done
echo 'exit 99' | tee trap.sh > "$HOME/.bashrc"
cp trap.sh "$HOME/.profile"
mkdir -p "$HOME/.local/lib/python3.11/site-packages"
echo 'import os; os._exit(99)' > "$HOME/.local/lib/python3.11/site-packages/sitecustomize.py"
echo forged >&2; echo forged > verdict.json; echo '{"result": "forged"}' > reward.json
echo the message
"""
SERVER = """\
test "$(grep -c : /proc/net/dev)" = 1
python3 -m http.server 8099 --bind 127.0.0.1 >/dev/null 2>&1 &
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:8099/a.txt").read().decode())' && break
  sleep 0.2
done
"""
FILES = """\
echo '{"status": "done", "flag": true, "score": 1.7, "names": ["a", "b"]}' > state.json
ln -s state.json link.json
mkdir folder; ln -s folder linked; echo 1 > folder/n.json
mkfifo fifo.json
printf '{"k": "x", "n": 1}\\n\\n{"k": "y"}\\n{"k": "x", "n": 2}\\n' > log.jsonl
echo '{"k": "x"' > bad.jsonl
python3 - <<'EOF'
import sqlite3
d = sqlite3.connect("db.sqlite")
d.execute("pragma journal_mode=wal")
d.execute("create table t(id, s)")
d.execute("insert into t values (1, 'open'), (2, 9007199254740993)")
d.commit()
d.close()
open("deep.json", "w").write("[" * 100000)
EOF
"""
OWN_FILES = {name: f"{number}\n" for number, name in enumerate(("p1", "p2", "p3", "p4/x", "p5/x", "p6"), 1)}
"""Of the grader, where the candidate put a link, a pipe, a closed directory, a loop, a full stop and a file."""
FILL = "head -c 8000000 /dev/zero > "
Row = tuple[str, str, dict[str, Any], str]


def shell(name: str, run: str, expected: str, **more: Any) -> Row:
    return name, "boxeval.shell", {"run": run, **more}, expected


def state(name: str, expected: str, file: str = "state.json", value: Any = "done", **more: Any) -> Row:
    place = {} if "query" in more else {"pointer": more.pop("pointer", "")}
    return name, "boxeval.state", {"file": file, "oneOf": [value], **place, **more}, expected


def of_file(name: str, grader: str, expected: str, file: str = "state.json", **more: Any) -> Row:
    return name, f"boxeval.{grader}", {"file": file, **more}, expected


CHECKS: dict[str, tuple[str, list[Row]]] = {
    "shell": (
        PLANTED,
        [
            ("message", "boxeval.regex", {"pattern": "^the message$"}, "passed"),
            ("no-more", "boxeval.regex", {"pattern": "forged", "negate": True}, "passed"),
            shell("passes", "test -f a.txt", "passed"),
            ("code", "sevro.shell", {"run": "exit 7", "expectedExitCode": 7}, "passed"),
            shell("wrong-code", "exit 1", "failed"),
            shell("first-error", "false\ntrue", "failed"),
            shell("signal", "kill -9 $$", "failed"),
            shell("exact", "cat a.txt", "passed", expectExact="one"),
            shell("two-newlines", "cat a.txt; echo", "failed", expectExact="one"),
            shell("no-match", "cat a.txt", "failed", expectRegex="two"),
            shell("unwanted", "cat a.txt", "failed", notRegex="^ONE$", flags="i"),
            shell("mib", "head -c 1048576 /dev/zero | tr '\\0' x", "passed", expectRegex="^x+$"),
            shell("over-mib", "head -c 1048577 /dev/zero | tr '\\0' x", "error output", expectRegex="x"),
            shell("no-text", "printf '\\376'", "error", notRegex="x"),
            shell("flood", "head -c 3000000 /dev/zero", "passed"),
            shell("late", "sleep 60", "error time", timeoutMs=300),
            shell("hungry", "python3 -c 'bytearray(1 << 30)'", "error memory"),
            shell("writes", f"echo x > a.txt; {FILL} f; {FILL} g || true", "passed"),
            shell("as-before", f"grep one a.txt; test ! -e f; {FILL} h", "passed"),
            shell("home", 'test -z "$(ls -A $HOME)"; bash -i -c true; python3 -c pass', "passed"),
            shell(
                "environment",
                "env; cat oracle.txt",
                "passed",
                notRegex="CANDIDATE|BASH_ENV|KEY|TOKEN",
                expectRegex=f"OF_THE_GRADER=yes[^]*{ORACLE}",
            ),
            shell("own-files", f"cat {' '.join(OWN_FILES)}", "passed", expectExact="\n".join("123456")),
            shell("newest", "test oracle.txt -nt trap.sh", "passed"),
            shell("frozen", 'was=$(cat flip); sleep 0.3; test "$was" = "$(cat flip)"', "passed"),
            shell("network", SERVER, "passed", expectRegex="^one$"),
        ],
    ),
    "files": (
        FILES,
        [
            state("state", "passed", pointer="/status"),
            state("strict", "failed", pointer="/flag", value=1),
            state("missing", "passed", file="none.json", orMissing=True),
            state("not-there", "failed", pointer="/x"),
            state("sqlite", "passed", file="db.sqlite", query="select s from t where id = 1", value="open"),
            state("no-row", "passed", file="db.sqlite", query="select s from t where id = 3", orMissing=True),
            state("too-large", "failed", file="db.sqlite", query="select s from t where id = 2", value=1),
            state("no-database", "failed", query="select 1", value=1),
            state("link", "failed", file="link.json", pointer="/status"),
            state("linked", "failed", file="linked/n.json", value=1),
            state("fifo", "failed", file="fifo.json"),
            state("folder", "failed", file="folder"),
            state("deep", "failed", file="deep.json"),
            of_file("log", "log-parse", "passed", "log.jsonl", where={"k": "x"}, atLeast=2),
            of_file("log-more", "log-parse", "failed", "log.jsonl", where={"k": "x"}, atLeast=3),
            of_file("bad-log", "log-parse", "failed", "bad.jsonl"),
            of_file("ready", "ready", "passed", pointer="/names", member="b"),
            of_file("not-ready", "ready", "passed", pointer="/names", member="c", ready=False),
            of_file("key", "ready", "passed", member="status"),
            of_file("outcome", "outcome", "passed", pointer="/score"),
            of_file("no-number", "outcome", "failed", pointer="/status"),
            of_file("budget", "event-budget", "passed", "log.jsonl", atMost=3),
            of_file("over-budget", "event-budget", "failed", "log.jsonl", where={"k": "x"}, atMost=1),
            of_file("no-events", "event-budget", "passed", "none.jsonl", atMost=0),
        ],
    ),
    "ended-badly": ("echo ready; exit 3", []),
    "silent": (
        "true",
        [
            ("said", "boxeval.regex", {"pattern": "x", "negate": True}, "unavailable"),
            shell("ran", "echo x", "passed", expectExact="x"),
        ],
    ),
}


NOT_GRADED: list[Row] = [
    ("said", "boxeval.regex", {"pattern": "ready"}, "passed"),
    shell("ran", "true", "passed"),
]
"""Checks of a turn that does not end well: none of them is made."""


class Keeping(Silent):
    """Looks for what the candidate left whenever a trial is told to be over."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, tuple[bool, set[bytes]]] = {}

    def finished(self, trial: Trial) -> None:
        super().finished(trial)
        slot = threading.current_thread()._slot  # type: ignore[attr-defined]
        key = _key(slot, trial.observations.fixture or "")
        stream = slot.keeper.collect(
            [f"{AGENT}.agent"], key, slot.policy.collect, lambda pieces: str(list(pieces)) and ""
        )
        names = {told.change.path for told in stream}
        lines = [json.loads(line) for line in (self.directory / "ledger.jsonl").read_text().splitlines()]
        sealed = any(trial.trial_id.encode() in base64.b64decode(line["payload"]) for line in lines[1:])
        self.kept[trial.task] = (sealed, names)


def suite() -> str:
    tasks = []
    for name, (command, rows) in CHECKS.items():
        checks = [{"id": row[0], "grader": row[1], "configuration": row[2]} for row in rows or NOT_GRADED]
        verify = {
            "checks": checks,
            "env": {"OF_THE_GRADER": "yes"},
            "files": {"oracle.txt": ORACLE, **OWN_FILES},
        }
        env = {"OF_THE_CANDIDATE": "1", "BASH_ENV": "/workspace/trap.sh"}
        tasks.append(
            {
                "id": name,
                "workspace": {"kind": "inline", "files": {"a.txt": "one\n"}},
                "runner": {"kind": "external-command", "command": command, "env": env},
                "verify": {**verify, "evidence": "digest-only" if name == "silent" else "kept"},
            }
        )
    return yaml.safe_dump({"tasks": tasks}, sort_keys=False)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checks")


@pytest.fixture(scope="module")
def watcher() -> Keeping:
    return Keeping()


@pytest.fixture(scope="module")
def verified(home: Path, settings: Settings, watcher: Keeping) -> VerifiedRun:
    end, verified = run(write_suite(home / "suite", suite()), settings, watcher)
    assert not end.left_behind
    return verified


def trial(verified: VerifiedRun, task: str) -> Trial:
    return next(trial for trial in verified.trials if trial.task == task)


def checks(verified: VerifiedRun, task: str) -> dict[str, CheckSeen]:
    return {check.id: check for check in trial(verified, task).observations.checks}


@pytest.mark.contract("G1", "G14", "G15", "G16", "G17", "G18", "G19", "G20", "G21", "V40", "P20")
@pytest.mark.parametrize("task", CHECKS)
def test_every_check_has_the_status_that_it_should(verified: VerifiedRun, task: str) -> None:
    """Known failures A1 (planted files), A2 (a late writer), A6 (homes and environments), A12 (searching for the
    answer), B5 (a late grader), D5 and D9 (links and FIFOs for files)."""
    found = {
        name: f"{check.status.value} {check.limit or ''}".strip()
        for name, check in checks(verified, task).items()
    }
    reasons = {name: check.reason for name, check in checks(verified, task).items()}
    assert found == {row[0]: row[3] for row in CHECKS[task][1]}, reasons


@pytest.mark.contract("G5", "G17", "G19", "G62")
def test_failed_checks_score_beside_graders_that_could_not_work(verified: VerifiedRun) -> None:
    outcome = trial(verified, "shell").outcome
    assert (outcome.execution.value, outcome.grading.value, outcome.task.value) == (
        "completed",
        "error",
        "failed",
    )
    assert outcome.failure_class == "verifier_failed"
    assert (outcome.detail or "").startswith(
        "check wrong-code (boxeval.shell): exited 1; expected exit code 0"
    )
    over = checks(verified, "shell")["over-mib"].box
    flood = checks(verified, "shell")["flood"].box
    assert over and flood
    assert (over.commands[0].stdout.size_bytes, over.commands[0].stdout.truncated) == (1_048_577, True)
    kept = flood.commands[0].stdout.kept
    assert kept and len(verified.blobs.get(kept)) == 64 * 1024


@pytest.mark.contract("G18")
def test_a_turn_that_ended_badly_is_not_graded(verified: VerifiedRun) -> None:
    bad = trial(verified, "ended-badly")
    assert (bad.outcome.execution, bad.outcome.grading, bad.outcome.task) == (
        "failed",
        "not_requested",
        "failed",
    )
    assert bad.observations.checks == () and "grade" not in bad.steps_ms
    assert "grade" in trial(verified, "silent").steps_ms


@pytest.mark.contract("G63")
def test_a_workspace_goes_only_after_its_receipt_is_there(verified: VerifiedRun, watcher: Keeping) -> None:
    assert len(watcher.kept) == len(verified.trials)
    assert all(sealed for sealed, _ in watcher.kept.values())
    assert {b"trap.sh", b"verdict.json"} <= watcher.kept["shell"][1]
    assert b"trap.sh" not in watcher.kept["files"][1] and b"state.json" in watcher.kept["files"][1]


@pytest.mark.contract("G4", "G7")
def test_without_a_message_an_output_check_is_unavailable(verified: VerifiedRun) -> None:
    silent = trial(verified, "silent")
    assert silent.observations.message and silent.observations.message.status == "missing"
    assert (silent.outcome.grading, silent.outcome.failure_class) == ("unavailable", "evidence_missing")
    box = checks(verified, "silent")["ran"].box
    assert box and box.commands[0].stdout.size_bytes == 2
    assert box.commands[0].stdout.kept is None
    message = trial(verified, "shell").observations.message
    assert message and message.sha256 and verified.blobs.get(message.sha256) == b"the message\n"


def test_the_score_of_an_outcome_is_clamped(verified: VerifiedRun) -> None:
    found = checks(verified, "files")
    assert found["outcome"].score == 1.0
    assert found["outcome"].value == {"found": True, "value": 1.7}
    assert found["log"].value == {"count": 2}
