"""The case of a run that an extension supplies: asked in boxes, before anything is planned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from boxeval.errors import UsageError
from boxeval.formats.case import LoadedCase, supplied_case
from boxeval.formats.case_extension import load_use
from boxeval.formats.case_suite import CONTINUES
from boxeval.formats.place import show
from boxeval.formats.run_settings import load_settings_file
from boxeval.graders.extension_evidence import CONTINUATION, HOST_CAPABILITIES
from boxeval.graders.extension_exchange import ProtocolFault
from boxeval.run.case_choices import CaseChoices
from boxeval.run.extensions import extension_room, open_extension, resolve
from boxeval.sandbox.images import GRADER
from boxeval.settings import Settings
from boxeval.spec.extension import Dialect
from boxeval.spec.extension_use import ExtensionUse
from boxeval.trial.extension_room import Room

DIALECTS: tuple[Dialect, ...] = ("boxeval", "sevro")
"""In this order an extension is asked whose names it speaks."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """A case and the extension that it is of; `directory` is where the paths of `use` begin."""

    loaded: LoadedCase
    use: ExtensionUse
    directory: Path


def supply(choices: CaseChoices, settings: Settings, note: Callable[[str], None]) -> Supplied | None:
    """The case that the flags name of an extension; None if they name none.

    Raises `UsageError` for an extension that cannot be asked and a case that it does not have, `SuiteError` for a
    case that is wrong, and as `extension_room` does.
    """
    _check_origin(choices)
    if choices.extension_command_file is None:
        return None
    use, directory = load_use(
        choices.extension_command_file,
        choices.extension_sources,
        choices.extension_configuration_file,
        choices.task_verdict_policy,
        choices.replaced_graders,
    )
    with extension_room(use, directory, settings, GRADER, note) as room:
        try:
            room = _speaking(room, _of_host(choices))
            cases = resolve(room, None if choices.case_id is None else (choices.case_id,))
        except ProtocolFault as fault:
            raise UsageError(f"extension: {fault}") from None
    if len(cases) != 1:
        ids = ", ".join(show(case.id) for case in cases[:8]) or "none"
        raise UsageError(f"extension: it has {len(cases)} cases ({ids}); name one with --case-id")
    loaded = supplied_case(cases[0], choices.extension_command_file)
    return Supplied(
        loaded,
        room.source.use.model_copy(update={"checks": loaded.own_checks, "data": loaded.data}),
        directory,
    )


def _check_origin(choices: CaseChoices) -> None:
    """Raise `UsageError` unless the flags name one file or one extension that the case comes from."""
    own = {
        "--extension-source": choices.extension_sources,
        "--extension-configuration-file": choices.extension_configuration_file,
        "--task-verdict-policy": choices.task_verdict_policy,
        "--replace-builtin-grader": choices.replaced_graders,
    }
    if choices.case_file and choices.extension_command_file:
        raise UsageError("a case comes from --case-file or from --extension-command-file, not from both")
    if choices.extension_command_file is None and (given := [name for name, value in own.items() if value]):
        raise UsageError(f"{', '.join(given)}: only with --extension-command-file")


def _of_host(choices: CaseChoices) -> tuple[str, ...]:
    """Capabilities of the host that the flags name. One that there is not is refused later, by its name."""
    host = load_settings_file(choices.run_settings_file).choose(choices.host, "host")
    return (*HOST_CAPABILITIES, CONTINUATION) if host in CONTINUES else HOST_CAPABILITIES


def _speaking(room: Room, of_host: tuple[str, ...]) -> Room:
    """The room in the first dialect that the extension speaks. Raises `ProtocolFault` with what became of each."""
    faults: list[tuple[str, str]] = []
    for dialect in DIALECTS:
        use = room.source.use.model_copy(update={"protocol": dialect})
        asked = replace(room, source=replace(room.source, use=use))
        try:
            open_extension(asked, of_host)
        except ProtocolFault as fault:
            faults.append((dialect, str(fault)))
        else:
            return asked
    told = {fault for _, fault in faults}
    raise ProtocolFault(
        told.pop() if len(told) == 1 else "; ".join(f"as {name}: {fault}" for name, fault in faults)
    )
