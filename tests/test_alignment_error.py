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
SOME = settings(max_examples=40)


# -- the numbers -----------------------------------------------------------------------------------------------------


@SOME
@given(SENTENCES)
def test_the_counts_are_sizes_of_sets(sentences) -> None:
    """All sentences as one, each with words of its own, by the definition of Och and Ney."""
    found = {(n, *link) for n, (links, _) in enumerate(sentences) for link in links}
    sure = {(n, *link) for n, (_, gold) in enumerate(sentences) for link in gold.sure}
    possible = {(n, *link) for n, (_, gold) in enumerate(sentences) for link in gold.possible}
    counts = count_all_links([links for links, _ in sentences], [gold for _, gold in sentences])
    if found:
        assert counts.precision == len(found & possible) / len(found)
    if sure:
        assert counts.recall == len(found & sure) / len(sure)
    if found or sure:
        assert counts.error_rate == 1 - (len(found & sure) + len(found & possible)) / (len(found) + len(sure))
    assert counts.possible == len(possible)


@SOME
@given(SENTENCES, st.integers(0, 4))
def test_counts_of_parts_add_up(sentences, cut: int) -> None:
    parts = [sentences[:cut], sentences[cut:], sentences]
    first, second, whole = (count_all_links([links for links, _ in part], [gold for _, gold in part]) for part in parts)
    assert first + second == whole


@SOME
@given(GOLD.filter(lambda gold: gold.sure))
def test_gold_has_no_error_against_itself(gold: GoldAlignment) -> None:
    for links in (gold.sure, gold.possible):
        counts = count_links(links, gold)
        assert (counts.precision, counts.recall) == (1, 1)
    assert count_links(gold.sure, gold).error_rate == 0
    assert count_links(gold.possible, gold).error_rate == 0


def test_one_worked_by_hand() -> None:
    counts = count_links([(0, 0), (1, 1), (2, 0), (3, 3)], parse_gold_alignment("0-0 1?1 3-2"))
    assert counts == AlignmentCounts(found=4, sure=2, possible=3, found_sure=1, found_possible=2)
    assert (counts.precision, counts.recall, counts.error_rate) == (0.5, 0.5, 0.5)
    assert counts.as_dict()["error_rate"] == 0.5


def test_a_link_found_twice_counts_once() -> None:
    assert count_links([(0, 0), (0, 0)], parse_gold_alignment("0-0")).found == 1


def test_nothing_to_count_is_undefined() -> None:
    assert all(
        math.isnan(share)
        for share in (AlignmentCounts().precision, AlignmentCounts().recall, AlignmentCounts().error_rate)
    )
    assert {AlignmentCounts().as_dict()[name] for name in ("precision", "recall", "error_rate")} == {None}
    nothing_found = count_links([], parse_gold_alignment("0-0"))
    assert (nothing_found.recall, nothing_found.error_rate) == (0, 1)


def test_alignments_out_of_step_are_refused() -> None:
    with pytest.raises(DataError, match="1 alignments for 2 gold ones"):
        count_all_links([[(0, 0)]], [parse_gold_alignment("0-0"), parse_gold_alignment("")])


# -- files -----------------------------------------------------------------------------------------------------------


def test_a_file_is_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-0 1?2\n\n10-3\r\n")
    one, empty, last = read_gold_alignments(tmp_path / "gold")
    assert (one.sure, one.possible) == ({(0, 0)}, {(0, 0), (1, 2)})
    assert (empty.sure, empty.possible) == (set(), set())
    assert last.sure == {(10, 3)}


@pytest.mark.parametrize("wrong", ["0_1", "0-", "-1-2", "a-b", "1--2", "0-0-0", "٣-1", "0-" + "9" * 5000])
def test_what_is_no_link_is_refused_with_its_place(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "gold").write_text(f"0-0\n1-1 {wrong}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"gold:2: .* is no link; write source-target") as refused:
        read_gold_alignments(tmp_path / "gold")
    assert len(str(refused.value)) < 300


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_gold_alignments(tmp_path / "gold")


@SOME
@given(LINKS)
def test_what_is_written_can_be_read(links) -> None:
    line = to_pharaoh(links)
    assert parse_gold_alignment(line) == GoldAlignment(links, links)
    assert [tuple(map(int, link.split("-"))) for link in line.split()] == sorted(links)


def test_the_laboratorys_alignments_are_all_sure(tmp_path: Path) -> None:
    """As its files have them: German-English, both from 0."""
    pairs = [SimpleNamespace(alignment=links) for links in (((0, 0), (2, 1)), ((0, 1), (1, 0), (1, 2)))]
    (tmp_path / "dev.align").write_text("".join(LINE_FORMATS["align"](pair) + "\n" for pair in pairs))
    gold = read_gold_alignments(tmp_path / "dev.align")
    assert [own.sure for own in gold] == [own.possible for own in gold] == [set(pair.alignment) for pair in pairs]
    assert count_all_links([pair.alignment for pair in pairs], gold).error_rate == 0


# -- attention -------------------------------------------------------------------------------------------------------


def peaked(best: list[int], columns: int) -> np.ndarray:
    """Attention that prefers one column in each row."""
    matrix = np.full((len(best), columns), 0.1)
    matrix[np.arange(len(best)), best] = 0.6
    return matrix


def test_each_target_word_has_the_source_word_it_attends_to_most() -> None:
    assert argmax_links(peaked([1, 0, 2, 2, 3], columns=4)) == [(1, 0), (0, 1), (2, 2), (2, 3)]


def test_the_end_of_the_source_is_nothing_and_the_end_of_the_target_is_left_out() -> None:
    assert argmax_links(peaked([3, 1, 0], columns=4)) == [(1, 1)]
    assert argmax_links(peaked([0], columns=1)) == []
    assert argmax_links(peaked([0, 0], columns=1)) == []  # no source word at all


def test_padding_changes_nothing() -> None:
    matrix = peaked([1, 2, 0, 2], columns=3)
    padded = np.pad(matrix, ((0, 2), (0, 3)), constant_values=0.9)
    assert argmax_links(padded, source_words=2, target_words=3) == argmax_links(matrix) == [(1, 0), (0, 2)]


def test_tensors_are_taken_and_ties_go_to_the_first() -> None:
    assert argmax_links(torch.tensor([[0.4, 0.4, 0.2], [0.0, 0.0, 1.0]])) == [(0, 0)]


def test_what_is_no_attention_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        argmax_links([0.1, 0.9])
    with pytest.raises(ValueError, match="shape"):
        argmax_links(peaked([0, 1], columns=2), source_words=2)
    with pytest.raises(ValueError, match="shape"):
        argmax_links(np.zeros((0, 2)))
