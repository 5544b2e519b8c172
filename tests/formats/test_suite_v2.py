"""Suite version 2: what is accepted, and each rule that refuses (surface.md, contract S3, S7-S16)."""

# ruff: noqa: E501  tables of one case a line
from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from boxeval.errors import SuiteError
from boxeval.formats.suite_v2 import load_suite
from boxeval.settings import resource
from suite_samples import RIGHT, changed, load, problems

T = "tasks.0."
SCRIPTED = (T + "runner", {"kind": "scripted", "prompt": "Do it."})


@pytest.mark.contract("S7")
def test_a_right_suite_loads(tmp_path: Path) -> None:
    loaded = load(tmp_path, RIGHT)
    assert loaded.suite.suite.id == "small"
    assert loaded.sha256 == hashlib.sha256(RIGHT.encode()).hexdigest()
    assert loaded.file == tmp_path / "s.yaml"
    assert loaded.directory == tmp_path
    assert list(loaded.scripts) == ["m"]
    assert loaded.policies["default"].id == "default"
    assert loaded.warnings == ()


@pytest.mark.parametrize("file", sorted(resource("suites").glob("*.yaml")), ids=lambda file: file.stem)
def test_built_in_suites_load_without_a_warning(file: Path) -> None:
    assert load_suite(file).warnings == ()


@pytest.mark.parametrize(
    "changes",
    [
        [(T + "workspace", {"kind": "inline", "files": {}})],
        [
            (
                T + "workspace",
                {"kind": "inline", "files": {"a": {"text": "x", "mode": "0755"}}, "setup": ["true"]},
            )
        ],
        [
            (
                T + "workspace",
                {"kind": "temp-copy", "path": "fixture", "excludes": ["*.pyc", "!keep.pyc", "./b"]},
            )
        ],
        [(T + "workspace", {"kind": "local", "path": "../elsewhere", "sizeLimit": 5})],
        [(T + "workspace", {"kind": "archive", "path": "f.tar.gz"})],
        [(T + "workspace", {"kind": "git", "path": "repo"})],
        [(T + "workspace", {"kind": "git", "path": "repo", "checkout": "feature/x-1.0"})],
        [(T + "workspace", {"kind": "git", "url": "https://example.org/r.git", "commit": "a" * 40})],
        [(T + "workspace", {"kind": "git", "url": "file:///srv/r.git", "checkout": "main"})],
        [
            (
                T + "runner",
                {"kind": "external-command", "commands": ["a", "b"], "stdin": "x", "cwd": "sub/dir"},
            )
        ],
        [(T + "runner", {"kind": "external-command", "command": "python3", "args": ["-c", "pass"]})],
        [SCRIPTED],
        [SCRIPTED, ("matrix.targets.0.model", None), ("defaults", {"model": "m"})],
        [
            ("models", None),
            ("matrix.targets.0.model", None),
            SCRIPTED,
            (T + "runner.script", {"turns": [{"calls": [{"tool": "bash", "input": {"command": "ls"}}]}]}),
        ],
        [(T + "expect", "failed"), (T + "expectClass", "forbidden_path")],
        [(T + "verify.forbidPaths", ["/a.txt", "./a.txt", "a.txt"])],
        [(T + "verify.measure", "true"), (T + "metrics", {"collect": ["task.solved", "tokens.total"]})],
        [(T + "verify.assertions", [{"metric": "latency.wallMs", "op": "lt", "value": 1.5}])],
        [(T + "verify.assertions", [{"metric": "result.failureClass", "op": "eq", "value": "none"}])],
        [("thresholds", {"fail": [{"metric": "tokens.total", "op": "gt", "value": 9}]})],
        [("matrix.maxCostUsd", 5), ("matrix.repeats", 3), (T + "trials", 2)],
        [(T + "policy", "strict"), (T + "image", "python:3.12"), ("defaults", {"network": "none"})],
        [(T + "image", "boxeval/base"), (T + "verify.image", f"sha256:{'0' * 64}")],
        [
            (T + "image", "Host.example:5000/a/b__c.d-e:1.2-RC_3"),
            (T + "verify.image", f"a@sha256:{'f' * 64}"),
        ],
        [("suite.provenance", {"source": "me"})],
        [("suite.provenance", "me")],
        [("models.m", {"upstream": "openai", "model": "gpt-5", "pricing": {"input": 1, "output": 2.5}})],
        [
            ("models.m", {"upstream": "https://models.example/v1", "model": "m", "key": "MY_KEY"}),
            (T + "secrets", ["MY_KEY"]),
        ],
        [("matrix.budget", {"tokens": 1000, "requests": 5, "bytes": 9, "seconds": 60})],
        [
            (
                "models.m.script",
                {
                    "turns": [
                        {"error": 429, "when": {"toolFailed": False}},
                        {"text": "a", "when": {"lastMessage": "(?P<n>x+)"}, "delayMs": 5, "cutAfter": 1},
                        {"calls": [{"tool": "bash"}], "text": "b", "garbleAfter": 0},
                        {"refusal": "no"},
                    ],
                    "usage": {"input": 10, "cacheRead": 4, "cacheWrite": 6},
                    "background": "{}",
                },
            )
        ],
    ],
)
def test_accepted(tmp_path: Path, changes: list[tuple[str, object]]) -> None:
    load(tmp_path, changed(*changes))


