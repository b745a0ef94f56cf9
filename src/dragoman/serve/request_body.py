"""Receiving a request body within limits of size and time, and noticing when the client disconnects."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from dragoman.serve.errors import REQUEST_TIMEOUT, TOO_LARGE

DISCONNECT = "http.disconnect"


def too_large_message(max_bytes: int) -> str:
    return f"the request has more than {max_bytes:,} bytes; send less text per request"


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
        message = await self._receive_in_time()
        self._num_bytes += len(message.get("body", b""))
        if self._num_bytes > self._max_bytes:
            raise HTTPException(TOO_LARGE, too_large_message(self._max_bytes), {"Connection": "close"})
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

    async def _receive_in_time(self) -> Message:
        try:
            return await asyncio.wait_for(self._receive(), self._deadline - asyncio.get_running_loop().time())
        except TimeoutError:
            message = f"the request did not arrive within {self._seconds:g} seconds"
            raise HTTPException(REQUEST_TIMEOUT, message, {"Connection": "close"}) from None
