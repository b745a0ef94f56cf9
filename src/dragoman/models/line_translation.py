"""Translating numbered lines of a text, by search or by sampling, and checking lines before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np

from dragoman.core.defaults import DEFAULT_BEAM_SIZE, MAX_TOKENS
from dragoman.core.errors import error_at_line
from dragoman.data.detokenize import looks_tokenised
from dragoman.data.formats import NumberedLine
from dragoman.data.languages import describe_language
from dragoman.data.letter_profiles import looks_foreign
from dragoman.data.segmenters import SPACE_MARK, token_name
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.trees import parse_tree
from dragoman.data.vocabulary import UNK
from dragoman.io.output_formats import TranslatedLine
from dragoman.models.text_pipeline import TextPipeline, TranslatedSentence, join_n_best, join_ranks
from dragoman.models.translation import EMPTY_TRANSLATION, BaseTranslator, SearchKwargs, Translation

if TYPE_CHECKING:
    from dragoman.io.output_formats import TranslationWriter


MAX_FOREIGN_SHARE = 0.2  # of the lines; quotations and lists of names are below it


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
    translator: LineTranslator | LineSampler,
    batches: Iterable[Sequence[NumberedLine]],
    writers: Sequence[TranslationWriter],
    info: Callable[[str], None],
    *,
    explain_unknowns: bool = False,
) -> None:
    """Translate batches of lines and write the results. Messages for the user go to `info`."""
    pipeline, unknown_lines = translator.pipeline, 0
    tokenizer, language_check = pipeline.model.source, LanguageCheck(pipeline.model.source, pipeline.model.target)
    for lines in batches:
        sentences = pipeline.split_texts([line.text for line in lines], translator.max_tokens)
        for line, parts in zip(lines, sentences, strict=True):
            if message := describe_unknown(tokenizer, parts):
                unknown_lines += 1
                if unknown_lines == 1:
                    info(f"line {line.number}: {message}")
            if any(part.segmented.is_split for part in parts):
                info(f"line {line.number}: more than {translator.max_tokens} tokens, so it is split")
        if message := language_check.add(lines):
            info(message)
        translated = translator.translate(lines, sentences)
        if explain_unknowns:
            for message in _replacements(translated):
                info(message)
        for writer in writers:
            writer.write(translated)
    if message := language_check.summary():
        info(message)
    if unknown_lines > 1:
        unit = token_name(tokenizer.segmenter)
        info(f"{unknown_lines:,} lines consist mostly of {unit}s that do not occur in the training text")


def describe_unknown(tokenizer: Tokenizer, sentences: Sequence[TranslatedSentence]) -> str | None:
    """Return a message about a line if it consists mostly of unknown tokens, or if it is copied for this reason."""
    read = " ".join(sentence.segmented.text for sentence in sentences)
    tokens = [token for sentence in sentences for token in sentence.segmented.tokens]
    if tokenizer.format == TREE and sentences[0].segmented.chunks:
        tokens = parse_tree(read).words
        read = " ".join(tokens)
    if tokenizer.segmenter.kind != "char":
        tokens = [token for token in tokens if token != SPACE_MARK]  # before an unknown piece
    unknown = int((tokenizer.vocab.ids(tokens) == UNK).sum())
    copied = sum(sentence.segmented.is_copied and bool(sentence.segmented.chunks) for sentence in sentences)
    unit, reason = f"{token_name(tokenizer.segmenter)}s", _probable_reason(tokenizer, read)
    if copied < len(sentences) and 2 * unknown <= len(tokens):
        consist = f"consist mostly of {unit} that do not occur in the training text and are copied"
        return f"{copied:,} of {len(sentences):,} sentences {consist}; {reason}" if copied else None
    problem = f"{unknown:,} of {len(tokens):,} {unit} do not occur in the training text"
    return f"{problem}{', so it is copied' if copied else ''}; {reason}"


def input_warning(model: BaseTranslator, sentences: Sequence[TranslatedSentence]) -> str | None:
    """Return a message about a text that is mostly unknown to the translator, or in another language; None if neither."""
    source, text = model.source, " ".join(sentence.text for sentence in sentences)
    if message := describe_unknown(source, sentences):
        return message
    if source.letters is None or source.format == TREE or not looks_foreign(text, source.letters, model.target.letters):
        return None
    return _foreign_message(source)


def _foreign_message(source: Tokenizer) -> str:
    language = describe_language(source.language) or "the language of the training text"
    return f"this does not look like {language}, which the model translates from"


class LanguageCheck:
    """Notices input in another language than the source, by the letter profiles of the training texts."""

    def __init__(self, source: Tokenizer, target: Tokenizer):
        self.source, self.target = source, target
        self.judged = self.foreign = 0
        self.is_reported = False

    def add(self, lines: Sequence[NumberedLine]) -> str | None:
        """Judge lines. Returns a message when many lines have turned out to be in another language, only once."""
        if self.source.letters is None or self.source.format == TREE:
            return None
        first = None
        for line in lines:
            is_foreign = looks_foreign(line.text, self.source.letters, self.target.letters)
            self.judged += is_foreign is not None
            self.foreign += is_foreign is True
            first = first or (line.number if is_foreign else None)
        if self.is_reported or first is None or self.foreign <= MAX_FOREIGN_SHARE * self.judged:
            return None
        self.is_reported = True
        return f"line {first}: {_foreign_message(self.source)}"

    def summary(self) -> str | None:
        """Return a message about all lines, if several are in another language."""
        if not self.is_reported or self.foreign < 2:
            return None
        return f"{self.foreign:,} of {self.judged:,} lines with enough letters are not in the language of the training text"


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


def _probable_reason(tokenizer: Tokenizer, line: str) -> str:
    """Describe how the training text was written, as far as this line is written differently."""
    is_lowercase = line != line.lower() and all(word == word.lower() for word in tokenizer.vocab.tokens)
    is_tokenised = tokenizer.tokenised and not looks_tokenised([line])
    form = ", ".join(name for name, holds in (("lower-cased", is_lowercase), ("tokenised", is_tokenised)) if holds)
    return f"it was trained on {form} text" if form else "is this the language that it translates from?"