@pytest.mark.contract("S3", "S7", "S8", "S9", "S10", "S11", "S12", "S15")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        # Types, without a guess.
        ([("suite.title", 3.1)], 'suite.title: must be text, and `3.1` is not; write it in quotes: "3.1"'),
        ([(T + "tags", [3.1])], 'tasks[0].tags[0]: must be text, and `3.1` is not; write it in quotes: "3.1"'),
        ([(T + "smoke", "true")], "tasks[0].smoke: must be true or false, not `true`"),
        ([("matrix.repeats", "2")], "matrix.repeats: must be a whole number, not `2`; write it without quotes"),
        ([("matrix.repeats", True)], "matrix.repeats: must be a whole number, not true or false"),
        ([("matrix.repeats", 2.5)], "matrix.repeats: must be a whole number, not `2.5`"),
        ([("matrix.repeats", 0)], "matrix.repeats: must be at least 1, not `0`"),
        ([("matrix.maxCostUsd", True)], "matrix.maxCostUsd: must be a number, not true or false"),
        ([("matrix.targets", [])], "matrix.targets: must not be empty"),
        ([("tasks", [])], "tasks: must not be empty"),
        ([(T + "tags", "x")], "tasks[0].tags: must be a list, not `x`"),
        ([("tasks.0", "x")], "tasks[0]: must be a mapping, not `x`"),
        ([("suite.visibility", "publc")], "suite.visibility: must be one of `local`, `private`, `public`, not `publc`"),
        ([(T + "timeoutMs", 0)], "tasks[0].timeoutMs: must be at least 1, not `0`"),
        ([(T + "runner.env", {"A": 1})], 'tasks[0].runner.env.A: must be text, and `1` is not; write it in quotes: "1"'),
        ([(T + "runner.env", {"A-B": "x"})], "tasks[0].runner.env.A-B: this key must be a name of letters"),
        # Keys.
        ([(T + "workspce", {})], "tasks[0]: unknown key `workspce`; did you mean `workspace`?"),
        ([(T + "timeout_ms", 5)], "tasks[0]: unknown key `timeout_ms`; did you mean `timeoutMs`?"),
        ([(T + "runner", None)], "tasks[0]: key `runner` is missing"),
        ([("version", None)], "key `version` is missing; write `version: 2`"),
        ([("version", 1)], "version: suite version 1 is not supported yet by this version; it reads version 2"),
        ([("version", 3)], "version: must be `2`, not `3`"),
        ([(T + "privileged", True)], "tasks[0]: unknown key `privileged`"),
        ([(T + "cap_add", ["ALL"])], "tasks[0]: unknown key `cap_add`"),
        ([(T + "mounts", ["/"])], "tasks[0]: unknown key `mounts`"),
        ([(T + "runner.network", "host")], "tasks[0].runner: unknown key `network`"),
        # Unions in one message.
        ([("models.m.script", 3)], "models.m.script: must be text or a mapping, and `3` is not"),
        ([("models.m.script", {"turns": [{"text": "x", "refusal": "z"}]})], "models.m.script.turns[0]: must have exactly one of `text`, `calls`, `refusal`, `error`"),
        ([("models.m.script", {"turns": [{}]})], "models.m.script.turns[0]: must have exactly one of `text`, `calls`"),
        ([("models.m.script", {"turns": []})], "models.m.script.turns: must not be empty"),
        ([(T + "workspace.files", {"a": {"txt": "x", "text": "z"}})], "files.a: unknown key `txt`; did you mean `text`?"),
        ([(T + "workspace.files", {"a": {"text": "x", "mode": "755"}})], 'must be an octal mode in quotes, such as "0644"'),
        # Ids.
        ([(T + "id", "a/b")], "tasks[0].id: may have only letters, digits, `.`, `_` and `-`, not `a/b`"),
        ([(T + "id", "..")], "tasks[0].id: `..` cannot be an id"),
        ([("suite.id", ".")], "suite.id: `.` cannot be an id"),
        ([(T + "id", "")], "tasks[0].id: may have only letters"),
        ([(T + "id", "a\0b")], "tasks[0].id: may have only letters"),
        ([("matrix.targets", [{"id": "A"}, {"id": "a"}])], "matrix.targets[1].id: `a` is already the id of matrix.targets[0], but for upper and lower case"),
        # Images.
        *(
            ([(where, name)], f"{path}: `{name}` cannot be an image")
            for where, path, name in (
                ("defaults.image", "defaults.image", "Bad Image!!"),
                ("matrix.targets.0.image", "matrix.targets[0].image", "UPPER"),
                (T + "image", "tasks[0].image", "name:"),
                (T + "verify.image", "tasks[0].verify.image", "name@sha256:abc"),
            )
        ),
        # Workspaces.
        ([(T + "workspace", {"kind": "inline"})], "tasks[0].workspace: kind `inline` needs `files`"),
        ([(T + "workspace.path", "x")], "tasks[0].workspace.path: kind `inline` does not take `path`"),
        ([(T + "workspace", {"kind": "temp-copy"})], "tasks[0].workspace: kind `temp-copy` needs `path`"),
        ([(T + "workspace", {"kind": "local", "path": "x", "url": "u"})], "url: kind `local` does not take `url`"),
        ([(T + "workspace", {"kind": "archive", "path": "x", "files": {}})], "kind `archive` does not take `files`"),
        ([(T + "workspace", {"kind": "git"})], "kind `git` needs exactly one of `path` and `url`"),
        ([(T + "workspace", {"kind": "git", "path": "a", "url": "https://x/y"})], "exactly one of `path` and `url`"),
        ([(T + "workspace", {"kind": "git", "url": "https://x/y"})], "kind `git` with `url` needs `commit` or `checkout`"),
        ([(T + "workspace", {"kind": "git", "path": "a", "checkout": "b", "commit": "a" * 40})], "checkout: cannot stand beside `commit`"),
        ([(T + "workspace", {"kind": "git", "path": "a", "checkout": "--upload-pack=x"})], "is not the name of a branch or tag"),
        ([(T + "workspace", {"kind": "git", "path": "a", "commit": "abc"})], "must be a full commit id of 40 or 64"),
        ([(T + "workspace", {"kind": "git", "url": "ssh://x/y", "checkout": "m"})], "must start with https://, http:// or file"),
        ([(T + "workspace", {"kind": "git", "url": "ext::sh -c x", "checkout": "m"})], "must start with https://, http:// or file"),
        ([(T + "workspace", {"kind": "git", "url": "http://x/y", "checkout": "m"})], "url: needs `commit` with http://"),
        ([(T + "workspace", {"kind": "git", "path": "a", "history": "some"})], "workspace.history"),
        ([(T + "workspace.history", "none")], "kind `inline` does not take `history`"),
        ([(T + "workspace", {"kind": "git", "url": "https://u:p@x/y", "checkout": "m"})], "url: holds a user name or password"),
        ([(T + "workspace.files", {"../x": ""})], 'files["../x"]: `../x` leaves the workspace with `..`'),
        ([(T + "workspace.files", {"/x": ""})], 'files["/x"]: `/x` is absolute'),
        ([(T + "workspace.files", {"d/": ""})], 'files["d/"]: `d/` names a directory, not a file'),
        ([(T + "workspace.files", {"a\0b": ""})], "has a NUL character"),
        ([(T + "workspace.files", {"n" * 256: ""})], "has a name of more than 255 bytes"),
        ([(T + "workspace.files", {"a": "", "./a": ""})], 'files["./a"]: is the same file as `a`'),
        ([(T + "workspace.files", {"a": "", "a//b": ""})], 'files["a//b"]: lies below `a`, which is a file'),
        ([(T + "verify.files", {"a/../../x": ""})], "leaves the workspace with `..`"),
        # Runners.
        ([(T + "runner.commands", ["x"])], "kind `external-command` needs exactly one of `command` and `commands`"),
        ([(T + "runner", {"kind": "external-command"})], "needs exactly one of `command` and `commands`"),
        ([(T + "runner", {"kind": "external-command", "commands": ["x"], "args": ["z"]})], "runner.args: needs `command`"),
        ([(T + "runner.prompt", "x")], "runner.prompt: kind `external-command` does not take `prompt`"),
        ([(T + "runner", {"kind": "scripted"})], "tasks[0].runner: kind `scripted` needs `prompt`"),
        ([SCRIPTED, (T + "runner.stdin", "x")], "runner.stdin: kind `scripted` does not take `stdin`"),
        ([SCRIPTED, ("matrix.targets.0.model", None)], "kind `scripted` needs `script`, or a model, and target `one` has none"),
        ([(T + "runner.cwd", "../x")], "tasks[0].runner.cwd: `../x` leaves the workspace with `..`"),
        ([(T + "runner.command", "x" * 131_072)], "tasks[0].runner.command: must be at most 131071 characters long"),
        ([(T + "runner.command", "é" * 70_000)], "tasks[0].runner.command: is over 128 KiB"),
        ([(T + "runner.command", "a\0b")], "tasks[0].runner.command: has a NUL character"),
        ([(T + "runner.env", {"A": "a\0b"})], "tasks[0].runner.env.A: has a NUL character"),
        # Models and policies.
        ([("matrix.targets.0.model", "mm")], "matrix.targets[0].model: there is no model `mm`; did you mean `m`?"),
        ([("defaults", {"model": "zzz"})], "defaults.model: there is no model `zzz`"),
        ([("models.m.script", "nope.yaml")], "models.m.script: script `nope.yaml` cannot be read: No such file or directory"),
        ([("models.m", {"replay": "x.jsonl"})], "models.m.replay: cassette `x.jsonl` is no file"),
        ([("models.m", {"upstream": "opneai", "model": "x"})], "models.m.upstream: `opneai` names no provider"),
        ([("models.m", {"upstream": "ftp://x/y", "model": "x"})], "is no http or https base URL"),
        ([("models.m", {"upstream": "https://u:p@x/y", "model": "x"})], "is no http or https base URL"),
        ([("models.m", {"upstream": "http://x/y", "model": "x", "key": "K"})], "is http; a key is sent over https, or to this machine only"),
        ([("models.m", {"upstream": "openai"})], "models.m: key `model` is missing"),
        ([("models.m", {"script": {"turns": [{"text": "x"}]}, "replay": "x"})], "models.m: must have exactly one of `script`, `replay`, `upstream`"),
        ([("models.m.script", {"turns": [{"text": "x", "when": {"lastMessage": "(a"}}]})], "models.m.script.turns[0].when.lastMessage: `(a` is no pattern of RE2: missing )"),
        ([("models.m.script", {"turns": [{"text": "x", "when": {}}]})], "models.m.script.turns[0].when: says nothing"),
        ([("models.m.script", {"turns": [{"text": "x"}], "usage": {"input": 1, "cacheRead": 2}})], "models.m.script.usage: cacheRead and cacheWrite are parts of input"),
        ([("models.m.script", {"turns": [{"error": 200}]})], "models.m.script.turns[0].error: must be at least 400"),
        ([(T + "policy", "strct")], "tasks[0].policy: there is no policy `strct`; did you mean `strict`?"),
        ([(T + "policy", "nope.yaml")], "tasks[0].policy: policy file cannot be read: No such file or directory"),
        # Metrics.
        ([(T + "metrics", {"collect": ["token.total"]})], "metrics.collect[0]: unknown metric `token.total`; did you mean `tokens.total`?"),
        ([(T + "metrics", {"collect": ["task.solved"]})], "metrics.collect[0]: `task.solved` needs `verify.measure`"),
        ([(T + "verify.assertions", [{"metric": "task.exitCode", "op": "eq", "value": 0}])], "`task.exitCode` needs `verify.measure`"),
        ([(T + "verify.assertions", [{"metric": "wallMs", "op": "lt", "value": 1}])], "assertions[0].metric: unknown metric `wallMs`"),
        ([(T + "verify.assertions", [{"metric": "result.pass", "op": "lt", "value": 1}])], "op: `lt` needs a number, and `result.pass` is a bool"),
        ([(T + "verify.assertions", [{"metric": "tokens.total", "op": "lt", "value": "1"}])], "value: must be a number, as `tokens.total` is; write it without quotes"),
        ([(T + "verify.assertions", [{"metric": "tokens.total", "op": "eq", "value": True}])], "value: must be a number, as `tokens.total` is"),
        ([(T + "verify.assertions", [{"metric": "result.pass", "op": "neq", "value": 1}])], "value: must be a bool, as `result.pass` is"),
        ([(T + "verify.assertions", [{"metric": "cost.usd", "op": "=", "value": 1}])], "op: must be one of `lt`, `lte`, `gt`, `gte`, `eq`, `neq`"),
        ([("thresholds", {"fail": [{"metric": "task.solved", "op": "eq", "value": False}]})], "thresholds.fail[0].metric: `task.solved` needs `verify.measure`"),
        ([(T + "expectClass", "forbidden_path")], "tasks[0].expectClass: needs `expect: failed`"),
        ([(T + "expect", "failed"), (T + "expectClass", "setup_failed")], "`setup_failed` is not a class of a scored failure"),
        ([(T + "expect", "failed"), (T + "expectClass", "verifier")], "did you mean `verifier_failed`?"),
        ([("matrix.repeats", 10_000), ("matrix.targets", [{"id": f"t{n}"} for n in range(11)])], "matrix: asks for 110000 trials; a run has at most 100000"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, changes: list[tuple[str, object]], said: str) -> None:
    found = problems(tmp_path, changed(*changes))
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("same", "same", "tasks[1].id: `same` is already the id of tasks[0]"),
        ("Same", "saME", "tasks[1].id: `saME` is already the id of tasks[0], but for upper and lower case"),
    ],
)
def test_task_ids_are_unique(tmp_path: Path, first: str, second: str, said: str) -> None:
    """Known failure F11."""
    task = {
        "workspace": {"kind": "inline", "files": {}},
        "runner": {"kind": "external-command", "command": "x"},
    }
    tasks = [{"id": first, **task}, {"id": second, **task}]
    assert problems(tmp_path, changed(("tasks", tasks))) == [said]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        *(
            (f"tasks.0.{key}", [], f"tasks[0].{key}: `{key}` is not supported yet by this version")
            for key in (
                "services",
                "kind",
                "deviation",
            )
        ),
        *(
            (f"tasks.0.{key}", 1, f"`{key}` is not supported yet by this version")
            for key in ("tier", "evidence")
        ),
        ("suite.suite", "capability", "suite.suite: `suite` is not supported yet by this version"),
        ("defaults", {"kind": "rule"}, "defaults.kind: `kind` is not supported yet by this version"),
        (
            "defaults",
            {"network": "bridge"},
            "defaults.network: network `bridge` is not supported yet by this version",
        ),
        ("tasks.0.image", {"build": "."}, "tasks[0].image: `build` is not supported yet by this version"),
    ],
)
def test_later_grammar_is_refused_by_name_alone(tmp_path: Path, path: str, value: object, said: str) -> None:
    found = problems(tmp_path, changed((path, value)))
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "is empty and matches nothing"),
        ("  ", "is empty and matches nothing"),
        ("#x", "is a comment"),
        ("!x", "has nothing to take back"),
        ("../x", "has `..` and can never match"),
        ("a/./b", "has an empty or `.` part"),
        ("a//b", "has an empty or `.` part"),
        ("/", "has an empty or `.` part"),
        ("a ", "starts or ends with a space"),
        ("~/x", "is outside the workspace"),
        ("/workspace/x", "is outside the workspace"),
        ("a\\", "is not a valid gitignore pattern"),
        ("[", "is not a valid gitignore pattern"),
    ],
)
@pytest.mark.parametrize("key", ["workspace.excludes", "verify.forbidPaths"])
def test_patterns_that_can_never_match_are_refused(tmp_path: Path, key: str, pattern: str, said: str) -> None:
    """Known failure D15."""
    copy = (T + "workspace", {"kind": "temp-copy", "path": "x"})
    (found,) = problems(tmp_path, changed(copy, (T + key, [pattern])))
    assert found.startswith(f"tasks[0].{key}[0]: ")
    assert said in found


