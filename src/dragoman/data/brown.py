"""Classes of words that stand in like places, found in plain text: Brown clustering (Brown et al. 1992)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.brown_merges import (
    FIRST,
    FRAME,
    REST,
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

MAX_TOKENS = 2**31 - 1  # tokens are counted in 32 bits
DEFAULT_CLASSES, DEFAULT_PASSES = 200, 10
PROGRESS_INTERVAL = 100  # words between two reports of progress

ProgressCallback = Callable[[str, int, int], None]  # what is being done, how much of it, out of how much


@dataclass(frozen=True, eq=False)
class BrownClustering:
    """The class of each word, and the tree in which the classes were merged.

    Classes 0, 1 and 2 are those of `<s>`, `</s>` and `<unk>`, which stand alone; classes of words follow, neighbours
    in the tree side by side. Words of the vocabulary that the text did not have are with `<unk>`.
    """

    vocab: Vocab
    class_of: NDArray[np.int32]  # (|V|,)
    paths: tuple[str, ...]  # (classes,) the turns from the root of the tree to each class; none for the first three
    counts: NDArray[np.int64]  # (|V|,) how often the text has each word
    mutual_information: float  # average mutual information of adjacent classes, in nats a token

    @property
    def num_classes(self) -> int:
        """How many classes of words there are."""
        return len(self.paths) - len(SPECIALS)

    @cached_property
    def members(self) -> tuple[tuple[str, ...], ...]:
        """The words of each class, the most frequent first; of the first three, the symbol itself."""
        found: list[list[str]] = [[symbol] for symbol in SPECIALS]
        found += [[] for _ in range(self.num_classes)]
        for word in np.argsort(-self.counts, kind="stable").tolist():
            if self.class_of[word] > UNK:
                found[self.class_of[word]].append(self.vocab.tokens[word])
        return tuple(map(tuple, found))

    def as_mapping(self) -> dict[str, str]:
        """The path of each clustered word: what `ClassModel.train` takes as classes."""
        return {word: path for path, words in zip(self.paths, self.members, strict=True) if path for word in words}

    def to_text(self) -> str:
        """One `path TAB word TAB count` a line, as Brown clusterings are usually written."""
        count = dict(zip(self.vocab.tokens, self.counts.tolist(), strict=True))
        return "".join(f"{path}\t{word}\t{count[word]}\n" for word, path in self.as_mapping().items())


def brown_clusters(
    corpus: Corpus,
    classes: int = DEFAULT_CLASSES,
    *,
    passes: int = DEFAULT_PASSES,
    progress: ProgressCallback | None = None,
) -> BrownClustering:
    """Divide the words of a text into classes that say as much as they can about the next word's class.

    The most frequent words start as classes. Each further word, in order of frequency, is added as one class more, and
    the two classes are merged whose merging loses the least average mutual information of adjacent classes; words not
    yet added are one class that stands still. Then, in so many passes or until nothing moves, each word goes to the
    class where it brings the most information. At last the classes are merged down to one: that gives their paths.

    Sentence ends take part as neighbours, and so does `<unk>`, but each stays a class of its own, as in class n-grams.
    So the log-likelihood a token of a class bigram model by relative counts is the information less the entropy of
    words. Words of equal frequency come in the vocabulary's order, and of equal merges the one of the earlier words is
    done: the same text always gives the same classes.

    >>> corpus = Corpus.from_sentences(["she ran home", "he ran away", "she sat here", "he sat here", "he ran home"])
    >>> clustering = brown_clusters(corpus, classes=3)
    >>> clustering.members[3:]
    (('ran', 'sat'), ('he', 'she'), ('home', 'here', 'away'))
    >>> clustering.as_mapping()["she"], clustering.class_of[corpus.vocab.id("she")]
    ('01', np.int32(4))
    """
    words = _ranked_words(corpus, classes)
    items = FIRST + len(words)
    item_of = np.zeros(len(corpus.vocab), np.int32)
    item_of[[START, END, UNK]] = FRAME, FRAME, UNKNOWN
    item_of[words] = np.arange(FIRST, items)
    text = item_of[corpus.ids_with_boundaries(starts=0)]  # goes round: one frame ends a sentence and begins the next
    xlogx = xlogx_table(len(text))
    tell = progress or _no_progress
    bigrams = count_bigrams(text, items)
    class_of_item = _merge_items(bigrams, classes, xlogx, tell)
    class_of_item = _exchange(text, bigrams, class_of_item, passes, xlogx, tell)
    paths = _tree_paths(class_of_item[text], classes, xlogx)
    return _build_clustering(corpus, words, class_of_item, paths)


def mutual_information(corpus: Corpus, class_of: NDArray[np.int32]) -> float:
    """Average mutual information of adjacent classes, in nats a token; `<s>` and `</s>` are one class, the frame."""
    classes = np.where(np.arange(len(class_of)) == START, class_of[END], class_of)
    joint = _count_adjacent(classes[corpus.ids_with_boundaries(starts=0)], int(class_of.max()) + 1) / corpus.num_tokens
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / apart[seen])).sum())


# -- the steps -----------------------------------------------------------------------------------------------------


def _ranked_words(corpus: Corpus, classes: int) -> NDArray[np.int64]:
    """The words that the text has, the most frequent first, once all is found fit to be clustered."""
    if corpus.num_tokens > MAX_TOKENS:
        raise DataError(
            f"{corpus.num_tokens:,} tokens: texts of up to {MAX_TOKENS:,} can be clustered; divide the text"
        )
    if classes < 2:
        raise DataError(f"{classes} classes: give 2 or more")
    counts = np.bincount(corpus.ids, minlength=len(corpus.vocab))
    counts[: len(SPECIALS)] = 0
    ranked = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    if len(ranked) < classes:
        raise DataError(f"{classes} classes: the text has only {len(ranked)} different words; ask for fewer classes")
    return ranked


def _no_progress(doing: str, done: int, of: int) -> None:
    pass


def _merge_items(
    bigrams: Neighbours, classes: int, xlogx: NDArray[np.int64], progress: ProgressCallback
) -> NDArray[np.int64]:
    """The class of each item after one merge for each item that is too many."""
    items = len(bigrams.total)
    tables = empty_tables(classes + 1, xlogx)
    leaders, slot_of = _initial_leaders(items)
    free = FIRST
    for start in range(FIRST, items, PROGRESS_INTERVAL):
        progress("merging", start, items)
        free = add_items(tables, bigrams, leaders, slot_of, free, start, min(start + PROGRESS_INTERVAL, items))
    for item in range(items):  # a leader comes before those it leads
        leaders[item] = leaders[leaders[item]]
    _, class_of_word = np.unique(leaders[FIRST:], return_inverse=True)
    return np.concatenate([np.arange(FIRST), FIRST + class_of_word])


def _initial_leaders(items: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The leader of each item, itself, and the slot of each leader: that of all words is the rest."""
    return np.arange(items), np.minimum(np.arange(items), REST)


