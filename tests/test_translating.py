"""The text-level methods of translators, for all segmenters, encoders and line lengths."""

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
from dragoman.combine.shortlist import ShortlistScorer
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.scanner import split_words
from dragoman.data.tokenizer import Tokenizer
from dragoman.models.source_lines import SENTENCE_END_MARKS, SegmentedLine, split_tokens
from dragoman.models.translation import Translation
from dragoman.models.translator import Translator
from zoo import TRANSLATORS, model, read_by, translator

RAW = ["The dog, which sees.", "A cat hears!", "Does it?", "The dog sees a cat.", "Yes, yes."] * 4
CAPITALS = [line.upper() for line in RAW]
SENTENCES = ["the dog sees a cat .", "", "the old unicorn hears the bird !", "yes"]
ATTENTION = "bidirectional, perceptron"

every_translator = pytest.mark.parametrize("name", TRANSLATORS)
every_segmenter = pytest.mark.parametrize("kind", ["word", "char", "subword:60"])


def source_lines(translator: Any) -> list[str]:
    return [read_by(translator, sentence) for sentence in SENTENCES]


@cache
def untrained(kind: str) -> Translator:
    """An untrained translator between tokens of one kind."""
    source, target = Tokenizer.train(kind, CAPITALS, min_count=1), Tokenizer.train(kind, RAW, min_count=1)
    pairs = ParallelCorpus(source.encode(CAPITALS), target.encode(RAW))
    return Translator.create(pairs, source, target, embedding=4, hidden=6, dtype="float64", embedding_reach=2.0)


def chunk_texts(translator: Translator, line: str, max_tokens: int) -> list[str]:
    """The texts of the chunks that a line is split into."""
    segmenter = translator.source.segmenter
    return [segmenter.join(chunk) for chunk in split_tokens(segmenter, segmenter.segment(line), max_tokens)]


def assert_same_translations(translations: list[Translation], expected: list[Translation]) -> None:
    """Equal translations; log-probabilities may differ by rounding, because of other batches."""
    for name in ("tokens", "text", "source_tokens"):
        assert [getattr(t, name) for t in translations] == [getattr(t, name) for t in expected]
    assert [t.log_prob for t in translations] == pytest.approx([t.log_prob for t in expected], abs=1e-9)


# -- blank lines, one line, many ---------------------------------------------------------------------------------------


@every_translator
def test_blank_lines_have_blank_translations(name: str) -> None:
    model = translator(name)
    first, second = source_lines(model)[0], source_lines(model)[2]
    translations = model.translate(["", first, " ", " \t ", second, ""])
    for number in (0, 2, 3, 5):
        assert translations[number] == Translation("", (), 0.0, 0.0, ())
        assert translations[number].attention is None
    assert_same_translations([translations[1], translations[4]], model.translate([first, second]))


def test_no_lines_have_no_translations() -> None:
    model = translator(ATTENTION)
    assert model.translate([]) == []
    assert model.score([], []) == model.force_decode([], []) == []


def test_one_line_may_be_a_string() -> None:
    model = translator(ATTENTION)
    assert model.translate("DOG THE") == model.translate(["DOG THE"]) == model.translate(iter(["DOG THE"]))
    assert model.n_best("DOG THE", 3) == model.n_best(["DOG THE"], 3)


def test_segmented_lines_can_be_translated() -> None:
    model = untrained("subword:60")
    lines = ["THE DOG SEES.", "", " ".join(CAPITALS[:4])]
    segmented = model.segment(lines, 12)
    assert [line.is_split for line in segmented] == [False, False, True]
    assert [line.text for line in segmented] == lines
    assert model.translate(segmented) == model.translate(lines, max_tokens=12)


# -- n-best lists and scores -------------------------------------------------------------------------------------------


