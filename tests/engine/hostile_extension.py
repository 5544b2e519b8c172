"""An extension that misbehaves as its configuration says; it runs in boxes, not here."""

import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

request = json.load(sys.stdin)
mode = request["params"].get("configuration", {}).get("mode", "")
response = {name: request[name] for name in ("protocol", "id", "method")}


def flood() -> None:
    for _ in range(100):
        sys.stdout.write("x" * 1024 * 1024)


def hang() -> None:
    print("still thinking", file=sys.stderr, flush=True)
    time.sleep(600)


def forks() -> None:
    """A daemon of its own session that would go on for long, then more processes than there may be."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
            time.sleep(600)
        os._exit(0)
    children = 0
    try:
        while children < 10_000:
            if os.fork() == 0:
                time.sleep(600)
            children += 1
    except OSError:
        answer("failed")  # refused by the limit, as it must be: tell so


def silent() -> None:
    sys.exit(0)


def bare() -> None:
    answer("passed", cites=[])


def escape() -> None:
    """In `prepare`: a file outside of the workspace."""
    answer("passed")


def shut() -> None:
    """Passes if nothing is open that must not be."""
    found = []
    for place in ("/extension/extension.py", "/extension/new", "/new", "/evidence/new"):
        try:
            with Path(place).open("a") as file:
                file.write("changed")
            found.append(place)
        except OSError:
            pass
    try:
        socket.create_connection(("192.0.2.1", 80), 1).close()
        found.append("network")
    except OSError:
        pass
    found += [name for name in os.environ if "KEY" in name or "TOKEN" in name or "PLANTED" in name]
    found += [name for name in ("/var/run/docker.sock", "/run/docker.sock") if Path(name).exists()]
    if Path(os.environ["BOXEVAL_WORKSPACE"], "made.txt").read_text() != "made\n":
        found.append("the candidate's file")
    names = {one["id"]: one["path"].removeprefix("file://") for one in request["params"]["artifacts"]}
    if "+made" not in Path(names["boxeval.patch"]).read_text():
        found.append("the patch")
    print("\x1b[31mred on stderr\x1b[0m", file=sys.stderr)
    answer("failed" if found else "passed", detail=" ".join(found))


def answer(status: str, cites: Sequence[str] = ("boxeval.changes",), detail: str | None = None) -> None:
    check: dict[str, object] = {"id": "example.hostile.check", "status": status, "evidenceRefs": list(cites)}
    if detail:
        check["detail"] = detail
    response["result"] = {
        "checks": [check],
        "metrics": [{"id": "example.hostile.n", "value": 1, "unit": "n"}],
    }


if request["method"] == "describe":
    response["result"] = {
        "extension": {"id": "example.hostile", "version": "1"},
        "protocols": ["boxeval.extension.v1"],
        "requiredCapabilities": [],
        "optionalCapabilities": [],
        "graders": [],
        "taskVerdictPolicies": [],
    }
elif request["method"] == "prepare":
    artifacts = []
    if mode == "escape":
        empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        artifacts = [
            {
                "id": "a",
                "relativePath": "../../root/.ssh/authorized_keys",
                "sha256": empty,
                "contentBase64": "",
            }
        ]
    response["result"] = {"artifacts": artifacts, "requestedInstrumentation": [], "extensionData": {}}
else:
    globals()[mode]()
if mode != "flood" or request["method"] != "evaluate":
    json.dump(response, sys.stdout)
