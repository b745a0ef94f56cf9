"""dragoman score"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import doubt
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.language_model import LanguageModel, WordScore
    from dragoman.text.corpus import Corpus
    from dragoman.text.vocab import Vocab


def score(
    model: options.Model,
    text: options.Text = "-",
    field: options.Field = None,
    words: Annotated[
        bool,
        typer.Option(
            "--words", help="A row a word; unknown words also show <unk>, what the class cost, and which word it was."
        ),
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Scores of stupid-backoff before they sum to one.")] = False,
    log10: Annotated[bool, typer.Option("--log10", help="Logarithms to base 10 instead of natural ones.")] = False,
) -> None:
    """Print the log-probability of each line of a text.

    Unknown words are paid for in full; what cannot occur has -inf. One output line for each input line, empty ones
    too. With --words, a row `word TAB log-probability` for each word and for </s>, and an empty line between sentences.

    \b
    Example:
      dragoman score kn5 < test.txt
      echo "the cat sat" | dragoman score kn5 --words
    """
    from dragoman.loading import load
    from dragoman.text.corpus import Corpus
    from dragoman.text.formats import source_name

    scorer = load(model)
    if raw:
        scorer = _raw(scorer)
    if text == "-" and sys.stdin is not None and not sys.stdin.buffer.peek(1):  # type: ignore[union-attr]
        return  # no lines in, no lines out
    corpus = Corpus.read(text, scorer.vocab, field=options.field_of(text, field))
    doubt(corpus, source_name(text))
    unit = math.log(10) if log10 else 1.0
    if words:
        print("\n\n".join(_rows(sentence, scorer.vocab, unit) for sentence in scorer.score_corpus(corpus)))
    else:
        print("\n".join(f"{log_prob:.6f}" for log_prob in (scorer.sentence_log_probs(corpus) / unit).tolist()))


def _rows(sentence: list[WordScore], vocab: Vocab, unit: float) -> str:
    """The words of a sentence, one a row; the last is its `</s>`."""
    *words, end = sentence
    return "\n".join([*(_row(word, vocab, unit) for word in words), f"{end.word}\t{end.log_prob / unit:.6f}"])


def _row(word: WordScore, vocab: Vocab, unit: float) -> str:
    from dragoman.text.vocab import SPECIALS, UNK

    class_, identity = word.log_prob / unit, word.log_prob_unknown / unit
    row = f"{word.word}\t{class_ + identity:.6f}"
    if vocab.id(word.word) != UNK or word.word == SPECIALS[UNK]:
        return row
    return f"{row}\t{SPECIALS[UNK]}\t{class_:.6f}\t{identity:.6f}"


def _raw(model: LanguageModel) -> LanguageModel:
    """The model with the raw scores of stupid back-off in the place of its probabilities."""
    import numpy as np
    from numpy.typing import NDArray

    from dragoman.ngram.model import NgramModel

    class RawScores(NgramModel):
        def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
            return self.raw_token_scores(corpus)

    if not isinstance(model, NgramModel):
        raise DataError(f"raw scores are what stupid-backoff has; a {model.kind} model has probabilities")
    return RawScores(model.vocab, model.table, model.unknown, model.settings)
