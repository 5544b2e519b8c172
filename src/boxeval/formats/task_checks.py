"""What pydantic cannot say about one task: fields that a kind does not take, paths, patterns, metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from pydantic.alias_generators import to_camel

from boxeval.formats.chaos_checks import chaos_faults
from boxeval.formats.check_faults import checks_faults, evidence_faults
from boxeval.formats.extension_files import extension_faults
from boxeval.formats.faults import (
    Fault,
    below,
    commands_faults,
    env_faults,
    files_faults,
    patterns_faults,
    text_faults,
)
from boxeval.formats.history_checks import history_faults
from boxeval.formats.paths import inner_fault
from boxeval.formats.place import show
from boxeval.formats.step_checks import step_faults
from boxeval.spec.base import Record
from boxeval.spec.metrics import METRICS, did_you_mean
from boxeval.spec.outcome import FailureClass
from boxeval.spec.suite import Assertion, Op, Runner, RunnerKind, Task, Verify
from boxeval.spec.workspace import Workspace, WorkspaceKind

SCORED = (
    FailureClass.VERIFIER_FAILED,
    FailureClass.ASSERTION_FAILED,
    FailureClass.ASSERTION_UNRESOLVED,
    FailureClass.FORBIDDEN_PATH,
    FailureClass.WRITES_BOUNDARY_VIOLATION,
    FailureClass.RUNNER_FAILED,
    FailureClass.TIMEOUT,
    FailureClass.OOM,
    FailureClass.RESOURCE_LIMIT,
)
"""Classes of scored outcomes (the outcomes table); a void one is never what a task expects."""

_WRITTEN = ("files", "staged", "commit_files", "hooks", "bin")
_WORKSPACE_TAKES: Mapping[WorkspaceKind, tuple[str, ...]] = {
    WorkspaceKind.INLINE: ("files",),
    WorkspaceKind.TEMP_COPY: ("path", "excludes"),
    WorkspaceKind.LOCAL: ("path", "excludes", "write_back"),
    WorkspaceKind.ARCHIVE: ("path", "excludes"),
    WorkspaceKind.GIT: ("path", "url", "commit", "checkout", "history", *_WRITTEN),
    WorkspaceKind.GENERATED: ("commits", *_WRITTEN),
}
_RUNNER_TAKES: Mapping[RunnerKind, tuple[str, ...]] = {
    RunnerKind.EXTERNAL_COMMAND: ("command", "commands", "args", "stdin"),
    RunnerKind.SCRIPTED: ("prompt", "script", "permissions", "options"),
    RunnerKind.AGENT: (
        *("agent", "host", "prompt", "script", "permissions", "options"),
        *("command", "commands", "args", "stdin"),
    ),
    RunnerKind.CLIO_RUN: ("host", "prompt", "script"),
    RunnerKind.CONTEXT_INDEX: ("host", "args"),
    RunnerKind.CONTEXT_INIT: ("host", "args"),
}
_UNASKED = (RunnerKind.CONTEXT_INDEX, RunnerKind.CONTEXT_INIT)
_COMMON = ("kind", "setup", "size_limit", "env", "cwd", "timeout_ms")
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]*")
_ORDERING = (Op.LT, Op.LTE, Op.GT, Op.GTE)


def task_faults(task: Task) -> Iterator[Fault]:
    """Everything wrong with a task that needs no look at another part of the suite."""
    yield from below("workspace", workspace_faults(task.workspace))
    yield from step_faults(task)
    yield from chaos_faults(task)
    if "runner" in task.model_fields_set:
        yield from below("runner", runner_common_faults(task.runner))
        if not task.steps:
            yield from below("runner", runner_faults(task.runner))
    yield from below("verify", verify_faults(task.verify))
    yield from below("verify", checks_faults(task))
    yield from evidence_faults(task)
    for index, name in enumerate(task.metrics.collect):
        yield from below("metrics", below("collect", below(index, metric_faults(name, task.verify))))
    if task.expect_class is not None:
        classes = [str(item) for item in SCORED]
        if task.expect_class not in classes:
            hint = did_you_mean(task.expect_class, classes)
            yield ("expectClass",), f"{show(task.expect_class)} is not a class of a scored failure{hint}"
        elif task.expect != "failed":
            yield ("expectClass",), "needs `expect: failed`"


def workspace_faults(workspace: Workspace) -> Iterator[Fault]:
    """Fields that the kind does not take, that it needs, and their paths and patterns."""
    kind = workspace.kind
    yield from _foreign(workspace, kind, _WORKSPACE_TAKES[kind])
    if kind is WorkspaceKind.INLINE:
        if workspace.files is None:
            yield (), "kind `inline` needs `files`"
        yield from below("files", files_faults(workspace.files or {}))
    elif kind in (WorkspaceKind.GIT, WorkspaceKind.GENERATED):
        yield from history_faults(workspace)
        if kind is WorkspaceKind.GIT:
            yield from git_faults(workspace)
    elif not workspace.path:
        yield (), f"kind `{kind}` needs `path`"
    if workspace.path is not None and "\0" in workspace.path:
        yield ("path",), "has a NUL character"
    yield from patterns_faults("excludes", workspace.excludes)
    yield from commands_faults("setup", workspace.setup)


def git_faults(workspace: Workspace) -> Iterator[Fault]:
    """A repository by path or url, at a commit or at a name that moves."""
    if (workspace.path is None) == (workspace.url is None):
        yield (), "kind `git` needs exactly one of `path` and `url`"
    if workspace.commit is not None and workspace.checkout is not None:
        yield ("checkout",), "cannot stand beside `commit`"
    if workspace.url is not None:
        if workspace.path is None and workspace.commit is None and workspace.checkout is None:
            yield (), "kind `git` with `url` needs `commit` or `checkout`"
        if fault := url_fault(workspace.url):
            yield ("url",), fault
        elif workspace.url.startswith("http:") and workspace.commit is None:
            yield ("url",), "needs `commit` with http://, where nothing else says what is fetched"
    if workspace.checkout is not None and (
        not _REF.fullmatch(workspace.checkout) or ".." in workspace.checkout
    ):
        yield ("checkout",), f"{show(workspace.checkout)} is not the name of a branch or tag"


def url_fault(url: str) -> str | None:
    """Why a repository may not be fetched from here; None if it may."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{show(url)} is not a URL"
    if parts.scheme not in ("https", "http", "file") or not url.startswith(f"{parts.scheme}://"):
        return f"{show(url)} must start with https://, http:// or file://"
    if "@" in parts.netloc:
        return "holds a user name or password; boxeval passes no credentials to git"
    if any(c.isspace() or not c.isprintable() for c in url) or (
        parts.scheme != "file" and not parts.hostname
    ):
        return f"{show(url)} is not a URL"
    return None


