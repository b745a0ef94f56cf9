r"""ARPA files: n-gram models as text, the form in which toolkits exchange them.

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

Column `<unk>` of our models is the whole class of unknown words. So it is in files, unless they were made with
`lmplz --vocab_pad N`: then `<unk>` is the share of one unknown word in a language of N words.
"""

from __future__ import annotations

import gzip
import math
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman.errors import DataError, at
from dragoman.ngram.arpa_lines import (
    BAD_NUMBER,
    NUMBER_ROOM,
    POSITIVE,
    WRONG_FIELDS,
    Spellings,
    find_contexts,
    look_up,
    split_lines,
    write_lines,
)
from dragoman.ngram.model import IMPORTED, NgramConfig, NgramModel
from dragoman.ngram.table import PLAIN, Table, ask
from dragoman.ngram.trie import Trie, make_trie
from dragoman.storage import new_file
from dragoman.text.formats import BOM, explained
from dragoman.text.unknown import Closed, Uniform, UnknownWords
from dragoman.text.vocab import END, SPECIALS, START, UNK, Vocab
from dragoman.threads import cores, share

BLOCK = 1 << 22  # bytes read at a time
ROWS = 1 << 16  # n-grams written at a time
LINE = 64  # bytes that few lines exceed
TOLERANCE = 1e-3  # how far from one the unigrams may sum
DATA, ENDING = b"data\\", b"end\\"
OTHER_UNK = b"<UNK>"  # how some toolkits write it
CUT_SHORT = "the file is cut short; copy it or make it again"

T = TypeVar("T")
Bytes = bytes | memoryview


def read_arpa(path: str | Path, *, vocab_pad: int | None = None, closed: bool = False) -> NgramModel:
    """The model of an ARPA file, plain or `.gz`.

    With `vocab_pad` the file's `<unk>` is one word's share of a language of that many words, as `lmplz --vocab_pad`
    writes it. Otherwise it is the whole class, and which word it was is uniform over 10,000,000 words, or with
    `closed` impossible.
    """
    if closed and vocab_pad is not None:
        raise DataError("a closed vocabulary has no unknown words to share --vocab-pad among; choose one of the two")
    source = Path(path)
    words, levels = _read_levels(source)
    vocab = Vocab(words)
    unknown: UnknownWords = Closed(vocab.known) if closed else Uniform(vocab.known)
    members = 1  # of the class that the file's <unk> stands for
    if vocab_pad is not None:
        unknown, members = Uniform(vocab.known, vocab_pad), vocab_pad - vocab.known
    levels = [_whole_class(level, members) for level in levels]
    _check_sum(levels[0], vocab, source, padded=vocab_pad is not None)
    table = _table(levels)
    return NgramModel(vocab, table, unknown, NgramConfig(order=table.trie.order, smoothing=IMPORTED))


def write_arpa(model: NgramModel, path: str | Path, *, vocab_pad: int | None = None) -> None:
    """Write a model as an ARPA file, gzipped if the name ends in `.gz`; whole or not at all.

    With `vocab_pad`, `<unk>` is written as the share of one unknown word in a language of that many words.
    """
    target, trie = Path(path), model.table.trie
    if model.settings.gap:
        raise DataError(
            f"{target}: a model that skips words (gap {model.settings.gap}) has no ARPA form; train another"
        )
    spellings = Spellings.of(_spelled(model.vocab))
    known = model.vocab.known
    share_of_one = 0.0 if vocab_pad is None else -Uniform(known, vocab_pad).log_probs([SPECIALS[UNK]])[0]
    pack = _packed if target.suffix == ".gz" else _plain
    sizes = "".join(f"ngram {order}={size}\n" for order, size in enumerate(trie.sizes(), 1))
    with new_file(target) as temporary, temporary.open("wb") as file:
        file.write(pack(f"\\data\\\n{sizes}".encode()))
        for order in range(1, trie.order + 1):
            file.write(pack(b"\n\\%d-grams:\n" % order))
            block = _Writer(trie, order, model.table.values(order), model.table.log_backoff, spellings, share_of_one)
            for group in _batches(range(trie.levels[order], trie.levels[order + 1], ROWS), 4 * cores()):
                file.writelines(share(lambda first, block=block: pack(block.lines(first)), group))  # type: ignore[misc]
        file.write(pack(b"\n\\end\\\n"))


