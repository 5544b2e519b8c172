#!/usr/bin/env python3
"""An extension that supplies cases, and a grader of its own that bounds the length of an answer."""

import json
import sys

ID = "example.greetings"
SHORT = f"{ID}.short"
MESSAGE = "boxeval.message"
GREETINGS = {"english": "hello", "french": "bonjour"}


def describe(_params):
    """Who we are. Cases may declare checks by our grader."""
    return {
        "extension": {"id": ID, "version": "1.0.0"},
        "protocols": ["boxeval.extension.v1"],
        "requiredCapabilities": [],
        "optionalCapabilities": [],
        "graders": [SHORT],
        "taskVerdictPolicies": [],
    }


def resolve(params):
    """One case for each language, or those that were asked for."""
    wanted = params["selectors"].get("caseIds") or list(GREETINGS)
    return {"cases": [case(language) for language in wanted if language in GREETINGS]}


def case(language):
    """A question, a check by a built-in grader and one by ours."""
    word = GREETINGS[language]
    return {
        "id": language,
        "prompt": f"Which word in words.txt greets in {language}? Answer with it alone.",
        "fixture": {"kind": "inline", "files": {"words.txt": "\n".join(GREETINGS.values()) + "\n"}},
        "checks": [
            {"id": "word", "grader": "boxeval.regex", "configuration": {"pattern": f"\\b{word}\\b"}},
            {"id": "short", "grader": SHORT, "configuration": {"most": 10}},
        ],
        "requiredEvidence": [MESSAGE],
        "extensionData": {f"{ID}.language": language},
    }


def prepare(params):
    """What our check was told goes along to `evaluate`."""
    most = {
        check["id"]: check["configuration"]["most"]
        for check in params["case"]["checks"]
        if check["grader"] == SHORT
    }
    return {"artifacts": [], "requestedInstrumentation": [], "extensionData": {f"{ID}.most": most}}


def evaluate(params):
    """The checks that the case declared, under their own ids."""
    data = params["extensionData"]
    said = next(one for one in params["observations"] if one["id"] == MESSAGE)
    checks = []
    for name, most in data[f"{ID}.most"].items():
        status, cites = "unavailable", []
        if said["completeness"] == "complete":
            status, cites = ("passed" if len(said["data"]["text"].strip()) <= most else "failed"), [MESSAGE]
        checks.append({"id": name, "status": status, "evidenceRefs": cites})
    return {"checks": checks, "metrics": []}


METHODS = {"describe": describe, "resolve": resolve, "prepare": prepare, "evaluate": evaluate}

request = json.load(sys.stdin)
response = {name: request[name] for name in ("protocol", "id", "method")}
try:
    response["result"] = METHODS[request["method"]](request["params"])
except Exception as error:
    response["error"] = {"code": f"{ID}.broken", "message": f"{type(error).__name__}: {error}"[:4096]}
json.dump(response, sys.stdout)
