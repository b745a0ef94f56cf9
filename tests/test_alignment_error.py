"""Alignment error: the numbers, the files, and links from attention."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core.errors import DataError
from dragoman.evaluation.alignment import (
    AlignmentCounts,
    GoldAlignment,
    argmax_links,
    count_all_links,
    count_links,
    parse_gold_alignment,
    read_gold_alignments,
    to_pharaoh,
)
from dragoman.lab.corpus_files import LINE_FORMATS

LINKS = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5)
GOLD = st.tuples(LINKS, LINKS).map(lambda both: GoldAlignment(both[0], both[0] | both[1]))
SENTENCES = st.lists(st.tuples(LINKS, GOLD), max_size=4)
FEWER_EXAMPLES = settings(max_examples=40)


# -- rates -----------------------------------------------------------------------------------------------------------


@FEWER_EXAMPLES
@given(SENTENCES)
def test_rates_follow_their_definition(sentences) -> None:
    """Over all links of all sentences (Och and Ney 2003)."""
    predicted = {(n, *link) for n, (links, _) in enumerate(sentences) for link in links}
    sure = {(n, *link) for n, (_, gold) in enumerate(sentences) for link in gold.sure}
    possible = {(n, *link) for n, (_, gold) in enumerate(sentences) for link in gold.possible}
    counts = count_all_links([links for links, _ in sentences], [gold for _, gold in sentences])
    if predicted:
        assert counts.precision == len(predicted & possible) / len(predicted)
    if sure:
        assert counts.recall == len(predicted & sure) / len(sure)
    if predicted or sure:
        assert counts.error_rate == 1 - (len(predicted & sure) + len(predicted & possible)) / (
            len(predicted) + len(sure)
        )
    assert counts.possible == len(possible)


@FEWER_EXAMPLES
@given(SENTENCES, st.integers(0, 4))
def test_counts_of_parts_add_up(sentences, cut: int) -> None:
    parts = [sentences[:cut], sentences[cut:], sentences]
    first, second, whole = (count_all_links([links for links, _ in part], [gold for _, gold in part]) for part in parts)
    assert first + second == whole


@FEWER_EXAMPLES
@given(GOLD.filter(lambda gold: gold.sure))
def test_the_gold_alignment_has_no_error(gold: GoldAlignment) -> None:
    for links in (gold.sure, gold.possible):
        counts = count_links(links, gold)
        assert (counts.precision, counts.recall) == (1, 1)
    assert count_links(gold.sure, gold).error_rate == 0
    assert count_links(gold.possible, gold).error_rate == 0


def test_an_example() -> None:
    counts = count_links([(0, 0), (1, 1), (2, 0), (3, 3)], parse_gold_alignment("0-0 1?1 3-2"))
    assert counts == AlignmentCounts(predicted=4, sure=2, possible=3, predicted_sure=1, predicted_possible=2)
    assert (counts.precision, counts.recall, counts.error_rate) == (0.5, 0.5, 0.5)
    assert counts.as_dict()["error_rate"] == 0.5


def test_repeated_links_count_once() -> None:
    assert count_links([(0, 0), (0, 0)], parse_gold_alignment("0-0")).predicted == 1


def test_rates_without_links_are_undefined() -> None:
    assert all(
        math.isnan(share)
        for share in (AlignmentCounts().precision, AlignmentCounts().recall, AlignmentCounts().error_rate)
    )
    assert {AlignmentCounts().as_dict()[name] for name in ("precision", "recall", "error_rate")} == {None}
    no_links = count_links([], parse_gold_alignment("0-0"))
    assert (no_links.recall, no_links.error_rate) == (0, 1)


def test_alignments_of_different_length_are_rejected() -> None:
    with pytest.raises(DataError, match="1 alignments but 2 gold alignments"):
        count_all_links([[(0, 0)]], [parse_gold_alignment("0-0"), parse_gold_alignment("")])


# -- files -----------------------------------------------------------------------------------------------------------


def test_a_file_has_one_sentence_pair_per_line(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-0 1?2\n\n10-3\r\n")
    first, empty, last = read_gold_alignments(tmp_path / "gold")
    assert (first.sure, first.possible) == ({(0, 0)}, {(0, 0), (1, 2)})
    assert (empty.sure, empty.possible) == (set(), set())
    assert last.sure == {(10, 3)}


@pytest.mark.parametrize("wrong", ["0_1", "0-", "-1-2", "a-b", "1--2", "0-0-0", "٣-1", "0-" + "9" * 5000])
def test_an_invalid_link_is_reported_with_file_and_line(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "gold").write_text(f"0-0\n1-1 {wrong}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"gold:2: .* is not a link; write source-target") as raised:
        read_gold_alignments(tmp_path / "gold")
    assert len(str(raised.value)) < 300


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_gold_alignments(tmp_path / "gold")


@FEWER_EXAMPLES
@given(LINKS)
def test_formatted_links_can_be_parsed(links) -> None:
    line = to_pharaoh(links)
    assert parse_gold_alignment(line) == GoldAlignment(links, links)
    assert [tuple(map(int, link.split("-"))) for link in line.split()] == sorted(links)


def test_alignments_of_the_lab_are_sure(tmp_path: Path) -> None:
    """In its files, German-English, both from 0."""
    pairs = [SimpleNamespace(alignment=links) for links in (((0, 0), (2, 1)), ((0, 1), (1, 0), (1, 2)))]
    (tmp_path / "dev.align").write_text("".join(LINE_FORMATS["align"](pair) + "\n" for pair in pairs))
    gold = read_gold_alignments(tmp_path / "dev.align")
    assert (
        [alignment.sure for alignment in gold]
        == [alignment.possible for alignment in gold]
        == [set(pair.alignment) for pair in pairs]
    )
    assert count_all_links([pair.alignment for pair in pairs], gold).error_rate == 0


# -- attention -------------------------------------------------------------------------------------------------------


def attention_with_maxima(best: list[int], columns: int) -> np.ndarray:
    """A matrix with its maximum at the given column of each row."""
    matrix = np.full((len(best), columns), 0.1)
    matrix[np.arange(len(best)), best] = 0.6
    return matrix


def test_each_target_word_is_linked_to_its_maximum() -> None:
    assert argmax_links(attention_with_maxima([1, 0, 2, 2, 3], columns=4)) == [(1, 0), (0, 1), (2, 2), (2, 3)]


def test_sentence_ends_have_no_links() -> None:
    assert argmax_links(attention_with_maxima([3, 1, 0], columns=4)) == [(1, 1)]
    assert argmax_links(attention_with_maxima([0], columns=1)) == []
    assert argmax_links(attention_with_maxima([0, 0], columns=1)) == []  # no source word at all


def test_the_first_of_equal_maxima_is_used() -> None:
    assert argmax_links(torch.tensor([[0.4, 0.4, 0.2], [0.0, 0.0, 1.0]])) == [(0, 0)]


def test_matrices_of_other_shapes_are_rejected() -> None:
    with pytest.raises(ValueError, match="shape"):
        argmax_links([0.1, 0.9])
    with pytest.raises(ValueError, match="shape"):
        argmax_links(np.zeros((0, 2)))
