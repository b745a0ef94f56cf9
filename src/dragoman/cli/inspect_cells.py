"""dragoman inspect cells"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.inspection import Picture, check_picture, load_recurrent, scan_text
from dragoman.cli.messages import info, suggest_command
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.models.inspection import Activations

POSITION = "position"  # as in models.insight, which is not imported before a model is asked for


def inspect_cells(
    model: options.Model,
    text: options.Text = "-",
    field: options.Field = None,
    cells: Annotated[
        str, typer.Option("--cells", metavar="N,N,...", help="These cells; the first is 0.", show_default=False)
    ] = "",
    follow: Annotated[
        str | None,
        typer.Option(
            "--follow",
            metavar="WORD",
            help="The cells that follow this best: whether the word has been read in the sentence or, for `position`, "
            "how far the sentence is. Default: position, unless there are --cells.",
            show_default=False,
        ),
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="How many cells that follow it.")] = 5,
    part: Annotated[
        str, typer.Option("--part", metavar="h|c", help="Of the state: h, or the memory c of an LSTM.")
    ] = "h",
    layer: Annotated[
        int | None,
        typer.Option("--layer", metavar="N", help="Which layer, from 1. Default: the last.", show_default=False),
    ] = None,
    picture: Picture = None,
) -> None:
    """Print the values of chosen cells after each word.

    A recurrent model has nothing but its state to remember a sentence by. Some of its cells can be understood: one
    counts the words, another is switched on by `he` and stays on. --follow finds them by their correlation over the
    whole text, which is said on standard error; give it a few hundred sentences.

    Prints a row `word TAB value TAB value ...` a word, the cells' numbers above, and an empty line between sentences.
    A picture has the first sentences that there is room for (those with the word, of a word), red for positive and
    blue for negative values.

    \b
    Example:
      dragoman inspect cells lstm --text test.txt --follow position --part c --picture cells.svg
      dragoman inspect cells lstm --text test.txt --follow he --most 3
      echo "she sees herself" | dragoman inspect cells lstm --cells 3,17
    """
    from dragoman.models.inspection import activations

    check_picture(picture)
    if cells and follow is not None:
        raise DataError("--cells and --follow: both say which cells; leave one of them out")
    wanted = options.parse_numbers("--cells", cells, int, "3,17")
    loaded = load_recurrent(model)
    _check_cells(wanted, loaded.settings.hidden)
    found = activations(loaded, scan_text(text, options.field_for(text, field)).by(loaded), part, layer)
    follow = POSITION if follow is None and not cells else follow
    named = _follow(found, follow, most) if follow is not None else {cell: f"cell {cell}" for cell in wanted}
    if picture is not None:
        _draw(found, named, follow, picture)
    for name in named.values() if follow is not None else ():
        info(name)
    print("\n".join(_tsv(found, list(named))))
    suggest_command("inspect", "saliency", model, " ".join(next(filter(None, found.words))))


def _check_cells(cells: tuple[int, ...], hidden: int) -> None:
    for number, cell in enumerate(cells):
        if not 0 <= cell < hidden:
            raise DataError(f"--cells {cell}: a layer has the cells 0 to {hidden - 1}; name some of these")
        if cell in cells[:number]:
            raise DataError(f"--cells {cell}: named twice; name each cell once")


def _follow(found: Activations, what: str, most: int) -> dict[int, str]:
    """The cells that follow something, and what to call them."""
    from dragoman.models.inspection import correlated_cells

    return {
        cell: f"cell {cell} follows {what}: correlation {correlation:.2f}"
        for cell, correlation in correlated_cells(found, what, most)
    }


def _tsv(found: Activations, cells: list[int]) -> Iterator[str]:
    """Rows of a word and its values."""
    yield "\t".join(["word", *map(str, cells)])
    for number, (words, values) in enumerate(zip(found.words, found.values, strict=True)):
        if number:
            yield ""
        for word, held in zip(words, values[:, cells].tolist(), strict=True):
            yield "\t".join([word, *(f"{value:.6f}" for value in held)])


def _draw(found: Activations, named: Mapping[int, str], follow: str | None, path: Path) -> None:
    from dragoman.report.networks import MAX_WORDS, draw_cells

    chosen = _telling(found, follow, MAX_WORDS)
    title = f"{found.part} of layer {found.layer} after each word"
    held = {name: [found.of_cell(cell)[number] for number in chosen] for cell, name in named.items()}
    draw_cells([found.words[number] for number in chosen], held, path, title=title)
    info(f"{path}: what they hold in {len(chosen)} of {len(found.words):,} sentences")


def _telling(found: Activations, follow: str | None, most: int) -> list[int]:
    """The first sentences that show something, those with the word that is followed, up to so many words."""
    import numpy as np

    from dragoman.data.ranges import split_by_size

    everywhere = follow in (None, POSITION)
    lengths = np.array([len(words) for words in found.words])
    telling = [number for number, words in enumerate(found.words) if words and (everywhere or follow in words)]
    fitting = [number for number in telling if lengths[number] <= most] or telling
    return next(split_by_size(np.array(fitting), lengths, most)).tolist()
