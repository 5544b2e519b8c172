#!/usr/bin/env python3
"""An extension in Python: are the words that a text must have in it, and how long is it?

`configuration` has `file`, the path of the text in the workspace, and `words`, what must be in it.
"""

import json
import os
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

ID = "example.words"
STRICT = f"{ID}.strict"
CHANGES = "boxeval.changes"


def describe(_params):
    """Who we are. We need the candidate's files, and offer one verdict policy."""
    return {
        "extension": {"id": ID, "version": "1.0.0"},
        "protocols": ["boxeval.extension.v1"],
        "requiredCapabilities": ["boxeval.workspace.files"],
        "optionalCapabilities": [],
        "graders": [],
        "taskVerdictPolicies": [STRICT],
    }


def resolve(_params):
    """We have no cases of our own."""
    return {"cases": []}


def prepare(params):
    """The candidate finds the words in WORDS.txt."""
    text = "\n".join(params["configuration"].get("words", [])).encode()
    words = {
        "id": "words",
        "relativePath": "WORDS.txt",
        "sha256": sha256(text).hexdigest(),
        "contentBase64": b64encode(text).decode(),
    }
    return {"artifacts": [words], "requestedInstrumentation": [], "extensionData": {}}


def evaluate(params):
    """One check for each word. Without the file, or without a whole list of changes, nothing can be said."""
    configuration = params["configuration"]
    place = Path(os.environ["BOXEVAL_WORKSPACE"], configuration.get("file", "README.md"))
    complete = {one["id"] for one in params["observations"] if one["completeness"] == "complete"}
    text = place.read_text("utf-8", "replace") if place.is_file() else ""
    checks = []
    for number, word in enumerate(configuration.get("words", ["wrote"]), start=1):
        status, cites = "unavailable", []
        if CHANGES in complete:
            status, cites = ("passed" if word in text else "failed"), [CHANGES]
        checks.append(
            {
                "id": f"{ID}.word{number}",
                "status": status,
                "detail": f"{word!r} in {place.name}",
                "evidenceRefs": cites,
            }
        )
    result = {
        "checks": checks,
        "metrics": [{"id": f"{ID}.count", "value": len(text.split()) or None, "unit": "words"}],
    }
    if params.get("selectedTaskVerdictPolicy") == STRICT:
        found = {check["status"] for check in checks}
        result["taskVerdictRecommendation"] = "passed" if found == {"passed"} else "failed"
    return result


METHODS = {"describe": describe, "resolve": resolve, "prepare": prepare, "evaluate": evaluate}

request = json.load(sys.stdin)
response = {name: request[name] for name in ("protocol", "id", "method")}
try:
    response["result"] = METHODS[request["method"]](request["params"])
except Exception as error:
    response["error"] = {"code": f"{ID}.broken", "message": f"{type(error).__name__}: {error}"[:4096]}
json.dump(response, sys.stdout)
