"""The exact probability of a sentence under one side of a grammar: the inside algorithm.

The inside probability of a part over a span of words is the sum, over all trees that derive those words from it, of the
product of their rules' probabilities. Spans are filled column by column: for each end, from the latest start to the
earliest. A span that is complete looks to its left for what it may be paired with, and adds what comes out to the
longer span; so only what the words build is ever touched. Sums are kept as logarithms, and no length underflows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import SPECIALS, Vocab
from dragoman.lab.side_grammar import SideGrammar, Table

FEW = 1024  # items to begin with


def inside(side: SideGrammar, corpus: Corpus) -> NDArray[np.float64]:
    """log P of each sentence, words outside the corpus' vocabulary collapsed to `<unk>` with their true mass.

    That is the probability of all sentences that look the same through this vocabulary, added up.
    """
    return _log_probs(side, side.collapsed(corpus.vocab), corpus.ids, corpus.offsets)


def inside_full(side: SideGrammar, sentences: Iterable[str]) -> NDArray[np.float64]:
    """log P of each sentence in full spelling; a word that the grammar does not have makes it impossible."""
    corpus = Corpus.from_sentences(sentences, Vocab(SPECIALS))  # every word is unknown and has its spelling
    tokens = np.full(corpus.num_words, len(corpus.spellings), np.int32)
    tokens[corpus.unknown_positions] = corpus.unknown_spelling_ids
    return _log_probs(side, side.spelled(corpus.spellings), tokens, corpus.offsets)


def _log_probs(
    side: SideGrammar, lexicon: Table, tokens: NDArray[np.int32], offsets: NDArray[np.int64]
) -> NDArray[np.float64]:
    log_probs = np.full(len(offsets) - 1, -np.inf)

    def work(span: tuple[int, int]) -> None:
        _inside_all(lexicon, side.pairs, side.ancestors, side.start, tokens, offsets, *span, log_probs)

    parallel_map(work, split_range(0, len(log_probs), min_size=64))
    return log_probs


# -- kernels -----------------------------------------------------------------------------------------------------


class _Column(NamedTuple):
    """The spans that end at one place. Rows are starts; between columns everything is empty."""

    sums: NDArray[np.float64]  # (starts, parts) log inside probabilities, -inf for what is not built
    built: NDArray[np.int32]  # (starts, parts) the parts that are built, in order of appearance
    size: NDArray[np.int64]  # (starts,) how many there are


class _Items(NamedTuple):
    """Everything in the sentence that is complete; those of one part that end at one place are linked.

    Numbers go on from sentence to sentence, so that the links of earlier sentences, which are all smaller than the
    first number of this one, need not be wiped out.
    """

    start: NDArray[np.int64]
    log_prob: NDArray[np.float64]
    before: NDArray[np.int64]  # the number of the item of the same part and end that was made before this one


@kernel
def _inside_all(
    lexicon: Any, pairs: Any, ancestors: Any, goal: int, tokens: Any, offsets: Any, first: int, last: int, out: Any
) -> None:
    """The sentences first..last; what has a word that cannot be said is left as it is."""
    possible = np.zeros(last - first, np.bool_)
    longest = 0
    for sentence in range(first, last):
        words = tokens[offsets[sentence] : offsets[sentence + 1]]
        possible[sentence - first] = _all_known(lexicon, words)
        if possible[sentence - first]:
            longest = max(longest, words.size)
    parts = pairs.begin.size - 1
    column = _Column(
        np.full((longest, parts), -np.inf), np.empty((longest, parts), np.int32), np.zeros(longest, np.int64)
    )
    latest = np.full((longest + 1, parts), -1, np.int64)  # (ends, parts) the last item made
    items = _Items(np.empty(FEW, np.int64), np.empty(FEW), np.empty(FEW, np.int64))
    made = 0
    for sentence in range(first, last):
        if possible[sentence - first]:
            words = tokens[offsets[sentence] : offsets[sentence + 1]]
            out[sentence], made, items = _inside(lexicon, pairs, ancestors, goal, words, column, latest, items, made)


@kernel
def _all_known(lexicon: Any, words: Any) -> bool:
    """Whether the grammar has each of the words: if not, there is nothing to build."""
    for word in words:
        if lexicon.begin[word] == lexicon.begin[word + 1]:
            return False
    return True


@kernel
def _inside(
    lexicon: Any, pairs: Any, ancestors: Any, goal: int, words: Any, column: Any, latest: Any, items: Any, zero: int
) -> tuple[float, int, Any]:
    """log P of one sentence, the number for the next one's first item, and the items' store, which may have grown."""
    made = zero
    total = -np.inf
    for end in range(1, words.size + 1):
        for start in range(end - 1, -1, -1):
            if start == end - 1:
                _read(lexicon, words[start], start, column)
            else:
                _climb(ancestors, start, column)
            if end == words.size and start == 0:
                total = column.sums[0, goal]
            while made - zero + column.size[start] > items.start.size:
                items = _Items(_doubled(items.start), _doubled(items.log_prob), _doubled(items.before))
            for place in range(column.size[start]):
                part = column.built[start, place]
                log_prob = column.sums[start, part]
                column.sums[start, part] = -np.inf
                new = made - zero
                items.start[new], items.log_prob[new], items.before[new] = start, log_prob, latest[end, part]
                latest[end, part] = made
                made += 1
                _join(pairs, part, start, log_prob, column, latest, items, zero)
            column.size[start] = 0
    return total, made, items


@kernel
def _read(lexicon: Any, word: int, start: int, column: Any) -> None:
    """What a word may be."""
    for entry in range(lexicon.begin[word], lexicon.begin[word + 1]):
        _add(column, start, lexicon.part[entry], lexicon.log_prob[entry])


@kernel
def _climb(ancestors: Any, start: int, column: Any) -> None:
    """Add the ancestors of what pairs have built; the sums of the pairs alone are what they are taken of."""
    count = column.size[start]
    alone = np.empty(count)
    for place in range(count):
        alone[place] = column.sums[start, column.built[start, place]]
    for place in range(count):
        part = column.built[start, place]
        for entry in range(ancestors.begin[part], ancestors.begin[part + 1]):
            _add(column, start, ancestors.part[entry], alone[place] + ancestors.log_prob[entry])


@kernel
def _join(pairs: Any, part: int, start: int, log_prob: float, column: Any, latest: Any, items: Any, zero: int) -> None:
    """Pair a complete item with everything on its left that ends where it starts."""
    for rule in range(pairs.begin[part], pairs.begin[part + 1]):
        number = latest[start, pairs.left[rule]]
        while number >= zero:
            item = number - zero
            _add(column, items.start[item], pairs.parent[rule], log_prob + pairs.log_prob[rule] + items.log_prob[item])
            number = items.before[item]


@kernel
def _add(column: Any, start: int, part: int, log_prob: float) -> None:
    """Another way to build a part."""
    so_far = column.sums[start, part]
    if so_far == -np.inf:
        column.built[start, column.size[start]] = part
        column.size[start] += 1
        column.sums[start, part] = log_prob
    else:
        more, less = max(so_far, log_prob), min(so_far, log_prob)
        column.sums[start, part] = more + np.log1p(np.exp(less - more))


@kernel
def _doubled(array: Any) -> Any:
    larger = np.empty(2 * array.size, array.dtype)
    larger[: array.size] = array
    return larger