@every_translator
def test_translations_begin_with_the_prefix(name: str) -> None:
    """The prefix is not the most probable first word. Log-probabilities are those of forced decoding."""
    model = translator(name)
    line = source_lines(model)[0]
    candidates = [word for word, _ in model.condition_on(line).next_words("", 4)[1:]]
    prefix = next(word for word in candidates if word not in ("</s>", "<unk>"))
    translations = model.n_best(line, 3, 4, prefix=[prefix], length="none")[0]
    assert all(translation.tokens[0] == prefix for translation in translations)
    log_probs = [translation.log_prob for translation in translations]
    assert log_probs == sorted(log_probs, reverse=True)
    model = model.model if isinstance(model, ShortlistScorer) else model  # with a prefix, the search is over all words
    finished = [translation for translation in translations if translation.finished]
    decoded = model.force_decode([line] * len(finished), [translation.text for translation in finished])
    assert [t.log_prob for t in finished] == pytest.approx([t.log_prob for t in decoded], abs=1e-6)


def test_a_prefix_may_exceed_the_default_maximum_length() -> None:
    model = untrained("word")
    tokens = model.target.segmenter.segment("The dog") * 60
    translation = model.translate(CAPITALS[0], prefix=tokens)[0]
    assert list(translation.tokens[: len(tokens)]) == tokens and len(tokens) > 2 * len(translation.source_tokens) + 20
    with pytest.raises(DataError, match="no token 'zebra' for the prefix"):
        model.translate(CAPITALS[0], prefix="The zebra")


@every_segmenter
def test_a_prefix_is_a_text_or_tokens(kind: str) -> None:
    model = untrained(kind)
    tokens = model.target.segmenter.segment("The dog")
    from_text, from_tokens = (model.translate(CAPITALS[0], prefix=prefix)[0] for prefix in ("The dog", tokens))
    assert from_text == from_tokens and list(from_text.tokens[: len(tokens)]) == tokens
    with pytest.raises(DataError, match="too long to be translated at once"):
        model.translate(["", CAPITALS[0]], prefix="The", max_tokens=3)


@every_translator
@pytest.mark.parametrize("length", ["norm", "prior"])
def test_n_best_lists_are_sorted_distinct_and_have_correct_log_probs(name: str, length: str) -> None:
    model = translator(name)
    lines = source_lines(model)
    lists = model.n_best(lines, 4, length=length, max_words=8)
    assert len(lists[1]) == 1, "a blank line"
    assert all(1 <= len(best) <= 4 for best in lists)
    for line, best in zip(lines, lists, strict=True):
        scores = [translation.score for translation in best]
        assert scores == sorted(scores, reverse=True)
        assert len({translation.tokens for translation in best}) == len(best)
        finished = [translation for translation in best if translation.finished and line]
        decoded = model.force_decode([line] * len(finished), [translation.text for translation in finished])
        for translation, expected in zip(finished, decoded, strict=True):
            assert translation.tokens == expected.tokens
            assert translation.log_prob == pytest.approx(expected.log_prob, abs=1e-9)
    assert_same_translations([best[0] for best in lists], model.translate(lines, length=length, max_words=8))


def test_the_score_follows_from_the_length_handling() -> None:
    model = translator(ATTENTION)
    line = source_lines(model)[0]
    (plain,) = model.n_best(line, 3, length="none")
    assert [t.score for t in plain] == [t.log_prob for t in plain]
    (penalized,) = model.n_best(line, 3, length="penalty:0.5")
    assert [t.score for t in penalized] == pytest.approx([t.log_prob + 0.5 * len(t.tokens) for t in penalized])
    (with_prior,) = model.n_best(line, 3, length="prior")
    for t in with_prior:
        prior = model.length_prior.log_probs(torch.tensor([len(t.tokens)]), torch.tensor([len(t.source_tokens)]))
        assert t.score == pytest.approx(t.log_prob + float(prior))


@pytest.mark.parametrize("length", ["fair", "norm:2", "penalty:much", "", "prior:1"])
def test_unknown_length_handlings_are_refused(length: str) -> None:
    with pytest.raises(DataError, match="length handling"):
        translator(ATTENTION).translate("DOG", length=length)


