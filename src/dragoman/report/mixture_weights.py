"""The weights of mixtures as TSV."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.combine.mixture import Mixture
from dragoman.data.corpus import Corpus


def format_weights(mixture: Mixture, names: Sequence[str]) -> str:
    """Return a line with weight and name for each model."""
    return "\n".join(f"{weight:.6f}\t{name}" for name, weight in zip(names, mixture.weights.tolist(), strict=True))


def format_bucket_weights(mixture: Mixture, names: Sequence[str], dev: Corpus) -> str:
    """Return a table with a row for all contexts and one for each bucket: its dev tokens and weights."""
    labels = mixture.bucketing.labels
    tokens = np.bincount(mixture.bucketing.buckets_of_corpus(dev), minlength=len(labels)).tolist()
    buckets = zip(labels, tokens, mixture.bucket_weights, strict=True)
    rows = [
        [label, str(count), *(f"{weight:.6f}" for weight in weights.tolist())]
        for label, count, weights in [("all", dev.num_tokens, mixture.weights), *buckets]
    ]
    return "\n".join("\t".join(row) for row in [["bucket", "tokens", *names], *rows])
