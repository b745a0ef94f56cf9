"""dragoman units"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.input_lines import read_line_batches
from dragoman.cli.translate import Text
from dragoman.cli.translator_options import load_translator_model, reads_trees
from dragoman.core.errors import DataError


def units(
    model: options.Model,
    text: Text = "-",
    field: options.Field = None,
    source: Annotated[
        bool, typer.Option("--source", help="The units that it reads, instead of those that it writes.")
    ] = False,
    join: Annotated[bool, typer.Option("--join", help="Put units together again.")] = False,
) -> None:
    """Split lines into the tokens of a translator.

    So that a language model of these units can be trained, to have a say in translating.

    \b
    Example:
      dragoman units de-en < news.en > cut.en
      dragoman train ngram --text cut.en --vocab de-en -o news
      dragoman translate de-en --lm news < test.de
    """
    from dragoman.data.words import split_words

    loaded = load_translator_model(model)
    if source and reads_trees(loaded):
        raise DataError(f"{model}: reads trees, whose words are its units; there is nothing to cut")
    own = (loaded.source if source else loaded.target).segmenter
    for lines in read_line_batches(text, field):
        if join:
            done = [own.join(split_words(line.text)) for line in lines]
        else:
            done = [" ".join(cut) for cut in own.segment_all([line.text for line in lines])]
        sys.stdout.writelines(f"{line}\n" for line in done)
        sys.stdout.flush()
