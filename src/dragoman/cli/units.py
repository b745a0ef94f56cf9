"""dragoman units"""

from __future__ import annotations

import sys
from typing import Annotated

from dragoman.cli.option_groups import option
from dragoman.cli.options import Field, InputText, Model
from dragoman.core.errors import DataError


def units(
    model: Model,
    text: InputText = "-",
    field: Field = None,
    source: Annotated[
        bool, option("--source", "Use the tokens of the source language, not those of the target.")
    ] = False,
    join: Annotated[bool, option("--join", "Join tokens to text instead.")] = False,
) -> None:
    """Split lines into the tokens of a translator.

    Prints the tokens of each line, separated by spaces. A language model trained on such text can be combined with the
    translator (fusion).

    \b
    Example:
      dragoman units de-en < news.en > tokens.en
      dragoman train ngram --text tokens.en --vocab de-en -o news
      dragoman translate de-en --lm news < test.de
    """
    from dragoman.data.formats import read_line_batches
    from dragoman.data.scanner import split_words
    from dragoman.data.tokenizer import TREE
    from dragoman.models.loading import load_translator

    translator = load_translator(model)
    tokenizer = translator.source if source else translator.target
    if tokenizer.format == TREE:
        raise DataError(f"{model}: reads trees, whose words are its tokens; there is nothing to split")
    for lines in read_line_batches(text, field):
        if join:
            printed = [tokenizer.join(split_words(line.text)) for line in lines]
        else:
            printed = [" ".join(tokens) for tokens in tokenizer.segmenter.segment_all(line.text for line in lines)]
        sys.stdout.writelines(f"{line}\n" for line in printed)
        sys.stdout.flush()
