"""Case files: what loads unchanged, what is refused and where, and the suite that is made of one (G57)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from boxeval.agents import hosts as agents
from boxeval.errors import SuiteError, UsageError
from boxeval.formats.case import load_case, supplied_case, workspace_of
from boxeval.formats.case_suite import CONTINUES, Choice, case_suite, model_of
from boxeval.formats.runtime_config import NO_RUNTIME, Runtime
from boxeval.formats.sources import read_sources
from boxeval.formats.suite_v2 import LoadedSuite
from boxeval.spec.extension import ExtensionCase
from boxeval.spec.models import ReplayModel, UpstreamModel
from boxeval.spec.policy import ReadOnlyMount
from boxeval.spec.suite import RunnerKind
from case_samples import CASE, write_case, write_script

STARTUP = """{
  "id": "my-guide-explain-startup",
  "prompt": "How do I start this application locally, and which port does it use?",
  "fixture": { "sourceRef": "fixture-repo" },
  "checks": [
    {
      "id": "startup-command",
      "grader": "sevro.regex",
      "configuration": { "pattern": "bun run dev" }
    },
    {
      "id": "correct-port",
      "grader": "sevro.regex",
      "configuration": { "pattern": "\\\\b3000\\\\b" }
    }
  ],
  "requiredEvidence": []
}
"""


def made(
    directory: Path,
    repository: Path | None = None,
    runtime: Runtime = NO_RUNTIME,
    host: str = "reference",
    **changes: Any,
) -> LoadedSuite:
    loaded = load_case(write_case(directory, **changes))
    choice = Choice(host, write_script(directory), "medium", 3)
    return case_suite(loaded, choice, runtime, repository)


def problems(directory: Path, **changes: Any) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        made(directory, **changes)
    assert all(problem.line >= 1 for problem in caught.value.problems)
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


@pytest.mark.contract("G57", "G3")
def test_a_case_is_a_suite_of_one_task(tmp_path: Path) -> None:
    suite = made(tmp_path, requiredEvidence=["sevro.host.skill-activations"]).suite
    [task], [target] = suite.tasks, suite.matrix.targets
    assert (task.id, task.runner.kind, task.runner.prompt) == (
        "say-ready",
        RunnerKind.SCRIPTED,
        CASE["prompt"],
    )
    assert task.workspace.files == {"README.md": "a fixture\n"}
    assert (target.id, target.thinking, suite.matrix.repeats) == ("reference", "medium", 3)
    [check] = task.verify.checks
    assert (check.id, check.grader) == ("ready", "boxeval.regex")
    assert not task.verify.grade_incomplete
    assert task.required_evidence == ("sevro.host.skill-activations",)


@pytest.mark.contract("G57")
def test_json_and_yaml_are_one_format(tmp_path: Path) -> None:
    one = load_case(write_case(tmp_path))
    other = tmp_path / "case.yaml"
    other.write_text(yaml.safe_dump(CASE))
    assert load_case(other).case == one.case
    assert load_case(other).sha256 != one.sha256


@pytest.mark.contract("G57")
def test_the_case_of_the_walk_through_loads_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "startup.json"
    file.write_text(STARTUP)
    case = load_case(file).case
    assert workspace_of(case.fixture).path == "fixture-repo"
    assert [check.id for check in case.checks] == ["startup-command", "correct-port"]


@pytest.mark.contract("G57")
@pytest.mark.parametrize(
    ("fixture", "said"),
    [
        ({}, "fixture: needs `files`, `sourceRef` or `kind: generated`"),
        (
            {"kind": "generated", "sourceRef": "x"},
            "fixture.sourceRef: kind `generated` does not take `sourceRef`",
        ),
        ({"files": {}, "commits": []}, "fixture.commits: needs `kind: generated`"),
        ({"kind": "generated"}, "fixture: kind `generated` needs `commits`"),
        (
            {"kind": "elsewhere", "files": {}},
            "fixture.kind: must be one of `inline`, `generated`, `repository`, not `elsewhere`",
        ),
        ({"files": {"../x": ""}}, 'fixture.files["../x"]: `../x` leaves the workspace with `..`'),
        ({"files": {}, "staged": ["x"]}, "fixture.staged: kind `inline` does not take `staged`"),
        ({"files": {}, "bin": {"x": "1"}}, "fixture.bin: kind `inline` does not take `bin`"),
        ({"files": {}, "sourceref": "x"}, "fixture: unknown key `sourceref`; did you mean `sourceRef`?"),
        (
            {"kind": "generated", "commits": [{"message": "m", "files": {".git/x": ""}}]},
            'fixture.commits[0].files[".git/x"]: `.git/x` is Git\'s own; write hooks with `hooks`',
        ),
    ],
)
def test_fixtures_that_are_refused(tmp_path: Path, fixture: dict[str, Any], said: str) -> None:
    assert problems(tmp_path, fixture=fixture) == [said]


@pytest.mark.contract("G57", "G2")
@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"id": None}, ""),
        ({"id": "a/b"}, "id"),
        ({"prompt": ""}, "prompt"),
        ({"fixture": None}, ""),
        ({"followUpPrompt": ""}, "followUpPrompt"),
        ({"followUpPrompt": " "}, "followUpPrompt"),
        ({"check": []}, ""),
        (
            {"checks": [{"id": "a", "grader": "sevro.regex", "configuration": {}}]},
            "checks[0].configuration",
        ),
        ({"checks": [{"id": "a", "grader": "sevro.magic", "configuration": {}}]}, "checks[0]"),
        ({"checks": [*CASE["checks"], *CASE["checks"]]}, "checks[1].id"),
    ],
)
def test_every_problem_is_told_at_its_place_in_the_case(
    tmp_path: Path, changes: dict[str, Any], place: str
) -> None:
    [said] = problems(tmp_path, **changes)
    assert said.split(": ")[0] == place, said


@pytest.mark.contract("G57")
def test_a_large_case_is_read_as_json_and_no_larger_one(tmp_path: Path) -> None:
    text = "x" * (2 * 1024 * 1024)
    generated = {"kind": "generated", "commits": [{"message": "m", "files": {"a": text}}]}
    assert load_case(write_case(tmp_path, fixture=generated)).case.fixture.commits
    twice = tmp_path / "twice.json"
    twice.write_text(json.dumps(CASE)[:-1] + f', "id": "{text}"}}')
    with pytest.raises(SuiteError, match="'id' is there twice"):
        load_case(twice)
    with pytest.raises(SuiteError, match="larger than 67108864 bytes"):
        (tmp_path / "huge").write_bytes(b" " * (64 * 1024 * 1024 + 1))
        load_case(tmp_path / "huge")


@pytest.mark.contract("G52")
@pytest.mark.parametrize(
    "path", [".codex/config.toml", ".CODEX/x", ".claude/settings.json", "./.mcp.json", "opencode.json"]
)
def test_an_agents_configuration_in_a_fixture_is_refused(tmp_path: Path, path: str) -> None:
    fixtures = [
        {"files": {path: ""}},
        {"kind": "generated", "commits": [{"message": "m", "files": {path: ""}}]},
    ]
    for fixture in fixtures:
        with pytest.raises(UsageError, match="which an agent takes for its own configuration"):
            made(tmp_path, fixture=fixture)
    opted: dict[str, Any] = {"fixture": fixtures[0], "fixtureConfiguration": "inert"}
    assert made(tmp_path, **opted).suite.tasks[0].runner.host is None
    host = made(tmp_path, host="codex", **opted).suite.tasks[0].runner.host
    assert host and host.fixture_configuration == "inert"
    with pytest.raises(UsageError, match="host gemini cannot leave it unheeded"):
        made(tmp_path, host="gemini", **opted)
    skill = {"files": {".agents/skills/x/SKILL.md": "", ".claude/skills/x/SKILL.md": "", "AGENTS.md": ""}}
    assert made(tmp_path, fixture=skill)


@pytest.mark.contract("G52", "G57")
def test_a_repository_is_found_by_its_name_and_looked_into(tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    (repository / ".git/objects").mkdir(parents=True)
    (repository / ".git/HEAD").write_text("1" * 40 + "\n")
    suite = made(
        tmp_path, repository, fixture={"sourceRef": "app", "files": {"extra": ""}, "staged": ["extra"]}
    )
    source = read_sources(suite, {"say-ready"})["say-ready"]
    assert (source.location, source.commit) == (repository, "1" * 40)  # type: ignore[union-attr]
    assert str(tmp_path) not in suite.suite.tasks[0].model_dump_json()
    (repository / ".codex").mkdir()
    with pytest.raises(UsageError, match=r"the fixture has `.codex`"):
        made(tmp_path, repository, fixture={"sourceRef": "app"})


@pytest.mark.contract("G57")
def test_a_second_prompt_is_a_turn_of_the_same_session(tmp_path: Path) -> None:
    [task] = made(tmp_path, followUpPrompt="And now?").suite.tasks
    assert [(step.id, step.prompt) for step in task.steps] == [
        ("prompt", CASE["prompt"]),
        ("follow-up", "And now?"),
    ]
    assert task.runner.options and task.runner.options.continue_session
    goes_on = {name for name, host in agents.HOSTS.items() if host.continues}
    assert set(CONTINUES) == {"reference", *goes_on}
    with pytest.raises(UsageError, match="host aider cannot go on with a session"):
        made(tmp_path, host="aider", followUpPrompt="And now?")


@pytest.mark.contract("G36", "G37", "G75")
def test_what_graders_see_of_the_home_is_an_option_of_the_host(tmp_path: Path) -> None:
    shown = {"transcripts": True, "artifacts": {"state": ".codex/sessions"}}
    [task] = made(tmp_path, host="codex", runtime=Runtime({}, (), None, {}, shown)).suite.tasks
    assert (
        task.runner.host and task.runner.host.model_dump(exclude_defaults=True, exclude={"effort"}) == shown
    )
    with pytest.raises(UsageError, match="host reference has no transcripts, artifacts of a runtime"):
        made(tmp_path, runtime=Runtime({}, (), None, {}, shown))


@pytest.mark.contract("G75", "G34", "G21")
def test_candidate_and_checks_get_the_same_runtime(tmp_path: Path) -> None:
    mount = ReadOnlyMount(source="/opt", target="/opt")
    suite = made(tmp_path, runtime=Runtime({"A": "1"}, (mount,), "0" * 64))
    [task], [target] = suite.suite.tasks, suite.suite.matrix.targets
    assert task.verify.env == target.env == {"A": "1"}
    assert suite.policies["default"].mounts == (mount,)


def test_models(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.touch()
    assert model_of(f"replay:{file}", "codex") == ReplayModel(replay=str(file))
    assert model_of("gpt-x", "codex") == UpstreamModel(upstream="openai", model="gpt-x")
    assert model_of("some-claude", "claude") == UpstreamModel(upstream="anthropic", model="some-claude")
    assert model_of("upstream:https://models.example/v1/name", "reference") == UpstreamModel(
        upstream="https://models.example/v1", model="name"
    )
    for text, host in (("script:gone.yaml", "reference"), ("name", "reference"), ("upstream:name", "codex")):
        with pytest.raises(UsageError, match=f"--model `{text}`"):
            model_of(text, host)


def test_a_host_is_an_agent_with_its_effort(tmp_path: Path) -> None:
    loaded = load_case(write_case(tmp_path))
    suite = case_suite(loaded, Choice("codex", write_script(tmp_path), "high", 1), NO_RUNTIME, None).suite
    runner = suite.tasks[0].runner
    assert (runner.kind, runner.agent, runner.prompt) == (RunnerKind.AGENT, "codex", CASE["prompt"])
    assert runner.host and runner.host.effort == "high"
    with pytest.raises(UsageError, match="--effort huge: host codex has low, medium, high"):
        case_suite(loaded, Choice("codex", write_script(tmp_path), "huge", 1), NO_RUNTIME, None)


def test_hosts_that_there_are_not(tmp_path: Path) -> None:
    loaded = load_case(write_case(tmp_path))
    with pytest.raises(UsageError, match="there is no host `codx`; did you mean `codex`"):
        case_suite(loaded, Choice("codx", write_script(tmp_path), None, 1), NO_RUNTIME, None)


def supplied(**changes: Any) -> ExtensionCase:
    short = {"id": "short", "grader": "example.cases.short", "configuration": {"most": 3}}
    tree = {**CASE, "checks": [*CASE["checks"], short], "extensionData": {"example.cases.n": 1}, **changes}
    return ExtensionCase.model_validate_json(json.dumps(tree))


@pytest.mark.contract("G57", "G65")
def test_a_case_of_an_extension_is_a_case_with_checks_of_its_own() -> None:
    loaded = supplied_case(
        supplied(requiredEvidence=["sevro.observation.final-message", "sevro.tokens"]), Path("x")
    )
    assert [check.grader for check in loaded.case.checks] == ["boxeval.regex"]
    assert loaded.case.required_evidence == ("boxeval.message", "boxeval.tokens")
    assert [(check.id, check.configuration) for check in loaded.own_checks] == [("short", {"most": 3})]
    assert loaded.data == {"example.cases.n": 1}
    other = supplied_case(supplied(prompt="Say so."), Path("x"))
    assert loaded.sha256 != other.sha256
    inline = supplied(fixture={"kind": "inline", "files": {"a": "1"}})
    assert workspace_of(supplied_case(inline, Path("x")).case.fixture).files == {"a": "1"}
    repository = supplied(fixture={"kind": "repository", "sourceRef": "r"})
    assert workspace_of(supplied_case(repository, Path("x")).case.fixture).path == "r"
    for fixture, reason in (
        ({"kind": "repository"}, "needs `sourceRef`"),
        ({"kind": "inline", "sourceRef": "r", "files": {}}, "does not take `sourceRef`"),
        ({"kind": "elsewhere"}, "fixture.kind"),
        ({"kind": "inline"}, "needs `files`"),
    ):
        with pytest.raises(SuiteError, match=reason) as error:
            supplied_case(supplied(fixture=fixture), Path("x"))
        assert str(error.value).startswith("case `say-ready` of the extension: fixture")
