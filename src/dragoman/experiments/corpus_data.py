"""The user's corpus as an experiment uses it: read, divided into train, dev and test text without common lines."""

from __future__ import annotations

import random
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.formats import read_lines
from dragoman.data.languages import (
    Languages,
    choose_languages,
    describe_language,
    language_from_path,
    languages_from_paths,
)
from dragoman.data.pair_files import read_pair_file, read_pairs
from dragoman.data.tokenizer import LinePairs, Tokenizer
from dragoman.io.files import write_text

MAX_HELD_OUT = 1000  # lines of a part that is held out,
HELD_OUT_SHARE = 10  # and at most one line in ten
MIN_LINES = 30  # from which a part can be held out
MAX_DEV, MAX_TEST = 1000, 2000  # lines that are used
LINES_PER_MINUTE = 10_000  # of training text that are used, for each minute of the experiment
SOURCE, TARGET = "src", "tgt"  # extensions of the files
SIDES = ("the source", "the target")  # what languages of unknown names are called

ThreeCorpora = tuple[Corpus, Corpus, Corpus]  # train, dev and test text


@dataclass(frozen=True)
class CorpusFiles:
    """Paths of the user's texts: `src` and `tgt`, `pairs` with both sides in one file, or `text` for one language."""

    src: str | None = None
    tgt: str | None = None
    dev_src: str | None = None
    dev_tgt: str | None = None
    test_src: str | None = None
    test_tgt: str | None = None
    text: str | None = None
    dev_text: str | None = None
    test_text: str | None = None
    pairs: str | None = None
    src_lang: str | None = None
    tgt_lang: str | None = None

    @property
    def given(self) -> set[str]:
        """Names of the fields that have a value."""
        return {field.name for field in fields(self) if getattr(self, field.name) is not None}

    def check(self) -> None:
        """Raise an error for combinations that make no sense."""
        for source, target in (("src", "tgt"), ("dev_src", "dev_tgt"), ("test_src", "test_tgt")):
            if (source in self.given) != (target in self.given):
                raise DataError(f"{_option(source)} and {_option(target)} go together: give both, or neither")
        if self.given & {"src", "pairs"} and any(name.endswith("text") for name in self.given):
            raise DataError("--text is for one language, --src and --tgt are for two; give one or the other")
        if {"src", "pairs"} <= self.given:
            raise DataError("--pairs has both sides; remove --src and --tgt")
        if self.given & {"src_lang", "tgt_lang"} and not self.given & {"src", "pairs"}:
            raise DataError("--src-lang and --tgt-lang are for sentence pairs; give --pairs, or --src and --tgt")
        for required, names in (("src", ("dev_src", "test_src")), ("text", ("dev_text", "test_text"))):
            if not self.given & {required, "pairs" if required == "src" else required} and (
                extra := [name for name in names if name in self.given]
            ):
                raise DataError(f"{_option(extra[0])} goes with {_option(required)}; give both")

    @property
    def languages(self) -> Languages:
        return Languages(self.src_lang, self.tgt_lang)

    @property
    def language_codes(self) -> Sequence[str | None]:
        """The language of the text, or those of both sides, as far as they are given or in the files or their names."""
        if self.text is not None:
            return [language_from_path(self.text)]
        if self._pairs is not None:
            return choose_languages(self.languages, self._pairs.languages)
        return choose_languages(self.languages, languages_from_paths([self.src or "", self.tgt or ""]))

    @cached_property
    def _pairs(self) -> LinePairs | None:
        """The sentence pairs of the file with both sides."""
        return None if self.pairs is None else read_pair_file(self.pairs, languages=self.languages)

    @property
    def names(self) -> CorpusNames:
        """How the report calls the text and its languages."""
        files = [Path(path).name for path in (self.pairs or self.src, self.tgt or self.text) if path is not None]
        languages = [describe_language(code) for code in self.language_codes]
        if self.pairs is not None:
            languages = [language or side for language, side in zip(languages, SIDES, strict=True)]
        known = [language for language in languages if language is not None]
        if len(known) < len(languages):
            return CorpusNames(f"The ladder, {' to '.join(files)}", files[0], files[-1])
        return CorpusNames(f"The ladder, {' to '.join(known)}: {', '.join(files)}", known[0], known[-1])

    @property
    def language_notes(self) -> dict[str, list[str]]:
        """The codes of both languages, if they are known."""
        codes = [code for code in self.language_codes if code is not None]
        return {"languages": codes} if len(codes) == 2 else {}

    def read(self) -> tuple[CorpusPart, CorpusPart | None, CorpusPart | None]:
        """Return the training text and, where they are given, dev and test text."""
        train = _read_part(self.src, self.tgt or self.text)
        if self._pairs is not None:
            train = _part_of(self._pairs)
        assert train is not None, "checked before"
        dev = _read_part(self.dev_src, self.dev_tgt or self.dev_text)
        return train, dev, _read_part(self.test_src, self.test_tgt or self.test_text)


@dataclass(frozen=True)
class CorpusNames:
    """What the report and the languages are called; with one language, source and target are the same."""

    title: str
    source: str
    target: str


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _read_part(source: str | None, target: str | None) -> CorpusPart | None:
    if target is None:
        return None
    if source is None:
        return CorpusPart(read_lines(target))
    return _part_of(read_pairs(source, target))


def _part_of(pairs: LinePairs) -> CorpusPart:
    if pairs.rejected:
        warnings.warn(f"{pairs.name}: {pairs.describe_rejected()}", stacklevel=2)
    return CorpusPart(pairs.target, pairs.source)


