"""Subwords learned from a text by SentencePiece: byte-pair encoding or a unigram model."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dragoman.core.errors import DataError
from dragoman.core.threads import available_cores
from dragoman.data.scanner import check_lines, split_words
from dragoman.data.vocabulary import SPECIALS

SPACE_MARK = "▁"  # U+2581, stands for a space in tokens smaller than words, as in SentencePiece
MODEL_FILE = "sentencepiece.model"
ALGORITHMS = {"subword": "bpe", "unigram": "unigram"}  # our names and SentencePiece's
MAX_TRAINING_LINES = 1_000_000  # of a longer text, this many lines are sampled evenly
MAX_LINE_BYTES = 1 << 20  # SentencePiece's default would skip lines of more than 4,192 bytes
UNKNOWN_PIECE = "no piece"  # has a space, so no text can contain it
PROBE = "ﬁ  ﬁ"  # changed by a model with a normalisation rule, or by one whose last part is missing
MIN_SIZE, MAX_SIZE = 200, 32_000

# SentencePiece gives two characters a meaning: ▁ (a space) and, in training, ▅ (an unknown character). These two and
# three characters of the private use area are escaped before SentencePiece sees them.
ESCAPE, REPLACEMENTS = "\ue580", {"▁": "\ue581", "▅": "\ue585"}
ESCAPED = {**REPLACEMENTS, **{character: ESCAPE + character for character in (ESCAPE, *REPLACEMENTS.values())}}
UNESCAPED = {escaped: character for character, escaped in ESCAPED.items()}
TO_ESCAPE = re.compile(f"[{''.join(ESCAPED)}]")
TO_RESTORE = re.compile(f"{ESCAPE}[{ESCAPE}{''.join(REPLACEMENTS.values())}]|[{''.join(REPLACEMENTS.values())}]")


@dataclass(frozen=True)
class SubwordSegmenter:
    """Splits words into pieces. The first piece of a word begins with ▁.

    `join(segment(line))` is the line with single spaces between its words. A character that the training text did not
    have becomes a piece of its own, which a vocabulary of pieces does not know but which is not lost. No piece is
    `<s>`, `</s>` or `<unk>`: such words in a text are split.
    """

    spec: str
    model: bytes = field(repr=False)  # the SentencePiece model file

    @property
    def kind(self) -> str:
        return self.spec.partition(":")[0]

    @property
    def size(self) -> int:
        """Number of pieces, including the unknown piece."""
        size: int = self._processor.get_piece_size()
        return size

    @property
    def pieces(self) -> list[str]:
        """All pieces except the unknown piece.

        A vocabulary should contain all of them: some (rare letters, a space before an unknown character) are needed to
        segment new words but occur in the training text only as parts of larger pieces.
        """
        names = [self._processor.id_to_piece(index) for index in range(1, self.size)]  # 0 is the unknown piece
        return list(dict.fromkeys(_split_specials(names)))

    def validate(self) -> None:
        """Load the model, and raise an error if it is damaged."""
        _ = self._processor

    @cached_property
    def _processor(self) -> Any:
        from sentencepiece import SentencePieceProcessor

        processor = SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(self.model)
            valid = "".join(processor.encode(PROBE, out_type=str)) == SPACE_MARK + PROBE.replace(" ", SPACE_MARK)
        except (RuntimeError, ValueError):
            valid = False
        if not valid:
            raise DataError(f"{MODEL_FILE}: damaged, or not created by dragoman; train the subwords again")
        return processor

    def segment(self, line: str) -> list[str]:
        return self.segment_all([line])[0]

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        segmented = self._processor.encode(_escape_lines(lines), out_type=str, num_threads=available_cores())
        return [_split_specials(pieces) for pieces in segmented]

    def join(self, tokens: Sequence[str]) -> str:
        text = " ".join(split_words("".join(tokens).replace(SPACE_MARK, " ")))
        return TO_RESTORE.sub(lambda match: UNESCAPED[match[0]], text)

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        return assign_word_indices((token.startswith(SPACE_MARK), token.strip(SPACE_MARK) != "") for token in tokens)

    def files(self) -> Mapping[str, bytes]:
        return {MODEL_FILE: self.model}


def assign_word_indices(tokens: Iterable[tuple[bool, bool]]) -> list[int]:
    """Return the index of the word (from 0) that each token belongs to.

    Each token is given as (starts with a space, contains other characters). A token that is only a space belongs to
    the next word, or to the last word if there is none. All tokens of a line without words have index 0.

    >>> assign_word_indices([(True, True), (False, True), (True, False), (False, True), (True, False)])
    [0, 0, 1, 1, 1]
    """
    indices, words, inside = [], 0, False
    for starts_with_space, has_text in tokens:
        inside = inside and not starts_with_space
        if has_text and not inside:
            words, inside = words + 1, True
        indices.append(words - 1 if inside else words)
    return [min(index, max(words - 1, 0)) for index in indices]


def train_subwords(kind: str, size: int, lines: Sequence[str]) -> SubwordSegmenter:
    """Learn `size` subwords from a text, or fewer if the text does not have as many. The result is deterministic."""
    spec, text = f"{kind}:{size}", [line for line in _escape_lines(lines) if line]
    _check_size(spec, size, text)
    model = _train_model(ALGORITHMS[kind], size, text[:: max(1, len(text) // MAX_TRAINING_LINES)], spec)
    segmenter = SubwordSegmenter(spec, model)
    if segmenter.size < size:
        warnings.warn(f"{spec}: the text gives only {segmenter.size} subwords, all are used", stacklevel=3)
    return segmenter


def recommended_size(sentences: int, types: int | None = None) -> int:
    """Return how many subwords to learn from a text of this many sentences and, if known, distinct words.

    The vectors of a subword are learned from its occurrences. A small text needs few subwords that occur often. A large
    text can have many, so that sentences are short and frequent words are not split. The rule of thumb is 2,000
    subwords for 10,000 sentences, growing with the power 0.65 of the number of sentences. More than 32,000 only make
    the softmax slow. More subwords than distinct words would leave nothing to share between words.

    >>> [recommended_size(sentences) for sentences in (500, 10_000, 29_000, 165_000, 10_000_000)]
    [300, 2000, 4000, 12400, 32000]
    >>> recommended_size(10_000, types=700)
    700
    """
    size = round(2_000 * (sentences / 10_000) ** 0.65, -2)
    return int(max(MIN_SIZE, min(size, MAX_SIZE, types or MAX_SIZE)))


def minimum_size(lines: Iterable[str]) -> int:
    """Return the smallest possible number of subwords: one per character, the space and the unknown piece."""
    return len(set[str]().union(*lines) | {" "}) + 1


def _escape_lines(lines: Iterable[str]) -> list[str]:
    """Return lines with single spaces and without characters that SentencePiece would interpret."""
    checked = list(lines)
    check_lines(checked)
    return [TO_ESCAPE.sub(lambda match: ESCAPED[match[0]], " ".join(split_words(line))) for line in checked]


def _split_specials(pieces: list[str]) -> list[str]:
    """Split pieces that are `<s>`, `</s>` or `<unk>` into characters."""
    if not any(special in pieces for special in SPECIALS):
        return pieces
    return [part for piece in pieces for part in (piece if piece in SPECIALS else (piece,))]


def _check_size(spec: str, size: int, text: Sequence[str]) -> None:
    if not text:
        raise DataError(f"{spec}: the text has no words to learn from; give a text with one sentence per line")
    minimum = minimum_size(text)
    if size < minimum:
        kind = spec.partition(":")[0]
        remedy = f"use {kind}:{2 * minimum} or more, or units char"
        raise DataError(f"{spec}: the text needs at least {minimum} pieces, one per character; {remedy}")


def _train_model(algorithm: str, size: int, text: Sequence[str], spec: str) -> bytes:
    """Train a SentencePiece model and return its file."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(text),
            model_writer=model,
            model_type=algorithm,
            vocab_size=size,
            hard_vocab_limit=False,  # fewer pieces if the text does not have as many
            character_coverage=1.0,
            normalization_rule_name="identity",  # keep capitals, accents and punctuation
            remove_extra_whitespaces=False,
            add_dummy_prefix=True,  # the first word of a line is segmented like any other
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            unk_piece=UNKNOWN_PIECE,
            max_sentence_length=MAX_LINE_BYTES,
            num_threads=1,  # the same order of summation every time
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{spec}: no subwords can be learned from this text ({reason}); try units char") from None
    return model.getvalue()
