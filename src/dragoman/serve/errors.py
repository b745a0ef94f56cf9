"""What a service says no to."""

from __future__ import annotations

from collections.abc import Mapping

BAD, FORBIDDEN, MISSING, TOO_LATE, TOO_LARGE, BUSY, TOO_SLOW = 400, 403, 404, 408, 413, 503, 504
RETRY = 2  # seconds after which one may ask again


class Refusal(Exception):  # noqa: N818  (nothing is wrong here)
    """A request that is not answered, and why; the reason is told to whoever asked."""

    def __init__(self, reason: str, status: int = BAD, headers: Mapping[str, str] | None = None):
        super().__init__(reason)
        self.reason, self.status, self.headers = reason, status, dict(headers or {})


def busy(waiting: int) -> Refusal:
    return Refusal(f"{waiting} requests are waiting already; ask again in a moment", BUSY, {"Retry-After": str(RETRY)})


def too_slow(seconds: float) -> Refusal:
    return Refusal(f"this took longer than {seconds:g} seconds; ask for less at a time", TOO_SLOW)


def shortened(given: str, most: int = 60) -> str:
    """What somebody gave, to be told again: no more of it than is read.

    >>> shortened("a" * 100, 5)
    'aaaaa...'
    """
    return given if len(given) <= most else f"{given[:most]}..."
