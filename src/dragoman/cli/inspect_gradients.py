"""dragoman inspect gradients"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.inspection import InspectedText, load_recurrent, read_inspected_text
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
        typer.Option("--words", min=1, metavar="N", help="Number of words back; shorter sentences are not used."),
    ] = 20,
    picture: options.Picture = None,
) -> None:
    """Measure how far back gradients reach.

    The loss of the word after the first N words of a sentence is propagated back. Prints the norm of the gradient with
    respect to the state 0, 1, 2, ... words earlier (h, and c if there is one, of all layers), as the mean over all
    sentences that are long enough. If it becomes very small (vanishing gradient), training cannot learn from words that
    far back.

    Each model has two columns: after training, and before training with random parameters.

    \b
    Example:
      dragoman inspect gradients rnn gru lstm --text test.txt --words 20 --picture gradients.svg
    """
    options.check_picture(picture)
    for number, path in enumerate(models):
        if path in models[:number]:
            raise DataError(f"{path}: named twice; name each model once")
    with status("computing gradients"):
        inspected = read_inspected_text(text, field)
        results = {str(path): _measure(path, inspected, words) for path in models}
    if picture is not None:
        _draw(results, picture)
    print(_format(results))
    for name, reach in results.items():
        trained, untrained = (norms[-1] / norms[0] if norms[0] else 0.0 for norms in reach)
        info(f"{name}: {trained:.2g} of the gradient is left {words - 1} words back; before training, {untrained:.2g}")
    if picture is None:
        arguments = ("--text", text, *options.field_arguments(field), "--words", str(words))
        suggest_command("inspect", "gradients", *models, *arguments, "--picture", "gradients.svg")


def _measure(path: Path, text: InspectedText, words: int) -> GradientNorms:
    """Return the gradients of a model after and before training."""
    from dragoman.models.inspection import gradient_by_distance, untrained_copy
    from dragoman.report.networks import GradientNorms

    model = load_recurrent(path)
    corpus = text.encode(model)
    return GradientNorms(*(gradient_by_distance(each, corpus, words) for each in (model, untrained_copy(model))))


def _format(results: Mapping[str, GradientNorms]) -> str:
    from dragoman.report.tables import format_table

    headers = ["words back", *(f"{name}{suffix}" for name in results for suffix in ("", ", untrained"))]
    columns = [norms.tolist() for reach in results.values() for norms in reach]
    rows = [[str(back), *(f"{norm:.3g}" for norm in row)] for back, row in enumerate(zip(*columns, strict=True))]
    if sys.stdout.isatty():
        return format_table(headers, rows)
    return "\n".join("\t".join(row) for row in [headers, *rows])


def _draw(results: Mapping[str, GradientNorms], path: Path) -> None:
    from dragoman.report.networks import draw_gradients

    named = dict(zip(options.short_names(list(results)), results.values(), strict=True))
    draw_gradients(named, path, title="How far back gradients reach")
    info(f"{path}: how far back gradients reach")
