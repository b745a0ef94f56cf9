"""Writing ARPA files, block by block and in parallel."""

from __future__ import annotations

import gzip
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.threads import available_cores, parallel_stream
from dragoman.data.unknown_words import UniformUnknownWords
from dragoman.data.vocabulary import Vocab
from dragoman.io.storage import atomic_file
from dragoman.ngram.arpa.lines import NUMBER_BYTES, Spellings, write_lines
from dragoman.ngram.model import NgramModel
from dragoman.ngram.table import NgramTable
from dragoman.ngram.trie import Trie

BLOCK_ROWS = 1 << 16  # n-grams written at a time
TYPICAL_LINE_BYTES = 64  # few lines are longer

Bytes = bytes | memoryview
Pack = Callable[[Bytes], Bytes]


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
    if model.settings.gap:
        raise DataError(
            f"{target}: a model that skips words (gap {model.settings.gap}) cannot be written as ARPA; train one without a gap"
        )
    spellings = _spellings(model.vocab)
    members = 1 if vocab_pad is None else UniformUnknownWords(known, vocab_pad).language_size - known
    pack = _gzip if target.suffix == ".gz" else _plain
    sizes = "".join(f"ngram {order}={size}\n" for order, size in enumerate(trie.sizes(), 1))
    with _open_output(target) as file:
        file.write(pack(f"\\data\\\n{sizes}".encode()))
        for order in range(1, trie.order + 1):
            section = _ArpaSection(model.table, order, model.table.values(order), spellings, math.log(members))
            file.writelines(section.text(pack))
        file.write(pack(b"\n\\end\\\n"))


@contextmanager
def _open_output(target: Path) -> Iterator[IO[bytes]]:
    if str(target) == "-":
        yield sys.stdout.buffer
        return
    with atomic_file(target) as temporary, temporary.open("wb") as file:
        yield file


def _spellings(vocab: Vocab) -> Spellings:
    for word in vocab.tokens:
        if not word or set(word) & set(" \t\r\n\0"):
            raise DataError(f"the word {word!r} cannot be written to an ARPA file: it is empty or has a blank")
    return Spellings.from_words([word.encode() for word in vocab.tokens])


def _plain(text: Bytes) -> Bytes:
    return text


def _gzip(text: Bytes) -> Bytes:
    """Return one gzip member. A file may have many, so blocks can be compressed in parallel."""
    return gzip.compress(text, compresslevel=4, mtime=0)


@dataclass(frozen=True)
class _ArpaSection:
    """The n-grams of one order."""

    table: NgramTable
    order: int
    log_prob: NDArray[np.float32]  # (n-grams of this order,) decoded, if the table is quantised
    spellings: Spellings
    log_members: float  # log of the number of words in the class `<unk>`, of which one is blocks

    def text(self, pack: Pack) -> Iterator[Bytes]:
        """Yield the section in blocks, each compressed separately."""
        nodes = self.table.trie.span(self.order)
        yield pack(b"\n\\%d-grams:\n" % self.order)
        yield from parallel_stream(
            lambda first: pack(self._lines(first)), range(nodes.start, nodes.stop, BLOCK_ROWS), 4 * available_cores()
        )

    def _lines(self, first: int) -> memoryview:
        """Return the lines of BLOCK_ROWS n-grams from node `first` on."""
        trie, spellings, nodes = self.table.trie, self.spellings, self.table.trie.span(self.order)
        last = min(first + BLOCK_ROWS, nodes.stop)
        path = _path(trie, self.order, first)
        max_line_bytes = 2 * NUMBER_BYTES + self.order * (spellings.max_length + 1)
        tables = trie.word, trie.begin, self.log_prob, self.table.log_backoff, spellings.data, spellings.begin
        blocks = []
        while path[-1] < last:  # a second time only if the words are long
            out = np.empty(TYPICAL_LINE_BYTES * (last - int(path[-1])) + max_line_bytes, np.uint8)
            used = write_lines(*tables, self.log_members, max_line_bytes, nodes.start, path, last, out)
            blocks.append(out[:used])
        return (blocks[0] if len(blocks) == 1 else np.concatenate(blocks)).data


def _path(trie: Trie, order: int, node: int) -> NDArray[np.int64]:
    """Return a node preceded by its prefixes, from one word up."""
    path = [node]
    for _ in range(1, order):  # the parent is the last context whose first child is not after the node
        path.insert(0, int(np.searchsorted(trie.begin, np.int32(path[0]), side="right")) - 1)
    return np.array(path, np.int64)
