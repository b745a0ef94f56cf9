"""From plain text to plain text with a translator: sentence splitting, tokenisation, detokenisation, HTML markup."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dragoman.align.unknown_words import COPIED, UnknownReplacer
from dragoman.core.defaults import DEFAULT_LENGTH
from dragoman.data.detokenize import PunctuationTokenizer, split_sentences
from dragoman.data.subwords import SPACE_MARK
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.vocabulary import SPECIALS
from dragoman.models.translation import BaseTranslator, Translation

PUNCTUATION = "\"'“”„‘’«»()[]{}.,;:!?"


@dataclass(frozen=True)
class TranslatedSentence:
    """A sentence of a text, and its translations, best first."""

    text: str
    gap: str  # white space after the sentence
    tokenized: str  # the sentence as the translator reads it
    translations: list[Translation] = field(default_factory=list)
    detokenized: list[str] = field(default_factory=list)  # the translations as plain text


class TextPipeline:
    """A translator of plain text, also if its training text was tokenised or lowercased."""

    def __init__(self, model: BaseTranslator, replacer: UnknownReplacer | None = None):
        self.model = model
        self.source_tokenizer = _punctuation_tokenizer(model.source)
        self.target_tokenizer = _punctuation_tokenizer(model.target)
        self.replacer = (replacer or UnknownReplacer()) if _can_replace_unknown(model) else None

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
        self,
        sentences: Sequence[TranslatedSentence],
        n: int,
        beam: int,
        *,
        length: str = DEFAULT_LENGTH,
        coverage: float = 0.0,
        prefix: Sequence[str] = (),
        on_step: Callable[[], None] | None = None,
    ) -> list[TranslatedSentence]:
        """Return the sentences with their n best translations; for the options see `BaseTranslator.n_best`."""
        lines = [sentence.tokenized for sentence in sentences]
        n_best = self.model.n_best(
            lines,
            n,
            beam,
            length=length,
            coverage=coverage,
            prefix=prefix,
            unknown_replacer=self.replacer,
            on_step=on_step,
        )
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
        """Return a tokenised translation as plain text.

        Args:
            spellings: how the words at some positions are written.
        """
        if self.target_tokenizer is None:
            return translation
        return self.target_tokenizer.detokenize(translation, source, spellings)


def join_sentences(sentences: Sequence[TranslatedSentence], rank: int = 0) -> str:
    """Return a text from the translations of this rank; from the last one where a sentence has fewer."""
    return "".join(
        f"{sentence.detokenized[min(rank, len(sentence.detokenized) - 1)] if sentence.detokenized else sentence.text}"
        f"{sentence.gap}"
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


def _can_replace_unknown(model: BaseTranslator) -> bool:
    """Return whether unknown words can be replaced by source words with the most attention."""
    kinds = {model.source.segmenter.kind, model.target.segmenter.kind}
    return model.has_attention and kinds == {"word"} and model.source.format != TREE


# -- HTML --------------------------------------------------------------------------------------------------------------

# A tag ends before the next `<` outside of quotes, so that a text with many `<` is read in linear time.
ATTRIBUTES = r"""(?:"[^"]*"|'[^']*'|[^'"<>])*"""
UNTRANSLATED = rf"<(script|style|code|pre)\b{ATTRIBUTES}>.*?(?:</\1\s*>|\Z)"  # elements that are copied as a whole
TAG = rf"</?[a-zA-Z]{ATTRIBUTES}>"
COMMENTS = r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^<>]*>"
MARKUP = re.compile(f"{UNTRANSLATED}|{COMMENTS}|{TAG}", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class MarkedUpText:
    """A text in parts: markup, which stays as it is, and texts to translate."""

    parts: list[str]
    text_indices: list[int]  # which parts are texts

    @property
    def texts(self) -> list[str]:
        return [self.parts[index] for index in self.text_indices]

    def replace_texts(self, translations: list[str]) -> str:
        """Return the markup with other texts, escaped as HTML."""
        replaced = dict(zip(self.text_indices, translations, strict=True))
        return "".join(
            html.escape(replaced[index], quote=False) if index in replaced else part
            for index, part in enumerate(self.parts)
        )


def parse_markup(text: str) -> MarkedUpText:
    """Separate HTML markup from text.

    >>> parse_markup("<p>Guten <b>Tag</b> &amp; so</p>").texts
    ['Guten ', 'Tag', ' & so']
    """
    parts, text_indices, start = list[str](), list[int](), 0
    for match in [*MARKUP.finditer(text), None]:
        between = text[start : len(text) if match is None else match.start()]
        words = html.unescape(between)
        if any(map(str.isalnum, words)):  # more than spaces and punctuation
            text_indices.append(len(parts))
            parts.append(words)
        else:
            parts.append(between)
        if match is not None:
            parts.append(match[0])
            start = match.end()
    return MarkedUpText(parts, text_indices)
