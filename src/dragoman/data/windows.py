"""The words before each word."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.data.corpus import Corpus


def context_windows(corpus: Corpus, length: int) -> NDArray[np.int32]:
    """The `length` words before each token, the nearest last, and `<s>` before the first.  # (tokens, length)

    >>> context_windows(Corpus.from_sentences(["a b"]), 2).tolist()
    [[0, 0], [0, 3], [3, 4]]
    """
    starts = max(length, 1)
    framed = corpus.ids_with_boundaries(starts=starts)
    sentence = np.repeat(np.arange(corpus.num_sentences), corpus.sizes)
    places = np.arange(corpus.num_tokens) + starts * (sentence + 1)  # of the tokens in the framed text
    return framed[places[:, None] + np.arange(-length, 0)]
