"""By what a text is known again."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus


def described(examples: Any) -> dict[str, Any]:
    """By what a text, or each text of a pair, is known again, its words included."""
    if hasattr(examples, "target"):
        return {"source": described(examples.source), "target": described(examples.target)}
    told = {} if not hasattr(examples, "leaves") else {"trees": _checksum([examples.left, examples.right])}
    corpus: Corpus = getattr(examples, "leaves", examples)
    words = np.frombuffer("\n".join(corpus.vocab.words).encode(), np.uint8)
    checksum = _checksum([corpus.ids, corpus.offsets, words])
    return {"sentences": corpus.sentences, "tokens": corpus.tokens, "checksum": checksum, **told}


def _checksum(arrays: list[NDArray[Any]]) -> str:
    checksum = 0
    for array in arrays:
        checksum = zlib.crc32(array.tobytes(), checksum)
    return f"{checksum:08x}"
