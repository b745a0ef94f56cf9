"""Tables from words to values: what an atom looks up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.vocabulary import SPECIALS, Vocab

LONGEST_SUFFIX = 4  # letters


@dataclass(frozen=True)
class Values:
    """The value of each word, and what the values are called. Value 0 is none: the feature is off."""

    number: NDArray[np.int32]  # (|V|,)
    names: tuple[str, ...]  # (values,) the first stands for none


def identities(vocab: Vocab) -> Values:
    """Each word its own value, `<s>` and `<unk>` too."""
    return Values(np.arange(1, len(vocab) + 1, dtype=np.int32), ("", *vocab.tokens))


def by_function(vocab: Vocab, function: Callable[[str], object]) -> Values:
    """What a function says of each word; None is no value. `<s>`, `</s>` and `<unk>` have none.

    >>> values = by_function(Vocab([*SPECIALS, "Rome", "is", "far"]), lambda word: len(word) if word != "is" else None)
    >>> values.number.tolist(), values.names
    ([0, 0, 0, 1, 0, 2], ('', '4', '3'))
    """
    return _numbered([None] * len(SPECIALS) + [function(word) for word in vocab.tokens[len(SPECIALS) :]])


def by_class(vocab: Vocab, classes: Mapping[str, str] | NDArray[np.integer]) -> Values:
    """The class of each word. A word without a class is a class of its own, and so are `<s>`, `</s>` and `<unk>`."""
    if isinstance(classes, Mapping):
        given: list[str | None] = [classes.get(word) for word in vocab.tokens]
    else:
        if classes.shape != (len(vocab),):
            raise DataError(f"{len(classes)} classes for {len(vocab)} words; give one for each entry of the vocabulary")
        given = [str(number) for number in classes.tolist()]
    given[: len(SPECIALS)] = [None] * len(SPECIALS)
    # A class may be called like a word: what tells the two apart is cut off the names again.
    marked = [f"w{word}" if name is None else f"c{name}" for word, name in zip(vocab.tokens, given, strict=True)]
    values = _numbered(marked)
    return Values(values.number, ("", *(name[1:] for name in values.names[1:])))


def by_suffix(vocab: Vocab, types: int) -> Values:
    """The longest ending of 1 to 4 letters that at least so many of the vocabulary's words share.

    >>> values = by_suffix(Vocab([*SPECIALS, "singing", "ringing", "rings", "sings", "42"]), types=2)
    >>> [values.names[number] for number in values.number[3:]]
    ['-ging', '-ging', '-ings', '-ings', '']
    """
    words = vocab.tokens[len(SPECIALS) :]
    shared = Counter(ending for word in words for ending in _endings(word))
    return by_function(
        vocab, lambda word: next((f"-{ending}" for ending in _endings(word) if shared[ending] >= types), None)
    )


def _endings(word: str) -> list[str]:
    """The proper endings of a word that are letters, the longest first."""
    longest = min(LONGEST_SUFFIX, len(word) - 1)
    return [word[-length:] for length in range(longest, 0, -1) if word[-length:].isalpha()]


def _numbered(values: list[object] | list[None] | list[str]) -> Values:
    """Values numbered from 1 in the order in which they come."""
    names = list(dict.fromkeys(str(value) for value in values if value is not None))
    number = {name: place for place, name in enumerate(names, 1)}
    return Values(np.array([0 if value is None else number[str(value)] for value in values], np.int32), ("", *names))


def checked(values: Values, vocab_size: int) -> Values:
    """A table from a file; ValueError if it is not what training writes."""
    number = values.number
    if number.dtype != np.int32 or number.shape != (vocab_size,) or not values.names:
        raise ValueError("values and vocabulary do not fit together")
    if number.min() < 0 or number.max() >= len(values.names):
        raise ValueError("words with values that do not exist")
    return values
