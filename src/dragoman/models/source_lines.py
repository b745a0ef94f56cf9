"""Source lines as tokens, split into chunks if they are long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from dragoman.data.segmenters import SPACE_MARK, Segmenter
from dragoman.models.copying import CopiedItem, PreparedLine

SENTENCE_END_MARKS = (".", "!", "?", "。", "！", "？", "।")  # a long line is split after them if possible

Tokens = tuple[str, ...]


@dataclass(frozen=True)
class SegmentedLine:
    """A source line and its tokens, in chunks that are translated one by one."""

    text: str
    chunks: tuple[
        Tokens, ...
    ]  # none if there is nothing to translate; for a tree, one without tokens: trees are parsed when encoded
    items: tuple[CopiedItem, ...] = ()  # parts of the line that are copied; the tokens do not have them
    is_copied: bool = False  # the line is its own translation
    is_verbatim: bool = True  # its tokens are those of the text, and nothing is copied

    @classmethod
    def from_prepared(cls, text: str, line: PreparedLine, segmenter: Segmenter, max_tokens: int) -> SegmentedLine:
        """Split a prepared line into chunks."""
        chunks = split_tokens(segmenter, line.tokens, max_tokens) if line.tokens else ()
        return cls(text, chunks, line.items, line.is_copied, is_verbatim=False)

    @property
    def is_split(self) -> bool:
        """Whether the line is too long to be translated at once."""
        return len(self.chunks) > 1

    @property
    def searched_chunks(self) -> list[SegmentedLine]:
        """The chunks to search translations for, as lines: none if the line is copied."""
        return [] if self.is_copied else [SegmentedLine(self.text, (chunk,)) for chunk in self.chunks]

    @property
    def tokens(self) -> Tokens:
        return tuple(token for chunk in self.chunks for token in chunk)

    @property
    def items_of_chunks(self) -> list[list[CopiedItem]]:
        """The items of each chunk, with positions in it."""
        ends = list(accumulate(map(len, self.chunks)))
        items: list[list[CopiedItem]] = [[] for _ in self.chunks]
        for item in self.items:
            last = item.position + item.has_placeholder
            index = next((index for index, end in enumerate(ends) if last <= end), len(ends) - 1)
            start = ends[index] - len(self.chunks[index])
            items[index].append(item._replace(position=min(item.position - start, len(self.chunks[index]))))
        return items


def split_tokens(segmenter: Segmenter, tokens: Sequence[str], max_tokens: int) -> tuple[Tokens, ...]:
    """Split tokens into chunks of at most `max_tokens`: after sentence ends if possible, else between words.

    >>> from dragoman.data.segmenters import WordSegmenter
    >>> split_tokens(WordSegmenter(), "yes . the old dog sleeps .".split(), 4)
    (('yes', '.'), ('the', 'old', 'dog', 'sleeps'), ('.',))
    """
    if len(tokens) <= max_tokens:
        return (tuple(tokens),)
    chunks = [tuple(tokens[start:stop]) for start, stop in pairwise(_chunk_bounds(segmenter, tokens, max_tokens))]
    if segmenter.kind == "char":  # without spaces at the ends
        words = [[index for index, token in enumerate(chunk) if token != SPACE_MARK] for chunk in chunks]
        chunks = [
            chunk[positions[0] : positions[-1] + 1] for chunk, positions in zip(chunks, words, strict=True) if positions
        ]
    return tuple(chunk for chunk in chunks if segmenter.join(chunk).strip())


def _chunk_bounds(segmenter: Segmenter, tokens: Sequence[str], max_tokens: int) -> list[int]:
    """Return the first index of each chunk, and the number of tokens at the end."""
    words = segmenter.word_indices(tokens)
    word_starts = [index for index in range(1, len(tokens)) if words[index] != words[index - 1]]
    word_bounds = [0, *word_starts, len(tokens)]
    bounds = [0]
    while bounds[-1] < len(tokens):
        start, limit = bounds[-1], min(bounds[-1] + max_tokens, len(tokens))
        candidates = [index for index in word_bounds if start < index <= limit] or [limit]  # inside a very long word
        sentence_ends = [index for index in candidates if tokens[index - 1].endswith(SENTENCE_END_MARKS)]
        is_last = candidates[-1] == len(tokens)
        bounds.append(candidates[-1] if is_last else (sentence_ends or candidates)[-1])
    return bounds
