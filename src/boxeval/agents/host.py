"""What boxeval knows of an agent of others: how to start a turn of it, and how to read what it says of the turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from boxeval.agents.interface import ModelAccess
from boxeval.agents.preparation import PluginProgram
from boxeval.agents.stream import Output, Reading
from boxeval.spec.agent_record import NativeSession
from boxeval.spec.host_options import HostOptions

HOST_ID = "boxeval.host."
"""Ids in evidence are this and the name; the command line and suites take the name alone (G55)."""


NO_MODEL = ModelAccess("", "", "")
"""Of a turn that asks no model."""


@dataclass(frozen=True, slots=True)
class Request:
    """One turn that is asked for. `session` is what the turn before it told, if the agent shall go on with it."""

    prompt: str
    model: ModelAccess
    options: HostOptions
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """How a turn is started: the program, what its environment has beside every candidate's, its standard input."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""


def _no_files(_options: HostOptions) -> dict[str, bytes]:
    return {}


@dataclass(frozen=True, slots=True)
class Host:
    """One agent.

    `native` reads what its own session files, by their path, tell of the session of the stream.
    `version` is the command that says its version. `sessions` are the subtrees of its home with its own transcripts.
    `continues`: a later turn goes on with the session of the one before. `files` are put into its empty home before
    the first turn, by their relative path. `readers` are those of other entrypoints, by their names. `background`: the
    models that it asks beside its own, for what is no part of the conversation (`boxeval.gateway.names`).
    `configuration`: what it takes for its own in a workspace.
    """

    name: str
    version: tuple[str, ...]
    protocols: tuple[str, ...]
    command: Callable[[Request], Command]
    read: Callable[[Output], Reading]
    readers: Mapping[str, Callable[[Output], Reading]] = field(default_factory=dict)
    background: tuple[str, ...] = ()
    configuration: tuple[str, ...] = ()
    plugins: PluginProgram | None = None
    sessions: tuple[str, ...] = ()
    native: Callable[[Mapping[str, bytes], str | None], NativeSession] | None = None
    continues: bool = False
    files: Callable[[HostOptions], Mapping[str, bytes]] = _no_files

    def reader(self, options: HostOptions) -> Callable[[Output], Reading]:
        """What reads the stream of a turn with these settings."""
        return self.readers.get(options.entrypoint or "", self.read)

    @property
    def id(self) -> str:
        """Its name in evidence."""
        return HOST_ID + self.name