def _exchange(
    text: NDArray[np.int32],
    bigrams: Neighbours,
    class_of: NDArray[np.int64],
    passes: int,
    xlogx: NDArray[np.int64],
    progress: ProgressCallback,
) -> NDArray[np.int64]:
    """The class of each item after every word has looked for a better one, several times."""
    class_of = class_of.copy()
    members = np.bincount(class_of)
    beside = _count_adjacent(class_of[text], len(members))
    total = np.bincount(class_of[text], minlength=len(members))
    tables = MergeTables(np.zeros((0, 0), np.int64), np.concatenate([beside.T, beside]), total, members, xlogx)
    for number in range(passes):
        progress("exchanging", number, passes)
        if not exchange_items(tables, bigrams, members, class_of, FIRST, len(class_of)):
            break
    return class_of


def _tree_paths(text: NDArray[np.int64], classes: int, xlogx: NDArray[np.int64]) -> list[str]:
    """Merge classes down to one; of each class, the turns that lead to it from the root.

    At each merge, 0 leads to the part that holds the first of the classes and 1 to the other.
    """
    bigrams = count_bigrams(text.astype(np.int32), FIRST + classes)
    tables = empty_tables(classes + 1, xlogx)
    leaders, slot_of = _initial_leaders(FIRST + classes)
    add_items(tables, bigrams, leaders, slot_of, FIRST, FIRST, FIRST + classes)
    merges = [merge_best(tables, leaders, slot_of)[:2] for _ in range(classes - 1)]
    paths = [""] * (FIRST + classes)
    for earlier, later in reversed(merges):
        paths[earlier], paths[later] = paths[earlier] + "0", paths[earlier] + "1"
    return paths[FIRST:]


def _count_adjacent(text: NDArray[np.integer], classes: int) -> NDArray[np.int64]:
    """How often class d follows class c in a text that goes round.  # (classes, classes)"""
    pairs = text.astype(np.int64) * classes + np.roll(text, -1)
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def _build_clustering(
    corpus: Corpus, words: NDArray[np.int64], class_of_item: NDArray[np.int64], paths: list[str]
) -> BrownClustering:
    """The result in the vocabulary's numbers, with the classes in order of their paths."""
    order = sorted(range(len(paths)), key=paths.__getitem__)
    number = np.empty(len(paths), np.int32)
    number[order] = np.arange(len(SPECIALS), len(SPECIALS) + len(paths))
    class_of = np.full(len(corpus.vocab), UNK, np.int32)
    class_of[: len(SPECIALS)] = START, END, UNK
    class_of[words] = number[class_of_item[FIRST:] - FIRST]
    return BrownClustering(
        corpus.vocab,
        class_of,
        ("",) * len(SPECIALS) + tuple(sorted(paths)),
        np.bincount(corpus.ids, minlength=len(corpus.vocab)),
        mutual_information(corpus, class_of),
    )
