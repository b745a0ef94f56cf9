"""Translating equal lines once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.core.bounded_cache import BoundedCache
from dragoman.data.formats import NumberedLine
from dragoman.io.output_formats import TranslatedLine
from dragoman.models.line_translation import LineTranslator
from dragoman.models.text_pipeline import TranslatedSentence
from dragoman.models.translation import Translation

CACHE_BYTES = 256 << 20  # of translations of earlier lines, about
DEDUP_BATCH_LINES = 4096  # read at a time, so that enough of them are translated together
OBJECT_BYTES = 500  # of a translation without its text, tokens and attention, about
TOKEN_BYTES = 8  # of a reference to a token
NODE_BYTES = 200  # of a node of a lattice


class DuplicateTranslator:
    """Translates lines that are equal to an earlier line by its translation."""

    def __init__(self, translator: LineTranslator, *, keep_details: bool = True, cache_bytes: int = CACHE_BYTES):
        """
        Args:
            translator: translates lines that are new.
            keep_details: keep tokens, sentences and attention, which some output formats write.
            cache_bytes: about how much is kept of earlier lines.
        """
        self.translator, self.pipeline, self.max_tokens = translator, translator.pipeline, translator.max_tokens
        self.keep_details = keep_details
        self.lines = self.translated_lines = 0  # so far
        self._cache = BoundedCache[str, TranslatedLine](cache_bytes, lambda text, line: _size(line))

    def translate(
        self, lines: Sequence[NumberedLine], sentences: Sequence[Sequence[TranslatedSentence]]
    ) -> list[TranslatedLine]:
        """Return the translations of lines, whose sentences are given."""
        known, new = dict[str, TranslatedLine](), dict[str, int]()  # by text; the first line with a new text
        for index, line in enumerate(lines):
            if line.text in known or line.text in new:
                continue
            earlier = self._cache.get(line.text)
            if earlier is None:
                new[line.text] = index
            else:
                known[line.text] = earlier
        translated = self.translator.translate(
            [lines[index] for index in new.values()], [sentences[index] for index in new.values()]
        )
        for result in translated:
            known[result.source] = result if self.keep_details else _without_details(result)
            self._cache.add(result.source, known[result.source])
        self.lines += len(lines)
        self.translated_lines += len(new)
        return [replace(known[line.text], number=line.number) for line in lines]

    def summary(self) -> str:
        """Return a message about how many lines were translated."""
        repeated = self.lines - self.translated_lines
        return f"{self.lines:,} lines, {repeated:,} of them equal to an earlier one and not translated again"


def _without_details(line: TranslatedLine) -> TranslatedLine:
    """Return the translations of a line with their texts and scores only."""
    translations = [
        Translation(item.text, (), item.log_prob, item.score, (), item.finished) for item in line.translations
    ]
    return TranslatedLine(line.number, line.source, translations, ())


def _size(line: TranslatedLine) -> int:
    """Return about how many bytes a line and its translations take."""
    parts = [item for sentence in line.sentences for item in sentence.translations]
    nodes = sum(len(sentence.lattice) for sentence in line.sentences)
    return len(line.source) + NODE_BYTES * nodes + sum(map(_translation_size, [*line.translations, *parts]))


def _translation_size(item: Translation) -> int:
    attention = 0 if item.attention is None else item.attention.nbytes
    return OBJECT_BYTES + len(item.text) + TOKEN_BYTES * (len(item.tokens) + len(item.source_tokens)) + attention
