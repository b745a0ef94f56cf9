"""Printed text in, printed text out, by a translator that may know words cut from punctuation alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.align.unknown_words import COPIED, Unknowns
from dragoman.data.detokenize import Spelling, sentences
from dragoman.data.tokenizer import TREE, Side
from dragoman.data.vocabulary import SPECIALS
from dragoman.data.whitespace import MARK
from dragoman.models.translation import Translated, Translating


@dataclass(frozen=True)
class Sentence:
    """A sentence of a text, and its translations, the best first."""

    text: str
    gap: str  # the space that comes after it
    line: str  # as the translator reads it
    found: list[Translated] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)


class Interpreter:
    """A translator that is given texts as people write them."""

    def __init__(self, model: Translating, unknowns: Unknowns | None = None):
        self.model = model
        self.reads, self.writes = _spelling(model.source), _spelling(model.target)
        self.unknowns = (unknowns or Unknowns()) if _replaceable(model) else None

    def line(self, sentence: str) -> str:
        """A sentence as the translator reads it."""
        return sentence if self.reads is None else self.reads.words(sentence)

    def written(self, translation: str) -> str:
        """A translation as the translator would write it."""
        return translation if self.writes is None else self.writes.words(translation)

    def parted(self, text: str) -> list[Sentence]:
        """A text in sentences; those for a translator of trees are whole lines."""
        if self.model.source.format == TREE:
            *lines, last = text.split("\n")
            return [*(Sentence(line, "\n", line) for line in lines), Sentence(last, "", last)]
        return [Sentence(one, gap, self.line(one)) for one, gap in sentences(text)]

    def translate(self, parts: Sequence[Sentence], n: int, beam: int, **how: Any) -> list[Sentence]:
        """The n best translations of some sentences, of whatever texts."""
        found = self.model.n_best([one.line for one in parts], n, beam, unknowns=self.unknowns, **how)
        return [
            Sentence(one.text, one.gap, one.line, best, [self.print(told, one.text) for told in best])
            for one, best in zip(parts, found, strict=True)
        ]

    def print(self, told: Translated, source: str) -> str:
        """A translation as it would be printed."""
        names = {word.lower(): word for word in (self.reads.words(source).split() if self.reads else [])}
        names |= {_bare(word).lower(): _bare(word) for word in source.split()}
        copied = {one.place: names[one.source] for one in told.replaced if one.rule == COPIED and one.source in names}
        return self.printed(told.text, source, copied)

    def printed(self, translation: str, source: str, names: Mapping[int, str] | None = None) -> str:
        """What the translator wrote, as it would be printed.  # names: how the words of some places are spelled"""
        return translation if self.writes is None else self.writes.printed(translation, source, names)


def whole(parts: Sequence[Sentence], choice: int = 0) -> str:
    """A text from the translations of its sentences: of each the best, or the one of this number if it has so many."""
    return "".join(
        f"{one.printed[min(choice, len(one.printed) - 1)]}{one.gap}" if one.printed else f"{one.text}{one.gap}"
        for one in parts
    )


def _bare(word: str) -> str:
    return word.strip("\"'“”„‘’«»()[]{}.,;:!?")


def _spelling(side: Side) -> Spelling | None:
    """How words are written by a side that learned them cut from punctuation; none if it takes text as it is."""
    if not side.tokenised or side.format == TREE:
        return None
    known = [word for word in side.vocab.words if word not in SPECIALS]
    if side.units.kind not in ("word", "char"):  # pieces: those that begin a word
        known = [piece.removeprefix(MARK) for piece in known if piece.startswith(MARK)]
    return Spelling.of(known)


def _attends(model: Any) -> bool:
    """Whether a translator, or some member of an ensemble, looks at words."""
    members = getattr(model, "members", ())
    if members and not callable(members):
        return any(map(_attends, members))
    return getattr(getattr(model, "settings", None), "attention", "none") != "none"


def _replaceable(model: Translating) -> bool:
    """Whether unknown words can be replaced by those that were looked at."""
    return (
        _attends(model) and model.target.units.kind == "word" == model.source.units.kind and model.source.format != TREE
    )