@dataclass(frozen=True, eq=False)
class CorpusPart:
    """Lines and, in a parallel corpus, the source lines that they translate."""

    target: Sequence[str]
    source: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.target)

    def select(self, numbers: Iterable[int]) -> CorpusPart:
        numbers = list(numbers)
        source = None if self.source is None else [self.source[number] for number in numbers]
        return CorpusPart([self.target[number] for number in numbers], source)

    def spread(self, maximum: int) -> CorpusPart:
        """Return at most this many lines, at equal distances: a text may be sorted by length."""
        size = len(self)
        return self if size <= maximum else self.select(number * size // maximum for number in range(maximum))

    @property
    def lines(self) -> list[str]:
        """The lines, in a parallel corpus as `source TAB target`."""
        if self.source is None:
            return list(self.target)
        return [f"{source}\t{target}" for source, target in zip(self.source, self.target, strict=True)]

    @property
    def sources(self) -> Sequence[str]:
        """The source lines of a parallel corpus."""
        assert self.source is not None, "a parallel corpus"
        return self.source

    @property
    def checksum(self) -> str:
        return f"{zlib.crc32(chr(10).join(self.lines).encode('utf-8', 'surrogatepass')):08x}"


@dataclass(frozen=True, eq=False)
class CorpusSplit:
    """The three parts as they are used."""

    train: CorpusPart
    dev: CorpusPart
    test: CorpusPart
    held_out: tuple[str, ...] = ()  # parts that were taken from the training text
    omitted: int = 0  # lines of the training text that there is no time for
    test_lines_in_training: int = 0

    @property
    def parts(self) -> dict[str, CorpusPart]:
        return {"train": self.train, "dev": self.dev, "test": self.test}

    @property
    def is_parallel(self) -> bool:
        return self.train.source is not None

    @cached_property
    def target_words(self) -> ThreeCorpora:
        """The target text as words, for language models."""
        return _as_words([part.target for part in self.parts.values()])

    @cached_property
    def source_words(self) -> ThreeCorpora:
        return _as_words([part.sources for part in self.parts.values()])

    @cached_property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Tokenizers of source and target, with units that suit the text."""
        return Tokenizer.train("auto", self.train.sources), Tokenizer.train("auto", self.train.target)

    def encode(self, part: CorpusPart) -> ParallelCorpus:
        """Return a part as ids, for translators."""
        source, target = self.tokenizers
        return ParallelCorpus(source.encode(part.sources), target.encode(part.target))

    def write(self, directory: Path) -> None:
        """Write the parts as text files, so that every command can read them."""
        for name, part in self.parts.items():
            for extension, lines in ((SOURCE, part.source), (TARGET, part.target)):
                if lines is not None:
                    write_text(directory / f"{name}.{extension}", "".join(f"{line}\n" for line in lines))


def _as_words(parts: Sequence[Sequence[str]]) -> ThreeCorpora:
    train = Corpus.from_sentences(parts[0])
    dev, test = (Corpus.from_sentences(lines, train.vocab) for lines in parts[1:])
    return train, dev, test


def split_corpus(
    train: CorpusPart, dev: CorpusPart | None, test: CorpusPart | None, seed: int, minutes: float
) -> CorpusSplit:
    """Return the parts, as far as there is time for them. Parts that are not given are held out."""
    missing = [name for name, part in (("dev", dev), ("test", test)) if part is None]
    drawn = draw_held_out(train, len(missing), seed)
    parts = {name: train.select(numbers) for name, numbers in zip(missing, drawn, strict=True)}
    held_out = {number for numbers in drawn for number in numbers}
    remaining = train.select(number for number in range(len(train)) if number not in held_out)
    used = remaining.spread(max(1, int(LINES_PER_MINUTE * minutes)))
    dev = (parts["dev"] if dev is None else dev).spread(MAX_DEV)
    test = (parts["test"] if test is None else test).spread(MAX_TEST)
    for name, part in {"train": used, "dev": dev, "test": test}.items():
        if not any(line.strip() for line in part.target):
            raise DataError(f"the {name} text: all lines are blank; give lines with words")
    training_lines = set(used.lines)
    repeated = sum(line in training_lines for line in test.lines)
    return CorpusSplit(used, dev, test, tuple(missing), len(remaining) - len(used), repeated)


def draw_held_out(train: CorpusPart, parts: int, seed: int) -> list[list[int]]:
    """Return the numbers of the lines to hold out for each part.

    They are drawn from lines that occur once in either language, so that neither they nor their translations are in the
    training text.
    """
    if not parts:
        return []
    counts = [(text, Counter(text)) for text in (train.target, train.source) if text is not None]
    unique = [
        number
        for number in range(len(train))
        if all(text[number].strip() and count[text[number]] == 1 for text, count in counts)
    ]
    size = min(MAX_HELD_OUT, len(train) // HELD_OUT_SHARE)
    if len(train) < MIN_LINES or len(unique) < parts * size:
        pair_options = "--dev-src, --dev-tgt, --test-src, --test-tgt"
        options = "--dev-text and --test-text" if train.source is None else pair_options
        lines = f"{len(train):,} lines, of which {len(unique):,} occur once"
        raise DataError(f"{lines}: too few to hold some out; give more, or other texts with {options}")
    numbers = random.Random(seed).sample(unique, parts * size)
    return [sorted(numbers[part * size : (part + 1) * size]) for part in range(parts)]
