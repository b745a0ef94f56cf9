"""Language models of raw text: their tokens, perplexities, next words, samples and files."""

from __future__ import annotations

import json
import math
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import dragoman
from dragoman import Corpus, DataError, Mixture, NgramModel, evaluate
from dragoman.data.batches import Batch
from dragoman.data.segmenters import CharSegmenter, WordSegmenter, train_segmenter
from dragoman.data.text_parts import common_parts
from dragoman.data.vocabulary import UNK
from dragoman.evaluation.surprisal import surprisals
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.spelling import SpellingModel
from dragoman.search.next_words import describe
from model_files import remove_digests
from small_translators import translators

NAMES, VERBS = ("Anna", "Ben", "the dog", "a cat"), ("sees", "hears", "wakes")
RAW = [f"{a} {verb} {b}, then {b} sleeps." for a, verb, b in product(NAMES, VERBS, NAMES) if a != b]
SYLLABLES = ["".join(letters) for letters in product("bdg", "aeo", "ln")]
LARGE = [f"{a}{b} {b}{a}, {b}." for a, b in product(SYLLABLES, SYLLABLES)] * 10  # more pieces than letters
TOKENISED = ["the dog sees a cat .", "a cat sees the dog ."] * 3
HELD_OUT = ["Anna wakes the cat, then Zoë sleeps.", "", "A dog."]
UNITS = ("word", "subword:60", "unigram:33", "char")
JAPANESE = ["彼は犬を見ました。", "彼女は猫を見ました。", "犬は彼女を見ませんでした。"] * 5


def train(lines: list[str], units: str, **settings: Any) -> NgramModel:
    with warnings.catch_warnings(action="ignore"):
        return NgramModel.train(Corpus.from_sentences(lines, units=units), **{"order": 3, **settings})


@pytest.fixture(scope="module")
def models() -> dict[str, NgramModel]:
    return {units: train(RAW, units) for units in UNITS}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, models: dict[str, NgramModel]) -> Path:
    directory = tmp_path_factory.mktemp("raw")
    (directory / "raw.txt").write_text("".join(f"{line}\n" for line in LARGE))
    (directory / "held-out.txt").write_text("".join(f"{line}\n" for line in HELD_OUT))
    for units, model in models.items():
        model.save(directory / units.partition(":")[0])
    return directory


