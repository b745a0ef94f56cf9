"""dragoman inspect saliency"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.inspection import load_recurrent
from dragoman.cli.messages import info, suggest_command
from dragoman.cli.options import Model, Picture, argument, check_picture, check_utf8_argument, option
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.models.inspection import Saliency

BAR_WIDTH = 40  # columns of the longest bar


def inspect_saliency(
    model: Model,
    sentence: Annotated[str, argument("SENTENCE", "A sentence, in quotes.")],
    word: Annotated[
        str | None,
        option(
            "--word",
            metavar="WORD",
            help="The predicted word, at its last occurrence; </s> is the end. Default: the last word.",
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Print all predictions: one row each, one column for each word before.")
    ] = False,
    picture: Picture = None,
) -> None:
    """Print how much a prediction depends on each word.

    This is the norm of the gradient of log P(word | words before) with respect to the vector of each word before.
    Whether `himself` depends on `he` or on the adjacent word shows what the model has learned about the sentence.

    With --all, words that were not yet read have 0. A picture shows all predictions, each row scaled by its highest
    value.

    \b
    Example:
      dragoman inspect saliency lstm "he sees himself"
      dragoman inspect saliency lstm "he sees himself in the mirror" --word himself --picture himself.svg
      dragoman inspect saliency lstm "he sees himself" --all > matrix.tsv
    """
    from dragoman.models.inspection import saliency

    check_picture(picture)
    check_utf8_argument(sentence, "sentence")
    if not sentence.split():
        example = 'dragoman inspect saliency DIR "he sees her"'
        raise DataError(f"the sentence is empty; give one in quotes, such as: {example}")
    if show_all and word is not None:
        raise DataError("--all prints all predictions and --word one of them; remove one of the options")
    result = saliency(load_recurrent(model), sentence)
    row = _row(result, word)
    if picture is not None:
        _draw(result, picture)
    if show_all:
        print(_format_matrix(result))
    else:
        info(f"the prediction of {result.predicted[row]} depends on:")
        print(_format_row(result, row))
    if picture is None:
        suggest_command("inspect", "saliency", model, sentence, "--picture", "saliency.svg")


def _row(result: Saliency, word: str | None) -> int:
    """Return the row of the last word, or of the last occurrence of a word."""
    if word is None:
        return len(result.predicted) - 2
    rows = [row for row, predicted in enumerate(result.predicted) if predicted == word]
    if not rows:
        raise DataError(f"--word {word!r}: not in the sentence; its words are {' '.join(result.predicted)}")
    return rows[-1]


def _format_row(result: Saliency, row: int) -> str:
    """Return the words before a prediction with their gradients; with bars on a terminal."""
    from dragoman.report.tables import format_table

    words, norms = result.read[: row + 1], result.norms[row, : row + 1].tolist()
    if not sys.stdout.isatty():
        return "\n".join(f"{word}\t{norm:.6g}" for word, norm in zip(words, norms, strict=True))
    scale = BAR_WIDTH / (max(norms) or 1.0)
    rows = [(word, f"{norm:.4f}", "█" * round(scale * norm)) for word, norm in zip(words, norms, strict=True)]
    return format_table(["word", "gradient", ""], rows)


def _format_matrix(result: Saliency) -> str:
    rows = [
        [word, *(f"{norm:.6g}" for norm in norms)]
        for word, norms in zip(result.predicted, result.norms.tolist(), strict=True)
    ]
    return "\n".join("\t".join(row) for row in [["predicted", *result.read], *rows])


def _draw(result: Saliency, path: Path) -> None:
    from dragoman.report.networks import draw_saliency

    draw_saliency(result.read, result.predicted, result.norms, path, title="Which words a prediction depends on")
    info(f"{path}: which words each prediction depends on")
