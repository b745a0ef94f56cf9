"""Pictures: valid files with every label in them, the same bytes every time, and nothing left behind when they fail."""

from __future__ import annotations

import math
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import DataError
from dragoman.core.errors import DragomanError
from dragoman.report.figures import (
    FLOOR,
    GUESSING,
    Proportion,
    draw_accuracy_by_distance,
    draw_curves_by_size,
    spread_labels,
)

CURVES = {"kneser-ney": {1000: 2.0, 2000: 1.5}, "witten-bell": {1000: 2.1, 2000: 1.5}, "katz": {1000: 2.5, 2000: 2.25}}
PANELS = {
    "agreement": {
        "order 2": {"0": Proportion(0.9, 100), "1-3": Proportion(0.5, 100)},
        "order 5": {"0": Proportion(1.0, 100)},
    },
    "reflexive": {
        "order 2": {"1-3": Proportion(0.45, 40)},
        "order 5": {"1-3": Proportion(0.75, 40), "16+": Proportion(0.5, 40)},
    },
}
Draw = Callable[[Path], None]
DRAWINGS: dict[str, Draw] = {
    "curves": lambda path: draw_curves_by_size(CURVES, path, title="How fast <they> come down"),
    "orders": lambda path: draw_curves_by_size(CURVES, path, title="How fast <they> come down", ordered=True),
    "distance": lambda path: draw_accuracy_by_distance(PANELS, path, title="Near & far"),
}
CURVE_TEXTS = {*CURVES, "1,000", "2,000", FLOOR, "How fast <they> come down", "sentences of training text"}
TEXTS = {
    "curves": CURVE_TEXTS,
    "orders": CURVE_TEXTS,
    "distance": {*PANELS, "order 2", "order 5", "0", "1-3", "16+", "50%", "Near & far", "words between", GUESSING},
}


