"""Real agents, each in its own image, mend the same small bug on a scripted model, with no network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from boxeval.errors import ImageError
from boxeval.receipts.blobs import BlobStore
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import ensure
from boxeval.settings import Settings
from boxeval.spec.agent_record import CallEnd, ClaimedUsage, TurnEnd
from boxeval.spec.trial import Trial
from engine_runs import forget, run, settings_in, write_suite

pytestmark = [pytest.mark.engine, pytest.mark.slow]

FIX = "sed -i 's/a - b/a + b/' calc.py"
DONE = "I mended add in calc.py."


@dataclass(frozen=True)
class Case:
    """An agent, the tool of its that runs a shell command, and what it says of two requests of 100 and 20 tokens."""

    agent: str
    tool: str
    argument: str
    call: str
    usage: ClaimedUsage | None
    more: dict[str, Any] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)


CASES = [
    Case("codex", "exec_command", "cmd", "command_execution", ClaimedUsage(input=200, output=40)),
    Case("codex", "exec_command", "cmd", "commandExecution", None, host={"entrypoint": "app-server"}),
    Case("claude", "Bash", "command", "Bash", ClaimedUsage(input=200, output=40), {"description": "mend it"}),
    Case("mini-swe-agent", "bash", "command", "bash", ClaimedUsage(input=200, output=40)),
    Case(
        "opencode", "bash", "command", "bash", ClaimedUsage(input=200, output=40), {"description": "mend it"}
    ),
]


def suite_of(case: Case) -> str:
    last: dict[str, Any] = {"text": DONE}
    if case.agent == "mini-swe-agent":  # it ends by a command, whose further output is what it hands in
        submit = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo {DONE}"
        last = {"calls": [{"tool": "bash", "input": {"command": submit}}]}
    turns = [{"calls": [{"tool": case.tool, "input": {case.argument: FIX, **case.more}}]}, last]
    files = {"calc.py": "def add(a, b):\n    return a - b\n"}
    check = "import calc; assert calc.add(2, 3) == 5"
    task = {
        "id": "repair",
        "workspace": {"kind": "inline", "files": files},
        "runner": {
            "kind": "agent",
            "agent": case.agent,
            "prompt": "Mend add in calc.py.",
            "script": {"turns": turns},
        },
        "verify": {
            "commands": [f"python3 -c '{check}'"],
            "checks": [{"id": "says", "grader": "boxeval.regex", "configuration": {"pattern": "mended add"}}],
        },
    }
    if case.host:
        task["runner"]["host"] = case.host  # type: ignore[index]
    return "\ntasks: " + json.dumps([task]) + "\n"


HEAD = """\
version: 2
suite: {id: agents, title: Agents, visibility: local}
defaults: {timeoutMs: 120000}
matrix: {targets: [{id: local}]}
"""


@pytest.fixture
def settings(tmp_path: Path, cache: Path) -> Iterator[Settings]:
    settings = settings_in(tmp_path / "bx", cache)
    yield settings
    forget(settings)


def names(case: Case) -> str:
    return "-".join((case.agent, *map(str, case.host.values())))


def blob(directory: Path, sha256: str | None) -> bytes:
    assert sha256 is not None
    return BlobStore(directory / "blobs").get(sha256)


@pytest.mark.parametrize("case", CASES, ids=names)
@pytest.mark.contract("G38", "G39", "G40", "G42", "G50", "G55", "G56")
def test_an_agent_mends_the_bug(case: Case, tmp_path: Path, engine: Engine, settings: Settings) -> None:
    try:
        ensure(engine, f"boxeval/agents/{case.agent}", note=lambda _: None)
    except ImageError as error:
        pytest.fail(f"the image of {case.agent} cannot be had here, so nothing is proved of it: {error}")
    end, verified = run(write_suite(tmp_path, suite_of(case), HEAD), settings)
    (trial,) = verified.trials
    record = trial.observations.agent_record
    assert record is not None, trial.outcome
    assert trial.outcome.task == "passed", (trial.outcome, record)
    (turn,) = record.turns
    assert (record.host, turn.end) == (f"boxeval.host.{case.agent}", TurnEnd.COMPLETED)
    message = trial.observations.message
    assert message is not None
    assert blob(end.directory, message.sha256).decode().strip() == DONE
    assert (turn.calls[0].name, turn.calls[0].end) == (case.call, CallEnd.COMPLETED)
    assert record.transcripts is not None
    assert record.transcripts.status == "complete"
    assert record.transcripts.files
    assert turn.preflight is not None
    assert turn.preflight.version
    assert measured(trial) == (200, 40)
    claimed = turn.usage and (turn.usage.input, turn.usage.output)
    assert claimed == (case.usage and (case.usage.input, case.usage.output)), turn.usage_reason
    (events,) = turn.artifacts
    assert (events.id, events.status) == (f"boxeval.host.{case.agent}.events", "complete")
    assert blob(end.directory, events.sha256)
    collected = trial.observations.collected
    assert collected is not None
    assert collected.patch is not None
    assert b"+    return a + b" in blob(end.directory, collected.patch.sha256)


CONTINUED = """
models:
  m:
    script:
      turns:
        - {calls: [{tool: exec_command, input: {cmd: "cd; mkdir notes; echo kept > notes/a.txt; echo hidden > b.txt"}}]}
        - {text: "I took a note."}
        - {calls: [{tool: exec_command, input: {cmd: "cp ~/notes/a.txt note.txt; cat ~/.codex/skills/guide/SKILL.md"}}]}
        - {text: "I copied it."}