@pytest.mark.parametrize("pattern", ["A.txt", "b.txt", "a.txt/", "/sub/a.txt"])
def test_a_pattern_that_matches_no_file_of_an_inline_fixture_is_a_warning(
    tmp_path: Path, pattern: str
) -> None:
    loaded = load(tmp_path, changed((T + "verify.forbidPaths", [pattern, "./a.txt", "/a.txt", "a.*"])))
    (warning,) = loaded.warnings
    assert warning.path == "tasks[0].verify.forbidPaths[0]"
    assert f"`{pattern}` matches no file" in warning.message
    assert warning.line > 0


@pytest.mark.contract("S3")
def test_all_mistakes_come_at_once_in_file_order_with_their_places(tmp_path: Path) -> None:
    text = (
        RIGHT.replace("title: Small", "titel: 010").replace("id: first", "id: NO").replace("files:", "fils:")
    )
    text = text.replace("  - id", "  -\n    timeoutMs: 1:30\n    id")
    with pytest.raises(SuiteError) as caught:
        load(tmp_path, text)
    file = tmp_path / "s.yaml"
    assert str(caught.value).splitlines() == [
        f"{file}:3:8: suite: key `title` is missing",
        f"{file}:3:20: suite: unknown key `titel`; did you mean `title`?",
        f"{file}:3:27: suite.titel: `010` is ambiguous in YAML; write it in quotes, or as a plain decimal number if it is one",
        f"{file}:8:16: tasks[0].timeoutMs: `1:30` is ambiguous in YAML; write it in quotes, or as a plain decimal number if it is one",
        f"{file}:9:9: tasks[0].id: `NO` is ambiguous in YAML; write it in quotes, or as true or false if it is one",
        f"{file}:10:31: tasks[0].workspace: unknown key `fils`; did you mean `files`?",
    ]  # fmt: skip


