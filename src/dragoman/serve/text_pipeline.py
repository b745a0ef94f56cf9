"""Printed text in, printed text out, by a translator that may know words cut from punctuation alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.align.unknown_words import COPIED, UnknownReplacer
from dragoman.data.detokenize import PunctuationTokenizer, split_sentences
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.vocabulary import SPECIALS
from dragoman.data.words import SPACE_MARK
from dragoman.models.translation import BaseTranslator, Translation


@dataclass(frozen=True)
class TranslatedSentence:
    """A sentence of a text, and its translations, the best first."""

    text: str
    gap: str  # the space that comes after it
    tokenized: str  # as the translator reads it
    translations: list[Translation] = field(default_factory=list)
    detokenized: list[str] = field(default_factory=list)


class TextPipeline:
    """A translator that is given texts as people write them."""

    def __init__(self, model: BaseTranslator, unknowns: UnknownReplacer | None = None):
        self.model = model
        self.reads, self.writes = _spelling(model.source), _spelling(model.target)
        self.unknowns = (unknowns or UnknownReplacer()) if _replaceable(model) else None

    def tokenize(self, sentence: str) -> str:
        """A sentence as the translator reads it."""
        return sentence if self.reads is None else self.reads.tokenize(sentence)

    def tokenize_target(self, translation: str) -> str:
        """A translation as the translator would write it."""
        return translation if self.writes is None else self.writes.tokenize(translation)

    def split(self, text: str) -> list[TranslatedSentence]:
        """A text in sentences; those for a translator of trees are whole lines."""
        if self.model.source.format == TREE:
            *lines, last = text.split("\n")
            return [*(TranslatedSentence(line, "\n", line) for line in lines), TranslatedSentence(last, "", last)]
        return [TranslatedSentence(one, gap, self.tokenize(one)) for one, gap in split_sentences(text)]

    def translate(self, parts: Sequence[TranslatedSentence], n: int, beam: int, **how: Any) -> list[TranslatedSentence]:
        """The n best translations of some sentences, of whatever texts."""
        found = self.model.n_best([one.tokenized for one in parts], n, beam, unknown_replacer=self.unknowns, **how)
        return [
            TranslatedSentence(
                one.text, one.gap, one.tokenized, best, [self.detokenize_translation(told, one.text) for told in best]
            )
            for one, best in zip(parts, found, strict=True)
        ]

    def detokenize_translation(self, told: Translation, source: str) -> str:
        """A translation as it would be printed."""
        names = {word.lower(): word for word in (self.reads.tokenize(source).split() if self.reads else [])}
        names |= {_bare(word).lower(): _bare(word) for word in source.split()}
        copied = {
            one.place: names[one.source] for one in told.replacements if one.rule == COPIED and one.source in names
        }
        return self.detokenize(told.text, source, copied)

    def detokenize(self, translation: str, source: str, names: Mapping[int, str] | None = None) -> str:
        """What the translator wrote, as it would be printed.  # names: how the words of some places are spelled"""
        return translation if self.writes is None else self.writes.detokenize(translation, source, names)


def join_sentences(parts: Sequence[TranslatedSentence], choice: int = 0) -> str:
    """A text from the translations of its sentences: of each the best, or the one of this number if it has so many."""
    return "".join(
        f"{one.detokenized[min(choice, len(one.detokenized) - 1)]}{one.gap}"
        if one.detokenized
        else f"{one.text}{one.gap}"
        for one in parts
    )


def _bare(word: str) -> str:
    return word.strip("\"'“”„‘’«»()[]{}.,;:!?")


def _spelling(side: Tokenizer) -> PunctuationTokenizer | None:
    """How words are written by a side that learned them cut from punctuation; none if it takes text as it is."""
    if not side.tokenised or side.format == TREE:
        return None
    known = [word for word in side.vocab.tokens if word not in SPECIALS]
    if side.segmenter.kind not in ("word", "char"):  # pieces: those that begin a word
        known = [piece.removeprefix(SPACE_MARK) for piece in known if piece.startswith(SPACE_MARK)]
    return PunctuationTokenizer.from_vocabulary(known)


def _attends(model: Any) -> bool:
    """Whether a translator, or some member of an ensemble, looks at words."""
    members = getattr(model, "members", ())
    if members and not callable(members):
        return any(map(_attends, members))
    return getattr(getattr(model, "settings", None), "attention", "none") != "none"


def _replaceable(model: BaseTranslator) -> bool:
    """Whether unknown words can be replaced by those that were looked at."""
    return (
        _attends(model)
        and model.target.segmenter.kind == "word" == model.source.segmenter.kind
        and model.source.format != TREE
    )
