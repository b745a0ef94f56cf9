"""Tokenisation and detokenisation of punctuation: `"Stop!", he said.` and `" stop ! " , he said .`

The treatment of punctuation, capitals and apostrophes follows from the vocabulary of the model, however its training
text was tokenised: a word that the model knows is not split. `looks_tokenised` tests whether a text is tokenised.
"""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dragoman.data.copied_items import Span, find_items, lower_except_items, may_be_word, split_at
from dragoman.data.scanner import UNSPACED, split_words

APOSTROPHES = "'’"
HYPHEN_TOKEN = "@-@"  # how some tokenisers write a hyphen at which they split a word
NO_SPACE_BEFORE = frozenset([*",.!?;:)]}»”’%…。、，！？", "..."])
NO_SPACE_AFTER = frozenset("([{«„“‚¿¡#$£€")
MAX_WORD_LENGTH = 100  # characters; anything longer is left as it is
NEGATIVE_NUMBER = re.compile(r"-[0-9]")
STRAIGHT_QUOTES = frozenset("\"'")  # the same character opens and closes
CLITIC = re.compile(r"['’][^\W\d_]+|n['’]t", re.IGNORECASE)  # as in dog 's, do n't
ELISION = re.compile(r"[^\W\d_]+['’]")  # as in l' ami

SAMPLE_LINES = 5_000  # lines examined by `looks_tokenised` and `looks_unsegmented`
MIN_MARKS_PER_LINE = 0.05  # a text with fewer punctuation marks has nothing to split
MAX_MEAN_WORD_LENGTH = 6  # characters: in the scripts below words are shorter, sentences are longer
CLOSING = "\"'”’»)]}"  # may stand between a punctuation mark and the following space
MARKS = ",!?،؟۔।"  # always end a word; a full stop may end an abbreviation, so only the last of a line counts
WIDE_MARKS = re.compile("[。、，！？｡､]")  # not followed by a space, so they may stand inside a word


