"""A ladder's own text: a corpus of somebody's, in three parts that have no line in common."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus, ParallelCorpus
    from dragoman.data.tokenizer import Tokenizer

HELD_OUT = 1000  # lines of a part that is held out, at most;
SHARE = 10  # and no more than one line in so many
FEWEST = 30  # lines, of which a part can be held out and something be learned from the others
MOST_DEV, MOST_TEST = 1000, 2000  # lines that are looked at
A_MINUTE = 10_000  # lines to train on, at most, for each minute that there is
PARTS = ("train", "dev", "test")
SOURCE, TARGET = "src", "tgt"  # endings of the files


@dataclass(frozen=True, eq=False)
class CorpusPart:
    """Lines, and what they translate unless it is a text alone."""

    target: Sequence[str]
    source: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.target)

    def select(self, numbers: Iterable[int]) -> CorpusPart:
        chosen = list(numbers)
        source = None if self.source is None else [self.source[number] for number in chosen]
        return CorpusPart([self.target[number] for number in chosen], source)

    def spread(self, most: int) -> CorpusPart:
        """So many lines at most, at equal distances: texts may be sorted by length."""
        size = len(self)
        return self if size <= most else self.select(number * size // most for number in range(most))

    @property
    def lines(self) -> list[str]:
        """Each line, with its translation after a TAB."""
        pairs = zip(self.source, self.target, strict=True) if self.source is not None else ()
        return [f"{one}\t{other}" for one, other in pairs] or list(self.target)

    @property
    def sources(self) -> Sequence[str]:
        assert self.source is not None, "a text to be translated"
        return self.source

    @property
    def checksum(self) -> str:
        return f"{zlib.crc32(chr(10).join(self.lines).encode('utf-8', 'surrogatepass')):08x}"


@dataclass(frozen=True, eq=False)
class CorpusSplit:
    """The three parts, as they are used."""

    train: CorpusPart
    dev: CorpusPart
    test: CorpusPart
    held_out: tuple[str, ...] = ()  # parts that were taken from the training text
    omitted: int = 0  # lines of the training text that there is no time for
    test_lines_in_training: int = 0  # test lines that are in the training text

    @property
    def is_parallel(self) -> bool:
        """Whether there are two languages."""
        return self.train.source is not None

    # -- as numbers, each once ---------------------------------------------------------------------------------------

    @cached_property
    def words(self) -> tuple[Corpus, Corpus, Corpus]:
        """The target's words, as language models read them."""
        return _as_words([part.target for part in (self.train, self.dev, self.test)])

    @cached_property
    def source_words(self) -> tuple[Corpus, Corpus, Corpus]:
        return _as_words([part.sources for part in (self.train, self.dev, self.test)])

    @cached_property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The units of either language, by the text."""
        from dragoman.data.tokenizer import Tokenizer

        return Tokenizer.train("auto", self.train.sources), Tokenizer.train("auto", self.train.target)

    def pairs(self, part: CorpusPart) -> ParallelCorpus:
        from dragoman.data.corpus import ParallelCorpus

        source, target = self.tokenizers
        return ParallelCorpus(source.encode(part.sources), target.encode(part.target))

    def as_dict(self) -> dict[str, Any]:
        sizes = {name: len(getattr(self, name)) for name in PARTS}
        about = {
            "held_out": list(self.held_out),
            "left_out": self.omitted,
            "test_lines_in_training": self.test_lines_in_training,
        }
        return {"lines": sizes, **about}


def _as_words(parts: Sequence[Sequence[str]]) -> tuple[Corpus, Corpus, Corpus]:
    from dragoman.data.corpus import Corpus

    train = Corpus.from_sentences(parts[0])
    dev, test = (Corpus.from_sentences(lines, train.vocab) for lines in parts[1:])
    return train, dev, test


# -- dividing a text -------------------------------------------------------------------------------------------------


def split_corpus(
    train: CorpusPart, dev: CorpusPart | None, test: CorpusPart | None, seed: int, minutes: float
) -> CorpusSplit:
    """The parts given, as far as there is time for them; those that are not given are held out."""
    missing = [name for name, part in (("dev", dev), ("test", test)) if part is None]
    taken = draw_held_out(train, len(missing), seed)
    inside = {number for numbers in taken for number in numbers}
    found = {name: train.select(numbers) for name, numbers in zip(missing, taken, strict=True)}
    rest = train.select(number for number in range(len(train)) if number not in inside)
    used = rest.spread(max(1, int(A_MINUTE * minutes)))
    asked = (dev or found["dev"]).spread(MOST_DEV), (test or found["test"]).spread(MOST_TEST)
    for name, part in zip(PARTS, (used, *asked), strict=True):
        if not any(line.strip() for line in part.target):
            raise DataError(f"the {name} text: all lines are blank; give some with words")
    known = set(used.lines)
    seen = sum(line in known for line in asked[1].lines)
    return CorpusSplit(used, *asked, tuple(missing), len(rest) - len(used), seen)


def draw_held_out(train: CorpusPart, parts: int, seed: int) -> list[list[int]]:
    """For each part the numbers of lines to hold out, drawn from those that come once in either language: so none of
    them is in the training text, nor the translation of any."""
    if not parts:
        return []
    texts = [train.target, *([train.source] if train.source is not None else [])]
    counts = [Counter(text) for text in texts]
    once = [
        number
        for number in range(len(train))
        if all(text[number].strip() and times[text[number]] == 1 for text, times in zip(texts, counts, strict=True))
    ]
    wanted = min(HELD_OUT, len(train) // SHARE)
    if len(train) < FEWEST or len(once) < parts * wanted:
        files = "--dev-text and --test-text" if train.source is None else "--dev-src, --dev-tgt, --test-src, --test-tgt"
        found = f"{len(train):,} lines, of which {len(once):,} come once"
        raise DataError(f"{found}: too few to hold some out; give more, or other texts with {files}")
    drawn = random.Random(seed).sample(once, parts * wanted)
    return [sorted(drawn[part * wanted : (part + 1) * wanted]) for part in range(parts)]


# -- on disk ---------------------------------------------------------------------------------------------------------


def write_split(text: CorpusSplit, place: Path) -> None:
    """The parts as files, so that every verb can read them."""
    from dragoman.io.storage import atomic_file

    for name in PARTS:
        part: CorpusPart = getattr(text, name)
        for ending, lines in ((SOURCE, part.source), (TARGET, part.target)):
            if lines is not None:
                with atomic_file(place / f"{name}.{ending}") as temporary:
                    temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
