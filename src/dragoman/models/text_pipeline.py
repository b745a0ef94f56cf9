"""From text to text with a translator: sentence splitting, tokenisation, translation and detokenisation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple, Unpack

from dragoman.align.unknown_words import COPIED, UnknownReplacer
from dragoman.core.defaults import DEFAULT_BEAM_SIZE, DEFAULT_LENGTH, MAX_TOKENS
from dragoman.data.copied_items import lower_except_items
from dragoman.data.detokenize import PunctuationTokenizer
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.sentences import split_sentences, split_tokenised_sentences
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.vocabulary import SPECIALS
from dragoman.evaluation.task_scores import has_phones
from dragoman.models.translation import BaseTranslator, SegmentedLine, TranslateKwargs, Translation
from dragoman.models.translation_results import join_translations

if TYPE_CHECKING:
    from dragoman.search.hypothesis import LatticeNode

PUNCTUATION = "\"'“”„‘’«»()[]{}.,;:!?"
# The end of a sentence in Chinese or Japanese, which have no space after it; Thai and Lao have. In tokenised text, a space
# is before the mark.
UNSPACED_END = re.compile(r"(?:[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\s。！？｡!?.][。！？｡]+)[」』）】”’]*$")


@dataclass(frozen=True)
class TranslatedSentence:
    """A sentence of a text, and its translations, best first."""

    text: str
    trailing_space: str  # white space after the sentence
    segmented: SegmentedLine  # the sentence as the translator reads it
    is_plain: bool = True  # its translations are written as plain text, even if the translator writes tokenised text
    translations: Sequence[Translation] = ()
    texts: Sequence[str] = ()  # of the translations
    lattice: Sequence[LatticeNode] = ()  # the nodes of the search, if it was recorded


class TranslationOptions(NamedTuple):
    """Options of a translation, see `BaseTranslator.n_best`."""

    n: int = 1
    beam_size: int = DEFAULT_BEAM_SIZE
    length: str = DEFAULT_LENGTH
    coverage: float = 0.0
    prefix: tuple[str, ...] = ()


class TextPipeline:
    """A translator of plain text, also if its training text was tokenised or lowercased."""

    def __init__(
        self,
        model: BaseTranslator,
        replacer: UnknownReplacer | None = None,
        *,
        split_sentences: bool = True,
        keep_tokenised: bool = False,
        verbatim: bool = False,
    ):
        """
        Args:
            replacer: replaces unknown words of translations.
            split_sentences: whether to split texts into sentences, which are translated one by one. Trees are never split,
                and neither are words or their pronunciations.
            verbatim: see `BaseTranslator.segment`.
            keep_tokenised: for lines of a file: the translation of a tokenised line is tokenised as well.
        """
        self.model, self.replacer = model, replacer
        is_text = not (has_phones(model.source) or has_phones(model.target))
        self.split_sentences = split_sentences and is_text and model.source.format != TREE
        self.keep_tokenised, self.verbatim = keep_tokenised, verbatim
        self.source_tokenizer = _punctuation_tokenizer(model.source) if is_text else None
        self.target_tokenizer = _punctuation_tokenizer(model.target) if is_text else None

    def tokenize(self, sentence: str) -> str:
        """Return a source sentence as the translator reads it."""
        return sentence if self.source_tokenizer is None else self.source_tokenizer.tokenize(sentence)

    def tokenize_target(self, sentence: str) -> str:
        """Return a target sentence as the translator would write it."""
        return sentence if self.target_tokenizer is None else self.target_tokenizer.tokenize(sentence)

    def read_pairs(self, lines: Sequence[str], references: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return lines and their translations as they would be in the training text: tokenised, if that was."""
        sides = (
            (self.model.source, self.source_tokenizer, lines),
            (self.model.target, self.target_tokenizer, references),
        )
        source, target = (
            list(texts)
            if tokenizer is None or side.segmenter.kind == "char"
            else [text if tokenizer.is_tokenised(text) else tokenizer.tokenize(text) for text in texts]
            for side, tokenizer, texts in sides
        )
        return source, target

    def split(self, text: str, max_tokens: int = MAX_TOKENS) -> list[TranslatedSentence]:
        """Split a text into sentences; see `split_texts`."""
        return self.split_texts([text], max_tokens)[0]

    def split_texts(self, texts: Sequence[str], max_tokens: int = MAX_TOKENS) -> list[list[TranslatedSentence]]:
        """Split each text into sentences, and segment them; into lines, if the translator reads trees."""
        split = [self._split(text) for text in texts]
        lines = [line for sentences in split for _, _, line, _ in sentences]
        segmented = iter(self.model.segment(lines, max_tokens, verbatim=self.verbatim))
        return [
            [TranslatedSentence(text, gap, next(segmented), is_plain) for text, gap, _, is_plain in sentences]
            for sentences in split
        ]

    def translate(
        self,
        sentences: Sequence[TranslatedSentence],
        n: int = 1,
        beam_size: int = DEFAULT_BEAM_SIZE,
        **options: Unpack[TranslateKwargs],
    ) -> list[TranslatedSentence]:
        """Return the sentences with their n best translations. For the options, see `BaseTranslator.n_best`."""
        lines = [sentence.segmented for sentence in sentences]
        options.setdefault("unknown_replacer", self.replacer)
        n_best = self.model.n_best(lines, n, beam_size, **options)
        return [self.add_translations(*pair) for pair in zip(sentences, n_best, strict=True)]

    def translate_texts(
        self,
        texts: Sequence[str],
        n: int = 1,
        beam_size: int = DEFAULT_BEAM_SIZE,
        **options: Unpack[TranslateKwargs],
    ) -> list[list[TranslatedSentence]]:
        """Return the sentences of each text with their n best translations; `join_sentences` joins them."""
        split = self.split_texts(texts, options.get("max_tokens", MAX_TOKENS))
        sentences = [sentence for text in split for sentence in text]
        translated = iter(self.translate(sentences, n, beam_size, **options))
        return [[next(translated) for _ in text] for text in split]

    def add_translations(self, sentence: TranslatedSentence, translations: Sequence[Translation]) -> TranslatedSentence:
        """Return a sentence with its translations."""
        texts = [
            self.detokenize_translation(translation, sentence.text) if sentence.is_plain else translation.text
            for translation in translations
        ]
        return replace(sentence, translations=translations, texts=texts)

    def _split(self, text: str) -> list[tuple[str, str, str, bool]]:
        """Return the sentences of a text: text, white space after it, text as it is read, and whether it is plain."""
        if self.model.source.format == TREE:
            *lines, last = text.split("\n")
            return [*((line, "\n", line, False) for line in lines), (last, "", last, False)]
        if not self.keep_tokenised:
            sentences = split_sentences(text, self.model.source.language) if self.split_sentences else [(text, "")]
            return [(sentence, gap, self.tokenize(sentence), True) for sentence, gap in sentences]
        tokenizer = self.source_tokenizer
        if tokenizer is None or self.model.source.segmenter.kind == "char":
            return [(sentence, gap, sentence, False) for sentence, gap in self._split_line(text)]
        if tokenizer.is_tokenised(text):
            sentences = self._split_line(lower_except_items(text) if tokenizer.lowercase else text, tokenizer)
            return [(sentence, gap, sentence, False) for sentence, gap in sentences]
        return [(sentence, gap, tokenizer.tokenize(sentence), True) for sentence, gap in self._split_line(text)]

    def _split_line(self, line: str, tokenizer: PunctuationTokenizer | None = None) -> list[tuple[str, str]]:
        """Split a line into sentences; with a tokenizer, the line is tokenised. White space around it is ignored."""
        if not self.split_sentences or not line.strip():
            return [(line, "")]
        if tokenizer is None:
            sentences = split_sentences(line.strip(), self.model.source.language)
        else:
            sentences = split_tokenised_sentences(line, lowercase=tokenizer.lowercase)
        return sentences if len(sentences) > 1 else [(line, "")]  # as it is, if there is one

    def detokenize_translation(self, translation: Translation, source: str) -> str:
        """Return a translation as plain text; words copied from the source keep their capitals."""
        spellings = {word.lower(): word for word in (self.tokenize(source).split() if self.source_tokenizer else [])}
        spellings |= {word.strip(PUNCTUATION).lower(): word.strip(PUNCTUATION) for word in source.split()}
        copied = {
            replacement.place: spellings[replacement.source]
            for replacement in translation.replacements
            if replacement.rule == COPIED and replacement.source in spellings
        }
        return self.detokenize(translation.text, source, copied)

    def detokenize(self, translation: str, source: str, spellings: Mapping[int, str] | None = None) -> str:
        """Return a tokenised translation as plain text; `spellings` says how the words at some positions are written."""
        if self.target_tokenizer is None:
            return translation
        return self.target_tokenizer.detokenize(translation, source, spellings)


