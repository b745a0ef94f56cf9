"""What the kinds of `train` have in common: reading the text before, and saving and telling after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli.messages import say, suggest
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.language_model import LanguageModel
    from dragoman.text.corpus import Corpus
    from dragoman.text.unknown import UnknownWords


@dataclass(frozen=True)
class Material:
    """What a model is trained on."""

    corpus: Corpus
    unknown: UnknownWords


def read_material(
    text: str,
    field: str | None,
    *,
    vocab_of: Path | None,
    min_count: int,
    max_size: int | None,
    replace_singletons: bool,
    unknown: str | None,
    unknown_total: int | None,
) -> Material:
    """The training text and its unknown-word model. A model `vocab_of` lends its vocabulary and, unless another
    unknown-word model is asked for, that too: so the two models can be mixed."""
    from dragoman.loading import load
    from dragoman.ngram.spelling import unknown_words
    from dragoman.text.corpus import Corpus
    from dragoman.text.unknown import ALL_WORDS

    if unknown_total is not None and unknown not in (None, "uniform"):
        raise DataError(f"--unknown-words goes with --unknown uniform, not {unknown}")
    if replace_singletons:
        min_count = max(min_count, 2)
    if vocab_of is None:
        corpus = Corpus.read(text, field=field, min_count=min_count, max_size=max_size)
    elif min_count > 1 or max_size is not None:
        raise DataError("--vocab takes a vocabulary as it is; leave out --min-count, --max-size, --replace-singletons")
    else:
        lender = load(vocab_of)
        corpus = Corpus.read(text, lender.vocab, field=field, training=True)
        if unknown is None and unknown_total is None:
            return Material(corpus, lender.unknown)
    return Material(corpus, unknown_words(unknown or "uniform", corpus, unknown_total or ALL_WORDS))


def save_and_tell(
    model: LanguageModel, output: Path, *, force: bool, began: float, size: str, dev: tuple[str, Corpus] | None
) -> None:
    """Write the model, then say how large it is, how long it took, what it makes of the dev text, and what is next."""
    model.save(output, replace=force)
    say(f"{output}: {size}; {model.vocab.known - 1:,} known words; {perf_counter() - began:.1f} seconds")
    if dev is None:
        suggest("evaluate", output, "--text", "FILE")
        return
    from dragoman.evaluation.likelihood import likelihood

    name, corpus = dev
    result = likelihood(model, corpus)
    say(f"{name}: perplexity {result.perplexity:,.2f} over {result.tokens:,} tokens, {result.unknown_words:,} unknown")
    suggest("evaluate", output, "--text", name)