# -- writing -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Writer:
    """The n-grams of one order, to be written block by block."""

    trie: Trie
    order: int
    log_prob: NDArray[np.float32]  # (n-grams of this order,)
    log_backoff: NDArray[np.float32]
    spellings: Spellings
    share_of_one: float  # what `<unk>` is divided by, as a log

    def lines(self, first: int) -> memoryview:
        """The lines of ROWS n-grams from node `first` on."""
        trie, spellings = self.trie, self.spellings
        start = trie.levels[self.order]
        last = min(first + ROWS, trie.levels[self.order + 1])
        path = _path(trie, self.order, first)
        longest_line = 2 * NUMBER_ROOM + self.order * (spellings.longest + 1)
        tables = trie.word, trie.begin, self.log_prob, self.log_backoff, spellings.data, spellings.begin
        written = []
        while path[-1] < last:  # once, unless the words are long
            out = np.empty(LINE * (last - int(path[-1])) + longest_line, np.uint8)
            used = write_lines(*tables, self.share_of_one, longest_line, start, path, last, out)
            written.append(out[:used])
        return (written[0] if len(written) == 1 else np.concatenate(written)).data


def _path(trie: Trie, order: int, node: int) -> NDArray[np.int64]:
    """A node after its prefixes, from one word up."""
    path = [node]
    for _ in range(1, order):  # the parent is the last context that begins no later
        path.insert(0, int(np.searchsorted(trie.begin, np.int32(path[0]), side="right")) - 1)
    return np.array(path, np.int64)


def _spelled(vocab: Vocab) -> list[bytes]:
    for word in vocab.words:
        if not word or set(word) & set(" \t\r\n\0"):
            raise DataError(f"the word {word!r} cannot be written to an ARPA file: it is empty or holds a blank")
    return [word.encode() for word in vocab.words]


def _plain(text: Bytes) -> Bytes:
    return text


def _packed(text: Bytes) -> Bytes:
    """A gzip member of its own; a file may have many, so that blocks are packed on all cores."""
    return gzip.compress(text, compresslevel=4, mtime=0)


# -- reading: the sections -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Piece:
    """Some whole lines of one section."""

    section: bytes  # the line that opened it, without its first backslash
    text: bytes
    line: int  # number of the first line


Sections = Iterator[tuple[bytes, Iterator[_Piece]]]


def _pieces(path: Path) -> Iterator[_Piece]:
    """The file, a few megabytes at a time."""
    section, line, rest = b"", 1, b""
    with explained(path), _opened(path) as file:
        rest = file.read(len(BOM)).removeprefix(BOM)
        while block := file.read(BLOCK):
            text = rest + block
            cut = text.rfind(b"\n") + 1
            rest = text[cut:]
            for piece in _cut(_Piece(section, text[:cut], line)):
                yield piece
                section = piece.section
            line += text.count(b"\n", 0, cut)
        yield from _cut(_Piece(section, rest, line))


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _cut(piece: _Piece) -> Iterator[_Piece]:
    """Cut before each line that begins with a backslash, the opening of a section."""
    before, *openings = (b"\n" + piece.text).split(b"\n\\")
    yield replace(piece, text=before[1:])
    line = piece.line + before.count(b"\n")
    for opening in openings:
        name, _, text = opening.partition(b"\n")
        yield _Piece(name.strip(), text, line + 1)
        line += opening.count(b"\n") + 1


def _section(sections: Sections, name: bytes, source: Path) -> Iterator[_Piece]:
    """The next section, which must have this name."""
    found, pieces = next(sections, (None, iter(())))
    if found is None:
        raise DataError(f"{source}: ends before \\{name.decode()}: {CUT_SHORT}")
    if found != name:
        shown = found.decode(errors="replace")
        raise at(
            str(source), next(pieces).line - 1, f"\\{shown:.40} stands where \\{name.decode()} should; mend the file"
        )
    return pieces


def _read_levels(source: Path) -> tuple[list[str], list[_Level]]:
    """The vocabulary and the n-grams of each order."""
    sections: Sections = groupby(_pieces(source), key=lambda piece: piece.section)
    list(next(sections)[1])  # what comes before \data\ is comment
    declared = _read_header(_section(sections, DATA, source), source)
    words, unigrams = _read_unigrams(_section(sections, b"1-grams:", source), source)
    _check_size(unigrams.rows, 1, declared, source)
    spellings = Spellings.of([unigrams.unk_spelling if k == UNK else word.encode() for k, word in enumerate(words)])
    levels = [unigrams.level]
    for order in range(2, len(declared) + 1):
        pieces = _section(sections, b"%d-grams:" % order, source)
        rows = _read_ngrams(pieces, order, levels, spellings, source)
        _check_size(len(rows.word), order, declared, source)
        levels = _joined(levels, rows, source)
    next(_section(sections, ENDING, source))
    while len(levels) > 1 and not len(levels[-1].word):
        levels.pop()
    return words, levels


