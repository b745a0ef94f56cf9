"""dragoman export, dragoman import"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from gzip import GzipFile
from pathlib import Path
from typing import Annotated

from dragoman.cli.messages import info, status, suggest_command, warn
from dragoman.cli.option_groups import argument, option
from dragoman.cli.options import Force, ForceFile, Model, Output, check_new_file, lock_output
from dragoman.core.errors import DataError

STDOUT = Path("-")
VocabPad = Annotated[
    int | None,
    option(
        "--vocab-pad N",
        "Number of words in the language: <unk> in the ARPA file then has the probability of one unknown word, as in "
        "KenLM.",
        min=1,
    ),
]


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
    size = _write_vectors(model, path) if arpa is None else _write_arpa(model, path, vocab_pad)
    info(f"{'standard output' if path == STDOUT else path}: written; {size}")


def _write_arpa(model: Path, path: Path, vocab_pad: int | None) -> str:
    """Write an ARPA file, and return a description of it."""
    from dragoman.models.loading import load_language_model
    from dragoman.ngram.arpa import write_arpa
    from dragoman.ngram.model import NgramModel

    loaded = load_language_model(model)
    if not isinstance(loaded, NgramModel):
        raise DataError(f"{model}: ARPA files are for n-gram models; this is a {loaded.kind} model")
    with status("writing"):
        write_arpa(loaded, path, vocab_pad=vocab_pad)
    if loaded.unknown.config()["kind"] == "characters":
        warn("ARPA files cannot contain the character model of unknown words; it was left out")
    if vocab_pad is None:
        return "<unk> is all unknown words together (--vocab-pad N writes the probability of one, as in KenLM)"
    return f"<unk> is one unknown word of a language with {vocab_pad:,} words"


def _write_vectors(model: Path, path: Path) -> str:
    """Write word vectors, and return a description of them."""
    from dragoman.io.files import atomic_file
    from dragoman.models.loading import load_language_model
    from dragoman.models.neural import EmbeddingLanguageModel

    loaded = load_language_model(model)
    if not isinstance(loaded, EmbeddingLanguageModel):
        remedy = "give a feed-forward or recurrent model"
        raise DataError(f"{model}: a {loaded.kind} model has no word vectors; {remedy}")
    vectors = loaded.word_vectors()
    if path == STDOUT:
        sys.stdout.writelines(vectors.lines())
    else:
        with (
            status("writing"),
            atomic_file(path) as temporary,
            temporary.open("wb") as raw,
            # Without name and date in the compressed file, the same vectors give the same bytes.
            GzipFile("", "wb", 6, raw, 0) if path.suffix == ".gz" else nullcontext(raw) as file,
        ):
            file.writelines(line.encode() for line in vectors.lines())
    return f"{len(vectors):,} vectors of {vectors.dimension} numbers"


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
    lock_output(output)
    with status("reading"):
        model = read_arpa(arpa, vocab_pad=vocab_pad, closed=closed)
    model.save(output, replace=force)
    info(f"{output}: {model.vocab.num_known - 1:,} known words")
    suggest_command("evaluate", output, "--text", "FILE")
