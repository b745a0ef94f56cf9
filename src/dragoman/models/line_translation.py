"""Translating numbered lines of a text, by search or by sampling, and checking lines before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dragoman.core.defaults import DEFAULT_LENGTH, MAX_TOKENS
from dragoman.core.errors import error_at_line
from dragoman.data.formats import NumberedLine
from dragoman.data.segmenters import looks_tokenised, token_name
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.trees import parse_tree
from dragoman.data.vocabulary import UNK
from dragoman.io.output_formats import TranslatedLine
from dragoman.models.segmented_line import SegmentedLine
from dragoman.models.translation import EMPTY_TRANSLATION, BaseTranslator

if TYPE_CHECKING:
    from dragoman.align.unknown_words import UnknownReplacer
    from dragoman.io.output_formats import TranslationWriter
    from dragoman.models.translation import Translation


@dataclass(frozen=True)
class LineSearch:
    """Translates lines by beam search."""

    model: BaseTranslator
    n_best: int = 1
    beam_size: int = 5
    length: str = DEFAULT_LENGTH
    coverage: float = 0.0
    max_tokens: int = MAX_TOKENS
    unknown_replacer: UnknownReplacer | None = None
    with_lattice: bool = False  # record each search, one line at a time

    def translate(self, lines: Sequence[NumberedLine], segmented: Sequence[SegmentedLine]) -> list[TranslatedLine]:
        if self.with_lattice:
            return [self._recorded(line, tokens) for line, tokens in zip(lines, segmented, strict=True)]
        n_best = self.model.n_best(
            segmented,
            self.n_best,
            self.beam_size,
            length=self.length,
            coverage=self.coverage,
            unknown_replacer=self.unknown_replacer,
        )
        return [TranslatedLine(*line, translations) for line, translations in zip(lines, n_best, strict=True)]

    def _recorded(self, line: NumberedLine, segmented: SegmentedLine) -> TranslatedLine:
        from dragoman.search.lattice import Lattice

        lattice = Lattice()
        [translations] = self.model.n_best(
            [segmented],
            self.n_best,
            self.beam_size,
            length=self.length,
            coverage=self.coverage,
            unknown_replacer=self.unknown_replacer,
            lattice=lattice,
        )
        return TranslatedLine(*line, translations, () if segmented.is_split else lattice.nodes)


@dataclass(frozen=True)
class LineSampling:
    """Samples translations of lines. Those of a line depend on the seed and its number only."""

    model: BaseTranslator
    samples: int
    seed: int = 1
    temperature: float = 1.0
    max_tokens: ClassVar[int] = sys.maxsize  # lines are not split

    def translate(self, lines: Sequence[NumberedLine], segmented: Sequence[SegmentedLine]) -> list[TranslatedLine]:
        return [
            TranslatedLine(*line, self._sample(line, tokens)) for line, tokens in zip(lines, segmented, strict=True)
        ]

    def _sample(self, line: NumberedLine, segmented: SegmentedLine) -> list[Translation]:
        if not line.text.strip():
            return [EMPTY_TRANSLATION] * self.samples
        seed = int(np.random.SeedSequence([self.seed, line.number]).generate_state(1, np.uint64)[0])
        return self.model.sample([segmented], self.samples, seed, temperature=self.temperature)[0]


def translate_all(
    translator: LineSearch | LineSampling,
    batches: Iterable[Sequence[NumberedLine]],
    writers: Sequence[TranslationWriter],
    info: Callable[[str], None],
    *,
    explain_unknowns: bool = False,
) -> None:
    """Translate batches of lines and write the results. Messages for the user go to `info`."""
    unknown_lines = UnknownLineCounter(translator.model.source)
    for lines in batches:
        segmented = translator.model.segment([line.text for line in lines], translator.max_tokens)
        for message in (*unknown_lines.check(lines, segmented), *_long_lines(lines, segmented, translator.max_tokens)):
            info(message)
        translated = translator.translate(lines, segmented)
        if explain_unknowns:
            for message in _replacements(translated):
                info(message)
        for writer in writers:
            writer.write(translated)
    if unknown_lines.lines > 1:
        info(unknown_lines.summary())


def _long_lines(lines: Sequence[NumberedLine], segmented: Sequence[SegmentedLine], max_tokens: int) -> Iterator[str]:
    for line, tokens in zip(lines, segmented, strict=True):
        if tokens.is_split:
            yield f"line {line.number}: more than {max_tokens} tokens, so it is split"


def _replacements(lines: Iterable[TranslatedLine]) -> Iterator[str]:
    """Describe the words that replace unknown ones."""
    from dragoman.align.unknown_words import COPIED

    for line in lines:
        for replacement in line.translations[0].replacements:
            origin = "copied from" if replacement.rule == COPIED else "the lexicon's translation of"
            attention = f"{100 * replacement.attention:.0f}% of the attention"
            place = f"line {line.number}, word {replacement.place + 1}"
            yield f"{place}: {replacement.word}, {origin} {replacement.source} ({attention})"


def check_tree(line: str, source: str, number: int, max_words: int, remedy: str) -> None:
    """Raise an error if a line is not a tree, or a tree with too many words: trees cannot be split."""
    words = len(parse_tree(line, source, number).words)
    if words > max_words:
        problem = f"a tree of {words:,} words, and at most {max_words:,} are allowed"
        raise error_at_line(source, number, f"{problem}; {remedy}")


# -- unknown tokens ----------------------------------------------------------------------------------------------------


@dataclass
class UnknownLineCounter:
    """Describes the first line most of whose tokens are unknown, and counts all such lines."""

    tokenizer: Tokenizer
    lines: int = 0

    def check(self, lines: Sequence[NumberedLine], segmented: Sequence[SegmentedLine]) -> Iterator[str]:
        """Yield a message for the first line with mostly unknown tokens."""
        for line, segmented_line in zip(lines, segmented, strict=True):
            tokens = self._tokens(segmented_line)
            unknown = int((self.tokenizer.vocab.ids(tokens) == UNK).sum())
            if 2 * unknown <= len(tokens):
                continue
            self.lines += 1
            if self.lines == 1:
                text = " ".join(tokens) if self.tokenizer.format == TREE else line.text
                problem = f"{unknown} of {len(tokens)} {self.token_name} do not occur in the training text"
                yield f"line {line.number}: {problem}; {_probable_reason(self.tokenizer, text)}"

    def summary(self) -> str:
        return f"{self.lines:,} lines consist mostly of {self.token_name} that do not occur in the training text"

    @property
    def token_name(self) -> str:
        return f"{token_name(self.tokenizer.segmenter)}s"

    def _tokens(self, line: SegmentedLine) -> Sequence[str]:
        return parse_tree(line.text).words if self.tokenizer.format == TREE and line.chunks else line.tokens


def _probable_reason(tokenizer: Tokenizer, line: str) -> str:
    """Describe how the training text was written, as far as this line is written differently."""
    is_lowercase = line != line.lower() and all(word == word.lower() for word in tokenizer.vocab.tokens)
    is_tokenised = tokenizer.tokenised and not looks_tokenised([line])
    form = ", ".join(name for name, holds in (("lower-cased", is_lowercase), ("tokenised", is_tokenised)) if holds)
    return f"it was trained on {form} text" if form else "is this the language that it translates from?"
