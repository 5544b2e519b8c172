"""What went out of a box through the gateway's forward proxy."""

from __future__ import annotations

from pydantic import Field

from boxeval.spec.base import Natural, Record


class EgressHost(Record):
    """All attempts to reach one host and port. `host` is what was asked for, escaped where it is no name."""

    host: str
    port: Natural
    reached: Natural = 0
    refused: Natural = 0
    reason: str | None = Field(None, description="Of the first refusal.")
    sent_bytes: Natural = 0
    received_bytes: Natural = 0


class EgressTraffic(Record):
    """What a trial asked the proxy for, in the order of first attempts. None where its policy has no allowlist."""

    hosts: tuple[EgressHost, ...] = ()
    left_out: Natural = Field(0, description="Attempts to reach further hosts than are listed.")
