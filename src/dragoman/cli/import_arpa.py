"""dragoman import"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dragoman.cli.messages import info, status, suggest_command
from dragoman.cli.option_groups import argument, option
from dragoman.cli.options import Force, Output, VocabPad


def import_arpa(
    arpa: Annotated[Path, argument("FILE", "An ARPA file, which may be compressed (.gz).")],
    output: Output,
    vocab_pad: VocabPad = None,
    closed: Annotated[bool, option("--closed", "Words outside the vocabulary have probability 0.")] = False,
    force: Force = False,
) -> None:
    """Convert an ARPA file to a model directory.

    \b
    Example:
      dragoman import kn5.arpa.gz -o kn5
    """
    from dragoman.io.storage import check_output_directory
    from dragoman.ngram.arpa import read_arpa

    check_output_directory(output, replace=force)
    with status("reading"):
        model = read_arpa(arpa, vocab_pad=vocab_pad, closed=closed)
    model.save(output, replace=force)
    info(f"{output}: {model.vocab.num_known - 1:,} known words")
    suggest_command("evaluate", output, "--text", "FILE")
