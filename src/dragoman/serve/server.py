"""Running the application with uvicorn, with limits on connections and an end that is always reached.

uvicorn has no settings for the time that a client may take to send the headers of a request or to read the response, and
its `limit_concurrency` keeps refused connections open. So uvicorn gets its own h11 protocol with these three limits, by
its setting `http`. Its `timeout_graceful_shutdown` limits the wait for clients, not for threads; `BoundedServer` does.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import os
import signal
import threading
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from socket import AF_INET, AF_INET6, create_server, socket
from types import FrameType
from typing import ClassVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.align.aligner import Aligner
from dragoman.align.unknown_words import MIN_COVERAGE
from dragoman.combine.load_translators import ShortlistSource, load_shortlists
from dragoman.core.errors import DataError
from dragoman.data.vocabulary import Vocab
from dragoman.io.storage import SOURCE_VOCAB_FILE
from dragoman.serve import RequestLimits, ServerOptions
from dragoman.serve.access import AccessControl
from dragoman.serve.api_keys import ApiKeys
from dragoman.serve.app import create_app
from dragoman.serve.errors import BAD_REQUEST, REQUEST_TIMEOUT, RETRY_SECONDS, UNAVAILABLE
from dragoman.serve.middleware import LOCAL_HOSTS
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service

EXIT_SECONDS = 2.0  # after the time for a graceful shutdown, for the threads


class LimitedProtocol(H11Protocol):
    """An HTTP connection with limits: on the number of connections, on the time until the headers of each request have
    arrived, and on the time until the client has read each response."""

    max_connections: ClassVar[int]
    header_seconds: ClassVar[float]
    write_seconds: ClassVar[float]
    _header_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Call `pause_writing` whenever the client has not read everything, and `resume_writing` when it has. A limit of
        # 0 would let asyncio's TLS connections pause with nothing to write.
        transport.set_write_buffer_limits(high=1 if self.scheme == "https" else 0, low=0)
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
        self._stop_write_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_write_timer()
        super().resume_writing()

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

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


class BoundedServer(uvicorn.Server):
    """A server that ends within its `timeout_graceful_shutdown` after a signal, and at once after a second one."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        super().handle_exit(sig, frame)
        # Threads that compute are not interrupted, and Python waits for some of them. Nothing here writes files.
        seconds = (self.config.timeout_graceful_shutdown or 0) + EXIT_SECONDS
        timer = threading.Timer(seconds, os._exit, [128 + sig])
        timer.daemon = True
        timer.start()


def create_config(app: ASGIApp, limits: RequestLimits, options: ServerOptions = ServerOptions()) -> uvicorn.Config:
    """Return the uvicorn configuration for an application within limits."""
    attributes = {
        "max_connections": limits.connections,
        "header_seconds": limits.seconds,
        "write_seconds": limits.write_seconds,
    }
    return uvicorn.Config(
        app,
        http=type("ConfiguredProtocol", (LimitedProtocol,), attributes),
        loop="asyncio",
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=bool(options.trusted_proxies),
        forwarded_allow_ips=list(options.trusted_proxies),
        timeout_graceful_shutdown=options.shutdown_timeout,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
    )


