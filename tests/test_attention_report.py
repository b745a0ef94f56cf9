"""Attention as text and as a figure, charts of translators, and the lattice of a search as text."""

from __future__ import annotations

import math
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dragoman import DataError
from dragoman.report.attention import (
    GAP,
    GOLD_COLOR,
    GOLD_NOTE,
    MAX_WORDS,
    NARROW_FIELD,
    SHADES,
    WIDE_FIELD,
    attention_text,
    column_blocks,
    draw_attention,
)
from dragoman.report.charts import draw_bleu_by_length, draw_learning_curves
from dragoman.report.lattice import BEST, lattice_text
from dragoman.report.tables import display_width
from dragoman.search.hypothesis import Fate, LatticeNode

ENGLISH = ("I", "like", "cats", "</s>")
JAPANESE = ("私", "は", "猫", "が", "好き", "です", "</s>")
CODE = re.compile(r"\x1b\[[\d;]*m")
SVG = "{http://www.w3.org/2000/svg}"


def attention(targets: int, sources: int) -> NDArray[np.float64]:
    """Rows that sum to one, with a peak near the diagonal."""
    away = np.linspace(0, 1, targets)[:, None] - np.linspace(0, 1, sources)
    weights = np.exp(-40 * away**2)
    return weights / weights.sum(axis=1, keepdims=True)


def words(count: int) -> list[str]:
    return [f"w{number}" + "x" * (number % 9) for number in range(count - 1)] + ["</s>"]


# -- in the terminal -------------------------------------------------------------------------------------------------


def test_short_sentences_show_words_and_percentages() -> None:
    text = attention_text(ENGLISH, JAPANESE, attention(4, 7))
    assert all(word in text for word in (*ENGLISH, *JAPANESE))
    rows = text.splitlines()[1:5]
    for row, weights in zip(rows, attention(4, 7), strict=True):
        assert [int(n) for n in re.findall(r"(\d+)%", row)] == [p for p in np.rint(100 * weights) if p]


@pytest.mark.parametrize("color", [False, True])
def test_percentages_are_below_their_words(color: bool) -> None:
    """Each target word attends to a single source word, so its only field is below that word."""
    text = CODE.sub("", attention_text(JAPANESE, JAPANESE, np.eye(7), color=color))
    head, *rows = text.splitlines()[:8]
    starts = [display_width(head[: head.index(word)]) for word in JAPANESE]
    ends = [display_width(row[: row.index("100%") + 4]) for row in rows]
    assert ends == [start + WIDE_FIELD - color for start in starts]  # on colour, the percentage is in the middle


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("width", [1, 33, 100])
def test_long_sentences_are_split_into_blocks_with_every_column_once(width: int, color: bool) -> None:
    """Each source word's column is marked in one block, below the vertical word."""
    text = CODE.sub("", attention_text(words(41), words(41), np.eye(41), width=width, color=color))
    marked = [line for line in text.splitlines() if re.search(r"  (██|99) *$", line)]
    for line, word in zip(marked, words(41), strict=True):
        assert word.startswith(line.split()[0].rstrip("…"))
    assert max(map(display_width, text.splitlines()[:-2])) <= max(width, 30)
    ranges = [(int(a), int(b)) for a, b in re.findall(r"source words (\d+) to (\d+) of 41", text)]
    assert [n for first, last in ranges for n in range(first, last + 1)] == list(range(1, 42))
    places = [n for first, last in ranges for n in range(last - first + 1)]  # of each column in its block
    starts = [display_width(line.rstrip()) - NARROW_FIELD for line in marked]
    assert starts == [starts[0] + (NARROW_FIELD + GAP) * place for place in places]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=30), st.integers(1, 40))
def test_blocks_contain_every_column_once_and_fit(widths: list[int], room: int) -> None:
    blocks = list(column_blocks(widths, room))
    assert [n for block in blocks for n in range(block.start, block.stop)] == list(range(len(widths)))
    sizes = [sum(widths[block]) + GAP * (block.stop - block.start - 1) for block in blocks]
    assert all(size <= room or block.stop == block.start + 1 for block, size in zip(blocks, sizes, strict=True))
    for block, size in zip(blocks[:-1], sizes[:-1], strict=True):
        assert size + GAP + widths[block.stop] > room  # the next would not have fitted