def runner_faults(runner: Runner) -> Iterator[Fault]:
    """Fields that the kind does not take or needs. Where a script comes from is checked with the models."""
    who = f"agent `{runner.agent}`" if runner.agent else f"kind `{runner.kind}`"
    if runner.kind is RunnerKind.EXTERNAL_COMMAND or runner.agent == "command":
        if (runner.command is None) == (not runner.commands):
            yield (), f"{who} needs exactly one of `command` and `commands`"
        if runner.args is not None and runner.command is None:
            yield ("args",), "needs `command`"
    elif runner.kind not in _UNASKED and not (runner.prompt or "").strip():
        yield (), f"{who} needs `prompt`"
    if runner.command is not None:
        yield from below("command", text_faults(runner.command))
    yield from commands_faults("commands", runner.commands)
    yield from commands_faults("args", runner.args or ())
    yield from below("prompt", text_faults(runner.prompt or ""))


def runner_common_faults(runner: Runner) -> Iterator[Fault]:
    """The same for what a runner of one turn and one of several steps have in common."""
    yield from _foreign(runner, runner.kind, _RUNNER_TAKES[runner.kind])
    yield from below("env", env_faults(runner.env))
    if runner.cwd is not None and (fault := inner_fault(runner.cwd)):
        yield ("cwd",), fault


def verify_faults(verify: Verify) -> Iterator[Fault]:
    """Commands, files, patterns and assertions."""
    yield from commands_faults("commands", verify.commands)
    yield from below("measure", text_faults(verify.measure or ""))
    yield from below("env", env_faults(verify.env))
    yield from below("files", files_faults(verify.files))
    yield from patterns_faults("forbidPaths", verify.forbid_paths)
    if verify.extension is not None:
        yield from below("extension", extension_faults(verify.extension))
        taken = {check.id for check in verify.checks}
        for index, declared in enumerate(verify.extension.checks):
            if declared.id in taken:
                yield ("extension", "checks", index, "id"), f"{show(declared.id)} is a check of `checks` too"
    for index, assertion in enumerate(verify.assertions):
        yield from below("assertions", below(index, assertion_faults(assertion, verify)))


def assertion_faults(assertion: Assertion, *verifies: Verify) -> Iterator[Fault]:
    """A metric that exists, and an op and a value that fit its type. `verifies`: where it may be measured."""
    yield from below("metric", metric_faults(assertion.metric, *verifies))
    metric = METRICS.get(assertion.metric)
    if metric is None:
        return
    if assertion.op in _ORDERING and metric.type != "number":
        yield ("op",), f"`{assertion.op}` needs a number, and `{metric.name}` is a {metric.type}"
    elif not metric.accepts(assertion.value):
        quoted = "; write it without quotes" if isinstance(assertion.value, str) else ""
        yield ("value",), f"must be a {metric.type}, as `{metric.name}` is{quoted}"


def metric_faults(name: str, *verifies: Verify) -> Iterator[Fault]:
    """An unknown name, or a measurement that nothing makes."""
    if name not in METRICS:
        yield (), f"unknown metric {show(name)}{did_you_mean(name, METRICS)}"
    elif name.startswith("task.") and not any(verify.measure for verify in verifies):
        yield (), f"`{name}` needs `verify.measure`"


def _foreign(record: Record, kind: str, takes: tuple[str, ...]) -> Iterator[Fault]:
    for name in sorted(record.model_fields_set - set(takes) - set(_COMMON)):
        yield (to_camel(name),), f"kind `{kind}` does not take `{to_camel(name)}`"
