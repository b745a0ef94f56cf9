"""Reading ARPA files: from rows to a trie, with contexts that are missing, and what `<unk>` means."""

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
from dragoman.ngram.arpa.lines import Spellings, find_contexts, look_up
from dragoman.ngram.arpa.sections import (
    DATA,
    ENDING,
    Declared,
    Piece,
    next_section,
    read_header,
    read_sections,
    repeated,
    section_name,
    split,
)
from dragoman.ngram.model import IMPORTED, NgramConfig, NgramModel
from dragoman.ngram.table import NgramTable, lookup
from dragoman.ngram.trie import build_trie

TOLERANCE = 1e-3  # how far from one the unigrams may sum
OTHER_UNK = b"<UNK>"  # how some toolkits write it


def read_arpa(path: str | Path, *, vocab_pad: int | None = None, closed: bool = False) -> NgramModel:
    """The model of an ARPA file, plain or `.gz`.

    With `vocab_pad` the file's `<unk>` is one word's share of a language of that many words, as `lmplz --vocab_pad`
    writes it. Otherwise it is the whole class, and which word it was is uniform over 10,000,000 words, or with
    `closed` impossible.

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
        raise DataError("a closed vocabulary has no unknown words to share --vocab-pad among; choose one of the two")
    source, padded = Path(path), vocab_pad is not None
    vocab, levels = _read(source)
    total = DEFAULT_LANGUAGE_SIZE if vocab_pad is None else vocab_pad
    unknown: UnknownWordModel = (
        ClosedVocabulary(vocab.num_known) if closed else UniformUnknownWords(vocab.num_known, total)
    )
    levels = [_whole_class(level, total - vocab.num_known if padded else 1) for level in levels]
    _check_sum(levels[0], vocab, source, padded=padded)
    table = _table(levels)
    return NgramModel(vocab, table, unknown, NgramConfig(order=table.trie.order, smoothing=IMPORTED))


def _read(source: Path) -> tuple[Vocab, list[_Ngrams]]:
    """The vocabulary, and the n-grams of each order."""
    sections = read_sections(source)
    header = read_header(next_section(sections, DATA, source), source)
    spelled, unigrams = _read_unigrams(next_section(sections, section_name(1), source), header[0], source)
    spellings, levels = Spellings.of(spelled), [unigrams]
    for declared in header[1:]:
        pieces = next_section(sections, section_name(declared.order), source)
        rows = _read_rows(pieces, levels, spellings)
        declared.check(len(rows.ngrams.word), source)
        levels = _with_level(levels, rows, source)
    next_section(sections, ENDING, source)
    while len(levels) > 1 and not len(levels[-1].word):
        levels.pop()
    return Vocab([*SPECIALS, *(word.decode() for word in spelled[len(SPECIALS) :])]), levels


# -- from sections to rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ngrams:
    """N-grams of one order. Those put in by us have log_prob NaN."""

    context: NDArray[np.int32]  # (n-grams,) place among the n-grams one shorter; -1 where there is none
    word: NDArray[np.int32]  # (n-grams,) the last one
    log_prob: NDArray[np.float32]
    log_backoff: NDArray[np.float32]

    def keys(self) -> NDArray[np.int64]:
        """Context and word in one number, by which the n-grams of a trie are sorted."""
        return _keys(self.context, self.word)

    def take(self, order: NDArray[np.int64]) -> _Ngrams:
        return _Ngrams(self.context[order], self.word[order], self.log_prob[order], self.log_backoff[order])

    @classmethod
    def joined(cls, parts: Sequence[_Ngrams]) -> _Ngrams:
        return cls(
            np.concatenate([part.context for part in parts]),
            np.concatenate([part.word for part in parts]),
            np.concatenate([part.log_prob for part in parts]),
            np.concatenate([part.log_backoff for part in parts]),
        )


def _keys(context: NDArray[np.int32], word: NDArray[np.int32]) -> NDArray[np.int64]:
    return (context.astype(np.int64) << 32) | word


def _read_unigrams(pieces: Iterator[Piece], declared: Declared, source: Path) -> tuple[list[bytes], _Ngrams]:
    """The words in order of the file, after `<s>`, `</s>` and `<unk>`, and their numbers."""
    spelled: list[bytes] = []
    splits = []
    for piece in pieces:
        if error := piece.bad_bytes():
            raise error
        parts = split(piece, 1)
        spelled += [piece.text[a:b] for (a,), (b,) in zip(parts.starts.tolist(), parts.ends.tolist(), strict=True)]
        splits.append(parts)
    specials = [special.encode() for special in SPECIALS]
    if OTHER_UNK in spelled and specials[UNK] not in spelled:
        specials[UNK] = OTHER_UNK
    words = list(dict.fromkeys([*specials, *spelled]))
    number = {word: k for k, word in enumerate(words)}
    ids = np.array([number[word] for word in spelled], np.int64)
    _sorted_order(ids, 1, source)  # refuses words that come twice
    declared.check(len(spelled), source)
    size = len(words)
    log_prob, log_backoff = np.full(size, -np.inf, np.float32), np.zeros(size, np.float32)
    log_prob[ids] = np.concatenate([parts.log_prob for parts in splits])
    log_backoff[ids] = np.concatenate([parts.log_backoff for parts in splits])
    return words, _Ngrams(np.zeros(size, np.int32), np.arange(size, dtype=np.int32), log_prob, log_backoff)


@dataclass(frozen=True)
class _Rows:
    """N-grams as they come in the file; of those whose contexts are missing all words are kept."""

    ngrams: _Ngrams
    orphans: NDArray[np.int32]  # (n-grams without contexts, order)


def _read_rows(pieces: Iterator[Piece], levels: list[_Ngrams], spellings: Spellings) -> _Rows:
    order = len(levels) + 1
    bounds, word, begin = _layout(levels)
    index = spellings.data, spellings.begin, spellings.hashes, spellings.slots

    def parse(piece: Piece) -> _Rows:
        parts = split(piece, order)
        words = np.empty(parts.starts.shape, np.int32)
        missing = look_up(np.frombuffer(piece.text, np.uint8), parts.starts, parts.ends, *index, words)
        if missing >= 0:
            raise piece.wrong(int(parts.starts[missing, 0]), "a word that is not among the 1-grams")
        context = find_contexts(word, begin, bounds[order - 1], words)
        return _Rows(_Ngrams(context, words[:, -1].copy(), parts.log_prob, parts.log_backoff), words[context < 0])

    found = list(parallel_stream(parse, pieces, available_cores()))
    return _Rows(_Ngrams.joined([rows.ngrams for rows in found]), np.concatenate([rows.orphans for rows in found]))


# -- from rows to the trie -----------------------------------------------------------------------------------------


def _with_level(levels: list[_Ngrams], rows: _Rows, source: Path) -> list[_Ngrams]:
    """The levels with one more, sorted by context, then by last word."""
    level = rows.ngrams
    if len(rows.orphans):
        levels, moved, found = _with_contexts(levels, rows.orphans[:, :-1])
        known = level.context >= 0
        context = np.empty_like(level.context)
        context[known], context[~known] = moved[level.context[known]], found
        level = replace(level, context=context)
    keys = level.keys()
    if not (keys[1:] > keys[:-1]).all():
        level = level.take(_sorted_order(keys, len(levels) + 1, source))
    return [*levels, level]


def _with_contexts(
    levels: list[_Ngrams], contexts: NDArray[np.int32]
) -> tuple[list[_Ngrams], NDArray[np.int32], NDArray[np.int32]]:
    """Put in these contexts, and their contexts, where they are missing; pruning by other toolkits drops some.

    Returns the levels, where the n-grams of the last one have moved, and where the contexts are.
    """
    levels = list(levels)
    found = contexts[:, 0]
    moved = np.arange(len(levels[0].word), dtype=np.int32)
    for k in range(1, contexts.shape[1]):
        level = replace(levels[k], context=moved[levels[k].context])
        wanted, old = _keys(found, contexts[:, k]), level.keys()
        whole = _Ngrams.joined([level, _blank(np.setdiff1d(wanted, old))])
        levels[k] = whole.take(np.argsort(whole.keys()))
        keys = levels[k].keys()
        moved = np.searchsorted(keys, old).astype(np.int32)
        found = np.searchsorted(keys, wanted).astype(np.int32)
    return levels, moved, found


def _blank(keys: NDArray[np.int64]) -> _Ngrams:
    """N-grams to put in: as contexts they have weight 1; as n-grams, what backing off will give them."""
    context, word = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
    return _Ngrams(context, word, np.full(len(keys), np.nan, np.float32), np.zeros(len(keys), np.float32))


def _sorted_order(keys: NDArray[np.int64], order: int, source: Path) -> NDArray[np.int64]:
    """Where n-grams go when sorted by their keys, which must differ."""
    sequence = np.argsort(keys)
    repeats = np.flatnonzero(keys[sequence][1:] == keys[sequence][:-1])
    if len(repeats):
        raise repeated(source, order, int(np.maximum(sequence[repeats], sequence[repeats + 1]).min()))
    return sequence


def _layout(levels: list[_Ngrams]) -> tuple[list[int], NDArray[np.int32], NDArray[np.int32]]:
    """The levels as a trie has them: where each order begins, last words, first children."""
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
    """Give n-grams that were put in what backing off gives them, short ones first."""
    for node in range(1, begin.size - 1):
        for child in range(begin[node], begin[node + 1]):
            if np.isnan(log_prob[child]):
                context, w = suffix[node], word[child]
                shorter, _ = lookup(levels, word, begin, suffix, log_prob, log_backoff, codebook, context, w)
                log_prob[child] = log_backoff[node] + shorter


# -- what <unk> means ----------------------------------------------------------------------------------------------


def _whole_class(level: _Ngrams, members: int) -> _Ngrams:
    """The level with `<unk>` as a class of so many words, and `<s>`, which is given and never predicted, at 0."""
    log_prob = level.log_prob.copy()
    log_prob[level.word == UNK] += np.float32(math.log(members))
    log_prob[level.word == START] = -np.inf
    return replace(level, log_prob=log_prob)


def _check_sum(unigrams: _Ngrams, vocab: Vocab, source: Path, *, padded: bool) -> None:
    """Warn if the unigrams are no distribution, and say which --vocab-pad would make them one."""
    prob = np.exp(unigrams.log_prob.astype(float))
    if prob[END] == 0:
        warnings.warn(f"{source}: </s> has no probability; no sentence of this model can end", stacklevel=3)
    total, unk = float(prob.sum()), float(prob[UNK])
    if abs(total - 1) <= TOLERANCE:
        return
    advice = "its probabilities are taken as they stand"
    if padded:
        advice = "is --vocab-pad the number that the file was made with?"
    elif total < 1 and unk > 0:
        pad = vocab.num_known + (1 - total + unk) / unk
        advice = f"if <unk> is one word's share (lmplz --vocab_pad), give --vocab-pad; about {pad:.4g} would fit"
    warnings.warn(f"{source}: the unigrams sum to {total:.4f}, not to 1; {advice}", stacklevel=3)
