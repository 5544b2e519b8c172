"""The flags of a case run, as they were given. A resumed run is planned again from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class CaseChoices:
    """The flags of a case run, as they were given."""

    case_file: Path | None = None
    case_source_root: Path | None = None
    case_source_map_file: Path | None = None
    project_root: Path | None = None
    results_root: Path | None = None
    host: str | None = None
    model: str | None = None
    effort: str | None = None
    semantic_host: str | None = None
    semantic_model: str | None = None
    condition: str | None = None
    trials: int | None = None
    threshold: float | None = None
    dry: bool = False
    protected_roots: tuple[Path, ...] = ()
    runtime_config_file: Path | None = None
    run_settings_file: Path | None = None
    extension_command_file: Path | None = None
    extension_sources: tuple[Path, ...] = ()
    extension_configuration_file: Path | None = None
    task_verdict_policy: str | None = None
    replaced_graders: tuple[str, ...] = ()
    case_id: str | None = None
    codex_auth_file: Path | None = None

    def absolute(self) -> CaseChoices:
        """The same with paths that hold from any working directory."""
        named = {name: getattr(self, name) for name in self.__dataclass_fields__}
        paths: dict[str, Any] = {
            name: value.absolute() for name, value in named.items() if isinstance(value, Path)
        }
        paths["extension_sources"] = tuple(place.absolute() for place in self.extension_sources)
        for name in ("model", "semantic_model"):
            form, colon, file = (named[name] or "").partition(":")
            if colon and form in ("script", "replay"):
                paths[name] = f"{form}:{Path(file).absolute()}"
        return replace(self, **paths)
