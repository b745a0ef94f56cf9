"""What OpenAPI is told of answers that are the same everywhere."""

from __future__ import annotations

from typing import Any

from dragoman.serve.errors import BAD, BUSY, FORBIDDEN, MISSING, RETRY, TOO_LARGE, TOO_LATE, TOO_SLOW
from dragoman.serve.schemas import Error

TOLD = {
    BAD: "Something is wrong with the request, or it asks for more than is allowed; the reason is told.",
    FORBIDDEN: "A page of another origin asks, and --cors does not allow it.",
    MISSING: "There is no such model, or it cannot be loaded.",
    TOO_LATE: "The request did not arrive in time.",
    TOO_LARGE: "The request has more bytes than are allowed.",
    BUSY: "Too many requests wait already.",
    TOO_SLOW: "The answer took longer than is allowed.",
}
RETRY_AFTER = {"description": "seconds after which to ask again", "schema": {"type": "integer"}, "example": RETRY}


def _answer(status: int) -> dict[str, Any]:
    headers = {"headers": {"Retry-After": RETRY_AFTER}} if status == BUSY else {}
    return {"model": Error, "description": TOLD[status], **headers}


ANSWERED: dict[int | str, dict[str, Any]] = {
    **{status: _answer(status) for status in TOLD},
    "default": {"model": Error, "description": "Whatever else is refused."},
}
