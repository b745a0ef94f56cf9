r"""ARPA files: the text format in which toolkits exchange n-gram models.

    \data\
    ngram 1=6
    ngram 2=7

    \1-grams:
    -0.6146491  a    -0.30103     log10 P(a), the word, log10 of its back-off weight as a context
    ...
    \2-grams:
    -0.3422159  a b               log10 P(b | a)
    ...
    \end\

`<unk>` is the class of all unknown words, in our models and in files, except in files written with
`lmplz --vocab_pad N`: there `<unk>` is the share of one unknown word in a language of N words.
"""

from __future__ import annotations

import gzip
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel
from dragoman.core.threads import available_cores, parallel_stream
from dragoman.data.spellings import Spellings, eight_bytes, padded
from dragoman.data.unknown_words import DEFAULT_LANGUAGE_SIZE, ClosedVocabulary, UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import END, SPECIALS, START, UNK, Vocab
from dragoman.io.files import atomic_file
from dragoman.ngram import arpa_lines as lines
from dragoman.ngram.model import IMPORTED, NgramConfig, NgramModel
from dragoman.ngram.table import NgramTable, lookup
from dragoman.ngram.trie import Trie, Words, node_type, word_type

TOLERANCE = 1e-3  # allowed deviation of the sum of unigrams from one
OTHER_UNK = b"<UNK>"  # the spelling of some toolkits
BLOCK_ROWS = 1 << 16  # n-grams written at a time
TYPICAL_LINE_BYTES = 64  # few lines are longer

Bytes = bytes | memoryview
Pack = Callable[[Bytes], Bytes]


# -- reading -------------------------------------------------------------------------------------------------------


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
        problem = "--vocab-pad is for unknown words, which a closed vocabulary does not have"
        raise DataError(f"{problem}; choose one of the two")
    source = Path(path)
    vocab, levels = _read(source)
    total = DEFAULT_LANGUAGE_SIZE if vocab_pad is None else vocab_pad
    unknown: UnknownWordModel = (
        ClosedVocabulary(vocab.num_known) if closed else UniformUnknownWords(vocab.num_known, total)
    )
    members = 1 if vocab_pad is None else total - vocab.num_known  # of the class <unk>, of which the file has one
    for level in levels:
        level.log_prob[level.word == UNK] += np.float32(math.log(members))
        level.log_prob[level.word == START] = -np.inf
    _check_sum(levels[0], vocab, source, padded=vocab_pad is not None)
    log_prob = np.concatenate([np.full(1, -np.inf, np.float32), *(level.log_prob for level in levels)])
    log_backoff = np.concatenate([np.zeros(1, np.float32), *(level.log_backoff for level in levels[:-1])])
    bounds, word, begin = _layout(levels)
    trie = Trie(tuple(bounds), word, begin)
    table = NgramTable(trie, log_prob, log_backoff)
    _back_off(table.arrays(), trie.suffix, log_prob)
    return NgramModel(vocab, table, unknown, NgramConfig(order=table.trie.order, smoothing=IMPORTED))


def _read(source: Path) -> tuple[Vocab, list[_Ngrams]]:
    """Read the vocabulary and the n-grams of each order."""
    sections = lines.read_sections(source)
    header = lines.read_header(lines.next_section(sections, lines.DATA, source), source)
    words, unigrams = _read_unigrams(lines.next_section(sections, b"1-grams:", source), header[0], source)
    spellings, levels = Spellings.from_words(words), [unigrams]
    for order_header in header[1:]:
        chunks = lines.next_section(sections, b"%d-grams:" % order_header.order, source)
        level, orphans = _read_rows(chunks, levels, spellings)
        order_header.check(len(level.word), source)
        if len(orphans):
            levels, moved, added = _with_contexts(levels, orphans[:, :-1])
            known = level.context >= 0
            context = np.empty_like(level.context)
            context[known], context[~known] = moved[level.context[known]], added
            level = level._replace(context=context)
        keys = level.keys()
        if not (keys[1:] > keys[:-1]).all():
            level = level.take(_sorted_order(keys, order_header.order, source))
        levels = [*levels, level]
    lines.next_section(sections, lines.ENDING, source)
    while len(levels) > 1 and not len(levels[-1].word):
        levels.pop()
    return Vocab([*SPECIALS, *(word.decode() for word in words[len(SPECIALS) :])]), levels


