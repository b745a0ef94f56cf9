"""The service at a real port: slow senders, senders that leave, too many of them, and what is no HTTP."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import uvicorn

from dragoman import Corpus, NgramModel
from dragoman.serve.app import create_app
from dragoman.serve.connection import limited_protocol
from dragoman.serve.limits import RequestLimits
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service
from serving import until
from small_translators import ENGLISH

LIMITS = RequestLimits(body=2_000, queue=4, seconds=30.0, connections=8)
ASKED = json.dumps({"models": ["words"], "prefix": "the"}).encode()
POST = b"POST /v1/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class Running(NamedTuple):
    service: Service
    server: uvicorn.Server
    port: int

    def send(self, data: bytes) -> socket.socket:
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        opened.sendall(data)
        return opened

    def ask(self, data: bytes) -> tuple[int, bytes]:
        """The status and all that comes with it, until the service closes the connection."""
        with self.send(data) as opened:
            return answered(opened)


def answered(opened: socket.socket) -> tuple[int, bytes]:
    got = b"".join(iter(lambda: opened.recv(65536), b""))
    return int(got.split(b" ")[1]), got


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lm") / "words"
    NgramModel.train(Corpus.from_sentences(ENGLISH), order=1, smoothing="witten-bell").save(path)
    return path


@contextmanager
def running(words: Path, limits: RequestLimits = LIMITS) -> Iterator[Running]:
    service = Service(ModelRegistry.from_arguments([str(words)]), limits)
    how = {"http": limited_protocol(limits), "ws": "none", "log_level": "error", "timeout_keep_alive": 1}
    server = uvicorn.Server(uvicorn.Config(create_app(service), **how))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        until(lambda: server.started)
        yield Running(service, server, listening.getsockname()[1])
        server.should_exit = True
        thread.join(60)


def request(body: bytes, more: bytes = b"Connection: close\r\n") -> bytes:
    return POST + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_what_is_no_request_is_told_so(words: Path) -> None:
    with running(words) as there:
        assert there.ask(request(ASKED))[0] == 200
        for bad in (
            b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
            b"GET /health HTTP/1.1\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: elsewhere\r\n\r\n",
            POST + b"Content-Length: -1\r\n\r\n",
            POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"GET /%c3 HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
        ):
            status, told = there.ask(bad)
            assert status == 400 and set(json.loads(told.partition(b"\r\n\r\n")[2])) == {"error"}
        assert there.ask(request(ASKED))[0] == 200, "it goes on"


def test_a_body_without_a_length_is_counted(words: Path) -> None:
    chunk = b"fa0\r\n" + b"x" * 4000 + b"\r\n"
    with running(words) as there:
        status, told = there.ask(POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunk)
    assert status == 413 and b"2,000 bytes" in told and b"content-security-policy" in told


def test_slow_senders_are_not_waited_for(words: Path) -> None:
    """Neither for the headers, nor for the body, nor for the rest of what was refused already."""
    with running(words, replace(LIMITS, seconds=0.3)) as there:
        assert there.ask(b"")[0] == 408
        assert there.ask(b"GET /health HTTP/1.1\r\nHost: local")[0] == 408
        status, told = there.ask(POST + b"Content-Length: 10\r\n\r\n{")
        assert status == 408 and b"not here after 0.3 seconds" in told
        assert there.ask(POST + b"Content-Length: 9999\r\n\r\n{")[0] == 413
        assert there.ask(request(ASKED))[0] == 200


def test_no_more_connections_than_allowed(words: Path) -> None:
    with running(words) as there:
        opened = [there.send(b"") for _ in range(LIMITS.connections)]
        until(lambda: len(there.server.server_state.connections) == LIMITS.connections)
        status, told = there.ask(b"")
        assert status == 503 and b"Retry-After: " in told and b"8 connections" in told
        for one in opened:
            one.close()
        until(lambda: not there.server.server_state.connections)
        assert there.ask(request(ASKED))[0] == 200


def test_who_leaves_leaves_the_queue(words: Path, capfd: pytest.CaptureFixture[str]) -> None:
    held = threading.Event()
    with running(words) as there:
        desk, entry = there.service.queue, there.service.registry.get("words")
        entry.load()
        next_words, waited = entry.model.next_words, list[str]()

        def slowly(prefix: str, k: int) -> list[tuple[str, float]]:
            waited.append(prefix)
            held.wait(60)
            return next_words(prefix, k)

        entry.model.next_words = slowly
        first = there.send(request(ASKED))
        until(lambda: waited)
        leaving = [there.send(request(ASKED)) for _ in range(3)]
        until(lambda: desk.waiting == 3)
        for one in leaving:
            one.close()
        until(lambda: desk.waiting == 0)
        there.send(POST + b"Content-Length: 10\r\n\r\n{").close()  # in the middle of a request
        held.set()
        with first:
            assert answered(first)[0] == 200, "who stays is answered"
    assert waited == ["the"], "nobody was worked for who had gone"
    assert capfd.readouterr().err == ""


def test_a_full_queue_is_told(words: Path) -> None:
    """Requests together: as many as may wait are answered, the others are asked to come again."""
    held = threading.Event()
    with running(words) as there:
        entry = there.service.registry.get("words")
        next_words = entry.load().next_words
        entry.model.next_words = lambda prefix, k: held.wait(60) and next_words(prefix, k)
        first = there.send(request(ASKED))
        until(lambda: there.service.queue.batches)
        others = [there.send(request(ASKED)) for _ in range(LIMITS.queue)]
        until(lambda: there.service.queue.waiting == LIMITS.queue)
        status, told = there.ask(request(ASKED))
        assert status == 503 and b"retry-after: " in told.lower()
        held.set()
        assert [answered(one)[0] for one in (first, *others)] == [200] * 5
