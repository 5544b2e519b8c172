"""The options of `boxeval run --case-file`, and how a command takes them as one value.

`taking(CaseOptions)` adds a parameter for each field to the signature that typer reads, so that the command itself
has one parameter, `case`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Several = list[Path] | None
PANEL = "Options of --case-file runs"


def _option(*names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=PANEL, **more)


@dataclass(frozen=True, slots=True)
class CaseOptions:
    """One field a flag. None or False: it was not given."""

    case_file: Annotated[Path | None, _option("--case-file", metavar="FILE", help="Run this case.")] = None
    case_source_root: Annotated[
        Path | None,
        _option("--case-source-root", metavar="DIR", help="Repositories of the source map lie below it."),
    ] = None
    case_source_map_file: Annotated[
        Path | None,
        _option(
            "--case-source-map-file", metavar="FILE", help="Names of repositories, each to a file:/// URL."
        ),
    ] = None
    project_root: Annotated[
        Path | None, _option("--project-root", metavar="DIR", help="The project that the case is about.")
    ] = None
    results_root: Annotated[
        Path | None, _option("--results-root", metavar="DIR", help="Directory in which the run gets its own.")
    ] = None
    host: Annotated[
        str | None, _option("--host", metavar="HOST", help="The agent: reference, codex, claude, ...")
    ] = None
    effort: Annotated[
        str | None, _option("--effort", metavar="EFFORT", help="Effort asked of the model.")
    ] = None
    condition: Annotated[
        str | None, _option("--condition", metavar="CONDITION", help="passive, and nothing else.")
    ] = None
    trials: Annotated[int | None, _option("--trials", min=1, metavar="N", help="Trials.  [default: 1]")] = (
        None
    )
    threshold: Annotated[
        float | None,
        _option("--threshold", metavar="SHARE", help="Share of trials that must pass.  [default: 1]"),
    ] = None
    dry: Annotated[bool, _option("--dry", help="Prepare everything and start nothing.")] = False
    shell_isolation: Annotated[
        bool, _option("--shell-isolation", help="Shell checks are isolated, with this flag and without.")
    ] = False
    protected_root: Annotated[
        Several,
        _option("--protected-root", metavar="DIR", help="Out of reach of all boxes. May be given again."),
    ] = None
    runtime_config_file: Annotated[
        Path | None,
        _option("--runtime-config-file", metavar="FILE", help="Environment and directories of the boxes."),
    ] = None
    run_settings_file: Annotated[
        Path | None, _option("--run-settings-file", metavar="FILE", help="Selections; flags beat them.")
    ] = None
    extension_command_file: Annotated[
        Path | None,
        _option(
            "--extension-command-file",
            metavar="FILE",
            help="Run a case of this extension; a JSON argv array.",
        ),
    ] = None
    extension_source: Annotated[
        Several,
        _option(
            *("--extension-source", "--extension-source-file"),
            metavar="PATH",
            help="A source of the extension. May be given again.",
        ),
    ] = None
    extension_configuration_file: Annotated[
        Path | None,
        _option("--extension-configuration-file", metavar="FILE", help="JSON object to send to it."),
    ] = None
    task_verdict_policy: Annotated[
        str | None, _option("--task-verdict-policy", metavar="ID", help="Let this policy of it decide.")
    ] = None
    replace_builtin_grader: Annotated[
        list[str] | None,
        _option("--replace-builtin-grader", metavar="NAME", help="Leave this one out. May be given again."),
    ] = None
    case_id: Annotated[
        str | None, _option("--case-id", metavar="ID", help="The case that is meant to run.")
    ] = None
    semantic_host: Annotated[
        str | None, _option("--semantic-host", metavar="HOST", help="The judge of semantic checks.")
    ] = None
    semantic_model: Annotated[
        str | None, _option("--semantic-model", metavar="MODEL", help="The judge's model.")
    ] = None
    codex_bin: Annotated[
        Path | None, _option("--codex-bin", metavar="FILE", help="Accepted; the image's own CLI is used.")
    ] = None
    codex_auth_file: Annotated[
        Path | None, _option("--codex-auth-file", metavar="FILE", help="Credentials; for the gateway alone.")
    ] = None

    def given(self) -> list[str]:
        """The flags that were given."""
        changed = [field.name for field in fields(self) if getattr(self, field.name) not in (None, False)]
        return [f"--{name.replace('_', '-')}" for name in changed]

    @property
    def is_case(self) -> bool:
        """Whether a case is to run, and no suite."""
        return self.case_file is not None or self.extension_command_file is not None


class CaseExit(SystemExit):
    """The end of a case run, whose codes mean something else than those of the parser."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def taking(command: Callable[..., None]) -> Callable[..., None]:
    """A command with a parameter `case: CaseOptions`, as one with an option for each of its fields."""
    hints = get_type_hints(CaseOptions, include_extras=True)
    own = inspect.signature(command, eval_str=True)
    options = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(CaseOptions)
    ]

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        case = CaseOptions(**{field.name: given.pop(field.name) for field in fields(CaseOptions)})
        command(**given, case=case)

    kept = [parameter for parameter in own.parameters.values() if parameter.name != "case"]
    kept = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in kept]
    wrapped.__signature__ = own.replace(parameters=[*kept, *options])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*kept, *options)}
    del wrapped.__wrapped__
    return wrapped
