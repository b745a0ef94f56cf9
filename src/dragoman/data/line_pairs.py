"""Reading texts as lines, single texts or pairs of texts."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.core.errors import DataError
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.formats import display_name, has_fields, read_text
from dragoman.data.tokenizer import Tokenizer


@dataclass(frozen=True)
class LinePairs:
    """Two texts whose lines are translations of each other."""

    source: list[str]
    target: list[str]
    name: str = "source"  # of the source, for messages

    @property
    def reversed(self) -> LinePairs:
        """The pairs with source and target exchanged."""
        return LinePairs(self.target, self.source, "target")

    def encode(self, source: Tokenizer, target: Tokenizer) -> ParallelCorpus:
        return ParallelCorpus(source.encode(self.source, self.name), target.encode(self.target))


def read_pairs(src: str, tgt: str, src_field: str | None = None, tgt_field: str | None = None) -> LinePairs:
    """Read two texts, which must have equally many lines."""
    source = read_lines(src, src_field)
    return LinePairs(source, read_parallel_lines(tgt, len(source), src, tgt_field), src)


def read_parallel_lines(path: str, expected: int, other: str, field: str | None = None) -> list[str]:
    """Read the lines of a text, which must have as many as another text."""
    lines = read_lines(path, field)
    if len(lines) != expected:
        counts = f"{display_name(path)} has {len(lines):,} lines and {display_name(other)} has {expected:,}"
        raise DataError(f"{counts}; line i of both must belong to the same sentence")
    return lines


def read_lines(path: str, field: str | None = None) -> list[str]:
    """Read the lines of a text, whatever line breaks it has."""
    text = read_text(path, field_for(path, field)).decode("utf-8")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def field_for(path: str, field: str | None, *others: str | None) -> str | None:
    """Return the field to read from a file: None for plain text, which is an error if `others` have no fields either."""
    if field is None or has_fields(path):
        return field
    if not any(other is not None and has_fields(other) for other in others):
        raise DataError(f"{display_name(path)}: --field {field} is for .tsv and .jsonl files only")
    return None
