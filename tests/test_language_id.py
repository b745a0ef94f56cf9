"""Letter models and language identification."""

import numpy as np
import pytest

from doctor_texts import pairs
from dragoman.data.corpus import Corpus
from dragoman.data.language_id import LanguageIdentifier, LetterModel, LetterText


@pytest.fixture(scope="module")
def identifier() -> LanguageIdentifier:
    vocabularies = (Corpus.from_sentences(side).vocab for side in pairs())
    return LanguageIdentifier.from_vocabularies({name: [vocab] for name, vocab in zip("st", vocabularies, strict=True)})


def test_only_letters_are_kept() -> None:
    text = LetterText.from_lines(["Ab, 2 c!", "", "- -", "x"])
    lines = ["".join(map(chr, text.codes[a:b])) for a, b in zip(text.offsets, text.offsets[1:], strict=False)]
    assert lines == [" ab c ", " ", " ", " x "]
    assert [len(line.split()) for line in lines] == np.diff(text.words().offsets).tolist()
    selected = text.select(np.array([3, 0]))
    assert "".join(map(chr, selected.codes)) == " x  ab c " and selected.sizes.tolist() == [3, 6]


def test_probabilities_of_the_next_letter_sum_to_one() -> None:
    lines = list(pairs()[0][:100])
    model = LetterModel.train(LetterText.from_lines(lines))
    letters = sorted(set("".join(lines)) | {" "})
    assert model.alphabet == len(letters)
    prefix = "bag"
    before = LetterText(np.array([32, *map(ord, prefix)], np.uint32), np.array([0, 1 + len(prefix)]))
    log_probs = []
    for letter in [*letters, "я"]:  # any letter outside the alphabet has the remaining probability
        codes = np.array([32, *map(ord, prefix + letter)], np.uint32)
        text = LetterText(codes, np.array([0, len(codes)]))
        log_probs.append(float(model.log_probs(text)[0] - model.log_probs(before)[0]))
    assert sum(np.exp(log_probs)) == pytest.approx(1.0)


def test_a_line_is_removed_from_the_counts() -> None:
    lines = list(pairs()[0][:50])
    text = LetterText.from_lines(lines)
    left_out = LetterModel.train(text).log_probs(text, leave_one_out=True)
    others = LetterModel.train(LetterText.from_lines(lines[1:]))
    assert LetterModel.train(text).log_probs(text)[0] > left_out[0]
    assert left_out[0] == pytest.approx(float(others.log_probs(LetterText.from_lines(lines[:1]))[0]), rel=0.05)


def test_languages_are_identified(identifier: LanguageIdentifier) -> None:
    for number, language in enumerate("st"):
        guesses = [identifier.identify(" ".join(line.split()[:2]).upper()) for line in pairs(50, 2)[number]]
        assert [guess[0].language for guess in guesses] == [language] * 50
        assert all(sum(confidence for _, confidence in guess) == pytest.approx(100, abs=0.2) for guess in guesses)


def test_no_language_is_guessed_without_letters_or_languages(identifier: LanguageIdentifier) -> None:
    assert identifier.identify("12 , 3 !\n") == [] == LanguageIdentifier({}).identify("bagudo")
