"""dragoman inspect gradients"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.inspection import InspectedText, Picture, check_picture, load_recurrent, scan_text
from dragoman.cli.messages import info, status, suggest_command
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.report.networks import GradientNorms


def inspect_gradients(
    models: options.Models,
    text: options.Text,
    field: options.Field = None,
    words: Annotated[
        int,
        typer.Option("--words", min=1, metavar="N", help="How far back; sentences must have more words than this."),
    ] = 20,
    picture: Picture = None,
) -> None:
    """Measure how far back gradients reach.

    The loss of a word, the one after the first N words of a sentence, is sent back through the states by which the
    model came there. Printed is the norm of the gradient by the state 0, 1, 2, ... words earlier (h, with c where
    there is one, of all layers), the mean over all sentences that are long enough. Where it becomes very small,
    training cannot learn from words so far back.

    Each model has two columns: as it is, and as it was before training, when its layers were random.

    \b
    Example:
      dragoman inspect gradients rnn gru lstm --text test.txt --words 20 --picture gradients.svg
    """
    check_picture(picture)
    _check_names(models)
    with status("sending gradients back"):
        read = scan_text(text, options.field_for(text, field))
        found = {str(path): _measure(path, read, words) for path in models}
    if picture is not None:
        _draw(found, picture)
    _print(found)
    for name, reach in found.items():
        left, before = (norms[-1] / norms[0] if norms[0] else 0.0 for norms in reach)
        info(f"{name}: {left:.2g} of the gradient is left {words - 1} words back; before training, {before:.2g}")
    if picture is None:
        same = ("--text", text, *options.field_arguments(field), "--words", str(words))
        suggest_command("inspect", "gradients", *models, *same, "--picture", "gradients.svg")


def _check_names(models: list[Path]) -> None:
    for number, path in enumerate(models):
        if path in models[:number]:
            raise DataError(f"{path}: named twice; name each model once")


def _measure(path: Path, text: InspectedText, words: int) -> GradientNorms:
    """A model and its like before training."""
    from dragoman.models.inspection import gradient_by_distance, untrained_copy
    from dragoman.report.networks import GradientNorms

    model = load_recurrent(path)
    corpus = text.by(model)
    return GradientNorms(*(gradient_by_distance(one, corpus, words) for one in (model, untrained_copy(model))))


def _print(found: Mapping[str, GradientNorms]) -> None:
    headers = ["words back", *(f"{name}{when}" for name in found for when in ("", ", untrained"))]
    columns = [norms.tolist() for reach in found.values() for norms in reach]
    rows = [[str(back), *(f"{norm:.3g}" for norm in row)] for back, row in enumerate(zip(*columns, strict=True))]
    if sys.stdout.isatty():
        from dragoman.report.tables import format_table

        print(format_table(headers, rows))
    else:
        print("\n".join("\t".join(row) for row in [headers, *rows]))


def _draw(found: Mapping[str, GradientNorms], path: Path) -> None:
    """By the directories' own names, where these tell them apart."""
    from dragoman.report.networks import draw_gradients

    names = [Path(name).name for name in found]
    short = dict(zip(names, found.values(), strict=True)) if len(set(names)) == len(names) else found
    draw_gradients(short, path, title="How far back gradients reach")
    info(f"{path}: how far back gradients reach")