@dataclass(frozen=True)
class PunctuationTokenizer:
    """Converts between printed text and the words of a model."""

    vocabulary: Container[str]
    lowercase: bool  # the vocabulary has no capitals
    html_escaped: bool  # the vocabulary has `&apos;` for an apostrophe, and so on

    @classmethod
    def from_vocabulary(cls, words: Iterable[str]) -> PunctuationTokenizer:
        """Create from the vocabulary of a tokenised text."""
        known = frozenset(words)
        lowercase = not any(word[:1].isupper() for word in known)
        return cls(known, lowercase, any(mark in known for mark in ("&apos;", "&apos;s", "&quot;", "&amp;")))

    def tokenize(self, line: str) -> str:
        """Convert a printed line to words separated by spaces.

        >>> tokenizer = PunctuationTokenizer.from_vocabulary(["the", "dog", "'s", "mr.", "x", "-", "y", ","])
        >>> tokenizer.tokenize("Mr. X, the dog's x-y (The DOG)!")
        "mr. x , the dog 's x - y ( the dog ) !"
        """
        line = lower_except_items(line) if self.lowercase else line
        spans = [span for span in find_items(line) if not self._knows_item(line, span)]
        outside, items = split_at(line, spans)  # addresses and code are not split
        words = list[str]()
        for text, item in zip(outside, [*items, ""], strict=True):
            words += [self._escape(part) for word in split_words(text) for part in self._split_word(word)]
            words += [item] if item else []
        return " ".join(words)

    def detokenize(self, words: str, source_line: str = "", names: Mapping[int, str] | None = None) -> str:
        """Convert words to a printed line, with a capital at the start if `source_line` has one.

        Args:
            words: words separated by spaces.
            source_line: the line that was translated.
            names: spellings of the words at some positions, such as names copied from the source with capitals.

        >>> tokenizer = PunctuationTokenizer.from_vocabulary(["the", "dog"])
        >>> tokenizer.detokenize('" stop " , said the dog ( 5 @-@ year @-@ old ) .', source_line="Halt")
        '"Stop", said the dog (5-year-old).'
        """
        tokens = [html.unescape(word) if self.html_escaped else word for word in split_words(words)]
        tokens = [(names or {}).get(position, token) for position, token in enumerate(tokens)]
        line = _join_tokens(tokens)
        if self.lowercase and next(filter(str.isalnum, source_line), "").isupper():
            position = next((i for i, letter in enumerate(line) if letter.isalnum()), 0)
            return line[:position] + line[position : position + 1].upper() + line[position + 1 :]
        return line

    def is_tokenised(self, line: str) -> bool:
        """Return whether the punctuation of a line is separated from its words. Capitals may differ if there is some.

        >>> tokenizer = PunctuationTokenizer.from_vocabulary(["the", "dog", "barks", "."])
        >>> [tokenizer.is_tokenised(line) for line in ("The dog barks .", "the dog barks.", "the dog", "The dog")]
        [True, False, True, False]
        """
        words = split_words(line)
        if not all(any(map(str.isalnum, word)) for word in words):  # punctuation as a word
            return looks_tokenised([line])
        hyphenated = (
            text.replace(f" {HYPHEN_TOKEN} ", "-").replace(" - ", "-") for text in (self.tokenize(line), line)
        )
        split, unsplit = hyphenated
        return split == " ".join(split_words(unsplit))

    def _knows(self, word: str) -> bool:
        return self._escape(word) in self.vocabulary

    def _knows_item(self, line: str, span: Span) -> bool:
        item = line[slice(*span)]
        return self._knows(item) or (may_be_word(line, span) and self._knows(item.removeprefix("--")))

    def _escape(self, word: str) -> str:
        return html.escape(word).replace("&#x27;", "&apos;") if self.html_escaped else word

    def _split_word(self, word: str) -> list[str]:
        """Split punctuation off both ends, then split at apostrophes and hyphens."""
        if len(word) > MAX_WORD_LENGTH:
            return [word]
        before, after = list[str](), list[str]()
        while word and not self._knows(word) and not word[0].isalnum() and not NEGATIVE_NUMBER.match(word):
            mark = self._leading_mark(word)
            before.append(mark)
            word = word[len(mark) :]
        while word and not self._knows(word) and not word[-1].isalnum():
            mark = self._leading_mark(word[::-1])
            after.append(mark)
            word = word[: -len(mark)]
        return [*before, *(self._split_inside(word) if word else []), *reversed(after)]

    def _leading_mark(self, word: str) -> str:
        """Return the mark that a word begins with; several equal marks, such as `...`, if they are known together."""
        run = word[: len(word) - len(word.lstrip(word[0]))]
        return run if self._knows(run) else word[0]

    def _split_inside(self, word: str) -> list[str]:
        if self._knows(word):
            return [word]
        for position in (i for i, letter in enumerate(word) if i and letter in APOSTROPHES):
            for split in (position, position + 1, position - 1):  # dog 's, l' ami, do n't
                first, second = word[:split], word[split:]
                if first and second and (self._knows(second if split <= position else first)):
                    return [first, second]
        parts = word.split("-")
        if len(parts) > 1 and all(map(self._knows, parts)):
            hyphen = HYPHEN_TOKEN if self._knows(HYPHEN_TOKEN) else "-"
            return [token for i, part in enumerate(parts) for token in ([hyphen, part] if i else [part])]
        return [word]


def _join_tokens(tokens: list[str]) -> str:
    """Join tokens with spaces where printed text has them."""
    line, attach_next, open_quotes = "", True, set[str]()
    for position, token in enumerate(tokens):
        if token == HYPHEN_TOKEN:
            line, attach_next = f"{line}-", True
            continue
        attach = attach_next or token in NO_SPACE_BEFORE or CLITIC.fullmatch(token) is not None
        attach_next = token in NO_SPACE_AFTER or ELISION.fullmatch(token) is not None
        if token == "'" and token not in open_quotes and token not in tokens[position + 1 :]:
            attach = True  # there is no closing quote: this is an apostrophe
        elif token in STRAIGHT_QUOTES:
            attach, attach_next = attach or token in open_quotes, token not in open_quotes
            open_quotes ^= {token}
        line += token if attach else f" {token}"
    return line


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
    separated = []  # for each word that ends in a punctuation mark, whether the mark is a word
    for words in map(split_words, sample):
        for position, word in enumerate(words, 1):
            bare = word.rstrip(CLOSING)
            ends_sentence = position == len(words) and bare.endswith(".")
            if bare.endswith(tuple(MARKS)) or ends_sentence or WIDE_MARKS.search(word):
                separated.append(not any(map(str.isalnum, word)))
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
