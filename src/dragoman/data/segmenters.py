"""Segmenters: how lines are split into tokens, and joined again.

Words are separated by spaces. Characters include spaces and punctuation. Subwords are pieces of words, learned from a
text by SentencePiece: byte-pair encoding or a unigram model. For every segmenter, `join(segment(line))` is the line up
to its whitespace.
"""

from __future__ import annotations

import io
import re
import struct
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dragoman.core.defaults import SENTENCEPIECE_FILE, SPECIALS
from dragoman.core.errors import DataError, closest_match
from dragoman.core.threads import available_cores
from dragoman.data.detokenize import looks_tokenised, looks_unsegmented
from dragoman.data.scanner import check_lines, split_words

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

SPACE_MARK = "▁"  # U+2581, stands for a space in tokens smaller than words, as in SentencePiece
ALGORITHMS = {"subword": "bpe", "unigram": "unigram"}  # our names and SentencePiece's
ALIASES = {"bpe": "subword"}
KINDS = ("auto", "word", "char", *ALGORITHMS)
MAX_SINGLETON_SHARE = 0.005  # with a larger share of singletons, words are split into subwords
MIN_WORDS_PER_LINE = 1.5  # a text with fewer consists of single words
MAX_SIZE_DIGITS = 7  # of the number of subwords

MAX_TRAINING_LINES = 1_000_000  # of a longer text, this many lines are sampled evenly
LONG_WORD = re.compile("[^ ]{10000}(?=[^ ])")  # cut in training: SentencePiece ends the process at 65,536 characters
MAX_LINE_BYTES = 1 << 20  # SentencePiece's default would skip lines of more than 4,192 bytes
UNKNOWN_PIECE = "no piece"  # has a space, so no text can contain it
PROBE = "ﬁ  ﬁ"  # changed by a model with a normalisation rule, or by one whose last part is missing
MIN_SIZE, MAX_SIZE = 200, 32_000
CHARACTERS_PER_PIECE = 1_000  # of the text of a language model

# SentencePiece gives two characters a meaning: ▁ (a space) and, in training, ▅ (an unknown character). These two and
# three characters of the private use area are escaped before SentencePiece sees them.
ESCAPE, REPLACEMENTS = "\ue580", {"▁": "\ue581", "▅": "\ue585"}
ESCAPED = {**REPLACEMENTS, **{character: ESCAPE + character for character in (ESCAPE, *REPLACEMENTS.values())}}
UNESCAPED = {escaped: character for character, escaped in ESCAPED.items()}
TO_ESCAPE = re.compile(f"[{''.join(ESCAPED)}]")
TO_RESTORE = re.compile(f"{ESCAPE}[{ESCAPE}{''.join(REPLACEMENTS.values())}]|[{''.join(REPLACEMENTS.values())}]")


@dataclass(frozen=True)
class Segmenter(ABC):
    """Splits lines into tokens and joins tokens to lines."""

    spec: str  # its specification, such as `subword:8000`

    @property
    def kind(self) -> str:
        """`word`, `char`, `subword` or `unigram`."""
        return self.spec.partition(":")[0]

    def segment(self, line: str) -> list[str]:
        """Split a line into tokens. No token contains a space, a TAB or a line break."""
        return self.segment_all([line])[0]

    @abstractmethod
    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        """Split many lines, faster than one by one."""

    @abstractmethod
    def join(self, tokens: Sequence[str]) -> str:
        """Join tokens to a line."""

    @abstractmethod
    def token_texts(self, tokens: Sequence[str]) -> list[str]:
        """Return the text of each token, with a space before the first one of a word; concatenated, the line."""

    @abstractmethod
    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        """Return the index (from 0) of the space-separated word that each token belongs to."""

    def files(self) -> Mapping[str, bytes]:
        """Return the files to be saved in addition to `spec`, by name."""
        return {}


@dataclass(frozen=True)
class WordSegmenter(Segmenter):
    """Splits at spaces and TABs.

    >>> segmenter = WordSegmenter()
    >>> segmenter.join(segmenter.segment(" the  cat\\tsat "))
    'the cat sat'
    """

    spec: str = "word"

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        return [split_words(line) for line in check_lines(lines)]

    def join(self, tokens: Sequence[str]) -> str:
        return " ".join(tokens)

    def token_texts(self, tokens: Sequence[str]) -> list[str]:
        return [f" {token}" for token in tokens]

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        return list(range(len(tokens)))