def test_vertical_words_are_above_their_columns() -> None:
    text = attention_text(["a"], ["猫が", "xe\u0301z", "</s>"], [[1, 0, 0]], width=16)
    lines = text.splitlines()
    heads = lines[: next(n for n, line in enumerate(lines) if line.startswith("a"))]
    assert [line[3:] for line in heads] == ["      <", "   x  /", "猫 e\u0301  s", "が z  >"]


def test_shades_follow_the_weights() -> None:
    """The shade of a field rises with its weight, and agrees with the percentage beside it."""
    weights = np.linspace(0, 1, 101)[:, None]
    lines = attention_text(["t"] * 101, ["s"], weights).splitlines()[1:102]
    shades = [line[3] if len(line) > 3 else " " for line in lines]
    order = [shade for _, shade in SHADES]
    assert [order.index(shade) for shade in shades] == [sum(p >= least for least, _ in SHADES) - 1 for p in range(101)]


def test_colour_is_optional_and_control_characters_of_words_are_removed() -> None:
    bad = ["a\x1b[2Jb", "\ttab", "</s>"]
    assert "\x1b" not in attention_text(bad, bad, np.eye(3)) and "\t" not in attention_text(bad, bad, np.eye(3))
    colored = attention_text(bad, bad, np.eye(3), color=True)
    assert "\x1b[97;48;5;88m" in colored and "\x1b[2J" not in colored
    assert len(re.findall(r"\x1b\[0m", colored)) * 2 == colored.count("\x1b")  # every colour ends


@pytest.mark.parametrize(
    ("matrix", "problem"),
    [
        (np.eye(3), "3 x 3 weights for 2 target and 3 source words"),
        ([[1, 0, math.nan], [1, 0, 0]], "not between 0 and 1"),
        ([[5.0, -4, 0], [1, 0, 0]], "before the softmax"),
    ],
)
def test_matrices_that_are_not_attention_are_errors(tmp_path: Path, matrix: object, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        attention_text(["a", "</s>"], ["x", "y", "</s>"], matrix)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=problem):
        draw_attention(["a", "</s>"], ["x", "y", "</s>"], matrix, tmp_path / "a.svg")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no words"):
        attention_text([], ["x"], np.zeros((0, 1)))


# -- figures --------------------------------------------------------------------------------------------------------

Draw = Callable[[Path], None]
CLASSES = {"1 to 5": 120, "6 to 10": 1300}
DRAWINGS: dict[str, Draw] = {
    "attention": lambda path: draw_attention(ENGLISH, JAPANESE, attention(4, 7), path, "A $title$", [(2, 2), (0, 0)]),
    "long": lambda path: draw_attention(words(24), words(30), attention(24, 30), path),
    "lengths": lambda path: draw_bleu_by_length(
        CLASSES, {"plain": [30, 10], "attends": [31, math.nan]}, path, title="A < B"
    ),
    "minutes": lambda path: draw_learning_curves({"$ours$": [(1, 10), (5, 30)], "theirs": [(6, 7)]}, path, "dev BLEU"),
}
TEXTS = {
    "attention": {*ENGLISH, *JAPANESE, "A $title$"},
    "long": {*words(24), *words(30)},
    "lengths": {"plain", "attends", "1 to 5", "6 to 10", "120", "1,300", "BLEU", "A < B"},
    "minutes": {"$ours$", "theirs", "dev BLEU", "minutes of training"},
}


