"""Translation of documents: segments are translated as a whole, and their markup is put back by attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from dragoman.data.document_formats import DocumentFile
from dragoman.data.inline_markup import Part, PlainText, Rendering, TextSegment, plain_text
from dragoman.data.markup_projection import (
    Span,
    UnitAlignment,
    break_at_marks,
    connected,
    diagonal_weights,
    prefer_equal_units,
    project,
    shown_spans,
    split_units,
)
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.xml_files import ILLEGAL
from dragoman.models.text_pipeline import TranslatedSentence, join_sentences
from dragoman.models.translation import Translation

TIE_WEIGHT = 1e-6  # of relative positions, by which one of several units of a token is chosen
MAX_COMPARISONS = 4_000_000  # of the characters of a text with those of its tokens
Sentences = list[list[TranslatedSentence]]  # of each text
Translated = list[list[Part] | None]  # the parts of each segment; None: as they were


def translate_document(file: DocumentFile, translate_texts: Callable[[list[str]], Sentences]) -> Rendering:
    """Return a document with its text translated, and everything else as it was.

    Args:
        translate_texts: for example `TextPipeline.translate_texts`.
    """
    job = SegmentTranslation(file.document.segments)
    while job.texts:
        job.add(translate_texts(job.texts))
    rendering = file.document.render(job.results[0])
    return Rendering(file.prefix + rendering.text, rendering.unchanged)


class SegmentTranslation:
    """Translates segments, in one or two rounds: give the translations of `texts` to `add` until there are no texts.

    Placeholders are part of the texts of the first round. Where a translation does not have all of them, the segment is
    translated again without them, and they are put back like tags.
    """

    def __init__(self, segments: Sequence[TextSegment], ranks: int = 1):
        """
        Args:
            ranks: how many translations to make of each segment.
        """
        self.segments = segments
        self.results: list[Translated] = [[None] * len(segments) for _ in range(ranks)]  # by rank, best first
        self._pending = {index: set(range(ranks)) for index in range(len(segments))}  # ranks that are not translated
        self._shows = True
        self._plain = [plain_text(segment.parts, show=True) for segment in segments]

    @property
    def texts(self) -> list[str]:
        """The texts to translate next."""
        return [plain.text for plain in self._plain]

    def add(self, sentences: Sentences) -> None:
        """Add the translated sentences of each text."""
        incomplete: dict[int, set[int]] = {}
        for (index, ranks), plain, translated in zip(self._pending.items(), self._plain, sentences, strict=True):
            for rank in ranks:
                target = join_sentences(translated, rank)
                target = _clean(target if self._shows else plain.without_new_placeholders(target))
                if self._shows and not plain.is_complete(target):
                    incomplete.setdefault(index, set()).add(rank)
                elif target and target != plain.text:
                    self.results[rank][index] = _put_back(plain, target, translated, rank)
        self._pending, self._shows = incomplete, False
        self._plain = [plain_text(self.segments[index].parts, show=False) for index in incomplete]


def _clean(text: str) -> str:
    """Return a translation as one line without control characters."""
    return " ".join(ILLEGAL.sub("", text).split())


def _put_back(plain: PlainText, target: str, sentences: Sequence[TranslatedSentence], rank: int) -> list[Part]:
    if not plain.nodes:
        return project(plain, target, UnitAlignment([], [], np.zeros((0, 0))))
    source_units = split_units(plain.text, [(start, start + len(mark.shown)) for start, mark in plain.shown])
    target_units = split_units(target, [(start, end) for start, end, _ in shown_spans(plain, target)])
    translations = [s.translations[min(rank, len(s.translations) - 1)] for s in sentences if s.translations]
    source_units, target_units, pairs = break_at_marks(plain, target, source_units, target_units)
    weights = unit_weights(plain.text, source_units, target, target_units, translations)
    alignment = UnitAlignment(source_units, target_units, connected(weights, pairs))
    return project(plain, target, prefer_equal_units(alignment, plain.text, target))


def unit_weights(
    source: str,
    source_units: Sequence[Span],
    target: str,
    target_units: Sequence[Span],
    translations: Sequence[Translation],
) -> NDArray[np.float64]:
    """Return the attention between the words of a text and those of its translation, by relative position if none.

    Args:
        source, target: the texts.
        source_units, target_units: their words, as spans of characters.
        translations: of the sentences of the text, in order.  # returns (target units, source units)
    """
    reads = _token_shares(source, source_units, [token for item in translations for token in item.source_tokens]).T
    writes = _token_shares(target, target_units, [token for item in translations for token in item.tokens])
    weights = np.zeros((len(target_units), len(source_units)))
    row = column = 0
    for translation in translations:
        rows, columns = len(translation.tokens), len(translation.source_tokens)
        attention = translation.attention
        block = diagonal_weights(rows, columns) if attention is None else attention[:rows, :columns]
        weights += writes[:, row : row + rows] @ block @ reads[column : column + columns]
        row, column = row + rows, column + columns
    diagonal = diagonal_weights(len(target_units), len(source_units))
    return weights * (1.0 + TIE_WEIGHT * diagonal) if weights.any() else diagonal


def _token_shares(text: str, units: Sequence[Span], tokens: Sequence[str]) -> NDArray[np.float64]:
    """Return which share of each unit's characters comes from each token.  # (units, tokens)"""
    shares = np.zeros((len(units), len(tokens)))
    token_at = _tokens_of_characters(text, tokens)
    for index, (start, end) in enumerate(units):
        for position in range(start, end):
            if token_at[position] >= 0:
                shares[index, token_at[position]] += 1 / (end - start)
    return shares


def _tokens_of_characters(text: str, tokens: Sequence[str]) -> list[int]:
    """Return the token that each character of a text belongs to, -1 if none; capitals and spaces may differ.

    In a very long text whose characters are not those of the tokens, it is the token at the same relative position.

    >>> _tokens_of_characters("It's.", ["it", "'s", "."])
    [0, 0, 1, 1, 2]
    """
    letters = [
        (letter.lower(), index) for index, token in enumerate(tokens) for letter in token if letter != SPACE_MARK
    ]
    letters = [(letter, index) for letter, index in letters if not letter.isspace()]
    places = [position for position, letter in enumerate(text) if not letter.isspace()]
    token_at = [-1] * len(text)
    if len(letters) == len(places):
        for position, (_, index) in zip(places, letters, strict=True):
            token_at[position] = index
        return token_at
    if len(letters) * len(places) > MAX_COMPARISONS:
        for number, position in enumerate(places if letters else ()):
            token_at[position] = letters[number * len(letters) // len(places)][1]
        return token_at
    written = [text[position].lower() for position in places]
    matcher = SequenceMatcher(None, [letter for letter, _ in letters], written, autojunk=False)
    for first, second, size in matcher.get_matching_blocks():
        for offset in range(size):
            token_at[places[second + offset]] = letters[first + offset][1]
    return token_at
