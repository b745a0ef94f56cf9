"""dragoman inspect saliency"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.inspection import Picture, check_picture, load_recurrent
from dragoman.cli.messages import info, suggest_command
from dragoman.cli.next import check_utf8_argument
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.models.inspection import Saliency

BAR = 40  # columns of the longest bar


def inspect_saliency(
    model: options.Model,
    sentence: Annotated[str, typer.Argument(help="A sentence, in quotes.", show_default=False)],
    word: Annotated[
        str | None,
        typer.Option(
            "--word",
            metavar="WORD",
            help="The prediction to look at, where the word comes last; </s> is the end. Default: the last word.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All predictions: a row each, a column for each word read.")
    ] = False,
    picture: Picture = None,
) -> None:
    """Print how much a prediction depends on each word.

    That is the norm of the gradient of log P(word | words before) by the vector that stands for each of them: how much
    it would change if that vector did. Whether `himself` hangs on `he`, or on the word beside it, shows whether the
    model has found out what the sentence is about.

    With --all, a row has 0 under words that were not yet read. A picture shows all predictions, each row scaled by its
    largest value.

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
        raise DataError(
            'the sentence is empty; put one in quotes, such as: dragoman inspect saliency DIR "he sees her"'
        )
    if every and word is not None:
        raise DataError("--all and --word: one shows all predictions, the other one; leave one of them out")
    found = saliency(load_recurrent(model), sentence)
    row = _row(found, word)
    if picture is not None:
        _draw(found, picture)
    print(_matrix(found) if every else _told(found, row))
    if picture is None:
        suggest_command("inspect", "saliency", model, sentence, "--picture", "saliency.svg")


def _row(found: Saliency, word: str | None) -> int:
    """Which prediction is asked about: the last word, or the last time that a word occurs."""
    if word is None:
        return len(found.predicted) - 2
    rows = [row for row, predicted in enumerate(found.predicted) if predicted == word]
    if not rows:
        raise DataError(f"--word {word!r}: not in the sentence; its words are {' '.join(found.predicted)}")
    return rows[-1]


def _told(found: Saliency, row: int) -> str:
    """The words before a prediction, with bars on a terminal."""
    from dragoman.report.tables import format_table

    read, norms = found.read[: row + 1], found.norms[row, : row + 1].tolist()
    info(f"what the prediction of {found.predicted[row]} hangs on:")
    if not sys.stdout.isatty():
        return "\n".join(f"{word}\t{norm:.6g}" for word, norm in zip(read, norms, strict=True))
    longest = max(norms) or 1.0
    rows = [(word, f"{norm:.4f}", "█" * round(BAR * norm / longest)) for word, norm in zip(read, norms, strict=True)]
    return format_table(["word", "gradient", ""], rows)


def _matrix(found: Saliency) -> str:
    rows = [
        [word, *(f"{norm:.6g}" for norm in norms)]
        for word, norms in zip(found.predicted, found.norms.tolist(), strict=True)
    ]
    return "\n".join("\t".join(row) for row in [["predicted", *found.read], *rows])


def _draw(found: Saliency, path: Path) -> None:
    from dragoman.report.networks import draw_saliency

    draw_saliency(found.read, found.predicted, found.norms, path, title="Which words a prediction hangs on")
    info(f"{path}: which words each prediction hangs on")
