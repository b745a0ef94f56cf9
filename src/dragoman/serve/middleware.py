"""Checks before the application: host names, origins, size and time of requests; and security headers of responses.

Starlette's `CORSMiddleware` adds the headers for other origins. It does not refuse their requests, and
`TrustedHostMiddleware` answers in plain text without naming the option that allows a host, so both checks are made here.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve.access import current_client
from dragoman.serve.batch_queue import DEADLINE
from dragoman.serve.errors import BAD_REQUEST, FORBIDDEN, REQUEST_TIMEOUT, TOO_LARGE, ApiError

SECURITY_HEADERS = {
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
SAME_ORIGIN = (None, "same-origin", "none")  # Sec-Fetch-Site of the service's own page and of programs
TOO_LARGE_MESSAGE = "the request has more than {:,} bytes; send less text per request"
DISCONNECT = "http.disconnect"
LOG = logging.getLogger("dragoman.serve")


class SecurityMiddleware:
    """Refuse requests for other hosts, from pages of other origins, or with too large bodies; add security headers."""

    def __init__(
        self, app: ASGIApp, *, max_body: int, allowed_hosts: Sequence[str] = LOCAL_HOSTS, cors_origin: str | None = None
    ):
        self.app, self.max_body, self.cors_origin = app, max_body, cors_origin
        # as in the Host header, where IPv6 addresses have brackets
        self.allowed_hosts = {
            f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
            for host in map(str.lower, allowed_hosts)
        }
        resource_policy = "same-origin" if cors_origin is None else "cross-origin"
        self.response_headers = {**SECURITY_HEADERS, "cross-origin-resource-policy": resource_policy}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.response_headers.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope["method"], Headers(scope=scope))
        except ApiError as error:
            response = JSONResponse({"error": error.detail}, error.status_code)
            await response(scope, receive, send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)

    def _check(self, method: str, headers: Headers) -> None:
        """Raise an `ApiError` if the headers of a request do not allow it."""
        host = headers.get("host", "")
        name = host if host.endswith("]") else host.rsplit(":", 1)[0]
        if not self.allowed_hosts & {"*", name.lower()}:
            raise ApiError("the service does not answer for this host name; see --host-name", BAD_REQUEST)
        if method not in ("GET", "OPTIONS") and self._is_foreign(headers):
            raise ApiError("requests from pages of other origins are not allowed; see --cors", FORBIDDEN)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit() and len(length) < 20 and int(length) <= self.max_body):
            raise ApiError(TOO_LARGE_MESSAGE.format(self.max_body), TOO_LARGE)

    def _is_foreign(self, headers: Headers) -> bool:
        """Return whether a page of another origin sent the request. Programs send neither of the two headers."""
        origin = headers.get("origin")
        if self.cors_origin == "*" or (origin is not None and origin == self.cors_origin):
            return False
        if origin is not None:
            return urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
        return headers.get("sec-fetch-site") not in SAME_ORIGIN


class RequestBody:
    """The body of one request, counted while it arrives; afterwards, the wait for the client's disconnect."""

    def __init__(self, receive: Receive, max_bytes: int, seconds: float):
        self._receive, self._max_bytes, self._seconds = receive, max_bytes, seconds
        self._num_bytes = 0
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._complete, self._disconnected = asyncio.Event(), asyncio.Event()

    async def receive(self) -> Message:
        """Return the next part of the body (the ASGI `receive` of the application).

        The bytes are counted, because the Content-Length header may be missing or wrong.
        """
        if self._complete.is_set():
            await self._disconnected.wait()
            return {"type": DISCONNECT}
        try:
            message = await asyncio.wait_for(self._receive(), self._deadline - asyncio.get_running_loop().time())
        except TimeoutError:
            problem = f"the request did not arrive within {self._seconds:g} seconds"
            raise ApiError(problem, REQUEST_TIMEOUT, {"Connection": "close"}) from None
        self._num_bytes += len(message.get("body", b""))
        if self._num_bytes > self._max_bytes:
            raise ApiError(TOO_LARGE_MESSAGE.format(self._max_bytes), TOO_LARGE, {"Connection": "close"})
        if message["type"] == DISCONNECT:
            self._disconnected.set()
        if not message.get("more_body", False):
            self._complete.set()
        return message

    async def wait_for_disconnect(self) -> None:
        """Return when the client, having sent the whole body, has disconnected."""
        await self._complete.wait()
        while not self._disconnected.is_set():
            if (await self._receive())["type"] == DISCONNECT:
                self._disconnected.set()


class RequestLimitMiddleware:
    """Limit the size and the time of requests, and cancel the work for clients that disconnect."""

    def __init__(self, app: ASGIApp, *, max_body: int, seconds: float):
        self.app, self.max_body, self.seconds = app, max_body, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body, answered = RequestBody(receive, self.max_body, self.seconds), False

        async def send_and_note(message: Message) -> None:
            nonlocal answered
            answered = answered or (message["type"] == "http.response.body" and not message.get("more_body", False))
            await send(message)

        DEADLINE.set(asyncio.get_running_loop().time() + self.seconds)
        response = asyncio.ensure_future(self.app(scope, body.receive, send_and_note))
        disconnect = asyncio.ensure_future(body.wait_for_disconnect())
        try:
            await asyncio.wait((response, disconnect), return_when=asyncio.FIRST_COMPLETED)
            if not response.done() and not answered:
                response.cancel()
            with suppress(asyncio.CancelledError, ClientDisconnect):
                await response
        except Exception as error:
            # without the message, which may quote a client's text
            name, trace = current_client().key_name, "".join(traceback.format_tb(error.__traceback__))
            LOG.error("%s%s\n%s", type(error).__name__, f" (key {name})" if name else "", trace)
        finally:
            response.cancel()
            disconnect.cancel()
