"""Reading ARPA files into a trie, adding contexts that are missing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel
from dragoman.core.threads import available_cores, parallel_stream
from dragoman.data.unknown_words import DEFAULT_LANGUAGE_SIZE, ClosedVocabulary, UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import END, SPECIALS, START, UNK, Vocab
from dragoman.ngram.arpa.lines import Spellings, find_contexts, find_words
from dragoman.ngram.arpa.sections import (
    DATA,
    ENDING,
    Chunk,
    OrderHeader,
    next_section,
    parse_lines,
    read_header,
    read_sections,
    repeated_ngram_error,
    section_name,
)
from dragoman.ngram.config import IMPORTED, NgramConfig
from dragoman.ngram.model import NgramModel
from dragoman.ngram.table import NgramTable, lookup
from dragoman.ngram.trie import build_trie

TOLERANCE = 1e-3  # allowed deviation of the sum of unigrams from one
OTHER_UNK = b"<UNK>"  # the spelling of some toolkits


def read_arpa(path: str | Path, *, vocab_pad: int | None = None, closed: bool = False) -> NgramModel:
    """Read a model from an ARPA file, plain or `.gz`.

    Args:
        path: the file.
        vocab_pad: `<unk>` in the file is the share of one word in a language of this many words, as written by
            `lmplz --vocab_pad`. By default it is the class of all unknown words.
        closed: words outside the vocabulary have probability 0. By default they are equally likely.

    >>> import tempfile
    >>> from dragoman import Corpus, NgramModel, read_arpa, write_arpa
    >>> model = NgramModel.train(Corpus.from_sentences(["a b", "b a"]), order=2, smoothing="witten-bell")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_arpa(model, f"{directory}/model.arpa")
    ...     again = read_arpa(f"{directory}/model.arpa")
    >>> abs(again.score("a b")[0] - model.score("a b")[0]) < 1e-5
    True
    """
    if closed and vocab_pad is not None:
        raise DataError(
            "--vocab-pad is for unknown words, which a closed vocabulary does not have; choose one of the two"
        )
    source, padded = Path(path), vocab_pad is not None
    vocab, levels = _read(source)
    total = DEFAULT_LANGUAGE_SIZE if vocab_pad is None else vocab_pad
    unknown: UnknownWordModel = (
        ClosedVocabulary(vocab.num_known) if closed else UniformUnknownWords(vocab.num_known, total)
    )
    levels = [_with_unknown_class(level, total - vocab.num_known if padded else 1) for level in levels]
    _check_sum(levels[0], vocab, source, padded=padded)
    table = _table(levels)
    return NgramModel(vocab, table, unknown, NgramConfig(order=table.trie.order, smoothing=IMPORTED))


def _read(source: Path) -> tuple[Vocab, list[_Ngrams]]:
    """Read the vocabulary and the n-grams of each order."""
    sections = read_sections(source)
    header = read_header(next_section(sections, DATA, source), source)
    words, unigrams = _read_unigrams(next_section(sections, section_name(1), source), header[0], source)
    spellings, levels = Spellings.from_words(words), [unigrams]
    for order_header in header[1:]:
        chunks = next_section(sections, section_name(order_header.order), source)
        rows = _read_rows(chunks, levels, spellings)
        order_header.check(len(rows.ngrams.word), source)
        levels = _with_level(levels, rows, source)
    next_section(sections, ENDING, source)
    while len(levels) > 1 and not len(levels[-1].word):
        levels.pop()
    return Vocab([*SPECIALS, *(word.decode() for word in words[len(SPECIALS) :])]), levels


# -- from sections to rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ngrams:
    """N-grams of one order. Contexts that were missing in the file have log_prob NaN."""

    context: NDArray[np.int32]  # (n-grams,) index among the n-grams one word shorter; -1 if missing
    word: NDArray[np.int32]  # (n-grams,) the last word
    log_prob: NDArray[np.float32]
    log_backoff: NDArray[np.float32]

    def keys(self) -> NDArray[np.int64]:
        """Return context and word packed into one number, by which the n-grams of a trie are sorted."""
        return _keys(self.context, self.word)

    def take(self, order: NDArray[np.int64]) -> _Ngrams:
        return _Ngrams(self.context[order], self.word[order], self.log_prob[order], self.log_backoff[order])

    @classmethod
    def concatenate(cls, parts: Sequence[_Ngrams]) -> _Ngrams:
        return cls(
            np.concatenate([part.context for part in parts]),
            np.concatenate([part.word for part in parts]),
            np.concatenate([part.log_prob for part in parts]),
            np.concatenate([part.log_backoff for part in parts]),
        )


def _keys(context: NDArray[np.int32], word: NDArray[np.int32]) -> NDArray[np.int64]:
    return (context.astype(np.int64) << 32) | word


def _read_unigrams(chunks: Iterator[Chunk], header: OrderHeader, source: Path) -> tuple[list[bytes], _Ngrams]:
    """Read the words, in order of the file after `<s>`, `</s>` and `<unk>`, and their probabilities."""
    words: list[bytes] = []
    splits = []
    for chunk in chunks:
        if error := chunk.encoding_error():
            raise error
        parts = parse_lines(chunk, 1)
        words += [chunk.text[a:b] for (a,), (b,) in zip(parts.starts.tolist(), parts.ends.tolist(), strict=True)]
        splits.append(parts)
    specials = [special.encode() for special in SPECIALS]
    if OTHER_UNK in words and specials[UNK] not in words:
        specials[UNK] = OTHER_UNK
    vocabulary = list(dict.fromkeys([*specials, *words]))
    index = {word: i for i, word in enumerate(vocabulary)}
    ids = np.array([index[word] for word in words], np.int64)
    _sorted_order(ids, 1, source)  # raises an error for repeated words
    header.check(len(words), source)
    size = len(vocabulary)
    log_prob, log_backoff = np.full(size, -np.inf, np.float32), np.zeros(size, np.float32)
    log_prob[ids] = np.concatenate([parts.log_prob for parts in splits])
    log_backoff[ids] = np.concatenate([parts.log_backoff for parts in splits])
    return vocabulary, _Ngrams(np.zeros(size, np.int32), np.arange(size, dtype=np.int32), log_prob, log_backoff)


@dataclass(frozen=True)
class _FileRows:
    """N-grams in the order of the file, and all words of those whose contexts are missing."""

    ngrams: _Ngrams
    orphans: NDArray[np.int32]  # (n-grams without contexts, order)


def _read_rows(chunks: Iterator[Chunk], levels: list[_Ngrams], spellings: Spellings) -> _FileRows:
    order = len(levels) + 1
    bounds, word, begin = _layout(levels)
    index = spellings.data, spellings.begin, spellings.hashes, spellings.slots

    def parse(chunk: Chunk) -> _FileRows:
        parts = parse_lines(chunk, order)
        words = np.empty(parts.starts.shape, np.int32)
        missing = find_words(np.frombuffer(chunk.text, np.uint8), parts.starts, parts.ends, *index, words)
        if missing >= 0:
            raise chunk.line_error(int(parts.starts[missing, 0]), "a word that is not in the 1-grams")
        context = find_contexts(word, begin, bounds[order - 1], words)
        return _FileRows(_Ngrams(context, words[:, -1].copy(), parts.log_prob, parts.log_backoff), words[context < 0])

    parsed = list(parallel_stream(parse, chunks, available_cores()))
    return _FileRows(
        _Ngrams.concatenate([rows.ngrams for rows in parsed]), np.concatenate([rows.orphans for rows in parsed])
    )


# -- from rows to the trie -----------------------------------------------------------------------------------------


def _with_level(levels: list[_Ngrams], rows: _FileRows, source: Path) -> list[_Ngrams]:
    """Add a level, sorted by context and then by last word."""
    level = rows.ngrams
    if len(rows.orphans):
        levels, moved, added = _with_contexts(levels, rows.orphans[:, :-1])
        known = level.context >= 0
        context = np.empty_like(level.context)
        context[known], context[~known] = moved[level.context[known]], added
        level = replace(level, context=context)
    keys = level.keys()
    if not (keys[1:] > keys[:-1]).all():
        level = level.take(_sorted_order(keys, len(levels) + 1, source))
    return [*levels, level]


def _with_contexts(
    levels: list[_Ngrams], contexts: NDArray[np.int32]
) -> tuple[list[_Ngrams], NDArray[np.int32], NDArray[np.int32]]:
    """Add missing contexts, and their contexts; pruning by other toolkits may have removed them.

    Returns the levels, the new indices of the n-grams of the last level, and the indices of the contexts.
    """
    levels = list(levels)
    index = contexts[:, 0]
    moved = np.arange(len(levels[0].word), dtype=np.int32)
    for k in range(1, contexts.shape[1]):
        level = replace(levels[k], context=moved[levels[k].context])
        required, old = _keys(index, contexts[:, k]), level.keys()
        merged = _Ngrams.concatenate([level, _blank(np.setdiff1d(required, old))])
        levels[k] = merged.take(np.argsort(merged.keys()))
        keys = levels[k].keys()
        moved = np.searchsorted(keys, old).astype(np.int32)
        index = np.searchsorted(keys, required).astype(np.int32)
    return levels, moved, index


def _blank(keys: NDArray[np.int64]) -> _Ngrams:
    """Return n-grams to add: their back-off weight is 1, their probability is computed later by backing off."""
    context, word = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
    return _Ngrams(context, word, np.full(len(keys), np.nan, np.float32), np.zeros(len(keys), np.float32))


def _sorted_order(keys: NDArray[np.int64], order: int, source: Path) -> NDArray[np.int64]:
    """Return the order of n-grams by their keys; repeated keys are an error."""
    sequence = np.argsort(keys)
    repeats = np.flatnonzero(keys[sequence][1:] == keys[sequence][:-1])
    if len(repeats):
        raise repeated_ngram_error(source, order, int(np.maximum(sequence[repeats], sequence[repeats + 1]).min()))
    return sequence


def _layout(levels: list[_Ngrams]) -> tuple[list[int], NDArray[np.int32], NDArray[np.int32]]:
    """Return the levels in the layout of a trie: first nodes, last words and first children."""
    bounds = [0, 1, *(1 + np.cumsum([len(level.word) for level in levels])).tolist()]
    begin = [np.ones(1, np.int64)]
    for order, (shorter, level) in enumerate(zip(levels[:-1], levels[1:], strict=True), 2):
        children = np.bincount(level.context, minlength=len(shorter.word))
        begin.append(bounds[order] + np.cumsum(children) - children)
    begin.append(np.array(bounds[-1:]))
    word = np.concatenate([np.zeros(1, np.int32), *(level.word for level in levels)])
    return bounds, word, np.concatenate(begin).astype(np.int32)


def _table(levels: list[_Ngrams]) -> NgramTable:
    log_prob = np.concatenate([np.full(1, -np.inf, np.float32), *(level.log_prob for level in levels)])
    log_backoff = np.concatenate([np.zeros(1, np.float32), *(level.log_backoff for level in levels[:-1])])
    table = NgramTable(build_trie(*_layout(levels)), log_prob, log_backoff)
    _back_off(*table.arrays())
    return table


@kernel
def _back_off(levels: Any, word: Any, begin: Any, suffix: Any, log_prob: Any, log_backoff: Any, codebook: Any) -> None:
    """Compute the probabilities of added n-grams by backing off, short ones first."""
    for node in range(1, begin.size - 1):
        for child in range(begin[node], begin[node + 1]):
            if np.isnan(log_prob[child]):
                context, w = suffix[node], word[child]
                shorter, _ = lookup(levels, word, begin, suffix, log_prob, log_backoff, codebook, context, w)
                log_prob[child] = log_backoff[node] + shorter


# -- the class <unk> -----------------------------------------------------------------------------------------------


def _with_unknown_class(level: _Ngrams, members: int) -> _Ngrams:
    """Multiply the probability of `<unk>` by the number of words in its class, and set that of `<s>` to 0."""
    log_prob = level.log_prob.copy()
    log_prob[level.word == UNK] += np.float32(math.log(members))
    log_prob[level.word == START] = -np.inf
    return replace(level, log_prob=log_prob)


def _check_sum(unigrams: _Ngrams, vocab: Vocab, source: Path, *, padded: bool) -> None:
    """Warn if the unigrams do not sum to one, and suggest a value for --vocab-pad."""
    prob = np.exp(unigrams.log_prob.astype(float))
    if prob[END] == 0:
        warnings.warn(f"{source}: </s> has probability 0, so sentences cannot end", stacklevel=3)
    total, unk = float(prob.sum()), float(prob[UNK])
    if abs(total - 1) <= TOLERANCE:
        return
    advice = "its probabilities are not changed"
    if padded:
        advice = "is --vocab-pad the number that the file was written with?"
    elif total < 1 and unk > 0:
        pad = vocab.num_known + (1 - total + unk) / unk
        advice = f"if <unk> is the share of one word (lmplz --vocab_pad), give --vocab-pad; about {pad:.4g} would fit"
    warnings.warn(f"{source}: the unigrams sum to {total:.4f}, not to 1; {advice}", stacklevel=3)
