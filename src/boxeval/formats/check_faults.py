"""What pydantic cannot say about checks: ids, flags, pointers, fields that need each other, fixtures that fit.

Patterns and schemas are compiled where an engine for them is: `boxeval.graders.preflight`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from boxeval.formats.faults import Fault, below, text_faults
from boxeval.formats.paths import file_fault
from boxeval.formats.place import show
from boxeval.rules.json_values import pointer_fault
from boxeval.rules.message import KNOWN_EVIDENCE
from boxeval.spec.checks import (
    Check,
    Configuration,
    FileCheck,
    GitHeadCheck,
    OutputConfiguration,
    ShellCheck,
    StateConfiguration,
    TextAssertions,
)
from boxeval.spec.metrics import did_you_mean
from boxeval.spec.suite import Task
from boxeval.spec.workspace import WorkspaceKind

_REPOSITORIES = (WorkspaceKind.GIT, WorkspaceKind.GENERATED)
FLAGS = "isu"
_OF_HOSTS = re.compile(r"(sevro|boxeval)\.[a-z][a-z0-9-]*\.[a-z0-9][a-z0-9.-]*")
"""E.g. `boxeval.host.skill-activations`; one that is not there, or no more, is missing in every trial (G44)."""
TEXT_BYTES = 8192
"""Of a proposition, a rubric or a question (G24)."""
_TEXTS = ("proposition", "rubric", "question")
_POINTERS = {"pointer": "pointer", "json_path": "jsonPath"}


def checks_faults(task: Task) -> Iterator[Fault]:
    """Everything wrong with `verify.checks` and how they are scored."""
    verify = task.verify
    seen: dict[str, int] = {}
    for number, check in enumerate(verify.checks):
        yield from below("checks", below(number, _check_faults(task, check)))
        if (first := seen.setdefault(check.id.casefold(), number)) != number:
            yield ("checks", number, "id"), f"{show(check.id)} is already the id of checks[{first}]"
    if verify.scoring == "weighted" and not verify.checks:
        yield ("scoring",), "`weighted` needs `checks`"
    if verify.threshold is not None and verify.scoring != "weighted":
        yield ("threshold",), "needs `scoring: weighted`"


def evidence_faults(task: Task) -> Iterator[Fault]:
    """Names of evidence that nothing gives. What an agent's host may tell is known only once it ran."""
    for number, name in enumerate(task.required_evidence):
        if name not in KNOWN_EVIDENCE and not _OF_HOSTS.fullmatch(name):
            known = ", ".join(f"`{one}`" for one in KNOWN_EVIDENCE)
            hint = did_you_mean(name, KNOWN_EVIDENCE)
            yield ("requiredEvidence", number), f"there is no evidence {show(name)}{hint} (known: {known})"
        elif name in task.required_evidence[:number]:
            yield ("requiredEvidence", number), f"{show(name)} is there twice"


def _check_faults(task: Task, check: Check) -> Iterator[Fault]:
    if check.id in (".", ".."):
        yield ("id",), f"{show(check.id)} cannot be an id"
    yield from below("configuration", configuration_faults(check.configuration))
    if isinstance(check, ShellCheck):
        yield from below("configuration", below("run", text_faults(check.configuration.run)))
    if isinstance(check, FileCheck) and (fault := file_fault(check.configuration.file)):
        yield ("configuration", "file"), fault
    if isinstance(check, GitHeadCheck) and task.workspace.kind not in _REPOSITORIES:
        yield (
            ("grader",),
            f"needs a workspace of kind `git` or `generated`, and this one is `{task.workspace.kind}`",
        )


def configuration_faults(configuration: Configuration) -> Iterator[Fault]:
    """What is wrong with a configuration by itself."""
    flags = getattr(configuration, "flags", "")
    if fault := flags_fault(flags):
        yield ("flags",), fault
    for name, key in _POINTERS.items():
        pointer = getattr(configuration, name, None)
        if pointer is not None and (fault := pointer_fault(pointer)):
            yield (key,), f"{show(pointer)} {fault}"
    if isinstance(configuration, TextAssertions):
        patterns = configuration.expect_regex is not None or configuration.not_regex is not None
        if configuration.has("flags") and not patterns:
            yield ("flags",), "needs `expectRegex` or `notRegex`"
    if isinstance(configuration, OutputConfiguration):
        yield from _output_faults(configuration)
    for name in _TEXTS:
        text = getattr(configuration, name, None)
        if text is not None and (not text.strip() or len(text.encode()) > TEXT_BYTES):
            yield (name,), f"must have something in it, and at most {TEXT_BYTES} bytes"
    path = getattr(configuration, "artifact_path", None)
    if path is not None and (fault := document_fault(path)):
        yield ("artifactPath",), fault
    if isinstance(configuration, StateConfiguration) and (
        (configuration.pointer is None) == (configuration.query is None)
    ):
        yield (), "needs exactly one of `pointer` (JSON) and `query` (SQLite)"


def document_fault(path: str) -> str | None:
    """Why a path cannot name the one document of a judge (G29)."""
    if fault := file_fault(path):
        return fault
    *folders, name = path.split("/")
    if any(part.casefold() == ".git" for part in (*folders, name)):
        return f"{show(path)} is inside .git"
    if name.count("*") > 1 or any("*" in folder for folder in folders):
        return f"{show(path)} may have one `*`, in its last part"
    return None


def flags_fault(flags: str) -> str | None:
    """Why a text is none of i, s and u, each at most once."""
    if "m" in flags:
        return "has `m`, which is always on; leave it out"
    if unknown := [flag for flag in flags if flag not in FLAGS]:
        return f"has {show(unknown[0])}; flags are `i`, `s` and `u`"
    return "has a flag twice" if len(set(flags)) < len(flags) else None


def _output_faults(configuration: OutputConfiguration) -> Iterator[Fault]:
    json_fields = {"expect_json": "expectJson", "contains_json": "containsJson"}
    for name, key in json_fields.items():
        if configuration.has(name) and configuration.json_path is None:
            yield (key,), "needs `jsonPath`; an empty one is the whole document"
    asserts = (
        configuration.valid_json or configuration.schema_ is not None or configuration.json_path is not None
    )
    if not (asserts or configuration.asserts_text or configuration.has(*json_fields)):
        yield (), "asserts nothing; see docs/graders.md for what it can"
