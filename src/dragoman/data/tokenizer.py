"""The two sides of a translator: how a text becomes numbers, and numbers a text again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.data.segmenters import Segmenter, WordSegmenter, load_segmenter, train_segmenter
from dragoman.data.subwords import SubwordSegmenter
from dragoman.data.tokenization import looks_tokenised
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab

PLAIN, TREE = "text", "tree"  # formats of a source


@dataclass(frozen=True, eq=False)
class Tokenizer:
    """Lines of one language: the units that they are cut into, and which of these are known.

    >>> side = Side.learn("word", ["the cat sat .", "the dog sat ."])
    >>> side.read(["the bird sat ."]).ids.tolist(), side.join(["the", "cat"])
    ([3, 2, 4, 5], 'the cat')
    """

    segmenter: Segmenter
    vocab: Vocab
    tokenised: bool = True  # whether punctuation stands apart from words in its text
    format: str = PLAIN  # tree: lines are bracketed trees

    @classmethod
    def train(
        cls,
        segmenter: str | Segmenter,
        lines: Sequence[str],
        *,
        min_count: int | None = None,
        max_size: int | None = None,
        format: str = PLAIN,
        name: str = "trees",
    ) -> Tokenizer:
        """Units and vocabulary of a training text; of words seen once, by default, none is known.

        # units: a kind, or units learned elsewhere, such as from both sides; name: of the text, for messages
        """
        if format == TREE:
            trees = Treebank.from_lines(lines, min_count=min_count or 2, max_size=max_size, source=name)
            return cls(WordSegmenter(), trees.vocab, tokenised=True, format=format)
        learned = train_segmenter(segmenter, lines) if isinstance(segmenter, str) else segmenter
        counts = Counter(unit for line in learned.segment_all(lines) for unit in line)
        for special in SPECIALS[:UNK]:
            counts.pop(special, None)  # in a text they are words like any other, and never known
        least = min_count or (2 if learned.kind == "word" else 1)
        if isinstance(learned, SubwordSegmenter) and least == 1:
            counts.update(dict.fromkeys(learned.pieces, 1))
        vocab = Vocab.build(counts.keys(), counts.values(), min_count=least, max_size=max_size)
        return cls(learned, vocab, looks_tokenised(lines))

    def encode(self, lines: Iterable[str], name: str = "trees") -> Any:
        """The lines as numbers: a Corpus, or a Treebank. The text's name is for messages."""
        if self.format == TREE:
            return Treebank.from_lines(lines, self.vocab, source=name)
        return Corpus.from_sentences(self.segmenter.segment_all(lines), self.vocab)

    def join(self, tokens: Sequence[str]) -> str:
        """Units as a line of text."""
        return self.segmenter.join(tokens)

    def tokens_of(self, ids: Iterable[int]) -> list[str]:
        """The units of these numbers."""
        return [self.vocab.tokens[number] for number in ids]

    # -- on disk -------------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        return {"units": self.segmenter.spec, "tokenised": self.tokenised, "format": self.format}

    @classmethod
    def from_saved(cls, config: Mapping[str, Any], vocab: Vocab, files: Mapping[str, bytes]) -> Tokenizer:
        units, format = config["units"], config["format"]
        if not isinstance(units, str) or format not in (PLAIN, TREE):
            raise DataError(f"no side has units {units!r} and format {format!r}; train or copy the model again")
        return cls(load_segmenter(units, files), vocab, bool(config["tokenised"]), format)