class _Ngrams(NamedTuple):
    """N-grams of one order. Contexts that were missing in the file have log_prob NaN."""

    context: NDArray[np.int32]  # (n-grams,) index among the n-grams one word shorter; -1 if missing
    word: NDArray[np.int32]  # (n-grams,) the last word
    log_prob: NDArray[np.float32]
    log_backoff: NDArray[np.float32]

    def keys(self) -> NDArray[np.int64]:
        """Return context and word packed into one number, by which the n-grams of a trie are sorted."""
        return (self.context.astype(np.int64) << 32) | self.word

    def take(self, order: NDArray[np.int64]) -> _Ngrams:
        return _Ngrams(self.context[order], self.word[order], self.log_prob[order], self.log_backoff[order])

    @classmethod
    def concatenate(cls, parts: Iterable[_Ngrams]) -> _Ngrams:
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _read_unigrams(
    chunks: Iterator[lines.Chunk], header: lines.OrderHeader, source: Path
) -> tuple[list[bytes], _Ngrams]:
    """Read the words, in order of the file after `<s>`, `</s>` and `<unk>`, and their probabilities."""
    words: list[bytes] = []
    splits = []
    for chunk in chunks:
        if error := chunk.encoding_error():
            raise error
        parts = lines.parse_lines(chunk, 1)
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


def _read_rows(
    chunks: Iterator[lines.Chunk], levels: list[_Ngrams], spellings: Spellings
) -> tuple[_Ngrams, NDArray[np.int32]]:
    """Return n-grams in the order of the file, and all words of those whose contexts are missing.  # (orphans, order)"""
    order = len(levels) + 1
    bounds, word, begin = _layout(levels)
    known = spellings.for_kernels()

    def parse(chunk: lines.Chunk) -> tuple[_Ngrams, NDArray[np.int32]]:
        parsed = lines.parse_lines(chunk, order)
        words = np.empty(parsed.starts.shape, np.int32)
        missing = lines.find_words(eight_bytes(padded(chunk.text)), parsed, known, words)
        if missing >= 0:
            raise chunk.line_error(int(parsed.starts[missing, 0]), "a word that is not in the 1-grams")
        context = lines.find_contexts(word, begin, bounds[order - 1], words)
        return _Ngrams(context, words[:, -1].copy(), parsed.log_prob, parsed.log_backoff), words[context < 0]

    ngrams, orphans = zip(*parallel_stream(parse, chunks, available_cores()), strict=True)
    return _Ngrams.concatenate(ngrams), np.concatenate(orphans)


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
        level = levels[k]._replace(context=moved[levels[k].context])
        required, old = (index.astype(np.int64) << 32) | contexts[:, k], level.keys()
        new = np.setdiff1d(required, old)
        new_context, new_word = (new >> 32).astype(np.int32), (new & 0xFFFFFFFF).astype(np.int32)
        unset = np.full(len(new), np.nan, np.float32)  # computed later by backing off; the back-off weight is 1
        merged = _Ngrams.concatenate([level, _Ngrams(new_context, new_word, unset, np.zeros_like(unset))])
        levels[k] = merged.take(np.argsort(merged.keys()))
        keys = levels[k].keys()
        moved = np.searchsorted(keys, old).astype(np.int32)
        index = np.searchsorted(keys, required).astype(np.int32)
    return levels, moved, index


def _sorted_order(keys: NDArray[np.int64], order: int, source: Path) -> NDArray[np.int64]:
    """Return the order of n-grams by their keys; repeated keys are an error."""
    sequence = np.argsort(keys)
    repeats = np.flatnonzero(keys[sequence][1:] == keys[sequence][:-1])
    if len(repeats):
        raise lines.repeated_ngram_error(source, order, int(np.maximum(sequence[repeats], sequence[repeats + 1]).min()))
    return sequence


def _layout(levels: list[_Ngrams]) -> tuple[list[int], Words, NDArray[np.signedinteger]]:
    """Return the levels in the layout of a trie: first nodes, last words and first children."""
    bounds = [0, 1, *(1 + np.cumsum([len(level.word) for level in levels])).tolist()]
    begin = [np.ones(1, np.int64)]
    for order, (shorter, level) in enumerate(pairwise(levels), 2):
        children = np.bincount(level.context, minlength=len(shorter.word))
        begin.append(bounds[order] + np.cumsum(children) - children)
    begin.append(np.array(bounds[-1:]))
    word = np.concatenate([np.zeros(1, np.int32), *(level.word for level in levels)])
    dtype = node_type(bounds[-1])
    return bounds, word.astype(word_type(len(levels[0].word)), copy=False), np.concatenate(begin).astype(dtype)


