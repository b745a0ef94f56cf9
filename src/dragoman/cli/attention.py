"""dragoman attention"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import info
from dragoman.cli.option_groups import argument, option
from dragoman.cli.options import BeamSize, Length, Picture, Translators, check_picture, check_utf8_argument
from dragoman.core.defaults import DEFAULT_BEAM_SIZE, DEFAULT_LENGTH, MAX_TOKENS
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.models.translation import AttentionMatrix, Translation

WIDTH = 100  # columns, if the output is not a terminal
TITLE_WIDTH = 60  # characters of a figure's title


def attention(
    models: Translators,
    sentence: Annotated[str, argument("SENTENCE", "The source sentence, in quotes.")],
    target: Annotated[str | None, option("--target TEXT", "Show the attention for this translation instead.")] = None,
    units: Annotated[bool, option("--units", "Show tokens of the model instead of words.")] = False,
    picture: Picture = None,
    beam_size: BeamSize = DEFAULT_BEAM_SIZE,
    length: Length = DEFAULT_LENGTH,
) -> None:
    """Draw the attention of a translator for one sentence.

    Each row is a word of the translation, and shows how its attention is distributed over the words of the source, in
    percent. </s> is the end of the sentence. The attention of a word is the sum over its subwords; for translators of
    characters, tokens are shown. A translator of trees attends to nodes: a column is then a phrase.

    \b
    Example:
      dragoman attention de-en "ein hund bellt ."
      dragoman attention de-en "ein hund bellt ." --target "a dog barks ." --picture hund.svg
    """
    from dragoman.combine.load_translators import load_translators, require_attention

    check_picture(picture)
    _check_arguments(models, sentence, target)
    model = load_translators(models)
    require_attention(model, models[0])
    if target is not None:
        if len(model.target.segmenter.segment(target)) > MAX_TOKENS:
            raise DataError(f"the translation has more than {MAX_TOKENS:,} tokens; give a shorter one")
        translation = model.force_decode([sentence], [target])[0]
    else:
        translation = model.translate(sentence, beam_size, length=length)[0]
    matrix = model.attention_matrix(translation, tokens=units or model.source.segmenter.kind == "char")
    if matrix is None:
        raise DataError("the sentence is too long to be translated at once; give a shorter one")
    _print(translation, matrix)
    if picture is not None:
        _draw(sentence, translation, matrix, picture)


def _check_arguments(models: list[Path], sentence: str, target: str | None) -> None:
    for path in models[1:]:
        if not path.exists():
            remedy = 'put the sentence in quotes, such as: dragoman attention DIR "ein hund bellt ."'
            raise DataError(f"{path}: no such model; {remedy}")
    if not sentence.strip():
        raise DataError("the sentence is blank; give one with words")
    for text in (sentence, target or ""):
        check_utf8_argument(text, "sentence")
        if "\n" in text:
            raise DataError("the sentence contains a line break; give one sentence")


def _print(translation: Translation, attention: AttentionMatrix) -> None:
    from dragoman.report.attention import attention_text
    from dragoman.report.tables import printable

    is_terminal = sys.stdout.isatty()
    color = is_terminal and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size((WIDTH, 24)).columns if is_terminal else WIDTH
    print(printable(translation.text) + "\n")
    print(attention_text(attention.target, attention.source, attention.matrix, width, color))
    unfinished = "" if translation.finished else ", cut off before its end"
    print(f"\nlog P(E | F) = {translation.log_prob:.4f}{unfinished}")


def _draw(sentence: str, translation: Translation, attention: AttentionMatrix, path: Path) -> None:
    from dragoman.report.attention import draw_attention
    from dragoman.report.tables import printable, truncate

    title = truncate(printable(translation.text), TITLE_WIDTH)
    draw_attention(attention.target, attention.source, attention.matrix, path, title=title)
    info(f"{path}: the attention of {translation.text!r} to {sentence!r}")
