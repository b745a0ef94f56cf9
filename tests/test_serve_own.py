"""The service's own interface: scores, n-best lists, attention, lattices, next words, samples."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import create_app
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service
from serving import HOME, SMALL, place, refused, shelf, web
from small_translators import translators

__all__ = ["place", "shelf", "web"]


def test_which_models_there_are(web: TestClient, shelf: ModelRegistry) -> None:
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
    assert best["units"] == list(plain[0].tokens) and best["log_prob"] == pytest.approx(plain[0].log_prob)
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
    [known] = translators()["one"].force_decode(["der hund schläft ."], ["the cat sleeps ."])
    assert told["log_prob"] == pytest.approx(known.log_prob) and told["units"] == list(known.tokens)


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
    assert given["samples"] == ["The dog sleeps."]
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


def test_texts_are_noted_down_if_that_is_wanted(shelf: ModelRegistry, capsys: pytest.CaptureFixture[str]) -> None:
    for noted, wanted in ((None, []), (list[str](), ["Der Hund schläft."])):
        service = Service(shelf, SMALL, log=None if noted is None else noted.append)
        with TestClient(create_app(service), base_url=HOME) as web:
            web.post("/translate", json={"q": "Der Hund schläft.", "source": "de", "target": "en"})
        assert (noted or []) == list(map(repr, wanted))
    said = capsys.readouterr()
    assert "Hund" not in said.out + said.err


def test_an_answer_has_so_much_attention_and_no_more(web: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"model": "de-en", "texts": ["Der Hund schläft."], "n": 3}
    [one] = web.post("/v1/translate", json=asked).json()["texts"][0]["sentences"]
    first, second, _ = (len(told["attention"]) * len(told["attention"][0]) for told in one["translations"])
    monkeypatch.setattr("dragoman.serve.v1.MOST_NUMBERS", first + second)
    [one] = web.post("/v1/translate", json=asked).json()["texts"][0]["sentences"]
    assert [told["attention"] is None for told in one["translations"]] == [False, False, True]
