"""The protocol of LibreTranslate, as its clients speak it."""

from __future__ import annotations

import html
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.serve.markup import parse_markup
from serving import place, refused, shelf, web

__all__ = ["place", "shelf", "web"]


def test_a_text_is_translated_as_it_is_printed(web: TestClient) -> None:
    asked = {"q": "Der Hund schläft.", "source": "de", "target": "en"}
    for answer in (
        web.post("/translate", json=asked),
        web.post("/translate", data=asked),
        web.post("/translate", files={name: (None, value) for name, value in asked.items()}),
    ):
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"translatedText": "The dog sleeps."}


def test_fields_may_be_in_the_address(web: TestClient) -> None:
    """As some clients send them; what is in the body comes first."""
    asked = {"q": "Der Hund schläft.", "source": "de", "target": "en", "api_key": "any"}
    assert web.post("/translate", params=asked).json() == {"translatedText": "The dog sleeps."}
    other = web.post("/translate", params=asked, data={"q": "Die Katze singt."}).json()
    assert other == {"translatedText": "The cat sings."}
    assert web.post("/detect", params={"q": "the dog barks"}).json()[0]["language"] == "en"
    refused(web.post("/translate?q=%ff&target=en"), 400, "neither JSON nor a form")
    refused(web.post("/translate?q=%ed%a0%80&target=en"), 400, "neither JSON nor a form")


def test_several_texts_in_a_form(web: TestClient) -> None:
    asked = {"q": ["Der Hund schläft.", "Die Katze singt."], "source": "de", "target": "en"}
    assert web.post("/translate", data=asked).json() == {"translatedText": ["The dog sleeps.", "The cat sings."]}


def test_several_texts_of_several_sentences(web: TestClient) -> None:
    texts = ["Der Hund schläft. Die Katze singt!\n\nDer Vogel rennt.", "", " Der Fisch singt. "]
    told = web.post("/translate", json={"q": texts, "source": "de", "target": "en"}).json()["translatedText"]
    assert told[0].startswith("The dog sleeps. ") and told[0].endswith("\n\nThe bird runs.")
    assert told[1:] == ["", " The fish sings. "]


def test_alternatives_are_others(web: TestClient) -> None:
    asked = {"q": "Der Hund schläft.", "source": "de", "target": "en", "alternatives": 2}
    told = web.post("/translate", json=asked).json()
    assert told["translatedText"] == "The dog sleeps."
    assert 1 <= len(told["alternatives"]) <= 2 and "The dog sleeps." not in told["alternatives"]
    several = web.post("/translate", json={**asked, "q": ["Der Hund schläft."]}).json()
    assert several == {"translatedText": ["The dog sleeps."], "alternatives": [told["alternatives"]]}


def test_the_language_is_found_out(web: TestClient) -> None:
    told = web.post("/translate", json={"q": "Der Hund schläft.", "source": "auto", "target": "en"}).json()
    assert told["translatedText"] == "The dog sleeps."
    assert told["detectedLanguage"]["language"] == "de" and told["detectedLanguage"]["confidence"] > 90
    same = web.post("/translate", json={"q": ["The bird sings.", "Der Hund schläft."], "target": "en"}).json()
    assert same["translatedText"] == ["The bird sings.", "The dog sleeps."], "what is English stays"
    assert [one["language"] for one in same["detectedLanguage"]] == ["en", "de"]
    assert web.post("/detect", data={"q": "the dog barks"}).json()[0]["language"] == "en"
    assert web.post("/detect", data={"q": "123 !"}).json() == []


def test_markup_stays(web: TestClient) -> None:
    text = '<p class="x">Der Hund schläft.</p> <code>der hund</code><!-- so --> &lt;<br/>Die Katze singt.'
    asked = {"q": text, "source": "de", "target": "en", "format": "html"}
    told = web.post("/translate", json=asked).json()["translatedText"]
    assert told.startswith('<p class="x">The dog sleeps.</p> <code>der hund</code><!-- so --> ')
    assert told.endswith("<!-- so --> &lt;<br/>The cat sings.")


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
def test_markup_is_copied_letter_by_letter(text: str) -> None:
    marked = parse_markup(text)
    assert marked.text_indices == [] and marked.replace_texts([]) == text


@pytest.mark.parametrize("piece", ["<a", '<a "', "<pre ", "<!", "<a '\"", "</", "<!--", "<script", "&lt;<"])
def test_markup_takes_linear_time(piece: str) -> None:
    """However many tags a text begins: what it has read it does not read again."""
    text = piece * 200_000
    marked = parse_markup(text)
    assert html.unescape(marked.replace_texts(marked.texts)) == html.unescape(text)