@pytest.fixture(params=DRAWINGS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def texts_of(path: Path) -> set[str]:
    """All that is written in an SVG, as words and not as outlines."""
    root = ET.fromstring(path.read_bytes())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return {"".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")}


def test_an_svg_has_every_label_as_text(tmp_path: Path, name: str) -> None:
    DRAWINGS[name](tmp_path / "picture.svg")
    assert TEXTS[name] <= texts_of(tmp_path / "picture.svg")


def test_a_png_is_whole(tmp_path: Path, name: str) -> None:
    """Every part has its checksum, and there are as many pixels as the header says, not all of them white."""
    DRAWINGS[name](tmp_path / "picture.PNG")
    data = (tmp_path / "picture.PNG").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, parts = 8, []
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack(">I", data[place + 8 + length : place + 12 + length]) == (zlib.crc32(kind + body),)
        parts.append((kind, body))
        place += 12 + length
    assert parts[-1] == (b"IEND", b"")
    width, height = struct.unpack(">II", parts[0][1][:8])
    pixels = zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT"))
    assert width == 1600
    assert len(pixels) == height * (1 + 4 * width)
    assert len(set(pixels)) > 50


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_same_numbers_make_the_same_bytes(tmp_path: Path, name: str, ending: str) -> None:
    first, second = (tmp_path / f"{which}.{ending}" for which in ("first", "second"))
    DRAWINGS[name](first)
    DRAWINGS["distance" if name == "curves" else "curves"](tmp_path / f"between.{ending}")
    DRAWINGS[name](second)
    assert first.read_bytes() == second.read_bytes()


def test_files_tell_neither_the_date_nor_the_maker(tmp_path: Path, name: str) -> None:
    for ending in ("svg", "png"):
        DRAWINGS[name](tmp_path / f"picture.{ending}")
        data = (tmp_path / f"picture.{ending}").read_bytes()
        assert b"dc:date" not in data
        assert b"Matplotlib v" not in data
        assert b"Matplotlib version" not in data


def test_missing_directories_are_made(tmp_path: Path, name: str) -> None:
    DRAWINGS[name](tmp_path / "new" / "deep" / "picture.svg")
    assert [file.name for file in (tmp_path / "new" / "deep").iterdir()] == ["picture.svg"]


def test_an_older_picture_is_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "picture.svg").write_text("old")
    DRAWINGS[name](tmp_path / "picture.svg")
    assert TEXTS[name] <= texts_of(tmp_path / "picture.svg")


# -- refused ---------------------------------------------------------------------------------------------------------


REFUSED: dict[str, tuple[Draw, str]] = {
    "no curves": (lambda path: draw_curves_by_size({}, path), "nothing to draw"),
    "a curve of no points": (lambda path: draw_curves_by_size({**CURVES, "mine": {}}, path), "mine has no points"),
    "infinite": (
        lambda path: draw_curves_by_size({**CURVES, "mine": {1000: math.inf}}, path),
        "mine has a point that is",
    ),
    "undefined": (lambda path: draw_curves_by_size({"mine": {1000: math.nan}}, path), "mine has a point that is"),
    "no panels": (lambda path: draw_accuracy_by_distance({}, path), "nothing to draw"),
    "an empty panel": (lambda path: draw_accuracy_by_distance({**PANELS, "topic": {}}, path), "nothing to draw"),
    "a line of no points": (
        lambda path: draw_accuracy_by_distance({"topic": {"mine": {}}}, path),
        "mine has no points",
    ),
    "a share of nothing": (
        lambda path: draw_accuracy_by_distance({"topic": {"mine": {"0": Proportion(math.nan, 0)}}}, path),
        "mine has a point that is",
    ),
}


@pytest.mark.parametrize(("draw", "message"), REFUSED.values(), ids=REFUSED)
def test_nothing_to_draw_is_refused(tmp_path: Path, draw: Draw, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        draw(tmp_path / "new" / "picture.svg")
    assert "picture.svg" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["picture", "picture.pdf", "picture.svg.gz", ".svg"])
def test_other_formats_are_refused(tmp_path: Path, name: str, file: str) -> None:
    with pytest.raises(DataError, match=r"end the name in \.svg or \.png"):
        DRAWINGS[name](tmp_path / file)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_what_was_there(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full when half of it is written."""
    from matplotlib.figure import Figure

    def half(self: Figure, path: Path, **_: object) -> None:
        path.write_text("half of it")
        raise OSError(28, "No space left on device")

    (tmp_path / "picture.svg").write_text("old")
    monkeypatch.setattr(Figure, "savefig", half)
    with pytest.raises(DragomanError, match=r"picture\.svg: could not be written \(No space left on device\)"):
        DRAWINGS[name](tmp_path / "picture.svg")
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"picture.svg": "old"}


# -- where labels stand ----------------------------------------------------------------------------------------------

PLACES = st.lists(st.floats(0, 10), min_size=1, max_size=12)


@given(PLACES, st.floats(0.01, 2))
def test_labels_keep_their_order_and_distance(places: list[float], gap: float) -> None:
    found = spread_labels(places, gap)
    in_order = [found[number] for number in sorted(range(len(places)), key=lambda number: places[number])]
    assert all(later - earlier >= gap - 1e-9 for earlier, later in pairwise(in_order))
    assert math.fsum(found) == pytest.approx(math.fsum(places), abs=1e-6)  # nowhere all to one side


@given(PLACES)
def test_labels_with_room_stay_where_they_are(places: list[float]) -> None:
    apart = sorted(set(places))
    gap = min((later - earlier for earlier, later in pairwise(apart)), default=1.0)
    assert spread_labels(apart, 0.99 * gap) == pytest.approx(apart, abs=1e-9)


# -- at rest ---------------------------------------------------------------------------------------------------------


AT_REST = """
import sys
from pathlib import Path
import dragoman.cli.main
from dragoman.report.figures import learning_curves
print("matplotlib" in sys.modules)
import matplotlib
before = matplotlib.rcParams.copy()
learning_curves({"mine": {1000: 1.0}}, Path(sys.argv[1]))
print("matplotlib.pyplot" in sys.modules, matplotlib.rcParams.copy() == before)
"""


def test_matplotlib_waits_until_it_is_needed_looks_for_no_screen_and_keeps_its_settings(tmp_path: Path) -> None:
    command = [sys.executable, "-c", AT_REST, str(tmp_path / "picture.png")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["False", "False", "True"]
