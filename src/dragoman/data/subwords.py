"""Pieces of words learned from a text, by SentencePiece: byte-pair merges or a unigram model."""

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
from dragoman.data.vocabulary import SPECIALS
from dragoman.data.whitespace import SPACE_MARK, assign_word_indices, check_lines, split_words

MODEL_FILE = "sentencepiece.model"
ALGORITHMS = {"subword": "bpe", "unigram": "unigram"}  # our names and SentencePiece's
MAX_TRAINING_LINES = 1_000_000  # of a longer text, this many lines from all over it are learned from
MAX_LINE_BYTES = 1 << 20  # bytes; SentencePiece would skip lines of more than 4,192
UNKNOWN_PIECE = "no piece"  # SentencePiece's own unknown piece: no text can hold it, as its spaces are marks by then
PROBE = "ﬁ  ﬁ"  # a model without its last part, where it says to change nothing, or one of others, changes this
MIN_SIZE, MAX_SIZE = 200, 32_000

# Two signs mean something to SentencePiece: a space and, in training, an unknown character. They and three signs of
# the private area are written in other ways while it looks, so that they survive.
ESCAPE, TWIN = "\ue580", {"▁": "\ue581", "▅": "\ue585"}
ESCAPED = {**TWIN, **{sign: ESCAPE + sign for sign in (ESCAPE, *TWIN.values())}}
PLAIN = {written: sign for sign, written in ESCAPED.items()}
TO_ESCAPE = re.compile(f"[{''.join(ESCAPED)}]")
TO_RESTORE = re.compile(f"{ESCAPE}[{ESCAPE}{''.join(TWIN.values())}]|[{''.join(TWIN.values())}]")


@dataclass(frozen=True)
class SubwordSegmenter:
    """Pieces of words; the first piece of a word begins with ▁.

    `join(cut(line))` is the line with single spaces between its words: everything else comes back as it was. What the
    training text never had (a letter, a sign) is a piece as it stands, so it is unknown to a vocabulary of pieces and
    can still be read. No piece is `<s>`, `</s>` or `<unk>`: a text that holds these is cut inside them.
    """

    spec: str  # what was asked for
    model: bytes = field(repr=False)  # SentencePiece's own file

    @property
    def kind(self) -> str:
        return self.spec.partition(":")[0]

    @property
    def size(self) -> int:
        """How many pieces there are, one for all unknown ones among them."""
        return self._processor.get_piece_size()

    @property
    def pieces(self) -> list[str]:
        """All pieces that a line can be cut into, but for unknown ones.

        A vocabulary wants them all: a few (rare letters, a space before an unknown sign) are needed to cut new words
        though the training text, where they are parts of larger pieces, never has them by themselves.
        """
        named = [self._processor.id_to_piece(number) for number in range(1, self.size)]  # 0 is the unknown one
        return list(dict.fromkeys(_split_specials(named)))

    def validate(self) -> None:
        """Read the model now, so that a damaged one is found out."""
        _ = self._processor

    @cached_property
    def _processor(self) -> Any:
        from sentencepiece import SentencePieceProcessor

        processor = SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(self.model)
            whole = "".join(processor.encode(PROBE, out_type=str)) == SPACE_MARK + PROBE.replace(" ", SPACE_MARK)
        except (RuntimeError, ValueError):
            whole = False
        if not whole:
            raise DataError(f"{MODEL_FILE}: damaged, or not one that dragoman has learned; learn the units again")
        return processor

    def segment(self, line: str) -> list[str]:
        return self.segment_all([line])[0]

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        pieces = self._processor.encode(_escape_lines(lines), out_type=str, num_threads=available_cores())
        return [_split_specials(line) for line in pieces]

    def join(self, tokens: Sequence[str]) -> str:
        text = " ".join(split_words("".join(tokens).replace(SPACE_MARK, " ")))
        return TO_RESTORE.sub(lambda found: PLAIN[found[0]], text)

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        """The number of the word (from 0) that each piece belongs to."""
        return assign_word_indices((token.startswith(SPACE_MARK), token.strip(SPACE_MARK) != "") for token in tokens)

    def files(self) -> Mapping[str, bytes]:
        return {MODEL_FILE: self.model}


