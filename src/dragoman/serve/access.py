"""Who may use the service, and how much: API keys and limits per minute."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import Request, Security
from fastapi.security import APIKeyQuery, HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve import RequestLimits
from dragoman.serve.api_keys import ApiKeys
from dragoman.serve.errors import FORBIDDEN, TOO_MANY, ApiError
from dragoman.serve.request_fields import read_fields

KEY_FIELD = "api_key"  # LibreTranslate's name; of a query parameter, a field, and a cookie for reports
REPORTS_PATH = "/v1/reports/"  # shown in a frame of the page, which cannot send headers
MISSING_KEY, WRONG_KEY = "Please contact the server operator to get an API key", "Invalid API key"  # as LibreTranslate
MAX_CLIENTS = 10_000  # whose use is remembered
MINUTE = 60.0
BEARER, QUERY = HTTPBearer(auto_error=False), APIKeyQuery(name=KEY_FIELD, auto_error=False)


@dataclass
class Client:
    """Who sent the current request."""

    address: str
    key_name: str | None = None  # None until the key has been found

    @property
    def account(self) -> str:
        """What the limits per minute are for. An IPv6 user usually has a network of 64 bits."""
        if self.key_name is not None:
            return f"key {self.key_name}"
        try:
            address = ipaddress.ip_address(self.address)
        except ValueError:  # a proxy may send anything
            return f"address {self.address[:64]}"
        network = ipaddress.ip_network((address, 64), strict=False) if address.version == 6 else address
        return f"address {network}"


CLIENT: ContextVar[Client] = ContextVar("CLIENT")


def current_client() -> Client:
    return CLIENT.get(None) or Client("unknown")


class RateLimiter:
    """A limit per minute for each client.

    What a client uses is paid back evenly over time, so that it can use the whole limit at once and a sixtieth of it each
    second after that. One number per client is stored: when everything will be paid back.
    """

    def __init__(self, per_minute: int | None, unit: str, clock: Callable[[], float] = time.monotonic):
        self.per_minute, self.unit, self._clock = per_minute, unit, clock
        self._paid_back: OrderedDict[str, float] = OrderedDict()

    def spend(self, client: str, amount: int) -> None:
        """Count the use of a client; raise `ApiError` if it exceeds the limit. Then it is not counted.

        A single use above the limit is possible after a minute without use, and takes several minutes to pay back.
        """
        if self.per_minute is None:
            return
        now, cost = self._clock(), MINUTE * amount / self.per_minute
        paid_back = max(now, self._paid_back.get(client, now))
        wait = paid_back + min(cost, MINUTE) - (now + MINUTE)
        if wait > 1e-6:
            message = f"Slowdown: {self.per_minute:,} {self.unit} per minute"
            raise ApiError(message, TOO_MANY, {"Retry-After": str(math.ceil(wait))})
        self._paid_back[client] = paid_back + cost
        self._paid_back.move_to_end(client)
        if len(self._paid_back) > MAX_CLIENTS:
            self._paid_back.popitem(last=False)


class AccessControl:
    """Check keys and limits per minute. Used only by the thread of the event loop."""

    def __init__(self, limits: RequestLimits, keys: ApiKeys | None = None):
        self.keys = keys
        self._requests = RateLimiter(limits.requests_per_minute, "requests")
        self._characters = RateLimiter(limits.characters_per_minute, "characters")

    @property
    def key_required(self) -> bool:
        return self.keys is not None

    def admit(self, key: str | None) -> None:
        """Raise `ApiError` if the current client has no valid key, or too many requests."""
        client = current_client()
        if self.keys is not None:
            client.key_name = None if key is None else self.keys.find(key)
        self._requests.spend(client.account, 1)
        if self.keys is not None and client.key_name is None:
            raise ApiError(MISSING_KEY if key is None else WRONG_KEY, FORBIDDEN)

    def count_characters(self, characters: int) -> None:
        """Raise `ApiError` if the current client sends too many characters."""
        self._characters.spend(current_client().account, characters)

    def dependency(self) -> Callable[..., object]:
        """Return the FastAPI dependency of routes that need access. Keys are in the OpenAPI description if required."""

        async def admit(request: Request) -> None:
            self.admit(None)

        async def admit_with_key(
            request: Request,
            bearer: HTTPAuthorizationCredentials | None = Security(BEARER),
            query: str | None = Security(QUERY),
        ) -> None:
            key = bearer.credentials if bearer is not None else query
            if key is None and request.url.path.startswith(REPORTS_PATH):
                key = request.cookies.get(KEY_FIELD)
            self.admit(key or await _key_in_body(request))

        return admit_with_key if self.key_required else admit


async def _key_in_body(request: Request) -> str | None:
    try:
        key = (await read_fields(request)).get(KEY_FIELD)
    except ApiError:  # the route reports it, if it is reached
        return None
    return None if key is None or key == "" else str(key)


class ClientMiddleware:
    """Note who sends a request, and log requests if that is enabled: names of keys, never keys, texts or queries."""

    def __init__(self, app: ASGIApp, log: Callable[[str], None] | None = None):
        self.app, self.log = app, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        client, start, status = Client((scope.get("client") or ["unknown"])[0]), time.monotonic(), 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        token = CLIENT.set(client)
        try:
            await self.app(scope, receive, send_and_note)
        finally:
            CLIENT.reset(token)
            if self.log is not None:
                method, path = quote(scope["method"]), quote(scope["path"])
                seconds = f"{time.monotonic() - start:.3f} s"
                who = f"{client.address[:64]} {client.key_name or '-'}"
                self.log(f"{who} {method} {path} {status or 'disconnected'} {seconds}")
