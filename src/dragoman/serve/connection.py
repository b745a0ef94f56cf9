"""Connections to the service: not too many of them, and none that is held open by a request that does not come."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.serve.errors import BAD_REQUEST, REQUEST_TIMEOUT, RETRY_SECONDS, UNAVAILABLE
from dragoman.serve.limits import RequestLimits

REASON_PHRASES = {BAD_REQUEST: "Bad Request", REQUEST_TIMEOUT: "Request Timeout", UNAVAILABLE: "Service Unavailable"}


class LimitedProtocol(H11Protocol):
    """One of a limited number, with some patience for the headers of each request."""

    max_connections: ClassVar[int]
    seconds: ClassVar[float]
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._close(UNAVAILABLE, f"{self.max_connections:,} connections are open already; ask again in a moment")
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()  # a request has begun: what comes now is its body, which others count
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._close(BAD_REQUEST, msg)

    def _wait(self) -> None:
        """For the next request's headers, from its first byte on."""
        if self._patience is None:
            told = f"no request came in {self.seconds:g} seconds"
            self._patience = self.loop.call_later(self.seconds, self._close, REQUEST_TIMEOUT, told)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _close(self, status: int, reason: str) -> None:
        """Say why, whatever state the connection is in, and end it."""
        self._stop_waiting()
        body = json.dumps({"error": reason})
        retry = f"Retry-After: {RETRY_SECONDS}\r\n" if status == UNAVAILABLE else ""
        head = f"HTTP/1.1 {status} {REASON_PHRASES[status]}\r\nContent-Type: application/json\r\n{retry}"
        self.transport.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        self.transport.close()


def limited_protocol(limits: RequestLimits) -> type[LimitedProtocol]:
    """The kind of connections that a service within these limits has."""
    return type("LimitedConnection", (LimitedProtocol,), {"most": limits.connections, "seconds": limits.seconds})
