"""Texts as numbers: a flat array of word ids and the place where each sentence starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line
from dragoman.data.alignments import WordAlignments
from dragoman.data.chunks import select_ranges, split_by_size
from dragoman.data.formats import display_name, read_text
from dragoman.data.scanner import ScannedText, scan
from dragoman.data.vocabulary import END, SPECIALS, START, UNK, Vocab


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences over a vocabulary. Empty lines are sentences too.

    A word outside the vocabulary has id `UNK`; its spelling is kept. A literal `<unk>` is the unknown class
    itself, has no spelling, and its identity costs nothing.

    >>> corpus = Corpus.from_sentences(["the cat sat", "", "the dog sat"])
    >>> corpus.ids.tolist(), corpus.offsets.tolist()
    ([3, 4, 5, 3, 6, 5], [0, 3, 3, 6])
    >>> heard = Corpus.from_sentences(["the bird <unk>"], corpus.vocab)
    >>> heard.ids.tolist(), heard.unknown_words
    ([3, 2, 2], ['bird'])
    """

    vocab: Vocab
    ids: NDArray[np.int32]  # (words,)
    offsets: NDArray[np.int64]  # (sentences + 1,)
    unknown_positions: NDArray[np.int64]  # (unknown words,) their places in `ids`
    unknown_spelling_ids: NDArray[np.int32]  # (unknown words,) their places in `spellings`
    spellings: tuple[str, ...]  # the distinct words outside the vocabulary

    # -- making one ----------------------------------------------------------------------------------------------

    @classmethod
    def read(
        cls,
        path: str | Path,
        vocab: Vocab | None = None,
        *,
        field: str | None = None,
        min_count: int = 1,
        max_size: int | None = None,
        training: bool | None = None,
    ) -> Corpus:
        """Read plain text, gzip, TSV or JSONL (`-` is standard input).

        Without a `vocab` one is built from the text. In training text (by default: whenever the vocabulary is
        built here) `<s>` and `</s>` are errors; elsewhere they are unknown words.
        """
        scanned = scan(read_text(path, field))
        training = vocab is None if training is None else training
        if training:
            _check_reserved(scanned, display_name(path))
        if vocab is None:
            vocab = Vocab.build(scanned.types, scanned.counts.tolist(), min_count=min_count, max_size=max_size)
        return cls.from_scan(scanned, vocab)

    @classmethod
    def from_sentences(
        cls, sentences: Iterable[str | Sequence[str]], vocab: Vocab | None = None, *, min_count: int = 1
    ) -> Corpus:
        """From strings (split at spaces and TABs) or from lists of words."""
        lines = [line if isinstance(line, str) else _join_words(line) for line in sentences]
        for number, line in enumerate(lines, 1):
            if "\n" in line:
                raise error_at_line("sentences", number, "contains a line break; give one sentence a string")
        try:
            scanned = scan("".join(line + "\n" for line in lines).encode())
        except UnicodeEncodeError as error:
            number = error.object.count("\n", 0, error.start) + 1
            raise error_at_line(
                "sentences", number, "holds half a surrogate pair; remove or mend the character"
            ) from None
        if vocab is None:
            _check_reserved(scanned, "sentences")
            vocab = Vocab.build(scanned.types, scanned.counts.tolist(), min_count=min_count)
        return cls.from_scan(scanned, vocab)

    @classmethod
    def from_scan(cls, scanned: ScannedText, vocab: Vocab) -> Corpus:
        id_of_type = vocab.ids(scanned.types)
        spelled = np.array([word != SPECIALS[UNK] for word in scanned.types], bool) & (id_of_type == UNK)
        number_of_type = np.cumsum(spelled, dtype=np.int32) - 1
        at_ = np.flatnonzero(spelled[scanned.tokens]) if spelled.any() else np.zeros(0, np.int64)
        return cls(
            vocab,
            id_of_type[scanned.tokens],
            scanned.offsets,
            at_,
            number_of_type[scanned.tokens[at_]],
            tuple(word for word, outside in zip(scanned.types, spelled.tolist(), strict=True) if outside),
        )

    # -- what it holds -------------------------------------------------------------------------------------------

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
    def token_offsets(self) -> NDArray[np.int64]:
        """Where each sentence starts among the tokens."""
        return self.offsets + np.arange(self.num_sentences + 1)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Tokens of each sentence, its end counted.  # (sentences,)"""
        return np.diff(self.offsets) + 1

    @property
    def unknown_token_positions(self) -> NDArray[np.int64]:
        """The places of the unknown words among the tokens."""
        return self.unknown_positions + np.searchsorted(self.offsets, self.unknown_positions, side="right") - 1

    @property
    def unknown_words(self) -> list[str]:
        return [self.spellings[number] for number in self.unknown_spelling_ids.tolist()]

    @property
    def num_characters(self) -> int:
        """Characters of the text written with one space between words and one line break a sentence."""
        lengths = int(self.vocab.token_lengths[self.ids].sum())
        if len(self.unknown_positions):
            spelled = np.array([len(word) for word in self.spellings])
            lengths += int(spelled[self.unknown_spelling_ids].sum()) - len(self.unknown_positions) * len(SPECIALS[UNK])
        empty = int((np.diff(self.offsets) == 0).sum())
        return lengths + self.num_words + empty

    def __len__(self) -> int:
        return self.num_sentences

    def __getitem__(self, number: int) -> NDArray[np.int32]:
        """The word ids of one sentence."""
        return self.ids[self.offsets[number] : self.offsets[number + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[number] for number in range(len(self)))

    def sentences_as_text(self) -> list[str]:
        """The sentences with every word spelled out and one space between words.

        >>> corpus = Corpus.from_sentences(["the cat sat"])
        >>> Corpus.from_sentences(["the   bird sat", ""], corpus.vocab).sentences_as_text()
        ['the bird sat', '']
        """
        words = np.array(self.vocab.tokens, object)[self.ids]
        words[self.unknown_positions] = self.unknown_words
        return [" ".join(words[first:last]) for first, last in pairwise(self.offsets.tolist())]

    def require_vocab(self, vocab: Vocab) -> None:
        """Refuse to be read by the numbers of another vocabulary: they would mean other words, or none."""
        require_same_vocab(self.vocab, vocab)

    def select(self, sentences: NDArray[np.integer]) -> Corpus:
        """These sentences, in this order, as a corpus of their own."""
        offsets, places = select_ranges(self.offsets, sentences)
        spelled = np.full(self.num_words, -1, np.int32)
        spelled[self.unknown_positions] = self.unknown_spelling_ids
        kept = spelled[places]
        at_ = np.flatnonzero(kept >= 0)
        return Corpus(self.vocab, self.ids[places], offsets, at_, kept[at_], self.spellings)

    def chunks(self, max_tokens: int) -> Iterator[Corpus]:
        """The text in pieces of so many tokens or fewer, or of one sentence."""
        return (self.select(run) for run in split_by_size(np.arange(len(self)), self.sizes, max_tokens))

    def with_unknown(self, unknown: NDArray[np.bool_]) -> Corpus:
        """The same text with these words as `<unk>`; which words they were is not kept.  # unknown: (words,)"""
        return replace(self, ids=np.where(unknown, np.int32(UNK), self.ids))

    def ids_with_boundaries(self, starts: int = 1) -> NDArray[np.int32]:
        """All sentences in a row, each between `starts` times `<s>` and one `</s>`."""
        frame = starts + 1
        flat = np.full(self.num_words + frame * self.num_sentences, START, np.int32)
        sentence = np.repeat(np.arange(self.num_sentences), np.diff(self.offsets))
        flat[np.arange(self.num_words) + frame * sentence + starts] = self.ids
        flat[self.offsets[1:] + frame * np.arange(1, self.num_sentences + 1) - 1] = END
        return flat


def _join_words(words: Sequence[str]) -> str:
    """Words as a line; a last one that ends in a carriage return is kept from being taken for the line's end."""
    return " ".join(words) + (" " if words and words[-1].endswith("\r") else "")


def require_same_vocab(vocab: Vocab, model_vocab: Vocab) -> None:
    """Refuse a text that was read with another vocabulary than the model's own."""
    if vocab is not model_vocab and vocab != model_vocab:
        why = vocab.describe_difference(model_vocab)
        raise DataError(f"the text was read with another vocabulary than the model's ({why}); use the model's own")


class SourceCorpus(Protocol):
    """What is translated: sentences, or trees over them."""

    @property
    def vocab(self) -> Vocab: ...

    def __len__(self) -> int: ...

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Words of each sentence, its end counted: |F| + 1.  # (sentences,)"""
        ...

    def select(self, sentences: NDArray[np.integer]) -> Self:
        """These sentences, in this order."""
        ...


@dataclass(frozen=True)
class ParallelCorpus:
    """A source and a target text of the same number of lines."""

    source: Any  # a `Source`: a Corpus, or a Treebank
    target: Corpus
    alignments: WordAlignments | None = None  # which units of each pair belong together, if that is known

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise DataError(f"{len(self.source)} source lines but {len(self.target)} target lines")
        if self.alignments is not None and len(self.alignments) != len(self.target):
            raise DataError(f"{len(self.alignments)} alignments but {len(self.target)} pairs of lines")

    @property
    def sizes(self) -> NDArray[np.int64]:
        """What is predicted: tokens of each target sentence.  # (pairs,)"""
        return self.target.sizes

    @property
    def weights(self) -> NDArray[np.int64]:
        """How much of a batch each pair takes up: tokens of its longer side, as both are padded.  # (pairs,)"""
        return np.maximum(self.source.sizes, self.target.sizes)

    @property
    def likeness(self) -> NDArray[np.int64]:
        """By which pairs of like lengths are near each other: the target's, then the source's.  # (pairs,)"""
        return self.target.sizes * (int(self.source.sizes.max(initial=0)) + 1) + self.source.sizes

    def select(self, pairs: NDArray[np.integer]) -> Self:
        """These pairs, in this order."""
        links = None if self.alignments is None else self.alignments.select(pairs)
        return replace(self, source=self.source.select(pairs), target=self.target.select(pairs), alignments=links)

    @property
    def reversed(self) -> ParallelCorpus:
        """The same pairs, to be translated back."""
        if not isinstance(self.source, Corpus):
            raise DataError("trees can be read, not predicted; give the source as plain text")
        return ParallelCorpus(self.target, self.source, None if self.alignments is None else self.alignments.reversed)

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
        min_count: int = 1,
        max_size: int | None = None,
    ) -> ParallelCorpus:
        """Two files aligned line by line, or one TSV or JSONL file given twice with its two fields."""
        one, two = (
            Corpus.read(path, vocab, field=field, min_count=min_count, max_size=max_size)
            for path, vocab, field in ((source, source_vocab, source_field), (target, target_vocab, target_field))
        )
        if len(one) != len(two):
            raise DataError(
                f"{source} has {len(one)} lines but {target} has {len(two)}: line i of one must translate line i of "
                "the other"
            )
        return cls(one, two)

    def __len__(self) -> int:
        return len(self.source)


class BidirectionalCorpus(ParallelCorpus):
    """Pairs of which each side is predicted, given the other."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Tokens of both sentences.  # (pairs,)"""
        return self.source.sizes + self.target.sizes


def _check_reserved(scanned: ScannedText, source: str) -> None:
    for word in SPECIALS[:UNK]:
        if word in scanned.types:
            line = scanned.first_line_with(word)
            raise error_at_line(
                source, line, f"{word} is reserved in training text: sentences are framed for you; remove it"
            )
