"""Is a text tokenised? Whether its punctuation stands apart from the words, and whether it has words at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dragoman.data.whitespace import split_words

SAMPLE_LINES = 5_000  # lines looked at
MIN_MARKS_PER_LINE = (
    0.05  # punctuation marks a line; a text with fewer, such as one stripped of them, has nothing to split
)
MAX_MEAN_WORD_LENGTH = 6  # characters; words of the scripts below are shorter on average, their sentences longer
# Scripts written without spaces: Thai, Lao, Tibetan, Burmese, Khmer, the Japanese syllables, Chinese characters.
UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
CLOSING = "\"'”’»)]}"  # may come between a mark and the space after it
MARKS = ",!?،؟۔।"  # end a word wherever they are; full stops also end abbreviations, so only the last of a line counts
WIDE = re.compile("[。、，！？｡､]")  # no space follows these, so they may be inside


def looks_tokenised(lines: Iterable[str]) -> bool:
    """Whether punctuation stands apart from the words, so that the words are what is between the spaces.

    A text without punctuation is tokenised, as there is nothing to split: letters or phonemes between spaces, say. One
    in a script without spaces is not.

    >>> looks_tokenised(["he left , i think ."]), looks_tokenised(["He left, I think."]), looks_tokenised(["AA K AH N"])
    (True, False, True)
    >>> looks_tokenised(["彼 は 去っ た 。"]), looks_tokenised(["彼は去ったと思います。"])
    (True, False)
    """
    sample = _sample_evenly(list(lines), SAMPLE_LINES)
    if looks_unsegmented(sample):
        return False
    stands_apart = [apart for line in sample for apart in _marks_apart(split_words(line))]
    return len(stands_apart) <= MIN_MARKS_PER_LINE * len(sample) or sum(stands_apart) * 2 > len(stands_apart)


def looks_unsegmented(lines: Iterable[str]) -> bool:
    """Whether a text is mostly in a script without spaces and nobody has put spaces between its words.

    >>> [looks_unsegmented([line]) for line in ("彼は去ったと思います", "彼 は 去っ た", "he left")]
    [True, False, False]
    """
    words = [word for line in _sample_evenly(list(lines), SAMPLE_LINES) for word in split_words(line)]
    unspaced = [len(word) for word in words if UNSPACED.search(word)]
    mostly = sum(unspaced) * 2 > sum(map(len, words))
    return mostly and sum(unspaced) > MAX_MEAN_WORD_LENGTH * len(unspaced)


def _sample_evenly(lines: Sequence[str], most: int) -> Sequence[str]:
    """So many lines from all over the text: some texts are sorted by length."""
    return lines[:: max(1, len(lines) // most)]


def _marks_apart(words: Sequence[str]) -> list[bool]:
    """For each punctuation mark that would be split off, whether it stands apart already."""
    return [
        not any(map(str.isalnum, word))
        for place, word in enumerate(words, 1)
        if _ends_in_mark(word, place == len(words))
    ]


def _ends_in_mark(word: str, last: bool) -> bool:
    """Whether a word ends in a punctuation mark, or holds one that can be inside."""
    bare = word.rstrip(CLOSING)
    return bare.endswith(tuple(MARKS)) or (last and bare.endswith(".")) or WIDE.search(word) is not None
