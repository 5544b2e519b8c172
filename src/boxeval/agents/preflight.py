"""The probe before a fresh request: a shell script inside the real box, and what its words mean (G56).

It runs before any code of the candidate, in the environment that the agent gets, and asks the kernel rather than the
engine. What the box shows must be exactly what the policy and the task give it, so one name too many is a breach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from boxeval.agents.stream import word
from boxeval.sandbox.job import HOME, TMP, WORKSPACE, Job
from boxeval.spec.agent_record import Preflight

PROBE_S = 60
LINES = 4096
_MOUNTS = ("/", WORKSPACE, HOME, TMP, "/.boxeval", "/etc/resolv.conf", "/etc/hostname", "/etc/hosts")
_KERNEL = ("/proc", "/sys", "/dev")
_SCRIPT = """
tr '\\n\\0' ' \\n' </proc/$$/environ | while IFS= read -r line; do echo "env ${line%%=*}"; done
while read -r _ _ _ _ place _; do echo "mount $place"; done </proc/self/mountinfo
while IFS=: read -r name rest; do [ -z "$rest" ] || echo "device" $name; done </proc/net/dev
while read -r name _; do [ "$name" = Iface ] || echo "route $name"; done </proc/net/route
for file in "$HOME"/* "$HOME"/.[!.]*; do [ ! -e "$file" ] || echo "home ${file##*/}"; done
if (umask 077 && echo good >"$HOME/.probe") && [ "$(cat "$HOME/.probe")" = good ] && rm "$HOME/.probe"; then
    echo "private good"
fi
version=$("$@" 2>/dev/null) && echo "version $version" | head -n 1
true
"""


def probe(version: tuple[str, ...], env: Mapping[str, str]) -> Job:
    """The job. It always exits 0: what is wrong is told in its output."""
    argv = ("sh", "-c", _SCRIPT, "sh", *version)
    return Job(argv, dict(env), "/", timeout_ms=PROBE_S * 1000, stdout_bytes=1 << 20)


def read(
    stdout: bytes, env: Iterable[str], mounts: Iterable[str], files: Iterable[str], wall_ms: int
) -> Preflight:
    """What the probe said, held against the names of the environment, the policy's mounts and the home's files."""
    told: dict[str, set[str]] = {}
    for line in stdout.decode("utf-8", "backslashreplace").splitlines()[:LINES]:
        kind, _, value = line.partition(" ")
        told.setdefault(kind, set()).add(value)

    def beyond(kind: str, allowed: Iterable[str]) -> list[str]:
        return sorted(told.get(kind, set()).difference(allowed))

    breaches = [f"the environment has {word(name)}" for name in beyond("env", env)]
    breaches += [
        f"there is a mount at {word(place)}"
        for place in beyond("mount", (*_MOUNTS, *_KERNEL, *mounts))
        if not place.startswith(tuple(f"{root}/" for root in _KERNEL))
    ]
    breaches += [f"there is a network device {word(name)}" for name in beyond("device", ("lo",))]
    breaches += [f"there is a route by {word(name)}" for name in beyond("route", ())]
    breaches += [
        f"the home has {word(name)}" for name in beyond("home", {f.partition("/")[0] for f in files})
    ]
    if "good" not in told.get("private", ()):
        breaches.append("the home is no private storage that can be written and read")
    version = min(told.get("version", ()), default="")
    broken = None if version else "the agent does not say its version"
    if not {"env", "mount", "device"} <= told.keys():
        broken = "the probe could not look at the box"
    return Preflight(version=word(version) or None, breaches=tuple(breaches), broken=broken, wall_ms=wall_ms)
