"""What OpenAPI is told of answers that are the same everywhere."""

from __future__ import annotations

from typing import Any

from dragoman.serve.errors import (
    BAD_REQUEST,
    FORBIDDEN,
    GATEWAY_TIMEOUT,
    NOT_FOUND,
    REQUEST_TIMEOUT,
    RETRY_SECONDS,
    TOO_LARGE,
    UNAVAILABLE,
)
from dragoman.serve.schemas import ErrorResponse

ERROR_DESCRIPTIONS = {
    BAD_REQUEST: "Something is wrong with the request, or it asks for more than is allowed; the reason is told.",
    FORBIDDEN: "A page of another origin asks, and --cors does not allow it.",
    NOT_FOUND: "There is no such model, or it cannot be loaded.",
    REQUEST_TIMEOUT: "The request did not arrive in time.",
    TOO_LARGE: "The request has more bytes than are allowed.",
    UNAVAILABLE: "Too many requests wait already.",
    GATEWAY_TIMEOUT: "The answer took longer than is allowed.",
}
RETRY_AFTER = {
    "description": "seconds after which to ask again",
    "schema": {"type": "integer"},
    "example": RETRY_SECONDS,
}


def _answer(status: int) -> dict[str, Any]:
    headers = {"headers": {"Retry-After": RETRY_AFTER}} if status == UNAVAILABLE else {}
    return {"model": ErrorResponse, "description": ERROR_DESCRIPTIONS[status], **headers}


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    **{status: _answer(status) for status in ERROR_DESCRIPTIONS},
    "default": {"model": ErrorResponse, "description": "Whatever else is refused."},
}