@dataclass(frozen=True)
class CharSegmenter(Segmenter):
    """Splits into characters. A space is written ▁ and a ▁ of the text ▁▁, so every line without TABs is restored.

    >>> segmenter = CharSegmenter()
    >>> segmenter.segment("to be▁"), segmenter.join(segmenter.segment("to be▁"))
    (['t', 'o', '▁', 'b', 'e', '▁▁'], 'to be▁')
    """

    spec: str = "char"

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        escaped = {" ": SPACE_MARK, "\t": SPACE_MARK, SPACE_MARK: SPACE_MARK + SPACE_MARK}
        return [[escaped.get(character, character) for character in line.rstrip("\r")] for line in check_lines(lines)]

    def join(self, tokens: Sequence[str]) -> str:
        return "".join(self.token_texts(tokens))

    def token_texts(self, tokens: Sequence[str]) -> list[str]:
        plain = {SPACE_MARK: " ", SPACE_MARK + SPACE_MARK: SPACE_MARK}
        return [plain.get(token, token) for token in tokens]

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        return assign_word_indices((token == SPACE_MARK, token != SPACE_MARK) for token in tokens)


@dataclass(frozen=True)
class SubwordSegmenter(Segmenter):
    """Splits words into pieces. The first piece of a word begins with ▁.

    `join(segment(line))` is the line with single spaces between its words. A character that the training text did not
    have becomes a separate piece, which a vocabulary of pieces does not know but which is not lost. No piece is
    `<s>`, `</s>` or `<unk>`: such words in a text are split.
    """

    model: bytes = field(repr=False)  # the SentencePiece model file

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

    def scores(self) -> dict[str, float]:
        """Return the score of each piece: log-probabilities (unigram), or ranks of merges as negative numbers (BPE)."""
        processor = self._processor
        return {processor.id_to_piece(index): processor.get_score(index) for index in range(1, self.size)}

    def with_pieces(self, scores: Mapping[str, float]) -> SubwordSegmenter:
        """Return a segmenter with these pieces in addition."""
        entries = (_sentencepiece_entry(piece, score) for piece, score in scores.items())
        return SubwordSegmenter(f"{self.kind}:{self.size + len(scores)}", self.model + b"".join(entries))

    def validate(self) -> None:
        """Load the model, and raise an error if it is damaged."""
        _ = self._processor

    @cached_property
    def _processor(self) -> SentencePieceProcessor:
        from sentencepiece import SentencePieceProcessor

        processor = SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(self.model)
            valid = "".join(processor.encode(PROBE, out_type=str)) == SPACE_MARK + PROBE.replace(" ", SPACE_MARK)
        except (RuntimeError, ValueError):
            valid = False
        if not valid:
            raise DataError(f"{SENTENCEPIECE_FILE}: damaged, or not created by dragoman; train the subwords again")
        return processor

    def segment_all(self, lines: Iterable[str]) -> list[list[str]]:
        segmented = self._processor.encode(_escape_lines(lines), out_type=str, num_threads=available_cores())
        return [_split_specials(pieces) for pieces in segmented]

    def join(self, tokens: Sequence[str]) -> str:
        text = " ".join(split_words("".join(tokens).replace(SPACE_MARK, " ")))
        return TO_RESTORE.sub(lambda match: UNESCAPED[match[0]], text)

    def token_texts(self, tokens: Sequence[str]) -> list[str]:
        texts, pending = [], ""  # an escape whose character is in the next token
        for token in tokens:
            text = pending + token.replace(SPACE_MARK, " ")
            escapes = len(text) - len(text.rstrip(ESCAPE))
            pending = ESCAPE if escapes % 2 else ""
            texts.append(TO_RESTORE.sub(lambda match: UNESCAPED[match[0]], text.removesuffix(pending)))
        return texts

    def word_indices(self, tokens: Sequence[str]) -> list[int]:
        return assign_word_indices((token.startswith(SPACE_MARK), token.strip(SPACE_MARK) != "") for token in tokens)

    def files(self) -> Mapping[str, bytes]:
        return {SENTENCEPIECE_FILE: self.model}


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


