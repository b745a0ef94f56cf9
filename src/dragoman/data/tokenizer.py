"""Text to ids and back, for one language, and pairs of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypedDict, Unpack
from unicodedata import category

from dragoman.core.defaults import LETTERS_FILE
from dragoman.core.errors import DataError
from dragoman.core.types import Json
from dragoman.data.casing import Truecaser
from dragoman.data.copied_items import script
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.detokenize import looks_tokenised
from dragoman.data.languages import AS_IN_FILE, Languages
from dragoman.data.letter_profiles import LetterProfile
from dragoman.data.repetitions import USUAL_REPETITIONS, Repetitions, usual_repetitions
from dragoman.data.segmenters import SPACE_MARK, Segmenter, load_segmenter, train_segmenter
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import UNK, Vocab

PLAIN_TEXT, TREE = "text", "tree"  # formats of a source text
SHOWN_LINES = 5  # line numbers of rejected units in a summary, for each reason


class TokenizerTrainingKwargs(TypedDict, total=False):
    """Keyword arguments of `Tokenizer.train_and_encode`."""

    min_count: int | None
    max_size: int | None
    max_subwords: int | None
    format: str
    name: str
    language: str | None


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """A vocabulary, its segmenter and a text format.

    >>> tokenizer = Tokenizer.train("word", ["the cat sat .", "the dog sat ."])
    >>> tokenizer.encode(["the bird sat ."]).ids.tolist(), tokenizer.decode([3, 4, 5])
    ([3, 2, 4, 5], 'the sat .')
    """

    vocab: Vocab
    tokenised: bool = True  # whether punctuation is separated from words in the text
    format: str = PLAIN_TEXT  # TREE: lines are bracketed trees
    language: str | None = None  # code of ISO 639, if it is known
    letters: LetterProfile | None = None  # of the training text, if it was large enough
    repetitions: Repetitions = USUAL_REPETITIONS  # in lines of the training text

    @property
    def segmenter(self) -> Segmenter:
        return self.vocab.segmenter

    @classmethod
    def train(
        cls, segmenter: str | Segmenter, lines: Sequence[str], **options: Unpack[TokenizerTrainingKwargs]
    ) -> Tokenizer:
        """Train a segmenter and build a vocabulary from a text. Arguments are those of `train_and_encode`."""
        return cls.train_and_encode(segmenter, lines, **options)[0]

    @classmethod
    def train_and_encode(
        cls,
        segmenter: str | Segmenter,
        lines: Sequence[str],
        *,
        min_count: int | None = None,
        max_size: int | None = None,
        max_subwords: int | None = None,
        format: str = PLAIN_TEXT,
        name: str = "trees",
        language: str | None = None,
    ) -> tuple[Tokenizer, Corpus]:
        """Train a tokenizer on a text and encode that text, segmenting it only once.

        Args:
            segmenter: a specification such as `subword:8000`, or a trained segmenter.
            lines: the training text.
            min_count: tokens with a lower count become `<unk>`. Default: 2 for words, otherwise 1.
            max_size: maximum size of the vocabulary.
            max_subwords: maximum number of subwords, if the specification has no number.
            format: PLAIN_TEXT or TREE.
            name: the name of the text, for error messages.
            language: the code of its language.

        Returns:
            The tokenizer and what its `encode(lines)` would return.
        """
        if format == TREE:
            trees = Treebank.from_lines(lines, min_count=min_count or 2, max_size=max_size, source=name)
            return cls(trees.vocab, tokenised=True, format=format, language=language), trees
        trained = (
            train_segmenter(segmenter, lines, max_subwords=max_subwords) if isinstance(segmenter, str) else segmenter
        )
        corpus = Corpus.from_raw_lines(lines, trained, min_count=min_count, max_size=max_size)
        letters, repetitions = LetterProfile.train(lines), usual_repetitions(lines)
        tokenised = looks_tokenised(lines)
        return cls(corpus.vocab, tokenised, language=language, letters=letters, repetitions=repetitions), corpus

    def encode(self, lines: Iterable[str], name: str = "trees") -> Corpus:
        """Convert lines to a Corpus, or to a Treebank if the format is TREE. Errors mention the text's `name`."""
        if self.format == TREE:
            return Treebank.from_lines(lines, self.vocab, source=name)
        return Corpus.from_sentences(self.segmenter.segment_all(lines), self.vocab)

    def decode(self, ids: Iterable[int]) -> str:
        """Convert ids to a line of text."""
        return self.join(self.tokens_of(ids))

    def join(self, tokens: Sequence[str]) -> str:
        """Join tokens to a line of text."""
        return self.segmenter.join(tokens)

    def tokens_of(self, ids: Iterable[int]) -> list[str]:
        """Return the tokens with these ids."""
        return [self.vocab.tokens[index] for index in ids]

    def word_indices(self, corpus: Corpus) -> list[list[int]]:
        """Return the word index of each token, for each sentence of a corpus encoded by this tokenizer."""
        return [self.segmenter.word_indices(tokens) for tokens in corpus.tokenized_sentences()]

    @cached_property
    def truecaser(self) -> Truecaser:
        """Rewrites odd capitals of a text as in the training text."""
        return Truecaser(self.segmenter, self.vocab)

    @cached_property
    def alphabet(self) -> frozenset[str]:
        """The characters that the tokens have, and white space."""
        return frozenset("".join(self.vocab.tokens[UNK + 1 :])) | {" ", "\t", "\r"}

    @cached_property
    def scripts(self) -> frozenset[str]:
        """The scripts of the letters that the tokens have."""
        return frozenset(script(character) for character in self.alphabet if character.isalpha())

    @cached_property
    def letter_share(self) -> float:
        """The share of letters and their marks among the characters of the training text, without spaces."""
        letters = total = 0
        for token, count in zip(self.vocab.tokens[UNK + 1 :], self.vocab.counts[UNK + 1 :].tolist(), strict=True):
            characters = token.replace(SPACE_MARK, "")
            letters += count * sum(category(character)[0] in "LM" for character in characters)
            total += count * len(characters)
        return letters / max(1, total)

    def config(self) -> dict[str, Json]:
        repetitions = {} if self.repetitions == USUAL_REPETITIONS else {"repetitions": self.repetitions._asdict()}
        return {"units": self.segmenter.spec, "tokenised": self.tokenised, "format": self.format, **repetitions}

    def files(self) -> dict[str, bytes]:
        """Return the contents of the tokenizer's files by name, without its vocabulary."""
        letters = {} if self.letters is None else {LETTERS_FILE: self.letters.to_text().encode()}
        return {**self.segmenter.files(), **letters}

    @classmethod
    def from_saved(
        cls, config: Mapping[str, object], vocab: Vocab, files: Mapping[str, bytes], language: str | None = None
    ) -> Tokenizer:
        units, format = config["units"], config["format"]
        if not isinstance(units, str) or format not in (PLAIN_TEXT, TREE):
            problem = f"a tokenizer with units {units!r} and format {format!r} does not exist"
            raise DataError(f"{problem}; train or copy the model again")
        letters = LetterProfile.from_text(files[LETTERS_FILE].decode()) if LETTERS_FILE in files else None
        segmented_vocab = vocab.with_segmenter(load_segmenter(units, files))
        repetitions = Repetitions.from_saved(config.get("repetitions"))
        return cls(segmented_vocab, bool(config["tokenised"]), format, language, letters, repetitions)


