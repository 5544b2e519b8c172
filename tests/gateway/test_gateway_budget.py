"""Budgets of a trial and of a run, and the end of a turn: what is over is not served and bills nobody."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from gateway_client import MODEL, Answered, chat, messages, script

from boxeval.gateway.purse import Purse
from boxeval.gateway.server import Gateway
from boxeval.spec.models import Budget, TrialBudget

TURNS = script(*[{"text": "x"}] * 9, input=70, output=30, costUsd=0.1)


@pytest.mark.parametrize(
    ("limits", "served", "code"),
    [
        ({"requests": 2}, 2, "trial_budget_requests"),
        ({"tokens": 200}, 2, "trial_budget_tokens"),
        ({"tokens": 201}, 3, "trial_budget_tokens"),
        ({"cost_usd": 0.3}, 3, "trial_budget_cost"),  # three times 0.1 in decimal, which binary floats miss
        ({"bytes": 1}, 1, "trial_budget_bytes"),
    ],
)
def test_past_a_limit_every_request_is_refused_in_the_protocols_way(
    gateway: Gateway, limits: dict[str, Any], served: int, code: str
) -> None:
    route = gateway.open_route(TURNS, MODEL, TrialBudget(**limits))
    for _ in range(served):
        assert chat(gateway.socket_path, route.path).status == 200
    refused = chat(gateway.socket_path, route.path)
    assert (refused.status, refused.code) == (429, code)
    assert refused.headers["x-should-retry"] == "false"
    other = messages(gateway.socket_path, route.path)
    assert (other.status, other.json["error"]["type"]) == (429, "rate_limit_error")
    traffic = gateway.close_route(route.token).traffic
    assert traffic.requests == served
    assert traffic.limit is not None and traffic.limit.startswith(code)
    assert not traffic.run_budget_spent
    # It is the candidate's own limit: no fault of the model's.
    assert traffic.error is None and not traffic.failed_before_first_turn


def test_seconds_are_those_in_which_answers_were_made(gateway: Gateway) -> None:
    slow = script(*[{"text": "x", "delayMs": 600}] * 3)
    route = gateway.open_route(slow, MODEL, TrialBudget(seconds=1))
    assert [chat(gateway.socket_path, route.path).status for _ in "123"] == [200, 200, 429]


def test_a_runs_budget_is_shared_by_its_trials() -> None:
    purse = Purse(Budget(tokens=250), of_run=True)
    with tempfile.TemporaryDirectory() as directory, Gateway(Path(directory) / "s", purse=purse) as gateway:
        one, two = gateway.open_route(TURNS, MODEL), gateway.open_route(TURNS, MODEL)
        assert chat(gateway.socket_path, one.path).status == 200
        assert chat(gateway.socket_path, two.path).status == 200
        assert chat(gateway.socket_path, one.path).status == 200
        assert chat(gateway.socket_path, two.path).code == "run_budget_tokens"
        assert gateway.close_route(two.token).traffic.run_budget_spent
        assert not gateway.close_route(one.token).traffic.run_budget_spent


def test_a_request_that_fails_is_given_back(gateway: Gateway) -> None:
    route = gateway.open_route(script({"error": 500}, {"text": "x"}), MODEL, TrialBudget(requests=1))
    statuses = [chat(gateway.socket_path, route.path).status for _ in "123"]
    assert statuses == [500, 200, 429]


@pytest.mark.contract("P17")
def test_what_is_on_its_way_when_a_turn_ends_is_not_served_and_bills_nobody(gateway: Gateway) -> None:
    route = gateway.open_route(script({"text": "late", "delayMs": 60_000}, {"text": "next"}), MODEL)
    got: list[Answered] = []
    asking = threading.Thread(target=lambda: got.append(chat(gateway.socket_path, route.path)))
    asking.start()
    time.sleep(0.2)
    began = time.monotonic()
    gateway.pause_route(route.token)
    asking.join(5)
    assert time.monotonic() - began < 2
    assert (got[0].status, got[0].code) == (410, "route_closed")
    late = chat(gateway.socket_path, route.path)
    assert (late.status, late.code) == (410, "route_closed")
    traffic = gateway.close_route(route.token).traffic
    assert (traffic.requests, traffic.input_tokens, traffic.output_tokens) == (0, 0, 0)


@pytest.mark.contract("P17")
def test_a_route_serves_only_while_a_turn_runs(gateway: Gateway) -> None:
    route = gateway.open_route(TURNS, MODEL)
    gateway.pause_route(route.token)
    assert chat(gateway.socket_path, route.path).status == 410
    gateway.resume_route(route.token)
    assert chat(gateway.socket_path, route.path).status == 200
    closed = gateway.close_route(route.token)
    assert closed.traffic.requests == 1
    assert len(closed.log.splitlines()) == 1
