"""What a service says no to."""

from __future__ import annotations

from collections.abc import Mapping

BAD_REQUEST, FORBIDDEN, NOT_FOUND, REQUEST_TIMEOUT, TOO_LARGE, UNAVAILABLE, GATEWAY_TIMEOUT = (
    400,
    403,
    404,
    408,
    413,
    503,
    504,
)
RETRY_SECONDS = 2  # seconds after which one may ask again


class ApiError(Exception):
    """A request that is not answered, and why; the reason is told to whoever asked."""

    def __init__(self, message: str, status: int = BAD_REQUEST, headers: Mapping[str, str] | None = None):
        super().__init__(message)
        self.message, self.status, self.headers = message, status, dict(headers or {})


def queue_full(waiting: int) -> ApiError:
    return ApiError(
        f"{waiting} requests are waiting already; ask again in a moment",
        UNAVAILABLE,
        {"Retry-After": str(RETRY_SECONDS)},
    )


def timed_out(seconds: float) -> ApiError:
    return ApiError(f"this took longer than {seconds:g} seconds; ask for less at a time", GATEWAY_TIMEOUT)


def shorten(given: str, most: int = 60) -> str:
    """What somebody gave, to be told again: no more of it than is read.

    >>> shortened("a" * 100, 5)
    'aaaaa...'
    """
    return given if len(given) <= most else f"{given[:most]}..."