@dataclass(frozen=True)
class _Declared:
    """What the header says of one order."""

    size: int
    line: int


def _read_header(pieces: Iterator[_Piece], source: Path) -> list[_Declared]:
    declared: list[_Declared] = []
    lines = ((piece.line + k, text) for piece in pieces for k, text in enumerate(piece.text.split(b"\n")))
    for number, line in lines:
        if not line.strip():
            continue
        found = re.fullmatch(rb"ngram\s+(\d+)\s*=\s*(\d+)\s*", line)
        if found is None or int(found[1]) != len(declared) + 1:
            raise at(str(source), number, f"expected `ngram {len(declared) + 1}=COUNT`, found {_shown(line)}")
        declared.append(_Declared(int(found[2]), number))
    if not declared:
        raise DataError(f"{source}: \\data\\ declares no n-grams: {CUT_SHORT}")
    return declared


def _check_size(size: int, order: int, declared: list[_Declared], source: Path) -> None:
    said = declared[order - 1]
    if size != said.size:
        problem = f"{said.size} {order}-grams are declared, but {size} follow; {CUT_SHORT}, or mend the count"
        raise at(str(source), said.line, problem)


# -- reading: the lines --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Split:
    """The lines of a piece, taken apart."""

    starts: NDArray[np.int32]  # (n-grams, order) the first byte of each word
    ends: NDArray[np.int32]
    log_prob: NDArray[np.float32]  # (n-grams,) natural logs from here on
    log_backoff: NDArray[np.float32]


def _split(piece: _Piece, order: int, source: Path) -> _Split:
    most = piece.text.count(b"\n") + 2
    places = np.empty((most, order), np.int32), np.empty((most, order), np.int32)
    numbers = np.empty(most, np.float32), np.empty(most, np.float32)
    rows, wrong, kind = split_lines(np.frombuffer(piece.text, np.uint8), order, *places, *numbers)
    if wrong >= 0:
        words = f"{order} words" if order > 1 else "one word"
        problem = {
            WRONG_FIELDS: f"expected log10 probability, {words} and perhaps a log10 back-off weight",
            BAD_NUMBER: f"what stands before or after {words} is not a base-10 logarithm",
            POSITIVE: "a log10 probability above 0",
        }[kind]
        raise _wrong_line(piece, wrong, problem, source)
    return _Split(places[0][:rows], places[1][:rows], numbers[0][:rows], numbers[1][:rows])


def _wrong_line(piece: _Piece, place: int, problem: str, source: Path) -> DataError:
    """What is wrong with the line that holds this byte."""
    first = piece.text.rfind(b"\n", 0, place) + 1
    text = piece.text[first:].partition(b"\n")[0]
    number = piece.line + piece.text.count(b"\n", 0, first)
    return _bad_bytes(text, number, source) or at(str(source), number, f"{problem}; mend or remove {_shown(text)}")


def _bad_bytes(text: bytes, line: int, source: Path) -> DataError | None:
    """The error of text that is no text."""
    if (nul := text.find(b"\0")) >= 0:
        return at(str(source), line + text.count(b"\n", 0, nul), "NUL byte; this is not a text file, or it is UTF-16")
    try:
        text.decode()
    except UnicodeDecodeError as error:
        place = line + text.count(b"\n", 0, error.start)
        remedy = "convert it, for example with iconv -t UTF-8"
        return at(str(source), place, f"not UTF-8 (byte 0x{text[error.start]:02x}); {remedy}")
    return None


def _shown(line: bytes) -> str:
    return repr(line.decode(errors="replace").strip())[:80]


@dataclass(frozen=True)
class _Unigrams:
    level: _Level
    rows: int  # lines that the section had
    unk_spelling: bytes


def _read_unigrams(pieces: Iterator[_Piece], source: Path) -> tuple[list[str], _Unigrams]:
    """The vocabulary in order of the file, after `<s>`, `</s>` and `<unk>`."""
    spelled: list[bytes] = []
    splits = []
    for piece in pieces:
        if error := _bad_bytes(piece.text, piece.line, source):
            raise error
        splits.append(_split(piece, 1, source))
        places = zip(splits[-1].starts[:, 0].tolist(), splits[-1].ends[:, 0].tolist(), strict=True)
        spelled += [piece.text[a:b] for a, b in places]
    unk = SPECIALS[UNK].encode()
    unk = OTHER_UNK if OTHER_UNK in spelled and unk not in spelled else unk
    number = {word: k for k, word in enumerate([*(special.encode() for special in SPECIALS[:UNK]), unk])}
    for word in spelled:
        number.setdefault(word, len(number))
    ids = np.array([number[word] for word in spelled], np.int64)
    _sorted_order(ids, 1, source)
    size = len(number)
    log_prob, log_backoff = np.full(size, -np.inf, np.float32), np.zeros(size, np.float32)
    log_prob[ids] = np.concatenate([split.log_prob for split in splits])
    log_backoff[ids] = np.concatenate([split.log_backoff for split in splits])
    words = [*SPECIALS, *(word.decode() for word in list(number)[len(SPECIALS) :])]
    level = _Level(np.zeros(size, np.int32), np.arange(size, dtype=np.int32), log_prob, log_backoff)
    return words, _Unigrams(level, len(spelled), unk)


