"""Trajectories out of the traffic, in each protocol; Harbor's own models read them (P15)."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import report_samples
import run_samples as samples
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.reports.formats import Format, render
from boxeval.spec.models import Script, Text
from boxeval.spec.suite import Runner, RunnerKind
from boxeval.verdicts.aggregate import aggregate

Exchange = tuple[str, dict[str, Any], Any]
RUN = {"cmd": "ls"}
USER = {"role": "user", "content": "Do it."}


def chat(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"model": "scripted", "messages": [USER, *messages]}


def chat_answer(message: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return {"id": "a", "object": "chat.completion", "choices": [{"message": message}], "usage": usage}


CALLING = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": json.dumps(RUN)}}
    ],
}
CHAT: list[Exchange] = [
    ("/v1/chat/completions", chat(), chat_answer(CALLING)),
    (
        "/v1/chat/completions",
        chat(CALLING, {"role": "tool", "tool_call_id": "c1", "content": "calc.py"}),
        chat_answer({"role": "assistant", "content": "Done."}),
    ),
]
BLOCK = {"type": "tool_use", "id": "c1", "name": "bash", "input": RUN}
M_USAGE = {"input_tokens": 100, "output_tokens": 20}
MESSAGES: list[Exchange] = [
    ("/v1/messages", chat(), {"type": "message", "content": [BLOCK], "usage": M_USAGE}),
    (
        "/v1/messages",
        chat(
            {"role": "assistant", "content": [BLOCK]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "calc.py"}]},
        ),
        {"type": "message", "content": [{"type": "text", "text": "Done."}], "usage": M_USAGE},
    ),
]
ITEM = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": json.dumps(RUN)}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
R_USAGE = {"input_tokens": 100, "output_tokens": 20}
RESPONSES: list[Exchange] = [
    (
        "/v1/responses",
        {"model": "scripted", "input": [USER]},
        {"object": "response", "output": [ITEM], "usage": R_USAGE},
    ),
    (
        "/v1/responses",
        {
            "model": "scripted",
            "input": [USER, ITEM, {"type": "function_call_output", "call_id": "c1", "output": "calc.py"}],
        },
        {"object": "response", "output": [SAID], "usage": R_USAGE},
    ),
]
PATH = "/v1/models/scripted:streamGenerateContent"
PART = {"functionCall": {"id": "c1", "name": "bash", "args": RUN}}
G_USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 20}


def parts(*given: dict[str, Any], role: str = "model") -> dict[str, Any]:
    return {"role": role, "parts": list(given)}


def candidate(*given: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": parts(*given)}], "usageMetadata": G_USAGE}


ASKED = parts({"text": "Do it."}, role="user")
RESULT = parts({"functionResponse": {"id": "c1", "response": "calc.py"}}, role="user")
GEMINI: list[Exchange] = [
    (PATH, {"contents": [ASKED]}, candidate(PART)),
    (PATH, {"contents": [ASKED, parts(PART), RESULT]}, candidate({"text": "Done."})),
]


def streamed(log: list[Exchange], *answers: list[dict[str, Any]]) -> list[Exchange]:
    """The same with answers in the events that a provider sends."""
    told = ["".join(f"data: {json.dumps(event)}\n\n" for event in events) for events in answers]
    return [(path, request, text) for (path, request, _), text in zip(log, told, strict=True)]


def choices(*deltas: dict[str, Any]) -> list[dict[str, Any]]:
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return [*({"choices": [{"delta": delta}]} for delta in deltas), {"choices": [], "usage": usage}]


def piece(text: str, **more: Any) -> dict[str, Any]:
    return {
        "tool_calls": [{"index": 0, "function": {"arguments": text, **more}, "id": "c1" if more else None}]
    }


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    begun: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 100, "output_tokens": 1}}},
        {"type": "content_block_start", "index": index, "content_block": start},
    ]
    begun += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*begun, {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 20}}]


def done(item: dict[str, Any]) -> list[dict[str, Any]]:
    ended = {"type": "response.completed", "response": {"id": "r", "usage": R_USAGE, "output": [item]}}
    return [{"type": "response.output_item.done", "item": item}, ended]


STREAMED = {
    "chat": streamed(
        CHAT,
        choices(piece('{"cmd"', name="bash"), piece(': "ls"}')),
        choices({"content": "Do"}, {"content": "ne."}),
    ),
    "messages": streamed(
        MESSAGES,
        block(
            0,
            {"type": "tool_use", "id": "c1", "name": "bash", "input": {}},
            *({"type": "input_json_delta", "partial_json": part} for part in ('{"cmd"', ': "ls"}')),
        ),
        block(0, {"type": "text", "text": ""}, {"text": "Do"}, {"text": "ne."}),
    ),
    "responses": streamed(RESPONSES, done(ITEM), done(SAID)),
    "gemini": streamed(GEMINI, [candidate(PART)], [candidate({"text": "Do"}), candidate({"text": "ne."})]),
}
WHOLE = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES, "gemini": GEMINI}
HOSTILE: list[Exchange] = [
    ("/v1/chat/completions", {"model": 7}, "not JSON"),
    ("/v1/chat/completions", chat(), {"choices": "no"}),
    ("/v1/messages", chat(), {"content": [{"type": "tool_use"}, 5], "usage": "x"}),
    ("/v1/elsewhere", chat(), {}),
    *(
        (path, request, 'data: {"index": [], "choices": [{"delta": {"tool_calls": [{"index": []}]}}]}\n\n')
        for path, request, _ in (CHAT[0], MESSAGES[0], RESPONSES[0], GEMINI[0])
    ),
    (CHAT[0][0], {**CHAT[0][1], "model": "another"}, CHAT[0][2]),
]


def sealed(directory: Path, *logs: list[Exchange] | None) -> VerifiedRun:
    runner = Runner(kind=RunnerKind.AGENT, agent="codex", prompt="Mend it. ä")
    script = Script(turns=(Text(text="x"),))
    tasks = [samples.task(f"t{number}", runner=runner, model=script) for number, _ in enumerate(logs)]
    planned = samples.plan(*tasks)
    ledger = Ledger.create(directory, planned, report_samples.KEY, now=lambda: samples.NOON)
    for place, log in zip(planned.trials, logs, strict=True):
        traffic = None
        if log is not None:
            lines = [{"path": p, "status": 200, "request": q, "response": a} for p, q, a in log]
            text = "".join(json.dumps(line) + "\n" for line in lines)
            traffic = samples.traffic(log=ledger.blobs.put(text.encode()))
        ledger.append(samples.trial(planned.task_of(place), samples.seen(traffic=traffic)))
    ledger.close()
    return verify(directory, Trust((report_samples.KEY.trusted("test"),)))


def lines_of(run: VerifiedRun) -> str:
    text = render(Format.ATIF, aggregate(run), run)
    assert text.isascii()
    return text


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WHOLE)
@pytest.mark.contract("P15")
def test_a_conversation_is_the_same_steps_in_every_protocol(
    tmp_path: Path, wire: str, is_streamed: bool
) -> None:
    log = (STREAMED if is_streamed else WHOLE)[wire]
    (line,) = lines_of(sealed(tmp_path / "run", log)).splitlines()
    found = json.loads(line)
    metrics = {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 0}
    assert found["schema_version"] == "ATIF-v1.7"
    assert found["agent"]["name"] == "codex"
    first, second, third = found["steps"]
    assert (first["source"], first["message"][:8]) == ("user", "Mend it.")
    assert second["tool_calls"] == [{"tool_call_id": "c1", "function_name": "bash", "arguments": RUN}]
    told = '"calc.py"' if wire == "gemini" else "calc.py"  # there a result is JSON
    assert second["observation"] == {"results": [{"source_call_id": "c1", "content": told}]}
    assert (third["source"], third["message"], third["metrics"]) == ("agent", "Done.", metrics)
    assert [step["step_id"] for step in found["steps"]] == [1, 2, 3]
    # The totals are the gateway's own, not a sum of what was told.
    assert found["final_metrics"]["total_prompt_tokens"] == 200


def test_what_a_provider_did_not_stream_is_read_too_and_nothing_but_json_comes_out(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"n": NaN}'}}
    answer = chat_answer({"role": "assistant", "content": "I try.", "tool_calls": [call]})
    (line,) = lines_of(
        sealed(tmp_path / "run", [("/v1/chat/completions", chat(), json.dumps(answer))])
    ).splitlines()
    found = json.loads(line, parse_constant=pytest.fail)
    assert found["steps"][1]["message"] == "I try."
    assert found["steps"][1]["tool_calls"][0]["arguments"] == {"input": '{"n": NaN}'}


def test_a_trial_without_traffic_and_a_hostile_log_have_a_trajectory_too(tmp_path: Path) -> None:
    for line in lines_of(sealed(tmp_path / "run", None, HOSTILE)).splitlines():
        steps = json.loads(line)["steps"]
        assert steps[0]["source"] == "user"
        assert all(step.get("model_name") in (None, "scripted") for step in steps)


@pytest.mark.slow
@pytest.mark.contract("P15")
def test_harbor_s_own_models_read_them(tmp_path: Path) -> None:
    """Its package is fetched without what it depends on: its models need pydantic alone."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    wanted = ["--python-version", "3.12", "-d", str(tmp_path / "wheel"), "harbor==0.26.0"]
    done = subprocess.run([*command, *wanted], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.fail(
            f"harbor cannot be fetched here, so nothing is proved of it: {done.stderr.decode()[-300:]}"
        )
    (wheel,) = (tmp_path / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "harbor")
    text = lines_of(sealed(tmp_path / "run", *WHOLE.values(), *STREAMED.values(), None, HOSTILE))
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from harbor.models.trajectories import Trajectory\n"
        "print(sum(len(Trajectory.model_validate_json(line).steps) > 0 for line in sys.stdin))\n"
    )
    checked = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "harbor")],
        input=text.encode(),
        capture_output=True,
        check=False,
    )
    assert checked.stdout.strip() == b"10", checked.stderr.decode()[-2000:]
