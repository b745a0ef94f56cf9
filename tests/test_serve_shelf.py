"""Which models a service has."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from dragoman import Corpus, DataError, NgramModel
from dragoman.align.aligner import Aligner
from dragoman.data.corpus import ParallelCorpus
from dragoman.serve.registry import ModelRegistry, languages_from_name
from serving import client, place, refused, shelf, web
from small_translators import ENGLISH, GERMAN, translators

__all__ = ["place", "shelf", "web"]


def test_a_model_is_loaded_when_it_is_asked_for(place: Path) -> None:
    shelf = ModelRegistry.from_arguments([str(place / "one")])
    [entry] = shelf
    assert entry.model is None and entry.name == "one" and entry.languages is None
    assert entry.load() is entry.load() and entry.describe()["loaded"]


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
        ModelRegistry.from_arguments(asked)


def test_a_directory_of_models(tmp_path: Path) -> None:
    for name in ("rungs/attn", "rungs/kn", "both/forward", "both/backward"):
        model = (
            NgramModel.train(Corpus.from_sentences(ENGLISH), order=1, smoothing="witten-bell")
            if name == "rungs/kn"
            else translators()["one"]
        )
        model.save(tmp_path / name)
    (tmp_path / "both" / "config.yaml").write_text("kind: two-way\n")
    names = [entry.name for entry in ModelRegistry.from_arguments([f"run={tmp_path}"])]
    assert names == ["run/both/backward", "run/both/forward", "run/rungs/attn", "run/rungs/kn"]
    pair = ModelRegistry.from_arguments([f"de-en={tmp_path / 'both'}"])
    found = {entry.name: entry.languages for entry in pair}
    assert found == {"de-en/backward": ("en", "de"), "de-en/forward": ("de", "en")}


def test_how_a_training_goes(tmp_path: Path) -> None:
    translators()["one"].save(tmp_path / "de-en")
    with client(ModelRegistry.from_arguments([str(tmp_path / "de-en")])) as web:
        assert web.get("/v1/metrics/de-en").json() == {"model": "de-en", "metrics": [], "seconds_ago": None}
        (tmp_path / "de-en" / "metrics.jsonl").write_text('{"update": 1, "loss": 2.5}\n{"update": 2, "lo')
        assert web.get("/v1/metrics/de-en").json()["metrics"] == [{"update": 1, "loss": 2.5}]
        refused(web.get("/v1/metrics/nobody"), 404, "no model")


def test_a_model_that_was_trained_further_is_loaded_again(tmp_path: Path) -> None:
    asked = {"model": "de-en", "texts": ["Der Hund schläft."]}

    def cost(web: TestClient) -> float:
        [text] = web.post("/v1/translate", json=asked).json()["texts"]
        return float(text["sentences"][0]["translations"][0]["log_prob"])

    translators()["one"].save(tmp_path / "de-en")
    with client(ModelRegistry.from_arguments([str(tmp_path / "de-en")])) as web:
        first = cost(web)
        assert cost(web) == first
        translators()["two"].save(tmp_path / "de-en", replace=True)
        assert cost(web) != first


def test_languages_are_known_as_soon_as_there_is_a_translator(tmp_path: Path) -> None:
    NgramModel.train(Corpus.from_sentences(ENGLISH), order=1, smoothing="witten-bell").save(tmp_path / "kn")
    with client(ModelRegistry.from_arguments([f"de-en={tmp_path}"])) as web:
        assert web.post("/detect", data={"q": "der hund"}).json() == []
        translators()["one"].save(tmp_path / "later")
        assert web.get("/v1/models").status_code == 200
        assert web.post("/detect", data={"q": "der hund schläft"}).json()[0]["language"] == "de"


def test_two_directories_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        model = NgramModel.train(Corpus.from_sentences(ENGLISH), order=1, smoothing="witten-bell")
        model.save(tmp_path / name / "run" / f"of-{name}")
    with pytest.raises(DataError, match="two directories are called run"):
        ModelRegistry.from_arguments([str(tmp_path / "a" / "run"), str(tmp_path / "b" / "run")])


@pytest.mark.parametrize(
    ("name", "found"),
    [("de-en", ("de", "en")), ("models.ja-en.2", ("ja", "en")), ("lab-one", None), ("kn-5", None), ("abde-en", None)],
)
def test_languages_in_names(name: str, found: tuple[str, str] | None) -> None:
    assert languages_from_name(name) == found


def test_unknown_words_are_replaced_by_a_lexicon(shelf: ModelRegistry) -> None:
    german, english = [*GERMAN, *["zebra"] * 3], [*ENGLISH, *["stripes"] * 3]
    right = ParallelCorpus(Corpus.from_sentences(german), Corpus.from_sentences(english))
    other = ParallelCorpus(Corpus.from_sentences(["x y"] * 3), Corpus.from_sentences(["z z"] * 3))
    told = []
    for pairs in (right, ParallelCorpus(right.target, right.source), other):
        with client(shelf, aligner=Aligner.train(pairs, "ibm1")) as web:
            asked = {"model": "de-en", "texts": ["Zebra Zebra."], "prefix": ["the", "<unk>"]}
            [text] = web.post("/v1/translate", json=asked).json()["texts"]
        told.append(text["sentences"][0]["translations"][0]["replaced"][0])
    assert [one["word"] for one in told] == ["stripes", "stripes", "zebra"], "whichever way; another text's is left"
    assert [one["rule"] for one in told] == ["lexicon", "lexicon", "copied"]
