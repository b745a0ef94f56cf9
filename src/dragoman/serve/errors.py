"""Error responses: status codes, the exception that becomes one, and their OpenAPI descriptions."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, Field
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException

from dragoman.core.settings import describe_requirement

BAD_REQUEST, FORBIDDEN, NOT_FOUND, REQUEST_TIMEOUT, TOO_LARGE = 400, 403, 404, 408, 413
METHOD_NOT_ALLOWED, TOO_MANY, UNAVAILABLE, GATEWAY_TIMEOUT = 405, 429, 503, 504
RETRY_SECONDS = 2  # the value of Retry-After


class ApiError(HTTPException):
    """A request that cannot be answered; the message is sent to the client."""

    def __init__(self, message: str, status: int = BAD_REQUEST, headers: Mapping[str, str] | None = None):
        super().__init__(status, message, headers)


def invalid_request(error: ErrorDetails) -> str:
    """Return the message about an invalid field, in the style of LibreTranslate.

    >>> invalid_request({"type": "missing", "loc": ("body", "texts"), "msg": "Field required", "input": {}})
    'Invalid request: missing texts parameter'
    """
    first, *inner = [part for part in error["loc"] if part != "body"] or [""]
    field = f"{first}{''.join(f'[{part}]' for part in inner if isinstance(part, int))}"
    if error["type"] == "json_invalid":
        return "Invalid request: not JSON"
    if error["type"] == "missing":
        return f"Invalid request: missing {field or 'JSON'} parameter"
    return f"Invalid request: {field}{': ' if field else ''}{describe_requirement(error)}"


class ErrorResponse(BaseModel):
    """The reason why a request failed."""

    error: str = Field(examples=["5,001 characters; a request may have at most 5,000"])


DESCRIPTIONS: dict[int | str, str] = {
    BAD_REQUEST: "The request is invalid, exceeds a limit, or does not fit the model.",
    FORBIDDEN: "The API key is missing or wrong, or the request comes from a page of another origin without --cors.",
    NOT_FOUND: "The model or run does not exist, or the model cannot be loaded.",
    REQUEST_TIMEOUT: "The request did not arrive in time.",
    TOO_LARGE: "The request body is too large.",
    TOO_MANY: "The client has sent too many requests or characters in the last minute.",
    UNAVAILABLE: "Too many requests are waiting.",
    GATEWAY_TIMEOUT: "The request took too long.",
    "default": "Any other error.",
}
# The error responses of every route, for FastAPI's `responses=`.
ERROR_RESPONSES: dict[int | str, dict[str, object]] = {
    status: {"model": ErrorResponse, "description": description} for status, description in DESCRIPTIONS.items()
}
for status in (TOO_MANY, UNAVAILABLE):
    ERROR_RESPONSES[status]["headers"] = {
        "Retry-After": {
            "description": "seconds to wait before retrying",
            "schema": {"type": "integer"},
            "example": RETRY_SECONDS,
        }
    }
