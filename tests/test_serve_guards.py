"""What keeps requests in bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import create_app
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service
from serving import HOME, SMALL, client, place, refused, shelf, web

__all__ = ["place", "shelf", "web"]

JSON = "application/json"


def test_every_answer_is_guarded(web: TestClient) -> None:
    for answer in (web.get("/"), web.get("/health"), web.get("/nowhere"), web.post("/translate", content=b"x" * 3000)):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
    refused(web.get("/health", headers={"host": "elsewhere.example"}), 400, "--host-name")
    elsewhere = web.post("/detect", data={"q": "x"}, headers={"sec-fetch-site": "cross-site"})
    refused(elsewhere, 403, "--cors")
    refused(web.post("/detect", data={"q": "x"}, headers={"sec-fetch-site": "same-site"}), 403, "--cors")
    assert web.post("/detect", data={"q": "x"}, headers={"sec-fetch-site": "same-origin"}).status_code == 200
    foreign = web.post("/detect", data={"q": "x"}, headers={"origin": "http://elsewhere.example"})
    refused(foreign, 403, "--cors")  # browsers tell sec-fetch-site to some services alone
    assert web.post("/detect", data={"q": "x"}, headers={"origin": HOME}).status_code == 200
    for host in ("localhost", "localhost:5000", "127.0.0.1:80", "[::1]:5000", "[::1]"):
        assert web.get("/health", headers={"host": host}).status_code == 200


def test_a_body_is_counted_whatever_its_header_says(web: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * 100

    refused(web.post("/translate", content=endless()), 413, "2,000 bytes")


def test_other_origins_may_ask_if_that_is_wanted(shelf: ModelRegistry) -> None:
    with client(shelf, cors="https://a.example", hosts=("*",)) as web:
        for origin, status in (("https://a.example", 200), ("https://b.example", 403), (HOME, 403)):
            headers = {"sec-fetch-site": "cross-site", "origin": origin, "host": "service.example"}
            assert web.post("/detect", data={"q": "x"}, headers=headers).status_code == status, origin
        before = web.options("/translate", headers={"host": "any.example"})
        assert before.status_code == 204 and before.headers["access-control-allow-methods"] == "GET, POST, OPTIONS"
        assert web.get("/health").headers["access-control-allow-origin"] == "https://a.example"


def test_what_nobody_foresaw_is_told_without_its_details(shelf: ModelRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("dragoman.serve.service.Service.detect", broken)
    service = Service(shelf, SMALL)
    with TestClient(create_app(service), base_url=HOME, raise_server_exceptions=False) as web:
        answer = web.post("/detect", data={"q": "Hund"})
    refused(answer, 500, "the log has more")
    assert "secret" not in answer.text


# -- hostile requests --------------------------------------------------------------------------------------------------

PATHS = (
    "/translate",
    "/detect",
    *(f"/v1/{one}" for one in ["translate", "attention", "lattice", "score", "next", "sample"]),
)
HALF = json.dumps(dict.fromkeys(("q", "source", "target", "model", "text", "prefix"), "\ud800"))
BODIES = {
    "deep lists": "[" * 1_900,
    "deep values": '{"q": ' * 300,
    "lists in q": '{"target": "en", "q": ' + "[" * 900 + "]" * 900 + "}",
    "not UTF-8": b'{"q": "\xff"}',
    "no numbers": '{"q": NaN, "target": "en", "alternatives": NaN, "beam": -Infinity, "model": NaN}',
    "long numbers": '{"q": 1, "target": "en", "model": "de-en", "texts": ["a"], "n": ' + "9" * 1_800 + "}",
    "half characters": HALF,
    "half a name": '{"\\ud800": 1}',
    "nothing": "",
    "null": "null",
    "a string": '"q"',
    "other types": '{"q": {"a": 1}, "source": [], "target": 5, "model": [], "models": "x", "texts": 1, "text": null}',
}


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", "multipart/form-data", "x"])
@pytest.mark.parametrize("name", BODIES)
def test_what_is_wrong_is_refused_with_a_reason(web: TestClient, name: str, kind: str) -> None:
    body = BODIES[name]
    for path in PATHS:
        answer = web.post(path, content=body, headers={"content-type": kind})
        refused(answer, 400, "")
        assert len(answer.text) < 2_500


@pytest.mark.parametrize(
    "text",
    [
        "a\0b",
        "x" * 690,
        "ß" * 690,
        "a" + " " * 600 + "b",
        "\n" * 690,
        ". A" * 200,
        "<a" * 300,
        "\"'" * 300,
        "(" * 690,
        "e\u0301\u0327" * 200,
        "\u202e" * 600,
        "\U0001f600" * 400,
        "".join(map(chr, range(32))),
        "<s> </s> <unk> <pad> " * 20,
        "▁" * 600,
        "&#99999999999;" * 40,
        "\u2028\u0085\x0b\r",
    ],
    ids=lambda text: ascii(text[:6]),
)
def test_strange_texts_are_answered(web: TestClient, text: str) -> None:
    part = text[:300]
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/translate", {"q": text, "source": "de", "target": "en"}),
        ("/translate", {"q": [part, part], "target": "en", "format": "html", "alternatives": 2}),
        ("/detect", {"q": text}),
        ("/v1/translate", {"model": "both", "texts": [part], "n": 2}),
        ("/v1/lattice", {"model": "de-en", "text": part}),
        ("/v1/attention", {"model": "de-en", "source": part, "target": part}),
        ("/v1/score", {"models": ["bigrams", "words"], "text": text}),
        ("/v1/next", {"models": ["bigrams"], "prefix": part}),
        ("/v1/next", {"models": ["de-en"], "prefix": part, "source": part}),
        ("/v1/sample", {"model": "bigrams", "prefix": part, "n": 1, "max_words": 3}),
    ]
    for path, one in asked:
        answer = web.post(path, content=json.dumps(one, ensure_ascii=False).encode(), headers={"content-type": JSON})
        if answer.status_code != 200:  # such as a sentence that is blank, or too long to be looked at
            refused(answer, 413 if len(answer.request.content) > SMALL.body else 400, "")


@pytest.mark.parametrize("name", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%00", "a%00b", "%ff", "x" * 3000, "~"])
def test_names_lead_nowhere(web: TestClient, name: str) -> None:
    for base in ("/v1/metrics/", "/page/", "/"):
        refused(web.get(base + name), 404, "")


def test_other_methods_are_refused(web: TestClient) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "ANY"):
        for path in ("/", "/translate", "/v1/models", "/page/main.js"):
            refused(web.request(method, path), 405, "Method Not Allowed")


def test_errors_are_logged_without_texts(
    shelf: ModelRegistry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(service: Service, text: str) -> None:
        raise RuntimeError(f"what somebody sent: {text}")

    monkeypatch.setattr("dragoman.serve.service.Service.detect", broken)
    with client(shelf) as web:
        refused(web.post("/detect", data={"q": "Geheimnis"}), 500, "the log has more")
    assert "RuntimeError" in caplog.text and "in broken" in caplog.text and "Geheimnis" not in caplog.text


# -- what OpenAPI tells ------------------------------------------------------------------------------------------------


def test_every_answer_is_described(web: TestClient) -> None:
    spec = web.get("/spec").json()
    bare = []
    for path, methods in spec["paths"].items():
        for method, told in methods.items():
            assert told["description"] or told["summary"], path
            assert {"200", "400", "413", "503", "504"} <= set(told["responses"]) and "422" not in told["responses"]
            assert "Retry-After" in told["responses"]["503"]["headers"]
            content = told["responses"]["200"]["content"]
            if "text/html" in content:
                continue  # a report
            schema = content["application/json"]["schema"]
            if not schema.get("$ref") and not schema.get("items", {}).get("$ref"):
                bare.append(f"{method} {path}")
    assert bare == []
    schemas = spec["components"]["schemas"]
    for name, schema in schemas.items():
        for field, told in schema.get("properties", {}).items():
            clear = {"text", "id", "word", "prob", "model", "models", "limits", "sentences", "name", "code", "error"}
            own = told.get("description") or told.get("$ref") or name in ("Settings", "Chosen", "Health", "Translation")
            assert own or field in clear, f"{name}.{field} is not described"


def test_examples_are_answers(web: TestClient) -> None:
    """The examples that OpenAPI shows hold to what it says of them."""
    from dragoman.serve.libretranslate import TranslateResponse
    from dragoman.serve.schemas import TRANSLATION_EXAMPLE, TranslationInfo

    told = TranslationInfo(**TRANSLATION_EXAMPLE)
    assert told.attention is not None and len(told.attention) == len(told.units) + 1
    assert {len(row) for row in told.attention} == {len(told.source_units) + 1}
    for example in TranslateResponse.model_config["json_schema_extra"]["examples"]:  # type: ignore[index,call-overload]
        assert TranslateResponse(**example).model_dump(exclude_none=True) == example
