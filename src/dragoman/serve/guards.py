"""What stands before the application: who may ask, how much may be sent, and what every answer carries."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from dragoman.serve.refusal import BAD, FORBIDDEN, TOO_LARGE

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Guards:
    """An application behind checks of the Host header and of the size of what is sent."""

    def __init__(self, app: Application, *, hosts: tuple[str, ...] = LOCAL, body: int, cors: str | None = None):
        self.app, self.body, self.cors = app, body, cors
        self.hosts = {f"[{name.lower()}]" if name.count(":") > 1 and name[0] != "[" else name.lower() for name in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if not self._is_host(headers.get("host", "")):
            await self._refuse(send, BAD, "this service does not go by that name; see --host-name")
            return
        if self.cors is None and headers.get("sec-fetch-site") == "cross-site" and scope["method"] != "GET":
            await self._refuse(send, FORBIDDEN, "pages from elsewhere may not ask; see --cors")
            return
        if self.cors is not None and scope["method"] == "OPTIONS":
            await self._answer(send, 204, b"")
            return
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.body:
            await self._refuse(send, TOO_LARGE, self._too_large)
            return

        async def sent(message: Message) -> None:
            await send(self._with_headers(message))

        await self.app(scope, self._counted(receive), sent)

    @property
    def _too_large(self) -> str:
        return f"more than {self.body:,} bytes; send less at a time"

    def _is_host(self, given: str) -> bool:
        name = given.rsplit(":", 1)[0] if not given.endswith("]") else given
        return "*" in self.hosts or name.lower() in self.hosts

    def _counted(self, receive: Receive) -> Receive:
        """What arrives, as long as it is not too much, whatever its header says."""
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.body:
                raise HTTPException(TOO_LARGE, self._too_large)
            return message

        return counted

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
