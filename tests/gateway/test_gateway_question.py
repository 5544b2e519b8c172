"""A question of the controller's own, for a judge: in the protocol that the model speaks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from gateway_client import script

from boxeval.gateway.client import Client, NoAnswer
from boxeval.gateway.interface import Usage
from boxeval.gateway.keyring import Keyring, Secret
from boxeval.gateway.server import Gateway
from boxeval.gateway.sources import Sources, plain_wire
from boxeval.spec.models import PlannedReplay, PlannedUpstream
from provider import answers, fails, provider

KEY = "sk-canary-0123456789"


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_a_scripted_model_answers_in_either_protocol(gateway: Gateway, wire: str) -> None:
    route = gateway.open_route(script({"text": "Yes."}, {"refusal": "no"}))
    client = Client(gateway.socket_path, route.path, "scripted", 10, wire)
    assert client.ask("You judge.", "Is it good?") == "Yes."
    with pytest.raises(NoAnswer):
        client.ask("You judge.", "Is it good?")


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_a_real_model_is_asked_and_its_faults_are_told(wire: str) -> None:
    with provider(answers("Yes.", Usage(5, 1))) as playing, tempfile.TemporaryDirectory() as directory:
        sources = Sources(Keyring({"KEY": Secret(KEY, playing.url)}, {}))
        with Gateway(Path(directory) / "s", sources) as gateway:
            route = gateway.open_route(PlannedUpstream(base_url=playing.url, model="big", key="KEY"))
            client = Client(gateway.socket_path, route.path, "big", 10, wire)
            assert client.ask("You judge.", "Is it good?") == "Yes."
            ((_, _, body),) = playing.asked
            assert "Is it good?" in str(body["messages"])
            assert "You judge." in str(body)
            playing.act = fails(500, "broken")
            with pytest.raises(NoAnswer, match=r"status 500: .*broken"):
                client.ask("You judge.", "Is it good?")


def test_the_protocol_is_one_that_the_model_speaks() -> None:
    assert plain_wire(script({"text": "x"})) == "chat"
    for url, wire in (
        ("https://api.openai.com/v1", "chat"),
        ("https://api.anthropic.com/v1", "messages"),
        ("http://127.0.0.1:8000/v1", "chat"),
    ):
        assert plain_wire(PlannedUpstream(base_url=url, model="m")) == wire
    for wires, wire in ((("chat", "messages"), "chat"), (("messages",), "messages")):
        assert plain_wire(PlannedReplay(cassette="0" * 64, model="m", wires=wires)) == wire
