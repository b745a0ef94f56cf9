"""The letters of a text alone, as numbers: what its language and script can be told by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.data.scanner import ScannedText, scan
from dragoman.doctor.reader import join_lines


@dataclass(frozen=True)
class LetterSequences:
    """A text as code points, lower case, digits and signs left out, words between single spaces."""

    codes: NDArray[np.uint32]
    offsets: NDArray[np.int64]  # (lines + 1,) each line begins with a space

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @classmethod
    def from_lines(cls, lines: Sequence[str]) -> LetterSequences:
        """
        >>> letters = Letters.of(["A cat, 2 dogs."])
        >>> "".join(map(chr, letters.codes))
        ' a cat dogs '
        """
        text = join_lines(lines).decode().lower()
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        kinds = _kinds(codes)
        spaced, offsets = _spaced(codes, kinds, len(lines))
        return cls(spaced, offsets)

    def select(self, lines: NDArray[np.int64]) -> LetterSequences:
        """Some of the lines."""
        sizes = self.sizes[lines]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        taken = np.repeat(self.offsets[lines] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return LetterSequences(self.codes[taken], offsets)

    def words(self) -> ScannedText:
        """The words of each line."""
        codes = self.codes.copy()
        codes[self.offsets[:-1]] = 10  # what was the space before a line ends the one before
        return scan(codes[1:].tobytes().decode("utf-32-le").encode() + b"\n")


def _kinds(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Of each character: 2 if it is a letter (or belongs to one), 1 if it ends a line, 0 if it is a sign."""
    top = int(codes.max(initial=10)) + 1
    present = np.zeros(top, np.bool_)
    present[codes] = True
    kind = np.zeros(top, np.uint8)
    for code in np.flatnonzero(present).tolist():
        letter = chr(code)
        kind[code] = 2 if letter.isalpha() or (code > 127 and not letter.isspace() and letter.isidentifier()) else 0
    kind[10] = 1
    return kind[codes]


@kernel
def _spaced(codes: Any, kinds: Any, lines: int) -> tuple[Any, Any]:
    """Letters with one space before, between and after the words of each line."""
    result = np.empty(codes.size + 2 * lines + 1, np.uint32)
    offsets = np.zeros(lines + 1, np.int64)
    result[0] = 32
    size, line = 1, 0
    for k in range(codes.size):
        if kinds[k] == 2:
            result[size] = codes[k]
            size += 1
        elif result[size - 1] != 32:
            result[size] = 32
            size += 1
        if kinds[k] == 1:
            line += 1
            offsets[line] = size
            result[size] = 32
            size += 1
    return result[: offsets[lines]], offsets
