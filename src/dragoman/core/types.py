"""Types that all packages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from numpy.typing import NDArray

# A value of a JSON or YAML file. Annotate what is written as `Mapping[str, Json]` or `dict[str, Json]`.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Arrays = Mapping[str, NDArray[Any]]  # by their names
