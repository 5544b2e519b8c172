"""Results of case runs and the files beside their ledgers (contract G71, G72, G58, G62)."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

import run_samples as samples
from boxeval.cli.app import call
from boxeval.errors import StorageError, TamperError
from boxeval.run.case_files import check_files, derived, read_result, write_case_files
from boxeval.spec.checks import HumanCheck, HumanConfiguration
from boxeval.spec.trial import Observations
from case_runs import SAID, answered, plan, sealed


def test_what_a_result_says(tmp_path: Path) -> None:
    run = sealed(tmp_path / "run", plan(3), answered(), answered("failed"), answered())
    result = derived(run, tmp_path / "run")
    [case] = result.cases
    assert (result.execution, result.grading, result.task, result.exit_code) == (
        "completed",
        "completed",
        "passed",
        0,
    )
    assert (case.case_id, case.passed, case.planned, case.pass_rate) == ("say-ready", 2, 3, 2 / 3)
    assert [trial.task for trial in case.trials] == ["passed", "failed", "passed"]
    assert [(check.id, check.status) for check in case.trials[1].checks] == [("ready", "failed")]
    assert case.duration_ms == 3000
    assert case.identity == run.plan.tasks[0].identity
    assert result.condition and (result.condition.requested, result.condition.applied) == (
        "passive",
        "passive",
    )


@pytest.mark.contract("G72", "G39")
def test_a_figure_is_there_only_if_every_trial_has_it(tmp_path: Path) -> None:
    known = answered(traffic=samples.traffic(cost_usd=0.25))
    unpriced, unmeasured = answered(traffic=samples.traffic()), answered()
    broken = samples.fault("command_error")
    table: tuple[
        tuple[list[Observations | None], float | None, tuple[int | None, int | None], float | None], ...
    ]
    table = (
        ([known, known], 1.0, (400, 80), 0.5),
        ([known, unpriced], 1.0, (400, 80), None),
        ([known, unmeasured], 1.0, (None, None), None),
        ([known, broken], None, (None, None), None),
        ([known, None], None, (None, None), None),
    )
    for number, (observed, rate, tokens, cost) in enumerate(table):
        place = tmp_path / str(number)
        [case] = derived(sealed(place, plan(2), *observed), place).cases
        assert case.pass_rate == rate
        assert (case.input_tokens, case.output_tokens) == tokens
        assert case.cost_usd == cost


@pytest.mark.contract("G72")
def test_what_is_not_known_prints_as_unknown_and_never_as_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "run"
    write_case_files(sealed(place, plan(1), samples.fault("command_error")), place)
    assert call(["report", "--result-file", str(place / "run.json")]) == 0
    [row] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("say-ready")]
    figures = ["unknown", "1.0", "s", "unknown/unknown", "unknown"]
    assert row.split()[1:] == ["not_assessed", "failed", "not_requested", "0/1", *figures]
    assert call(["report", "--result-file", str(place / "run.json"), "--format", "json"]) == 0
    [result] = json.loads(capsys.readouterr().out)["results"]
    assert result["cases"][0]["passRate"] is None and result["cases"][0]["costUsd"] is None


@pytest.mark.contract("G58", "G62")
def test_a_dry_run_is_not_assessed_and_good_only_if_all_was_prepared(tmp_path: Path) -> None:
    prepared = samples.seen(agent=None, collected=None, grader=None)
    one, other = tmp_path / "one", tmp_path / "other"
    result = derived(sealed(one, plan(2, dry=True), prepared, prepared), one)
    states = (result.execution, result.grading, result.task)
    assert states == ("not_run", "not_requested", "not_assessed") and result.exit_code == 0
    assert result.condition and result.condition.applied is None
    result = derived(sealed(other, plan(2, dry=True), prepared, samples.fault("setup_failed")), other)
    assert result.exit_code == 2
    assert result.cases[0].trials[1].failure_class == "setup_failed"


@pytest.mark.contract("G71")
def test_files_are_made_once_whole_and_for_their_owner_alone(tmp_path: Path) -> None:
    place = tmp_path / "run"
    run = sealed(place, plan(2), answered(), answered("failed"))
    result = write_case_files(run, place)
    made = sorted(
        str(p.relative_to(place)) for p in place.rglob("*") if p.is_file() and "blobs" not in p.parts
    )
    assert made == [
        "checkpoint",
        "ledger.jsonl",
        "messages/say-ready-reference-1.1",
        "messages/say-ready-reference-2.1",
        "plan.json",
        "run.json",
        "trials/0001.json",
        "trials/0002.json",
    ]
    for name in made:
        status = (place / name).stat()
        assert stat.S_IMODE(status.st_mode) == 0o600 and status.st_nlink == 1
    assert (place / "messages/say-ready-reference-1.1").read_bytes() == SAID
    record = json.loads((place / "trials/0002.json").read_text())
    assert record == json.loads(run.trials[1].model_dump_json(by_alias=True))
    assert read_result(place / "run.json") == result
    check_files(run, place, result)
    assert write_case_files(run, place) == result  # as after a run that went on
    (place / "trials/0001.json").write_text("{}")
    with pytest.raises(StorageError):
        write_case_files(run, place)


@pytest.mark.contract("G71")
@pytest.mark.parametrize("name", ["run.json", "trials/0001.json", "messages/say-ready-reference-1.1"])
@pytest.mark.parametrize("how", ["changed", "gone", "link"])
def test_every_file_is_compared_with_the_ledger(tmp_path: Path, name: str, how: str) -> None:
    place = tmp_path / "run"
    run = sealed(place, plan(1), answered())
    result = write_case_files(run, place)
    file = place / name
    data = file.read_bytes()
    file.unlink()
    if how == "changed":
        file.write_bytes(data.replace(b"e", b"x", 1))
    elif how == "link":
        (tmp_path / "same").write_bytes(data)
        file.symlink_to(tmp_path / "same")
    with pytest.raises(TamperError, match=name):
        check_files(run, place, result)


@pytest.mark.contract("G71")
def test_a_result_that_says_something_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, kept = tmp_path / "run", tmp_path / "result.json"
    result = write_case_files(sealed(place, plan(1), answered("failed")), place)
    kept.write_text(result.model_dump_json(by_alias=True, indent=2))
    assert call(["report", "--result-file", str(kept)]) == 0
    kept.write_text(kept.read_text().replace('"failed"', '"passed"'))
    assert call(["report", "--result-file", str(kept)]) == 4
    assert "does not follow from its ledger" in capsys.readouterr().err
    kept.write_text("{}")
    assert call(["report", "--result-file", str(kept)]) == 4
    told = capsys.readouterr().err
    assert re.search(r"result\.json: is no result of a case run: \w+: Field required\n$", told)
    assert call(["report", "--result-file", str(tmp_path / "gone")]) == 1
    assert call(["report", "--result-file", str(kept), "--result-file", str(kept)]) == 2
    assert call(["report"]) == 2


@pytest.mark.contract("G71", "V41")
def test_a_person_s_verdict_makes_the_result_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was printed before is told as that, and not as tampering."""
    place, before = tmp_path / "run", tmp_path / "before.json"
    question = HumanConfiguration(question="Is it kind?")
    check = HumanCheck(id="kind", grader="boxeval.human", configuration=question)
    awaited = "a person has not decided yet; see `boxeval grade`"
    seen = answered(checks=(samples.checked("kind", "unavailable", "boxeval.human", reason=awaited),))
    result = write_case_files(sealed(place, plan(1, checks=(check,)), seen), place)
    before.write_text(result.model_dump_json(by_alias=True, indent=2))
    assert (result.grading, result.exit_code) == ("unavailable", 4)
    assert (
        call(["grade", str(place), "say-ready[reference]#1", "--verdict", "pass", "--reason", "It is."]) == 0
    )
    now = read_result(place / "run.json")
    assert (now.task, now.exit_code, now.run_id) == ("passed", 0, result.run_id)
    assert call(["report", "--result-file", str(place / "run.json")]) == 0
    assert call(["report", "--result-file", str(before)]) == 3
    assert f"{place}/run.json is its result now" in capsys.readouterr().err
    before.write_text(before.read_text().replace("boxeval checkpoint 1", "boxeval checkpoint 2"))
    assert call(["report", "--result-file", str(before)]) == 4


def test_the_identity_command_names_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    sealed(one, plan(1, checks=()), samples.seen())
    sealed(other, plan(2, checks=(), threshold=1.0), samples.seen(), samples.seen())
    assert call(["identity", str(one), str(one)]) == 0
    assert capsys.readouterr().out == "equal\n"
    assert call(["identity", str(one), str(other)]) == 1
    assert capsys.readouterr().out == "say-ready[reference]: trials, threshold\n"
    allowed = ["--allow-difference", "trials", "--allow-difference", "threshold"]
    assert call(["identity", str(one), str(other), *allowed]) == 0
    assert call(["identity", str(one), str(other), *allowed[:2], "--json"]) == 1
    assert json.loads(capsys.readouterr().out.partition("\n")[2])["refused"] == ["threshold"]
    assert call(["identity", str(one), "--allow-difference", "weather"]) == 2
    assert call(["identity", str(one)]) == 0
    shown = capsys.readouterr().out
    # The digest of `1`, one byte in RFC 8785.
    assert "trials           6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b" in shown