class RejectedUnit(NamedTuple):
    """A part of a file of sentence pairs that is not used."""

    file: str
    line: int  # from 1
    reason: str


class SelectedPairs(NamedTuple):
    """Which pairs of a text were selected."""

    indices: Sequence[int]
    text_size: int  # pairs of the whole text


@dataclass(frozen=True)
class LinePairs:
    """Two texts whose lines are translations of each other."""

    source: list[str]
    target: list[str]
    name: str = "source"  # of the source, for messages
    rejected: tuple[RejectedUnit, ...] = ()
    languages: Languages = AS_IN_FILE  # as far as the file or its name says them
    selected: SelectedPairs | None = None  # if these are only some of the pairs of a text
    has_rows: bool = False  # one pair per line of the file, as in TSV

    @property
    def indices(self) -> Sequence[int]:
        """The index of each pair in the text that was read."""
        return range(len(self.source)) if self.selected is None else self.selected.indices

    @property
    def text_size(self) -> int:
        """The number of pairs in the text that was read."""
        return len(self.source) if self.selected is None else self.selected.text_size

    @property
    def reversed(self) -> LinePairs:
        """The pairs with source and target exchanged."""
        return LinePairs(self.target, self.source, "target", languages=self.languages.reversed, selected=self.selected)

    def rejection_summary(self) -> list[str]:
        """Return for each reason how many pairs were rejected, with the first lines.

        >>> rejected = [RejectedUnit("a.po", line, "fuzzy") for line in (3, 9)]
        >>> LinePairs([], [], rejected=(*rejected, RejectedUnit("a.po", 12, "empty"))).rejection_summary()
        ['2 fuzzy (lines 3, 9)', '1 empty (line 12)']
        """
        summary = []
        for reason, count in Counter(unit.reason for unit in self.rejected).most_common():
            lines = [str(unit.line) for unit in self.rejected if unit.reason == reason][:SHOWN_LINES]
            more = ", ..." if count > len(lines) else ""
            summary.append(f"{count:,} {reason} (line{'s' if count > 1 else ''} {', '.join(lines)}{more})")
        return summary

    def describe_rejected(self) -> str:
        """Return how many lines, or entries, of the file are not used, and why.

        >>> LinePairs(["a"], ["b"], rejected=(RejectedUnit("a.po", 3, "fuzzy"),)).describe_rejected()
        '1 of 2 entries is not used: 1 fuzzy (line 3)'
        """
        count, unit = len(self.rejected), "lines" if self.has_rows else "entries"
        share = f"{count:,} of {len(self.source) + count:,} {unit} {'is' if count == 1 else 'are'} not used"
        return f"{share}: {'; '.join(self.rejection_summary())}"

    def select(self, indices: Iterable[int]) -> LinePairs:
        """Return some of the pairs."""
        chosen, numbers = list(indices), self.indices
        return replace(
            self,
            source=[self.source[i] for i in chosen],
            target=[self.target[i] for i in chosen],
            rejected=(),
            selected=SelectedPairs([numbers[i] for i in chosen], self.text_size),
        )

    def spread(self, number: int) -> LinePairs:
        """Return at most this many pairs, spread evenly over the text."""
        if number >= len(self.source):
            return self
        return self.select(i * len(self.source) // number for i in range(number))

    def encode(self, source: Tokenizer, target: Tokenizer) -> ParallelCorpus:
        return ParallelCorpus(source.encode(self.source, self.name), target.encode(self.target))
