"""What results have in common: numbers that add up over texts, and plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import ClassVar, Self

FLAT: Mapping[str, str] = {"json": ""}  # metadata of a field whose values are listed among those of its owner


def to_json(value: object) -> object:
    """Return plain values: objects as dicts, tuples as lists, infinite and undefined numbers as None.

    >>> to_json({"a": (1.5, math.inf)})
    {'a': [1.5, None]}
    """
    if isinstance(value, JsonResult):
        return value.as_dict()
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True)
class JsonResult:
    """Results whose fields, and properties named in `reported`, are written as JSON.

    The key of a field is its name, or `json` in its metadata.
    """

    reported: ClassVar[tuple[str, ...]] = ()

    def as_dict(self) -> dict[str, object]:
        values: dict[str, object] = {}
        for field in fields(self):
            value, key = to_json(getattr(self, field.name)), field.metadata.get("json", field.name)
            values |= value if not key and isinstance(value, dict) else {key: value}
        return values | {name: to_json(getattr(self, name)) for name in self.reported}


@dataclass(frozen=True)
class AdditiveResult:
    """Numbers that add up: those of two texts are the sums of theirs; counts in a mapping are added by key."""

    def __add__(self, other: Self) -> Self:
        sums = {}
        for name in (field.name for field in fields(self)):
            first, second = getattr(self, name), getattr(other, name)
            if isinstance(first, Mapping):
                sums[name] = {key: first.get(key, 0) + second.get(key, 0) for key in {**first, **second}}
            else:
                sums[name] = first + second
        return type(self)(**sums)
