"""From plain text to plain text with a translator: sentence splitting, tokenisation, detokenisation, HTML markup."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from dragoman.align.unknown_words import COPIED, UnknownReplacer
from dragoman.core.defaults import DEFAULT_BEAM_SIZE, DEFAULT_LENGTH
from dragoman.data.detokenize import PunctuationTokenizer, split_sentences
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.vocabulary import SPECIALS
from dragoman.models.translation import BaseTranslator, Translation

PUNCTUATION = "\"'“”„‘’«»()[]{}.,;:!?"


@dataclass(frozen=True)
class TranslatedSentence:
    """A sentence of a text, and its translations, best first."""

    text: str
    trailing_space: str  # white space after the sentence
    tokenized: str  # the sentence as the translator reads it
    translations: list[Translation] = field(default_factory=list)
    detokenized: list[str] = field(default_factory=list)  # the translations as plain text


class TranslationOptions(NamedTuple):
    """Options of a translation, see `BaseTranslator.n_best`."""

    n: int = 1
    beam_size: int = DEFAULT_BEAM_SIZE
    length: str = DEFAULT_LENGTH
    coverage: float = 0.0
    prefix: tuple[str, ...] = ()


class TextPipeline:
    """A translator of plain text, also if its training text was tokenised or lowercased."""

    def __init__(self, model: BaseTranslator, replacer: UnknownReplacer | None = None):
        self.model = model
        self.source_tokenizer = _punctuation_tokenizer(model.source)
        self.target_tokenizer = _punctuation_tokenizer(model.target)
        kinds = {model.source.segmenter.kind, model.target.segmenter.kind}
        can_replace = model.has_attention and kinds == {"word"} and model.source.format != TREE
        self.replacer = (replacer or UnknownReplacer()) if can_replace else None

    def tokenize(self, sentence: str) -> str:
        """Return a source sentence as the translator reads it."""
        return sentence if self.source_tokenizer is None else self.source_tokenizer.tokenize(sentence)

    def tokenize_target(self, sentence: str) -> str:
        """Return a target sentence as the translator would write it."""
        return sentence if self.target_tokenizer is None else self.target_tokenizer.tokenize(sentence)

    def split(self, text: str) -> list[TranslatedSentence]:
        """Split a text into sentences; into lines, if the translator reads trees."""
        if self.model.source.format == TREE:
            *lines, last = text.split("\n")
            return [*(TranslatedSentence(line, "\n", line) for line in lines), TranslatedSentence(last, "", last)]
        return [TranslatedSentence(sentence, gap, self.tokenize(sentence)) for sentence, gap in split_sentences(text)]

    def translate(
        self, sentences: Sequence[TranslatedSentence], options: TranslationOptions, on_step: Callable[[], None]
    ) -> list[TranslatedSentence]:
        """Return the sentences with their n best translations. `on_step` is called at every step of the search."""
        lines = [sentence.tokenized for sentence in sentences]
        n_best = self.model.n_best(lines, **options._asdict(), unknown_replacer=self.replacer, on_step=on_step)
        return [
            replace(
                sentence,
                translations=translations,
                detokenized=[self.detokenize_translation(translation, sentence.text) for translation in translations],
            )
            for sentence, translations in zip(sentences, n_best, strict=True)
        ]

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


def join_sentences(sentences: Sequence[TranslatedSentence], rank: int = 0) -> str:
    """Return a text from the translations of this rank; from the last one where a sentence has fewer."""
    return "".join(
        f"{sentence.detokenized[min(rank, len(sentence.detokenized) - 1)] if sentence.detokenized else sentence.text}"
        f"{sentence.trailing_space}"
        for sentence in sentences
    )


def _punctuation_tokenizer(tokenizer: Tokenizer) -> PunctuationTokenizer | None:
    """Return how words and punctuation were separated in the training text; None if they were not."""
    if not tokenizer.tokenised or tokenizer.format == TREE:
        return None
    words = [token for token in tokenizer.vocab.tokens if token not in SPECIALS]
    if tokenizer.segmenter.kind not in ("word", "char"):  # subwords: those that start a word
        words = [token.removeprefix(SPACE_MARK) for token in words if token.startswith(SPACE_MARK)]
    return PunctuationTokenizer.from_vocabulary(words)


# A tag ends before the next `<` outside of quotes, so that a text with many `<` is read in linear time.
ATTRIBUTES = r"""(?:"[^"]*"|'[^']*'|[^'"<>])*"""
UNTRANSLATED = rf"<(script|style|code|pre)\b{ATTRIBUTES}>.*?(?:</\1\s*>|\Z)"  # elements that are copied as a whole
TAG = rf"</?[a-zA-Z]{ATTRIBUTES}>"
COMMENTS = r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^<>]*>"
MARKUP = re.compile(f"{UNTRANSLATED}|{COMMENTS}|{TAG}", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class MarkedUpText:
    """Texts to translate, and the markup around them, which stays as it is."""

    texts: list[str]
    markup: list[str]  # before each text and after the last one

    def replace_texts(self, translations: list[str]) -> str:
        """Return the markup with other texts, escaped as HTML."""
        escaped = [html.escape(translation, quote=False) for translation in translations]
        return "".join(chain.from_iterable(zip(self.markup, [*escaped, ""], strict=True)))


def parse_markup(text: str) -> MarkedUpText:
    """Separate HTML markup from text.

    >>> parse_markup("<p>Guten <b>Tag</b> &amp; so</p>").texts
    ['Guten ', 'Tag', ' & so']
    """
    texts, markup, start, position = list[str](), list[str](), 0, 0
    for match in [*MARKUP.finditer(text), None]:
        begin, end = (len(text), len(text)) if match is None else match.span()
        words = html.unescape(text[position:begin])
        if any(map(str.isalnum, words)):  # more than spaces and punctuation
            texts.append(words)
            markup.append(text[start:position])
            start = begin
        position = end
    return MarkedUpText(texts, [*markup, text[start:]])