@dataclass(frozen=True)
class _Rows:
    """N-grams as they come. Those whose contexts are missing have context -1 and are kept in full."""

    context: NDArray[np.int32]  # (n-grams,) place among the n-grams one shorter
    word: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    log_backoff: NDArray[np.float32]
    orphans: NDArray[np.int32]  # (n-grams without contexts, order) their words


def _read_ngrams(
    pieces: Iterator[_Piece], order: int, levels: list[_Level], spellings: Spellings, source: Path
) -> _Rows:
    bounds, word, begin = _layout(levels)
    index = spellings.data, spellings.begin, spellings.hashes, spellings.slots

    def parse(piece: _Piece) -> _Rows:
        split = _split(piece, order, source)
        words = np.empty(split.starts.shape, np.int32)
        missing = look_up(np.frombuffer(piece.text, np.uint8), split.starts, split.ends, *index, words)
        if missing >= 0:
            problem = "a word that is not among the 1-grams"
            raise _wrong_line(piece, int(split.starts[missing, 0]), problem, source)
        context = np.empty(len(words), np.int32)
        find_contexts(word, begin, words, context)
        orphans = words[context < 0]
        context = np.where(context < 0, np.int32(-1), context - np.int32(bounds[order - 1]))
        return _Rows(context, words[:, -1].copy(), split.log_prob, split.log_backoff, orphans)

    found = [rows for group in _batches(pieces, cores()) for rows in share(parse, group)]
    return _Rows(
        np.concatenate([rows.context for rows in found]),
        np.concatenate([rows.word for rows in found]),
        np.concatenate([rows.log_prob for rows in found]),
        np.concatenate([rows.log_backoff for rows in found]),
        np.concatenate([rows.orphans for rows in found]),
    )


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    waiting = iter(items)
    while batch := list(islice(waiting, size)):
        yield batch


# -- reading: the trie ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Level:
    """The n-grams of one order, sorted by context, then by last word. Those put in by us have log_prob NaN."""

    context: NDArray[np.int32]  # (n-grams,) place among the n-grams one shorter
    word: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    log_backoff: NDArray[np.float32]

    def take(self, order: NDArray[np.int64]) -> _Level:
        return _Level(self.context[order], self.word[order], self.log_prob[order], self.log_backoff[order])


def _keys(context: NDArray[np.int32], word: NDArray[np.int32]) -> NDArray[np.int64]:
    """Context and word in one number, by which n-grams are sorted."""
    return (context.astype(np.int64) << 32) | word


def _joined(levels: list[_Level], rows: _Rows, source: Path) -> list[_Level]:
    """The levels with one more."""
    context = rows.context
    if len(rows.orphans):
        levels, moved, found = _with_contexts(levels, rows.orphans[:, :-1])
        known = context >= 0
        context = np.empty_like(context)
        context[known], context[~known] = moved[rows.context[known]], found
    level = _Level(context, rows.word, rows.log_prob, rows.log_backoff)
    keys = _keys(context, rows.word)
    if not (keys[1:] > keys[:-1]).all():
        level = level.take(_sorted_order(keys, len(levels) + 1, source))
    return [*levels, level]


def _with_contexts(
    levels: list[_Level], contexts: NDArray[np.int32]
) -> tuple[list[_Level], NDArray[np.int32], NDArray[np.int32]]:
    """Put in these contexts, and their contexts, where they are missing; pruning by other toolkits drops some.

    Returns the levels, where the n-grams of the last one have moved, and where the contexts are.
    """
    levels = list(levels)
    found = contexts[:, 0]
    moved = np.arange(len(levels[0].word), dtype=np.int32)
    for k in range(1, contexts.shape[1]):
        level = replace(levels[k], context=moved[levels[k].context])
        wanted, old = _keys(found, contexts[:, k]), _keys(level.context, level.word)
        new = np.setdiff1d(wanted, old)
        keys = np.concatenate([old, new])
        order = np.argsort(keys)
        blank = np.full(len(new), np.nan, np.float32)
        levels[k] = _Level(
            np.concatenate([level.context, (new >> 32).astype(np.int32)]),
            np.concatenate([level.word, (new & 0xFFFFFFFF).astype(np.int32)]),
            np.concatenate([level.log_prob, blank]),
            np.concatenate([level.log_backoff, np.zeros_like(blank)]),
        ).take(order)
        moved = np.searchsorted(keys[order], old).astype(np.int32)
        found = np.searchsorted(keys[order], wanted).astype(np.int32)
    return levels, moved, found


