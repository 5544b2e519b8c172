"""Run commands in one box from start to settled, and put what came of it into evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from boxeval.errors import EngineError, IsolationError
from boxeval.receipts.blobs import BlobStore
from boxeval.sandbox.box import Box, BoxEnd
from boxeval.sandbox.capture import Bounded
from boxeval.sandbox.faults import Injection
from boxeval.sandbox.job import Job
from boxeval.sandbox.shim_frames import CommandEnd
from boxeval.spec.box import BoxResult, Capture, CommandResult
from boxeval.trial.cancel import Cancel, Cancelled


def run_turn(
    box: Box,
    jobs: tuple[Job, ...],
    timeout_ms: int,
    cancel: Cancel,
    faults: Sequence[Injection] = (),
    before: Callable[[Box], bool] = lambda _box: True,
) -> None:
    """Start the box and run its commands, in order, until one fails; `timeout_ms` is for all together.

    `faults` are injected meanwhile, each when its moment comes. `before` may look at the started box first, and keep
    the commands from running.
    Faults of the engine end up in `box.end`, not in an exception. Raises Cancelled if the run is being cancelled.
    """
    try:
        with cancel.watching(box):
            box.start()
            if not before(box):
                return
            box.plan(faults)
            left_ms = timeout_ms
            for number, job in enumerate(jobs, 1):
                if cancel.is_set:
                    # A kill that came before the box ran was lost.
                    box.kill()
                    raise Cancelled
                end = box.run(replace(job, timeout_ms=max(left_ms, 1)), last=number == len(jobs))
                left_ms -= end.wall_ms
                if end.exit_code != 0:
                    return
    except IsolationError:
        return  # told by box.end.differences
    except EngineError as error:
        box.end.error = str(error)[:300]


def settle_box(box: Box) -> None:
    """Make sure that nothing of the box is alive; what cannot be shown is told in `box.end`."""
    before = box.end.error
    try:
        box.settle()
    except EngineError as error:
        box.end.error = before or str(error)[:300]
        return
    if not box.reported and not box.killed_as_planned and not box.end.differences:
        box.end.error = before or "the box ended without its shim's report"


def box_result(end: BoxEnd, blobs: BlobStore, *, keep_bytes: int | None = None) -> BoxResult:
    """The evidence of a settled box. Kept output goes to `blobs`, at most `keep_bytes` of each stream if given."""
    return BoxResult(
        image_id=end.image_id,
        commands=tuple(_command(command, blobs, keep_bytes) for command in end.commands),
        settled=end.settled,
        survivors=end.survivors,
        orphans=end.orphans,
        oom_kills=end.oom_kills,
        pids_denied=end.pids_denied,
        cpu_ms=end.cpu_ms,
        max_rss_kib=end.max_rss_kib,
        engine_oom_flag=end.engine_oom_flag,
        disk_full=bool(end.full),
        differences=end.differences,
        injected=tuple(end.injected),
        error=end.error,
    )


def _command(end: CommandEnd, blobs: BlobStore, keep_bytes: int | None) -> CommandResult:
    return CommandResult(
        exit_code=end.exit_code,
        signal=end.signal,
        timed_out=end.timed_out,
        spawn_error=end.spawn_error,
        wall_ms=end.wall_ms,
        stdout=_capture(end.stdout, blobs, keep_bytes),
        stderr=_capture(end.stderr, blobs, keep_bytes),
    )


def _capture(output: Bounded, blobs: BlobStore, keep_bytes: int | None) -> Capture:
    kept = output.kept
    if keep_bytes is not None and len(kept) > keep_bytes:
        half = keep_bytes // 2
        kept = kept[:half] + kept[len(kept) - half :]
    return Capture(
        size_bytes=output.size_bytes,
        sha256=output.sha256,
        truncated=output.size_bytes > len(kept),
        kept=blobs.put_text(kept) if kept else None,
    )
