"""How much a service does for one request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RequestLimits:
    """Each can be set from the command line."""

    characters: int = 5_000  # of all texts of a request
    texts: int = 64  # of a request
    beam: int = 20  # the widest
    alternatives: int = 10  # translations beside the best, or samples
    body: int = 256_000  # bytes of a request
    queue: int = 64  # requests that wait
    seconds: float = 30.0  # that a request may take, waiting included
    connections: int = 256  # that are open at a time
