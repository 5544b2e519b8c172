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
from boxeval.sandbox.images import agent_image_states, ensure
from boxeval.settings import Settings
from boxeval.spec.agent_record import CallEnd, ClaimedUsage, TurnEnd
from boxeval.spec.trial import Trial
from engine_runs import forget, run, settings_in, write_suite

pytestmark = [pytest.mark.engine, pytest.mark.slow]

FIX = "sed -i 's/a - b/a + b/' calc.py"
DONE = "I mended add in calc.py."


FIXED = "def add(a, b):\n    return a + b\n"
TWO = ClaimedUsage(input=200, output=40)
LEAN = ("codex", "claude", "opencode", "mini-swe-agent")
"""Those whose images `make test` builds. The others are large and slow to start; `make agents` has them all."""


@dataclass(frozen=True)
class Case:
    """An agent, what a model says to it, and what it tells of that. A request has 100 and 20 tokens."""

    agent: str
    turns: tuple[dict[str, Any], ...]
    call: str | None
    usage: ClaimedUsage | None = TWO
    message: str = DONE
    host: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    prompt: str = "Mend add in calc.py."


def call(tool: str, **given: object) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "input": given}]}


SAYS = {"text": DONE}
# It ends by a command, whose further output is what it hands in.
SUBMITS = call("bash", command=f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo {DONE}")
# It edits by what the model writes; a model that it does not know writes whole files.
WRITES = f"{DONE}\n\n#### How\n\ncalc.py\n```python\n{FIXED}```"
# An agent that is spawned on another model is no turn of the conversation.
SPAWNS = {
    "tool": "Agent",
    "input": {"description": "look", "prompt": "look", "model": "haiku", "run_in_background": False},
}
MENDS = {"tool": "Bash", "input": {"command": FIX, "description": "mend it"}}
MARKETPLACE = {
    ".claude-plugin/marketplace.json": json.dumps(
        {"name": "tools", "owner": {"name": "us"}, "plugins": [{"name": "notes", "source": "./notes"}]}
    ),
    "notes/.claude-plugin/plugin.json": '{"name": "notes", "version": "1.0.0", "description": "Notes."}',
    "notes/skills/take/SKILL.md": "---\nname: take\ndescription: Notes.\n---\nAlways take notes.\n",
}
HOOKED = json.dumps(
    {
        "hooks": {
            "PostToolUse": [
                {"matcher": "*", "hooks": [{"type": "command", "command": "touch /workspace/hooked"}]}
            ]
        }
    }
)
"""What a fixture might have an agent do by configuration of its own."""
GUIDE = "---\nname: guide\ndescription: A guide.\n---\nMend what is asked for.\n"
CASES = [
    Case(
        "codex",
        (call("exec_command", cmd=FIX), SAYS),
        "command_execution",
        host={"fixtureConfiguration": "inert"},
        files={".codex/hooks.json": HOOKED},
    ),
    Case(
        "codex",
        (call("exec_command", cmd=FIX), SAYS),
        "commandExecution",
        None,
        host={"entrypoint": "app-server", "invoke": "$guide"},
        files={".agents/skills/guide/SKILL.md": GUIDE},
        prompt="Mend add in calc.py, by $guide.",
    ),
    Case(
        "claude",
        ({"calls": [MENDS, SPAWNS]}, SAYS),
        "Bash",
        host={
            "fixtureConfiguration": "inert",
            "plugins": {"marketplace": {"files": MARKETPLACE}, "install": ["notes"]},
        },
        files={".claude/settings.json": HOOKED},
    ),
    Case("mini-swe-agent", (call("bash", command=FIX), SUBMITS), "bash"),
    Case("opencode", (call("bash", command=FIX, description="mend it"), SAYS), "bash"),
    Case("gemini", (call("run_shell_command", command=FIX), SAYS), "run_shell_command"),
    Case("aider", ({"text": WRITES},), None, ClaimedUsage(input=100, output=20), WRITES),
]


def suite_of(case: Case) -> str:
    files = {"calc.py": "def add(a, b):\n    return a - b\n", **case.files}
    check = "import calc; assert calc.add(2, 3) == 5"
    task = {
        "id": "repair",
        "workspace": {"kind": "inline", "files": files},
        "runner": {
            "kind": "agent",
            "agent": case.agent,
            "prompt": case.prompt,
            "script": {"turns": case.turns},
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
    return "-".join((case.agent, *filter(None, [case.host.get("entrypoint")])))


def blob(directory: Path, sha256: str | None) -> bytes:
    assert sha256 is not None
    return BlobStore(directory / "blobs").get(sha256)


@pytest.mark.parametrize("case", CASES, ids=names)
@pytest.mark.contract("G38", "G39", "G40", "G41", "G42", "G49", "G50", "G51", "G52", "G55", "G56")
def test_an_agent_mends_the_bug(case: Case, tmp_path: Path, engine: Engine, settings: Settings) -> None:
    if case.agent not in LEAN and not agent_image_states(engine)[case.agent].built:
        pytest.skip(
            f"NOTHING IS PROVED HERE of {case.agent}: its image is not built. `make agents` does that"
        )
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
    assert blob(end.directory, message.sha256).decode().strip() == case.message
    found = [(one.name, one.end) for one in turn.calls]
    assert found[:1] == ([(case.call, CallEnd.COMPLETED)] if case.call else [])
    assert record.transcripts is not None
    assert record.transcripts.status == "complete"
    assert record.transcripts.files
    assert turn.preflight is not None
    assert turn.preflight.version
    wire = case.usage or TWO
    assert measured(trial) == (wire.input, wire.output)
    traffic = trial.observations.traffic
    assert traffic is not None
    assert traffic.background_requests == (case.agent == "claude")
    claimed = turn.usage and (turn.usage.input, turn.usage.output)
    assert claimed == (case.usage and (case.usage.input, case.usage.output)), turn.usage_reason
    (events,) = turn.artifacts
    assert (events.id, events.status) == (f"boxeval.host.{case.agent}.events", "complete")
    assert blob(end.directory, events.sha256)
    collected = trial.observations.collected
    assert collected is not None
    assert collected.patch is not None
    assert b"+    return a + b" in blob(end.directory, collected.patch.sha256)
    assert [change.path for change in collected.changes] == ["calc.py"]
    assert (turn.invocation and turn.invocation.status) == ("complete" if "invoke" in case.host else None)
    installed = turn.preparation.plugins if turn.preparation else ()
    assert [plugin.id for plugin in installed] == (["notes@tools"] if "plugins" in case.host else [])


CONTINUED = """
models:
  m:
    script:
      turns:
        - {calls: [{tool: exec_command, input: {cmd: "cd; mkdir notes; echo kept > notes/a.txt; echo hidden > b.txt"}}]}
        - {text: "I took a note."}
        - calls:
            - {tool: exec_command, input: {cmd: "cp ~/notes/a.txt note.txt; cat ~/.codex/skills/guide/SKILL.md"}}
            - {tool: spawn_agent, input: {message: "Look at the note."}}
        - {text: "I copied it."}
        - {text: "I copied it."}  # the one is the child's, whichever
        - {text: "I copied it."}  # asked for only if the child ends while the root's turn is still open
tasks:
  - id: twice
    workspace: {kind: inline, files: {a.txt: "one"}}
    runner:
      kind: agent
      agent: codex
      host:
        transcripts: true
        artifacts: {notes: notes}
        skills: {guide: "---\\nname: guide\\n---\\nTake notes.\\n"}
        plugins: {marketplace: market, install: [notes]}
        invoke: $notes:take
    requiredEvidence:
      - boxeval.host.codex.native-calls
      - boxeval.host.transcripts
      - boxeval.host.skill-activations
      - sevro.codex.explicit-invocation
    steps: [{id: first, prompt: "Take a note by $notes:take."}, {id: second, prompt: "Copy the note."}]
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


@pytest.mark.contract("G36", "G37", "G43", "G45", "G46", "G47", "G48", "G51", "V2")
def test_a_second_prompt_goes_on_in_the_same_state_and_graders_see_what_was_declared(
    tmp_path: Path, engine: Engine, settings: Settings
) -> None:
    del engine
    head = HEAD.replace("timeoutMs: 120000", "timeoutMs: 120000, model: m")
    for path, text in MARKETPLACE.items():
        (tmp_path / "market" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "market" / path).write_text(text)
    end, verified = run(write_suite(tmp_path, CONTINUED, head), settings)
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
    assert first.preparation is not None
    assert [plugin.id for plugin in first.preparation.plugins] == ["notes@tools"]
    assert second.preparation is None
    assert first.invocation is not None
    assert second.invocation is None
    assert trial.observations.traffic is not None
    # Codex itself put what the skill says before the model.
    requests = blob(end.directory, trial.observations.traffic.log).splitlines()
    assert b"Always take notes." in requests[0]
    assert record.native is not None
    assert len(record.native.boundaries) == 1
    assert [one.name for one in record.native.calls] == ["spawn_agent"]
    assert record.native.calls[0].ordinal > record.native.boundaries[0]
    assert len(record.native.children) == 1
    assert record.skills is not None
    assert [one.skill for one in record.skills.seen] == ["guide"]


def measured(trial: Trial) -> tuple[Any, Any]:
    return trial.metrics["tokens.input"], trial.metrics["tokens.output"]
