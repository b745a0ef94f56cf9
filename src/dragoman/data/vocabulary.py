"""The tokens that a model knows, their ids, and how a text is split into them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.core.defaults import SPECIALS as SPECIALS
from dragoman.core.errors import DataError, encoding_error, error_at_line, file_errors
from dragoman.data.segmenters import Segmenter, WordSegmenter
from dragoman.data.spellings import Spellings

START, END, UNK = 0, 1, 2
COMPILED_BYTES = 1 << 20  # files from this size on are read by compiled code: smaller ones are not worth loading it
WORDS = WordSegmenter()


class Vocab:
    """An ordered set of tokens with their training counts.

    The ids 0, 1 and 2 are always `<s>`, `</s>` and `<unk>`. The other tokens follow in the order of their first
    occurrence in the training text. The segmenter splits a text into tokens; by default these are words separated by
    spaces.

    >>> vocab = Vocab.build(["the", "cat", "sat"], [5, 2, 1], min_count=2)
    >>> vocab.tokens
    ('<s>', '</s>', '<unk>', 'the', 'cat')
    >>> vocab.id("cat"), vocab.id("sat")
    (4, 2)
    """

    def __init__(
        self,
        tokens: Sequence[str],
        counts: Sequence[int] | NDArray[np.int64] | None = None,
        segmenter: Segmenter = WORDS,
    ):
        self.tokens, self.segmenter = tuple(tokens), segmenter
        self.counts = np.zeros(len(self.tokens), np.int64) if counts is None else np.asarray(counts, np.int64)
        if self.tokens[:3] != SPECIALS:
            raise DataError(f"a vocabulary begins with {' '.join(SPECIALS)}; got {' '.join(self.tokens[:3])}")
        if len(self.counts) != len(self.tokens):
            raise DataError(f"{len(self.tokens)} tokens but {len(self.counts)} counts in a vocabulary")
        if len(self._index) != len(self.tokens):
            repeated = next(token for i, token in enumerate(self.tokens) if self._index[token] != i)
            raise DataError(f"the vocabulary has {repeated!r} twice")

    @classmethod
    def build(
        cls,
        tokens: Iterable[str],
        counts: Iterable[int],
        *,
        min_count: int = 1,
        max_size: int | None = None,
        segmenter: Segmenter = WORDS,
    ) -> Vocab:
        """Keep the tokens that occur at least `min_count` times, and of those the `max_size` most frequent.

        `min_count=2` is the tutorial's "replace singletons by `<unk>`". A literal `<unk>` is always kept. Occurrences
        of dropped tokens are added to the count of `<unk>`.
        """
        count_of = dict(zip(tokens, counts, strict=True))
        unknown = count_of.pop(SPECIALS[UNK], 0)
        known = {token: count for token, count in count_of.items() if count >= min_count}
        if max_size is not None and len(known) > max_size:
            frequent = set(sorted(known, key=lambda token: -known[token])[:max_size])  # ties go to the earlier token
            known = {token: count for token, count in known.items() if token in frequent}
        unknown += sum(count_of.values()) - sum(known.values())
        return cls([*SPECIALS, *known], [0, 0, unknown, *known.values()], segmenter)

    @classmethod
    def _from_spellings(cls, spellings: Spellings, counts: NDArray[np.int64], segmenter: Segmenter = WORDS) -> Vocab:
        """Build from tokens that are known to be valid, without strings."""
        vocab = cls.__new__(cls)
        vocab.spellings, vocab.counts, vocab.segmenter = spellings, counts, segmenter
        return vocab

    def with_segmenter(self, segmenter: Segmenter) -> Vocab:
        """Return the same tokens for texts that are split by this segmenter."""
        if segmenter == self.segmenter:
            return self
        if not self.has_strings:
            return Vocab._from_spellings(self.spellings, self.counts, segmenter)
        return Vocab(self.tokens, self.counts, segmenter)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """All tokens. Those of a large vocabulary that was read from a file become strings when they are needed."""
        return self.spellings.strings()

    @cached_property
    def spellings(self) -> Spellings:
        """The tokens for compiled code."""
        return Spellings.from_words([token.encode() for token in self.tokens])

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of characters of each token."""
        return np.array([*map(len, self.tokens)]) if self.has_strings else self.spellings.lengths()

    @property
    def has_strings(self) -> bool:
        return "tokens" in self.__dict__

    @cached_property
    def _index(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.counts)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Vocab) and not (self.has_strings and other.has_strings):
            mine, others = self.spellings, other.spellings
            return np.array_equal(mine.begin, others.begin) and np.array_equal(mine.data, others.data)
        return isinstance(other, Vocab) and self.tokens == other.tokens

    def __hash__(self) -> int:
        if self.has_strings:
            return hash((len(self), self.tokens[-1]))
        first, last = self.spellings.begin[-2:].tolist()
        return hash((len(self), self.spellings.data[first:last].tobytes().decode()))

    def __reduce__(self) -> tuple[type[Vocab], tuple[object, ...]]:
        return Vocab, (self.tokens, self.counts, self.segmenter)  # without what is computed from these

    def __repr__(self) -> str:
        return f"Vocab({len(self)} tokens)"

    @property
    def num_known(self) -> int:
        """Number of known outcomes: the tokens and `</s>`, without `<s>` and `<unk>`."""
        return len(self) - 2

    def id(self, token: str) -> int:
        """Return the id of a token in a text; `<s>` and `</s>` in a text are unknown."""
        index = self._index.get(token, UNK)
        return index if index > END else UNK

    def ids(self, tokens: Iterable[str]) -> NDArray[np.int32]:
        return np.fromiter((self.id(token) for token in tokens), np.int32)

    def describe_difference(self, other: Vocab) -> str:
        """Describe how two vocabularies differ, for an error message."""
        if self.segmenter.spec != other.segmenter.spec:
            return f"units {self.segmenter.spec} against {other.segmenter.spec}"
        if len(self) != len(other):
            return f"{len(self)} entries against {len(other)}"
        for index, (token, other_token) in enumerate(zip(self.tokens, other.tokens, strict=True)):
            if token != other_token:
                return f"entry {index} is {token!r} in one and {other_token!r} in the other"
        return "no difference"

    def to_text(self) -> str:
        """Return the contents of a vocabulary file: one `token TAB count` per line."""
        return "".join(f"{token}\t{count}\n" for token, count in zip(self.tokens, self.counts.tolist(), strict=True))

    @classmethod
    def read(cls, path: Path) -> Vocab:
        if not path.exists():
            raise DataError(f"{path}: no such file; is this a model directory?")
        if not (path.is_file() or path.is_dir()):  # reading a pipe would not end
            raise DataError(f"{path}: is not a file; copy the model again")
        with file_errors(path):
            content = path.read_bytes()
        if len(content) >= COMPILED_BYTES and (vocab := cls._parse(content)) is not None:
            return vocab
        try:
            lines = content.decode().removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            raise encoding_error(content, error.start, str(path)) from None
        tokens, counts, line_of = [], [], dict[str, int]()
        for number, line in enumerate(lines, 1):
            token, _, count = line.partition("\t")
            if token in line_of:
                problem = f"{token!r} is already on line {line_of[token]}; remove one of the two"
                raise error_at_line(str(path), number, problem)
            if not count.isdecimal() or len(count) > 18:
                raise error_at_line(str(path), number, f"expected `token TAB count`, found {line!r}")
            line_of[token] = number
            tokens.append(token)
            counts.append(int(count))
        if tuple(tokens[:3]) != SPECIALS:
            problem = f"a vocabulary begins with {', '.join(SPECIALS)}; is this the vocabulary of a model?"
            raise error_at_line(str(path), 1, problem)
        return cls(tokens, counts)

    @classmethod
    def _parse(cls, content: bytes) -> Vocab | None:
        """Read a large vocabulary by compiled code, or return None if something is wrong with it."""
        head = "".join(SPECIALS).encode()
        try:
            content.decode()
        except UnicodeDecodeError:
            return None
        parsed = Spellings.parse(content)
        if parsed is None or len(parsed[1]) < len(SPECIALS):
            return None
        spellings, counts = parsed
        begins = np.cumsum([0, *map(len, SPECIALS)])
        is_valid = (
            np.array_equal(spellings.begin[: len(begins)], begins) and spellings.data[: len(head)].tobytes() == head
        )
        return cls._from_spellings(spellings, counts) if is_valid else None
