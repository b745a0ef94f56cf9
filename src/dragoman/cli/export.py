"""dragoman export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import say, working
from dragoman.errors import DataError

STDOUT = Path("-")


def export(
    model: options.Model,
    arpa: Annotated[
        Path,
        typer.Option(
            "--arpa",
            metavar="FILE",
            help="The file to write; .gz is packed, - is standard output.",
            show_default=False,
        ),
    ],
    vocab_pad: options.VocabPad = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")] = False,
) -> None:
    """Write an n-gram model as an ARPA file for other tools.

    \b
    Example:
      dragoman export kn5 --arpa kn5.arpa.gz
    """
    from dragoman.loading import load
    from dragoman.ngram.arpa import write_arpa
    from dragoman.ngram.model import NgramModel

    if arpa != STDOUT:
        _check_free(arpa, replace=force)
    loaded = load(model)
    if not isinstance(loaded, NgramModel):
        raise DataError(f"{model}: ARPA files hold n-gram models; this is a {loaded.kind} model")
    with working("writing"):
        write_arpa(loaded, arpa, vocab_pad=vocab_pad)
    say(f"{'standard output' if arpa == STDOUT else arpa}: written; {_meaning(vocab_pad)}")
    if loaded.unknown.config()["kind"] == "characters":
        say("warning: the model that spells unknown words out has no place in an ARPA file and was left out")


def _check_free(path: Path, *, replace: bool) -> None:
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: is not a file that can be replaced; name another, or - for standard output")
    if path.exists() and not replace:
        raise DataError(f"{path}: exists already; choose another name, or --force to replace it")


def _meaning(vocab_pad: int | None) -> str:
    """What `<unk>` stands for in the file."""
    if vocab_pad is None:
        return "its <unk> is all unknown words together (--vocab-pad N writes one word's share, as KenLM pads)"
    return f"its <unk> is one unknown word's share in a language of {vocab_pad:,} words"