def train_subwords(kind: str, size: int, lines: Sequence[str]) -> SubwordSegmenter:
    """Learn `size` pieces from a text, or as many as there can be; the same text always gives the same pieces."""
    spec, text = f"{kind}:{size}", [line for line in _escape_lines(lines) if line]
    _check_size(spec, size, text)
    model = _train_model(ALGORITHMS[kind], size, text[:: max(1, len(text) // MAX_TRAINING_LINES)], spec)
    units = SubwordSegmenter(spec, model)
    if units.size < size:
        warnings.warn(f"{spec}: the text has no more than {units.size} pieces, so many were learned", stacklevel=3)
    return units


def recommended_size(sentences: int, types: int | None = None) -> int:
    """How many pieces to learn from a text of so many sentences, and of so many different words if that is known.

    Every piece has vectors of its own, which must be learned from its occurrences: a small text wants few pieces, each
    seen often, and a large one can afford many, so that sentences are short and frequent words are whole. 2,000 pieces
    for 10,000 sentences, and two thirds of an order of magnitude more for each order of magnitude of text, are a rule
    of thumb; more than 32,000 only make the softmax slow. With a piece for every different word there would be nothing
    left to share between words.

    >>> [recommended_size(sentences) for sentences in (500, 10_000, 29_000, 165_000, 10_000_000)]
    [300, 2000, 4000, 12400, 32000]
    >>> recommended_size(10_000, types=700)
    700
    """
    size = round(2_000 * (sentences / 10_000) ** 0.65, -2)
    return int(max(MIN_SIZE, min(size, MAX_SIZE, types or MAX_SIZE)))


# -- the steps -------------------------------------------------------------------------------------------------------


def _escape_lines(lines: Iterable[str]) -> list[str]:
    """Lines as SentencePiece is given them: single spaces, and no sign that would mean something else to it."""
    listed = list(lines)
    check_lines(listed)
    return [TO_ESCAPE.sub(lambda found: ESCAPED[found[0]], " ".join(split_words(line))) for line in listed]


def _split_specials(pieces: list[str]) -> list[str]:
    """The pieces, with any that reads `<s>`, `</s>` or `<unk>` taken apart into characters."""
    if not any(special in pieces for special in SPECIALS):
        return pieces
    return [part for piece in pieces for part in (piece if piece in SPECIALS else (piece,))]


def minimum_size(lines: Iterable[str]) -> int:
    """How many pieces there must be at least: one for each character, the space among them, and the unknown one."""
    return len(set[str]().union(*lines) | {" "}) + 1


def _check_size(spec: str, size: int, text: Sequence[str]) -> None:
    if not text:
        raise DataError(f"{spec}: there are no words to learn pieces from; give a text with one sentence a line")
    least = minimum_size(text)
    if size < least:
        kind = spec.partition(":")[0]
        remedy = f"ask for {kind}:{2 * least} or so, or for units char"
        raise DataError(f"{spec}: the text's characters alone are {least} pieces; {remedy}")


def _train_model(algorithm: str, size: int, text: Sequence[str], spec: str) -> bytes:
    """SentencePiece's model of a text."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(text),
            model_writer=model,
            model_type=algorithm,
            vocab_size=size,
            hard_vocab_limit=False,  # fewer pieces where the text does not have as many
            character_coverage=1.0,
            normalization_rule_name="identity",  # capitals, accents and signs stay what they are
            remove_extra_whitespaces=False,
            add_dummy_prefix=True,  # the first word of a line is cut like any other
            unk_id=0,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            unk_piece=UNKNOWN_PIECE,
            max_sentence_length=MAX_LINE_BYTES,
            num_threads=1,  # sums in the same order every time
            minloglevel=2,
        )
    except RuntimeError as error:
        why = " ".join(str(error).split())
        raise DataError(f"{spec}: no pieces can be learned from this text ({why}); try units char") from None
    return model.getvalue()
