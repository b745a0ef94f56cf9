"""dragoman inspect cells"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.inspection import load_recurrent, read_inspected_text
from dragoman.cli.messages import info, suggest_command
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.models.inspection import Activations

POSITION = "position"  # the same as in dragoman.models.inspection, which takes long to import


def inspect_cells(
    model: options.Model,
    text: options.Text = "-",
    field: options.Field = None,
    cells: Annotated[str, options.option("--cells", metavar="N,N,...", help="Cells to show, counted from 0.")] = "",
    follow: Annotated[
        str | None,
        options.option(
            "--follow",
            metavar="WORD",
            help="Show the cells with the highest correlation with: whether this word occurred in the sentence so far "
            "or, for `position`, the position in the sentence. Default: position, unless --cells is given.",
        ),
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="Number of cells shown by --follow.")] = 5,
    part: Annotated[
        str, typer.Option("--part", metavar="h|c", help="Part of the state: h, or the memory c of an LSTM.")
    ] = "h",
    layer: Annotated[
        int | None, options.option("--layer", metavar="N", help="Layer, counted from 1. Default: the last.")
    ] = None,
    picture: options.Picture = None,
) -> None:
    """Print the values of chosen cells after each word.

    The state of a recurrent model is its only memory of the sentence. Some cells can be interpreted: one may count the
    words, another may be active after `he`. --follow finds such cells by their correlation over the whole text, which
    is printed on standard error; use a few hundred sentences.

    Prints rows `word TAB value TAB value ...` with the numbers of the cells above, and an empty line between sentences.
    A picture shows the first sentences that fit (with a word: those that contain it), positive values in red and
    negative ones in blue.

    \b
    Example:
      dragoman inspect cells lstm --text test.txt --follow position --part c --picture cells.svg
      dragoman inspect cells lstm --text test.txt --follow he --most 3
      echo "she sees herself" | dragoman inspect cells lstm --cells 3,17
    """
    from dragoman.models.inspection import activations, correlated_cells

    options.check_picture(picture)
    if cells and follow is not None:
        raise DataError("--cells and --follow both choose cells; remove one of them")
    chosen = options.parse_numbers("--cells", cells, int, "3,17")
    loaded = load_recurrent(model)
    _check_cells(chosen, loaded.settings.hidden)
    values = activations(loaded, read_inspected_text(text, field).encode(loaded), part, layer)
    names = {cell: f"cell {cell}" for cell in chosen}
    if not cells:
        follow = follow or POSITION
        names = {
            cell: f"cell {cell} follows {follow}: correlation {correlation:.2f}"
            for cell, correlation in correlated_cells(values, follow, most)
        }
    if picture is not None:
        _draw(values, names, follow, picture)
    for name in names.values() if not cells else ():
        info(name)
    print("\n".join(_rows(values, list(names))))
    suggest_command("inspect", "saliency", model, " ".join(next(filter(None, values.words))))


def _check_cells(cells: tuple[int, ...], hidden: int) -> None:
    for number, cell in enumerate(cells):
        if not 0 <= cell < hidden:
            raise DataError(f"--cells {cell}: a layer has the cells 0 to {hidden - 1}; choose from these")
        if cell in cells[:number]:
            raise DataError(f"--cells {cell}: named twice; name each cell once")


def _rows(values: Activations, cells: list[int]) -> Iterator[str]:
    yield "\t".join(["word", *map(str, cells)])
    for number, (words, states) in enumerate(zip(values.words, values.values, strict=True)):
        if number:
            yield ""
        for word, state in zip(words, states[:, cells].tolist(), strict=True):
            yield "\t".join([word, *(f"{value:.6f}" for value in state)])


def _draw(values: Activations, names: Mapping[int, str], follow: str | None, path: Path) -> None:
    from dragoman.report.networks import MAX_WORDS, draw_cells

    sentences = _fitting_sentences(values, follow, MAX_WORDS)
    title = f"{values.part} of layer {values.layer} after each word"
    by_cell = {name: [values.of_cell(cell)[number] for number in sentences] for cell, name in names.items()}
    draw_cells([values.words[number] for number in sentences], by_cell, path, title=title)
    info(f"{path}: the values in {len(sentences)} of {len(values.words):,} sentences")


def _fitting_sentences(values: Activations, follow: str | None, max_words: int) -> list[int]:
    """Return the first sentences with at most `max_words` words in total; those with the word that is followed."""
    import numpy as np

    from dragoman.data.ranges import split_by_size

    is_any = follow in (None, POSITION)
    lengths = np.array([len(words) for words in values.words])
    candidates = [number for number, words in enumerate(values.words) if words and (is_any or follow in words)]
    fitting = [number for number in candidates if lengths[number] <= max_words] or candidates
    return next(split_by_size(np.array(fitting), lengths, max_words)).tolist()
