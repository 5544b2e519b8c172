"""The reader of an extension's responses, on everything that a process can write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from boxeval.graders.extension_exchange import ProtocolFault, encode, make_request, read_answer
from boxeval.spec.extension import (
    MESSAGE_BYTES,
    EvaluateResult,
    Method,
)
from extension_samples import ASKED, DESCRIBED, box, check, evaluation

REQUEST = make_request("boxeval", Method.DESCRIBE, ASKED)


def response(**more: Any) -> dict[str, Any]:
    return {
        "protocol": "boxeval.discovery.v1",
        "id": REQUEST.id,
        "method": "describe",
        "result": DESCRIBED,
        **more,
    }


def without(*names: str) -> bytes:
    return json.dumps({name: value for name, value in response().items() if name not in names}).encode()


def read(data: bytes, **command: Any) -> Any:
    return read_answer(REQUEST, box(len(data), **command), data)


@pytest.mark.contract("G65")
def test_a_request_has_an_envelope_and_an_answer_echoes_it() -> None:
    sent = json.loads(encode(REQUEST))
    assert sorted(sent) == ["id", "method", "params", "protocol"]
    assert (sent["protocol"], sent["method"]) == ("boxeval.discovery.v1", "describe")
    assert make_request("boxeval", Method.DESCRIBE, ASKED).id != REQUEST.id
    assert make_request("sevro", Method.DESCRIBE, ASKED).protocol == "sevro.discovery.v1"
    evaluate = make_request("boxeval", Method.EVALUATE, evaluation())
    assert evaluate.protocol == "boxeval.extension.v1"
    result = read(json.dumps(response()).encode() + b"\n")
    assert result.extension.id == "example.words"


SMUGGLED = json.dumps(response()).encode()
BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "without an answer"),
    "blank": (b"\n", "not one JSON document"),
    "no JSON": (b"all is well", "not one JSON document"),
    "half": (SMUGGLED[:-1], "not one JSON document"),
    "two responses": (SMUGGLED + b"\n" + SMUGGLED, "not one JSON document"),
    "a line before": (b"loading...\n" + SMUGGLED, "not one JSON document"),
    "a line after": (SMUGGLED + b"\nbye", "not one JSON document"),
    "a byte order mark": (b"\xef\xbb\xbf" + SMUGGLED, "not one JSON document"),
    "not UTF-8": (b'{"a": "\xff"}', "not UTF-8"),
    "ANSI": (b"\x1b[32m" + SMUGGLED + b"\x1b[0m", "not one JSON document"),
    "NaN": (SMUGGLED.replace(b'"version": "1"', b'"version": NaN'), "NaN is not JSON"),
    "a doubled key": (SMUGGLED[:-1] + b', "id": "x"}', "the key 'id' is there twice"),
    "deep": (b"[" * 100_000 + b"]" * 100_000, "nested deeper"),
    "deep, never closed": (b'{"a":' * 100_000, "nested deeper"),
    "a huge integer": (b'{"id": ' + b"9" * 5000 + b"}", "out of range"),
    "a number that no receipt carries": (SMUGGLED[:-1] + b', "note": 1e17}', "too large to be sealed"),
    "deeper than a receipt has room for": (
        SMUGGLED[:-1] + b', "note": ' + b"[" * 49 + b"]" * 49 + b"}",
        "nested deeper than 48",
    ),
    "an array": (b"[]", "not a JSON object"),
    "a string": (b'"passed"', "not a JSON object"),
    "another id": (json.dumps(response(id="guessed")).encode(), "has id 'guessed'"),
    "no id": (without("id"), "has id none"),
    "an id of another type": (json.dumps(response(id=[REQUEST.id])).encode(), "has id ["),
    "another method": (json.dumps(response(method="evaluate")).encode(), "has method 'evaluate'"),
    "another protocol": (
        json.dumps(response(protocol="boxeval.extension.v1")).encode(),
        "has protocol 'boxeval.extension.v1'",
    ),
    "neither": (without("result"), "exactly one of `result` and `error`"),
    "both": (
        json.dumps(response(error={"code": "a.b", "message": "x"})).encode(),
        "exactly one of `result` and `error`",
    ),
    "a null error": (json.dumps(response(error=None)).encode(), "exactly one of `result` and `error`"),
    "an unknown field": (json.dumps(response(note="hi")).encode(), "does not follow the schema at note"),
    "an unknown field inside": (
        json.dumps(response(result={**DESCRIBED, "trusted": True})).encode(),
        "does not follow the schema at result.trusted",
    ),
    "a missing field": (
        json.dumps(response(result={"protocols": ["boxeval.extension.v1"]})).encode(),
        "does not follow the schema at result.extension",
    ),
    "half a character": (
        SMUGGLED.replace(b'"version": "1"', b'"version": "\\ud800"'),
        "cannot be sealed",
    ),
    "a result of another type": (
        json.dumps(response(result="passed")).encode(),
        "does not follow the schema at result",
    ),
}


@pytest.mark.contract("G65", "G7")
@pytest.mark.parametrize("case", BAD)
def test_what_is_no_answer_is_a_fault(case: str) -> None:
    data, reason = BAD[case]
    with pytest.raises(ProtocolFault) as caught:
        read(data)
    assert str(caught.value).startswith("describe: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.contract("G65", "G7")
@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ({"exit_code": 1}, "exited 1"),
        ({"exit_code": None, "signal": 9}, "signal 9"),
        ({"timed_out": True, "exit_code": None, "signal": 9, "wall_ms": 30_001}, "no answer in time"),
        ({"exit_code": None, "spawn_error": "ENOENT"}, "cannot be started: ENOENT"),
    ],
)
def test_a_good_answer_of_a_process_that_ended_badly_is_a_fault(ending: dict[str, Any], reason: str) -> None:
    with pytest.raises(ProtocolFault, match=reason):
        read(SMUGGLED, **ending)


def test_a_box_that_broke_or_ran_out_of_memory_gives_no_answer() -> None:
    good = box(len(SMUGGLED))
    for update, reason in (
        ({"error": "the engine is gone"}, "the engine is gone"),
        ({"oom_kills": 1}, "ran out of memory"),
        ({"commands": ()}, "left no report"),
    ):
        with pytest.raises(ProtocolFault, match=reason):
            read_answer(REQUEST, good.model_copy(update=update), SMUGGLED)


@pytest.mark.contract("G64", "G73")
def test_the_edges_of_a_message() -> None:
    padded = SMUGGLED + b" " * (MESSAGE_BYTES - len(SMUGGLED))
    assert read(padded).extension.id == "example.words"
    with pytest.raises(ProtocolFault, match="8388609 bytes, more than 8388608"):
        # A larger answer is refused by what was counted: only its head and its tail are there.
        read_answer(REQUEST, box(MESSAGE_BYTES + 1), padded)
    with pytest.raises(ProtocolFault, match="104857600 bytes"):
        read_answer(REQUEST, box(100 * 1024 * 1024), padded)
    empty = len(encode(make_request("boxeval", Method.EVALUATE, evaluation(configuration={"a": ""}))))
    room = MESSAGE_BYTES - empty
    at = make_request("boxeval", Method.EVALUATE, evaluation(configuration={"a": "x" * room}))
    assert len(encode(at)) == MESSAGE_BYTES
    past = make_request("boxeval", Method.EVALUATE, evaluation(configuration={"a": "x" * (room + 1)}))
    with pytest.raises(ProtocolFault, match="the request would have"):
        encode(past)


@pytest.mark.contract("G65")
def test_an_error_is_told_and_bounded() -> None:
    def failing(message: str) -> bytes:
        error = {"code": "example.broken", "message": message}
        envelope = {name: value for name, value in response().items() if name != "result"}
        return json.dumps({**envelope, "error": error}).encode()

    with pytest.raises(ProtocolFault, match=r"the error example\.broken: no\s+tests"):
        read(failing("no\ntests"))
    with pytest.raises(ProtocolFault, match=r"the error example\.broken: x+…"):
        read(failing("x" * 4096))
    with pytest.raises(ProtocolFault, match=r"schema at error\.message"):
        read(failing("x" * 4097))
    with pytest.raises(ProtocolFault, match=r"schema at error\.message"):
        read(failing(""))


def evaluate_answer(*checks: dict[str, Any], **more: Any) -> EvaluateResult:
    request = make_request("boxeval", Method.EVALUATE, evaluation())
    envelope = {"protocol": request.protocol, "id": request.id, "method": "evaluate"}
    data = json.dumps({**envelope, "result": {"checks": list(checks), "metrics": [], **more}}).encode()
    result = read_answer(request, box(len(data)), data)
    assert isinstance(result, EvaluateResult)
    return result


@pytest.mark.contract("G66", "G73")
def test_results_are_counted_and_typed() -> None:
    many = [check("failed", name=f"example.words.c{n}") for n in range(128)]
    assert len(evaluate_answer(*many).checks) == 128
    with pytest.raises(ProtocolFault, match=r"schema at result\.checks"):
        evaluate_answer(*many, check("failed", name="example.words.last"))
    metric = {"id": "example.words.n", "value": None, "unit": "words"}
    assert evaluate_answer(metrics=[metric]).metrics[0].value is None
    for value in (True, "3"):
        with pytest.raises(ProtocolFault, match=r"schema at result\.metrics"):
            evaluate_answer(metrics=[{**metric, "value": value}])
    with pytest.raises(ProtocolFault, match=r"schema at result\.checks\.0\.status"):
        evaluate_answer(check("pass"))
    with pytest.raises(ProtocolFault, match=r"schema at result\.checks\.0\.detail"):
        evaluate_answer({**check("failed"), "detail": "x" * 4097})
