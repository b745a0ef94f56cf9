"""The floor of lab text: examples by hand, standard errors, all models above it, and the command."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import KEYS, in_a_process
from dragoman import Corpus, DataError, NgramModel, Vocab
from dragoman.data.vocabulary import SPECIALS
from dragoman.evaluation.floor import (
    Floor,
    FloorGap,
    LanguageModelEvaluation,
    PointEstimate,
    TrueLogProbs,
    evaluate_language_model,
)
from dragoman.evaluation.lab_reference import lab_true_log_probs
from dragoman.evaluation.likelihood import TokenScores, likelihood, token_scores
from dragoman.lab.corpus_files import GRAMMAR_VERSION, MANIFEST_FILE, MANIFEST_KIND, lab_language
from dragoman.lab.lab import german_english_lab
from dragoman.report.language_models import floor_table
from zoo import MODELS, MODELS_OF_PIECES, Text

LANGUAGES = ("de", "en")
FEW = 12  # words of a vocabulary so small that models come close to the floor

# -- by hand --------------------------------------------------------------------------------------------------------

TWO = TrueLogProbs(np.log([1 / 4, 1 / 8]), np.log([1 / 8, 1 / 64]), np.array([1, 2]), np.array([3, 6]))


def test_perplexities_of_the_true_distribution() -> None:
    """Three bits for 2 tokens and six bits for 3; by class two for 2 and three for 3."""
    floor = Floor.from_true_log_probs(TWO)
    assert floor.perplexity.value == pytest.approx(2 ** (9 / 5))
    assert floor.perplexity_words.value == pytest.approx(2 ** (9 / 3))
    assert floor.perplexity_class.value == pytest.approx(2 ** (5 / 5))
    assert floor.bits_per_character.value == pytest.approx(9 / 9)


def test_standard_errors_of_the_true_distribution() -> None:
    """With r = 9/5 bits per token, 3 - 2r = -0.6 and 6 - 3r = 0.6 are left: the root of 2 * (0.36 + 0.36), over 5."""
    floor = Floor.from_true_log_probs(TWO)
    bits = math.sqrt(2 * 0.72) / 5
    assert floor.perplexity.standard_error == pytest.approx(bits * math.log(2) * 2 ** (9 / 5))
    assert floor.perplexity_class.standard_error == pytest.approx(0, abs=1e-7)  # one bit per token in both sentences
    assert floor.bits_per_character.standard_error == pytest.approx(0, abs=1e-7)  # one bit a character, both times
    assert floor.as_dict()["perplexity_error"] == floor.perplexity.standard_error


def make_scores(true_log_probs: TrueLogProbs, more: float = 0.0, identity: float = 0.0) -> TokenScores:
    """Scores of a model: the true log-probabilities by class, minus `more` nats per token, and `identity` for each `x`."""
    corpus = Corpus.from_sentences(
        ["x" + " a" * int(words - 1) for words in true_log_probs.words], Vocab([*SPECIALS, "a"])
    )
    log_probs = np.repeat(true_log_probs.log_probs_class / true_log_probs.tokens - more, true_log_probs.tokens)
    return TokenScores(corpus, log_probs, np.full(len(true_log_probs.words), identity))


def test_the_gap_of_an_example() -> None:
    gap = FloorGap.from_token_scores(TWO, make_scores(TWO, more=0.5, identity=-2.0))
    assert gap.by_class == pytest.approx((0.5, 0), abs=1e-7)
    # With spellings, the model's loss is 2 nats per sentence; the true losses are log 2 and log 8.
    left = 5 * 0.5 + 4 - math.log(16)
    assert gap.full.value == pytest.approx(left / 5)
    assert gap.full.standard_error > 0


def test_the_true_distribution_is_at_the_floor() -> None:
    spelled_free = replace(TWO, log_probs=TWO.log_probs_class)
    assert not FloorGap.from_token_scores(spelled_free, make_scores(TWO)).is_below()
    assert not FloorGap.from_token_scores(spelled_free, make_scores(TWO, more=0.01)).is_below()
    assert FloorGap.from_token_scores(spelled_free, make_scores(TWO, more=-0.01)).is_below()


def test_the_gap_of_an_impossible_text_is_infinite() -> None:
    gap = FloorGap.from_token_scores(TWO, make_scores(TWO, identity=-math.inf))
    assert gap.full.value == math.inf and math.isnan(gap.full.standard_error)
    assert math.isfinite(gap.by_class.value) and not gap.is_below()
    assert gap.as_dict() == {"nats": None, "nats_error": None, "nats_class": pytest.approx(0), "nats_class_error": 0}


@pytest.mark.parametrize("name", ["log_probs", "log_probs_class"])
def test_impossible_sentences_are_rejected(name: str) -> None:
    wrong = np.log([0.5, 1.0])
    wrong[1] = -math.inf
    with pytest.raises(DataError, match=r"^test\.en:2: has probability 0"):
        replace(TWO, source="test.en", **{name: wrong})


def test_the_error_of_a_single_sentence_is_undefined() -> None:
    assert math.isnan(PointEstimate.of_ratio(np.ones(1), np.ones(1, int)).standard_error)
    assert math.isnan(PointEstimate.of_ratio(np.zeros(2), np.zeros(2, int)).value)
    assert (
        Floor.from_true_log_probs(TrueLogProbs(*np.zeros((2, 1)), np.ones(1, int), np.ones(1, int))).as_dict()[
            "perplexity_error"
        ]
        is None
    )


# -- standard errors ------------------------------------------------------------------------------------------------


def simulated(source: np.random.Generator, *shape: int) -> tuple[Any, Any]:
    """Losses and counts of sentences: the loss grows with the length and varies."""
    counts = source.poisson(9, shape) + 1
    return 2.5 * counts + source.normal(0, 2, shape) * np.sqrt(counts) + source.exponential(4, shape), counts


def test_the_error_agrees_with_the_bootstrap() -> None:
    source = np.random.default_rng(1)
    losses, counts = simulated(source, 300)
    ratio = PointEstimate.of_ratio(losses, counts)
    taken = source.integers(0, 300, (4000, 300))
    ratios = losses[taken].sum(axis=1) / counts[taken].sum(axis=1)
    assert ratio.standard_error == pytest.approx(ratios.std(), rel=0.08)
    assert ratio.exponential.standard_error == pytest.approx(np.exp(ratios).std(), rel=0.08)
    assert ratio.scaled(2.0).standard_error == pytest.approx(ratios.std() / 2, rel=0.08)


def test_the_error_agrees_with_the_spread_over_many_texts() -> None:
    losses, counts = simulated(np.random.default_rng(2), 4000, 100)
    estimates = [PointEstimate.of_ratio(*text) for text in zip(losses, counts, strict=True)]
    assert np.mean([error for _, error in estimates]) == pytest.approx(
        np.std([value for value, _ in estimates]), rel=0.05
    )


# -- the lab --------------------------------------------------------------------------------------------------------


class Drawn:
    """Training and test text of the lab, with the true log-probabilities of the test text."""

    def __init__(self, language: str, sentences: int, vocab: Vocab | None = None) -> None:
        self.language = language
        corpus = Corpus.from_sentences(german_english_lab().sentences(language, 1500, 1, "train"), vocab, min_count=2)
        self.text = Text(corpus, {word: f"-{word[-2:].upper()}" for word in corpus.vocab.tokens[len(SPECIALS) :]})
        self.test = Corpus.from_sentences(german_english_lab().sentences(language, sentences, 1, "test"), corpus.vocab)
        self.true_log_probs = lab_true_log_probs(language, self.test)


@cache
def drawn(language: str) -> Drawn:
    """With the words that occur twice or more."""
    return Drawn(language, 500)


@cache
def drawn_with_few_words(language: str) -> Drawn:
    """With the most frequent words only: nearly everything is `<unk>`, and there is little to learn.

    Fewer sentences, because the true probabilities are then sums over many sentences.
    """
    frequent = drawn(language).text.corpus.vocab
    order = np.argsort(-frequent.counts, kind="stable")
    words = [frequent.tokens[number] for number in order if frequent.tokens[number] not in SPECIALS]
    return Drawn(language, 100, Vocab([*SPECIALS, *words[:FEW]]))


@pytest.mark.parametrize(("sample", "language"), [(drawn, "en"), (drawn_with_few_words, "de")])
@pytest.mark.parametrize("name", [name for name in MODELS if name not in MODELS_OF_PIECES])
def test_no_model_is_below_the_floor(name: str, sample: Callable[[str], Drawn], language: str) -> None:
    text = sample(language)
    result = evaluate_language_model(MODELS[name](text.text), text.test, text.true_log_probs)
    assert result.gap is not None and not result.gap.is_below(), result.as_dict()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("sample", [drawn, drawn_with_few_words])
def test_a_model_trained_on_the_test_text_is_below_the_floor(sample: Callable[[str], Drawn], language: str) -> None:
    text = sample(language)
    cheat = NgramModel.train(text.test, order=5, smoothing="witten-bell")
    result = evaluate_language_model(cheat, text.test, text.true_log_probs)
    assert result.gap is not None and result.gap.is_below()


@pytest.mark.parametrize("language", LANGUAGES)
def test_small_errors_are_detected_with_a_small_vocabulary(language: str) -> None:
    """A seventh of a nat too much for every token, and even a model of so little text would be below."""
    text = drawn_with_few_words(language)
    result = token_scores(MODELS["kneser-ney, order 5"](text.text), text.test)
    gap = FloorGap.from_token_scores(text.true_log_probs, result)
    assert 0 < gap.by_class.value < 0.14 and not gap.is_below()
    assert FloorGap.from_token_scores(
        text.true_log_probs, replace(result, log_probs=result.log_probs + 0.15)
    ).is_below()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_floor_is_the_entropy_of_the_grammar(language: str) -> None:
    corpus = Corpus.from_sentences(german_english_lab().sentences(language, 2000, 2, "test"))
    true_log_probs = lab_true_log_probs(language, corpus)
    entropy = german_english_lab().entropy
    exact = entropy.english if language == "en" else entropy.german
    mean, error = PointEstimate.of_ratio(-true_log_probs.log_probs, np.ones(len(corpus), int))
    assert abs(mean - exact) < 4 * error < 0.1 * exact


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_floor_counts_the_same_tokens_as_the_likelihood(language: str) -> None:
    """The floor is computed for the same tokens, words and characters; it is lower if words are replaced by <unk>."""
    text = drawn(language)
    result = likelihood(MODELS["witten-bell, order 1"](text.text), text.test)
    true_log_probs = text.true_log_probs
    assert (true_log_probs.tokens.sum(), true_log_probs.words.sum()) == (result.tokens, result.words)
    assert true_log_probs.characters.sum() == result.characters
    more = true_log_probs.log_probs_class - true_log_probs.log_probs
    has_unknown = np.diff(np.searchsorted(text.test.unknown_positions, text.test.offsets)) > 0
    assert has_unknown.any() and more[has_unknown].max() > 1 and more.min() > -1e-9
    assert np.abs(more[~has_unknown]).max() < 1e-9


def test_sentence_log_probs_are_those_of_the_model() -> None:
    text = drawn("en")
    model = MODELS["unknown words spelled out"](text.text)
    scores = token_scores(model, text.test)
    assert scores.sentence_log_probs == pytest.approx(model.sentence_log_probs(text.test))
    assert scores.sentence_log_probs.sum() == pytest.approx(likelihood(model, text.test).log_likelihood_total)
    assert scores.sentence_class_log_probs.sum() == pytest.approx(likelihood(model, text.test).log_likelihood)
    nothing = token_scores(model, Corpus.from_sentences([], model.vocab))
    assert len(nothing.sentence_log_probs) == len(nothing.sentence_class_log_probs) == 0


def test_the_table_lists_models_with_a_floor() -> None:
    text = drawn("en")
    model = MODELS["with a closed vocabulary"](text.text)
    without = LanguageModelEvaluation(likelihood(model, text.test))
    lines = floor_table(
        [("none", without), ("closed", evaluate_language_model(model, text.test, text.true_log_probs))]
    ).splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["closed"]
    assert lines[2].split()[-1] == "infinite" and lines[2].count("±") == 3


# -- the command line -----------------------------------------------------------------------------------------------


def shown(language: str) -> Corpus:
    """The sentences in the lab's directory."""
    return drawn(language).test.select(np.arange(100))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the lab with two English models in it."""
    place = tmp_path_factory.mktemp("lab")
    for language in LANGUAGES:
        (place / f"test.{language}").write_text("\n".join(shown(language).sentences_as_text()) + "\n")
    (place / "test.en.gz").write_bytes(gzip.compress((place / "test.en").read_bytes()))
    (place / "copy.txt").write_bytes((place / "test.en").read_bytes())
    (place / MANIFEST_FILE).write_text(f"kind: {MANIFEST_KIND}\ngrammar: {GRAMMAR_VERSION}\n")
    for name in ("kneser-ney, order 2", "witten-bell, order 1", "with a closed vocabulary"):
        MODELS[name](drawn("en").text).save(place / name.split()[-1])
    NgramModel.train(shown("en"), order=5, smoothing="witten-bell").save(place / "cheat")
    NgramModel.train(drawn_with_few_words("en").text.corpus, order=1, smoothing="witten-bell").save(place / "few")
    return place


def test_the_floor_is_shown_with_a_model(good, lab):
    out = good("evaluate", lab / "2", "--text", lab / "test.en")
    floor = Floor.from_true_log_probs(lab_true_log_probs("en", shown("en")))
    for name in ("perplexity", "perplexity_words", "perplexity_class"):
        value, error = getattr(floor, name)
        [line] = [line for line in out.lines if line.startswith(name.replace("_", " ") + "  ")]
        assert f"{value:,.2f} ± {error:.2f}" in line
    assert f"{floor.bits_per_character.value:.4f} ± " in out.out
    assert "above the floor: " in out.out and out.err == ""
    assert all("±" not in line for line in out.lines if line.startswith("perplexity known"))


def test_the_floor_in_json(good, lab):
    for text in ("test.en", "test.en.gz"):
        report = json.loads(good("evaluate", lab / "2", "--text", lab / text, "--json").out)
        assert report.keys() >= KEYS
        model = MODELS["kneser-ney, order 2"](drawn("en").text)
        expected = evaluate_language_model(model, shown("en"), lab_true_log_probs("en", shown("en")))
        assert report["floor"] == pytest.approx(expected.floor.as_dict())
        assert report["above_floor"] == pytest.approx(expected.gap.as_dict())
    names = ("perplexity", "perplexity_words", "perplexity_class", "bits_per_character")
    assert set(report["floor"]) == {key for name in names for key in (name, f"{name}_error")}
    assert set(report["above_floor"]) == {"nats", "nats_error", "nats_class", "nats_class_error"}


def test_the_floor_depends_on_the_vocabulary(good, lab):
    models = [lab / name for name in ("2", "few", "vocabulary")]
    reports = json.loads(good("evaluate", *models, "--text", lab / "test.en", "--json").out)["models"]
    two, few, closed = (report["floor"] for report in reports)
    assert two == closed and few["perplexity_class"] < two["perplexity_class"] / 2
    assert few["perplexity"] == pytest.approx(two["perplexity"])
    assert reports[2]["above_floor"]["nats"] is None and reports[2]["above_floor"]["nats_class"] > 0
    lines = good("evaluate", *models, "--text", lab / "test.en").lines
    beside = [line for line in lines if "±" in line and line.startswith(str(lab))]
    assert [line.split()[0] for line in beside] == list(map(str, models))
    for line, report in zip(beside, reports, strict=True):
        assert (
            f"{report['floor']['perplexity_class']:.2f} ±" in line and f"{report['floor']['perplexity']:.2f} ±" in line
        )


def test_a_warning_about_a_model_below_the_floor(good, lab):
    messages = good("evaluate", lab / "2", lab / "cheat", "--text", lab / "test.en").err
    assert (
        messages == f"warning: {lab / 'cheat'} is significantly better than the floor: was it trained on this text?\n"
    )


@pytest.mark.parametrize("models", [["2"], ["2", "1", "few"]])
def test_edited_text_has_no_floor(good, lab, tmp_path, models):
    lines = (lab / "test.en").read_text().splitlines()
    (tmp_path / "test.en").write_text("\n".join([*lines[:3], "of the of the", *lines[3:]]) + "\n")
    (tmp_path / MANIFEST_FILE).write_text(f"kind: {MANIFEST_KIND}\ngrammar: {GRAMMAR_VERSION}\n")
    places = [lab / model for model in models]
    outcome = good("evaluate", *places, "--text", tmp_path / "test.en", "--json")
    assert "floor" not in outcome.out
    [warning] = [line for line in outcome.err.splitlines() if "wrong column" not in line]
    assert warning.startswith(f"warning: no floor: {tmp_path / 'test.en'}:4: has probability 0")
    outcome = good("evaluate", *places, "--text", tmp_path / "test.en")
    assert "floor" not in outcome.out


def test_without_the_floor(good, lab):
    models = lab / "2", lab / "1"
    plain = good("evaluate", *models, "--text", lab / "copy.txt")
    outcome = good("evaluate", *models, "--text", lab / "test.en", "--no-floor")
    assert plain.out == outcome.out and "floor" not in plain.out and plain.err == outcome.err == ""
    single = good("evaluate", lab / "2", "--text", lab / "copy.txt").out
    assert single == good("evaluate", lab / "2", "--text", lab / "test.en", "--no-floor").out


ASK = """
import sys
from dragoman.cli.main import main
model, *texts = sys.argv[1:]
for text in texts:
    assert main(["evaluate", model, "--text", text]) == 0
    print("imported:", "dragoman.lab.lab" in sys.modules)
"""


def test_the_grammar_is_loaded_for_lab_text_only(lab):
    done = in_a_process(ASK, lab / "2", lab / "copy.txt", lab / "test.en", capture_output=True)
    imported = [line for line in done.stdout.splitlines() if line.startswith("imported: ")]
    assert imported == ["imported: False", "imported: True"], done.stderr


def test_lab_text_is_recognised(lab, tmp_path):
    assert [lab_language(lab / name) for name in ("test.de", "test.en", "test.en.gz")] == ["de", "en", "en"]
    assert lab_language(lab / "copy.txt") is lab_language("-") is None
    with pytest.warns(UserWarning, match=r"test\.en instead"):
        assert lab_language(lab / "test.raw.en") is None
    assert lab_language(tmp_path / "test.en") is None
    for settings in ("kind: something else\n", "[", "- kind\n", "\xff"):
        (tmp_path / MANIFEST_FILE).write_text(settings, encoding="latin-1")
        assert lab_language(tmp_path / "test.en") is None
