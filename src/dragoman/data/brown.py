"""Brown clustering: word classes learned from plain text (Brown et al. 1992)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.brown_merges import (
    BOUNDARY,
    FIRST,
    UNKNOWN,
    MergeTables,
    Neighbours,
    add_items,
    count_bigrams,
    empty_tables,
    exchange_items,
    merge_best,
    xlogx_table,
)
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, SPECIALS, START, UNK, Vocab

MAX_TOKENS = 2**31 - 1  # counts have 32 bits
DEFAULT_CLASSES, DEFAULT_PASSES = 200, 10
PROGRESS_INTERVAL = 100  # words between two progress reports

ProgressCallback = Callable[[str, int, int], None]  # task, steps done, total steps


@dataclass(frozen=True, eq=False)
class BrownClustering:
    """The class of each word, and the tree of class merges.

    Classes 0, 1 and 2 contain only `<s>`, `</s>` and `<unk>`. The classes of words follow in the order of the tree.
    Words of the vocabulary that do not occur in the text are in the class of `<unk>`.
    """

    vocab: Vocab
    class_of: NDArray[np.int32]  # (|V|,)
    paths: tuple[str, ...]  # (classes,) the path from the root of the tree as bits; empty for the first three
    counts: NDArray[np.int64]  # (|V|,) how often each word occurs in the text
    mutual_information: float  # average mutual information of adjacent classes, in nats per token

    @property
    def num_classes(self) -> int:
        """Number of classes of words."""
        return len(self.paths) - len(SPECIALS)

    @cached_property
    def members(self) -> tuple[tuple[str, ...], ...]:
        """The words of each class, the most frequent first; the symbol itself for the first three."""
        members: list[list[str]] = [[symbol] for symbol in SPECIALS]
        members += [[] for _ in range(self.num_classes)]
        for word in np.argsort(-self.counts, kind="stable").tolist():
            if self.class_of[word] > UNK:
                members[self.class_of[word]].append(self.vocab.tokens[word])
        return tuple(map(tuple, members))

    def as_mapping(self) -> dict[str, str]:
        """The path of each clustered word: what `ClassNgramModel.train` takes as classes."""
        return {word: path for path, words in zip(self.paths, self.members, strict=True) if path for word in words}

    def to_text(self) -> str:
        """Return one line `path TAB word TAB count` per word, the usual format of Brown clusters."""
        count = dict(zip(self.vocab.tokens, self.counts.tolist(), strict=True))
        return "".join(f"{path}\t{word}\t{count[word]}\n" for word, path in self.as_mapping().items())


def brown_clusters(
    corpus: Corpus,
    classes: int = DEFAULT_CLASSES,
    *,
    passes: int = DEFAULT_PASSES,
    progress: ProgressCallback | None = None,
) -> BrownClustering:
    """Divide the words of a text into classes with high mutual information of adjacent classes.

    The most frequent words are the first classes. Each further word, in order of frequency, is added as a new class,
    and the two classes are merged whose merge loses the least average mutual information of adjacent classes; words
    not yet added form one fixed class. Then, for `passes` passes or until nothing changes, each word is moved to the
    class where it gives the most information. Finally the classes are merged down to one, which gives their paths.

    Sentence ends and `<unk>` count as neighbours, but each stays a separate class, as in class n-gram models. So the
    log-likelihood per token of a class bigram model with relative counts is the information minus the entropy of
    words. Ties are broken by the order of the vocabulary, so the result is deterministic.

    >>> corpus = Corpus.from_sentences(["she ran home", "he ran away", "she sat here", "he sat here", "he ran home"])
    >>> clustering = brown_clusters(corpus, classes=3)
    >>> clustering.members[3:]
    (('ran', 'sat'), ('he', 'she'), ('home', 'here', 'away'))
    >>> clustering.as_mapping()["she"], clustering.class_of[corpus.vocab.id("she")]
    ('01', np.int32(4))
    """
    words = _ranked_words(corpus, classes)
    item_of = np.zeros(len(corpus.vocab), np.int32)
    item_of[[START, END, UNK]] = BOUNDARY, BOUNDARY, UNKNOWN
    item_of[words] = np.arange(FIRST, FIRST + len(words))
    text = item_of[corpus.ids_with_boundaries(starts=0)]  # circular: one boundary ends a sentence and begins the next
    xlogx, report = xlogx_table(len(text)), progress or (lambda task, done, total: None)
    bigrams = count_bigrams(text, FIRST + len(words))
    class_of_item = _merge_items(bigrams, classes, xlogx, report)
    class_of_item = _exchange(text, bigrams, class_of_item, passes, xlogx, report)
    paths = _tree_paths(class_of_item[text], classes, xlogx)
    class_id = np.empty(classes, np.int32)  # classes are sorted by their paths
    class_id[sorted(range(classes), key=paths.__getitem__)] = np.arange(len(SPECIALS), len(SPECIALS) + classes)
    class_of = np.full(len(corpus.vocab), UNK, np.int32)
    class_of[: len(SPECIALS)] = START, END, UNK
    class_of[words] = class_id[class_of_item[FIRST:] - FIRST]
    counts = np.bincount(corpus.ids, minlength=len(corpus.vocab))
    all_paths = ("",) * len(SPECIALS) + tuple(sorted(paths))
    return BrownClustering(corpus.vocab, class_of, all_paths, counts, mutual_information(corpus, class_of))


def mutual_information(corpus: Corpus, class_of: NDArray[np.int32]) -> float:
    """Return the average mutual information of adjacent classes, in nats per token; `<s>` and `</s>` are one class."""
    classes = np.where(np.arange(len(class_of)) == START, class_of[END], class_of)
    joint = _count_adjacent(classes[corpus.ids_with_boundaries(starts=0)], int(class_of.max()) + 1) / corpus.num_tokens
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    observed = joint > 0
    return float((joint[observed] * np.log(joint[observed] / independent[observed])).sum())


def _ranked_words(corpus: Corpus, classes: int) -> NDArray[np.int64]:
    """Return the words of the text, the most frequent first, or raise an error if it cannot be clustered."""
    if corpus.num_tokens > MAX_TOKENS:
        raise DataError(f"{corpus.num_tokens:,} tokens: the limit for clustering is {MAX_TOKENS:,}; split the text")
    if classes < 2:
        raise DataError(f"{classes} classes: give 2 or more")
    counts = np.bincount(corpus.ids, minlength=len(corpus.vocab))
    counts[: len(SPECIALS)] = 0
    ranked = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    if len(ranked) < classes:
        raise DataError(f"{classes} classes: the text has only {len(ranked)} different words; choose fewer classes")
    return ranked


def _merge_items(
    bigrams: Neighbours, classes: int, xlogx: NDArray[np.int64], progress: ProgressCallback
) -> NDArray[np.int64]:
    """Return the class of each item after merging down to the number of classes."""
    items = len(bigrams.total)
    tables, leaders, slot_of = empty_tables(classes + 1, items, xlogx)
    free = FIRST
    for start in range(FIRST, items, PROGRESS_INTERVAL):
        progress("merging", start, items)
        free = add_items(tables, bigrams, leaders, slot_of, free, start, min(start + PROGRESS_INTERVAL, items))
    for item in range(items):  # the first item of a class comes before its other items
        leaders[item] = leaders[leaders[item]]
    _, class_of_word = np.unique(leaders[FIRST:], return_inverse=True)
    return np.concatenate([np.arange(FIRST), FIRST + class_of_word])


def _exchange(
    text: NDArray[np.int32],
    bigrams: Neighbours,
    class_of: NDArray[np.int64],
    passes: int,
    xlogx: NDArray[np.int64],
    progress: ProgressCallback,
) -> NDArray[np.int64]:
    """Return the class of each item after moving words to better classes, for several passes."""
    class_of = class_of.copy()
    members = np.bincount(class_of)
    adjacent = _count_adjacent(class_of[text], len(members))
    total = np.bincount(class_of[text], minlength=len(members))
    tables = MergeTables(np.zeros((0, 0), np.int64), np.concatenate([adjacent.T, adjacent]), total, members, xlogx)
    for index in range(passes):
        progress("exchanging", index, passes)
        if not exchange_items(tables, bigrams, members, class_of, FIRST, len(class_of)):
            break
    return class_of


def _tree_paths(text: NDArray[np.int64], classes: int, xlogx: NDArray[np.int64]) -> list[str]:
    """Merge classes down to one and return the path from the root to each class.

    At each merge, 0 leads to the part with the earlier class and 1 to the other.
    """
    bigrams = count_bigrams(text.astype(np.int32), FIRST + classes)
    tables, leaders, slot_of = empty_tables(classes + 1, FIRST + classes, xlogx)
    add_items(tables, bigrams, leaders, slot_of, FIRST, FIRST, FIRST + classes)
    merges = [merge_best(tables, leaders, slot_of)[:2] for _ in range(classes - 1)]
    paths = [""] * (FIRST + classes)
    for earlier, later in reversed(merges):
        paths[earlier], paths[later] = paths[earlier] + "0", paths[earlier] + "1"
    return paths[FIRST:]


def _count_adjacent(text: NDArray[np.integer], classes: int) -> NDArray[np.int64]:
    """Count how often class d follows class c in a circular text.  # (classes, classes)"""
    pairs = text.astype(np.int64) * classes + np.roll(text, -1)
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)