tasks:
  - id: twice
    workspace: {kind: inline, files: {a.txt: "one"}}
    runner:
      kind: agent
      agent: codex
      host: {transcripts: true, artifacts: {notes: notes}, skills: {guide: "---\\nname: guide\\n---\\nTake notes.\\n"}}
    requiredEvidence: [boxeval.host.codex.native-calls, boxeval.host.transcripts, boxeval.host.skill-activations]
    steps: [{id: first, prompt: "Take a note."}, {id: second, prompt: "Copy the note."}]
    verify:
      commands:
        - 'test "$(cat note.txt)" = kept'
        - 'test "$(cat "$BOXEVAL_CANDIDATE_ARTIFACT_NOTES/a.txt")" = kept'
        - 'test "$SEVRO_CANDIDATE_TRANSCRIPTS" = "$BOXEVAL_CANDIDATE_TRANSCRIPTS"'
        - 'grep -q ''"status": "complete"'' "$BOXEVAL_CANDIDATE_TRANSCRIPTS/index.json"'
        - 'grep -rq "I copied it" "$BOXEVAL_CANDIDATE_TRANSCRIPTS/codex/.codex/sessions"'
        - '! touch "$BOXEVAL_CANDIDATE_TRANSCRIPTS/x" 2>/dev/null'
        - '! grep -rqs hidden /boxeval/artifact-notes "$HOME" /tmp'
"""


@pytest.mark.contract("G36", "G37", "G43", "G47", "V2")
def test_a_second_prompt_goes_on_in_the_same_state_and_graders_see_what_was_declared(
    tmp_path: Path, engine: Engine, settings: Settings
) -> None:
    del engine
    head = HEAD.replace("timeoutMs: 120000", "timeoutMs: 120000, model: m")
    _, verified = run(write_suite(tmp_path, CONTINUED, head), settings)
    (trial,) = verified.trials
    record = trial.observations.agent_record
    assert trial.outcome.task == "passed", (trial.outcome, record)
    assert record is not None
    first, second = record.turns
    assert (first.turn, second.turn) == ("first", "second")
    assert (first.continues, second.continues) == (False, True)
    assert first.session == second.session
    assert first.preflight is not None
    assert second.preflight is None
    assert [tree.id for tree in record.artifacts] == ["notes"]
    assert record.native is not None
    assert len(record.native.boundaries) == 1
    assert record.skills is not None
    assert [one.skill for one in record.skills.seen] == ["guide"]


def measured(trial: Trial) -> tuple[Any, Any]:
    return trial.metrics["tokens.input"], trial.metrics["tokens.output"]