def test_forced_decoding_does_not_depend_on_the_batch() -> None:
    model = translator(ATTENTION)
    sources = [" ".join(["DOG"] * (number % 5)) for number in range(70)]
    targets = [" ".join(["cat"] * (number % 7)) for number in range(70)]
    decoded = model.force_decode(sources, targets)
    for number in (0, 1, 63, 64, 69):
        (single,) = model.force_decode(sources[number : number + 1], targets[number : number + 1])
        assert decoded[number].log_prob == pytest.approx(single.log_prob, abs=1e-10)
        np.testing.assert_allclose(decoded[number].attention, single.attention, atol=1e-12)


@every_translator
def test_scores_are_the_log_probs_of_forced_decoding(name: str) -> None:
    """For known words; unknown ones have the probability of their spelling as well."""
    model = translator(name)
    lines = [line for line in source_lines(model) if line]
    targets = ["the dog", "", "a <unk> ."]
    expected = [translation.log_prob for translation in model.force_decode(lines, targets)]
    assert model.score(lines, targets) == pytest.approx(expected, abs=1e-9)
    spelling = float(model.unknown.log_probs(["unicorn"])[0])
    (known,), (unknown,) = model.score(lines[:1], ["a <unk>"]), model.score(lines[:1], ["a unicorn"])
    assert unknown == pytest.approx(known + spelling, abs=1e-9)


def test_there_must_be_one_translation_for_each_line() -> None:
    for method in ("score", "force_decode"):
        with pytest.raises(DataError, match="2 lines but 1 translations"):
            getattr(translator(ATTENTION), method)(["A", "B"], ["a"])


@every_translator
def test_samples_depend_on_the_seed_and_have_correct_log_probs(name: str) -> None:
    model = translator(name)
    lines = source_lines(model)
    samples = model.sample(lines, 3, seed=5, max_words=6)
    assert [len(drawn) for drawn in samples] == [3] * len(lines)
    assert samples == model.sample(lines, 3, seed=5, max_words=6)
    assert samples != model.sample(lines, 3, seed=6, max_words=6)
    for line, drawn in zip(lines, samples, strict=True):
        for translation in drawn:
            if not line:
                assert translation.text == ""
            elif translation.finished:
                (expected,) = model.force_decode([line], [translation.text])
                assert translation.log_prob == pytest.approx(expected.log_prob, abs=1e-9)


# -- attention ---------------------------------------------------------------------------------------------------------


@every_translator
def test_attention_has_a_row_per_token_and_a_column_per_source_token(name: str) -> None:
    model = translator(name)
    lines = [line for line in source_lines(model) if line]
    for translation in [*model.translate(lines, max_words=5), *model.force_decode(lines, ["a cat", "", "the dog"])]:
        assert (translation.attention is not None) == model.has_attention
        if translation.attention is None:
            continue
        columns = len(translation.source_tokens) + (model.source.format != "tree")
        assert translation.attention.shape == (len(translation.tokens_with_end), columns)
        np.testing.assert_allclose(translation.attention.sum(axis=1), 1.0)


@every_segmenter
def test_word_attention_sums_over_source_tokens_and_averages_over_target_tokens(kind: str) -> None:
    model = untrained(kind)
    sources, targets = ["THE DOG, YES.", "A", "DOES IT SEE A ZEBRA?"], ["The dog, yes.", "It? Yes", "A"]
    for line, reference, translation in zip(sources, targets, model.force_decode(sources, targets), strict=True):
        attention = model.attention_matrix(translation)
        assert attention is not None and translation.attention is not None
        assert attention.source == (*line.split(), "</s>")
        assert attention.target == (*reference.split(), "</s>")
        rows = [*model.target.segmenter.word_indices(translation.tokens), len(attention.target) - 1]
        columns = [*model.source.segmenter.word_indices(translation.source_tokens), len(attention.source) - 1]
        expected = np.zeros(attention.matrix.shape)
        for row, alpha in zip(rows, translation.attention, strict=True):
            for column, weight in zip(columns, alpha, strict=True):
                expected[row, column] += weight / rows.count(row)
        np.testing.assert_allclose(attention.matrix, expected)
        np.testing.assert_allclose(attention.matrix.sum(axis=1), 1.0)


