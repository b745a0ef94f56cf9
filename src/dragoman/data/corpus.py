"""Texts as ids: a flat array of token ids and the offset of each sentence."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Self, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, encoding_error, error_at_line
from dragoman.core.kernels import compiler_is_loaded
from dragoman.core.types import Json
from dragoman.data.alignments import WordAlignments
from dragoman.data.detokenize import SAMPLE_LINES, looks_tokenised
from dragoman.data.encoding import encode
from dragoman.data.formats import decode_lines, display_name, read_text
from dragoman.data.ranges import select_ranges, split_by_size
from dragoman.data.scanner import COMPILED_BYTES, ScannedText, check_lines, scan, split_words
from dragoman.data.segmenters import Segmenter, SubwordSegmenter, language_model_units, train_segmenter
from dragoman.data.vocabulary import END, SPECIALS, START, UNK, Vocab


class ScanKwargs(TypedDict, total=False):
    """How a corpus of words uses or builds a vocabulary (see `Corpus.read`)."""

    min_count: int
    max_size: int | None
    training: bool | None


class EncodeKwargs(ScanKwargs, total=False):
    """How a corpus uses or builds a vocabulary, and its tokens (see `Corpus.read`)."""

    units: str


def _scan_options(options: EncodeKwargs) -> ScanKwargs:
    """Return the options without the kind of tokens."""
    scan_options = ScanKwargs()
    for name in ("min_count", "max_size", "training"):
        if name in options:
            scan_options[name] = options[name]
    return scan_options


@dataclass(frozen=True)
class TextLengths:
    """Lengths of a text, by which perplexities are computed. They do not depend on how a model splits the text.

    >>> TextLengths.from_lines(["the cat", "sat"])
    TextLengths(words=3, characters=12, sentences=2)
    """

    words: int  # separated by spaces and TABs
    characters: int  # with one space between words and one line break per line
    sentences: int

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> TextLengths:
        words = [split_words(line) for line in lines]
        return cls(sum(map(len, words)), sum(len(" ".join(line)) + 1 for line in words), len(words))

    @property
    def tokens(self) -> int:
        """Words and sentence ends."""
        return self.words + self.sentences


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences as ids of a vocabulary. Empty lines are sentences too. `Treebank` adds syntax trees.

    A word outside the vocabulary has the id `UNK` and its spelling is stored. A literal `<unk>` in the text has no
    spelling, so an unknown-word model assigns it no cost.

    >>> corpus = Corpus.from_sentences(["the cat sat", "", "the dog sat"])
    >>> corpus.ids.tolist(), corpus.offsets.tolist()
    ([3, 4, 5, 3, 6, 5], [0, 3, 3, 6])
    >>> other = Corpus.from_sentences(["the bird <unk>"], corpus.vocab)
    >>> other.ids.tolist(), other.unknown_words
    ([3, 2, 2], ['bird'])
    """

    vocab: Vocab
    ids: NDArray[np.int32]  # (words,)
    offsets: NDArray[np.int64]  # (sentences + 1,)
    unknown_positions: NDArray[np.int64]  # (unknown words,) positions in `ids`
    unknown_spelling_ids: NDArray[np.int32]  # (unknown words,) indices into `spellings`
    spellings: tuple[str, ...]  # the distinct words outside the vocabulary

    # -- construction --------------------------------------------------------------------------------------------

    @classmethod
    def read(
        cls, path: str | Path, vocab: Vocab | None = None, *, field: str | None = None, **options: Unpack[EncodeKwargs]
    ) -> Corpus:
        """Read plain text, gzip, TSV or JSONL (`-` is standard input).

        Args:
            path: the file, one sentence per line.
            vocab: the vocabulary, whose segmenter splits the text; None builds one from the text.
            field: the column or key of a TSV or JSONL file.
            options: for a vocabulary built here, `min_count` and `max_size` (see `Vocab.build`) and `units`: `word` (the
                default), `char`, `subword:N` or `unigram:N`; `auto`: words if the text is tokenised, otherwise
                subwords or, in a small text, characters. `training`: whether `<s>` and `</s>` among the words are
                errors instead of unknown words, by default if no `vocab` is given.
        """
        text, source = read_text(path, field), display_name(path)
        units = options.get("units", "word") if vocab is None else vocab.segmenter.kind
        if units == "auto":
            raw = text.split(b"\n")
            if looks_tokenised(line.decode() for line in raw[:: max(1, len(raw) // SAMPLE_LINES)]):
                units = "word"
        if units == "word":
            return cls.from_text(text, vocab, source=source, **_scan_options(options))
        options["units"] = units
        return cls.from_sentences(decode_lines(text), vocab, source=source, **options)

    @classmethod
    def from_raw_lines(
        cls, lines: Sequence[str], segmenter: Segmenter, *, min_count: int | None = None, max_size: int | None = None
    ) -> Corpus:
        """Split lines with a segmenter and build the vocabulary of its tokens.

        Args:
            lines: the training text.
            segmenter: a trained segmenter.
            min_count: tokens with a lower count become `<unk>`. Default: 2 for words, otherwise 1.
            max_size: maximum size of the vocabulary.
        """
        segmented = segmenter.segment_all(lines)
        counts = Counter(token for line in segmented for token in line)
        for special in SPECIALS[:UNK]:
            counts.pop(special, None)  # in a text these are ordinary words, and always unknown
        min_count = min_count or (2 if segmenter.kind == "word" else 1)
        if isinstance(segmenter, SubwordSegmenter) and min_count == 1:
            counts.update(dict.fromkeys(segmenter.pieces, 1))
        vocab = Vocab.build(counts.keys(), counts.values(), min_count=min_count, max_size=max_size, segmenter=segmenter)
        return cls.from_sentences(segmented, vocab)

    @classmethod
    def from_sentences(
        cls,
        sentences: Iterable[str | Sequence[str]],
        vocab: Vocab | None = None,
        *,
        source: str = "sentences",
        **options: Unpack[EncodeKwargs],
    ) -> Corpus:
        """Build from strings, which are split as the vocabulary says, or lists of tokens. Errors mention `source`.

        Without a vocabulary, one is built from the sentences. For the options, see `read`.
        """
        sentences, units = list(sentences), options.get("units", "word")
        if vocab is None and units != "word":
            strings = [line if isinstance(line, str) else " ".join(line) for line in sentences]
            units = language_model_units(units, strings)
            if units != "word":
                min_count, max_size = options.get("min_count", 1), options.get("max_size")
                return cls.from_raw_lines(
                    strings, train_segmenter(units, strings), min_count=min_count, max_size=max_size
                )
        if vocab is not None and vocab.segmenter.kind != "word":
            sentences = _segment_strings(sentences, vocab.segmenter)
        lines = [line if isinstance(line, str) else _join_tokens(line) for line in sentences]
        try:
            text = "\n".join([*lines, ""]).encode()
        except UnicodeEncodeError:
            text = b""
        if text.count(b"\n") != len(lines):
            check_lines(lines)  # raises an error that names the line
        return cls.from_text(text, vocab, source=source, **_scan_options(options))

    @classmethod
    def from_text(
        cls, text: bytes, vocab: Vocab | None = None, *, source: str = "text", **options: Unpack[ScanKwargs]
    ) -> Corpus:
        """Build from words separated by spaces: with a vocabulary by compiled code, unless loading it costs more."""
        is_worthwhile = len(text) >= COMPILED_BYTES or compiler_is_loaded()
        try:
            if vocab is not None and not options.get("training") and (is_worthwhile or not vocab.has_strings):
                return Corpus(vocab, *encode(text, vocab.spellings))
            return cls.from_scan(scan(text), vocab, source=source, **options)
        except UnicodeDecodeError as error:
            raise _utf8_error(text, source) from error

    @staticmethod
    def from_scan(
        scanned: ScannedText,
        vocab: Vocab | None = None,
        *,
        min_count: int = 1,
        max_size: int | None = None,
        training: bool | None = None,
        source: str = "text",
    ) -> Corpus:
        """Build from a scanned text. Arguments are those of `read`."""
        is_training = vocab is None if training is None else training
        if is_training:
            for word in SPECIALS[:UNK]:
                if word in scanned.types:
                    problem = "is reserved in training text: sentence boundaries are added automatically; remove it"
                    raise error_at_line(source, scanned.first_line_with(word), f"{word} {problem}")
        if vocab is None:
            vocab = Vocab.build(scanned.types, scanned.counts.tolist(), min_count=min_count, max_size=max_size)
        id_of_type = vocab.ids(scanned.types)
        is_unknown = np.array([word != SPECIALS[UNK] for word in scanned.types], bool) & (id_of_type == UNK)
        spelling_of_type = np.cumsum(is_unknown, dtype=np.int32) - 1
        positions = np.flatnonzero(is_unknown[scanned.tokens]) if is_unknown.any() else np.zeros(0, np.int64)
        return Corpus(
            vocab,
            id_of_type[scanned.tokens],
            scanned.offsets,
            positions,
            spelling_of_type[scanned.tokens[positions]],
            tuple(word for word, unknown in zip(scanned.types, is_unknown.tolist(), strict=True) if unknown),
        )

    # -- sizes ---------------------------------------------------------------------------------------------------

    @property
    def num_sentences(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_words(self) -> int:
        return len(self.ids)

    @property
    def num_tokens(self) -> int:
        """Words and sentence ends: what a model predicts."""
        return self.num_words + self.num_sentences

    @property
    def num_unknown(self) -> int:
        """Number of words outside the vocabulary."""
        return len(self.unknown_positions)

    @property
    def num_characters(self) -> int:
        """Characters of the text with one space between words and one line break per sentence."""
        lengths = self.vocab.lengths[self.ids]
        lengths[self.unknown_positions] = [len(word) for word in self.unknown_words]
        return int(lengths.sum() + np.maximum(np.diff(self.offsets), 1).sum())

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Tokens per sentence, including its end.  # (sentences,)"""
        return np.diff(self.offsets) + 1

    @property
    def memory_sizes(self) -> NDArray[np.int64]:
        """Positions per sentence that a decoder can attend to.  # (sentences,)"""
        return self.sizes

    # -- contents ------------------------------------------------------------------------------------------------

    @property
    def unigram_entropy(self) -> float:
        """Entropy of the unigram distribution of the tokens, sentence ends included, in nats."""
        counts = np.append(np.bincount(self.ids), self.num_sentences)
        probabilities = counts[counts > 0] / max(1, counts.sum())
        return float(-(probabilities * np.log(probabilities)).sum())

    @property
    def token_offsets(self) -> NDArray[np.int64]:
        """Where each sentence starts among the tokens, sentence ends included.  # (sentences + 1,)"""
        return self.offsets + np.arange(self.num_sentences + 1)

    @property
    def unknown_token_positions(self) -> NDArray[np.int64]:
        """The positions of the unknown words among the tokens, sentence ends included."""
        sentence = np.searchsorted(self.offsets, self.unknown_positions, side="right") - 1
        return self.unknown_positions + sentence

    @property
    def unknown_words(self) -> list[str]:
        return [self.spellings[index] for index in self.unknown_spelling_ids.tolist()]

    def __len__(self) -> int:
        return self.num_sentences

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        """The ids of one sentence."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[index] for index in range(len(self)))

    def lines(self) -> list[str]:
        """Return the text of the sentences, with single spaces between words."""
        return [self.vocab.segmenter.join(tokens) for tokens in self.tokenized_sentences()]

    def tokenized_sentences(self) -> list[list[str]]:
        """Return the tokens of each sentence, unknown ones as they are spelled."""
        return [line.split(" ") if line else [] for line in self.sentences_as_text()]

    @property
    def text_lengths(self) -> TextLengths:
        """The lengths of the text, whatever its tokens are."""
        if self.vocab.segmenter.kind == "word":
            return TextLengths(self.num_words, self.num_characters, self.num_sentences)
        return TextLengths.from_lines(self.lines())

    def sentences_as_text(self) -> list[str]:
        """Return the sentences as strings with one space between tokens.

        >>> corpus = Corpus.from_sentences(["the cat sat"])
        >>> Corpus.from_sentences(["the   bird sat", ""], corpus.vocab).sentences_as_text()
        ['the bird sat', '']
        """
        words = np.array(self.vocab.tokens, object)[self.ids]
        words[self.unknown_positions] = self.unknown_words
        return [" ".join(words[first:last]) for first, last in pairwise(self.offsets.tolist())]

    def ids_with_boundaries(self, starts: int = 1) -> NDArray[np.int32]:
        """Return all sentences in one array, each with `starts` times `<s>` before it and `</s>` after it."""
        extra = starts + 1
        flat = np.full(self.num_words + extra * self.num_sentences, START, np.int32)
        sentence = np.repeat(np.arange(self.num_sentences), np.diff(self.offsets))
        flat[np.arange(self.num_words) + extra * sentence + starts] = self.ids
        flat[self.offsets[1:] + extra * np.arange(1, self.num_sentences + 1) - 1] = END
        return flat

    def require_vocab(self, vocab: Vocab) -> None:
        """Raise an error if the text was read with another vocabulary than a model's."""
        if self.vocab is not vocab and self.vocab != vocab:
            why = self.vocab.describe_difference(vocab)
            raise DataError(f"the text was read with another vocabulary than the model's ({why}); use the model's")

    def fingerprint(self) -> dict[str, Json]:
        """Return the size and a checksum by which the corpus is recognised, vocabulary included."""
        vocab = np.frombuffer("\n".join(self.vocab.tokens).encode(), np.uint8)
        checksum = arrays_checksum([self.ids, self.offsets, vocab])
        return {"sentences": self.num_sentences, "tokens": self.num_tokens, "checksum": checksum}

    # -- derived corpora -----------------------------------------------------------------------------------------

    def select(self, sentences: NDArray[np.integer]) -> Self:
        """Return these sentences, in this order."""
        offsets, positions = select_ranges(self.offsets, sentences)
        spelling_ids = np.full(self.num_words, -1, np.int32)
        spelling_ids[self.unknown_positions] = self.unknown_spelling_ids
        spelling_ids = spelling_ids[positions]
        unknown = np.flatnonzero(spelling_ids >= 0)
        return replace(
            self,
            ids=self.ids[positions],
            offsets=offsets,
            unknown_positions=unknown,
            unknown_spelling_ids=spelling_ids[unknown],
        )

    def chunks(self, max_tokens: int) -> Iterator[Self]:
        """Split into corpora of at most `max_tokens` tokens, or of one longer sentence."""
        return (self.select(chunk) for chunk in split_by_size(np.arange(len(self)), self.sizes, max_tokens))

    def with_unknown(self, unknown: NDArray[np.bool_]) -> Self:
        """Return a copy with `<unk>` where `unknown` is true, without spellings.  # unknown: (words,)"""
        return replace(self, ids=np.where(unknown, np.int32(UNK), self.ids))


def _utf8_error(text: bytes, source: str) -> DataError:
    """Return an error that names the line of a text that is not UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return encoding_error(text, error.start, source)
    return DataError(f"{source}: not UTF-8")


def _segment_strings(sentences: Sequence[str | Sequence[str]], segmenter: Segmenter) -> list[str | Sequence[str]]:
    """Split those of the sentences that are strings."""
    segmented = iter(segmenter.segment_all(line for line in sentences if isinstance(line, str)))
    return [next(segmented) if isinstance(line, str) else line for line in sentences]


def _join_tokens(tokens: Sequence[str]) -> str:
    """Join tokens to a line. A space after a final carriage return keeps it from being read as part of a line end."""
    return " ".join(tokens) + (" " if tokens and tokens[-1].endswith("\r") else "")


def arrays_checksum(arrays: Iterable[NDArray[np.generic]]) -> str:
    """Return the CRC-32 of arrays as eight hexadecimal digits."""
    checksum = 0
    for array in arrays:
        checksum = zlib.crc32(array.tobytes(), checksum)
    return f"{checksum:08x}"


def context_windows(corpus: Corpus, length: int) -> NDArray[np.int32]:
    """Return the `length` ids before each token, nearest last, with `<s>` before the first.  # (tokens, length)

    >>> context_windows(Corpus.from_sentences(["a b"]), 2).tolist()
    [[0, 0], [0, 3], [3, 4]]
    """
    starts = max(length, 1)
    ids = corpus.ids_with_boundaries(starts=starts)
    sentence = np.repeat(np.arange(corpus.num_sentences), corpus.sizes)
    positions = np.arange(corpus.num_tokens) + starts * (sentence + 1)  # of the tokens in `ids`
    return ids[positions[:, None] + np.arange(-length, 0)]


# -- two aligned texts -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParallelCorpus:
    """A source and a target text with the same number of lines.

    >>> from dragoman import Corpus, ParallelCorpus
    >>> german, english = Corpus.from_sentences(["ein hund", "ein vogel"]), Corpus.from_sentences(["a dog", "a bird"])
    >>> pairs = ParallelCorpus(german, english)
    >>> len(pairs), pairs.reversed.target.sentences_as_text()
    (2, ['ein hund', 'ein vogel'])
    """

    source: Corpus  # may be a `Treebank`
    target: Corpus
    alignments: WordAlignments | None = None  # links between tokens, if known

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise DataError(f"{len(self.source)} source lines but {len(self.target)} target lines")
        if self.alignments is not None and len(self.alignments) != len(self.target):
            raise DataError(f"{len(self.alignments)} alignments but {len(self.target)} sentence pairs")

    @classmethod
    def read(
        cls,
        source: str | Path,
        target: str | Path,
        source_vocab: Vocab | None = None,
        target_vocab: Vocab | None = None,
        *,
        source_field: str | None = None,
        target_field: str | None = None,
        **options: Unpack[EncodeKwargs],
    ) -> ParallelCorpus:
        """Read two files aligned line by line, or one TSV or JSONL file given twice with its two fields."""
        source_corpus, target_corpus = (
            Corpus.read(path, vocab, field=field, **options)
            for path, vocab, field in ((source, source_vocab, source_field), (target, target_vocab, target_field))
        )
        if len(source_corpus) != len(target_corpus):
            counts = f"{source} has {len(source_corpus)} lines but {target} has {len(target_corpus)}"
            raise DataError(f"{counts}: each line must have its translation in the same line of the other")
        return cls(source_corpus, target_corpus)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Predicted tokens per pair: those of the target sentence.  # (pairs,)"""
        return self.target.sizes

    @property
    def weights(self) -> NDArray[np.int64]:
        """Size of each pair in a batch: tokens of the longer sentence, because both are padded.  # (pairs,)"""
        return np.maximum(self.source.sizes, self.target.sizes)

    @property
    def sort_keys(self) -> NDArray[np.int64]:
        """Keys that sort pairs by target length, then by source length, to reduce padding.  # (pairs,)"""
        return self.target.sizes * (int(self.source.sizes.max(initial=0)) + 1) + self.source.sizes

    def select(self, pairs: NDArray[np.integer]) -> Self:
        """Return these pairs, in this order."""
        alignments = None if self.alignments is None else self.alignments.select(pairs)
        return replace(self, source=self.source.select(pairs), target=self.target.select(pairs), alignments=alignments)

    @property
    def reversed(self) -> ParallelCorpus:
        """The same pairs with source and target exchanged."""
        if type(self.source) is not Corpus:
            raise DataError("syntax trees cannot be predicted; give the source as plain text")
        return ParallelCorpus(self.target, self.source, None if self.alignments is None else self.alignments.reversed)

    def fingerprint(self) -> dict[str, Json]:
        """Return the fingerprints of both texts."""
        return {"source": self.source.fingerprint(), "target": self.target.fingerprint()}


class BidirectionalCorpus(ParallelCorpus):
    """Sentence pairs in which both sides are predicted, each given the other."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Predicted tokens per pair: those of both sentences.  # (pairs,)"""
        return self.source.sizes + self.target.sizes
