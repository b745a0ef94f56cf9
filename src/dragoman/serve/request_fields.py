"""The named values of a request: JSON, a form, or query parameters, as different clients send them.

Forms are parsed with the standard library: Starlette's parser (python-multipart) decodes URL-encoded forms as Latin-1,
which garbles the UTF-8 that `curl -d` sends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from email.utils import collapse_rfc2231_value
from urllib.parse import parse_qsl

from fastapi import Request

from dragoman.serve.errors import ApiError

JSON, URL_ENCODED, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
MAX_FIELDS = 1_000
# Of malformed requests. The standard library's parser raises others than ValueError for some malformed names of parts.
PARSE_ERRORS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
MAX_HEADER = 1_000  # characters of a header in a multipart form; the parser is slow on long ones


async def read_fields(request: Request) -> dict[str, object]:
    """Return the fields of a request; those of the body override query parameters."""
    body, content_type = await request.body(), request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        if media_type == URL_ENCODED:
            fields = _collect(_parse_query(body.decode()))
        elif media_type == MULTIPART:
            fields = _collect(_parse_multipart(body, content_type))
        else:
            fields = json.loads(body or b"{}")
        if not isinstance(fields, dict):
            raise ValueError("not an object")
        fields = {**_collect(_parse_query(request.url.query)), **fields}
        json.dumps(fields, ensure_ascii=False).encode()  # raises an error for unpaired surrogates
    except PARSE_ERRORS:
        raise ApiError("Invalid request: neither JSON nor a form") from None
    return fields


def _parse_query(encoded: str) -> list[tuple[str, str]]:
    return parse_qsl(encoded, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")


def _parse_multipart(body: bytes, content_type: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each part of a multipart form."""
    message = BytesParser(policy=compat32).parsebytes(b"content-type: " + content_type.encode() + b"\r\n\r\n" + body)
    for part in message.get_payload() if message.is_multipart() else ():
        if not isinstance(part, Message) or len(str(part.get("content-disposition", ""))) > MAX_HEADER:
            raise ValueError("invalid part")
        name, value = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if name is None or not isinstance(value, bytes):
            raise ValueError("a part without a name, or with nested parts")
        yield collapse_rfc2231_value(name), value.decode()


def _collect(pairs: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Return fields by name; the values of a repeated name as a list."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: several[0] if len(several) == 1 else several for name, several in values.items()}
