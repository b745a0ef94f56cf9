"""By what a text is known again."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    pass


def corpus_fingerprint(corpus: Any) -> dict[str, Any]:
    """By what a text, or each text of a pair, is known again, its words included."""
    if hasattr(corpus, "target"):
        return {"source": corpus_fingerprint(corpus.source), "target": corpus_fingerprint(corpus.target)}
    told = {} if not hasattr(corpus, "leaves") else {"trees": _checksum([corpus.left, corpus.right])}
    corpus = getattr(corpus, "leaves", corpus)
    words = np.frombuffer("\n".join(corpus.vocab.tokens).encode(), np.uint8)
    checksum = _checksum([corpus.ids, corpus.offsets, words])
    return {"sentences": corpus.num_sentences, "tokens": corpus.num_tokens, "checksum": checksum, **told}


def _checksum(arrays: list[NDArray[Any]]) -> str:
    checksum = 0
    for array in arrays:
        checksum = zlib.crc32(array.tobytes(), checksum)
    return f"{checksum:08x}"
