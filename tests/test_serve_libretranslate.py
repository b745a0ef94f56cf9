"""The LibreTranslate API."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.data.html_documents import parse_html, write_html
from dragoman.data.inline_markup import plain_text
from serving import assert_error, client, place, registry

__all__ = ["client", "place", "registry"]

MULTIPART = {"content-type": "multipart/form-data; boundary=x"}


def test_translate_accepts_json_and_forms(client: TestClient) -> None:
    fields = {"q": "Der Hund schläft.", "source": "de", "target": "en"}
    raw = "&".join(f"{name}={value}" for name, value in fields.items())  # as curl -d sends it, not percent-encoded
    for response in (
        client.post("/translate", json=fields),
        client.post("/translate", data=fields),
        client.post("/translate", files={name: (None, value) for name, value in fields.items()}),
        client.post("/translate", content=raw, headers={"content-type": "application/X-WWW-Form-Urlencoded; a=b"}),
    ):
        assert response.status_code == 200, response.text
        assert response.json() == {"translatedText": "The dog sleeps."}


def test_query_parameters_are_overridden_by_the_body(client: TestClient) -> None:
    fields = {"q": "Der Hund schläft.", "source": "de", "target": "en", "api_key": "any"}
    assert client.post("/translate", params=fields).json() == {"translatedText": "The dog sleeps."}
    overridden = client.post("/translate", params=fields, data={"q": "Die Katze singt."}).json()
    assert overridden == {"translatedText": "The cat sings."}
    assert client.post("/detect", params={"q": "the dog barks"}).json()[0]["language"] == "en"
    assert_error(client.post("/translate?q=%ff&target=en"), 400, "neither JSON nor a form")
    assert_error(client.post("/translate?q=%ed%a0%80&target=en"), 400, "neither JSON nor a form")


def test_repeated_form_fields_are_several_texts(client: TestClient) -> None:
    fields = {"q": ["Der Hund schläft.", "Die Katze singt."], "source": "de", "target": "en"}
    assert client.post("/translate", data=fields).json() == {"translatedText": ["The dog sleeps.", "The cat sings."]}


def test_texts_of_several_sentences_keep_their_white_space(client: TestClient) -> None:
    texts = ["Der Hund schläft. Die Katze singt!\n\nDer Vogel rennt.", "", " Der Fisch singt. "]
    translations = client.post("/translate", json={"q": texts, "source": "de", "target": "en"}).json()["translatedText"]
    assert translations[0].startswith("The dog sleeps. ") and translations[0].endswith("\n\nThe bird runs.")
    assert translations[1:] == ["", " The fish sings. "]


def test_alternatives_differ_from_the_translation(client: TestClient) -> None:
    body = {"q": "Der Hund schläft.", "source": "de", "target": "en", "alternatives": 2}
    response = client.post("/translate", json=body).json()
    assert response["translatedText"] == "The dog sleeps."
    assert 1 <= len(response["alternatives"]) <= 2 and "The dog sleeps." not in response["alternatives"]
    of_list = client.post("/translate", json={**body, "q": ["Der Hund schläft."]}).json()
    assert of_list == {"translatedText": ["The dog sleeps."], "alternatives": [response["alternatives"]]}


def test_null_is_the_same_as_a_missing_field(client: TestClient) -> None:
    body = {"q": "Der Hund schläft.", "target": "en"}
    nulls = dict.fromkeys(("source", "format", "alternatives", "api_key"))
    assert client.post("/translate", json=body | nulls).json() == client.post("/translate", json=body).json()
    schema = client.get("/spec").json()["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]
    for name, description in schema["schema"]["properties"].items():
        assert ({"type": "null"} in description.get("anyOf", [])) == (name in nulls)
    assert_error(client.post("/translate", json=body | {"target": None}), 400, "missing target")


def test_description_has_the_limits_of_the_service(client: TestClient) -> None:
    description = client.get("/spec").json()
    schemas = description["components"]["schemas"]
    limits = client.get("/v1/models").json()["limits"]
    assert schemas["LatticeRequest"]["properties"]["beam"]["maximum"] == limits["beam"]
    assert schemas["V1TranslateRequest"]["properties"]["texts"]["maxItems"] == limits["texts"]
    content = description["paths"]["/translate"]["post"]["requestBody"]["content"]
    for media_type, kinds in (("application/json", ["integer", "null"]), ("multipart/form-data", ["integer"])):
        alternatives = content[media_type]["schema"]["properties"]["alternatives"]
        alternatives = alternatives.get("anyOf", [alternatives])
        assert [kind["type"] for kind in alternatives] == kinds
        assert alternatives[0]["maximum"] == limits["alternatives"]


def test_language_detection(client: TestClient) -> None:
    response = client.post("/translate", json={"q": "Der Hund schläft.", "source": "auto", "target": "en"}).json()
    assert response["translatedText"] == "The dog sleeps."
    assert response["detectedLanguage"]["language"] == "de" and response["detectedLanguage"]["confidence"] > 90
    mixed = client.post("/translate", json={"q": ["The bird sings.", "Der Hund schläft."], "target": "en"}).json()
    assert mixed["translatedText"] == ["The bird sings.", "The dog sleeps."], "English text stays as it is"
    assert [guess["language"] for guess in mixed["detectedLanguage"]] == ["en", "de"]
    assert client.post("/detect", data={"q": "the dog barks"}).json()[0]["language"] == "en"
    assert client.post("/detect", data={"q": "123 !"}).json() == []


def test_language_of_html_is_detected_from_its_text(client: TestClient) -> None:
    text = '<p title="the cat sleeps the bird the dog">Der Hund schläft.</p>'
    response = client.post("/translate", json={"q": text, "source": "auto", "target": "en", "format": "html"}).json()
    assert response["detectedLanguage"]["language"] == "de" and "The dog sleeps." in response["translatedText"]


def test_languages_health_and_settings(client: TestClient) -> None:
    assert client.get("/languages").json() == [
        {"code": "de", "name": "German", "targets": ["de", "en"]},
        {"code": "en", "name": "English", "targets": ["en"]},
    ]
    assert client.post("/languages", content=b"").json() == client.get("/languages").json(), (
        "libretranslatepy uses POST"
    )
    assert client.get("/health").json() == {"status": "ok"}
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 700 and settings["language"]["target"] == {"code": "en", "name": "English"}
    paths = client.get("/spec").json()["paths"]
    assert {"/translate", "/languages", "/detect", "/v1/translate", "/v1/lattice", "/v1/next"} <= set(paths)
    assert client.get("/openapi.json").json()["paths"] == paths


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"target": "en"}, 400, "Invalid request: missing q parameter"),
        ({"q": "Hund"}, 400, "missing target"),
        ({"q": "Hund", "source": "de", "target": "fr"}, 400, "no translator from de to fr; available: de to en"),
        (
            {"q": "Hund", "source": "de", "target": "en", "format": "pdf"},
            400,
            "Invalid request: format: must be 'text' or 'html'",
        ),
        ({"q": 5, "source": "de", "target": "en"}, 400, "Invalid request: q: must be text"),
        ({"q": "a" * 701, "source": "de", "target": "en"}, 400, "701 characters"),
        ({"q": ["a"] * 4, "source": "de", "target": "en"}, 400, "4 texts"),
        ({"q": "a", "source": "de", "target": "en", "alternatives": 4}, 400, "4 alternatives"),
        ({"q": "a", "source": "de", "target": "en", "alternatives": -1}, 400, "-1 alternatives"),
        ({"q": "a", "source": "xx", "target": "xx"}, 400, "no translator from xx to xx"),
        ({"q": "a" * 3000, "source": "de", "target": "en"}, 413, "2,000 bytes"),
    ],
    ids=str,
)
def test_invalid_requests(client: TestClient, body: dict[str, Any], status: int, message: str) -> None:
    assert_error(client.post("/translate", json=body), status, message)


def test_malformed_bodies(client: TestClient) -> None:
    for body in (b"{", b"[1]", b'{"q": "x", "source": "\\ud800", "target": "en"}'):
        assert_error(client.post("/translate", content=body), 400, "neither JSON nor a form")
    assert_error(client.post("/translate", content=b"\xff", headers={"content-type": "application/json"}), 400, "JSON")
    assert_error(client.get("/nowhere"), 404, "Not Found")
    for path, methods in (("/translate", "POST"), ("/languages", "GET, POST"), ("/page/main.js", "GET, HEAD")):
        refused = client.request("PUT", path)
        assert_error(refused, 405, "Method Not Allowed")
        assert refused.headers["allow"] == methods
    field = b'--x\r\nContent-Disposition: form-data; name="q"'
    nested = field + b"\r\nContent-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\nhello\r\n--x--"
    long_header = field + b";a=b" * 400 + b"\r\n\r\nder hund\r\n--x--"
    no_name = b"--x\r\nContent-Disposition: form-data\r\n\r\nder hund\r\n--x--"
    start = b"--x\r\nContent-Disposition: form-data"
    name_and_parts = start + b"; name*0=a; name*=b\r\n\r\nder hund\r\n--x--"  # a TypeError in the parser
    name_without_value, not_ascii = start + b"; name\r\n\r\nx\r\n--x--", start + b"; name=\xff\r\n\r\n\xff\r\n--x--"
    no_headers, only_headers = b"--x\r\n\r\nder hund\r\n--x--", start + b"\r\n--x--"
    for form in (nested, long_header, no_name, name_and_parts, not_ascii, no_headers, only_headers):
        assert_error(client.post("/detect", content=form, headers=MULTIPART), 400, "neither JSON nor a form")
    assert_error(client.post("/detect", content=name_without_value, headers=MULTIPART), 400, "missing q")
    plain = client.post("/v1/next", content=b'{"models": ["bigrams"]}', headers={"content-type": "text/plain"})
    assert_error(plain, 400, "Content-Type: application/json")


# -- HTML --------------------------------------------------------------------------------------------------------------


def test_tags_are_not_translated(client: TestClient) -> None:
    text = '<p class="x">Der Hund schläft.</p> <code>der hund</code><!-- so --> &lt;<br/>Die Katze singt.'
    body = {"q": text, "source": "de", "target": "en", "format": "html"}
    translation = client.post("/translate", json=body).json()["translatedText"]
    assert translation.startswith('<p class="x">The dog sleeps.</p> <code>der hund</code><!-- so --> ')
    assert translation.endswith("<!-- so --> &lt;<br/>The cat sings.")


@pytest.mark.parametrize(
    "text",
    [
        "<code>&lt;script&gt;alert(1)&lt;/script&gt;</code>",
        "<pre>&amp;amp;</pre>",
        "<script>if (a < b) { alert('der hund') }</script>",
        "<style>p { color: red }",
        "<![CDATA[ der hund ]]><?php x ?><!-- der hund",
        "<a title=\"der > hund\" href='x'></a >",
        "<p\n>  </p>",
        "",
    ],
)
def test_markup_is_copied_exactly(text: str) -> None:
    document = parse_html(text)
    assert document.segments == [] and document.render([]).text == text


@pytest.mark.parametrize(
    "piece",
    ["<a", '<a "', "<pre ", "<!", "<a '\"", "</", "<!--", "<script", "&lt;<", "<b>", "<b x", "http://", "{", "%(a"],
)
def test_markup_is_parsed_in_linear_time(piece: str) -> None:
    """Quadratic time would take hours for this text."""
    text = piece * 200_000
    document = parse_html(text)
    assert document.render([None] * len(document.segments)).text == text


def test_quoted_attributes_may_contain_tags() -> None:
    text = '<pre title="a<b>c">der hund</pre><a title="<b>">der hund</a>'
    [segment] = parse_html(text).segments
    assert plain_text(segment.parts, show=True).text == "der hund"


def test_translations_are_escaped() -> None:
    [segment] = parse_html("x &lt;b&gt; 2 < 3 <i>x</i>").segments
    assert plain_text(segment.parts, show=True).text == "x <b> 2 < 3 x"
    assert write_html(segment, segment.parts) == "x &lt;b&gt; 2 &lt; 3 <i>x</i>"


def test_inline_tags_are_put_back_around_the_words_that_translate_theirs(client: TestClient) -> None:
    text = "<p>Der <b>Hund</b> <i>schläft</i>, %s!</p>"
    body = {"q": text, "source": "de", "target": "en", "format": "html", "alternatives": 1}
    response = client.post("/translate", json=body).json()
    for translation in (response["translatedText"], *response["alternatives"]):
        for mark in ("<p>", "<b>", "</b>", "<i>", "</i>", "%s", "</p>"):
            assert translation.count(mark) == 1
    assert response["translatedText"].startswith("<p>") and response["translatedText"].endswith("</p>")
