"""dragoman export"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from gzip import GzipFile
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TextIO, cast

import typer

from dragoman.cli import options
from dragoman.cli.messages import info, status
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.word_vectors import WordVectors

STDOUT = Path("-")


def export(
    model: options.Model,
    arpa: Annotated[
        Path | None,
        typer.Option(
            "--arpa",
            metavar="FILE",
            help="Write an n-gram model to this ARPA file; .gz is packed, - is standard output.",
            show_default=False,
        ),
    ] = None,
    word_vectors: Annotated[
        Path | None,
        typer.Option(
            "--word-vectors",
            metavar="FILE",
            help="Write the words' vectors to this file, as text in word2vec's format; .gz is packed, - is standard "
            "output.",
            show_default=False,
        ),
    ] = None,
    vocab_pad: options.VocabPad = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")] = False,
) -> None:
    """Export an n-gram model or word vectors for other tools.

    \b
    Examples:
      dragoman export kn5 --arpa kn5.arpa.gz
      dragoman export ff5 --word-vectors ff5.vectors.txt
    """
    if arpa is not None and word_vectors is None:
        _export_arpa(model, arpa, vocab_pad, force)
    elif word_vectors is not None and arpa is None and vocab_pad is None:
        _export_vectors(model, word_vectors, force)
    else:
        raise DataError("give either --arpa FILE, with --vocab-pad if you like, or --word-vectors FILE")


def _export_arpa(model: Path, arpa: Path, vocab_pad: int | None, force: bool) -> None:
    from dragoman.models.loading import load_language_model
    from dragoman.ngram.arpa import write_arpa
    from dragoman.ngram.model import NgramModel

    if arpa != STDOUT:
        check_file_free(arpa, replace=force)
    loaded = load_language_model(model)
    if not isinstance(loaded, NgramModel):
        raise DataError(f"{model}: ARPA files hold n-gram models; this is a {loaded.kind} model")
    with status("writing"):
        write_arpa(loaded, arpa, vocab_pad=vocab_pad)
    info(f"{_named(arpa)}: written; {_meaning(vocab_pad)}")
    if loaded.unknown.config()["kind"] == "characters":
        info("warning: the model that spells unknown words out has no place in an ARPA file and was left out")


def _export_vectors(model: Path, path: Path, force: bool) -> None:
    from dragoman.models.loading import load_language_model

    if path != STDOUT:
        check_file_free(path, replace=force)
    loaded = load_language_model(model)
    if not hasattr(loaded, "word_vectors"):
        raise DataError(
            f"{model}: a {loaded.kind} model has no vectors of words; train feed-forward makes one that has"
        )
    vectors: WordVectors = loaded.word_vectors()
    with status("writing"), _text_file(path) as file:
        file.writelines(vectors.lines())
    info(f"{_named(path)}: written; {len(vectors):,} vectors of {vectors.dimension} numbers")


@contextmanager
def _text_file(path: Path) -> Iterator[TextIO]:
    """A file to write text to, packed if its name ends in .gz; it is there when all is written."""
    from dragoman.io.storage import atomic_file

    if path == STDOUT:
        yield sys.stdout
        return
    # No name and no date go into a packed file: the same vectors give the same bytes.
    with (
        atomic_file(path) as temporary,
        temporary.open("wb") as raw,
        GzipFile("", "wb", 6, raw, 0) if path.suffix == ".gz" else nullcontext(raw) as file,
        TextIOWrapper(cast(BinaryIO, file), encoding="utf-8", newline="\n") as text,
    ):
        yield text


def _named(path: Path) -> str:
    return "standard output" if path == STDOUT else str(path)


def check_file_free(path: Path, *, replace: bool) -> None:
    """Refuse to write over what is there, unless it is a file that may be replaced."""
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: is not a file that can be replaced; name another")
    if path.exists() and not replace:
        raise DataError(f"{path}: exists already; choose another name, or --force to replace it")


def _meaning(vocab_pad: int | None) -> str:
    """What `<unk>` stands for in the file."""
    if vocab_pad is None:
        return "its <unk> is all unknown words together (--vocab-pad N writes one word's share, as KenLM pads)"
    return f"its <unk> is one unknown word's share in a language of {vocab_pad:,} words"
