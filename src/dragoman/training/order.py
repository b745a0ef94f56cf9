"""In which order examples are learned from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.text.pieces import cut


def epoch_batches(sizes: NDArray[np.int64], batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """The numbers of all examples, shuffled as seed and epoch say, in batches of about `batch_size` predictions.

    Size 1 gives one example at a time (online training), size 0 all at once (whole-batch training).

    >>> [batch.tolist() for batch in epoch_batches(np.array([3, 1, 2, 2]), 4, seed=1, epoch=0)]
    [[0, 1], [2, 3]]
    """
    order = np.random.default_rng([seed, epoch]).permutation(len(sizes))
    return list(cut(order, sizes, batch_size)) if batch_size else [order]
