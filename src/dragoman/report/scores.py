"""Log-probabilities of sentences and words as rows of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab
from dragoman.report.tables import format_table

if TYPE_CHECKING:
    from dragoman.models.language_model import LanguageModel, WordScore

ModelInputs = Mapping[str, tuple["LanguageModel", Corpus]]  # models by name, with the text in their vocabularies


def sentence_scores(model: LanguageModel, corpus: Corpus, base: float) -> str:
    """Return the log-probability of each sentence, one per line; `base` is the natural log of the base."""
    return "\n".join(f"{log_prob:.6f}" for log_prob in (model.sentence_log_probs(corpus) / base).tolist())


def word_scores(model: LanguageModel, corpus: Corpus, base: float) -> str:
    """Return the log-probability of each word and `</s>`, one per line, with empty lines between sentences."""
    return "\n\n".join(_word_rows(sentence, model.vocab, base) for sentence in model.score_corpus_words(corpus))


def _word_rows(sentence: Sequence[WordScore], vocab: Vocab, base: float) -> str:
    *words, end = sentence
    return "\n".join([*(_word_row(word, vocab, base) for word in words), f"{end.word}\t{end.log_prob / base:.6f}"])


def _word_row(word: WordScore, vocab: Vocab, base: float) -> str:
    log_prob, spelling = word.log_prob / base, word.log_prob_unknown / base
    row = f"{word.word}\t{log_prob + spelling:.6f}"
    if vocab.id(word.word) != UNK or word.word == SPECIALS[UNK]:
        return row
    return f"{row}\t{SPECIALS[UNK]}\t{log_prob:.6f}\t{spelling:.6f}"


def sentence_columns(inputs: ModelInputs, base: float, *, is_terminal: bool) -> str:
    """Return the log-probability of each sentence with one column per model: a table on a terminal, else TSV."""
    columns = [(model.sentence_log_probs(corpus) / base).tolist() for model, corpus in inputs.values()]
    rows = [[f"{log_prob:.6f}" for log_prob in row] for row in zip(*columns, strict=True)]
    if is_terminal:
        return format_table(list(inputs), rows)
    return "\n".join("\t".join(row) for row in [list(inputs), *rows])
