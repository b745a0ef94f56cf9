"""Whether two texts belong together line by line, without a dictionary and in any language.

If they do, similar source lines have similar target lines, the two lines of a pair share names, numbers and cognates,
and long lines have long translations. Similarity is the cosine of the character n-grams of two lines, so it needs
neither words nor spaces. The given pairs are compared with random ones. For the first measure this is the Mantel test
(1967) of the similarities of all pairs of source lines and of their target lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel

FEATURES = 1 << 12  # n-grams are numbered by hash; collisions do little harm
ORDERS = (1, 2, 3)
MAX_CHARACTERS = 300  # further characters of a line are ignored
RANDOM_PAIRINGS = 100
BLOCK_LINES = 10  # lines are exchanged with others nearby: in sorted texts, distant lines differ anyway
FloatArray = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class NgramVectors:
    """Character n-grams of lines, with the weights of rare ones higher (inverse document frequency)."""

    weights: FloatArray  # (FEATURES,)

    @classmethod
    def fit(cls, lines: Sequence[str]) -> NgramVectors:
        frequencies = _ngram_presence(lines).sum(axis=0)
        return cls(np.log((len(lines) + 1) / (frequencies + 1)).astype(np.float32))

    def vectors(self, lines: Sequence[str]) -> FloatArray:
        """Return a vector of length 1 per line, or 0 for an empty line.  # (lines, FEATURES)"""
        vectors = _ngram_presence(lines) * self.weights
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, norms, out=vectors, where=norms > 0)


def _ngram_presence(lines: Sequence[str]) -> FloatArray:
    """Whether each n-gram occurs in each line: 1 or 0.  # (lines, FEATURES)"""
    presence = np.zeros((len(lines), FEATURES), np.float32)
    text = "".join(f" {line[:MAX_CHARACTERS].lower()} \n" for line in lines)
    codes = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32).astype(np.uint64)
    is_end = codes == ord("\n")
    line = np.cumsum(is_end) - is_end
    key, is_within_line = np.zeros(len(codes), np.uint64), np.ones(len(codes), np.bool_)
    for order in range(1, max(ORDERS) + 1):  # the n-gram that starts at each character
        size = max(0, len(codes) - order + 1)
        key = (key[:size] ^ codes[order - 1 :]) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(order)
        is_within_line = is_within_line[:size] & ~is_end[order - 1 :]
        if order in ORDERS:
            slot = (key >> np.uint64(40)) % np.uint64(FEATURES)
            presence[line[:size][is_within_line], slot[is_within_line]] = 1
    return presence


def centered_similarities(vectors: FloatArray) -> FloatArray:
    """Return the similarity of each pair of lines, minus what is usual for the two lines.  # (lines, lines)

    The diagonal is 0. Rows and columns sum to zero (U-centering, Székely and Rizzo 2014): otherwise a line that is
    similar to all others, such as a short one, would count most.
    """
    similarities = vectors @ vectors.T
    np.fill_diagonal(similarities, 0)
    n = max(3, len(similarities))
    means = similarities.sum(axis=1) / (n - 2)
    similarities -= means[:, None] + means[None, :] - similarities.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(similarities, 0)
    return similarities


def pairing_score(
    source: Sequence[str], target: Sequence[str], generator: np.random.Generator, num_known: int = 0
) -> float | None:
    """Return how much better the given pairs of lines fit than random ones, in standard deviations.

    The score of random pairs is approximately normally distributed around 0. None if all pairs would fit equally well.
    The first `num_known` lines are known to be pairs. Only the others are paired at random, each with a line nearby.
    """
    source_similarities, target_similarities = (
        centered_similarities(NgramVectors.fit(lines).vectors(lines)) for lines in (source, target)
    )
    ngrams = NgramVectors.fit([*source, *target])
    new = slice(num_known, None)
    shared = ngrams.vectors(source[new]) @ ngrams.vectors(target[new]).T  # (new lines, new lines)
    source_lengths, target_lengths = (np.log1p(list(map(len, lines[new]))) for lines in (source, target))
    source_lengths -= source_lengths.mean()
    lines, known = np.arange(len(shared)), np.arange(num_known)

    def measures(order: NDArray[np.int64]) -> tuple[float, float, float]:
        pairing = np.concatenate([known, num_known + order])
        return (
            _fit(source_similarities, target_similarities, pairing, num_known),
            float(shared[lines, order].sum()),
            float(source_lengths @ target_lengths[order]),
        )

    random_values = np.array([measures(nearby_permutation(len(lines), generator)) for _ in range(RANDOM_PAIRINGS)])
    deviation = random_values.std(axis=0)
    is_used = deviation > 1e-6
    if not is_used.any():
        return None
    scores = (np.array(measures(lines)) - random_values.mean(axis=0))[is_used] / deviation[is_used]
    return float(scores.sum() / np.sqrt(len(scores)))


def nearby_permutation(size: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return a random order in which no line moves further than `BLOCK_LINES`.  # (size,)"""
    blocks = np.arange(size) // BLOCK_LINES
    return np.lexsort((generator.random(size), blocks)).astype(np.int64)


def profile_scores(source: FloatArray, target: FloatArray) -> FloatArray:
    """For each line, the correlation of its source's and its target's similarities to known pairs.

    # source and target: (lines, known pairs) similarities, NaN where a line is itself one of the known pairs
    """
    is_known = ~np.isnan(source) & ~np.isnan(target)
    deviations = []
    for values in (source, target):
        means = np.mean(values, axis=1, where=is_known, keepdims=True) if is_known.any(axis=1).all() else 0.0
        deviations.append(np.where(is_known, values - means, 0.0))
    product = np.sqrt((deviations[0] ** 2).sum(axis=1) * (deviations[1] ** 2).sum(axis=1))
    return np.asarray((deviations[0] * deviations[1]).sum(axis=1) / np.maximum(product, 1e-9))


@kernel
def _fit(similarities, target_similarities, pairing, first):  # type: ignore[no-untyped-def]
    """Sum over pairs of lines of the product of the two similarities; line i is paired with target line pairing[i]."""
    total = 0.0
    for i in range(first, pairing.size):
        for j in range(i):
            total += similarities[i, j] * target_similarities[pairing[i], pairing[j]]
    return total


@kernel
def fit_at_shifts(similarities, target_similarities):  # type: ignore[no-untyped-def]
    """The fit of a text to each part of the same size of a longer one.  # (longer - shorter + 1,)"""
    size = similarities.shape[0]
    result = np.zeros(target_similarities.shape[0] - size + 1)
    for shift in range(result.size):
        total = 0.0
        for i in range(size):
            for j in range(i):
                total += similarities[i, j] * target_similarities[i + shift, j + shift]
        result[shift] = total
    return result
