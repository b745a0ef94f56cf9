"""What somebody sends: no more of it than is allowed, no slower, and word if they have gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from dragoman.serve.errors import REQUEST_TIMEOUT, TOO_LARGE

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
DISCONNECT = "http.disconnect"


def too_large(most: int) -> str:
    return f"more than {most:,} bytes; send less at a time"


class RequestBody:
    """A request's body as it arrives, and afterwards the moment when whoever sent it leaves."""

    def __init__(self, receive: Receive, most: int, seconds: float):
        """Of `most` bytes, whatever its header says, and within some seconds."""
        self._receive, self._most, self._seconds = receive, most, seconds
        self._size = 0
        self._until = asyncio.get_running_loop().time() + seconds
        self._complete, self._gone = asyncio.Event(), asyncio.Event()

    async def receive(self) -> Message:
        """The next part of the body, for the application."""
        if self._complete.is_set():
            await self._gone.wait()
            return {"type": DISCONNECT}
        message = await self._in_time()
        self._size += len(message.get("body", b""))
        if self._size > self._most:
            raise HTTPException(TOO_LARGE, too_large(self._most), {"Connection": "close"})
        if message["type"] == DISCONNECT:
            self._gone.set()
        if not message.get("more_body", False):
            self._complete.set()
        return message

    async def wait_for_disconnect(self) -> None:
        """Until whoever has sent all of it has gone."""
        await self._complete.wait()
        while not self._gone.is_set():
            if (await self._receive())["type"] == DISCONNECT:
                self._gone.set()

    async def _in_time(self) -> Message:
        try:
            return await asyncio.wait_for(self._receive(), self._until - asyncio.get_running_loop().time())
        except TimeoutError:
            told = f"the request was not here after {self._seconds:g} seconds; send it faster"
            raise HTTPException(REQUEST_TIMEOUT, told, {"Connection": "close"}) from None
