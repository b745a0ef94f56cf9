"""Translating numbered lines of a text, by search or by sampling, and checking lines before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np

from dragoman.core.defaults import DEFAULT_BEAM_SIZE, MAX_TOKENS
from dragoman.core.errors import error_at_line
from dragoman.data.formats import NumberedLine
from dragoman.data.trees import parse_tree
from dragoman.io.output_formats import TranslatedLine
from dragoman.models.input_checks import InputCheck
from dragoman.models.text_pipeline import TextPipeline, TranslatedSentence, join_n_best, join_ranks
from dragoman.models.translation import EMPTY_TRANSLATION, BaseTranslator, SearchKwargs, Translation

if TYPE_CHECKING:
    from dragoman.io.output_formats import TranslationWriter
    from dragoman.models.duplicates import DuplicateTranslator


@dataclass(frozen=True)
class LineTranslator:
    """Translates lines by beam search."""

    pipeline: TextPipeline
    n_best: int = 1
    beam_size: int = DEFAULT_BEAM_SIZE
    max_tokens: int = MAX_TOKENS
    search: SearchKwargs = field(default_factory=SearchKwargs)
    with_lattice: bool = False  # record each search, one line at a time

    def translate(
        self, lines: Sequence[NumberedLine], sentences: Sequence[Sequence[TranslatedSentence]]
    ) -> list[TranslatedLine]:
        """Return the translations of lines, whose sentences are given."""
        all_sentences = [sentence for parts in sentences for sentence in parts]
        if self.with_lattice:
            translated = [self._record_search(sentence) for sentence in all_sentences]
        else:
            translated = self.pipeline.translate(all_sentences, self.n_best, self.beam_size, **self.search)
        remaining = iter(translated)
        by_line = ([next(remaining) for _ in parts] for parts in sentences)
        return [
            TranslatedLine(*line, join_n_best(parts, self.n_best), parts)
            for line, parts in zip(lines, by_line, strict=True)
        ]

    def _record_search(self, sentence: TranslatedSentence) -> TranslatedSentence:
        from dragoman.search.hypothesis import Lattice

        lattice = Lattice()
        [translated] = self.pipeline.translate([sentence], self.n_best, self.beam_size, **self.search, lattice=lattice)
        return replace(translated, lattice=() if sentence.segmented.is_split else lattice.nodes)


@dataclass(frozen=True)
class LineSampler:
    """Samples translations of lines. Those of a line depend on the seed and its number only."""

    pipeline: TextPipeline
    samples: int
    seed: int = 1
    temperature: float = 1.0
    max_tokens: ClassVar[int] = sys.maxsize  # sentences are not split

    def translate(
        self, lines: Sequence[NumberedLine], sentences: Sequence[Sequence[TranslatedSentence]]
    ) -> list[TranslatedLine]:
        """Return samples of lines, whose sentences are given: sample k of a line joins samples k of its sentences."""
        translated = []
        for line, parts in zip(lines, sentences, strict=True):
            sampled = [self._sample(sentence, line.number, index) for index, sentence in enumerate(parts)]
            samples = [join_ranks(sampled, [index] * len(sampled)) for index in range(self.samples)]
            translated.append(TranslatedLine(*line, samples, sampled))
        return translated

    def _sample(self, sentence: TranslatedSentence, number: int, index: int) -> TranslatedSentence:
        samples = [EMPTY_TRANSLATION] * self.samples
        if sentence.text.strip():
            entropy = [self.seed, number, index] if index else [self.seed, number]
            seed = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])
            [samples] = self.pipeline.model.sample(
                [sentence.segmented], self.samples, seed, temperature=self.temperature
            )
        return self.pipeline.add_translations(sentence, samples)


def translate_lines(
    model: BaseTranslator,
    lines: Sequence[str],
    beam_size: int = DEFAULT_BEAM_SIZE,
    *,
    split_sentences: bool = True,
    **search: Unpack[SearchKwargs],
) -> list[Translation]:
    """Return the best translation of each line, as `translate_all` writes it."""
    verbatim = search.get("verbatim", False)
    pipeline = TextPipeline(model, split_sentences=split_sentences, keep_tokenised=True, verbatim=verbatim)
    translator = LineTranslator(pipeline, beam_size=beam_size, search=search)
    numbered = [NumberedLine(number, line) for number, line in enumerate(lines, 1)]
    translated = translator.translate(numbered, pipeline.split_texts(lines))
    return [line.translations[0] for line in translated]


def translate_all(
    translator: LineTranslator | LineSampler | DuplicateTranslator,
    batches: Iterable[Sequence[NumberedLine]],
    writers: Sequence[TranslationWriter],
    info: Callable[[str], None],
    *,
    explain_unknowns: bool = False,
) -> None:
    """Translate batches of lines and write the results. Messages for the user go to `info`."""
    pipeline, check = translator.pipeline, InputCheck(translator.pipeline.model)
    for lines in batches:
        sentences = pipeline.split_texts([line.text for line in lines], translator.max_tokens)
        for message in check.add(lines, sentences):
            info(message)
        for line, parts in zip(lines, sentences, strict=True):
            if any(part.segmented.is_split for part in parts):
                info(f"line {line.number}: more than {translator.max_tokens} tokens, so it is split")
        translated = translator.translate(lines, sentences)
        if explain_unknowns:
            for message in _replacements(translated):
                info(message)
        for writer in writers:
            writer.write(translated)
    for message in check.summary():
        info(message)


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
