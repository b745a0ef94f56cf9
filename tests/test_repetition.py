"""Laws of blocked repetition, over scorers with and without a source, for search and sampling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Corpus, NgramModel
from dragoman.combine.ensemble import Ensemble
from dragoman.core.errors import DataError
from dragoman.core.scorer import fold
from dragoman.data.batches import Batch
from dragoman.data.repetitions import USUAL_REPETITIONS, Repetitions, repetitions, usual_repetitions
from dragoman.data.tokenizer import Tokenizer
from dragoman.models.language_model import LanguageModel
from dragoman.models.translation import Translation
from dragoman.search.beam import beam_search
from dragoman.search.repetition import (
    MAX_DIGITS,
    MAX_UNKNOWN,
    RepetitionBlockingScorer,
    RepetitionLimits,
    block_repetition,
    count_letters,
)
from dragoman.search.sampling import sample
from dragoman.search.scorers import GraphScorer, PrefixConstrainedScorer
from toy_translator import ToyTranslator, source_of
from zoo import TRANSLATORS, read_by, translator

MAX_COPIES = USUAL_REPETITIONS.words
TALK = ["go on and on and on and on", "on and on and on", "well well well well well then", "go on", "x x x x x x x x"]


def blocked(scorer: Any) -> RepetitionBlockingScorer:
    return RepetitionBlockingScorer(scorer, count_letters(scorer.vocab.tokens, are_words=True))


def copies(ids: tuple[int, ...]) -> int:
    """The most copies of a segment in a row, by definition."""
    most = 1
    for start in range(len(ids)):
        for period in range(1, len(ids) - start + 1):
            segment, count = ids[start : start + period], 1
            while ids[start + count * period : start + (count + 1) * period] == segment:
                count += 1
            most = max(most, count)
    return most


@pytest.fixture(scope="module")
def talker() -> LanguageModel:
    """A language model that repeats itself; its words are long enough to be words."""
    corpus = Corpus.from_sentences([line.replace("x", "xylophone") for line in TALK] * 3)
    return NgramModel.train(corpus, order=3, smoothing="witten-bell")


def test_no_hypothesis_repeats_a_segment_too_often(talker: LanguageModel) -> None:
    options: dict[str, Any] = {"beam_size": 8, "n_best": 8, "max_words": 20}
    [plain], [clean] = (beam_search(scorer, Batch.empty(1), **options) for scorer in (talker, blocked(talker)))
    assert max(copies(hypothesis.ids) for hypothesis in plain) > MAX_COPIES
    assert all(copies(hypothesis.ids) <= MAX_COPIES for hypothesis in clean)
    samples = sample(blocked(talker), 200, seed=1, max_words=20)
    assert max(copies(hypothesis.ids) for hypothesis in samples) == MAX_COPIES
    assert max(copies(hypothesis.ids) for hypothesis in sample(talker, 200, seed=1, max_words=20)) > MAX_COPIES


def test_scores_remain_those_of_the_model(talker: LanguageModel) -> None:
    [hypotheses] = beam_search(blocked(talker), Batch.empty(1), beam_size=8, n_best=8, max_words=14)
    for hypothesis in [*hypotheses, *sample(blocked(talker), 20, seed=2, max_words=20)]:
        steps = fold(talker, Batch.from_sentences([hypothesis.ids]))[0][0]
        expected = steps.sum() if hypothesis.finished else steps[:-1].sum()
        assert hypothesis.log_prob == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize("beam_size", [1, 3, 50])
def test_searches_without_loops_are_unchanged(beam_size: int) -> None:
    """Equal to the bit, with attention: the toy translator writes up to five words, too few for a loop of long ones."""
    toy, batch = ToyTranslator("a b c"), Batch.empty(7, source_of())
    options: dict[str, Any] = {"beam_size": beam_size, "n_best": min(3, beam_size), "max_words": 5}
    letters = torch.where(count_letters(toy.vocab.tokens, are_words=True) > 0, 1, 0)  # 5 copies have 5 letters
    plain = beam_search(toy, batch, **options)
    clean = beam_search(RepetitionBlockingScorer(toy, letters), batch, **options)
    assert plain == clean
    for first, second in zip(chain(*plain), chain(*clean), strict=True):
        assert torch.equal(first.attention, second.attention)


def test_an_exhaustive_search_loses_only_sentences_with_loops() -> None:
    """And the others keep their scores and their order."""
    toy, batch = ToyTranslator("go on"), Batch.empty(1, source_of(["x y"]))
    options: dict[str, Any] = {"beam_size": 2000, "n_best": 2000, "max_words": 7}
    [plain], [clean] = (beam_search(scorer, batch, **options) for scorer in (toy, blocked(toy)))
    assert clean == [hypothesis for hypothesis in plain if copies(hypothesis.ids) <= MAX_COPIES]
    assert len(clean) < len(plain)


def test_a_source_that_repeats_allows_as_many_copies() -> None:
    toy = ToyTranslator("go on", expected_length=6.0)
    for source, most in (("x x x x x", 5), ("x x x x", 4), ("x y z", 3)):
        batch = Batch.empty(1, source_of([source]))
        [hypotheses] = beam_search(blocked(toy), batch, beam_size=2000, n_best=2000, max_words=7)
        assert max(copies(hypothesis.ids) for hypothesis in hypotheses) == most


def test_lines_of_the_training_text_that_repeat_allow_as_many_copies() -> None:
    toy = ToyTranslator("go on", expected_length=6.0)
    scorer = RepetitionBlockingScorer(toy, count_letters(toy.vocab.tokens, are_words=True), Repetitions(5, 3))
    [hypotheses] = beam_search(scorer, Batch.empty(1, source_of(["x y"])), beam_size=2000, n_best=2000, max_words=7)
    assert max(copies(hypothesis.ids) for hypothesis in hypotheses) == 5


def test_usual_repetitions_are_saved_with_the_tokenizer() -> None:
    lines = ["NOUN VERB"] * 95 + ["ADJ ADJ ADJ ADJ ADJ 1000000"] * 4 + ["no " * 50]
    tokenizer = Tokenizer.train("word", lines)
    assert tokenizer.repetitions == usual_repetitions(lines) == (5, 6), "a single line does not count"
    config = yaml.safe_load(yaml.safe_dump(tokenizer.config()))
    assert Tokenizer.from_saved(config, tokenizer.vocab, {}).repetitions == (5, 6)
    assert "repetitions" not in Tokenizer.train("word", lines[:95]).config()
    for damaged in ([5, 6], {"words": 5}, {"words": 5, "marks": "6"}, {"words": 0, "marks": 3}):
        with pytest.raises(DataError, match="must be numbers from 1"):
            Tokenizer.from_saved({**config, "repetitions": damaged}, tokenizer.vocab, {})


def test_short_letters_and_digits_are_not_loops() -> None:
    letters = count_letters(["a", "00", "▁no"], are_words=False)
    assert letters.tolist() == [1, 0, 3]
    for word, count in (("a", 5), ("0", MAX_COPIES)):
        graph = {" ".join([word] * n): {word: 0.99, "</s>": 0.01} for n in range(20)}
        endless = GraphScorer(word, graph)
        scorer = RepetitionBlockingScorer(endless, count_letters(endless.vocab.tokens, are_words=False))
        [[hypothesis]] = beam_search(scorer, Batch.empty(1), beam_size=1)
        assert len(hypothesis.ids) == count


@pytest.mark.parametrize(("source", "most"), [("x", MAX_DIGITS), ("1" * 20, 20), ("x " * 15, 15)])
def test_numbers_do_not_run_away(source: str, most: int) -> None:
    """The digits of pi repeat nothing, but a word of 50 digits is no number of the source."""
    digits = "31415926535897932384626433832795028841971693993751"
    batch = Batch.empty(1, source_of([source]))
    graph = {" ".join(digits[:n]): {digits[n]: 0.9, "</s>": 0.1} for n in range(50)}
    endless = GraphScorer(" ".join("0123456789"), graph)
    for scorer, length in (
        (endless, 50),
        (block_repetition(endless, RepetitionLimits.of(endless.vocab.tokens, are_words=False)), most),
    ):
        [[hypothesis]] = beam_search(scorer, batch, beam_size=1, max_words=60)
        assert len(hypothesis.ids) == length
    free = block_repetition(endless, RepetitionLimits.of(endless.vocab.tokens, are_words=False, limits_digits=False))
    [[hypothesis]] = beam_search(free, batch, beam_size=1, max_words=60)
    assert len(hypothesis.ids) == 50, "in a text about numbers"


def test_several_numbers_are_not_one() -> None:
    numbers = ["▁123456", "789", ".", "5", "▁1234567", "8901234"]
    graph = {" ".join(numbers[:n]): {numbers[n]: 0.9, "</s>": 0.1} for n in range(len(numbers))}
    endless = GraphScorer(" ".join(numbers), graph)
    [[hypothesis]] = beam_search(
        block_repetition(endless, RepetitionLimits.of(endless.vocab.tokens, are_words=False)),
        Batch.empty(1),
        beam_size=1,
    )
    assert endless.text(hypothesis.ids) == " ".join(numbers[:-1]), "the second one would have 14 digits"


def test_the_only_possible_token_is_never_blocked() -> None:
    graph = {" ".join(["go"] * n): {"go": 1.0} for n in range(5)}
    [[hypothesis]] = beam_search(blocked(GraphScorer("go", graph)), Batch.empty(1), beam_size=2)
    assert len(hypothesis.ids) == 5
    endless = GraphScorer("go", {" ".join(["go"] * n): {"go": 0.9, "</s>": 0.1} for n in range(9)})
    prefixed = blocked(PrefixConstrainedScorer(endless, [endless.vocab.id("go")] * 4))
    [[hypothesis]] = beam_search(prefixed, Batch.empty(1), beam_size=2)
    assert len(hypothesis.ids) == 4, "a given prefix may repeat"


def runs(items: Sequence[str]) -> list[tuple[Sequence[str], int]]:
    """All segments and how often they are repeated from where they start, by definition."""
    result = []
    for start in range(len(items)):
        for period in range(1, len(items) - start + 1):
            segment, count = items[start : start + period], 1
            while items[start + count * period : start + (count + 1) * period] == segment:
                count += 1
            result.append((segment, count))
    return result


@given(st.text("abB12., -", max_size=14))
def test_repetitions_follow_their_definition(text: str) -> None:
    letters = "".join(filter(str.isalnum, text.lower()))
    words = re.findall(r"\w+", text.lower())
    with_letters = [count for segment, count in runs(letters) if any(map(str.isalpha, segment))]
    numbers = [count for segment, count in runs(words) if not any(map(str.isalpha, "".join(segment)))]
    marks = [
        count
        for segment, count in runs(f"{text} ")
        if segment.strip() and not any(map(str.isalpha, segment))  # type: ignore[attr-defined]
    ]
    assert repetitions(text) == (max([*with_letters, *numbers, 1]), max([*marks, 1]))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Nein, nein, nein, nein!", (4, 1)),
        ("1 1 1 1", (4, 4)),
        ("10000", (1, 4)),
        ("000000000000", (1, 12)),
        ("------------", (1, 12)),
        ("- - - -", (1, 4)),
        ("कि कि कि कि", (4, 1)),
        ("はははは", (4, 1)),
    ],
)
def test_repetitions_of_words_and_marks(source: str, expected: tuple[int, int]) -> None:
    assert repetitions(source) == expected


def test_digits_are_repeated_as_often_as_in_the_source() -> None:
    toy = ToyTranslator("0 -", expected_length=6.0)
    for source, most in (("x 00000", 5), ("x -- 0", 3), ("x y z", 3)):
        batch = Batch.empty(1, source_of([source]))
        [hypotheses] = beam_search(blocked(toy), batch, beam_size=2000, n_best=2000, max_words=7)
        assert max(copies(hypothesis.ids) for hypothesis in hypotheses) == most


@pytest.mark.parametrize("name", TRANSLATORS)
def test_every_translator_stops_repeating(name: str) -> None:
    """Also ensembles and shortlists; sampling is exact unless blocking is asked for."""
    model = translator(name)
    lines = [read_by(model, sentence) for sentence in ("the dog sees a cat .", "yes")]
    letters = count_letters(model.vocab.tokens, are_words=model.target.segmenter.kind == "word")

    def has_loop(translation: Translation) -> bool:
        ids = tuple(model.vocab.ids(translation.tokens).tolist())
        words = tuple(index for index in ids if letters[index] > 1)  # the zoo's punctuation may repeat
        return words == ids and copies(ids) > MAX_COPIES

    assert not any(map(has_loop, model.translate(lines)))
    assert not any(
        has_loop(best) for drawn in model.sample(lines, 20, seed=1, allow_repetition=False) for best in drawn
    )
    assert model.sample(lines, 3, seed=1) == model.sample(lines, 3, seed=1, allow_repetition=True)


def test_an_ensemble_can_be_blocked() -> None:
    members = [translator("bidirectional, perceptron")] * 2
    line = read_by(members[0], "the dog sees a cat .")
    [one], [two] = members[0].translate(line), Ensemble(members).translate(line)
    assert one.text == two.text


def test_unknown_words_may_follow_each_other() -> None:
    """Each `<unk>` stands for another word, as in a list of names."""
    graph = {" ".join(["<unk>"] * n): {"<unk>": 0.99, "</s>": 0.01} for n in range(20)}
    [[hypothesis]] = beam_search(blocked(GraphScorer("x", graph)), Batch.empty(1), beam_size=1)
    assert len(hypothesis.ids) == MAX_UNKNOWN
    assert count_letters(["<unk>", "the"], are_words=True).tolist() == [0, 4]
