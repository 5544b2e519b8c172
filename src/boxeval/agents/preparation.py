"""What is made ready in the box before a fresh request: plugins, a repository's skill, no stray configuration. Pure.

A script does it and looks at the result, inside the very box and before any code of the candidate (G48, G49, G51, G52).
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from boxeval.agents.stream import word
from boxeval.rules.marketplace import Offer, offer_of
from boxeval.rules.skill_token import REPOSITORY, parts_of
from boxeval.sandbox.job import HOME, WORKSPACE, Job
from boxeval.spec.agent_record import InstalledPlugin, Preparation
from boxeval.spec.host_options import HostOptions, Marketplace

MARKETPLACE = ".boxeval/marketplace"
"""In the home."""
PREPARE_S = 60
SKILL_BYTES = 65_536
_STOP = "|| { echo fault %s; exit 0; }"


@dataclass(frozen=True, slots=True)
class PluginProgram:
    """How an agent takes plugins: its commands before the path and the id, and where in the home it keeps them.

    Below `cache` they are at MARKETPLACE/PLUGIN/VERSION.
    """

    add_marketplace: tuple[str, ...]
    add_plugin: tuple[str, ...]
    cache: str


def files(options: HostOptions) -> dict[str, bytes]:
    """The marketplace's files for the home."""
    plugins = options.plugins
    if plugins is None or not isinstance(plugins.marketplace, Marketplace):
        return {}
    return {f"{MARKETPLACE}/{path}": text.encode() for path, text in plugins.marketplace.files.items()}


def job(
    options: HostOptions, program: PluginProgram | None, configuration: tuple[str, ...], turn: Job
) -> Job | None:
    """The job, if there is anything to do before that of the turn.

    `configuration`: what must be neither in the workspace nor in a directory between it and where the turn begins.
    """
    unwanted = () if options.fixture_configuration else configuration
    lines = [
        *_configuration(unwanted, turn.cwd),
        *(_skill(options.invoke) if options.invoke else ()),
        *(_install(offer, program) if program and (offer := _offer(options)) else ()),
    ]
    if not lines:
        return None
    argv = ("sh", "-c", "\n".join((*lines, "echo done")))
    return Job(argv, turn.env, "/", timeout_ms=PREPARE_S * 1000, stdout_bytes=1 << 20)


def read(stdout: bytes, options: HostOptions) -> Preparation:
    """What the job said, held against the files that were to be installed."""
    lines = stdout.decode("utf-8", "backslashreplace").splitlines()
    for line in lines:
        if line.startswith("fault "):
            return Preparation(fault=word(line.removeprefix("fault ")))
    if not lines or lines[-1] != "done":
        return Preparation(fault="it did not run to its end")
    offer = _offer(options)
    if offer is None:
        return Preparation()
    found: dict[str, dict[str, dict[str, str]]] = {}
    for line in lines[:-1]:
        sha256, _, path = line.partition("  ./")
        plugin, _, rest = path.partition("/")
        version, _, inner = rest.partition("/")
        found.setdefault(plugin, {}).setdefault(version, {})[inner] = sha256
    plugins = []
    for name, inner_files in offer.plugins.items():
        wanted = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in inner_files.items()}
        versions = found.get(name, {})
        if list(versions.values()) != [wanted]:
            return Preparation(fault=f"what was installed of plugin {name} is not what the marketplace has")
        (version,) = versions
        told = "".join(f"{path}\0{wanted[path]}\n" for path in sorted(wanted))
        plugins.append(
            InstalledPlugin(
                id=f"{name}@{offer.name}",
                version=word(version),
                files=len(wanted),
                sha256=hashlib.sha256(told.encode()).hexdigest(),
            )
        )
    return Preparation(plugins=tuple(plugins))


def _offer(options: HostOptions) -> Offer | None:
    plugins = options.plugins
    if plugins is None or not isinstance(plugins.marketplace, Marketplace):
        return None
    return offer_of(plugins.marketplace.files)


def _configuration(paths: tuple[str, ...], cwd: str) -> Iterator[str]:
    inner = [part for part in cwd.removeprefix(WORKSPACE).split("/") if part not in ("", ".")]
    folders = ["".join(f"{part}/" for part in inner[:depth]) for depth in range(len(inner) + 1)]
    for path in (f"{folder}{name}" for folder in folders for name in paths):
        place = shlex.quote(f"{WORKSPACE}/{path}")
        said = shlex.quote(
            f"the workspace has {path}, which the agent takes for its own configuration (host.fixtureConfiguration)"
        )
        yield f"{{ [ ! -e {place} ] && [ ! -L {place} ]; }} {_STOP % said}"


def _skill(token: str) -> Iterator[str]:
    """A plugin's skill is among what is installed; a repository's has to be a bounded regular file, without links."""
    plugin, skill = parts_of(token)
    if plugin is not None:
        return
    place = WORKSPACE
    for part in (*REPOSITORY.split("/"), skill, "SKILL.md"):
        place = f"{place}/{part}"
        yield f"[ ! -L {place} ] {_STOP % shlex.quote(f'{place} is a link')}"
    regular = f'[ -f {place} ] && [ "$(wc -c <{place})" -le {SKILL_BYTES} ]'
    said = shlex.quote(f"{place} is no regular file of at most {SKILL_BYTES} bytes")
    yield f"{{ {regular}; }} 2>/dev/null {_STOP % said}"


def _install(offer: Offer, program: PluginProgram) -> Iterator[str]:
    added = shlex.join((*program.add_marketplace, f"{HOME}/{MARKETPLACE}"))
    yield f"{added} >/dev/null 2>&1 {_STOP % shlex.quote('the marketplace could not be added')}"
    for name in offer.plugins:
        added = shlex.join((*program.add_plugin, f"{name}@{offer.name}"))
        yield f"{added} >/dev/null 2>&1 {_STOP % shlex.quote(f'plugin {name} could not be installed')}"
    cache = shlex.quote(f"{HOME}/{program.cache}/{offer.name}")
    yield f"cd {cache} {_STOP % shlex.quote('nothing was installed')}"
    yield f'[ -z "$(find . ! -type d ! -type f)" ] {_STOP % shlex.quote("links were installed")}'
    yield "find . -type f -exec sha256sum {} +"
