"""Running the application with uvicorn, with limits on connections.

uvicorn has no setting for the time that a client may take to send the headers of a request, and its `limit_concurrency`
keeps refused connections open. So uvicorn gets its own h11 protocol with these two limits, by its setting `http`.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import os
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from socket import AF_INET, AF_INET6, create_server
from typing import ClassVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.align.aligner import Aligner
from dragoman.align.unknown_words import MIN_COVERAGE
from dragoman.core.errors import DataError
from dragoman.data.vocabulary import Vocab
from dragoman.io.storage import SOURCE_VOCAB_FILE
from dragoman.serve import RequestLimits
from dragoman.serve.app import create_app
from dragoman.serve.errors import BAD_REQUEST, REQUEST_TIMEOUT, RETRY_SECONDS, UNAVAILABLE
from dragoman.serve.middleware import LOCAL_HOSTS
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service


class LimitedProtocol(H11Protocol):
    """An HTTP connection with a limit on the number of connections and on the time for the headers of each request."""

    max_connections: ClassVar[int]
    header_seconds: ClassVar[float]
    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._refuse(UNAVAILABLE, f"{self.max_connections:,} connections are open already; try again later")
        else:
            self._start_timer()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()  # the headers are complete; the middleware limits the time for the body
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        self._refuse(BAD_REQUEST, msg)

    def _start_timer(self) -> None:
        if self._header_timer is None:
            message = f"no request arrived within {self.header_seconds:g} seconds"
            self._header_timer = self.loop.call_later(self.header_seconds, self._refuse, REQUEST_TIMEOUT, message)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _refuse(self, status: int, message: str) -> None:
        """Send an error response, whatever the state of the connection, and close it."""
        self._stop_timer()
        body = json.dumps({"error": message})
        retry = f"Retry-After: {RETRY_SECONDS}\r\n" if status == UNAVAILABLE else ""
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n{retry}"
        self.transport.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        self.transport.close()


def create_config(app: ASGIApp, limits: RequestLimits) -> uvicorn.Config:
    """Return the uvicorn configuration for an application within limits."""
    attributes = {"max_connections": limits.connections, "header_seconds": limits.seconds}
    protocol = type("ConfiguredProtocol", (LimitedProtocol,), attributes)
    return uvicorn.Config(app, http=protocol, ws="none", log_level="error", access_log=False, server_header=False)


def serve_models(
    models: Sequence[str],
    host: str,
    port: int,
    *,
    limits: RequestLimits,
    host_names: Sequence[str] = (),
    cors_origin: str | None = None,
    lexicon: Path | None = None,
    log_texts: bool = False,
    version: str = "1",
    info: Callable[[str], None],
) -> None:
    """Serve models until a signal stops the process.

    Args:
        models: arguments as for `ModelRegistry.from_arguments`.
        host, port: the IP address to listen on, and the port, 0 for any free one.
        host_names, cors_origin: additional host names, and another origin, as for `create_app`.
        lexicon: the directory of an aligner that translates unknown words.
        log_texts: whether the texts of requests are passed to `info`.
        info: called with messages for the user.
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        problem = f"--host {host}: not an IP address; give one such as 127.0.0.1, and names by --host-name"
        raise DataError(problem) from None
    registry = ModelRegistry.from_arguments(models)
    for entry in registry:
        if entry.is_translator and entry.languages is None:
            example = f"de-en={'+'.join(map(str, entry.paths))}"
            info(f"{entry.name}: its languages are unknown, so it is on the page and in /v1, but not in /translate")
            info(f"if it translates between languages, serve it with their codes, such as {example}")
    aligner = None if lexicon is None else _load_lexicon(lexicon, registry, info)
    service = Service(registry, limits, aligner, log_text=info if log_texts else None)
    app = create_app(service, allowed_hosts=(*LOCAL_HOSTS, host, *host_names), cors_origin=cors_origin, version=version)
    try:
        listening = create_server((host, port), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        is_busy = error.errno == errno.EADDRINUSE
        problem = "is used by another program" if is_busy else f"cannot be used ({os.strerror(error.errno or 0)})"
        raise DataError(f"port {port} of {host} {problem}; choose another with --port or --host") from None
    with listening:
        address = f"[{host}]" if ":" in host else host
        count = f"{len(registry.entries):,} model{'s' if len(registry.entries) > 1 else ''}"
        url = f"http://{address}:{listening.getsockname()[1]}"
        info(f"{count}; the page is at {url}; Ctrl-C ends")
        if languages := next(iter(registry.by_languages), None):
            fields = f'-d q="TEXT" -d source={languages.source} -d target={languages.target}'
            info(f"or translate by: curl -s {url}/translate {fields}")
        uvicorn.Server(create_config(app, limits)).run([listening])


def _load_lexicon(path: Path, registry: ModelRegistry, info: Callable[[str], None]) -> Aligner:
    """Load an aligner; report translators whose source words it does not know, and refuse it if it fits none."""
    aligner = Aligner.load(path)
    vocab_files = {entry.name: entry.paths[0] / SOURCE_VOCAB_FILE for entry in registry if entry.is_translator}
    coverage = {
        name: aligner.best_lexicon_for(Vocab.read(file))[1] for name, file in vocab_files.items() if file.is_file()
    }
    if coverage and max(coverage.values()) < MIN_COVERAGE:
        names = ", ".join(coverage)
        raise DataError(f"--lexicon {path}: knows too few words of {names}; align the texts they were trained on")
    for name, share in coverage.items():
        if share < MIN_COVERAGE:
            info(f"{name}: --lexicon {path} knows {share:.0%} of its words, so unknown words are copied")
    return aligner
