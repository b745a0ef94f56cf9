"""Checks of hosts, origins and sizes, hostile requests, and the OpenAPI description."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import create_app
from dragoman.serve.libretranslate import TranslateResponse
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.schemas import TRANSLATION_EXAMPLE, TranslationInfo
from dragoman.serve.service import Service
from serving import BASE_URL, LIMITS, assert_error, client, create_client, place, registry

__all__ = ["client", "place", "registry"]

JSON = "application/json"


def test_every_response_has_security_headers(client: TestClient) -> None:
    large = client.post("/translate", content=b"x" * 3000)
    for response in (client.get("/"), client.get("/health"), client.get("/nowhere"), large):
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in response.headers


def test_only_known_host_names_are_answered(client: TestClient) -> None:
    assert_error(client.get("/health", headers={"host": "other.example"}), 400, "--host-name")
    for host in ("localhost", "localhost:5000", "127.0.0.1:80", "[::1]:5000", "[::1]"):
        assert client.get("/health", headers={"host": host}).status_code == 200


def test_requests_from_other_origins_are_refused(client: TestClient) -> None:
    def post(headers: dict[str, str]) -> Any:
        return client.post("/detect", data={"q": "x"}, headers=headers)

    assert_error(post({"sec-fetch-site": "cross-site"}), 403, "--cors")
    assert_error(post({"sec-fetch-site": "same-site"}), 403, "--cors")
    assert_error(post({"origin": "http://other.example"}), 403, "--cors")  # not every browser sends Sec-Fetch-Site
    assert post({"sec-fetch-site": "same-origin"}).status_code == 200
    assert post({"origin": BASE_URL}).status_code == 200


def test_cors_allows_one_origin(registry: ModelRegistry) -> None:
    allowed = "https://a.example"
    with create_client(registry, cors_origin=allowed, allowed_hosts=("*",)) as client:
        for origin, status in ((allowed, 200), ("https://b.example", 403), (BASE_URL, 403)):
            headers = {"sec-fetch-site": "cross-site", "origin": origin, "host": "service.example"}
            response = client.post("/detect", data={"q": "x"}, headers=headers)
            assert response.status_code == status, origin
            assert response.headers.get("access-control-allow-origin") == (allowed if status == 200 else None)
            assert response.headers["cross-origin-resource-policy"] == "cross-origin"
        preflight_headers = {
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type",
            "host": "any.example",
        }
        for origin, status in ((allowed, 200), ("https://b.example", 400)):
            preflight = client.options("/translate", headers={**preflight_headers, "origin": origin})
            assert preflight.status_code == status
        assert "content-security-policy" in preflight.headers


def test_body_without_content_length_is_limited(client: TestClient) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * 100

    assert_error(client.post("/translate", content=chunks()), 413, "2,000 bytes")


def test_unexpected_error_has_no_details(registry: ModelRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a secret")

    service = Service(registry, LIMITS)
    monkeypatch.setattr(service, "detect", fail)
    with TestClient(create_app(service), base_url=BASE_URL, raise_server_exceptions=False) as client:
        response = client.post("/detect", data={"q": "Hund"})
    assert_error(response, 500, "see the service's log")
    assert "secret" not in response.text


def test_errors_are_logged_without_texts(
    registry: ModelRegistry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(text: str, *_: Any) -> None:
        raise RuntimeError(f"the text of the request: {text}")

    service = Service(registry, LIMITS)
    monkeypatch.setattr(service, "detect", fail)
    with TestClient(create_app(service), base_url=BASE_URL) as client:
        assert_error(client.post("/detect", data={"q": "Geheimnis"}), 500, "see the service's log")
    assert "RuntimeError" in caplog.text and "in fail" in caplog.text and "Geheimnis" not in caplog.text


# -- hostile requests --------------------------------------------------------------------------------------------------

V1_ENDPOINTS = ("translate", "attention", "lattice", "score", "next", "sample")
PATHS = ("/translate", "/detect", *(f"/v1/{endpoint}" for endpoint in V1_ENDPOINTS))
SURROGATES = json.dumps(dict.fromkeys(("q", "source", "target", "model", "text", "prefix"), "\ud800"))
BODIES = {
    "deep lists": "[" * 1_900,
    "deep objects": '{"q": ' * 300,
    "lists in q": '{"target": "en", "q": ' + "[" * 900 + "]" * 900 + "}",
    "not UTF-8": b'{"q": "\xff"}',
    "not numbers": '{"q": NaN, "target": "en", "alternatives": NaN, "beam": -Infinity, "model": NaN}',
    "long number": '{"q": 1, "target": "en", "model": "de-en", "texts": ["a"], "n": ' + "9" * 1_800 + "}",
    "surrogates": SURROGATES,
    "surrogate in a name": '{"\\ud800": 1}',
    "empty": "",
    "null": "null",
    "string": '"q"',
    "other types": '{"q": {"a": 1}, "source": [], "target": 5, "model": [], "models": "x", "texts": 1, "text": null}',
}


@pytest.mark.parametrize("kind", [JSON, "application/x-www-form-urlencoded", "multipart/form-data", "x"])
@pytest.mark.parametrize("name", BODIES)
def test_invalid_bodies_are_refused(client: TestClient, name: str, kind: str) -> None:
    for path in PATHS:
        response = client.post(path, content=BODIES[name], headers={"content-type": kind})
        assert_error(response, 400, "")
        assert len(response.text) < 2_500


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
def test_unusual_texts_are_answered(client: TestClient, text: str) -> None:
    part = text[:300]
    requests: list[tuple[str, dict[str, Any]]] = [
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
    for path, body in requests:
        content = json.dumps(body, ensure_ascii=False).encode()
        response = client.post(path, content=content, headers={"content-type": JSON})
        if response.status_code != 200:  # for example a blank sentence, or one that is too long
            assert_error(response, 413 if len(content) > LIMITS.body else 400, "")


@pytest.mark.parametrize("name", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "a%00b", "%ff", "x" * 3000])
def test_names_do_not_reach_other_files(client: TestClient, name: str) -> None:
    for base in ("/v1/metrics/", "/page/", "/"):
        assert_error(client.get(base + name), 404, "")


def test_other_methods_are_refused(client: TestClient) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "ANY"):
        for path in ("/", "/translate", "/v1/models", "/page/main.js"):
            assert_error(client.request(method, path), 405, "Method Not Allowed")


# -- OpenAPI -----------------------------------------------------------------------------------------------------------


def test_every_route_and_field_is_described(client: TestClient) -> None:
    spec = client.get("/spec").json()
    for path, methods in spec["paths"].items():
        for operation in methods.values():
            assert operation["description"] or operation["summary"], path
            responses = operation["responses"]
            assert {"200", "400", "413", "503", "504"} <= set(responses) and "422" not in responses
            assert "Retry-After" in responses["503"]["headers"]
            content = responses["200"]["content"]
            if "text/html" not in content:  # a report
                schema = content[JSON]["schema"]
                assert schema.get("$ref") or schema.get("items", {}).get("$ref"), path
    self_explanatory = {"text", "id", "word", "prob", "model", "models", "limits", "sentences", "name", "code", "error"}
    libretranslate = {"FrontendSettings", "DefaultLanguages", "HealthResponse", "TranslateResponse"}
    for name, schema in spec["components"]["schemas"].items():
        for field, description in schema.get("properties", {}).items():
            is_described = description.get("description") or description.get("$ref") or name in libretranslate
            assert is_described or field in self_explanatory, f"{name}.{field} has no description"


def test_examples_are_valid() -> None:
    translation = TranslationInfo(**TRANSLATION_EXAMPLE)
    assert translation.attention is not None and len(translation.attention) == len(translation.units) + 1
    assert {len(row) for row in translation.attention} == {len(translation.source_units) + 1}
    for example in TranslateResponse.model_config["json_schema_extra"]["examples"]:  # type: ignore[index,call-overload]
        assert TranslateResponse(**example).model_dump(exclude_none=True) == example
