"""clio-coder: `clio-coder run`, and its context commands. The image is the suite's: boxeval has none with this CLI."""

from __future__ import annotations

from boxeval.agents import clio_stream
from boxeval.agents.host import Command, Host, Request

PROGRAM = "clio-coder"
VERSION = (PROGRAM, "--version")


def _run(request: Request) -> Command:
    return Command((PROGRAM, "run", "--json", "--model", request.model.model, request.prompt))


def _index(_request: Request) -> Command:
    return Command((PROGRAM, "context", "index", "--json"))


def _init(_request: Request) -> Command:
    return Command((PROGRAM, "context", "init", "--yes", "--json"))


RUN = Host(
    name="clio",
    version=VERSION,
    protocols=("chat",),
    command=_run,
    read=clio_stream.read,
    sessions=(".local/share/clio-coder",),
)
INDEX = Host(name="clio", version=VERSION, protocols=(), command=_index, read=clio_stream.read_context)
INIT = Host(name="clio", version=VERSION, protocols=(), command=_init, read=clio_stream.read_context)
