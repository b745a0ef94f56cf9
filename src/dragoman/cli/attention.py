"""dragoman attention"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.inspection import Picture, check_picture
from dragoman.cli.messages import info
from dragoman.cli.next import check_utf8_argument
from dragoman.cli.translator_options import (
    BeamSize,
    Length,
    Translators,
    attention_matrix,
    load_translators,
    reads_characters,
    require_attention,
)
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.models.translation import AttentionMatrix, BaseTranslator, Translation

WIDTH = 100  # columns, where there is no terminal to ask
TITLE = 60  # columns of a picture's title


def attention(
    models: Translators,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="In quotes.", show_default=False)],
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="TEXT", help="Draw it for this translation rather than for its own.", show_default=False
        ),
    ] = None,
    units: Annotated[bool, typer.Option("--units", help="The units of the model instead of words.")] = False,
    picture: Picture = None,
    beam_size: BeamSize = 5,
    length: Length = "norm",
) -> None:
    """Draw the attention of a translator for one sentence.

    A row for each word of the translation: how its attention is spread over the words of the source, which adds up to
    100%. </s> is the end of the sentence. Of subwords, a word gets what its pieces get; if the source is read letter by
    letter, units are shown. A translator of trees looks at their nodes: a column is then a phrase.

    \b
    Example:
      dragoman attention de-en "ein hund bellt ."
      dragoman attention de-en "ein hund bellt ." --target "a dog barks ." --picture hund.svg
    """
    check_picture(picture)
    for given in (sentence, target or ""):
        check_utf8_argument(given, "sentence")
    _check(models, sentence, target)
    model = load_translators(models)
    require_attention(model, models[0])
    told = _told(model, sentence, target, beam_size, length)
    found = attention_matrix(model, told, units=units or reads_characters(model))
    if found is None:
        raise DataError("the sentence is so long that it is translated in pieces; give a shorter one")
    _print(told, found)
    if picture is not None:
        _draw(sentence, told, found, picture)


def _check(models: list[Path], sentence: str, target: str | None) -> None:
    missing = [path for path in models[1:] if not path.exists()]
    if missing:
        remedy = 'put the sentence in quotes, such as: dragoman attention DIR "ein hund bellt ."'
        raise DataError(f"{missing[0]}: no such model; {remedy}")
    if not sentence.strip():
        raise DataError("the sentence is blank; give one with words")
    if any("\n" in given for given in (sentence, target or "")):
        raise DataError("the sentence contains a line break; give one sentence")


def _told(model: BaseTranslator, sentence: str, target: str | None, beam_size: int, length: str) -> Translation:
    """Its own translation, or the one that is given (forced decoding)."""
    if target is not None:
        return model.force_decode([sentence], [target])[0]
    return model.translate(sentence, beam_size, length=length)[0]


def _print(told: Translation, found: AttentionMatrix) -> None:
    from dragoman.report.attention import attention_text
    from dragoman.report.tables import printable

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    print(printable(told.text) + "\n")
    print(attention_text(found.target, found.source, found.matrix, width, colour))
    print(f"\nlog P(E | F) = {told.log_prob:.4f}{'' if told.finished else ', cut off before its end'}")


def _draw(sentence: str, told: Translation, found: AttentionMatrix, path: Path) -> None:
    from dragoman.report.attention import draw_attention
    from dragoman.report.tables import printable, truncate

    draw_attention(found.target, found.source, found.matrix, path, title=truncate(printable(told.text), TITLE))
    info(f"{path}: the attention of {told.text!r} to {sentence!r}")