@kernel
def _back_off(table: Any, suffix: Any, log_prob: Any) -> None:
    """Compute the probabilities of added n-grams by backing off, short ones first."""
    for node in range(1, table.begin.size - 1):
        for child in range(table.begin[node], table.begin[node + 1]):
            if np.isnan(log_prob[child]):
                shorter = lookup(table, suffix, suffix[node], table.word[child])
                log_prob[child] = table.log_backoff[node] + shorter


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


# -- writing -------------------------------------------------------------------------------------------------------


def write_arpa(model: NgramModel, path: str | Path, *, vocab_pad: int | None = None) -> None:
    """Write a model as an ARPA file, gzipped if the name ends in `.gz`. `-` is standard output.

    With `vocab_pad`, `<unk>` is written as the share of one unknown word in a language of that many words.

    >>> import tempfile
    >>> from dragoman import Corpus, NgramModel, write_arpa
    >>> model = NgramModel.train(Corpus.from_sentences(["a b", "b a"]), order=2, smoothing="witten-bell")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "model.arpa")
    ...     write_arpa(model, path)
    ...     path.read_text().split()[1:3]
    ['ngram', '1=5']
    """
    target, trie, known = Path(path), model.table.trie, model.vocab.num_known
    if gap := model.settings.gap:
        problem = f"a model that skips words (gap {gap}) cannot be written as ARPA; train one without a gap"
        raise DataError(f"{target}: {problem}")
    trie.require_valid()
    for word in model.vocab.tokens:
        if not word or set(word) & set(" \t\r\n\0"):
            raise DataError(f"the word {word!r} cannot be written to an ARPA file: it is empty or has a blank")
    spellings = model.vocab.spellings
    members = 1 if vocab_pad is None else UniformUnknownWords(known, vocab_pad).language_size - known
    # A file may have many gzip members, so blocks can be compressed in parallel.
    gzipped = target.suffix == ".gz"
    pack: Pack = partial(gzip.compress, compresslevel=4, mtime=0) if gzipped else lambda text: text
    sizes = "".join(f"ngram {order}={size}\n" for order, size in enumerate(trie.sizes(), 1))
    with _open_output(target) as file:
        file.write(pack(f"\\data\\\n{sizes}".encode()))
        for order in range(1, trie.order + 1):
            nodes = trie.span(order)
            file.write(pack(b"\n\\%d-grams:\n" % order))
            block = partial(_block, model.table, order, spellings, math.log(members), pack)
            file.writelines(parallel_stream(block, range(nodes.start, nodes.stop, BLOCK_ROWS), 4 * available_cores()))
        file.write(pack(b"\n\\end\\\n"))


@contextmanager
def _open_output(target: Path) -> Iterator[IO[bytes]]:
    if str(target) == "-":
        yield sys.stdout.buffer
        return
    with atomic_file(target) as temporary, temporary.open("wb") as file:
        yield file


def _block(table: NgramTable, order: int, spellings: Spellings, log_members: float, pack: Pack, first: int) -> Bytes:
    """Return the lines of BLOCK_ROWS n-grams from node `first` on."""
    last = min(first + BLOCK_ROWS, table.trie.levels[order + 1])
    prefixes = [first]
    for _ in range(1, order):  # the parent is the last context whose first child is not after the node
        prefixes.insert(
            0, int(np.searchsorted(table.trie.begin, table.trie.begin.dtype.type(prefixes[0]), side="right")) - 1
        )
    path = np.array(prefixes, np.int64)
    max_line_bytes = 2 * lines.NUMBER_BYTES + order * (int(np.diff(spellings.begin).max()) + 1)
    arrays, blocks = table.arrays(), []
    while path[-1] < last:  # a second time only if the words are long
        out = np.empty(TYPICAL_LINE_BYTES * (last - int(path[-1])) + max_line_bytes, np.uint8)
        used = lines.write_lines(arrays, spellings, log_members, max_line_bytes, path, last, out)
        blocks.append(out[:used])
    return pack((blocks[0] if len(blocks) == 1 else np.concatenate(blocks)).data)
