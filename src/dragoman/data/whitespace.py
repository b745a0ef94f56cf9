"""Spaces: where the words of a line begin, and how a space is written among units that are smaller than words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.core.errors import error_at_line

SPACE_MARK = "▁"  # U+2581, which stands for a space; SentencePiece writes it so


def split_words(line: str) -> list[str]:
    """The words of a line, which ends at CR and whose words end at spaces and TABs alone, as everywhere in dragoman.

    >>> words_of(" no\\u00a0break \\t space")
    ['no\\xa0break', 'space']
    """
    return [word for word in line.rstrip("\r").replace("\t", " ").split(" ") if word]


def check_lines(lines: Sequence[str]) -> None:
    """Refuse what cannot be one line of UTF-8, naming its number (from 1)."""
    for number, line in enumerate(lines, 1):
        if "\n" in line:
            raise error_at_line("sentences", number, "contains a line break; give one sentence a string")
        try:
            line.encode()
        except UnicodeEncodeError:
            raise error_at_line(
                "sentences", number, "holds half a surrogate pair; remove or mend the character"
            ) from None


def assign_word_indices(tokens: Iterable[tuple[bool, bool]]) -> list[int]:
    """The number of the word (from 0) that each unit belongs to.

    Of each unit it is said whether it begins with a space and whether it holds anything else. A space alone belongs
    to the word after it, or to the last one if none follows. Units of a line without words all have number 0.

    >>> number_words([(True, True), (False, True), (True, False), (False, True), (True, False)])
    [0, 0, 1, 1, 1]
    """
    found, words, inside = [], 0, False
    for spaced, spelled in tokens:
        inside = inside and not spaced
        if spelled and not inside:
            words, inside = words + 1, True
        found.append(words - 1 if inside else words)
    return [min(number, max(words - 1, 0)) for number in found]