def _sorted_order(keys: NDArray[np.int64], order: int, source: Path) -> NDArray[np.int64]:
    """Where n-grams go when sorted by their keys, which must differ."""
    sequence = np.argsort(keys)
    repeats = np.flatnonzero(keys[sequence][1:] == keys[sequence][:-1])
    if len(repeats):
        raise _repeated(int(np.maximum(sequence[repeats], sequence[repeats + 1]).min()), order, source)
    return sequence


def _repeated(row: int, order: int, source: Path) -> DataError:
    """The error of an n-gram that was there already; the file is read again to say on which line."""
    pieces = (piece for piece in _pieces(source) if piece.section == b"%d-grams:" % order)
    lines = ((piece.line + k, text) for piece in pieces for k, text in enumerate(piece.text.split(b"\n")))
    number, line = next(islice(((number, line) for number, line in lines if line.strip()), row, None))
    return at(str(source), number, f"this n-gram was there already; remove {_shown(line)}")


def _layout(levels: list[_Level]) -> tuple[list[int], NDArray[np.int32], NDArray[np.int32]]:
    """The levels as a trie has them: where each order begins, last words, first children."""
    bounds = [0, 1, *(1 + np.cumsum([len(level.word) for level in levels])).tolist()]
    begin = [np.ones(1, np.int64)]
    for order, (shorter, level) in enumerate(zip(levels[:-1], levels[1:], strict=True), 2):
        children = np.bincount(level.context, minlength=len(shorter.word))
        begin.append(bounds[order] + np.cumsum(children) - children)
    begin.append(np.array(bounds[-1:]))
    word = np.concatenate([np.zeros(1, np.int32), *(level.word for level in levels)])
    return bounds, word, np.concatenate(begin).astype(np.int32)


def _table(levels: list[_Level]) -> Table:
    trie = make_trie(*_layout(levels))
    log_prob = np.concatenate([np.full(1, -np.inf, np.float32), *(level.log_prob for level in levels)])
    log_backoff = np.concatenate([np.zeros(1, np.float32), *(level.log_backoff for level in levels[:-1])])
    put_in = np.flatnonzero(np.isnan(log_prob))
    parents = np.searchsorted(trie.begin, put_in.astype(np.int32), side="right") - 1
    bounds = np.array(trie.levels, np.int64)
    _back_off(bounds, trie.word, trie.begin, trie.suffix, log_prob, log_backoff, PLAIN, put_in, parents)
    return Table(trie, log_prob, log_backoff)


@njit(cache=True, nogil=True)
def _back_off(
    levels: Any,
    word: Any,
    begin: Any,
    suffix: Any,
    log_prob: Any,
    log_backoff: Any,
    codebook: Any,
    nodes: Any,
    parents: Any,
) -> None:
    """Give n-grams that were put in what backing off gives them, short ones first."""
    for k in range(nodes.size):
        node, parent = nodes[k], parents[k]
        shorter, _ = ask(levels, word, begin, suffix, log_prob, log_backoff, codebook, suffix[parent], word[node])
        log_prob[node] = log_backoff[parent] + shorter


# -- reading: what <unk> means -------------------------------------------------------------------------------------


def _whole_class(level: _Level, members: int) -> _Level:
    """The level with `<unk>` as a class of so many words, and `<s>`, which is given and never predicted, at 0."""
    log_prob = level.log_prob.copy()
    log_prob[level.word == UNK] += np.float32(math.log(members))
    log_prob[level.word == START] = -np.inf
    return replace(level, log_prob=log_prob)


def _check_sum(unigrams: _Level, vocab: Vocab, source: Path, *, padded: bool) -> None:
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
        pad = vocab.known + (1 - total + unk) / unk
        advice = f"if <unk> is one word's share (lmplz --vocab_pad), give --vocab-pad; about {pad:.4g} would fit"
    warnings.warn(f"{source}: the unigrams sum to {total:.4f}, not to 1; {advice}", stacklevel=3)