@every_segmenter
def test_word_attention_of_samples_has_matching_labels(kind: str) -> None:
    """Samples of an untrained model contain unusual tokens and are often unfinished."""
    model = untrained(kind)
    for samples in model.sample(["THE DOG", "YES, YES.", "A"], 20, max_words=6):
        for translation in samples:
            attention = model.attention_matrix(translation)
            assert attention is not None
            assert attention.matrix.shape == (len(attention.target), len(attention.source))
            np.testing.assert_allclose(attention.matrix.sum(axis=1), 1.0)


@every_segmenter
def test_no_break_spaces_are_part_of_words(kind: str) -> None:
    model = untrained(kind)
    (translation,) = model.force_decode(["THE\u00a0DOG SEES\u3000A"], ["The\u00a0dog sees"])
    attention = model.attention_matrix(translation)
    assert attention is not None
    assert attention.source == ("THE\u00a0DOG", "SEES\u3000A", "</s>")
    assert len(attention.target) == 3


@pytest.mark.parametrize("kind", ["char", "subword:60"])
def test_a_translation_of_spaces_only_has_one_empty_word(kind: str) -> None:
    model = untrained(kind)
    (decoded,) = model.force_decode(["A CAT"], ["It"])
    assert decoded.attention is not None
    blank = Translation("", ("▁",), -1.0, -1.0, decoded.source_tokens, attention=decoded.attention[:2])
    attention = model.attention_matrix(blank)
    assert attention is not None and attention.target == ("", "</s>")
    np.testing.assert_allclose(attention.matrix.sum(axis=1), 1.0)


def test_attention_over_a_tree_is_over_its_nodes() -> None:
    model = translator("tree-LSTM, perceptron")
    (translation,) = model.translate("(S (X CAT A) SEES)", max_words=4)
    assert translation.source_tokens == ("CAT", "A", "SEES", "CAT A", "CAT A SEES")
    attention = model.attention_matrix(translation)
    assert attention is not None and attention.source == translation.source_tokens
    assert attention.matrix.shape[1] == 5


def test_plain_text_for_a_tree_encoder_is_refused_with_a_remedy() -> None:
    with pytest.raises(DataError, match="needs one bracketed tree"):
        translator("tree-LSTM, perceptron").translate("CAT A SEES")


# -- long lines --------------------------------------------------------------------------------------------------------

letters = st.characters(exclude_characters="\n\r\t", exclude_categories=["Cs"])
line = st.lists(st.text(st.sampled_from("AB.?"), min_size=1, max_size=6), min_size=1, max_size=12).map(" ".join)


@given(st.lists(st.text(letters, min_size=1, max_size=5), min_size=1, max_size=15).map(" ".join), st.integers(1, 8))
def test_words_are_split_into_chunks_without_loss(line: str, max_tokens: int) -> None:
    chunks = split_tokens(untrained("word").source.segmenter, split_words(line), max_tokens)
    visible = [word for word in split_words(line) if word.strip()]
    assert [word for chunk in chunks for word in chunk if word.strip()] == visible
    assert all(1 <= len(chunk) <= max_tokens for chunk in chunks) or not split_words(line)


@given(st.text(st.sampled_from("AB. \u00a0▁"), min_size=1, max_size=40), st.integers(1, 9))
def test_characters_are_split_between_words_if_possible(line: str, max_tokens: int) -> None:
    segmenter = untrained("char").source.segmenter
    tokens = segmenter.segment(line)
    chunks = split_tokens(segmenter, tokens, max_tokens)
    assert all(len(chunk) <= max_tokens for chunk in chunks)
    if len(tokens) > max_tokens:
        texts = [segmenter.join(chunk) for chunk in chunks]
        assert "".join(texts).replace(" ", "").replace("\u00a0", "") == line.replace(" ", "").replace("\u00a0", "")
        assert all(text == text.strip(" ") and text.strip() for text in texts)


