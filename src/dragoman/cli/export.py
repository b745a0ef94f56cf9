"""dragoman export"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from gzip import GzipFile
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, BinaryIO, TextIO, cast

from dragoman.cli.messages import info, status, warn
from dragoman.cli.option_groups import option
from dragoman.cli.options import ForceFile, Model, VocabPad, check_new_file
from dragoman.core.errors import DataError

STDOUT = Path("-")


def export(
    model: Model,
    arpa: Annotated[
        Path | None, option("--arpa FILE", "ARPA file for an n-gram model; .gz is compressed, - is standard output.")
    ] = None,
    word_vectors: Annotated[
        Path | None,
        option(
            "--word-vectors FILE",
            "File for word vectors, in the text format of word2vec; .gz is compressed, - is standard output.",
        ),
    ] = None,
    vocab_pad: VocabPad = None,
    force: ForceFile = False,
) -> None:
    """Export an n-gram model or word vectors for other tools.

    \b
    Example:
      dragoman export kn5 --arpa kn5.arpa.gz
      dragoman export ff5 --word-vectors ff5.vectors.txt
    """
    path = arpa if arpa is not None else word_vectors
    if path is None or (arpa is not None and word_vectors is not None) or (arpa is None and vocab_pad is not None):
        raise DataError("give either --arpa FILE, optionally with --vocab-pad, or --word-vectors FILE")
    if path != STDOUT:
        check_new_file(path, replace=force)
    if arpa is not None:
        _export_arpa(model, arpa, vocab_pad)
    else:
        _export_vectors(model, path)


def _export_arpa(model: Path, arpa: Path, vocab_pad: int | None) -> None:
    from dragoman.models.loading import load_language_model
    from dragoman.ngram.arpa import write_arpa
    from dragoman.ngram.model import NgramModel

    loaded = load_language_model(model)
    if not isinstance(loaded, NgramModel):
        raise DataError(f"{model}: ARPA files are for n-gram models; this is a {loaded.kind} model")
    with status("writing"):
        write_arpa(loaded, arpa, vocab_pad=vocab_pad)
    if vocab_pad is None:
        meaning = "<unk> is all unknown words together (--vocab-pad N writes the probability of one, as in KenLM)"
    else:
        meaning = f"<unk> is one unknown word of a language with {vocab_pad:,} words"
    info(f"{_name(arpa)}: written; {meaning}")
    if loaded.unknown.config()["kind"] == "characters":
        warn("ARPA files cannot contain the character model of unknown words; it was left out")


def _export_vectors(model: Path, path: Path) -> None:
    from dragoman.models.loading import load_language_model
    from dragoman.models.neural import EmbeddingLanguageModel

    loaded = load_language_model(model)
    if not isinstance(loaded, EmbeddingLanguageModel):
        remedy = "give a feed-forward or recurrent model"
        raise DataError(f"{model}: a {loaded.kind} model has no word vectors; {remedy}")
    vectors = loaded.word_vectors()
    with status("writing"), _text_file(path) as file:
        file.writelines(vectors.lines())
    info(f"{_name(path)}: written; {len(vectors):,} vectors of {vectors.dimension} numbers")


@contextmanager
def _text_file(path: Path) -> Iterator[TextIO]:
    """Open a file for text, compressed if its name ends in .gz. It appears when it is complete."""
    from dragoman.io.storage import atomic_file

    if path == STDOUT:
        yield sys.stdout
        return
    # Without name and date in the compressed file, the same vectors give the same bytes.
    with (
        atomic_file(path) as temporary,
        temporary.open("wb") as raw,
        GzipFile("", "wb", 6, raw, 0) if path.suffix == ".gz" else nullcontext(raw) as file,
        TextIOWrapper(cast(BinaryIO, file), encoding="utf-8", newline="\n") as text,
    ):
        yield text


def _name(path: Path) -> str:
    return "standard output" if path == STDOUT else str(path)
