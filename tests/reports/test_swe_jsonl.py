"""Predictions as SWE-bench reads them: one line a planned trial, a patch or none, never a false empty one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import report_samples
import run_samples as samples
from boxeval.receipts.ledger import Ledger
from boxeval.receipts.trust import Trust
from boxeval.receipts.verify import VerifiedRun, verify
from boxeval.reports.formats import Format, render
from boxeval.spec.trial import Collected, Patch
from boxeval.verdicts.aggregate import aggregate

PATCH = 'diff --git "a/\\303\\244" "b/\\303\\244"\nnew file mode 100644\n@@ -0,0 +1 @@\n+ä\u2028\r\n'


def lines_of(run: VerifiedRun) -> list[dict[str, Any]]:
    text = render(Format.SWE_JSONL, aggregate(run), run)
    assert text.isascii()
    return [json.loads(line) for line in text.split("\n")[:-1]]


def sealed(directory: Path, patches: list[Patch | None], data: bytes) -> VerifiedRun:
    planned = samples.plan(samples.task("fix"), repeats=len(patches))
    ledger = Ledger.create(directory, planned, report_samples.KEY, now=lambda: samples.NOON)
    ledger.blobs.put(data)
    for place, patch in zip(planned.trials, patches, strict=True):
        seen = samples.seen(collected=Collected(patch=patch))
        ledger.append(samples.trial(planned.task_of(place), seen, place.repeat))
    ledger.close()
    return verify(directory, Trust((report_samples.KEY.trusted("test"),)))


@pytest.mark.contract("S33")
def test_a_line_has_the_patch_byte_for_byte(tmp_path: Path) -> None:
    run = sealed(tmp_path / "run", [samples.patch(PATCH.encode())], PATCH.encode())
    assert lines_of(run) == [
        {
            "instance_id": "fix",
            "model_name_or_path": "base",
            "model_patch": PATCH,
            "status": "passed",
            "pass": True,
        }
    ]


@pytest.mark.contract("S33")
def test_no_patch_is_null_and_an_incomplete_one_says_so(tmp_path: Path) -> None:
    patches = [
        samples.patch(),
        Patch(sha256=None, complete=False, reasons=("too large",)),
        samples.patch(complete=False, reasons=("neither a file nor a link: pipe",)),
        None,
    ]
    found = lines_of(sealed(tmp_path / "run", patches, b""))
    assert [line["model_patch"] for line in found] == ["", None, "", None]
    assert [line.get("patch_incomplete") for line in found] == [
        None,
        ["too large"],
        ["neither a file nor a link: pipe"],
        ["nothing was collected"],
    ]
    assert [line["model_name_or_path"] for line in found] == ["base#1", "base#2", "base#3", "base#4"]


@pytest.mark.contract("S33")
def test_every_kind_of_trial_has_a_line(tmp_path: Path) -> None:
    found = {line["instance_id"]: line for line in lines_of(report_samples.every_kind(tmp_path / "run"))}
    assert {name: (line["status"], line["pass"]) for name, line in found.items()} == {
        "ok": ("passed", True),
        "bad": ("failed", False),
        "cheat": ("failed", False),
        "other": ("failed", False),
        "weak": ("passed", True),
        "broken": ("not_assessed", None),
        "idle": ("not_assessed", None),
        "lost": ("missing", None),
    }


def test_a_patch_that_was_changed_is_refused_before_it_is_exported(tmp_path: Path) -> None:
    from boxeval.errors import TamperError

    data = PATCH.encode()
    sealed(tmp_path / "run", [samples.patch(data)], data)
    blob = tmp_path / "run" / "blobs" / samples.sha(PATCH)[:2] / samples.sha(PATCH)
    blob.write_bytes(b"another patch")
    with pytest.raises(TamperError, match="patch"):
        verify(tmp_path / "run", Trust((report_samples.KEY.trusted("test"),)))
