"""TSV files: their header, the columns of both sides of sentence pairs, and rows that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mode
from typing import NamedTuple

from dragoman.core.errors import DataError, shorten
from dragoman.data.formats import column_number
from dragoman.data.languages import AS_IN_FILE, Languages, language_of_name, language_of_tag

# Names of columns, apart from those of languages, by which the first line of a file is recognised as its header.
SOURCE_NAMES = frozenset(["source", "src", "input", "text", "sentence"])
TARGET_NAMES = frozenset(["target", "tgt", "trg", "translation", "reference", "ref", "output"])
OTHER_NAMES = frozenset(["id", "no", "nr", "score", "label", "lang"])
HEADER, FEW_COLUMNS, EMPTY = "header", "too few columns", "empty"


class TableRow(NamedTuple):
    """The selected cells of a row, or the reason why it is not used."""

    line: int  # from 1
    cells: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Table:
    """A TSV file."""

    name: str  # for messages
    rows: list[list[str]]
    has_header: bool  # the first row has the names of the columns

    @classmethod
    def parse(cls, text: bytes, name: str, fields: Sequence[str | None] = ()) -> Table:
        """Return the table of a text. If `fields`, which will be selected, are names, the first row is its header."""
        rows = [line.removesuffix("\r").split("\t") for line in text.decode().removesuffix("\n").split("\n")]
        if max(map(len, rows)) < 2:
            raise DataError(f"{name}: has no columns separated by tabs; for two texts, use --src and --tgt")
        has_names = any(field is not None and not field.isdecimal() for field in fields)
        return cls(name, rows, has_names or is_header(rows[0]))

    def column(self, field: str) -> int:
        """Return the index of a column, by its number from 1, or by its name in the first line."""
        if field.isdecimal():
            return column_number(field, self.name) - 1
        if field not in self.rows[0]:
            names = ", ".join(self.rows[0])
            raise DataError(f"{self.name}:1: no column {field!r:.60}; the first line has {shorten(names, 200)}")
        return self.rows[0].index(field)

    def pair_columns(
        self, src_field: str | None = None, tgt_field: str | None = None, languages: Languages = AS_IN_FILE
    ) -> tuple[int, int]:
        """Return the columns of source and target: those given, otherwise by the header, or the first two with text.

        Args:
            languages: which columns of a header to choose, if they are given and it has both.
        """
        default = self._default_columns(languages) if src_field is None or tgt_field is None else (0, 1)
        source, target = (
            column if field is None else self.column(field)
            for field, column in zip((src_field, tgt_field), default, strict=True)
        )
        if source == target:
            problem = f"column {source + 1} is both source and target"
            raise DataError(f"{self.name}: {problem}; choose two columns with --src-field and --tgt-field")
        return source, target

    def _default_columns(self, languages: Languages) -> tuple[int, int]:
        if self.has_header:
            columns = header_columns(self.rows[0], languages)
            if columns is None:
                names = shorten(", ".join(self.rows[0]), 200)
                raise DataError(f"{self.name}:1: has the columns {names}; choose two with --src-field and --tgt-field")
            return columns
        width = mode(len(row) for row in self.rows if len(row) > 1)
        regular = [row for row in self.rows if len(row) == width]
        text = [column for column in range(width) if not all(_is_number(row[column]) for row in regular)]
        return (text[0], text[1]) if len(text) > 1 else (0, 1)

    def languages(self, columns: Sequence[int]) -> Languages:
        """Return the languages by which two columns are named."""
        if not self.has_header:
            return Languages()
        names = (self.rows[0][column] if column < len(self.rows[0]) else "" for column in columns)
        return Languages(*map(language_of_name, names))

    def select(self, columns: Sequence[int]) -> Iterator[TableRow]:
        """Yield the cells of these columns of all rows, and why a row cannot be used."""
        for line, row in enumerate(self.rows, 1):
            if line == 1 and self.has_header:
                yield TableRow(line, reason=HEADER)
            elif len(row) <= max(columns):
                yield TableRow(line, reason=EMPTY if row == [""] else FEW_COLUMNS)
            else:
                cells = tuple(row[column] for column in columns)
                yield TableRow(line, cells, "" if all(map(str.strip, cells)) else EMPTY)


def is_header(cells: Sequence[str]) -> bool:
    """Return whether cells are names of columns: all are (`source`, `en`, `German`), or two are languages.

    >>> is_header(["de", "English"]), is_header(["nr", "de", "en", "url"]), is_header(["Hallo", "Hello"])
    (True, True, False)
    """
    names = [cell.strip().lower() for cell in cells]
    languages = {language for name in names if (language := language_of_name(name)) is not None}
    known = SOURCE_NAMES | TARGET_NAMES | OTHER_NAMES
    are_known = all(name in known or language_of_name(name) for name in names)
    return len(set(names)) == len(names) > 1 and (are_known or len(languages) > 1)


def column_language(name: str) -> str | None:
    """Return the code of a column's language, by its code or its English name; None for `id`, which is also a code.

    >>> column_language("de"), column_language("English"), column_language("id"), column_language("source")
    ('de', 'en', None, None)
    """
    return None if name.strip().lower() in OTHER_NAMES else language_of_name(name)


def header_columns(cells: Sequence[str], languages: Languages = AS_IN_FILE) -> tuple[int, int] | None:
    """Return the columns of source and target: of these languages, the only two languages, or source and target.

    The result is None if it is not clear.

    >>> header_columns(["id", "de", "en"]), header_columns(["id", "en"]), header_columns(["score", "tgt", "src"])
    ((1, 2), (0, 1), (2, 1))
    >>> header_columns(["de", "en", "fr"])
    >>> header_columns(["de", "en", "fr"], Languages("fra", "de"))
    (2, 0)
    """
    names = [cell.strip().lower() for cell in cells]
    codes = [language_of_name(name) for name in names]
    source, target = map(language_of_tag, languages)
    if source is not None and target is not None and {source, target} <= set(codes):
        return codes.index(source), codes.index(target)
    others = [column for column, name in enumerate(names) if name in OTHER_NAMES]
    for candidates in (
        [column for column, name in enumerate(names) if column_language(name)],
        [column for column in range(len(names)) if column not in others],
        range(len(names)),
    ):
        roles = [[column for column in candidates if names[column] in role] for role in (SOURCE_NAMES, TARGET_NAMES)]
        if [len(columns) for columns in roles] == [1, 1]:
            return roles[0][0], roles[1][0]
        if len(candidates) == 2:
            return candidates[0], candidates[1]
    return None


def _is_number(cell: str) -> bool:
    return cell.strip().isdecimal()
