"""dragoman units"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.option_groups import option
from dragoman.cli.options import Field, InputText, Model
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.segmenters import Segmenter


def units(
    model: Model,
    text: InputText = "-",
    field: Field = None,
    source: Annotated[
        bool, option("--source", "Use the tokens of the source language, not those of the target.")
    ] = False,
    join: Annotated[bool, option("--join", "Join tokens to text instead.")] = False,
) -> None:
    """Split lines into the tokens of a model.

    Prints the tokens of each line, separated by spaces: words, or subwords or characters with ▁ for a space. Those of a
    translator are the tokens of its target language.

    \b
    Example:
      dragoman units de-en < test.en
      dragoman units lm < test.en
      dragoman units lm < test.en | dragoman units lm --join
    """
    from dragoman.data.formats import read_line_batches
    from dragoman.data.scanner import split_words

    segmenter = _load_segmenter(model, source=source)
    for lines in read_line_batches(text, field):
        if join:
            printed = [segmenter.join(split_words(line.text)) for line in lines]
        else:
            printed = [" ".join(tokens) for tokens in segmenter.segment_all(line.text for line in lines)]
        sys.stdout.writelines(f"{line}\n" for line in printed)
        sys.stdout.flush()


def _load_segmenter(path: Path, *, source: bool) -> Segmenter:
    """Return the segmenter of a language model, or of one language of a translator."""
    from dragoman.data.tokenizer import TREE
    from dragoman.models.loading import load
    from dragoman.models.translation import BaseTranslator

    model = load(path)
    if not isinstance(model, BaseTranslator):
        if source:
            raise DataError(f"{path}: a language model has no source; remove --source")
        return model.vocab.segmenter
    tokenizer = model.source if source else model.target
    if tokenizer.format == TREE:
        raise DataError(f"{path}: reads trees, whose words are its tokens; there is nothing to split")
    return tokenizer.segmenter
