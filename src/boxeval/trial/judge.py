"""The judge of a trial: a route of its own to a model, which no box can reach. Asked at most once for each exchange."""

from __future__ import annotations

from boxeval.gateway.client import Client, NoAnswer
from boxeval.gateway.server import Route
from boxeval.gateway.sources import name_of, plain_wire
from boxeval.graders.interface import Bench
from boxeval.graders.judged import NoDocument, document_of
from boxeval.rules.judging import Exchange
from boxeval.spec.graded import EvidencePart
from boxeval.spec.judged import MESSAGE, Judged
from boxeval.spec.trial import ModelTraffic
from boxeval.trial.cancel import Cancelled
from boxeval.trial.context import TrialContext


class Judge:
    """Opens the route when it is first asked. `judged` are all exchanges so far, in the order of asking."""

    def __init__(self, context: TrialContext) -> None:
        self._context = context
        self._route: Route | None = None
        self._judged: dict[tuple[str, str | None], Judged] = {}

    @property
    def judged(self) -> tuple[Judged, ...]:
        """What there is to seal."""
        return tuple(self._judged.values())

    def ask(self, exchange: Exchange, bench: Bench) -> Judged:
        """Show the judge the exchange's text and ask about it. Raises Cancelled."""
        key = exchange.source, exchange.check
        if key not in self._judged:
            self._judged[key] = self._ask(exchange, bench)
        return self._judged[key]

    def close(self) -> ModelTraffic | None:
        """End the route and say what went over it; None if the judge was never asked."""
        if self._route is None:
            return None
        closed = self._context.gateway.close_route(self._route.token)
        self._route = None
        log = self._context.blobs.put(closed.log) if closed.log else None
        return closed.traffic.model_copy(update={"log": log})

    def _ask(self, exchange: Exchange, bench: Bench) -> Judged:
        draft = Judged(source=exchange.source, check=exchange.check)
        try:
            if exchange.source == MESSAGE:
                name, content = MESSAGE, bench.message_text()
            else:
                name, content = document_of(exchange, bench)
        except NoDocument as fault:
            return draft.model_copy(update={"error": str(fault)})
        document = EvidencePart(name=name, sha256=self._context.blobs.put(content))
        shown = draft.model_copy(update={"document": document})
        question = exchange.question(content.decode("utf-8", "replace"))
        client = self._client()
        try:
            with self._context.cancel.watching(client):
                return shown.model_copy(update={"answer": client.ask(exchange.system, question)})
        except NoAnswer as fault:
            if self._context.cancel.is_set:
                raise Cancelled from None
            return shown.model_copy(update={"error": f"the judge failed: {fault}"})

    def _client(self) -> Client:
        task, gateway = self._context.task, self._context.gateway
        if task.judge is None:
            raise ValueError("the plan names no judge")
        if self._route is None:
            self._route = gateway.open_route(task.judge)
        timeout_s = task.grader_timeout_ms / 1000
        wire = plain_wire(task.judge)
        return Client(gateway.socket_path, self._route.path, name_of(task.judge), timeout_s, wire)
