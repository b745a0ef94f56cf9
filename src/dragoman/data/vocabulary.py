"""The words a model knows, and their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line

START, END, UNK = 0, 1, 2
SPECIALS = ("<s>", "</s>", "<unk>")


class Vocab:
    """An ordered set of words with their training counts.

    Numbers 0, 1 and 2 are always `<s>`, `</s>` and `<unk>`; the words follow in the order in which the
    training text first used them.

    >>> vocab = Vocab.build(["the", "cat", "sat"], [5, 2, 1], min_count=2)
    >>> vocab.words
    ('<s>', '</s>', '<unk>', 'the', 'cat')
    >>> vocab.id("cat"), vocab.id("sat")
    (4, 2)
    """

    def __init__(self, words: Sequence[str], counts: Sequence[int] | NDArray[np.int64] | None = None):
        self.tokens = tuple(words)
        self.counts = np.zeros(len(self.tokens), np.int64) if counts is None else np.asarray(counts, np.int64)
        if self.tokens[:3] != SPECIALS:
            raise DataError(f"a vocabulary begins with {' '.join(SPECIALS)}; got {' '.join(self.tokens[:3])}")
        if len(self.counts) != len(self.tokens):
            raise DataError(f"{len(self.tokens)} words but {len(self.counts)} counts in a vocabulary")
        if len(self._index) != len(self.tokens):
            raise DataError(f"the vocabulary has {_first_repeated(self.tokens)!r} twice")

    @classmethod
    def build(
        cls,
        words: Iterable[str],
        counts: Iterable[int],
        *,
        min_count: int = 1,
        max_size: int | None = None,
    ) -> Vocab:
        """Keep the words seen `min_count` times or more, and of those the `max_size` most frequent.

        `min_count=2` is the tutorial's "replace singletons by `<unk>`". A literal `<unk>` is always kept: it
        is the class itself. What is cut is counted as `<unk>`.
        """
        seen = dict(zip(words, counts, strict=True))
        unknown = seen.pop(SPECIALS[UNK], 0)
        kept = {word: count for word, count in seen.items() if count >= min_count}
        if max_size is not None and len(kept) > max_size:
            frequent = sorted(kept, key=lambda word: -kept[word])[:max_size]  # stable: ties go to the earlier word
            chosen = set(frequent)
            kept = {word: count for word, count in kept.items() if word in chosen}
        unknown += sum(seen.values()) - sum(kept.values())
        return cls([*SPECIALS, *kept], [0, 0, unknown, *kept.values()])

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocab) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"Vocab({len(self)} words)"

    @property
    def num_known(self) -> int:
        """How many outcomes have a name: the words and `</s>`, without `<s>` and `<unk>`."""
        return len(self) - 2

    def id(self, word: str) -> int:
        """The number of a word as it stands in a text; `<s>` and `</s>` there are unknown words."""
        number = self._index.get(word, UNK)
        return number if number > END else UNK

    def ids(self, words: Iterable[str]) -> NDArray[np.int32]:
        return np.fromiter((self.id(word) for word in words), np.int32)

    @cached_property
    def token_lengths(self) -> NDArray[np.int64]:
        """Characters in each word."""
        return np.fromiter((len(word) for word in self.tokens), np.int64, len(self))

    def describe_difference(self, other: Vocab) -> str:
        """Why two vocabularies are not the same, for an error message."""
        if len(self) != len(other):
            return f"{len(self)} entries against {len(other)}"
        for number, (one, two) in enumerate(zip(self.tokens, other.tokens, strict=True)):
            if one != two:
                return f"entry {number} is {one!r} in one and {two!r} in the other"
        return "no difference"

    # -- on disk: one `word TAB count` a line ------------------------------------------------------------------

    def to_text(self) -> str:
        return "".join(f"{word}\t{count}\n" for word, count in zip(self.tokens, self.counts.tolist(), strict=True))

    @classmethod
    def read(cls, path: Path) -> Vocab:
        words, counts, seen = [], [], dict[str, int]()
        for number, line in enumerate(_read_lines(path), 1):
            word, _, count = line.partition("\t")
            if word in seen:
                raise error_at_line(
                    str(path), number, f"{word!r} is already on line {seen[word]}; remove one of the two"
                )
            if not count.isdecimal() or len(count) > 18:
                raise error_at_line(str(path), number, f"expected `word TAB count`, found {line!r}")
            seen[word] = number
            words.append(word)
            counts.append(int(count))
        if tuple(words[:3]) != SPECIALS:
            raise error_at_line(
                str(path), 1, f"a vocabulary begins with {', '.join(SPECIALS)}; is this a model's vocabulary?"
            )
        return cls(words, counts)


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; is this a model directory?") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def _first_repeated(words: Sequence[str]) -> str:
    seen: set[str] = set()
    return next(word for word in words if word in seen or seen.add(word))  # type: ignore[func-returns-value]