def default_replacer(model: BaseTranslator, replacer: UnknownReplacer | None = None) -> UnknownReplacer | None:
    """Return what replaces unknown words where that is possible: with attention, from words to words."""
    kinds = {model.source.segmenter.kind, model.target.segmenter.kind}
    can_replace = model.has_attention and kinds == {"word"} and model.source.format != TREE
    return (replacer or UnknownReplacer()) if can_replace else None


def join_sentences(sentences: Sequence[TranslatedSentence], rank: int = 0) -> str:
    """Return a text from the translations of this rank; from the last one where a sentence has fewer."""
    return _join_texts(sentences, [min(rank, len(sentence.texts) - 1) for sentence in sentences])


def join_n_best(sentences: Sequence[TranslatedSentence], n: int) -> list[Translation]:
    """Return the n best translations of a line: its sentences' translations with the highest sums of scores."""
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]  # sums of scores, and the rank for each sentence
    for sentence in sentences:
        longer = (
            (score + translation.score, (*ranks, rank))
            for score, ranks in best
            for rank, translation in enumerate(sentence.translations)
        )
        best = nlargest(n, longer, key=lambda item: item[0])
    return [join_ranks(sentences, ranks) for _, ranks in best]


def join_ranks(sentences: Sequence[TranslatedSentence], ranks: Sequence[int]) -> Translation:
    """Return a translation of a line from one translation of each sentence."""
    parts = [sentence.translations[rank] for sentence, rank in zip(sentences, ranks, strict=True)]
    joined = parts[0] if len(parts) == 1 else join_translations(parts)
    return replace(joined, text=_join_texts(sentences, ranks))


def _join_texts(sentences: Sequence[TranslatedSentence], ranks: Sequence[int]) -> str:
    """Join translations with the white space of the source, as far as the script of the translation has spaces."""
    line = ""
    for position, (sentence, rank) in enumerate(zip(sentences, ranks, strict=True)):
        text, gap = sentence.texts[rank] if sentence.texts else sentence.text, sentence.trailing_space
        is_last = position == len(sentences) - 1
        if text and not is_last and "\n" not in gap:
            gap = "" if UNSPACED_END.search(text) else gap or " "
        line += f"{text}{gap}"
    return line


def _punctuation_tokenizer(tokenizer: Tokenizer) -> PunctuationTokenizer | None:
    """Return how words and punctuation were separated in the training text; None if they were not."""
    if not tokenizer.tokenised or tokenizer.format == TREE:
        return None
    words = [token for token in tokenizer.vocab.tokens if token not in SPECIALS]
    if tokenizer.segmenter.kind not in ("word", "char"):  # subwords: those that start a word
        words = [token.removeprefix(SPACE_MARK) for token in words if token.startswith(SPACE_MARK)]
    return PunctuationTokenizer.from_vocabulary(words)
