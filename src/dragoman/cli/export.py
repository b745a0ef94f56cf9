"""dragoman export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import say, working
from dragoman.errors import DataError


def export(
    model: options.Model,
    arpa: Annotated[
        Path, typer.Option("--arpa", metavar="FILE", help="The file to write; .gz is packed.", show_default=False)
    ],
    vocab_pad: options.VocabPad = None,
) -> None:
    """Write an n-gram model as an ARPA file for other tools.

    \b
    Example:
      dragoman export kn5 --arpa kn5.arpa.gz
    """
    from dragoman.loading import load
    from dragoman.ngram.arpa import write_arpa
    from dragoman.ngram.model import NgramModel

    loaded = load(model)
    if not isinstance(loaded, NgramModel):
        raise DataError(f"{model}: ARPA files hold n-gram models; this is a {loaded.kind} model")
    with working("writing"):
        write_arpa(loaded, arpa, vocab_pad=vocab_pad)
    say(f"{arpa}: written")