def _escape_lines(lines: Iterable[str]) -> list[str]:
    """Return lines with single spaces and without characters that SentencePiece would interpret."""
    return [TO_ESCAPE.sub(lambda match: ESCAPED[match[0]], " ".join(split_words(line))) for line in check_lines(lines)]


def _split_specials(pieces: list[str]) -> list[str]:
    """Split pieces that are `<s>`, `</s>` or `<unk>` into characters."""
    if not any(special in pieces for special in SPECIALS):
        return pieces
    return [part for piece in pieces for part in (piece if piece in SPECIALS else (piece,))]


def _sentencepiece_entry(piece: str, score: float) -> bytes:
    """Return a piece as part of a SentencePiece model file: an element of field 1, appended to the file's bytes.

    A protocol buffer message is extended by the bytes of further elements of a repeated field.

    >>> _sentencepiece_entry("ab", -1.0).hex()
    '0a090a02616215000080bf'
    """
    text = piece.encode()
    entry = b"\x0a" + _varint(len(text)) + text + b"\x15" + struct.pack("<f", score)
    return b"\x0a" + _varint(len(entry)) + entry


def _varint(number: int) -> bytes:
    """Return a number in groups of seven bits, as protocol buffers write it."""
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


# -- creating segmenters -----------------------------------------------------------------------------------------------


def parse_spec(spec: str) -> tuple[str, int | None]:
    """Return the kind of segmenter and, for subwords, their number (None: chosen by the text).

    >>> parse_spec("bpe:8000"), parse_spec("char")
    (('subword', 8000), ('char', None))
    """
    name, colon, number = spec.partition(":")
    kind = ALIASES.get(name, name)
    if kind not in KINDS:
        match = closest_match(name, [*KINDS, *ALIASES])
        hint = f"did you mean {match!r}?" if match else "choose auto, word, char, subword:N or unigram:N"
        raise DataError(f"unknown units {spec!r}; {hint}")
    if not colon:
        return kind, None
    if kind not in ALGORITHMS:
        raise DataError(f"units {spec!r}: {kind} takes no number; write {kind}")
    if not (number.isascii() and number.isdecimal() and len(number) <= MAX_SIZE_DIGITS and int(number) > 0):
        raise DataError(f"units {spec!r}: the number of subwords follows the colon, as in {kind}:8000")
    return kind, int(number)


def train_segmenter(spec: str, *texts: Iterable[str], max_subwords: int | None = None) -> Segmenter:
    """Train a segmenter on one text or, to be shared between them, on several.

    `auto` chooses the kind by the texts (see `choose_segmenter`), but words only if there are at most `max_subwords`.
    `subword` and `unigram` without a number choose the number of subwords by the texts, at most `max_subwords`, but at
    least two per character: Chinese has thousands of characters.
    """
    lines = [list(text) for text in texts]
    kind, size = parse_spec(choose_units(spec, *lines, max_subwords=max_subwords))
    if size is None:
        return WordSegmenter() if kind == "word" else CharSegmenter()
    return _train_subwords(kind, size, [line for text in lines for line in text])


def choose_units(
    spec: str, *texts: Sequence[str], sentences: int | None = None, max_subwords: int | None = None
) -> str:
    """Return the units that `train_segmenter` uses: a kind, and a number for subwords.

    `sentences` is the size of the whole text, if the texts are only samples of it.
    """
    kind, size = parse_spec(spec)
    lines = [line for text in texts for line in text]
    if kind == "auto":
        kind = choose_segmenter(*texts)
        if kind == "word" and max_subwords is not None and _count_types(lines) > max_subwords:
            kind = "subword"
    if kind not in ALGORITHMS:
        return kind
    if size is None:
        types = None if looks_unsegmented(lines) or sentences is not None else _count_types(lines)
        recommended = min(recommended_size(sentences or len(lines), types), max_subwords or MAX_SIZE)
        size = max(recommended, 2 * minimum_size(lines))
    return f"{kind}:{size}"


def _count_types(lines: Iterable[str]) -> int:
    """Return the number of distinct words."""
    return len({word for line in lines for word in split_words(line)})