def test_quotes_may_hold_tags() -> None:
    text = '<pre title="a<b>c">der hund</pre><a title="<b>">der hund</a>'
    assert parse_markup(text).texts == ["der hund"]


def test_what_was_no_markup_becomes_none() -> None:
    marked = parse_markup("1 &lt;b&gt; 2 < 3 <i>x</i>")
    assert marked.texts == ["1 <b> 2 < 3 ", "x"]
    assert marked.replace_texts(marked.texts) == "1 &lt;b&gt; 2 &lt; 3 <i>x</i>"


def test_what_translates_to_what(web: TestClient) -> None:
    assert web.get("/languages").json() == [
        {"code": "de", "name": "German", "targets": ["de", "en"]},
        {"code": "en", "name": "English", "targets": ["en"]},
    ]
    assert web.post("/languages", content=b"").json() == web.get("/languages").json(), "as libretranslatepy asks"
    assert web.get("/health").json() == {"status": "ok"}
    settings = web.get("/frontend/settings").json()
    assert settings["charLimit"] == 700 and settings["language"]["target"] == {"code": "en", "name": "English"}
    paths = web.get("/spec").json()["paths"]
    assert {"/translate", "/languages", "/detect", "/v1/translate", "/v1/lattice", "/v1/next"} <= set(paths)
    assert web.get("/openapi.json").json()["paths"] == paths


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [
        ({"target": "en"}, 400, "missing q"),
        ({"q": "Hund"}, 400, "missing target"),
        ({"q": "Hund", "source": "de", "target": "fr"}, 400, "no translator from de to fr; there are: de to en"),
        ({"q": "Hund", "source": "de", "target": "en", "format": "pdf"}, 400, "format"),
        ({"q": 5, "source": "de", "target": "en"}, 400, "q"),
        ({"q": "a" * 701, "source": "de", "target": "en"}, 400, "701 characters"),
        ({"q": ["a"] * 4, "source": "de", "target": "en"}, 400, "4 texts"),
        ({"q": "a", "source": "de", "target": "en", "alternatives": 4}, 400, "4 alternatives"),
        ({"q": "a", "source": "de", "target": "en", "alternatives": -1}, 400, "-1 alternatives"),
        ({"q": "a", "source": "xx", "target": "xx"}, 400, "no translator from xx to xx"),
        ({"q": "a" * 3000, "source": "de", "target": "en"}, 413, "2,000 bytes"),
    ],
    ids=str,
)
def test_what_cannot_be_translated(web: TestClient, asked: dict[str, Any], status: int, told: str) -> None:
    refused(web.post("/translate", json=asked), status, told)


def test_what_is_no_request(web: TestClient) -> None:
    refused(web.post("/translate", content=b"{"), 400, "neither JSON nor a form")
    refused(web.post("/translate", content=b"[1]"), 400, "neither JSON nor a form")
    refused(web.post("/translate", content=b'{"q": "x", "source": "\\ud800", "target": "en"}'), 400, "neither")
    field = b'--x\r\nContent-Disposition: form-data; name="q"\r\nContent-Type: message/rfc822\r\n\r\n'
    nested = field + b"Subject: x\r\n\r\nhello\r\n--x--"
    form = {"content-type": "multipart/form-data; boundary=x"}
    refused(web.post("/translate", content=nested, headers=form), 400, "neither JSON nor a form")
    refused(web.post("/translate", content=b"\xff", headers={"content-type": "application/json"}), 400, "neither")
    refused(web.get("/nowhere"), 404, "Not Found")
    refused(web.get("/translate"), 405, "Method Not Allowed")


def test_the_language_of_html_is_told_by_what_it_says(web: TestClient) -> None:
    marked = '<p title="the cat sleeps the bird the dog">Der Hund schläft.</p>'
    told = web.post("/translate", json={"q": marked, "source": "auto", "target": "en", "format": "html"}).json()
    assert told["detectedLanguage"]["language"] == "de" and "The dog sleeps." in told["translatedText"]


def test_kinds_of_bodies_are_told_apart_as_they_should_be(web: TestClient) -> None:
    encoded = {"content-type": "application/X-WWW-Form-Urlencoded; charset=utf-8"}
    assert web.post("/detect", content=b"q=der+hund", headers=encoded).status_code == 200
    form = {"content-type": "multipart/form-data; boundary=x"}
    long = b'--x\r\nContent-Disposition: form-data; name="q"' + b";a=b" * 400 + b"\r\n\r\nder hund\r\n--x--"
    refused(web.post("/detect", content=long, headers=form), 400, "Invalid request")
    plain = web.post("/v1/next", content=b'{"models": ["bigrams"]}', headers={"content-type": "text/plain"})
    refused(plain, 400, "Content-Type: application/json")
