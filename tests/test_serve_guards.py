"""What keeps requests in bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import application
from dragoman.serve.service import Service
from dragoman.serve.shelf import Shelf
from serving import HOME, SMALL, client, place, refused, shelf, web

__all__ = ["place", "shelf", "web"]


def test_every_answer_is_guarded(web: TestClient) -> None:
    for answer in (web.get("/"), web.get("/health"), web.get("/nowhere"), web.post("/translate", content=b"x" * 3000)):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
    refused(web.get("/health", headers={"host": "elsewhere.example"}), 400, "--host-name")
    elsewhere = web.post("/detect", data={"q": "x"}, headers={"sec-fetch-site": "cross-site"})
    refused(elsewhere, 403, "--cors")
    for host in ("localhost", "localhost:5000", "127.0.0.1:80", "[::1]:5000", "[::1]"):
        assert web.get("/health", headers={"host": host}).status_code == 200


def test_a_body_is_counted_whatever_its_header_says(web: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * 100

    refused(web.post("/translate", content=endless()), 413, "2,000 bytes")


def test_other_origins_may_ask_if_that_is_wanted(shelf: Shelf) -> None:
    with client(shelf, cors="https://a.example", hosts=("*",)) as web:
        assert web.post("/detect", data={"q": "x"}, headers={"sec-fetch-site": "cross-site"}).status_code == 200
        before = web.options("/translate", headers={"host": "any.example"})
        assert before.status_code == 204 and before.headers["access-control-allow-methods"] == "GET, POST, OPTIONS"
        assert web.get("/health").headers["access-control-allow-origin"] == "https://a.example"


def test_what_nobody_foresaw_is_told_without_its_details(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("dragoman.serve.service.guess", broken)
    service = Service(shelf, SMALL)
    with TestClient(application(service), base_url=HOME, raise_server_exceptions=False) as web:
        answer = web.post("/detect", data={"q": "Hund"})
    refused(answer, 500, "the log has more")
    assert "secret" not in answer.text