@given(line, st.integers(2, 12))
def test_subwords_are_split_between_words_if_possible(line: str, max_tokens: int) -> None:
    model = untrained("subword:60")
    texts = chunk_texts(model, line, max_tokens)
    assert "".join(texts).replace(" ", "") == line.replace(" ", "")
    longest = max(len(model.source.segmenter.segment(word)) for word in line.split())
    if longest <= max_tokens:
        assert " ".join(texts) == line
        assert all(len(model.source.segmenter.segment(text)) <= max_tokens for text in texts)


@given(line, st.integers(1, 9))
def test_lines_are_split_after_sentence_ends_if_possible(line: str, max_tokens: int) -> None:
    for chunk in split_tokens(untrained("word").source.segmenter, split_words(line), max_tokens)[:-1]:
        ends = [word.endswith(SENTENCE_END_MARKS) for word in chunk]
        assert ends[-1] or not any(ends)


@every_segmenter
def test_a_long_line_is_translated_in_chunks(kind: str) -> None:
    model = untrained(kind)
    line, max_tokens = "THE DOG SEES A CAT. YES, YES. DOES IT? A DOG HEARS", 12 if kind != "word" else 3
    texts = chunk_texts(model, line, max_tokens)
    assert len(texts) >= 2 and model.is_too_long(line, max_tokens)
    (translation,) = model.translate(line, max_tokens=max_tokens, max_words=5)
    parts = model.translate(texts, max_words=5)
    assert translation.text == " ".join(part.text for part in parts if part.text)
    assert translation.tokens == tuple(token for part in parts for token in part.tokens)
    assert translation.log_prob == pytest.approx(sum(part.log_prob for part in parts))
    assert translation.source_tokens == tuple(token for part in parts for token in part.source_tokens)
    assert model.attention_matrix(translation) is None
    several = model.translate(["A CAT", line, "", "YES"], max_tokens=max_tokens, max_words=5)
    assert_same_translations(several[1:2], [translation])
    assert_same_translations([several[0], several[3]], model.translate(["A CAT", "YES"], max_words=5))
    assert len(model.n_best(line, 3, max_tokens=max_tokens, max_words=5)[0]) == 1


def test_chunks_of_spaces_are_not_translated() -> None:
    model = untrained("char")
    (translation,) = model.translate("A" + " " * 30 + "CAT", max_tokens=8, max_words=4)
    assert translation.source_tokens == ("A", "C", "A", "T")
    first, second = model.translate(["A", "CAT"], max_words=4)
    assert translation.tokens == first.tokens + second.tokens


def test_chunks_need_at_least_one_token() -> None:
    with pytest.raises(DataError, match="max_tokens must be >= 1"):
        untrained("word").translate("A CAT", max_tokens=0)


def test_trees_are_never_split() -> None:
    model = translator("tree-LSTM, perceptron")
    assert model.segment(["(S (X A B) C)", ""], 1) == [SegmentedLine("(S (X A B) C)", ((),)), SegmentedLine("", ())]


# -- ensembles ---------------------------------------------------------------------------------------------------------


def test_an_ensemble_of_equal_members_translates_like_its_member() -> None:
    member = translator(ATTENTION)
    ensemble, lines = Ensemble([member, member]), source_lines(member)
    for translation, expected in zip(ensemble.translate(lines), member.translate(lines), strict=True):
        assert translation.tokens == expected.tokens
        assert translation.log_prob == pytest.approx(expected.log_prob, abs=1e-9)
        if expected.attention is not None:
            np.testing.assert_allclose(translation.attention, expected.attention, atol=1e-12)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (lambda: [model("witten-bell, order 2"), translator(ATTENTION)], "must be a translator"),
        (lambda: [translator(ATTENTION), translator("recursive, dot")], "segments its source differently"),
        (lambda: [untrained("word"), untrained("char")], "different target vocabularies"),
        (list, "at least one model"),
    ],
)
def test_incompatible_members_are_refused_with_the_reason(members: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Ensemble(members())
