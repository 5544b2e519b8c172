"""`agents`: the agents of others that boxeval can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from boxeval.cli.output import say, say_json, warn
from boxeval.cli.places import Json
from boxeval.errors import UsageError
from boxeval.reports.escape import escape

if TYPE_CHECKING:
    from boxeval.agents.host import Host

agents_app = typer.Typer(no_args_is_help=True, help="List and check the agents that boxeval can run.")
Names = Annotated[list[str] | None, typer.Argument(help="Agents by name; all of them without one.")]


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(agents_app, name="agents")


@agents_app.command("ls")
def list_all(as_json: Json = False) -> None:
    """List agents: the pinned version, whether the image is built, the protocols that the agent speaks."""
    from boxeval.agents.hosts import HOSTS
    from boxeval.sandbox.engine import connect
    from boxeval.sandbox.images import agent_image_states

    states = agent_image_states(connect())
    rows = [
        {
            "name": host.name,
            "version": states[host.name].version,
            "image": states[host.name].tag,
            "built": states[host.name].built,
            "protocols": list(host.protocols),
            "continues": host.continues,
        }
        for host in HOSTS.values()
    ]
    if as_json:
        say_json(rows)
        return
    for row in rows:
        state = "built" if row["built"] else "not built"
        say(f"{row['name']:<15} {row['version']:<9} {state:<9}  {', '.join(host_words(row['protocols']))}")
    if not all(row["built"] for row in rows):
        say("not built: `boxeval images build --agent NAME`, or the first run that needs it, builds it")


def host_words(value: object) -> list[str]:
    """A list of words out of a row."""
    return [str(item) for item in value] if isinstance(value, list) else []


@agents_app.command()
def check(names: Names = None, as_json: Json = False) -> None:
    """Probe agents in real boxes, as before every fresh request. Exits 1 if one is not as it should be."""
    from boxeval.run.agent_check import check_agents
    from boxeval.sandbox.engine import connect
    from boxeval.settings import load_settings

    found = list(check_agents(connect(), _hosts(names or []), load_settings(), warn))
    bad = [host.name for host, seen in found if seen.breaches or seen.broken]
    if as_json:
        say_json(
            {"ok": not bad, "agents": [{"name": host.name, **seen.model_dump()} for host, seen in found]}
        )
    for host, seen in found if not as_json else ():
        fault = "; ".join((*seen.breaches, *([seen.broken] if seen.broken else [])))
        state = "RED" if fault else "ok"
        say(f"{state:<4} {host.name:<15} {escape(fault or seen.version or '')}  {seen.wall_ms} ms")
    if bad:
        raise typer.Exit(1)


def _hosts(names: list[str]) -> list[Host]:
    from boxeval.agents.hosts import HOSTS
    from boxeval.spec.metrics import did_you_mean

    for name in names:
        if name not in HOSTS:
            raise UsageError(
                f"there is no agent `{name}`{did_you_mean(name, HOSTS)} (known: {', '.join(HOSTS)})"
            )
    return [HOSTS[name] for name in names or HOSTS]