# -- tokens ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "kind"),
    [(LARGE, "subword"), (RAW, "char"), (TOKENISED, "word"), (["no marks here"], "word"), (JAPANESE, "char")],
)
def test_raw_text_is_split_and_tokenised_text_is_not(lines: list[str], kind: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        assert Corpus.from_sentences(lines, units="auto").vocab.segmenter.kind == kind


@pytest.mark.parametrize("spec", UNITS)
def test_texts_of_tokens_make_the_line(spec: str) -> None:
    lines = [*RAW[:3], "a \ue580\ue580 ▁b \ue581", "ﬁ Zoë", ""]
    segmenter = train_segmenter(spec, RAW)
    for line in lines:
        tokens = segmenter.segment(line)
        texts = segmenter.token_texts(tokens)
        assert len(texts) == len(tokens) and "".join(texts).strip(" ") == segmenter.join(tokens) == line


def test_a_corpus_gives_its_lines_back(models: dict[str, NgramModel]) -> None:
    for model in models.values():
        assert Corpus.from_sentences(HELD_OUT, model.vocab).lines() == HELD_OUT


# -- perplexity --------------------------------------------------------------------------------------------------------


def test_perplexities_divide_by_the_same_lengths_for_all_units(models: dict[str, NgramModel]) -> None:
    characters = sum(len(line) + 1 for line in HELD_OUT)
    for model in models.values():
        result, log_prob = evaluate(model, HELD_OUT), sum(model.score(HELD_OUT))
        assert (result.words, result.sentences, result.characters) == (9, 3, characters)
        assert result.perplexity == pytest.approx(math.exp(-log_prob / 12))
        assert result.perplexity_words == pytest.approx(math.exp(-log_prob / 9))
        assert result.perplexity_characters == pytest.approx(math.exp(-log_prob / characters))
        assert result.bits_per_character == pytest.approx(math.log2(result.perplexity_characters))
        tokens = Corpus.from_sentences(HELD_OUT, model.vocab).num_tokens
        assert result.tokens == tokens and result.perplexity_tokens == pytest.approx(math.exp(-log_prob / tokens))


def test_the_surprisal_of_a_word_is_the_sum_over_its_tokens(models: dict[str, NgramModel]) -> None:
    table = surprisals(models, HELD_OUT)
    assert table.words == (*HELD_OUT[0].split(), "</s>", "</s>", "A", "dog.", "</s>")
    for column, model in enumerate(models.values()):
        assert table.bits[:, column].sum() == pytest.approx(-sum(model.score(HELD_OUT)) / math.log(2))
        words = [word for sentence in model.score_words(HELD_OUT) for word in sentence]
        assert [word.word for word in words] == list(table.words)
        scores = [-(word.log_prob + word.log_prob_unknown) / math.log(2) for word in words]
        np.testing.assert_allclose(scores, table.bits[:, column])
    subwords = models["subword:60"]
    [first, *_] = subwords.score_corpus_tokens(Corpus.from_sentences(["Anna sees"], subwords.vocab))
    assert [word.word for word in first] == [*subwords.vocab.segmenter.segment("Anna sees"), "</s>"]


def test_text_without_spaces_is_scored_by_the_parts_that_all_models_have() -> None:
    subwords, characters = train(JAPANESE, "subword:40"), train(JAPANESE, "char")
    line = JAPANESE[0]
    corpora = [Corpus.from_sentences([line], model.vocab) for model in (subwords, characters)]
    assert common_parts(corpora[1:]).words == (*line, "</s>")
    parts = common_parts(corpora)
    assert "".join(parts.words[:-1]) == line
    assert [word.lstrip("▁") for word in subwords.vocab.segmenter.segment(line) if word != "▁"] == list(
        parts.words[:-1]
    )
    with pytest.raises(DataError, match="different texts"):
        common_parts([corpora[0], Corpus.from_sentences([JAPANESE[1]], characters.vocab)])


# -- next words and samples --------------------------------------------------------------------------------------------


def word_probability(model: LanguageModel, prefix: str, text: str) -> float:
    """P(the characters of a text, and then no letter), by the definition."""
    state = model.start(Batch.empty(1))
    for token in Corpus.from_sentences([prefix], model.vocab).ids.tolist():
        state = model.advance(state, torch.tensor([token]))
    log_prob = 0.0
    for token in model.vocab.ids(CharSegmenter().segment(text)).tolist():
        log_prob += float(model.log_probs(state)[0, token])
        state = model.advance(state, torch.tensor([token]))
    letters = [index for index, token in enumerate(model.vocab.tokens[3:], 3) if token.isalnum()]
    ends = text[-1].isalnum()
    return math.exp(log_prob) * (1 - float(model.log_probs(state)[0, letters].exp().sum()) if ends else 1.0)


def test_next_words_of_characters_have_the_probabilities_of_their_characters(models: dict[str, NgramModel]) -> None:
    model = models["char"]
    for prefix in ("Ben sleeps.", "Anna", "Anna se"):
        words = model.continuations(prefix, 6)
        for text, prob, tokens in words:
            if text not in (" </s>", " <unk>"):
                assert prob == pytest.approx(word_probability(model, prefix, text), rel=1e-6)
                assert "".join(tokens).replace("▁", " ") == text
        assert [word.prob for word in words] == sorted((word.prob for word in words), reverse=True)
    assert {word for word, _ in model.next_words("Anna se", 2)} == {"…es", "…eps"}
    assert model.next_words("then Ben sleeps", 1)[0].word == "."


def test_next_words_of_subwords_are_words(models: dict[str, NgramModel]) -> None:
    model = models["subword:60"]
    assert {word.word for word in model.next_words("Anna", 4)} == {*VERBS, ","}
    assert model.next_words(model.vocab.segmenter.segment("Anna"), 4) == model.next_words("Anna", 4)
    exact = model.next_tokens("Anna", None)
    assert len(exact) == len(model.vocab) and math.fsum(prob for _, prob in exact) == pytest.approx(1.0, abs=1e-5)
    words = models["word"]
    assert words.next_words("Anna") == words.next_tokens("Anna")
    assert [word.text for word in words.continuations("Anna", 2)] == [
        f" {word}" for word, _ in words.next_words("Anna", 2)
    ]


def test_parts_of_japanese_are_next_words_by_themselves() -> None:
    model = train(JAPANESE, "subword:40")
    assert all(word not in ("", "…") for word, _ in model.next_words("彼は", 5))
    assert describe("犬", "彼は") == "犬"


def test_samples_are_text_without_unknown_words(models: dict[str, NgramModel]) -> None:
    for units, model in models.items():
        samples = model.sample(20, seed=1)
        assert samples == model.sample(20, seed=1)
        assert not any("▁" in sample or "<unk>" in sample for sample in samples)
        assert all(sample.startswith("Anna") for sample in model.sample(5, seed=2, prefix="Anna")), units
        assert all(len(sample.split()) <= 3 for sample in model.sample(5, seed=2, max_words=3))


def test_unknown_words_are_spelled_or_sampled_again() -> None:
    corpus = Corpus.from_sentences(
        ["a bird", "a fish", "a deer", "a toad", "a bird"] * 3 + ["a newt", "a hare"], min_count=2
    )
    uniform = NgramModel.train(corpus, order=2, smoothing="witten-bell")
    shown = uniform.sample(200, seed=1, show_unknown=True)
    again = uniform.sample(200, seed=1)
    assert any("<unk>" in sample for sample in shown) and not any("<unk>" in sample for sample in again)
    pairs = [(first, second) for first, second in zip(shown, again, strict=True) if "<unk>" not in first]
    assert pairs and all(first == second for first, second in pairs)  # other samples stay the same
    spelled = NgramModel.train(corpus, order=2, smoothing="witten-bell", unknown=SpellingModel.train(corpus, order=3))
    new = {word for sample in spelled.sample(200, seed=1) for word in sample.split()} - set(corpus.vocab.tokens)
    assert new and spelled.sample(200, seed=1) == spelled.sample(200, seed=1)
    assert all(math.isfinite(log_prob) for log_prob in spelled.unknown.log_probs(new))  # none is a known word
    greedy = uniform.sample(1, prefix="a newt", top_k=1)
    assert "<unk>" not in greedy[0]


# -- files and commands ------------------------------------------------------------------------------------------------


def test_the_segmenter_is_saved_with_the_model(place: Path, models: dict[str, NgramModel]) -> None:
    for units, model in models.items():
        loaded = dragoman.load(place / units.partition(":")[0])
        assert loaded.vocab.segmenter == model.vocab.segmenter
        assert loaded.score(HELD_OUT) == model.score(HELD_OUT)
    assert "units" not in yaml.safe_load((place / "word" / "config.yaml").read_text())


def test_a_missing_segmenter_is_reported(models: dict[str, NgramModel], tmp_path: Path) -> None:
    models["subword:60"].save(tmp_path / "broken")
    remove_digests(tmp_path / "broken")
    (tmp_path / "broken" / "sentencepiece.model").unlink()
    with pytest.raises(DataError, match=r"broken: units subword:60: sentencepiece.model is missing"):
        dragoman.load(tmp_path / "broken")


def test_train_chooses_units_by_the_text(good: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenised.txt").write_text("".join(f"{line}\n" for line in TOKENISED))
    smoothing = ("--order", 2, "--smoothing", "witten-bell")
    for name, units in (("auto", ()), ("word", ("--units", "word"))):
        good("train", "ngram", "--text", tmp_path / "tokenised.txt", *smoothing, *units, "-o", tmp_path / name)
    for file in (tmp_path / "auto").iterdir():
        assert file.read_bytes() == (tmp_path / "word" / file.name).read_bytes()
    trained = good("train", "ngram", "--text", place / "raw.txt", *smoothing, "-o", tmp_path / "raw")
    assert "--units subword:" in trained.err and "--units word" in trained.err
    assert dragoman.load(tmp_path / "raw").vocab.segmenter.kind == "subword"
    cache = good("train", "cache", "--text", place / "raw.txt", "--vocab", tmp_path / "raw", "-o", tmp_path / "cache")
    assert "known subwords" in cache.err
    good("mix", tmp_path / "raw", tmp_path / "cache", "--dev-text", place / "held-out.txt", "-o", tmp_path / "mix")
    assert sum(dragoman.load(tmp_path / "mix").score(HELD_OUT)) < 0


def test_models_of_different_units_are_compared_but_not_mixed(good: Any, run: Any, place: Path) -> None:
    names = ("word", "subword", "char")
    directories = [place / name for name in names]
    evaluated = good("evaluate", *directories, "--text", place / "held-out.txt", "--json").out
    reports = json.loads(evaluated)["models"]
    assert [report["units"] for report in reports] == ["word", "subword:60", "char"]
    assert len({(report["words"], report["characters"]) for report in reports}) == 1
    table = good("evaluate", *directories, "--text", place / "held-out.txt").out
    assert "units" in table.splitlines()[0] and "characters" in table.splitlines()[0]
    columns = good("score", *directories, "--words", "--text", place / "held-out.txt").lines
    assert columns[1].split("\t")[0] == "Anna" and len(columns[1].split("\t")) == 4
    mixed = run("mix", *directories[:2], "--equal-weights", "-o", place / "mixed")
    assert mixed.code == 2 and "different units (word and subword:60)" in mixed.err
    with pytest.raises(DataError, match="different units"):
        Mixture.uniform([dragoman.load(directory) for directory in directories[1:]])


def test_commands_print_text_or_tokens(good: Any, run: Any, place: Path) -> None:
    subwords = place / "subword"
    assert good("next", subwords, "Anna", "-k", 4).lines[0].split("\t")[0] in (*VERBS, ",")
    tokens = [line.split("\t")[0] for line in good("next", subwords, "Anna", "-k", 4, "--tokens").lines]
    assert set(tokens) <= set(dragoman.load(subwords).vocab.tokens)
    words = good("score", subwords, "--words", stdin="Anna sees Ben.").lines
    assert [line.split("\t")[0] for line in words] == ["Anna", "sees", "Ben.", "</s>"]
    tokens = good("score", subwords, "--tokens", stdin="Anna sees Ben.").lines
    pieces = good("units", subwords, stdin="Anna sees Ben.").out.split()
    assert [line.split("\t")[0] for line in tokens] == [*pieces, "</s>"]
    assert good("units", subwords, "--join", stdin=" ".join(pieces)).lines == ["Anna sees Ben."]
    assert run("score", subwords, "--words", "--tokens", stdin="a").code == 2
    assert run("units", subwords, "--source", stdin="a").code == 2
    assert "<unk>" not in good("sample", place / "word", "-n", 20).out


def test_a_language_model_of_the_tokens_of_a_translator(good: Any, tmp_path: Path) -> None:
    translator = translators()["pieces"]
    translator.save(tmp_path / "pieces")
    plain = "the dog sleeps .\nthe cat sleeps .\n" * 3
    (tmp_path / "plain.txt").write_text(plain)
    (tmp_path / "split.txt").write_text(good("units", tmp_path / "pieces", stdin=plain).out)
    for name in ("plain", "split"):
        arguments = ("--vocab", tmp_path / "pieces", "--order", 2, "--smoothing", "witten-bell")
        good("train", "ngram", "--text", tmp_path / f"{name}.txt", *arguments, "-o", tmp_path / name)
    first, second = dragoman.load(tmp_path / "plain"), dragoman.load(tmp_path / "split")
    assert first.vocab == translator.vocab and first.score(["the dog ."]) == second.score(["the dog ."])


def test_words_of_a_vocabulary_are_the_default() -> None:
    assert Corpus.from_sentences(RAW).vocab.segmenter == WordSegmenter()
    assert Corpus.from_sentences(["a b"]).vocab.id("b") != UNK
