"""Splitting lines at whitespace, and tests of whether a text is tokenised."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dragoman.core.errors import error_at_line

SPACE_MARK = "▁"  # U+2581, stands for a space in tokens smaller than words, as in SentencePiece

SAMPLE_LINES = 5_000  # lines examined by `looks_tokenised` and `looks_unsegmented`
MIN_MARKS_PER_LINE = 0.05  # a text with fewer punctuation marks has nothing to split
MAX_MEAN_WORD_LENGTH = 6  # characters: in the scripts below words are shorter, sentences are longer
# Scripts written without spaces: Thai, Lao, Tibetan, Burmese, Khmer, Japanese kana, Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
CLOSING = "\"'”’»)]}"  # may stand between a punctuation mark and the following space
MARKS = ",!?،؟۔।"  # always end a word; a full stop may end an abbreviation, so only the last of a line counts
WIDE_MARKS = re.compile("[。、，！？｡､]")  # not followed by a space, so they may stand inside a word


def split_words(line: str) -> list[str]:
    """Split a line at spaces and TABs only. A trailing carriage return is ignored.

    >>> split_words(" no\\u00a0break \\t space")
    ['no\\xa0break', 'space']
    """
    return [word for word in line.rstrip("\r").replace("\t", " ").split(" ") if word]


def check_lines(lines: Sequence[str]) -> None:
    """Raise an error that names the line (from 1) if a string has a line break or cannot be written as UTF-8."""
    for number, line in enumerate(lines, 1):
        if "\n" in line:
            raise error_at_line("sentences", number, "contains a line break; give one sentence per string")
        try:
            line.encode()
        except UnicodeEncodeError:
            raise error_at_line(
                "sentences", number, "contains an unpaired surrogate; remove or fix the character"
            ) from None


def assign_word_indices(tokens: Iterable[tuple[bool, bool]]) -> list[int]:
    """Return the index of the word (from 0) that each token belongs to.

    Each token is given as (starts with a space, contains other characters). A token that is only a space belongs to
    the next word, or to the last word if there is none. All tokens of a line without words have index 0.

    >>> assign_word_indices([(True, True), (False, True), (True, False), (False, True), (True, False)])
    [0, 0, 1, 1, 1]
    """
    indices, words, inside = [], 0, False
    for starts_with_space, has_text in tokens:
        inside = inside and not starts_with_space
        if has_text and not inside:
            words, inside = words + 1, True
        indices.append(words - 1 if inside else words)
    return [min(index, max(words - 1, 0)) for index in indices]


def looks_tokenised(lines: Iterable[str]) -> bool:
    """Return whether punctuation is separated from words by spaces.

    A text without punctuation counts as tokenised, because there is nothing to split. A text in a script without
    spaces does not.

    >>> looks_tokenised(["he left , i think ."]), looks_tokenised(["He left, I think."]), looks_tokenised(["AA K AH N"])
    (True, False, True)
    >>> looks_tokenised(["彼 は 去っ た 。"]), looks_tokenised(["彼は去ったと思います。"])
    (True, False)
    """
    sample = _sample_evenly(list(lines), SAMPLE_LINES)
    if looks_unsegmented(sample):
        return False
    separated = [is_separate for line in sample for is_separate in _separated_marks(split_words(line))]
    return len(separated) <= MIN_MARKS_PER_LINE * len(sample) or sum(separated) * 2 > len(separated)


def looks_unsegmented(lines: Iterable[str]) -> bool:
    """Return whether a text is mostly in a script without spaces and has no spaces between its words.

    >>> [looks_unsegmented([line]) for line in ("彼は去ったと思います", "彼 は 去っ た", "he left")]
    [True, False, False]
    """
    words = [word for line in _sample_evenly(list(lines), SAMPLE_LINES) for word in split_words(line)]
    unspaced = [len(word) for word in words if UNSPACED.search(word)]
    mostly_unspaced = sum(unspaced) * 2 > sum(map(len, words))
    return mostly_unspaced and sum(unspaced) > MAX_MEAN_WORD_LENGTH * len(unspaced)


def _sample_evenly(lines: Sequence[str], size: int) -> Sequence[str]:
    """Return about `size` lines from all parts of the text, which may be sorted by length."""
    return lines[:: max(1, len(lines) // size)]


def _separated_marks(words: Sequence[str]) -> list[bool]:
    """For each word that ends in a punctuation mark, return whether the mark is already separate."""
    return [
        not any(map(str.isalnum, word))
        for position, word in enumerate(words, 1)
        if _ends_in_mark(word, last=position == len(words))
    ]


def _ends_in_mark(word: str, last: bool) -> bool:
    """Return whether a word ends in a punctuation mark or contains one that is not followed by a space."""
    bare = word.rstrip(CLOSING)
    return bare.endswith(tuple(MARKS)) or (last and bare.endswith(".")) or WIDE_MARKS.search(word) is not None
