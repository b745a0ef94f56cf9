"""The models of a service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from dragoman import Corpus, DataError
from dragoman.align.aligner import Aligner
from dragoman.combine.load_translators import load_shortlists
from dragoman.data.corpus import ParallelCorpus
from dragoman.experiments.corpus_data import CorpusFiles
from dragoman.experiments.directories import check_settings
from dragoman.io.model_card import write_examples
from dragoman.models.loading import load
from dragoman.serve.registry import ModelRegistry, languages_from_name
from serving import assert_error, create_client, place, registry, train_ngram_model
from small_translators import ENGLISH, GERMAN, translators

__all__ = ["place", "registry"]


def test_models_are_loaded_on_first_use(place: Path) -> None:
    [entry] = ModelRegistry.from_arguments([str(place / "one")])
    assert entry.model is None and entry.name == "one" and entry.languages is None
    assert entry.load_translator() is entry.load_translator() and entry.describe().loaded


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such directory"),
        (["one", "one"], "two models have the name one"),
        (["one+test.de"], "is a file"),
        (["one="], "no directory given; write one=DIR"),
    ],
)
def test_invalid_arguments(place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(DataError, match=message):
        ModelRegistry.from_arguments(arguments)


def test_an_aligner_is_loaded_once_and_fits_only_some_translators(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, letters = translators()["one"], translators()["pieces"]
    Aligner.train(ParallelCorpus(one.source.encode(GERMAN), one.target.encode(ENGLISH)), "ibm1").save(tmp_path / "al")
    letters.save(tmp_path / "pieces")
    shortlists = load_shortlists(tmp_path / "al")
    monkeypatch.setattr(Aligner, "load", None)
    directories = [str(place / "one"), str(tmp_path / "pieces")]
    fits, other = ModelRegistry.from_arguments(directories, shortlists=shortlists)
    assert fits.load_translator().has_shortlist
    with pytest.warns(UserWarning, match=r"pieces: searches with all words .*has translations for") as caught:
        assert not other.load_translator().has_shortlist
    other.load_translator()
    assert len(caught) == 1


def test_directory_of_models(tmp_path: Path) -> None:
    for name in ("rungs/attn", "both/forward", "both/backward"):
        translators()["one"].save(tmp_path / name)
    train_ngram_model().save(tmp_path / "rungs" / "kn")
    (tmp_path / "both" / "config.yaml").write_text("kind: two-way\n")
    names = [entry.name for entry in ModelRegistry.from_arguments([f"run={tmp_path}"])]
    assert names == ["run/both/backward", "run/both/forward", "run/rungs/attn", "run/rungs/kn"]
    two_way = ModelRegistry.from_arguments([f"de-en={tmp_path / 'both'}"])
    assert {entry.name: entry.languages for entry in two_way} == {
        "de-en/backward": ("en", "de"),
        "de-en/forward": ("de", "en"),
    }


def test_directory_of_a_ladder(tmp_path: Path) -> None:
    """Models are in the order of training, the best translator first; languages and examples are those of the texts."""
    for name, loss in (("attention", 1.5), ("encoder-decoder", 2.5)):
        translators()["one"].save(tmp_path / "rungs" / name)
        (tmp_path / "rungs" / name / "metrics.jsonl").write_text(f'{{"update": 1, "best_dev_loss": {loss}}}\n')
    for name in ("kn-2", "kn-10", "brown"):
        train_ngram_model().save(tmp_path / "rungs" / name)
    order = ["kn-2", "kn-10", "brown", "encoder-decoder", "attention"]
    (tmp_path / "rungs" / "seconds.json").write_text(json.dumps(dict.fromkeys(order, 1.0)))
    check_settings(tmp_path, {"seed": 1}, CorpusFiles(src="in/train.de", tgt="in/train.en").language_notes)
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "dev.src").write_text("der hund bellt .\nder vogel singt .\n")
    entries = list(ModelRegistry.from_arguments([f"ladder={tmp_path}"]))
    names = [entry.name.removeprefix("ladder/rungs/") for entry in entries]
    assert names == ["kn-2", "kn-10", "brown", "attention", "encoder-decoder"]
    assert [entry.languages for entry in entries[2:]] == [None, ("de", "en"), ("de", "en")]
    assert entries[-1].describe().examples == ["der hund bellt .", "der vogel singt ."]
    write_examples(entries[-1].paths[0], ["die katze"])
    assert entries[-1].describe().examples == ["die katze"] and entries[0].describe().examples == []
    (entries[-1].paths[0] / "examples.json").write_text("[")
    assert len(entries[-1].describe().examples) == 2, "a damaged file is ignored"


def test_notes_may_change_between_runs_of_a_ladder(tmp_path: Path) -> None:
    check_settings(tmp_path, {"seed": 1})
    check_settings(tmp_path, {"seed": 1}, {"languages": ["de", "en"]})
    check_settings(tmp_path, {"seed": 1}, {"languages": ["de", "fr"]})
    with pytest.raises(DataError, match="another ladder"):
        check_settings(tmp_path, {"seed": 2}, {"languages": ["de", "fr"]})
    assert CorpusFiles(src="a.txt", tgt="b.en").language_notes == {}
    (tmp_path / "news.de-en.tsv").write_text("eins\tone\n")
    assert CorpusFiles(pairs=str(tmp_path / "news.de-en.tsv")).language_notes == {"languages": ["de", "en"]}
    memory = str(Path(__file__).parent / "formats" / "memory.tmx")
    assert CorpusFiles(pairs=memory, src_lang="eng").language_notes == {"languages": ["en", "de"]}


def test_two_directories_with_the_same_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        train_ngram_model().save(tmp_path / name / "run" / f"of-{name}")
    with pytest.raises(DataError, match="two directories have the name run"):
        ModelRegistry.from_arguments([str(tmp_path / "a" / "run"), str(tmp_path / "b" / "run")])


def test_model_is_loaded_again_after_further_training(tmp_path: Path) -> None:
    body = {"model": "de-en", "texts": ["Der Hund schläft."]}

    def log_prob(client: TestClient) -> float:
        [text] = client.post("/v1/translate", json=body).json()["texts"]
        return float(text["sentences"][0]["translations"][0]["log_prob"])

    translators()["one"].save(tmp_path / "de-en")
    with create_client(ModelRegistry.from_arguments([str(tmp_path / "de-en")])) as client:
        first = log_prob(client)
        assert log_prob(client) == first
        translators()["two"].save(tmp_path / "de-en", replace=True)
        assert log_prob(client) != first


def test_files_of_two_versions_are_never_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is replaced while it is loaded: it is loaded again."""
    translators()["one"].save(tmp_path / "de-en")
    [entry] = ModelRegistry.from_arguments([str(tmp_path / "de-en")])
    loads = list[Path]()

    def load_and_replace(path: Path, precision: str | None = None) -> object:
        loads.append(path)
        model = load(path)
        if len(loads) == 1:
            translators()["two"].save(tmp_path / "de-en", replace=True)
        return model

    monkeypatch.setattr("dragoman.serve.registry.load_translator", load_and_replace)
    loaded, expected = entry.load_translator().state_dict(), translators()["two"].state_dict()
    assert len(loads) == 2 and all((loaded[name] == expected[name]).all() for name in expected)
    assert entry.load_translator() is entry.model and len(loads) == 2


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.tsv", "config.yaml"])
def test_file_truncated_in_place_is_noticed_before_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Also if it is mapped into memory, as tables above a size are. It is not read again until it changes."""
    monkeypatch.setattr("dragoman.io.storage.MAX_COPIED_SIZE", 0)
    train_ngram_model(2).save(tmp_path / "kn")
    contents, loads = (tmp_path / "kn" / name).read_bytes(), list[Path]()
    with create_client(ModelRegistry.from_arguments([str(tmp_path / "kn")])) as client:

        def score() -> Response:
            return client.post("/v1/score", json={"models": ["kn"], "text": "the dog"})

        assert score().status_code == 200
        monkeypatch.setattr(
            "dragoman.serve.registry.load_language_model", lambda path, precision: loads.append(path) or load(path)
        )
        with (tmp_path / "kn" / name).open("r+b") as file:
            file.truncate(len(contents) // 3)
        for _ in range(3):
            assert_error(score(), 404, "kn cannot be loaded: kn")
        assert len(loads) == 1
        (tmp_path / "kn" / name).write_bytes(contents)
        assert score().status_code == 200 and len(loads) == 2
        (tmp_path / "kn" / "metrics.jsonl").write_text('{"update": 1}\n')
        assert score().status_code == 200 and len(loads) == 2, "training goes on; the model is the same"


def test_hidden_temporary_and_linked_directories_are_not_models(tmp_path: Path) -> None:
    for name in ("kn", ".hidden", ".kn.tmp-abcd1234", ".kn.old-abcd1234", "sub/.hidden", ".sub/kn"):
        train_ngram_model().save(tmp_path / "run" / name)
    (tmp_path / "run" / ".kn.lock").touch()
    train_ngram_model().save(tmp_path / "elsewhere")
    (tmp_path / "run" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "run" / "cycle").symlink_to(tmp_path / "run")
    registry = ModelRegistry.from_arguments([str(tmp_path / "run")])
    registry.refresh()
    assert list(registry.entries) == ["run/kn"]
    with pytest.raises(DataError, match="incomplete copy"):
        ModelRegistry.from_arguments([str(tmp_path / "run" / ".kn.tmp-abcd1234")])
    [entry] = ModelRegistry.from_arguments([f"kn={tmp_path / 'run' / 'link'}"])
    assert entry.load_language_model(), "a link that the user names is followed"


def test_languages_of_translators_added_later_are_detected(tmp_path: Path) -> None:
    train_ngram_model().save(tmp_path / "kn")
    with create_client(ModelRegistry.from_arguments([f"de-en={tmp_path}"])) as client:
        assert client.post("/detect", data={"q": "der hund"}).json() == []
        translators()["one"].save(tmp_path / "later")
        assert client.get("/v1/models").status_code == 200
        assert client.post("/detect", data={"q": "der hund schläft"}).json()[0]["language"] == "de"


@pytest.mark.parametrize(
    ("name", "languages"),
    [("de-en", ("de", "en")), ("models.ja-en.2", ("ja", "en")), ("lab-one", None), ("kn-5", None), ("abde-en", None)],
)
def test_languages_from_name(name: str, languages: tuple[str, str] | None) -> None:
    assert languages_from_name(name) == languages


def test_unknown_words_are_replaced_by_a_lexicon(registry: ModelRegistry) -> None:
    """The lexicon may be of either direction; one of other texts is not used."""
    german, english = [*GERMAN, *["zebra"] * 3], [*ENGLISH, *["stripes"] * 3]
    matching = ParallelCorpus(Corpus.from_sentences(german), Corpus.from_sentences(english))
    reversed_pairs = ParallelCorpus(matching.target, matching.source)
    other = ParallelCorpus(Corpus.from_sentences(["x y"] * 3), Corpus.from_sentences(["z z"] * 3))
    body = {"model": "de-en", "texts": ["Zebra Zebra."], "prefix": ["the", "<unk>"]}
    for pairs, word, rule in (
        (matching, "stripes", "lexicon"),
        (reversed_pairs, "stripes", "lexicon"),
        (other, "zebra", "copied"),
    ):
        with create_client(registry, aligner=Aligner.train(pairs, "ibm1")) as client:
            [text] = client.post("/v1/translate", json=body).json()["texts"]
        replaced = text["sentences"][0]["translations"][0]["replaced"][0]
        assert (replaced["word"], replaced["rule"]) == (word, rule)