def serve_models(
    models: Sequence[str],
    options: ServerOptions,
    *,
    limits: RequestLimits,
    api_keys: Path | None = None,
    lexicon: Path | None = None,
    precision: str | None = None,
    shortlist: ShortlistSource = "stored",
    log_texts: bool = False,
    log_requests: bool = False,
    version: str = "1",
    info: Callable[[str], None],
) -> None:
    """Serve models until a signal stops the process.

    Args:
        models: arguments as for `ModelRegistry.from_arguments`.
        api_keys: the file of the API keys that requests need; None: requests need no keys.
        lexicon: the directory of an aligner that translates unknown words.
        precision: of neural models, see `dragoman.load`.
        shortlist: of translators, see `load_translators`. Those that an aligner does not fit keep their own.
        log_texts, log_requests: whether the texts of requests, and a line per request, are passed to `info`.
        info: called with messages for the user.
    """
    _check_options(options)
    keys = None if api_keys is None else ApiKeys(api_keys)
    registry = ModelRegistry.from_arguments(models, precision, load_shortlists(shortlist))
    for entry in registry:
        if entry.is_translator and entry.languages is None:
            example = f"de-en={'+'.join(map(str, entry.paths))}"
            info(f"{entry.name}: its languages are unknown, so it is on the page and in /v1, but not in /translate")
            info(f"if it translates between languages, serve it with their codes, such as {example}")
    aligner = None if lexicon is None else _load_lexicon(lexicon, registry, info)
    service = Service(registry, limits, aligner, info if log_texts else None, AccessControl(limits, keys))
    app = create_app(
        service,
        allowed_hosts=(*LOCAL_HOSTS, options.host, *options.host_names),
        cors_origin=options.cors_origin,
        version=version,
        log_request=info if log_requests else None,
    )
    server = BoundedServer(_load_config(app, limits, options))
    with _listen(options) as listening:
        _announce(registry, options, listening.getsockname()[1], key_required=keys is not None, info=info)
        server.run([listening])


def _check_options(options: ServerOptions) -> None:
    """Raise a `DataError` if the addresses or the files of TLS are invalid."""
    try:
        ipaddress.ip_address(options.host)
    except ValueError:
        problem = f"--host {options.host}: not an IP address; give one such as 127.0.0.1, and names by --host-name"
        raise DataError(problem) from None
    for proxy in options.trusted_proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            remedy = "give the address of the reverse proxy, such as 127.0.0.1, or its network, such as 10.0.0.0/8"
            raise DataError(f"--forwarded-allow-ips {proxy}: not an IP address; {remedy}") from None
    if options.tls_key is not None and options.tls_cert is None:
        raise DataError(f"--tls-key {options.tls_key}: give also the certificate by --tls-cert")


def _load_config(app: ASGIApp, limits: RequestLimits, options: ServerOptions) -> uvicorn.Config:
    """Return the configuration with the certificate loaded, so that an invalid one is found before the start."""
    config = create_config(app, limits, options)
    try:
        config.load()
    except OSError as error:  # also of `ssl`
        reason = error.strerror or "not a certificate and its key"
        remedy = "give a PEM file with the certificate, and one with its key by --tls-key"
        raise DataError(f"--tls-cert {options.tls_cert}: cannot be used ({reason}); {remedy}") from None
    return config


def _listen(options: ServerOptions) -> socket:
    host, port = options.host, options.port
    try:
        return create_server((host, port), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        is_busy = error.errno == errno.EADDRINUSE
        problem = "is used by another program" if is_busy else f"cannot be used ({os.strerror(error.errno or 0)})"
        raise DataError(f"port {port} of {host} {problem}; choose another with --port or --host") from None


def _announce(
    registry: ModelRegistry, options: ServerOptions, port: int, *, key_required: bool, info: Callable[[str], None]
) -> None:
    """Say where the service is, and warn if others can use it or read what is sent."""
    host, uses_tls = options.host, options.tls_cert is not None
    url = f"{'https' if uses_tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
    models = f"{len(registry.entries):,} model{'s' if len(registry.entries) > 1 else ''}"
    precision = "" if registry.precision is None else f", neural ones in {registry.precision}"
    info(f"{models}{precision}; the page is at {url}; Ctrl-C ends")
    if languages := next(iter(registry.by_languages), None):
        fields = f'-d q="TEXT" -d source={languages.source} -d target={languages.target}'
        info(f"or translate by: curl -s {url}/translate {fields}{' -d api_key=KEY' if key_required else ''}")
    if ipaddress.ip_address(host).is_loopback:
        return
    if not key_required:
        info(f"warning: everybody who can reach {host} can use this service; --api-keys FILE requires keys")
    if not uses_tls:
        what = "keys and texts" if key_required else "texts"
        info(f"warning: {what} are sent unencrypted; use --tls-cert and --tls-key, or a reverse proxy with TLS")


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
