"""What stands before the application: who may ask, how much may be sent, and what every answer carries."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect

from dragoman.serve.batch_queue import DEADLINE
from dragoman.serve.errors import BAD_REQUEST, FORBIDDEN, TOO_LARGE
from dragoman.serve.request_body import Message, Receive, RequestBody, too_large

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
ASGIApplication = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
OWN_PAGES = (None, "same-origin", "none")  # what Sec-Fetch-Site says of them, and of programs
LOG = logging.getLogger("dragoman.serve")


class ProtectionMiddleware:
    """An application behind checks of who asks, of the size of what is sent, and of how long that takes; whoever has
    gone is not worked for."""

    def __init__(
        self,
        app: ASGIApplication,
        *,
        allowed_hosts: tuple[str, ...] = LOCAL_HOSTS,
        max_body: int,
        seconds: float = 30.0,
        cors_origin: str | None = None,
    ):
        self.app, self.body, self.seconds, self.cors = app, max_body, seconds, cors_origin
        self.hosts = {
            f"[{name.lower()}]" if name.count(":") > 1 and name[0] != "[" else name.lower() for name in allowed_hosts
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if (refusal := self._refusal(scope["method"], headers)) is not None:
            await self._refuse(send, *refusal)
        elif self.cors is not None and scope["method"] == "OPTIONS":
            await self._answer(send, 204, b"")
        else:
            await self._asked(scope, RequestBody(receive, self.body, self.seconds), send)

    def _refusal(self, method: str, headers: MutableMapping[str, str]) -> tuple[int, str] | None:
        """What is wrong with a request by its headers alone."""
        if not self._is_host(headers.get("host", "")):
            return BAD_REQUEST, "this service does not go by that name; see --host-name"
        if method not in ("GET", "OPTIONS") and self._is_foreign(headers):
            return FORBIDDEN, "pages from elsewhere may not ask; see --cors"
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit() and len(length) < 20 and int(length) <= self.body):
            return TOO_LARGE, too_large(self.body)
        return None

    def _is_foreign(self, headers: MutableMapping[str, str]) -> bool:
        """Whether a page of another origin asks that is not allowed to. Programs tell no origin."""
        origin = headers.get("origin")
        if self.cors == "*" or (origin is not None and origin == self.cors):
            return False
        if origin is not None:
            return urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
        return headers.get("sec-fetch-site") not in OWN_PAGES

    async def _asked(self, scope: Scope, arriving: RequestBody, send: Send) -> None:
        """Let the application answer, as long as somebody waits for it."""
        answered = False

        async def sent(message: Message) -> None:
            nonlocal answered
            answered = answered or (message["type"] == "http.response.body" and not message.get("more_body", False))
            await send(self._with_headers(message))

        DEADLINE.set(asyncio.get_running_loop().time() + self.seconds)
        work = asyncio.ensure_future(self.app(scope, arriving.receive, sent))
        left = asyncio.ensure_future(arriving.wait_for_disconnect())
        try:
            await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not answered:
                work.cancel()
            with suppress(asyncio.CancelledError, ClientDisconnect):
                await work
        except Exception as error:
            log_without_texts(error)
        finally:
            work.cancel()
            left.cancel()

    def _is_host(self, given: str) -> bool:
        name = given.rsplit(":", 1)[0] if not given.endswith("]") else given
        return "*" in self.hosts or name.lower() in self.hosts

    def _with_headers(self, message: Message) -> Message:
        if message["type"] != "http.response.start":
            return message
        own = {name.lower() for name, _ in message.get("headers", [])}
        added = {**HEADERS, **self._allowed()}
        extra = [(name.encode(), value.encode()) for name, value in added.items() if name.encode() not in own]
        return {**message, "headers": [*message.get("headers", []), *extra]}

    def _allowed(self) -> dict[str, str]:
        """What lets pages of another origin ask, if that is wanted."""
        if self.cors is None:
            return {}
        return {
            "access-control-allow-origin": self.cors,
            "access-control-allow-methods": "GET, POST, OPTIONS",
            "access-control-allow-headers": "content-type",
            "cross-origin-resource-policy": "cross-origin",
        }

    async def _refuse(self, send: Send, status: int, reason: str) -> None:
        await self._answer(send, status, json.dumps({"error": reason}).encode(), b"application/json")

    async def _answer(self, send: Send, status: int, body: bytes, kind: bytes = b"text/plain") -> None:
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        await send(self._with_headers({"type": "http.response.start", "status": status, "headers": headers}))
        await send({"type": "http.response.body", "body": body})


def log_without_texts(error: BaseException) -> None:
    """Where something went wrong, and of which kind; its message may quote what somebody sent."""
    where = "".join(traceback.format_tb(error.__traceback__))
    LOG.error("%s\n%s", type(error).__name__, where)
