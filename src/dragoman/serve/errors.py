"""Error responses: status codes, the exception that becomes one, and their OpenAPI descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.serve.schemas import ErrorResponse

BAD_REQUEST, FORBIDDEN, NOT_FOUND, REQUEST_TIMEOUT, TOO_LARGE, UNAVAILABLE, GATEWAY_TIMEOUT = (
    *(400, 403, 404, 408, 413),
    *(503, 504),
)
RETRY_SECONDS = 2  # the value of Retry-After


class ApiError(Exception):
    """A request that cannot be answered; the message is sent to the client."""

    def __init__(self, message: str, status: int = BAD_REQUEST, headers: Mapping[str, str] | None = None):
        super().__init__(message)
        self.message, self.status, self.headers = message, status, dict(headers or {})


def queue_full(num_waiting: int) -> ApiError:
    message = f"the queue is full: {num_waiting} requests are waiting; try again later"
    return ApiError(message, UNAVAILABLE, {"Retry-After": str(RETRY_SECONDS)})


def timed_out(seconds: float) -> ApiError:
    return ApiError(f"the request took longer than {seconds:g} seconds; send less text per request", GATEWAY_TIMEOUT)


def shorten(text: str, length: int = 60) -> str:
    """Return at most `length` characters of a client's text, for error messages.

    >>> shorten("a" * 100, 5)
    'aaaaa...'
    """
    return text if len(text) <= length else f"{text[:length]}..."


# -- OpenAPI -----------------------------------------------------------------------------------------------------------

DESCRIPTIONS = {
    BAD_REQUEST: "The request is invalid or exceeds a limit.",
    FORBIDDEN: "The request comes from a page of another origin that --cors does not allow.",
    NOT_FOUND: "The model or run does not exist, or the model cannot be loaded.",
    REQUEST_TIMEOUT: "The request did not arrive in time.",
    TOO_LARGE: "The request body is too large.",
    UNAVAILABLE: "Too many requests are waiting.",
    GATEWAY_TIMEOUT: "The request took too long.",
}
RETRY_AFTER = {
    "description": "seconds to wait before retrying",
    "schema": {"type": "integer"},
    "example": RETRY_SECONDS,
}


def _response(status: int) -> dict[str, Any]:
    headers = {"headers": {"Retry-After": RETRY_AFTER}} if status == UNAVAILABLE else {}
    return {"model": ErrorResponse, "description": DESCRIPTIONS[status], **headers}


# The error responses of every route, for FastAPI's `responses=`.
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    **{status: _response(status) for status in DESCRIPTIONS},
    "default": {"model": ErrorResponse, "description": "Any other error."},
}
