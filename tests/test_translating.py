"""What people ask of translators: lines in, lines out, whatever the units, the encoder and the length of a line."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman import DataError
from dragoman.combine.ensemble import Ensemble
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.words import split_words
from dragoman.models.translation import SENTENCE_END_MARKS, Translation
from dragoman.models.translator import Translator
from zoo import TRANSLATORS, model, read_by, translator

RAW = ["The dog, which sees.", "A cat hears!", "Does it?", "The dog sees a cat.", "Yes, yes."] * 4
CAPITALS = [line.upper() for line in RAW]
SENTENCES = ["the dog sees a cat .", "", "the old unicorn hears the bird !", "yes"]

every_translator = pytest.mark.parametrize("name", TRANSLATORS)
every_kind = pytest.mark.parametrize("kind", ["word", "char", "subword:60"])


def lines_for(found: Any) -> list[str]:
    return [read_by(found, sentence) for sentence in SENTENCES]


@cache
def of_units(kind: str) -> Translator:
    """An untrained translator between units of one kind: what it says is chance, but it says it in those units."""
    source, target = Tokenizer.train(kind, CAPITALS, min_count=1), Tokenizer.train(kind, RAW, min_count=1)
    pairs = ParallelCorpus(source.encode(CAPITALS), target.encode(RAW))
    return Translator.create(pairs, source, target, embedding=4, hidden=6, precision="float64", embedding_reach=2.0)


def assert_alike(some: list[Translation], others: list[Translation]) -> None:
    """The same translations; numbers computed in other company may differ in the last digits."""
    assert [told.tokens for told in some] == [told.tokens for told in others]
    assert [told.text for told in some] == [told.text for told in others]
    assert [told.source_tokens for told in some] == [told.source_tokens for told in others]
    assert [told.log_prob for told in some] == pytest.approx([told.log_prob for told in others], abs=1e-9)


# -- blank lines, one line, many ---------------------------------------------------------------------------------------


@every_translator
def test_blank_in_blank_out(name: str) -> None:
    found = translator(name)
    one, two = lines_for(found)[0], lines_for(found)[2]
    told = found.translate(["", one, " ", " \t ", two, ""])
    assert [line.text == "" and line.words == () for line in (told[0], told[2], told[3], told[5])] == [True] * 4
    assert_alike([told[1], told[4]], found.translate([one, two]))
    assert told[0].log_prob == 0.0
    assert told[0].attention is None


def test_nothing_at_all_is_nothing() -> None:
    found = translator("bidirectional, perceptron")
    assert found.translate([]) == []
    assert found.score([], []) == []
    assert [line.text for line in found.translate(["", ""])] == ["", ""]


def test_a_string_is_one_line() -> None:
    found = translator("bidirectional, perceptron")
    assert found.translate("DOG THE") == found.translate(["DOG THE"])
    assert found.n_best("DOG THE", 3) == found.n_best(["DOG THE"], 3)
    assert found.translate(iter(["DOG THE"])) == found.translate(["DOG THE"])


# -- n-best lists and scores -------------------------------------------------------------------------------------------


@every_translator
def test_translations_begin_as_they_are_told_to(name: str) -> None:
    """The second best word is put first; what follows is the best that follows it, as probable as it is told."""
    found = translator(name)
    line = lines_for(found)[0]
    begin = found.given(line).next_words("", 3)[1].word
    if begin in ("</s>", "<unk>"):
        begin = found.given(line).next_words("", 3)[2].word
    told = found.n_best(line, 3, 4, prefix=[begin], length="none")[0]
    assert all(one.words[0] == begin for one in told)
    assert [one.log_prob for one in told] == sorted((one.log_prob for one in told), reverse=True)
    assert_rescored(found, line, told)


def assert_rescored(found: Any, line: str, told: list[Translation]) -> None:
    finished = [one for one in told if one.finished]
    again = found.score([line] * len(finished), [one.text for one in finished])
    assert [one.log_prob for one in finished] == pytest.approx([one.log_prob for one in again], abs=1e-6)


def test_a_prefix_may_be_longer_than_any_translation_would_be() -> None:
    found = of_units("word")
    units = found.target.segmenter.segment("The dog") * 60
    told = found.translate(CAPITALS[0], prefix=units)[0]
    assert list(told.tokens[: len(units)]) == units and len(units) > 2 * len(told.source_tokens) + 20
    with pytest.raises(DataError, match="no unit 'zebra' to begin with"):
        found.translate(CAPITALS[0], prefix="The zebra")


@every_kind
def test_a_prefix_is_a_text_or_units(kind: str) -> None:
    found = of_units(kind)
    units = found.target.segmenter.segment("The dog")
    as_text, as_units = (found.translate(CAPITALS[0], prefix=prefix)[0] for prefix in ("The dog", units))
    assert as_text == as_units and list(as_text.tokens[: len(units)]) == units
    with pytest.raises(DataError, match="too long to be translated in one piece"):
        found.translate(["", CAPITALS[0]], prefix="The", most_units=3)


@every_translator
@pytest.mark.parametrize("length", ["none", "norm", "prior", "penalty:0.5"])
def test_the_n_best_are_sorted_distinct_and_as_probable_as_told(name: str, length: str) -> None:
    found = translator(name)
    lines = lines_for(found)
    lists = found.n_best(lines, 4, length=length, max_words=8)
    assert [len(best) for best in lists[1:2]] == [1]
    assert all(1 <= len(best) <= 4 for best in lists), "fewer where fewer were finished"
    for line, best in zip(lines, lists, strict=True):
        scores = [told.score for told in best]
        assert scores == sorted(scores, reverse=True)
        assert len({told.words for told in best}) == len(best)
        finished = [told for told in best if told.finished and line]
        again = found.score([line] * len(finished), [told.text for told in finished])
        for told, rescored in zip(finished, again, strict=True):
            assert rescored.words == told.words
            assert rescored.log_prob == pytest.approx(told.log_prob, abs=1e-9)
    assert_alike([best[0] for best in lists], found.translate(lines, length=length, max_words=8))


def test_a_score_is_what_the_length_handling_says() -> None:
    found = translator("bidirectional, perceptron")
    line = lines_for(found)[0]
    (plain,) = found.n_best(line, 3, length="none")
    assert [told.score for told in plain] == [told.log_prob for told in plain]
    (paid,) = found.n_best(line, 3, length="penalty:0.5")
    assert [told.score for told in paid] == pytest.approx([told.log_prob + 0.5 * len(told.words) for told in paid])
    (prior,) = found.n_best(line, 3, length="prior")
    for told in prior:
        expected = found.length_prior.log_probs(torch.tensor([len(told.words)]), torch.tensor([len(told.source)]))
        assert told.score == pytest.approx(told.log_prob + float(expected))


@pytest.mark.parametrize("length", ["fair", "norm:2", "penalty:much", "", "prior:1"])
def test_a_length_handling_that_there_is_not(length: str) -> None:
    with pytest.raises(DataError, match="length handling"):
        translator("bidirectional, perceptron").translate("DOG", length=length)


def test_more_lines_than_are_scored_at_once_are_scored_alike() -> None:
    found = translator("bidirectional, perceptron")
    sources = [" ".join(["DOG"] * (number % 5)) for number in range(70)]
    targets = [" ".join(["cat"] * (number % 7)) for number in range(70)]
    together = found.score(sources, targets)
    for number in (0, 1, 63, 64, 69):
        (alone,) = found.score(sources[number : number + 1], targets[number : number + 1])
        assert together[number].log_prob == pytest.approx(alone.log_prob, abs=1e-10)
        np.testing.assert_allclose(together[number].attention, alone.attention, atol=1e-12)


def test_a_translation_for_each_line() -> None:
    with pytest.raises(DataError, match="2 lines but 1 translations"):
        translator("bidirectional, perceptron").score(["A", "B"], ["a"])


@every_translator
def test_samples_are_drawn_by_the_seed_and_are_as_probable_as_told(name: str) -> None:
    found = translator(name)
    lines = lines_for(found)
    drawn = found.sample(lines, 3, seed=5, max_words=6)
    assert [len(some) for some in drawn] == [3] * len(lines)
    assert drawn == found.sample(lines, 3, seed=5, max_words=6)
    assert drawn != found.sample(lines, 3, seed=6, max_words=6)
    for line, some in zip(lines, drawn, strict=True):
        for told in some:
            if not line:
                assert told.text == "", "blank in, blank out"
            elif told.finished:
                assert found.score([line], [told.text])[0].log_prob == pytest.approx(told.log_prob, abs=1e-9)


# -- attention ---------------------------------------------------------------------------------------------------------


@every_translator
def test_attention_is_of_the_words_told(name: str) -> None:
    found = translator(name)
    lines = [line for line in lines_for(found) if line]
    for told in [*found.translate(lines, max_words=5), *found.score(lines, ["a cat", "", "the dog"])]:
        if told.attention is None:
            assert (
                name in ("forward, Elman, copied", "reverse, two LSTMs, copied") or "average" in name or "LSTM" in name
            )
            continue
        columns = len(told.source) if found.source.format == "tree" else len(told.source) + 1
        assert told.attention.shape == (len(told.tokens_with_end), columns)
        np.testing.assert_allclose(told.attention.sum(axis=1), 1.0)


@every_kind
def test_attention_between_words_whatever_the_units(kind: str) -> None:
    """Source units of a word are added up, target units averaged; the same by a loop."""
    found = of_units(kind)
    sources, targets = ["THE DOG, YES.", "A", "DOES IT SEE A ZEBRA?"], ["The dog, yes.", "It? Yes", "A"]
    for line, reference, told in zip(sources, targets, found.force_decode(sources, targets), strict=True):
        attended = found.word_attention(told)
        assert attended is not None and told.attention is not None
        assert attended.source == tuple(line.split())
        assert attended.target == tuple(reference.split())
        rows = [*found.target.segmenter.word_indices(told.tokens), len(attended.target)]
        columns = [*found.source.segmenter.word_indices(told.source_tokens), len(attended.source)]
        expected = np.zeros((len(attended.target) + 1, len(attended.source) + 1))
        for row, alpha in zip(rows, told.attention, strict=True):
            for column, weight in zip(columns, alpha, strict=True):
                expected[row, column] += weight / rows.count(row)
        np.testing.assert_allclose(attended.matrix, expected)
        np.testing.assert_allclose(attended.matrix.sum(axis=1), 1.0)


@every_kind
def test_attention_between_words_of_what_was_found(kind: str) -> None:
    """Also where what an untrained model says is odd, or cut off."""
    found = of_units(kind)
    for some in found.sample(["THE DOG", "YES, YES.", "A"], 20, max_words=6):
        for told in some:
            attended = found.word_attention(told)
            assert attended is not None
            end = 1 if told.finished else 0
            assert attended.matrix.shape[1] == len(attended.source) + 1
            assert attended.matrix.shape[0] == len(attended.target) + end
            np.testing.assert_allclose(attended.matrix.sum(axis=1), 1.0)


@every_kind
def test_a_space_that_does_not_break_is_part_of_a_word(kind: str) -> None:
    found = of_units(kind)
    (told,) = found.force_decode(["THE\u00a0DOG SEES\u3000A"], ["The\u00a0dog sees"])
    attended = found.word_attention(told)
    assert attended is not None
    assert attended.source == ("THE\u00a0DOG", "SEES\u3000A")
    assert len(attended.target) == 2


@pytest.mark.parametrize("kind", ["char", "subword:60"])
def test_a_translation_of_spaces_alone_has_no_word_to_look_from(kind: str) -> None:
    found = of_units(kind)
    (whole,) = found.force_decode(["A CAT"], ["It"])
    assert whole.attention is not None
    blank = Translation("", ("▁",), -1.0, -1.0, whole.source_tokens, attention=whole.attention[:2])
    attended = found.word_attention(blank)
    assert attended is not None
    np.testing.assert_allclose(attended.matrix.sum(axis=1), 1.0)


def test_trees_are_attended_by_their_nodes() -> None:
    found = translator("tree-LSTM, perceptron")
    (told,) = found.translate("(S (X CAT A) SEES)", max_words=4)
    assert told.source == ("CAT", "A", "SEES", "CAT A", "CAT A SEES")
    assert told.attention is not None
    assert told.attention.shape[1] == 5
    assert found.word_attention(told) is None


def test_plain_text_for_a_tree_says_what_to_do() -> None:
    with pytest.raises(DataError, match="needs one bracketed tree a line"):
        translator("tree-LSTM, perceptron").translate("CAT A SEES")


# -- lines that are too long -------------------------------------------------------------------------------------------

letters = st.characters(exclude_characters="\n\r\t", exclude_categories=["Cs"])
line = st.lists(st.text(st.sampled_from("AB.?"), min_size=1, max_size=6), min_size=1, max_size=12).map(" ".join)


@given(st.lists(st.text(letters, min_size=1, max_size=5), min_size=1, max_size=15).map(" ".join), st.integers(1, 8))
def test_words_are_cut_into_runs_of_words(line: str, most: int) -> None:
    found = of_units("word")
    pieces = found._cut(line, most)
    assert [word for piece in pieces for word in split_words(piece)] == split_words(line)
    assert all(1 <= len(split_words(piece)) <= most for piece in pieces) or not split_words(line)


@given(st.text(st.sampled_from("AB. \u00a0▁"), min_size=1, max_size=40), st.integers(1, 9))
def test_characters_are_cut_between_words_where_there_is_room(line: str, most: int) -> None:
    found = of_units("char")
    pieces = found._cut(line, most)
    assert "".join(pieces) == line
    assert all(1 <= len(piece) <= most for piece in pieces)
    for piece, after in zip(pieces, pieces[1:], strict=False):
        inside = not (after.startswith(" ") or piece.endswith(" "))
        assert not inside or " " not in piece.lstrip(" "), "a word was cut though there was a space to cut at"


@given(line, st.integers(2, 12))
def test_pieces_of_words_are_cut_between_words_where_there_is_room(line: str, most: int) -> None:
    found = of_units("subword:60")
    pieces = found._cut(line, most)
    assert "".join(pieces).replace(" ", "") == line.replace(" ", "")
    longest = max(len(found.source.segmenter.segment(word)) for word in line.split())
    if longest <= most:
        assert " ".join(pieces) == line
        assert all(len(found.source.segmenter.segment(piece)) <= most for piece in pieces)


@given(line, st.integers(1, 9))
def test_a_line_is_cut_where_a_sentence_ends_if_one_does(line: str, most: int) -> None:
    pieces = of_units("word")._cut(line, most)
    for piece in pieces[:-1]:
        words = split_words(piece)
        assert words[-1].endswith(SENTENCE_END_MARKS) or not any(word.endswith(SENTENCE_END_MARKS) for word in words)


@every_kind
def test_an_overlong_line_is_translated_in_pieces(kind: str) -> None:
    found = of_units(kind)
    line, most = "THE DOG SEES A CAT. YES, YES. DOES IT? A DOG HEARS", 12 if kind != "word" else 3
    pieces = [piece.strip() for piece in found._cut(line, most)]
    assert len(pieces) >= 2
    (told,) = found.translate(line, most_units=most, max_words=5)
    parts = found.translate(pieces, max_words=5)
    assert told.text == " ".join(part.text for part in parts if part.text)
    assert told.tokens == tuple(word for part in parts for word in part.tokens)
    assert told.log_prob == pytest.approx(sum(part.log_prob for part in parts))
    assert told.source_tokens == tuple(unit for part in parts for unit in part.source_tokens)
    assert told.attention is None
    assert found.word_attention(told) is None
    together = found.translate(["A CAT", line, "", "YES"], most_units=most, max_words=5)
    assert_alike(together[1:2], [told])
    assert_alike([together[0], together[3]], found.translate(["A CAT", "YES"], max_words=5))
    assert len(found.n_best(line, 3, max_tokens=most, max_words=5)[0]) == 1


def test_spaces_between_words_are_not_translated() -> None:
    """A run of spaces longer than a piece may be."""
    found = of_units("char")
    line = "A" + " " * 30 + "CAT"
    (told,) = found.translate(line, most_units=8, max_words=4)
    assert told.source_tokens == ("A", "C", "A", "T")
    one, two = found.translate(["A", "CAT"], max_words=4)
    assert told.tokens == one.tokens + two.tokens


@pytest.mark.parametrize("most", [0, -1])
def test_no_units_at_all_are_too_few(most: int) -> None:
    with pytest.raises(DataError, match="units"):
        of_units("word").translate("A CAT", most_units=most)


# -- several as one ----------------------------------------------------------------------------------------------------


def test_an_ensemble_of_one_is_its_member() -> None:
    one = translator("bidirectional, perceptron")
    both, lines = Ensemble([one, one]), lines_for(one)
    for told, expected in zip(both.translate(lines), one.translate(lines), strict=True):
        assert told.tokens == expected.words
        assert told.log_prob == pytest.approx(expected.log_prob, abs=1e-9)
        if expected.attention is not None:
            np.testing.assert_allclose(told.attention, expected.attention, atol=1e-12)


@pytest.mark.parametrize(
    ("members", "told"),
    [
        (lambda: [model("witten-bell, order 2"), translator("bidirectional, perceptron")], "must be a translator"),
        (lambda: [translator("bidirectional, perceptron"), translator("recursive, dot")], "reads its source otherwise"),
        (lambda: [of_units("word"), of_units("char")], "different target vocabularies"),
        (lambda: [of_units("word"), translator("bidirectional, perceptron")], "different target vocabularies"),
        (list, "at least one model"),
    ],
)
def test_models_that_do_not_fit_are_refused_with_the_reason(members: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        Ensemble(members())