@pytest.fixture(params=DRAWINGS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def texts_of(path: Path) -> list[str]:
    return ["".join(element.itertext()).strip() for element in ET.fromstring(path.read_bytes()).iter(f"{SVG}text")]


def test_figures_contain_every_word_without_a_warning(tmp_path: Path, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DRAWINGS[name](tmp_path / "figure.svg")
    assert TEXTS[name] <= {part.strip() for text in texts_of(tmp_path / "figure.svg") for part in text.split("\n")}


@pytest.mark.parametrize("ending", ["svg", "png"])
@pytest.mark.filterwarnings("ignore:.*no installed font")
def test_figures_are_reproducible(tmp_path: Path, name: str, ending: str) -> None:
    for file in ("first", "second"):
        DRAWINGS[name](tmp_path / f"{file}.{ending}")
    data = (tmp_path / f"first.{ending}").read_bytes()
    assert data == (tmp_path / f"second.{ending}").read_bytes()
    assert len(data) > 2000


def test_length_classes_show_their_number_of_sentences(tmp_path: Path) -> None:
    draw_bleu_by_length(CLASSES, {"plain": [30, 10]}, tmp_path / "figure.svg")
    text = " ".join(texts_of(tmp_path / "figure.svg"))
    places = [text.index(label) for label in ("1 to 5", "120", "6 to 10", "1,300")]
    assert places == sorted(places)


def test_other_formats_are_errors(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"end the name in \.svg or \.png"):
        DRAWINGS[name](tmp_path / "figure.pdf")
    assert list(tmp_path.iterdir()) == []


def test_missing_glyphs_give_one_warning_in_a_png(tmp_path: Path) -> None:
    unknown = [chr(0x10FFF0 + number) for number in range(5)]  # for private use: in no font, not printable
    rare = [chr(0x13000 + number) for number in range(5)]  # hieroglyphs, which none of the fonts has
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        draw_attention(unknown, rare, np.eye(5), tmp_path / "figure.png")
    assert len(caught) == 1  # not one for each letter
    assert all("write an .svg" in str(warning.message) for warning in caught)
    assert (tmp_path / "figure.png").stat().st_size > 2000


def test_gold_links_have_boxes_at_their_words(tmp_path: Path) -> None:
    """Link s-t has its box in the column of source word s and the row of target word t, from above."""
    draw_attention(words(4), words(6), attention(4, 6), tmp_path / "gold.svg", gold=[(0, 0), (5, 0), (0, 3)])
    boxes = [
        [(float(x), float(y)) for x, y in re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", path.get("d", ""))]
        for path in ET.fromstring((tmp_path / "gold.svg").read_bytes()).iter(f"{SVG}path")
        if f"stroke: {GOLD_COLOR.lower()}" in path.get("style", "")
    ]
    assert len(boxes) == 3
    corners = [(min(x for x, _ in box), min(y for _, y in box)) for box in boxes]
    side = (corners[1][0] - corners[0][0]) / 5
    assert side > 0 and corners[1][1] == pytest.approx(corners[0][1])
    assert corners[2] == pytest.approx((corners[0][0], corners[0][1] + 3 * side), rel=1e-3)
    draw_attention(words(4), words(6), attention(4, 6), tmp_path / "none.svg")
    texts = [" ".join(texts_of(tmp_path / file)) for file in ("gold.svg", "none.svg")]
    assert [GOLD_NOTE in text for text in texts] == [True, False]


def test_values_that_cannot_be_drawn_are_errors(tmp_path: Path) -> None:
    many = MAX_WORDS + 1
    with pytest.raises(DataError, match=f"2 target and {many} source words"):
        draw_attention(words(2), words(many), attention(2, many), tmp_path / "a.svg")
    for link in [(2, 0), (0, 2), (-1, 0)]:
        with pytest.raises(DataError, match=f"link {link[0]}-{link[1]}"):
            draw_attention(words(2), words(2), attention(2, 2), tmp_path / "a.svg", gold=[link])
    with pytest.raises(DataError, match="3 values for 2 classes"):
        draw_bleu_by_length(CLASSES, {"plain": [1, 2, 3]}, tmp_path / "a.svg")
    with pytest.raises(DataError, match="plain has no points"):
        draw_bleu_by_length(CLASSES, {"plain": [math.nan, math.nan]}, tmp_path / "a.svg")
    with pytest.raises(DataError, match="infinite or undefined"):
        draw_learning_curves({"ours": [(1, math.inf)]}, tmp_path / "a.svg", "BLEU")
    with pytest.raises(DataError, match="no time"):
        draw_learning_curves({"ours": [(math.nan, 1)]}, tmp_path / "a.svg", "BLEU")
    with pytest.raises(DataError, match="10 lines"):
        draw_learning_curves({str(number): [(1, 1)] for number in range(10)}, tmp_path / "a.svg", "BLEU")
    assert list(tmp_path.iterdir()) == []


# -- the lattice -----------------------------------------------------------------------------------------------------


WORDS: list[str] = []  # of the nodes, by their ids


def node(id: int, parent: int | None, word: str, log_prob: float, score: float, fate: Fate) -> LatticeNode:
    WORDS.append(word)
    return LatticeNode(id, 0, parent, len(WORDS) - 1, log_prob, score, fate)


BEAM = [
    node(0, None, "<s>", 0.0, 0.0, "kept"),
    node(1, 0, "a", -1.0, -1.0, "kept"),
    node(2, 0, "b", -0.5, -0.5, "kept"),
    node(3, 0, "</s>", -3.0, -0.75, "pruned"),  # pruned by log P, not by its score
    node(4, 1, "c", -1.25, -1.25, "kept"),
    node(5, 2, "d", -2.5, -2.5, "kept"),
    node(6, 4, "</s>", -1.5, -0.5, "finished"),
    node(7, 5, "</s>", -4.5, -1.5, "finished"),
    *(node(8 + n, 5, f"w{n}", -9.0 - n, -9.0 - n, "pruned") for n in range(5)),
]


def lines_of(nodes: list[LatticeNode], **options: int) -> list[str]:
    return lattice_text(nodes, spell=WORDS.__getitem__, **options).splitlines()[1:-2]


def test_lattice_shows_every_hypothesis_below_its_parent() -> None:
    lines = lines_of(BEAM, max_pruned=9)
    rows = [(int(line[:4]), line[5], line.split()[-1] if BEST not in line else "best") for line in lines]
    assert rows == [
        (0, " ", "<s>"),
        (1, " ", "b"),
        (2, " ", "d"),
        (3, "*", "</s>"),
        *((3, "x", f"w{n}") for n in range(5)),
        (1, " ", "a"),
        (2, " ", "c"),
        (3, "*", "best"),
        (1, "x", "</s>"),
    ]
    assert re.findall(r"-?\d+\.\d+", lines[10]) == ["-0.250", "-1.250", "-1.250"]  # c: its own, with a, and the score
    places = [max(line.find("<s>"), line.find("├") + 2, line.find("└") + 2) for line in lines]  # where words begin
    assert places == [places[0] + 2 * step for step, _, _ in rows]
    assert all(line[places[0]] in "│├" for line in lines[1:-1])  # what leads from the root to its last child


def test_pruned_hypotheses_that_are_not_shown_are_counted() -> None:
    lines = lines_of(BEAM, max_pruned=2)
    assert [line.split()[-1] for line in lines if line[5] == "x"] == ["w0", "w1", "more)", "</s>"]
    assert any("(3 more)" in line for line in lines)
    continued = [*BEAM, node(99, 12, "odd", -20.0, -20.0, "kept")]  # pruned, but continued
    assert any("odd" in line for line in lines_of(continued, max_pruned=0))


def test_lattice_without_a_root_counts_the_same_steps() -> None:
    without = [replace(each, parent=each.parent or None) for each in BEAM[1:]]
    assert lines_of(without) == lines_of(BEAM)[1:]


def test_long_sentences_stay_within_the_width() -> None:
    chain = [node(n, n - 1 if n else None, f"猫{n}", -float(n), -float(n), "kept") for n in range(1500)]
    lines = lines_of(chain, width=80)
    assert len(lines) == 1500 and max(map(display_width, lines)) <= 80
    assert all(line.endswith(f"猫{n}") for n, line in enumerate(lines))


def test_colour_dims_pruned_hypotheses() -> None:
    plain, colored = lattice_text(BEAM), lattice_text(BEAM, color=True)
    assert "\x1b" not in plain and CODE.sub("", colored) == plain
    for line in colored.splitlines()[1:-2]:
        bare = CODE.sub("", line)
        assert line.startswith({"x": "\x1b[2m", "*": "\x1b[1m", " ": bare}[bare[5]])


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ([BEAM[0], BEAM[0]], "same id"),
        ([BEAM[4]], "4 continues 1, which is not there"),
        ([replace(BEAM[0], fate=cast(Fate, "lost"))], "'lost'"),
        ([replace(BEAM[1], parent=4), BEAM[4]], "in a circle"),
    ],
)
def test_nodes_that_are_not_a_tree_are_errors(nodes: list[LatticeNode], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        lattice_text(nodes)


def test_lattice_of_an_empty_search_has_no_lines() -> None:
    assert lines_of([]) == []
