"""From what the user named to a verified run: whose keys count, which checkpoint was pinned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boxeval.errors import UsageError

if TYPE_CHECKING:
    from boxeval.receipts.trust import Trust
    from boxeval.receipts.verify import VerifiedRun
    from boxeval.settings import Settings

TrustFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--trust",
        metavar="FILE",
        help="Trust file to believe instead of this machine's keys. May be given again.",
    ),
]


def trust_of(settings: Settings, files: list[Path] | None = None, key_file: Path | None = None) -> Trust:
    """The keys to believe: those of the files alone; without files this machine's, and its signing key."""
    from boxeval.receipts.keys import load_signing_key
    from boxeval.receipts.trust import Trust

    if files:
        return Trust.load(files)
    trust = Trust.local(settings)
    if own := key_file or settings.key_file:
        trust = trust.plus(Trust((load_signing_key(settings, own).trusted(own.name),)))
    return trust


def checkpoint_text(given: str | None) -> str | None:
    """The pinned line itself, or the content of the file that holds it."""
    if given is None or given.startswith("boxeval checkpoint "):
        return given
    try:
        with Path(given).open("rb") as file:
            return file.read(4096).decode("utf-8", "backslashreplace").strip()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--checkpoint: neither a checkpoint line nor a file that can be read: {given}: {error}"
        ) from None


def read_run(run: str, files: list[Path] | None = None, checkpoint: str | None = None) -> VerifiedRun:
    """Find and verify a run; raises what `receipts.verify` and `places.run_directory` raise."""
    from boxeval.cli.places import run_directory
    from boxeval.settings import load_settings

    settings = load_settings()
    directory = run_directory(run, settings)
    return verified(directory, trust_of(settings, files), checkpoint_text(checkpoint))


def verified(directory: Path, trust: Trust, checkpoint: str | None) -> VerifiedRun:
    """Verify a run, and grade again what its graders made of texts."""
    from boxeval.agents.again import record_fault
    from boxeval.graders.examiner import Examiner
    from boxeval.graders.extension_again import extension_fault
    from boxeval.receipts.verify import verify

    with Examiner() as examiner:
        return verify(
            directory,
            trust,
            checkpoint=checkpoint,
            regrade=examiner.grade,
            reread=extension_fault,
            retell=record_fault,
        )
