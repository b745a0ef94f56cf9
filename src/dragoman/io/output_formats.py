"""Output formats of translations, one writer class each. Every writer writes one record per source line and flushes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from dragoman.evaluation.alignment import to_pharaoh
from dragoman.evaluation.results import to_json

if TYPE_CHECKING:
    from dragoman.models.text_pipeline import TranslatedSentence
    from dragoman.models.translation import AttentionMatrix, Translation
    from dragoman.search.hypothesis import LatticeNode

ATTENTION_DIGITS = 4  # in JSON
NO_SINGLE_SEARCH = "(blank, or translated in pieces: no single search to show)"


@dataclass(frozen=True, eq=False)
class TranslatedLine:
    """A source line with its translations, the best or the first sample first."""

    number: int  # counted from 1
    source: str
    translations: Sequence[Translation]
    sentences: Sequence[TranslatedSentence]  # the parts of the line that were translated one by one


class TranslationWriter(ABC):
    """Writes the record of each line in one format, followed by a line break."""

    def __init__(self, file: TextIO):
        self.file = file

    def write(self, lines: Iterable[TranslatedLine]) -> None:
        self.file.writelines(f"{self.format(line)}\n" for line in lines)
        self.file.flush()

    @abstractmethod
    def format(self, line: TranslatedLine) -> str:
        """Return the record of a line."""


class TextWriter(TranslationWriter):
    """The text of the best translation."""

    def format(self, line: TranslatedLine) -> str:
        return line.translations[0].text


class MosesNBestWriter(TranslationWriter):
    """N-best lists in the format of Moses; lines are counted from 0."""

    def format(self, line: TranslatedLine) -> str:
        return "\n".join(moses_line(line.number - 1, translation) for translation in line.translations)


def moses_line(index: int, translation: Translation) -> str:
    """Return one line of an n-best list in the format of Moses.

    >>> from dragoman.models.translation import Translation
    >>> moses_line(0, Translation("a dog", ("a", "dog"), -1.5, -0.5, ("ein", "hund")))
    '0 ||| a dog ||| LogProb= -1.5 ||| -0.5'
    """
    return f"{index} ||| {translation.text} ||| LogProb= {translation.log_prob:.7g} ||| {translation.score:.7g}"


class _AttentionWriter(TranslationWriter):
    def __init__(self, file: TextIO, attention: Callable[[Translation], AttentionMatrix | None]):
        """`attention` returns None for a translation without attention."""
        super().__init__(file)
        self.attention = attention


class JsonLinesWriter(_AttentionWriter):
    """One JSON object per line: source, best translation, n-best list, attention and sentences.

    Each sentence has its translation and attention. That of the line is null unless it is one sentence, and that of a
    sentence that is copied is null: it was not searched for, and its scores are 0.
    """

    def format(self, line: TranslatedLine) -> str:
        n_best = [_translation_record(translation, translation.text) for translation in line.translations]
        sentences = [self._sentence_record(sentence) for sentence in line.sentences]
        attention = sentences[0]["attention"] if len(sentences) == 1 else None
        parts = {"n_best": n_best, "attention": attention, "sentences": sentences}
        return json.dumps({"source": line.source, **n_best[0], **parts}, ensure_ascii=False, allow_nan=False)

    def _sentence_record(self, sentence: TranslatedSentence) -> dict[str, object]:
        attention, weights = self.attention(sentence.translations[0]), None
        if attention is not None:
            matrix = attention.matrix.round(ATTENTION_DIGITS).tolist()
            weights = {"target": attention.target, "source": attention.source, "weights": matrix}
        record = _translation_record(sentence.translations[0], sentence.texts[0])
        return {"source": sentence.text, **record, "attention": weights}


def _translation_record(translation: Translation, text: str) -> dict[str, object]:
    scores = {"log_prob": to_json(translation.log_prob), "score": to_json(translation.score)}
    record: dict[str, object] = {"translation": text, **scores, "finished": translation.finished}
    replaced = [replacement.as_dict() for replacement in translation.replacements]
    return {**record, "replaced": replaced} if replaced else record


class PharaohWriter(_AttentionWriter):
    """Word alignments by attention, as `source-target` pairs counted from 0; empty for lines without attention.

    Words are counted through all sentences of a line, as the translator reads and writes them.
    """

    def format(self, line: TranslatedLine) -> str:
        links, source_words, target_words = list[tuple[int, int]](), 0, 0
        for sentence in line.sentences:
            translation = sentence.translations[0]
            attention = self.attention(translation)
            if attention is None:  # the numbers of the words after it are unknown
                break
            pairs = attention.links(finished=translation.finished)
            links += [(source + source_words, target + target_words) for source, target in pairs]
            source_words += len(attention.source) - 1  # without `</s>`
            target_words += len(attention.target) - translation.finished
        return to_pharaoh(links)


class LatticeWriter(TranslationWriter):
    """The hypotheses of each search, as JSON lines or as text: one record per sentence of a line."""

    def __init__(
        self, file: TextIO, tokens: Sequence[str], render: Callable[[Sequence[LatticeNode]], str] | None = None
    ):
        """`tokens` are those of the target vocabulary. `render` draws nodes as text; without it, JSON is written."""
        super().__init__(file)
        self.tokens, self.render = tokens, render

    def format(self, line: TranslatedLine) -> str:
        return "\n".join(self._format_sentence(line.number, sentence) for sentence in line.sentences)

    def _format_sentence(self, number: int, sentence: TranslatedSentence) -> str:
        if self.render is not None:
            drawing = self.render(sentence.lattice) if sentence.lattice else NO_SINGLE_SEARCH
            return f"line {number}: {sentence.text}\n\n{drawing}\n"
        nodes = [self._node_record(node) for node in sentence.lattice]
        record = {"line": number, "source": sentence.text, "translation": sentence.texts[0], "nodes": nodes}
        return json.dumps(record, ensure_ascii=False)

    def _node_record(self, node: LatticeNode) -> dict[str, object]:
        parent = {"id": node.id, "parent": node.parent, "word": self.tokens[node.token]}
        return {**parent, "log_prob": node.log_prob, "score": node.score, "fate": node.fate}
