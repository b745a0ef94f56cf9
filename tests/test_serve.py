"""The service: protocols, limits, and requests that arrive together."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman import Corpus, DataError, NgramModel
from dragoman.align.aligner import Aligner
from dragoman.serve.app import application
from dragoman.serve.desk import Desk, Wanted
from dragoman.serve.limits import Limits
from dragoman.serve.markup import read_markup
from dragoman.serve.service import Service
from dragoman.serve.shelf import Shelf, languages_of
from dragoman.text.corpus import ParallelCorpus
from small_translators import ENGLISH, GERMAN, place, translators

__all__ = ["place"]

HOME = "http://127.0.0.1:5000"
SMALL = Limits(characters=700, texts=3, beam=6, alternatives=3, body=2_000, queue=2, seconds=20)


@pytest.fixture(scope="module")
def shelf(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """A translator, an ensemble, one without languages, one that is broken, and a language model."""
    corpus, there = Corpus.from_sentences(ENGLISH), tmp_path_factory.mktemp("lm")
    NgramModel.train(corpus, order=2, smoothing="witten-bell").save(there / "bigrams")
    NgramModel.train(corpus, order=1, smoothing="witten-bell").save(there / "words")
    translators()["one"].save(there / "broken")
    (there / "broken" / "model.safetensors").write_bytes(b"?")
    names = [f"de-en={place / 'one'}", f"both={place / 'one'}+{place / 'two'}", f"{place / 'pieces'}"]
    return Shelf.of([*names, f"broken={there / 'broken'}", f"{there / 'bigrams'}", f"{there / 'words'}"])


def client(shelf: Shelf, limits: Limits = SMALL, **how: Any) -> TestClient:
    return TestClient(application(Service(shelf, limits, how.pop("aligner", None)), **how), base_url=HOME)


@pytest.fixture
def web(shelf: Shelf) -> Iterator[TestClient]:
    with client(shelf) as opened:
        yield opened


def until(done: Any) -> None:
    """Wait for something that comes, or fail."""
    patience = time.monotonic() + 60
    while not done():
        assert time.monotonic() < patience, "it did not come"
        time.sleep(0.005)


def refused(answer: Any, status: int, told: str) -> None:
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"} and told in answer.json()["error"]


# -- LibreTranslate ----------------------------------------------------------------------------------------------------


def test_a_text_is_translated_as_it_is_printed(web: TestClient) -> None:
    asked = {"q": "Der Hund schläft.", "source": "de", "target": "en"}
    for answer in (
        web.post("/translate", json=asked),
        web.post("/translate", data=asked),
        web.post("/translate", files={name: (None, value) for name, value in asked.items()}),
    ):
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"translatedText": "The dog sleeps."}


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
    marked = read_markup(text)
    assert marked.texts == [] and marked.with_texts([]) == text


def test_what_was_no_markup_becomes_none() -> None:
    marked = read_markup("1 &lt;b&gt; 2 < 3 <i>x</i>")
    assert marked.to_translate == ["1 <b> 2 < 3 ", "x"]
    assert marked.with_texts(marked.to_translate) == "1 &lt;b&gt; 2 &lt; 3 <i>x</i>"


def test_what_translates_to_what(web: TestClient) -> None:
    assert web.get("/languages").json() == [
        {"code": "de", "name": "German", "targets": ["de", "en"]},
        {"code": "en", "name": "English", "targets": ["en"]},
    ]
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


# -- our own -----------------------------------------------------------------------------------------------------------


def test_which_models_there_are(web: TestClient, shelf: Shelf) -> None:
    told = web.get("/v1/models").json()
    found = {one["name"]: one for one in told["models"]}
    assert list(found) == ["de-en", "both", "pieces", "broken", "bigrams", "words"]
    assert (found["de-en"]["source"], found["de-en"]["target"], found["both"]["members"]) == ("de", "en", 2)
    assert found["bigrams"]["kind"] == "ngram" and told["limits"]["characters"] == 700


def test_translations_with_what_was_looked_at(web: TestClient) -> None:
    asked = {"model": "de-en", "texts": ["Der Hund schläft."], "n": 2}
    [text] = web.post("/v1/translate", json=asked).json()["texts"]
    [sentence] = text["sentences"]
    best = sentence["translations"][0]
    plain = translators()["one"].n_best("der hund schläft .", 2)[0]
    assert text["text"] == best["text"] == "The dog sleeps." and sentence["read"] == "der hund schläft ."
    assert best["units"] == list(plain[0].words) and best["log_prob"] == pytest.approx(plain[0].log_prob)
    assert len(best["attention"]) == len(best["units"]) + 1 and len(best["attention"][0]) == 5
    assert len(sentence["translations"]) == 2


def test_it_goes_on_from_another_word(web: TestClient) -> None:
    asked = {"model": "de-en", "texts": ["Der Hund schläft."], "prefix": ["the", "cat"]}
    [text] = web.post("/v1/translate", json=asked).json()["texts"]
    assert text["text"].startswith("The cat")
    for texts in (["a", "b"], ["Der Hund bellt. Die Katze singt."]):
        refused(web.post("/v1/translate", json={**asked, "texts": texts}), 400, "single sentence")
    refused(web.post("/v1/translate", json={**asked, "prefix": ["the", "zebra"]}), 400, "no unit 'zebra'")


def test_a_given_translation(web: TestClient) -> None:
    asked = {"model": "de-en", "source": "Der Hund schläft.", "target": "The cat sleeps."}
    told = web.post("/v1/attention", json=asked).json()
    [known] = translators()["one"].score(["der hund schläft ."], ["the cat sleeps ."])
    assert told["log_prob"] == pytest.approx(known.log_prob) and told["units"] == list(known.words)


def test_what_a_search_did(web: TestClient) -> None:
    told = web.post("/v1/lattice", json={"model": "de-en", "text": "Der Hund schläft.", "beam": 2}).json()
    nodes = {node["id"]: node for node in told["nodes"]}
    assert {node["fate"] for node in nodes.values()} == {"kept", "finished", "pruned"}
    assert all(node["parent"] is None or node["parent"] in nodes for node in nodes.values())
    assert told["translation"]["text"] == "The dog sleeps."
    refused(web.post("/v1/lattice", json={"model": "de-en", "text": " "}), 400, "blank")


def test_what_words_cost_and_what_comes_next(web: TestClient) -> None:
    told = web.post("/v1/score", json={"models": ["bigrams", "words"], "text": "the dog zzz\nthe"}).json()
    assert told["models"] == ["bigrams", "words"]
    assert told["sentences"][0]["words"] == ["the", "dog", "zzz", "</s>"] and len(told["sentences"][0]["bits"]) == 2
    words = web.post("/v1/next", json={"models": ["bigrams", "words"], "prefix": "the", "k": 3}).json()["models"]
    assert [one["model"] for one in words] == ["bigrams", "words"] and all(len(one["words"]) == 3 for one in words)
    given = web.post("/v1/next", json={"models": ["de-en"], "source": "Der Hund schläft.", "prefix": "the"}).json()
    assert given["models"][0]["words"][0]["word"] == "dog"
    by_units = web.post("/v1/next", json={"models": ["de-en"], "source": "Der Hund schläft.", "prefix": ["the"]}).json()
    assert by_units == given
    refused(web.post("/v1/next", json={"models": ["de-en"]}), 400, "give a source")
    refused(web.post("/v1/next", json={"models": []}), 400, "at least one")


def test_samples(web: TestClient) -> None:
    asked = {"model": "bigrams", "n": 3, "seed": 5}
    one, two = (web.post("/v1/sample", json=asked).json()["samples"] for _ in range(2))
    assert one == two and len(one) == 3
    given = web.post("/v1/sample", json={"model": "de-en", "source": "Der Hund schläft.", "n": 1, "top_k": 1}).json()
    assert given["samples"] == ["the dog sleeps ."]
    refused(web.post("/v1/sample", json={"model": "bigrams", "n": 5}), 400, "4 alternatives")


@pytest.mark.parametrize(
    ("path", "asked", "status", "told"),
    [
        ("translate", {"model": "nobody", "texts": ["a"]}, 404, "there is no model 'nobody'; there are de-en"),
        ("translate", {"model": "bigrams", "texts": ["a"]}, 400, "is a language model, and this is for a translator"),
        ("score", {"models": ["de-en"], "text": "a"}, 400, "is a translator, and this is for a language model"),
        ("translate", {"model": "broken", "texts": ["a"]}, 404, "broken cannot be loaded: broken/model.safetensors"),
        ("translate", {"model": "de-en", "texts": ["a"], "beam": 7}, 400, "a beam of 7"),
        ("translate", {"model": "de-en", "texts": ["a"], "beam": 0}, 400, "a beam of 0"),
        ("translate", {"model": "de-en", "texts": ["a"], "length": "long"}, 400, "length handling 'long'"),
        ("translate", {"model": "de-en", "texts": ["a"], "beams": 3}, 400, "beams"),
        ("translate", {"model": "pieces", "texts": ["a"], "n": 9}, 400, "8 alternatives"),
        ("attention", {"model": "pieces", "source": "der hund", "target": "a" * 260}, 400, "more than 250 units"),
        ("next", {"models": ["de-en"], "source": "a " * 300}, 400, "more than 250 units"),
    ],
    ids=str,
)
def test_what_cannot_be_asked(web: TestClient, path: str, asked: dict[str, Any], status: int, told: str) -> None:
    refused(web.post(f"/v1/{path}", json=asked), status, told)


def test_texts_are_noted_down_if_that_is_wanted(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    for noted, wanted in ((None, []), (list[str](), ["Der Hund schläft."])):
        service = Service(shelf, SMALL, log=None if noted is None else noted.append)
        with TestClient(application(service), base_url=HOME) as web:
            web.post("/translate", json={"q": "Der Hund schläft.", "source": "de", "target": "en"})
        assert (noted or []) == list(map(repr, wanted))
    said = capsys.readouterr()
    assert "Hund" not in said.out + said.err


# -- guards ------------------------------------------------------------------------------------------------------------


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


# -- the desk ----------------------------------------------------------------------------------------------------------


def test_requests_that_arrive_together_are_one_batch(shelf: Shelf) -> None:
    service = Service(shelf, replace(SMALL, queue=50))
    held = threading.Event()
    with TestClient(application(service), base_url=HOME) as web, ThreadPoolExecutor(9) as pool:
        blocker = pool.submit(lambda: web.portal.call(service.desk.do, held.wait))
        until(lambda: service.desk.batches)
        lines = GERMAN[:8]
        asked = [{"q": line, "source": "de", "target": "en"} for line in lines]
        answers = [pool.submit(web.post, "/translate", json=one) for one in asked]
        until(lambda: service.desk.waiting == len(lines))
        held.set()
        told = [answer.result().json()["translatedText"] for answer in answers]
        assert blocker.result()
    spelled = [line[:1] + line[1:].removesuffix(" .") + "." for line in ENGLISH[:8]]
    assert told == spelled
    assert service.desk.batches == 2, "the blocker, and all of them"


def test_a_full_queue_and_a_slow_answer(shelf: Shelf) -> None:
    service = Service(shelf, replace(SMALL, queue=1, seconds=2.0))
    held = threading.Event()
    with TestClient(application(service), base_url=HOME) as web, ThreadPoolExecutor(4) as pool:
        first = pool.submit(lambda: web.portal.call(service.desk.do, held.wait))
        until(lambda: service.desk.batches)
        asked = {"q": GERMAN[0], "source": "de", "target": "en"}
        waiting = pool.submit(web.post, "/translate", json=asked)
        until(lambda: service.desk.waiting)
        full = web.post("/translate", json=asked)
        refused(full, 503, "waiting already")
        assert int(full.headers["retry-after"]) >= 1
        refused(waiting.result(), 504, "longer than 2 seconds")
        held.set()
        assert first.exception() is not None, "it was too slow as well"
        until(lambda: not service.desk.waiting)
        assert web.portal.call(service.desk.do, lambda: "done") == "done", "the desk goes on"


def test_nobody_pays_for_what_another_asked(shelf: Shelf) -> None:
    """A batch that fails is answered one by one."""
    desk = Desk(10, 20.0)
    held = threading.Event()

    def work(questions: list[str], wanted: Wanted) -> list[str]:
        if "bad" in questions:
            raise ValueError("bad")
        return [question.upper() for question in questions]

    async def asked() -> list[Any]:
        first = asyncio.create_task(desk.do(held.wait))
        others = [asyncio.create_task(desk.ask("key", [one], work)) for one in ("a", "bad", "b")]
        while desk.waiting < 3:
            await asyncio.sleep(0.001)
        held.set()
        await first
        return await asyncio.gather(*others, return_exceptions=True)

    one, bad, two = asyncio.run(asked())
    assert (one, two) == (["A"], ["B"]) and isinstance(bad, ValueError)
    desk.close()
    assert not desk.works


def test_those_who_leave_do_no_harm() -> None:
    """Whoever is cancelled at whatever moment, the worker goes on."""
    desk = Desk(100, 20.0)

    async def asked() -> Any:
        for pause in (0.0, 0.001, 0.003, 0.006) * 3:
            gone = asyncio.create_task(desk.do(lambda: None))
            await asyncio.sleep(pause)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        return await desk.do(lambda: "still here")

    assert asyncio.run(asked()) == "still here"
    desk.close()


def test_work_that_nobody_waits_for_is_given_up(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.serve.service.AT_ONCE", 1)
    service = Service(shelf, replace(SMALL, seconds=0.2, characters=5000))
    slow, begun = threading.Event(), list[int]()

    def translate(parts: Any, *_: Any, **__: Any) -> Any:
        begun.append(len(parts))
        slow.wait(20)
        return parts

    monkeypatch.setattr(service.interpreter(shelf.find("de-en")), "translate", translate)
    with TestClient(application(service), base_url=HOME) as web:
        refused(web.post("/translate", json={"q": "Ein. " * 5, "source": "de", "target": "en"}), 504, "longer")
        slow.set()
        until(lambda: web.portal.call(service.desk.do, lambda: True))
    assert len(begun) == 1, "the rest was not begun"


# -- the shelf ---------------------------------------------------------------------------------------------------------


def test_a_model_is_loaded_when_it_is_asked_for(place: Path) -> None:
    shelf = Shelf.of([str(place / "one")])
    [entry] = shelf
    assert entry.model is None and entry.name == "one" and entry.languages is None
    assert entry.loaded() is entry.loaded() and entry.described()["loaded"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["nowhere"], "nowhere: no such directory"),
        (["one", "one"], "two models are called one"),
        (["one+test.de"], "is a file"),
    ],
)
def test_what_cannot_be_served(place: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str], told: str) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(DataError, match=told):
        Shelf.of(asked)


def test_a_directory_of_models(tmp_path: Path) -> None:
    for name in ("rungs/attn", "rungs/kn", "both/forward", "both/backward"):
        model = (
            NgramModel.train(Corpus.from_sentences(ENGLISH), order=1, smoothing="witten-bell")
            if name == "rungs/kn"
            else translators()["one"]
        )
        model.save(tmp_path / name)
    (tmp_path / "both" / "config.yaml").write_text("kind: two-way\n")
    names = [entry.name for entry in Shelf.of([f"run={tmp_path}"])]
    assert names == ["run/both/backward", "run/both/forward", "run/rungs/attn", "run/rungs/kn"]
    pair = Shelf.of([f"de-en={tmp_path / 'both'}"])
    found = {entry.name: entry.languages for entry in pair}
    assert found == {"de-en/backward": ("en", "de"), "de-en/forward": ("de", "en")}


def test_how_a_training_goes(tmp_path: Path) -> None:
    translators()["one"].save(tmp_path / "de-en")
    with client(Shelf.of([str(tmp_path / "de-en")])) as web:
        assert web.get("/v1/metrics/de-en").json() == {"model": "de-en", "metrics": []}
        (tmp_path / "de-en" / "metrics.jsonl").write_text('{"update": 1, "loss": 2.5}\n{"update": 2, "lo')
        assert web.get("/v1/metrics/de-en").json()["metrics"] == [{"update": 1, "loss": 2.5}]
        refused(web.get("/v1/metrics/nobody"), 404, "no model")


@pytest.mark.parametrize(
    ("name", "found"),
    [("de-en", ("de", "en")), ("models.ja-en.2", ("ja", "en")), ("lab-one", None), ("kn-5", None), ("abde-en", None)],
)
def test_languages_in_names(name: str, found: tuple[str, str] | None) -> None:
    assert languages_of(name) == found


def test_unknown_words_are_replaced_by_a_lexicon(shelf: Shelf) -> None:
    german, english = [*GERMAN, *["zebra"] * 3], [*ENGLISH, *["stripes"] * 3]
    right = ParallelCorpus(Corpus.from_sentences(german), Corpus.from_sentences(english))
    other = ParallelCorpus(Corpus.from_sentences(["x y"] * 3), Corpus.from_sentences(["z z"] * 3))
    told = []
    for pairs in (right, ParallelCorpus(right.target, right.source), other):
        with client(shelf, aligner=Aligner.learn(pairs, "ibm1")) as web:
            asked = {"model": "de-en", "texts": ["Zebra Zebra."], "prefix": ["the", "<unk>"]}
            [text] = web.post("/v1/translate", json=asked).json()["texts"]
        told.append(text["sentences"][0]["translations"][0]["replaced"][0])
    assert [one["word"] for one in told] == ["stripes", "stripes", "zebra"], "whichever way; another text's is left"
    assert [one["rule"] for one in told] == ["lexicon", "lexicon", "copied"]
