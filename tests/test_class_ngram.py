"""Class-based n-gram models."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import dragoman
from dragoman import Corpus, DataError, NgramModel, Vocab
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.evaluation.likelihood import folded_log_probs
from dragoman.ngram.class_model import ClassNgramModel, read_classes
from dragoman.ngram.spelling import create_unknown_word_model
from model_files import remove_digests

LINES = ["fly to rome now", "drive to paris", "fly to oslo", "", "drive home", "<unk> to rome", "rome is far"]
CITIES = {"rome": "CITY", "paris": "CITY", "oslo": "CITY", "fly": "GO", "drive": "GO", "elsewhere": "CITY"}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.from_sentences(LINES)


@pytest.fixture(scope="module")
def model(corpus: Corpus) -> ClassNgramModel:
    return ClassNgramModel.train(corpus, CITIES, order=3, smoothing="witten-bell")


def _sums(model: ClassNgramModel, prefixes: list[str]) -> list[float]:
    return [math.fsum(word.prob for word in model.next_words(prefix, k=None)) for prefix in prefixes]


def test_probabilities_worked_by_hand() -> None:
    corpus = Corpus.from_sentences(["a x", "a y", "b x"])
    model = ClassNgramModel.train(corpus, {"a": "C", "b": "C"}, order=2, smoothing="maximum-likelihood")
    # P(C | <s>) P(a | C) P(x | C) P(</s> | x) = 1 * 2/3 * 2/3 * 1, and b y is possible though never seen
    a_x, b_y = model.score(["a x", "b y"])
    assert a_x == pytest.approx(math.log(4 / 9), abs=1e-6)
    assert b_y == pytest.approx(math.log(1 / 3 * 1 / 3), abs=1e-6)


def test_distributions_sum_to_one(model: ClassNgramModel) -> None:
    sums = _sums(model, ["", "fly", "fly to", "drive to rome", "unheard <unk>", "home home home"])
    assert sums == pytest.approx([1.0] * len(sums), abs=1e-6)


def test_batched_equals_fold(model: ClassNgramModel, corpus: Corpus) -> None:
    text = Corpus.from_sentences(["drive to rome", "", "ride to <unk> rome rome"], corpus.vocab)
    np.testing.assert_allclose(model.token_log_probs(text), folded_log_probs(model, text), atol=1e-9)


def test_words_of_a_class_share_their_contexts(model: ClassNgramModel) -> None:
    drive, fly = model.score(["drive to oslo", "fly to oslo"])
    assert drive == pytest.approx(fly)  # as frequent as each other within GO


def test_without_classes_it_is_the_plain_model(corpus: Corpus) -> None:
    classes = ClassNgramModel.train(corpus, {}, order=3, smoothing="witten-bell")
    plain = NgramModel.train(corpus, order=3, smoothing="witten-bell")
    np.testing.assert_allclose(classes.token_log_probs(corpus), plain.token_log_probs(corpus), atol=1e-6)


def test_a_class_named_like_a_word_is_not_that_word(corpus: Corpus) -> None:
    renamed = {word: {"CITY": "home", "GO": "</s>"}[name] for word, name in CITIES.items()}
    same = ClassNgramModel.train(corpus, renamed, order=3, smoothing="witten-bell")
    plain = ClassNgramModel.train(corpus, CITIES, order=3, smoothing="witten-bell")
    np.testing.assert_allclose(same.token_log_probs(corpus), plain.token_log_probs(corpus))
    tricky = Corpus.from_sentences(["class:X b", "b class:X"])
    sums = _sums(ClassNgramModel.train(tricky, {"b": "X"}, order=2, smoothing="witten-bell"), ["", "b"])
    assert sums == pytest.approx([1.0, 1.0], abs=1e-6)


def test_special_symbols_are_classes_of_their_own(corpus: Corpus, model: ClassNgramModel) -> None:
    class_model = ClassNgramModel.train(
        corpus, {**CITIES, "<unk>": "CITY", "</s>": "CITY", "<s>": "GO"}, order=3, smoothing="witten-bell"
    )
    np.testing.assert_array_equal(class_model.token_log_probs(corpus), model.token_log_probs(corpus))
    assert {word.word: word.prob for word in class_model.next_words("fly", k=None)}["<s>"] == 0.0


def test_unseen_words_of_the_vocabulary_have_positive_probability() -> None:
    vocab = Vocab(["<s>", "</s>", "<unk>", "rome", "paris", "ulm", "never"])
    corpus = Corpus.from_sentences(["rome paris", "rome"], vocab)
    model = ClassNgramModel.train(
        corpus, {"rome": "CITY", "paris": "CITY", "ulm": "CITY"}, order=2, smoothing="witten-bell"
    )
    assert np.exp(model.log_emission[3:]) == pytest.approx([3 / 6, 2 / 6, 1 / 6, 1.0])
    assert _sums(model, ["", "rome", "ulm"]) == pytest.approx([1.0] * 3, abs=1e-6)
    assert all(word.prob > 0 for word in model.next_words("ulm", k=None) if word.word != "<s>")


def test_coefficients_are_fitted_on_heldout_text_in_classes(corpus: Corpus) -> None:
    heldout = Corpus.from_sentences(["drive to rome", "fly home"], corpus.vocab)
    fitted = ClassNgramModel.train(corpus, CITIES, heldout=heldout, order=2, smoothing="interpolated-fitted")
    fixed = ClassNgramModel.train(corpus, CITIES, order=2, smoothing="interpolated")
    assert fitted.token_log_probs(heldout).sum() > fixed.token_log_probs(heldout).sum()


@pytest.mark.parametrize("choice", ["none", "uniform", "characters"])
def test_saved_and_loaded_with_every_unknown_word_model(choice: str, corpus: Corpus, tmp_path: Path) -> None:
    model = ClassNgramModel.train(
        corpus,
        CITIES,
        unknown=create_unknown_word_model(choice, corpus),
        order=3,
        smoothing="witten-bell",
        quantise=True,
    )
    model.save(tmp_path / "m")
    again = dragoman.load(tmp_path / "m")
    assert isinstance(again, ClassNgramModel)
    lines = ["fly to berlin", "drive home", ""]
    assert again.score(lines) == model.score(lines)
    assert again.sample(3, seed=5) == model.sample(3, seed=5)


def test_closed_vocabulary_leaves_one_share_for_unknown_words(corpus: Corpus) -> None:
    model = ClassNgramModel.train(
        corpus, {}, unknown=ClosedVocabulary(corpus.vocab.num_known), order=1, smoothing="interpolated"
    )
    plain = NgramModel.train(
        corpus, unknown=ClosedVocabulary(corpus.vocab.num_known), order=1, smoothing="interpolated"
    )
    np.testing.assert_allclose(model.token_log_probs(corpus), plain.token_log_probs(corpus), atol=1e-6)


def test_mismatched_classes_raise_an_error(model: ClassNgramModel, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    with (tmp_path / "m" / "vocab.tsv").open("a") as file:
        file.write("intruder\t1\n")
    remove_digests(tmp_path / "m")
    with pytest.raises(DataError, match="do not match"):
        dragoman.load(tmp_path / "m")


# -- files of classes ------------------------------------------------------------------------------------------------


def test_classes_from_a_file(tmp_path: Path) -> None:
    pairs, brown = tmp_path / "pairs.txt", tmp_path / "paths"
    pairs.write_text("rome\tCITY\r\nfly\tGO\n")
    brown.write_text("0010\trome\t17\n0010\tparis\t3\n111\tfly\t20\n")
    assert read_classes(pairs) == {"rome": "CITY", "fly": "GO"}
    assert read_classes(brown) == {"rome": "0010", "paris": "0010", "fly": "111"}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("rome\tCITY\nrome\tGO\n", 2, "'rome' already has a class on line 1"),
        ("rome\tCITY\nfly\n", 2, "expected `word TAB class`"),
        ("rome\tCITY\n\n", 2, "expected `word TAB class`"),
        ("rome\t\n", 1, "expected `word TAB class`"),
        ("01\trome\t2\nfly\tGO\n", 2, "expected `bits TAB word TAB count`"),
        ("a b c d\n", 1, "expected `word TAB class`"),
    ],
)
def test_invalid_class_files_raise_an_error_with_the_line(text: str, line: int, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "classes.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=f"classes.txt:{line}: {problem}"):
        read_classes(path)


def test_a_class_name_is_one_word(corpus: Corpus) -> None:
    with pytest.raises(DataError, match="one word"):
        ClassNgramModel.train(corpus, {"rome": "big city"}, order=2)
