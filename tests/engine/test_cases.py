"""Case files on the real engine: the two walk-throughs as they are written, and what a case may not reach."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boxeval.settings import load_settings, resource
from engine_runs import forget

EXAMPLES = resource("suites") / "examples" / "cases"


@pytest.fixture(autouse=True)
def swept() -> Iterator[None]:
    yield
    forget(load_settings())


def boxeval(*arguments: str | Path, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "boxeval", *map(str, arguments)]
    env = {**os.environ, **environ}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)


def git(repository: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    env = {"PATH": os.environ["PATH"], "HOME": str(repository), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *who, *arguments], cwd=repository, env=env, check=True)


@pytest.mark.contract("G57", "G58", "G61", "G71")
def test_the_startup_walk_through(tmp_path: Path) -> None:
    """The commands of suites/examples/cases/startup/README.md."""
    place = tmp_path / "skill-evals"
    shutil.copytree(EXAMPLES / "startup", place)
    for arguments in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "A noticeboard")):
        git(place / "fixture-repo", *arguments)
    (place / "sources.json").write_text(json.dumps({"fixture-repo": f"file://{place}/fixture-repo"}))
    command = ["run", "--json"]
    command += ["--case-file", f"{place}/cases/explain-startup.json"]
    command += ["--case-source-root", f"{place}", "--case-source-map-file", f"{place}/sources.json"]
    command += ["--project-root", f"{place}/fixture-repo", "--results-root", f"{place}/results"]
    command += ["--host", "reference", "--model", f"script:{place}/model.yaml", "--effort", "medium"]
    command += ["--condition", "passive", "--trials", "3", "--threshold", "1"]
    dry = boxeval(*command, "--dry", cwd=place)
    assert dry.returncode == 0, dry.stderr
    prepared = json.loads(dry.stdout)
    assert (prepared["execution"], prepared["grading"], prepared["task"]) == (
        "not_run",
        "not_requested",
        "not_assessed",
    )
    assert all(trial["inputTokens"] is None for trial in prepared["cases"][0]["trials"])
    done = boxeval(*command, cwd=place)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    [case] = result["cases"]
    assert (result["task"], case["passed"], case["passRate"]) == ("passed", 3, 1.0)
    statuses = {(check["id"], check["status"]) for trial in case["trials"] for check in trial["checks"]}
    assert statuses == {("startup-command", "passed"), ("correct-port", "passed")}
    assert case["identity"] != prepared["cases"][0]["identity"]
    (place / "result.json").write_text(done.stdout)
    told = boxeval("report", "--result-file", f"{place}/result.json", cwd=place)
    assert told.returncode == 0 and "my-guide-explain-startup  passed" in told.stdout
    differ = boxeval("identity", prepared["evidencePath"], result["evidencePath"], cwd=place)
    assert differ.stdout == "my-guide-explain-startup[reference]: mode\n", differ.stderr


@pytest.mark.contract("G57", "G61")
def test_the_graded_walk_through_and_its_deliberate_failure(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("turns:\n  - text: It is the MIT license.\n")
    for model, code, verdict in ((EXAMPLES / "graded/model.yaml", 0, "passed"), (wrong, 1, "failed")):
        done = boxeval(
            *("run", "--json", "--case-file", EXAMPLES / "graded/case.json", "--host", "reference"),
            *("--model", f"script:{model}", "--results-root", "results"),
            cwd=tmp_path,
        )
        assert done.returncode == code, done.stderr
        result = json.loads(done.stdout)
        assert (result["execution"], result["grading"], result["task"]) == ("completed", "completed", verdict)
        message = Path(result["evidencePath"]) / result["cases"][0]["trials"][0]["message"]["path"]
        assert message.read_text().startswith("MIT" if code == 0 else "It is")


@pytest.mark.contract("G16", "G31", "G33", "G34", "G75", "G22")
def test_candidates_and_checks_reach_what_is_shown_and_nothing_protected(tmp_path: Path, tools: Path) -> None:
    """What is shown to the boxes is the control: the same look finds that, and none of the rest."""
    private, project = tmp_path / "private", tmp_path / "project"
    for place in (private, project):
        place.mkdir()
        (place / "canary").write_text("CANARY")
    hidden = [
        private,
        project,
        tmp_path / "results",
        tmp_path / "cases/case.json",
        Path.home(),
        resource("policies"),
    ]
    look = f"for p in {' '.join(map(str, (*hidden, tools)))}; do if test -e $p; then echo seen $p; fi; done"
    shown = f"seen {tools}"
    seeded, both = "cat $CACHE/*; echo mine > $CACHE/own; echo >> $CACHE/seed", "here\nseed"
    case: dict[str, Any] = {
        "id": "look-around",
        "prompt": "Look around.",
        "fixture": {"kind": "generated", "commits": [{"message": "one", "files": {"a": "1\n"}}]},
        "checks": [
            {
                "id": "checks-see",
                "grader": "sevro.shell",
                "configuration": {"run": look, "expectExact": shown},
            },
            {
                "id": "candidate-saw",
                "grader": "sevro.shell",
                "configuration": {
                    "run": f"cat saw; echo $TOOLS; {seeded}",
                    "expectExact": f"{shown}\n{both}\n{both}",
                },
            },
            {
                "id": "checks-cannot-write",
                "grader": "sevro.shell",
                "configuration": {
                    "run": f"touch here /tmp/x; if touch {tools}/x; then exit 1; fi; env",
                    "notRegex": "KEY|TOKEN",
                },
            },
            {"id": "committed", "grader": "sevro.git-head", "configuration": {"kind": "changed"}},
        ],
        "requiredEvidence": ["boxeval.message"],
    }
    for name in ("cache", "cases"):
        (tmp_path / name).mkdir()
    (tmp_path / "cache/seed").write_text("seed\n")
    (tmp_path / "cases/case.json").write_text(json.dumps(case))
    commit = "git -c user.name=a -c user.email=a@b commit -qam two"
    turns = [
        {
            "calls": [
                {
                    "tool": "bash",
                    "input": {"command": f"{{ {look}; echo $TOOLS; {seeded}; }} > saw; echo 2 > a; {commit}"},
                }
            ]
        },
        {"text": "done"},
    ]
    (tmp_path / "model.yaml").write_text(json.dumps({"turns": turns}))
    runtime: dict[str, Any] = {
        "environment": {"set": {"TOOLS": "here", "CACHE": "{{sevro.runtime}}/cache"}},
        "filesystem": {"readOnlyRoots": [str(tools)]},
        "runtime": {"seedDirectories": [{"source": "cache", "target": "cache"}]},
    }
    (tmp_path / "runtime.json").write_text(json.dumps({"format": "sevro.runtime.v1", **runtime}))
    command = [
        "run",
        "--json",
        "--case-file",
        "cases/case.json",
        "--host",
        "reference",
        "--model",
        "script:model.yaml",
    ]
    command += ["--project-root", "project", "--results-root", "results", "--protected-root", f"{private}"]
    done = boxeval(*command, "--runtime-config-file", "runtime.json", "--shell-isolation", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert result["cases"], done.stderr
    checks = result["cases"][0]["trials"][0]["checks"]
    assert [(check["id"], check["status"]) for check in checks] == [
        ("checks-see", "passed"),
        ("candidate-saw", "passed"),
        ("checks-cannot-write", "passed"),
        ("committed", "passed"),
    ], done.stdout
    assert done.returncode == 0
    assert (tmp_path / "cache/seed").read_text() == "seed\n" and not (tmp_path / "cache/own").exists()
    runtime["filesystem"]["readOnlyRoots"] = [str(private)]
    (tmp_path / "runtime.json").write_text(json.dumps({"format": "sevro.runtime.v1", **runtime}))
    refused = boxeval(*command, "--runtime-config-file", "runtime.json", cwd=tmp_path)
    assert refused.returncode == 64 and "the protected root" in refused.stderr


@pytest.mark.contract("G24", "G25")
def test_a_semantic_check_is_judged_by_the_route_that_the_operator_names(tmp_path: Path) -> None:
    case = json.loads((EXAMPLES / "graded/case.json").read_text())
    case["checks"] = [
        {"id": "polite", "grader": "sevro.semantic", "configuration": {"proposition": "It is polite."}}
    ]
    (tmp_path / "case.json").write_text(json.dumps(case))
    outcome = {"id": "polite", "verdict": "fail", "reason": "It is curt."}
    judge = {"turns": [{"text": json.dumps({"outcomes": [outcome]})}]}
    (tmp_path / "judge.yaml").write_text(json.dumps(judge))
    command = [
        "run",
        "--json",
        "--case-file",
        "case.json",
        "--host",
        "reference",
        "--results-root",
        "results",
    ]
    command += ["--model", f"script:{EXAMPLES / 'graded/model.yaml'}"]
    without = boxeval(*command, cwd=tmp_path)
    assert (without.returncode, without.stderr.strip()) == (
        64,
        "boxeval: check polite needs a judge: --semantic-host HOST and --semantic-model MODEL",
    )
    judged = ("--semantic-host", "reference", "--semantic-model", "script:judge.yaml")
    done = boxeval(*command, *judged, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    assert (result["grading"], result["task"]) == ("completed", "failed")
    [check] = result["cases"][0]["trials"][0]["checks"]
    assert (check["id"], check["status"]) == ("polite", "failed")


@pytest.mark.contract("G57", "G64", "G65", "G66")
def test_a_case_of_an_extension_is_interrupted_and_goes_on(tmp_path: Path) -> None:
    """The shipped example in the other tool's names, so that it is known by what it speaks."""
    place = shutil.copytree(EXAMPLES / "supplied", tmp_path / "supplied")
    script = place / "extension.py"
    other = script.read_text().replace("boxeval.message", "sevro.observation.final-message")
    script.write_text(other.replace("boxeval.", "sevro."))
    slow = {"turns": [{"calls": [{"tool": "bash", "input": {"command": "sleep 2"}}]}, {"text": "bonjour"}]}
    (place / "model.yaml").write_text(json.dumps(slow))
    case = ["run", "--json", "--extension-command-file", f"{place}/command.json"]
    case += ["--extension-source", f"{script}", "--host", "reference", "--results-root", "results"]
    case += ["--model", f"script:{place}/model.yaml"]
    several = boxeval(*case, cwd=tmp_path)
    assert several.returncode == 64
    assert "it has 2 cases (`english`, `french`); name one with --case-id" in several.stderr
    command = [sys.executable, "-m", "boxeval", *case, "--case-id", "french", "--trials", "2", "--jobs", "1"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as going:
        assert going.stderr is not None and going.stdout is not None
        for line in going.stderr:
            if line.startswith("started french[reference]#1"):
                going.send_signal(signal.SIGINT)
                break
        rest = going.stderr.read()
        stopped = json.loads(going.stdout.read())
    assert (going.returncode, stopped["task"]) == (130, "not_assessed"), rest
    done = boxeval("run", "--json", "--resume", stopped["evidencePath"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    [told] = result["cases"]
    assert (told["caseId"], told["passed"], told["identity"]) == (
        "french",
        2,
        stopped["cases"][0]["identity"],
    )
    checks = [(one["id"], one["grader"], one["status"]) for one in told["trials"][1]["checks"]]
    assert checks == [("word", "boxeval.regex", "passed"), ("short", "example.greetings", "passed")]
    assert (
        boxeval("report", "--result-file", f"{result['evidencePath']}/run.json", cwd=tmp_path).returncode == 0
    )


@pytest.mark.contract("G36", "G37", "G42", "G45", "G47", "G57", "G75")
def test_codex_takes_two_prompts_of_a_case_and_leaves_what_it_requires(tmp_path: Path) -> None:
    sessions, state = "$SEVRO_CANDIDATE_TRANSCRIPTS", "$BOXEVAL_CANDIDATE_ARTIFACT_STATE"
    look = f"cat out; cd {sessions}; ls; find codex -name '*.jsonl' | wc -l; ls {state}"
    shut = f"test -d {sessions}; test -d {state}; if touch {sessions}/x || touch {state}/x; then exit 1; fi"
    case = {
        "id": "two-prompts",
        "prompt": "Greet.",
        "followUpPrompt": "Once more, and say ready.",
        "fixture": {
            "kind": "generated",
            "commits": [{"message": "one", "files": {"a": "1\n"}}],
            "bin": {"greet": '#!/bin/sh\necho "hello $1"\n'},
        },
        "checks": [
            {"id": "said", "grader": "sevro.regex", "configuration": {"pattern": "^ready$"}},
            {
                "id": "seen",
                "grader": "sevro.shell",
                "configuration": {
                    "run": look,
                    "expectExact": "hello \nhello again\ncodex\nindex.json\n1\n2026",
                },
            },
            {"id": "shut", "grader": "sevro.shell", "configuration": {"run": shut}},
        ],
        "requiredEvidence": [
            *("sevro.codex.events", "sevro.codex.native-calls", "sevro.codex.continuation"),
            "boxeval.host.usage",
        ],
    }
    (tmp_path / "case.json").write_text(json.dumps(case))
    turns: list[dict[str, Any]] = []
    for command, text in (("greet > out", "first"), ("greet again >> out", "ready")):
        turns.append({"calls": [{"tool": "exec_command", "input": {"cmd": command}}]})
        turns.append({"text": text})
    (tmp_path / "model.yaml").write_text(json.dumps({"turns": turns}))
    runtime = {
        "format": "sevro.runtime.v1",
        "nativeTranscripts": True,
        "candidateArtifacts": {"state": ".codex/sessions"},
    }
    (tmp_path / "runtime.json").write_text(json.dumps(runtime))
    done = boxeval(
        *("run", "--json", "--case-file", "case.json", "--host", "codex", "--effort", "medium"),
        *(
            "--model",
            "script:model.yaml",
            "--results-root",
            "results",
            "--runtime-config-file",
            "runtime.json",
        ),
        cwd=tmp_path,
    )
    result = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    place = Path(result["evidencePath"])
    [trial] = result["cases"][0]["trials"]
    assert len(trial["artifacts"]) == 2 and (place / trial["artifacts"][0]["path"]).is_file()
    record = json.loads((place / "trials/0001.json").read_text())["observations"]["agentRecord"]
    first, second = record["turns"]
    assert (first["continues"], second["continues"], second["session"]) == (False, True, first["session"])
    assert len(record["native"]["boundaries"]) == 1
