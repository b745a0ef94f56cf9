"""How often one of several things is taken."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K")


def falling(count: int) -> list[float]:
    """Weights of Zipf's kind: the earlier, the more often.

    >>> falling(3)
    [1.0, 0.6666666666666666, 0.5]
    """
    return [2 / (rank + 2) for rank in range(count)]


def shares(weights: Mapping[K, float]) -> dict[K, float]:
    """The same weights, summing to one."""
    total = math.fsum(weights.values())
    return {key: weight / total for key, weight in weights.items()}
