"""SWE-bench predictions, one JSON line a planned trial: its patch as `git apply` takes it, and its verdict."""

from __future__ import annotations

import json

from boxeval.receipts.verify import VerifiedRun
from boxeval.spec.outcome import TaskState, Weight
from boxeval.spec.report import Report
from boxeval.spec.trial import Patch


def render(report: Report, run: VerifiedRun) -> str:
    """Lines in plan order, ASCII only.

    `model_patch` is null where no patch is available, never an empty one; `pass` is null where nothing was
    scored. What a patch lacks is told in `patch_incomplete`, which complete ones do not have. Where a plan
    repeats trials, the model's name ends in `#REPEAT`, so that no two lines are of one instance and model.
    """
    lines = {line.trial_id: line for line in report.trials}
    patches = {(trial.trial_id, trial.attempt): trial.observations.collected for trial in run.trials}
    repeated = any(trial.repeat > 1 for trial in run.plan.trials)
    text = ""
    for planned in run.plan.trials:
        line = lines.get(planned.trial_id)
        collected = patches.get((line.trial_id, line.attempt)) if line else None
        scored = line is not None and line.outcome.weight is Weight.SCORED
        entry = {
            "instance_id": planned.task,
            "model_name_or_path": f"{planned.target}#{planned.repeat}" if repeated else planned.target,
            **_patch(collected.patch if collected else None, run),
            "status": line.outcome.task.value if line else "missing",
            "pass": line.outcome.task is TaskState.PASSED if line and scored else None,
        }
        text += json.dumps(entry) + "\n"
    return text


def _patch(patch: Patch | None, run: VerifiedRun) -> dict[str, object]:
    if patch is None or patch.sha256 is None:
        why = patch.reasons if patch else ("nothing was collected",)
        return {"model_patch": None, "patch_incomplete": list(why)}
    told = {} if patch.complete else {"patch_incomplete": list(patch.reasons)}
    return {"model_patch": run.blobs.get(patch.sha256).decode(), **told}
