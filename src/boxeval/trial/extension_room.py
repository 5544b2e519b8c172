"""Where an extension's processes run: for each request a box of its own, like a grader's.

Its files are a layer at `/extension` that no box can change, and so is what it may look at, at `/evidence`. It gets
the request on stdin; there is no network, no credential, and nothing of the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from boxeval.errors import FixtureError
from boxeval.formats.extension_files import read_extension
from boxeval.formats.fixtures import Fixture
from boxeval.graders.extension_exchange import ProtocolFault, encode, make_request, read_answer
from boxeval.receipts.blobs import BlobStore
from boxeval.sandbox.images import ImageInfo
from boxeval.sandbox.job import Job
from boxeval.sandbox.reaper import Reaper
from boxeval.sandbox.slot import GRADE, Slot
from boxeval.spec.base import Record
from boxeval.spec.box import BoxResult
from boxeval.spec.extension import (
    DIAGNOSTIC_BYTES,
    MESSAGE_BYTES,
    Method,
)
from boxeval.spec.extension_messages import (
    METHODS,
    Result,
)
from boxeval.spec.extension_use import ExchangeSeen, ExtensionUse
from boxeval.trial.boxes import box_result, run_turn, settle_box
from boxeval.trial.cancel import Cancel

EXTENSION, EVIDENCE = "/extension", "/evidence"
R = TypeVar("R", bound=Result)


class ChangedFault(ProtocolFault):
    """The files of an extension are not those that the run was planned with."""


@dataclass(frozen=True, slots=True)
class ExtensionSource:
    """An extension as it was read when the run was planned; `directory` is where its paths begin."""

    use: ExtensionUse
    directory: Path
    files: Fixture

    def check(self, method: Method) -> None:
        """Raise `ChangedFault` if a file is not what it was (G68)."""
        try:
            same = read_extension(self.use, self.directory).digest == self.files.digest
        except FixtureError as error:
            raise ChangedFault(f"{method}: a file has changed since the run was planned: {error}") from None
        if not same:
            raise ChangedFault(f"{method}: its files have changed since the run was planned")


@dataclass(frozen=True, slots=True)
class Room:
    """What the boxes of one trial's extension share. `fixture` is the key of what lies below their workspaces."""

    source: ExtensionSource
    slot: Slot
    trial_id: str
    fixture: str
    image: ImageInfo
    env: Mapping[str, str]
    lifetime_s: float
    reaper: Reaper
    blobs: BlobStore
    cancel: Cancel
    seen: list[ExchangeSeen] = field(default_factory=list)

    def furnish(self) -> None:
        """Put the extension's files into the slot. Nothing is asked before, and once after each reset is enough."""
        self.plant("extension", self.source.files)

    def plant(self, name: str, files: Fixture) -> None:
        """Make a layer for the boxes to see."""
        layer, policy = f"{GRADE}.{name}", self.slot.policy
        self.slot.keeper.request("layer", name=layer, uid=policy.uid, gid=policy.gid)
        self.slot.keeper.fill_layer(layer, policy, files.entries())

    def ask(
        self, wanted: type[R], params: Record, below: tuple[str, ...] = (), *, evidence: bool = False
    ) -> R:
        """One exchange, remembered in `seen`. The workspace is over the layers `below`, topmost first.

        Raises `ProtocolFault`, and `EngineError` if no box is to be had.
        """
        method = METHODS[cast(type[Result], wanted)]
        self.source.check(method)
        request = make_request(self.source.use.protocol, method, params)
        data = encode(request)
        box, stdout = self._run(
            method, data, below, ("extension", "evidence") if evidence else ("extension",)
        )
        self.seen.append(ExchangeSeen(method=method, request=self.blobs.put(data), box=box))
        self.source.check(method)
        result = read_answer(request, box, stdout)
        assert isinstance(result, wanted)
        return result

    def _run(
        self, method: Method, data: bytes, below: tuple[str, ...], layers: tuple[str, ...]
    ) -> tuple[BoxResult, bytes]:
        slot, role = self.slot, f"extension{len(self.seen) + 1}-{method}"
        use = self.source.use
        volumes = [slot.grader_workspace(self.trial_id, role, below, self.fixture)]
        box = None
        try:
            shown = {}
            for layer in layers:
                volume = slot.layer_volume(self.trial_id, f"{role}-{layer}", f"{GRADE}.{layer}")
                volumes.append(volume)
                shown[f"/{layer}"] = volume
            box = slot.box(self.trial_id, role, self.image, volumes[0], self.lifetime_s, read_only=shown)
            job = Job(
                use.command,
                dict(self.env),
                EXTENSION,
                data,
                stdout_bytes=MESSAGE_BYTES,
                stderr_bytes=DIAGNOSTIC_BYTES,
            )
            run_turn(box, (job,), use.timeout_ms, self.cancel)
            settle_box(box)
        finally:
            self.reaper.take(box, tuple(volumes))
        if box.end.settled:
            # What it wrote takes no room from the next one.
            slot.keeper.request("drop_layer", name=f"{GRADE}.{role}")
        stdout = box.end.commands[0].stdout.kept if box.end.commands else b""
        # As it is kept: what is read now is what `verify` reads again.
        return box_result(box.end, self.blobs), self.blobs.redact(stdout)