def test_rules_are_checked_beside_mistakes_of_the_yaml(tmp_path: Path) -> None:
    text = RIGHT.replace("id: small", "id: small, description: 010").replace('command: "true"', "cwd: /x")
    assert [line.split(":")[0] for line in problems(tmp_path, text)] == [
        "suite.description",
        "tasks[0].runner",
        "tasks[0].runner.cwd",
    ]


def test_very_many_mistakes_are_cut(tmp_path: Path) -> None:
    text = RIGHT + "".join(f"x{n}: 1\n" for n in range(150))
    with pytest.raises(SuiteError) as caught:
        load(tmp_path, text)
    assert len(caught.value.problems) == 101
    assert caught.value.problems[-1].message == "50 more problems are not shown"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("# only a comment\n", "is empty"),
        ("[]", "must be a mapping of keys to values"),
        ("text", "must be a mapping of keys to values"),
        ("x" * (10 * 1024 * 1024), "is larger than 1024 KiB, the most that is read"),
    ],
)
def test_files_that_are_no_suite(tmp_path: Path, text: str, said: str) -> None:
    assert problems(tmp_path, text) == [said]


def test_a_suite_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    cases = {"nope.yaml": "No such file or directory", ".": "Is a directory", "fifo": "is not a regular file"}
    for name, reason in cases.items():
        with pytest.raises(SuiteError, match=f"suite cannot be read: {reason}"):
            load_suite(tmp_path / name)


