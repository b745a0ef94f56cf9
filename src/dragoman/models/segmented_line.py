"""Source lines as tokens, split into chunks that are short enough to translate at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dragoman.core.defaults import MAX_TOKENS
from dragoman.data.segmenters import Segmenter
from dragoman.data.subwords import SPACE_MARK
from dragoman.data.tokenizer import TREE, Tokenizer

SENTENCE_END_MARKS = (".", "!", "?", "。", "！", "？", "।")  # a long line is split after them if possible

Tokens = tuple[str, ...]


@dataclass(frozen=True)
class SegmentedLine:
    """A source line and its tokens, in chunks that are translated one by one."""

    text: str
    chunks: tuple[Tokens, ...]  # none for a blank line; for a tree, one without tokens: trees are parsed when encoded

    @property
    def is_split(self) -> bool:
        """Whether the line is too long to be translated at once."""
        return len(self.chunks) > 1

    @property
    def tokens(self) -> Tokens:
        return tuple(token for chunk in self.chunks for token in chunk)


def segment_lines(
    tokenizer: Tokenizer, lines: Sequence[str | SegmentedLine], max_tokens: int = MAX_TOKENS
) -> list[SegmentedLine]:
    """Segment lines, and split those of more than `max_tokens` tokens. Trees are never split."""
    texts = [line for line in lines if isinstance(line, str) and line.strip()]
    if tokenizer.format == TREE:
        segmented = iter([SegmentedLine(text, ((),)) for text in texts])
    else:
        token_lists = tokenizer.segmenter.segment_all(texts)
        segmented = iter(
            [
                SegmentedLine(text, split_tokens(tokenizer.segmenter, tokens, max_tokens))
                for text, tokens in zip(texts, token_lists, strict=True)
            ]
        )
    return [
        line if isinstance(line, SegmentedLine) else next(segmented) if line.strip() else SegmentedLine(line, ())
        for line in lines
    ]


def split_tokens(segmenter: Segmenter, tokens: Sequence[str], max_tokens: int) -> tuple[Tokens, ...]:
    """Split tokens into chunks of at most `max_tokens`: after sentence ends if possible, else between words.

    >>> from dragoman.data.segmenters import WordSegmenter
    >>> split_tokens(WordSegmenter(), "yes . the old dog sleeps .".split(), 4)
    (('yes', '.'), ('the', 'old', 'dog', 'sleeps'), ('.',))
    """
    if len(tokens) <= max_tokens:
        return (tuple(tokens),)
    chunks = [tuple(tokens[start:stop]) for start, stop in pairwise(_chunk_bounds(segmenter, tokens, max_tokens))]
    if segmenter.kind == "char":
        chunks = [_strip_spaces(chunk) for chunk in chunks]
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


def _strip_spaces(tokens: Tokens) -> Tokens:
    indices = [index for index, token in enumerate(tokens) if token != SPACE_MARK]
    return tokens[indices[0] : indices[-1] + 1] if indices else ()
