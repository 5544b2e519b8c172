"""The files of a case run beside its ledger, all of them derived from it (contract G71).

run.json           the result
trials/0001.json   the record of a trial, by its place in the plan
messages/          final messages, as raw bytes
artifacts/         what an agent adapter kept, a directory a trial

Each is made once, whole or not at all, for its owner alone; only the result of a run that went on is
replaced. `verify` reads none of them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import ValidationError

from boxeval.errors import StorageError, TamperError
from boxeval.receipts.canonical import MAX_BYTES, canonical
from boxeval.receipts.storage import publish, read_regular, replace
from boxeval.receipts.verify import VerifiedRun
from boxeval.spec.case_result import CaseResult, KeptFile
from boxeval.spec.trial import Trial
from boxeval.verdicts.case_result import case_result

RUN = "run.json"
TRIALS, MESSAGES, ARTIFACTS = "trials", "messages", "artifacts"


def write_case_files(verified: VerifiedRun, directory: Path) -> CaseResult:
    """Write them all, the result last. `StorageError` if that cannot be done."""
    result = derived(verified, directory)
    try:
        for name in (TRIALS, MESSAGES, ARTIFACTS):
            (directory / name).mkdir(mode=0o700, exist_ok=True)
        for trial in verified.trials:
            _keep(directory / record_path(verified, trial), canonical(trial) + b"\n")
            for kept, sha256 in kept_files(trial):
                place = directory / kept.path
                place.parent.mkdir(mode=0o700, exist_ok=True)
                _keep(place, verified.blobs.get(sha256))
        # A run that went on has one of the time before.
        write = replace if (directory / RUN).exists() else publish
        write(directory / RUN, canonical(result) + b"\n")
    except OSError as error:
        raise StorageError(f"{directory}: results cannot be written: {error.strerror or error}") from error
    return result


def _keep(place: Path, data: bytes) -> None:
    """Make a file, unless a run that went on has made that very file before."""
    try:
        publish(place, data)
    except FileExistsError:
        if read_regular(place, MAX_BYTES) != data:
            raise


def derived(verified: VerifiedRun, directory: Path) -> CaseResult:
    """The result as the ledger alone gives it."""

    def kept(trial: Trial) -> tuple[KeptFile | None, tuple[KeptFile, ...]]:
        files = [file for file, _ in kept_files(trial)]
        message = next((file for file in files if file.path.startswith(f"{MESSAGES}/")), None)
        return message, tuple(file for file in files if file is not message)

    return case_result(verified, directory.resolve(), kept)


def kept_files(trial: Trial) -> list[tuple[KeptFile, str]]:
    """The final message and the artifacts of a trial as files, with the blob of each."""
    name, seen = f"{trial.trial_id}.{trial.attempt}", trial.observations
    files = []
    if seen.message and seen.message.sha256:
        path = f"{MESSAGES}/{name}"
        files.append(KeptFile(path=path, sha256=seen.message.sha256, size_bytes=seen.message.size_bytes))
    turns = seen.agent_record.turns if seen.agent_record else ()
    artifacts = [artifact for turn in turns for artifact in turn.artifacts if artifact.sha256]
    for number, artifact in enumerate(artifacts, start=1):
        # The id is the agent's module's, but a name on the host is ours.
        path = f"{ARTIFACTS}/{name}/{number:04}"
        files.append(KeptFile(path=path, sha256=artifact.sha256 or "", size_bytes=artifact.size_bytes))
    return [(file, file.sha256) for file in files]


def record_path(verified: VerifiedRun, trial: Trial) -> str:
    """Where the record of a trial is; attempts after the first have their number in the name."""
    number = 1 + [planned.trial_id for planned in verified.plan.trials].index(trial.trial_id)
    again = f".{trial.attempt}" if trial.attempt > 1 else ""
    return f"{TRIALS}/{number:04}{again}.json"


def read_result(path: Path) -> CaseResult:
    """A result as it was printed or kept. `TamperError` if it is none in canonical or printed form."""
    data = read_regular(path, MAX_BYTES)
    try:
        return CaseResult.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        why = f"{place}: {first['msg']}" if place else first["msg"]
        raise TamperError(f"{path}: is no result of a case run: {why}") from None


def check_files(verified: VerifiedRun, directory: Path, result: CaseResult) -> None:
    """Compare a result and all files beside the ledger with what the ledger gives. Raises `TamperError`."""
    expected = derived(verified, directory)
    if result != expected:
        raise TamperError(f"the result of run {result.run_id} does not follow from its ledger")
    wanted = {RUN: canonical(expected) + b"\n"}
    wanted |= {record_path(verified, trial): canonical(trial) + b"\n" for trial in verified.trials}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in wanted.items()}
    digests |= {kept.path: sha256 for trial in verified.trials for kept, sha256 in kept_files(trial)}
    for name, sha256 in digests.items():
        try:
            found = hashlib.sha256(read_regular(directory / name, MAX_BYTES)).hexdigest()
        except OSError as error:
            raise TamperError(f"{directory / name}: {error.strerror or error}") from None
        if found != sha256:
            raise TamperError(f"{directory / name}: is not what the ledger gives")
