"""What a run was asked for, kept on this machine, so that `run --resume RUN` needs no more than its name.

It is a hint and no evidence: a resumed run is planned again, and goes on only if that gives the recorded plan. It holds
paths of this machine, which is why it is not in the run's directory.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from boxeval.errors import StorageError, UsageError
from boxeval.receipts import storage
from boxeval.run.events import RunRequest
from boxeval.settings import Settings

_FORM = TypeAdapter(RunRequest)


def remember(settings: Settings, run_id: str, request: RunRequest) -> None:
    """Keep a request, in place of an older one of the same run."""
    place = _place(settings, run_id)
    kept = replace(
        request,
        suite=request.suite.absolute(),
        case=request.case.absolute() if request.case else None,
        out=None,
        key_file=request.key_file.absolute() if request.key_file else None,
        keyring_file=request.keyring_file.absolute() if request.keyring_file else None,
    )
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        storage.replace(place, _FORM.dump_json(kept))
    except OSError as error:
        raise StorageError(f"{place}: cannot be written: {error.strerror or error}") from error


def request_of(asked: RunRequest, settings: Settings, run_id: str) -> RunRequest:
    """What a resumed run is asked for: what it was started with, or what is `asked` if that names a suite.

    `jobs` and `max_failures` are of this time only.
    """
    if asked.out:
        raise UsageError("--out does not go with --resume: a run stays in its directory")
    if asked.suite != Path():
        return asked
    fitting = RunRequest(
        suite=asked.suite, jobs=asked.jobs, max_failures=asked.max_failures, key_file=asked.key_file
    )
    if asked != fitting:
        raise UsageError(
            "--resume goes on with the same selection: leave out the other flags, or name the suite too"
        )
    before = recall(settings, run_id)
    return replace(
        before,
        jobs=asked.jobs or before.jobs,
        max_failures=asked.max_failures,
        key_file=asked.key_file or before.key_file,
    )


def recall(settings: Settings, run_id: str) -> RunRequest:
    """What a run was asked for. `UsageError` if this machine does not know."""
    place = _place(settings, run_id)
    try:
        return _FORM.validate_json(place.read_bytes())
    except (OSError, ValidationError):
        raise UsageError(
            f"it is not known here what run {run_id} was started with; name its suite, and the same flags"
        ) from None


def forget(settings: Settings, run_id: str) -> None:
    """Drop the request of a run that is over."""
    _place(settings, run_id).unlink(missing_ok=True)


def _place(settings: Settings, run_id: str) -> Path:
    return settings.data_dir / "requests" / f"{run_id}.json"
