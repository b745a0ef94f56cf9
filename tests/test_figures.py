"""Figures: valid files that contain every label, the same bytes every time, and nothing left behind on failure."""

from __future__ import annotations

import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import DataError
from dragoman.core import errors
from dragoman.core.errors import DragomanError
from dragoman.report.charts import (
    FLOOR_LABEL,
    GUESSING_LABEL,
    Proportion,
    draw_accuracy_by_distance,
    draw_curves_by_size,
    draw_ladder,
)
from dragoman.report.figures import spread_labels

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
    "curves": lambda path: draw_curves_by_size(CURVES, path, title="Learning <curves>"),
    "distance": lambda path: draw_accuracy_by_distance(PANELS, path, title="Near & far"),
}
TEXTS = {
    "curves": {*CURVES, "1,000", "2,000", FLOOR_LABEL, "Learning <curves>", "sentences of training text"},
    "distance": {*PANELS, "order 2", "order 5", "0", "1-3", "16+", "50%", "Near & far", GUESSING_LABEL},
}


@pytest.fixture(params=DRAWINGS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def texts_of(path: Path) -> set[str]:
    """Return all texts of an SVG."""
    root = ET.fromstring(path.read_bytes())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return {"".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")}


def test_svg_contains_every_label_as_text(tmp_path: Path, name: str) -> None:
    DRAWINGS[name](tmp_path / "figure.svg")
    assert TEXTS[name] <= texts_of(tmp_path / "figure.svg")


@pytest.mark.parametrize("extension", ["svg", "png"])
def test_files_are_reproducible(tmp_path: Path, name: str, extension: str) -> None:
    first, second = (tmp_path / f"{number}.{extension}" for number in (1, 2))
    DRAWINGS[name](first)
    DRAWINGS["distance" if name == "curves" else "curves"](tmp_path / f"between.{extension}")
    DRAWINGS[name](second)
    assert first.read_bytes() == second.read_bytes()
    assert b"dc:date" not in first.read_bytes() and b"Matplotlib v" not in first.read_bytes()


def test_missing_directories_are_created_and_older_figures_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "figure.svg"
    DRAWINGS["curves"](path)
    DRAWINGS["distance"](path)
    assert TEXTS["distance"] <= texts_of(path)
    assert [file.name for file in path.parent.iterdir()] == ["figure.svg"]


def test_ladder_omits_infinite_perplexities_and_undefined_shares(tmp_path: Path) -> None:
    shares = {"kn-1": {"topic": 0.25, "article": math.nan}, "kn-2": {"topic": 0.75, "article": 1.0}}
    draw_ladder({"kn-1": math.inf, "kn-2": 20.0}, 10.0, shares, tmp_path / "figure.svg", title="a <title>")
    texts = texts_of(tmp_path / "figure.svg")
    assert {"kn-1", "kn-2", "topic", "article", "25", "75", "100", "20.0", "the floor: 10.0", "a <title>"} <= texts
    assert not {"inf", "nan", "infinite"} & texts


# -- errors ----------------------------------------------------------------------------------------------------------


ERRORS: dict[str, tuple[Draw, str]] = {
    "no curves": (lambda path: draw_curves_by_size({}, path), "nothing to draw"),
    "no points": (lambda path: draw_curves_by_size({**CURVES, "new": {}}, path), "new has no points"),
    "infinite": (
        lambda path: draw_curves_by_size({**CURVES, "new": {1000: math.inf}}, path),
        "new has a point that is",
    ),
    "no panels": (lambda path: draw_accuracy_by_distance({}, path), "nothing to draw"),
    "empty panel": (lambda path: draw_accuracy_by_distance({**PANELS, "topic": {}}, path), "nothing to draw"),
    "undefined": (
        lambda path: draw_accuracy_by_distance({"topic": {"new": {"0": Proportion(math.nan, 0)}}}, path),
        "new has a point that is",
    ),
    "only infinite perplexities": (lambda path: draw_ladder({"kn-1": math.inf}, 10.0, {}, path), "no points"),
}


@pytest.mark.parametrize(("draw", "message"), ERRORS.values(), ids=ERRORS)
def test_figures_without_drawable_values_are_errors(tmp_path: Path, draw: Draw, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        draw(tmp_path / "new" / "figure.svg")
    assert "figure.svg" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["figure", "figure.svg.gz"])
def test_other_formats_are_errors(tmp_path: Path, file: str) -> None:
    with pytest.raises(DataError, match=r"end the name in \.svg or \.png"):
        DRAWINGS["curves"](tmp_path / file)
    assert list(tmp_path.iterdir()) == []


def test_missing_matplotlib_is_an_error_that_says_how_to_install_it(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda package: None)
    with pytest.raises(DataError, match=r"pip install 'dragoman\[plot\]'"):
        DRAWINGS[name](tmp_path / "figure.svg")


def test_failed_write_keeps_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    def write_half(self: Figure, path: Path, **_: object) -> None:
        path.write_text("half of it")
        raise OSError(28, "No space left on device")

    (tmp_path / "figure.svg").write_text("old")
    monkeypatch.setattr(Figure, "savefig", write_half)
    with pytest.raises(DragomanError, match=r"figure\.svg: could not be written \(No space left on device\)"):
        DRAWINGS["curves"](tmp_path / "figure.svg")
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"figure.svg": "old"}


# -- positions of labels ---------------------------------------------------------------------------------------------

POSITIONS = st.lists(st.floats(0, 10), min_size=1, max_size=12)


@given(POSITIONS, st.floats(0.01, 2))
def test_labels_keep_their_order_and_distance(positions: list[float], gap: float) -> None:
    spread = spread_labels(positions, gap)
    in_order = [spread[number] for number in sorted(range(len(positions)), key=lambda number: positions[number])]
    assert all(later - earlier >= gap - 1e-9 for earlier, later in pairwise(in_order))
    assert math.fsum(spread) == pytest.approx(math.fsum(positions), abs=1e-6)


@given(POSITIONS)
def test_labels_with_enough_room_are_not_moved(positions: list[float]) -> None:
    distinct = sorted(set(positions))
    gap = min((later - earlier for earlier, later in pairwise(distinct)), default=1.0)
    assert spread_labels(distinct, 0.99 * gap) == pytest.approx(distinct, abs=1e-9)


# -- imports ---------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
from pathlib import Path
import dragoman.cli.main
from dragoman.report.charts import draw_curves_by_size
print("matplotlib" in sys.modules)
import matplotlib
before = matplotlib.rcParams.copy()
draw_curves_by_size({"new": {1000: 1.0}}, Path(sys.argv[1]))
print("matplotlib.pyplot" in sys.modules, matplotlib.rcParams.copy() == before)
"""


def test_matplotlib_is_imported_late_without_pyplot_and_keeps_its_settings(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "figure.png")]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == ["False", "False", "True"]
