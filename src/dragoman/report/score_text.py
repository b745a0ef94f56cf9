"""Scores of a text as `dragoman score` writes them, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.core.bounded_cache import BoundedCache
from dragoman.evaluation.surprisal import surprisal_table
from dragoman.report.language_models import sentence_columns, sentence_scores, word_scores

if TYPE_CHECKING:
    from dragoman.models.score_blocks import Block, Line, ModelInputs

CACHE_BYTES = 256 << 20  # of scores of earlier lines, about
OBJECT_BYTES = 300  # of a line and its scores without their text, about

Body = Callable[["Block"], str]  # the scores of a block as text


@dataclass(frozen=True)
class ScoreFormat:
    """What is written of the scores: those of lines or, in rows, those of words or tokens."""

    base: float = 1.0  # natural log of the base of logarithms
    has_rows: bool = False
    by_token: bool = False

    def header(self, names: Sequence[str]) -> str:
        """Return the first line, which has the names of the models; nothing for a single one."""
        if len(names) == 1:
            return ""
        return "\t".join(["word", *names] if self.has_rows else names) + "\n"

    def body(self, inputs: ModelInputs) -> str:
        """Return the scores of a block. The rows of sentences are separated by empty lines."""
        if len(inputs) > 1:
            if not self.has_rows:
                return sentence_columns(inputs, self.base, is_terminal=False).partition("\n")[2] + "\n"
            from dragoman.report.surprisal import surprisal_tsv

            return surprisal_tsv(surprisal_table(inputs, by_token=self.by_token)).partition("\n")[2] + "\n"
        [(model, corpus)] = inputs.values()
        if self.has_rows:
            return word_scores(model, corpus, self.base, by_token=self.by_token) + "\n"
        return sentence_scores(model, corpus, self.base) + "\n"

    def texts(self, blocks: Iterable[Block], body: Body, names: Sequence[str], *, is_start: bool) -> Iterator[str]:
        """Yield the scores of blocks. Joined, they are the output for the whole text.

        Args:
            blocks: the lines.
            body: returns the scores of a block.
            names: those of the models.
            is_start: whether the first block begins the text.
        """
        for block in blocks:
            separator = "\n" if self.has_rows else ""
            yield (self.header(names) if is_start else separator) + body(block)
            is_start = False


class DuplicateScores:
    """Scores equal lines once. It is for scores of lines, not for rows."""

    def __init__(self, body: Body, cache_bytes: int = CACHE_BYTES):
        """
        Args:
            body: returns the scores of lines that are new.
            cache_bytes: about how much is kept of earlier lines.
        """
        self.score = body
        self.lines = self.scored_lines = 0  # so far
        self._cache = BoundedCache["Line", str](cache_bytes, lambda line, score: OBJECT_BYTES + _length(line))

    def body(self, block: Block) -> str:
        """Return the scores of a block."""
        distinct = dict.fromkeys(block)
        known = {line: score for line in distinct if (score := self._cache.get(line)) is not None}
        new = [line for line in distinct if line not in known]
        for line, score in zip(new, self.score(new).splitlines() if new else [], strict=True):
            known[line] = score
            self._cache.add(line, score)
        self.lines += len(block)
        self.scored_lines += len(new)
        return "".join(f"{known[line]}\n" for line in block)

    def summary(self) -> str:
        """Return a message about how many lines were scored."""
        repeated = self.lines - self.scored_lines
        return f"{self.lines:,} lines, {repeated:,} of them equal to an earlier one and not scored again"


def _length(line: Line) -> int:
    return len(line) if isinstance(line, bytes) else sum(map(len, line))
