"""The service on a real port: slow clients, disconnects, too many connections, and malformed HTTP."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn

from dragoman.models.language_model import LanguageModel
from dragoman.serve import RequestLimits, ServerOptions
from dragoman.serve.app import create_app
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.server import create_config
from dragoman.serve.service import Service
from serving import train_ngram_model, wait_until

LIMITS = RequestLimits(body=2_000, queue=4, seconds=30.0, connections=8)
BODY = json.dumps({"models": ["words"], "prefix": "the"}).encode()
POST = b"POST /v1/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class RunningService(NamedTuple):
    service: Service
    server: uvicorn.Server
    port: int

    def send(self, data: bytes) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sendall(data)
        return connection

    def request(self, data: bytes) -> tuple[int, bytes]:
        """Return the status and the whole response, read until the service closes the connection."""
        with self.send(data) as connection:
            return read_response(connection)


def read_response(connection: socket.socket) -> tuple[int, bytes]:
    response = b"".join(iter(lambda: connection.recv(65536), b""))
    return int(response.split(b" ")[1]), response


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "words"
    train_ngram_model().save(path)
    return path


@contextmanager
def run_service(
    model_path: Path, limits: RequestLimits = LIMITS, options: ServerOptions = ServerOptions(), **app_options: Any
) -> Iterator[RunningService]:
    service = Service(ModelRegistry.from_arguments([str(model_path)]), limits)
    config = create_config(create_app(service, **app_options), limits, options)
    config.timeout_keep_alive = (
        1  # seconds until a client is disconnected that does not send the body of a refused request
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        wait_until(lambda: server.started)
        yield RunningService(service, server, listening.getsockname()[1])
        server.should_exit = True
        thread.join(60)


def post_next(headers: bytes = b"Connection: close\r\n") -> bytes:
    return POST + headers + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def test_malformed_http_is_answered_with_an_error(model_path: Path) -> None:
    with run_service(model_path) as running:
        assert running.request(post_next())[0] == 200
        for malformed in (
            b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
            b"GET /health HTTP/1.1\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: elsewhere\r\n\r\n",
            POST + b"Content-Length: -1\r\n\r\n",
            POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"GET /%c3 HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
        ):
            status, response = running.request(malformed)
            assert status == 400 and set(json.loads(response.partition(b"\r\n\r\n")[2])) == {"error"}
        assert running.request(post_next())[0] == 200, "the service still works"


def test_chunked_body_is_limited(model_path: Path) -> None:
    chunk = b"fa0\r\n" + b"x" * 4000 + b"\r\n"
    with run_service(model_path) as running:
        status, response = running.request(POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk)
    assert status == 413 and b"2,000 bytes" in response and b"content-security-policy" in response


def test_slow_clients_are_disconnected(model_path: Path) -> None:
    """During the headers, during the body, and during a body that was refused already."""
    with run_service(model_path, LIMITS.model_copy(update={"seconds": 0.3})) as running:
        assert running.request(b"")[0] == 408
        assert running.request(b"GET /health HTTP/1.1\r\nHost: local")[0] == 408
        status, response = running.request(POST + b"Content-Length: 10\r\n\r\n{")
        assert status == 408 and b"within 0.3 seconds" in response
        assert running.request(POST + b"Content-Length: 9999\r\n\r\n{")[0] == 413


def connect_without_reading(running: RunningService, context: ssl.SSLContext | None = None) -> socket.socket:
    """Send many requests for a large response, as long as the service reads them, and read nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", running.port))
    if context is not None:
        connection = context.wrap_socket(connection, server_hostname="localhost")
    connection.settimeout(0.2)
    with suppress(OSError):
        for _ in range(3_000):
            connection.sendall(b"GET /spec HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return connection


def test_clients_that_never_read_are_disconnected(model_path: Path) -> None:
    """Those that leave the connection open, and those that request to close it."""
    with run_service(model_path, LIMITS.model_copy(update={"write_seconds": 0.3})) as running:
        with connect_without_reading(running):
            wait_until(lambda: not running.server.server_state.connections)
        assert running.request(post_next())[0] == 200, "the service still works"


def test_slow_readers_get_the_whole_response(model_path: Path) -> None:
    with run_service(model_path) as running:
        request = b"GET /spec HTTP/1.1\r\nHost: localhost\r\n"
        with running.send(request + b"Connection: close\r\n\r\n") as connection:
            parts = list(iter(lambda: connection.recv(1024), b""))
        body = b"".join(parts).partition(b"\r\n\r\n")[2]
        assert len(parts) > 10 and json.loads(body)["paths"]


def test_number_of_connections_is_limited(model_path: Path) -> None:
    with run_service(model_path) as running:
        connections = [running.send(b"") for _ in range(LIMITS.connections)]
        wait_until(lambda: len(running.server.server_state.connections) == LIMITS.connections)
        status, response = running.request(b"")
        assert status == 503 and b"Retry-After: " in response and b"8 connections" in response
        for connection in connections:
            connection.close()
        wait_until(lambda: not running.server.server_state.connections)
        assert running.request(post_next())[0] == 200


def block_next_words(service: Service, release: threading.Event, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Make predictions wait; return a list of the prefixes whose prediction has started."""
    model, started = service.registry.get("words").load_language_model(), list[object]()
    continuations = model.continuations

    def wait_and_predict(self: LanguageModel, prefix: str, k: int, *, show_unknown: bool = True) -> object:
        started.append(prefix)
        release.wait(60)
        return continuations(prefix, k, show_unknown=show_unknown)

    monkeypatch.setattr(type(model), "continuations", wait_and_predict)
    return started


def test_disconnected_clients_leave_the_queue(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    release = threading.Event()
    with run_service(model_path) as running:
        queue, started = running.service.queue, block_next_words(running.service, release, monkeypatch)
        first = running.send(post_next())
        wait_until(lambda: started)
        leaving = [running.send(post_next()) for _ in range(3)]
        wait_until(lambda: queue.num_waiting == 3)
        for connection in leaving:
            connection.close()
        wait_until(lambda: queue.num_waiting == 0)
        running.send(POST + b"Content-Length: 10\r\n\r\n{").close()  # in the middle of a request
        release.set()
        with first:
            assert read_response(first)[0] == 200
    assert started == ["the"], "requests of disconnected clients were not processed"
    assert capfd.readouterr().err == ""


def test_requests_beyond_the_queue_are_refused(model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    with run_service(model_path) as running:
        queue, started = running.service.queue, block_next_words(running.service, release, monkeypatch)
        first = running.send(post_next())
        wait_until(lambda: started)
        waiting = [running.send(post_next()) for _ in range(LIMITS.queue)]
        wait_until(lambda: queue.num_waiting == LIMITS.queue)
        status, response = running.request(post_next())
        assert status == 503 and b"retry-after: " in response.lower()
        release.set()
        assert [read_response(connection)[0] for connection in (first, *waiting)] == [200] * 5


# -- TLS and reverse proxies -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    directory = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost"
    files = ["-keyout", "key.pem", "-out", "cert.pem", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command.split(), *files], cwd=directory, check=True, capture_output=True)
    return directory / "cert.pem", directory / "key.pem"


def test_tls(model_path: Path, certificate: tuple[Path, Path]) -> None:
    limits = LIMITS.model_copy(update={"write_seconds": 0.3, "seconds": 3.0})
    options = ServerOptions(tls_cert=certificate[0], tls_key=certificate[1])
    context = ssl.create_default_context(cafile=certificate[0])
    with run_service(model_path, limits, options) as running:

        def request(data: bytes) -> tuple[int, bytes]:
            with context.wrap_socket(running.send(b""), server_hostname="localhost") as connection:
                connection.sendall(data)
                return read_response(connection)

        assert request(post_next())[0] == 200
        spec = request(b"GET /spec HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[1]
        assert json.loads(spec.partition(b"\r\n\r\n")[2])["paths"]
        with connect_without_reading(running, context):
            wait_until(lambda: not running.server.server_state.connections)
        assert request(b"")[0] == 408, "a silent client"
        assert request(post_next())[0] == 200


@pytest.mark.parametrize(
    ("trusted", "address"), [((), "127.0.0.1"), (("127.0.0.1",), "192.0.2.7"), (("10.0.0.0/8",), "127.0.0.1")]
)
def test_forwarded_addresses_only_of_trusted_proxies(model_path: Path, trusted: tuple[str, ...], address: str) -> None:
    """The last address is the one that the proxy saw; those before it were sent by the client."""
    logged, forwarded = list[str](), b"X-Forwarded-For: 198.51.100.1, 192.0.2.7\r\n"
    options = ServerOptions(trusted_proxies=trusted)
    with run_service(model_path, options=options, log_request=logged.append) as running:
        assert running.request(post_next(forwarded + b"Connection: close\r\n"))[0] == 200
    assert logged[0].startswith(f"{address} - POST /v1/next 200 ")
