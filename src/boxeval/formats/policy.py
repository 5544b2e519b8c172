"""Policies by name or file: typed, and refused where they would open a box."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from boxeval.errors import Problem, SuiteError
from boxeval.formats.faults import Fault
from boxeval.formats.mounts import mount_faults
from boxeval.formats.place import show
from boxeval.formats.typed import Refusals, check
from boxeval.formats.yaml_source import in_order, read_bounded, scan
from boxeval.rules.allowlist import parse_entry
from boxeval.settings import resource
from boxeval.spec.metrics import did_you_mean
from boxeval.spec.policy import Policy

HEADROOM_MIB = 64
"""Memory that a box keeps for its processes beside full tmpfs mounts."""

_NEVER = "can never be asked for; boxes are always shut"
_OPENINGS = (
    *(
        "privileged",
        "capAdd",
        "cap_add",
        "securityOpt",
        "security_opt",
        "devices",
        "deviceRequests",
    ),
    *(
        "pid",
        "pidMode",
        "ipc",
        "ipcMode",
        "uts",
        "userns",
        "usernsMode",
        "cgroupns",
        "cgroupParent",
        "networkMode",
    ),
    *("volumes", "binds", "volumesFrom", "extraHosts", "dns", "ports", "sysctls", "groupAdd", "env", "user"),
)
_REFUSALS = Refusals(keys={Policy: dict.fromkeys(_OPENINGS, _NEVER)})


def policy_names() -> list[str]:
    """The policies that come with boxeval."""
    return sorted(path.stem for path in resource("policies").glob("*.yaml"))


def is_policy_file(name: str) -> bool:
    """Whether a policy is given as a file rather than by a shipped name."""
    return "/" in name or name.endswith((".yaml", ".yml"))


def load_policy(name: str, directory: Path) -> Policy:
    """A shipped policy by name, or a file relative to `directory`. Raises `SuiteError` with every problem."""
    if is_policy_file(name):
        path, shown = directory / name, name
    elif name in (known := policy_names()):
        path, shown = resource("policies") / f"{name}.yaml", f"{name}.yaml"
    else:
        names = ", ".join(f"`{known_name}`" for known_name in known)
        message = f"there is no policy {show(name)}{did_you_mean(name, known)}"
        raise SuiteError([Problem(name, "", f"{message} (shipped: {names}; a file's name ends in .yaml)")])
    try:
        data = read_bounded(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SuiteError([Problem(shown, "", f"policy file cannot be read: {reason}")]) from None
    source = scan(data, shown)
    policy, problems = check(source, Policy, _REFUSALS)
    if policy is not None:
        problems += [source.problem(path, message) for path, message in mount_faults(policy.mounts)]
        problems += [source.problem(("limits",), message) for message in memory_faults(policy)]
        problems += [source.problem(place, message) for place, message in allow_faults(policy)]
    if policy is None or problems:
        raise SuiteError(in_order(problems))
    return policy


def allow_faults(policy: Policy) -> Iterator[Fault]:
    """Entries that name nothing, and a list without its network or the reverse."""
    for place, entry in enumerate(policy.allow):
        try:
            parse_entry(entry)
        except ValueError as error:
            yield ("allow", place), f"{show(entry)} {error}"
    if bool(policy.allow) != (policy.network == "allowlist"):
        yield ("network",), "`network: allowlist` and `allow` need each other"


def memory_faults(policy: Policy) -> list[str]:
    """A tmpfs is charged to the memory of the box that writes it, so all of them must fit below the limit."""
    limits = policy.limits
    parts = {
        "workspaceMib": limits.workspace_mib,
        "homeMib": limits.home_mib,
        "tmpMib": limits.tmp_mib,
        "shmMib": limits.shm_mib,
        "headroom": HEADROOM_MIB,
    }
    total = sum(parts.values())
    if total <= limits.memory_mib:
        return []
    terms = " + ".join(f"{name} {size}" for name, size in parts.items())
    return [f"{terms} = {total} MiB is more than memoryMib {limits.memory_mib}; raise it or lower the others"]
