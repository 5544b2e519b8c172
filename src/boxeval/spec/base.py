"""The two base classes of all types: what users write, and what boxeval writes and seals."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", max_length=128)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=256)]
SAFE = 2**53 - 1
"""The largest whole number that canonical JSON can carry."""
Natural = Annotated[int, Field(ge=0, le=SAFE)]
Positive = Annotated[int, Field(ge=1, le=SAFE)]
Scalar = bool | int | float | str | None
"""A metric's value. `None` means unmeasured, which is never the same as zero."""


class Record(BaseModel):
    """Frozen, strict, closed: unknown keys are errors; names are camelCase outside and snake_case inside."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
    )