def test_scripts_in_files_are_read_for_models_and_tasks(tmp_path: Path) -> None:
    (tmp_path / "turns.yaml").write_text("turns: [{text: from a file}]\nusage: {input: 7}\n")
    text = changed(SCRIPTED, (T + "runner.script", "turns.yaml"), ("models.m.script", "turns.yaml"))
    scripts = load(tmp_path, text).scripts
    assert list(scripts) == ["m", "task:first"]
    assert scripts["m"] == scripts["task:first"]
    assert scripts["m"].usage.input == 7


def test_mistakes_in_other_files_have_their_own_places(tmp_path: Path) -> None:
    (tmp_path / "turns.yaml").write_text("turns:\n  - {text: 1}\n")
    (tmp_path / "p.yaml").write_text("version: 1\nid: p\nprivileged: true\n")
    text = changed(("models.m.script", "turns.yaml"), (T + "policy", "./p.yaml"), (T + "timeoutMs", 5))
    with pytest.raises(SuiteError) as caught:
        load(tmp_path, text)
    assert sorted(str(caught.value).splitlines()) == [
        "./p.yaml:3:1: privileged: `privileged` can never be asked for; boxes are always shut",
        'turns.yaml:2:12: turns[0].text: must be text, and `1` is not; write it in quotes: "1"',
    ]


def test_policies_are_loaded_by_the_name_that_was_written(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("version: 1\nid: mine\nlimits: {pids: 9}\n")
    loaded = load(tmp_path, changed((T + "policy", "p.yaml"), ("defaults", {"policy": "strict"})))
    assert {name: policy.id for name, policy in loaded.policies.items()} == {
        "default": "default",
        "strict": "strict",
        "p.yaml": "mine",
    }
    assert loaded.policies["p.yaml"].limits.pids == 9
