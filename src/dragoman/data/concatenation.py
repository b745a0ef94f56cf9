"""Two texts as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.alignments import WordAlignments
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.trees import Treebank


def concatenate(first: Corpus, second: Corpus) -> Corpus:
    """Return the sentences of both texts, which have the same vocabulary.

    >>> first = Corpus.from_sentences(["the cat sat"])
    >>> second = Corpus.from_sentences(["the bird sat", "birds"], first.vocab)
    >>> concatenate(first, second).sentences_as_text()
    ['the cat sat', 'the bird sat', 'birds']
    """
    second.require_vocab(first.vocab)
    spellings = tuple(dict.fromkeys(first.spellings + second.spellings))
    number_of = {spelling: number for number, spelling in enumerate(spellings)}
    renumbered = np.array([number_of[spelling] for spelling in second.spellings], np.int32)
    both = replace(
        first,
        ids=np.concatenate([first.ids, second.ids]),
        offsets=_join_offsets(first.offsets, second.offsets),
        unknown_positions=np.concatenate([first.unknown_positions, second.unknown_positions + first.num_words]),
        unknown_spelling_ids=np.concatenate([first.unknown_spelling_ids, renumbered[second.unknown_spelling_ids]]),
        spellings=spellings,
    )
    if not (isinstance(both, Treebank) and isinstance(first, Treebank)):
        return both
    if not isinstance(second, Treebank):
        raise DataError("the second text has no syntax trees; give both texts as trees")
    return replace(
        both,
        left=np.concatenate([first.left, second.left]),
        right=np.concatenate([first.right, second.right]),
        node_offsets=_join_offsets(first.node_offsets, second.node_offsets),
    )


def concatenate_pairs(first: ParallelCorpus, second: ParallelCorpus) -> ParallelCorpus:
    """Return the sentence pairs of both texts; with alignments if both have them."""
    alignments = None
    if first.alignments is not None and second.alignments is not None:
        alignments = WordAlignments(
            _join_offsets(first.alignments.offsets, second.alignments.offsets),
            np.concatenate([first.alignments.source, second.alignments.source]),
            np.concatenate([first.alignments.target, second.alignments.target]),
        )
    source, target = concatenate(first.source, second.source), concatenate(first.target, second.target)
    return replace(first, source=source, target=target, alignments=alignments)


def _join_offsets(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([first, second[1:] + first[-1]])