def load_segmenter(spec: str, files: Mapping[str, bytes]) -> Segmenter:
    """Create a segmenter from its specification and saved files."""
    kind, size = parse_spec(spec)
    if kind == "auto":
        raise DataError("units auto: needs a text to choose from; name the units")
    if kind not in ALGORITHMS:
        return WordSegmenter() if kind == "word" else CharSegmenter()
    if SENTENCEPIECE_FILE not in files:
        raise DataError(f"units {spec}: {SENTENCEPIECE_FILE} is missing; train the subwords again")
    segmenter = SubwordSegmenter(kind if size is None else f"{kind}:{size}", files[SENTENCEPIECE_FILE])
    segmenter.validate()
    return segmenter


def choose_segmenter(*texts: Iterable[str]) -> str:
    """Choose the kind of segmenter for texts.

    Characters if most lines are single words (to be spelled or inflected). Words if all texts are tokenised and nearly
    all words occur more than once, so that there is little to gain from splitting them. Otherwise subwords.

    >>> lines = ["the cat sat , then ran .", "the cat ran , then sat ."]
    >>> [choose_segmenter(text) for text in (lines, ["The cat sat, then ran."] * 2, ["the cat sat ."], ["cats"])]
    ['word', 'subword', 'subword', 'char']
    """
    all_lines = [list(text) for text in texts]
    if any(looks_unsegmented(lines) for lines in all_lines):
        return "subword"
    counts = [Counter(word for line in lines for word in split_words(line)) for lines in all_lines]
    if sum(count.total() for count in counts) < MIN_WORDS_PER_LINE * sum(map(len, all_lines)):
        return "char"
    singletons = [sum(n == 1 for n in count.values()) / max(1, count.total()) for count in counts]
    mostly_known = max(singletons, default=0) < MAX_SINGLETON_SHARE and all(map(looks_tokenised, all_lines))
    return "word" if mostly_known else "subword"


def language_model_units(spec: str, lines: Sequence[str]) -> str:
    """Return the units of a language model, with what `spec` leaves open chosen by the text.

    `auto` are words if the text is tokenised; rare words are no reason to split them here, because a language model has
    a model of unknown words. Otherwise they are subwords, one for each 1,000 characters of the text: a piece must occur
    often enough that its contexts are known. If the text is too small for at least two subwords per character of its
    alphabet, they are characters.

    >>> texts = ["the cat sat ."], ["The cat sat."], [f"First {n}, then {n + 1}." for n in range(20_000)]
    >>> [language_model_units("auto", text) for text in texts]
    ['word', 'char', 'subword:480']
    """
    kind, size = parse_spec(spec)
    if kind == "auto" and looks_tokenised(lines):
        return "word"
    if size is not None or kind in ("word", "char"):
        return spec
    size, minimum = sum(len(line) + 1 for line in lines) // CHARACTERS_PER_PIECE, 2 * minimum_size(lines)
    size = min(round(size, -2 if size >= 1_000 else -1), MAX_SIZE)
    if not looks_unsegmented(lines):
        size = min(size, len({word for line in lines for word in split_words(line)}))
    if kind == "auto":
        return "char" if size < minimum else f"subword:{size}"
    return f"{kind}:{max(size, minimum)}"


def token_name(segmenter: Segmenter) -> str:
    """Return what the segmenter's tokens are called in messages."""
    return {"word": "word", "char": "character"}.get(segmenter.kind, "subword")


def _train_subwords(kind: str, size: int, lines: Sequence[str]) -> SubwordSegmenter:
    """Learn `size` subwords from a text, or fewer if the text does not have as many. The result is deterministic."""
    from sentencepiece import SentencePieceTrainer

    spec, text = f"{kind}:{size}", [LONG_WORD.sub(r"\g<0> ", line) for line in _escape_lines(lines) if line]
    if not text:
        raise DataError(f"{spec}: the text has no words to learn from; give a text with one sentence per line")
    minimum = minimum_size(text)
    if size < minimum:
        remedy = f"use {kind}:{2 * minimum} or more, or units char"
        raise DataError(f"{spec}: the text needs at least {minimum} pieces, one per character; {remedy}")
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(text[:: max(1, len(text) // MAX_TRAINING_LINES)]),
            model_writer=model,
            model_type=ALGORITHMS[kind],
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
    segmenter = SubwordSegmenter(spec, model.getvalue())
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
