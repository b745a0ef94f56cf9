"""Text as it is printed, and as the words that a model reads: `"Stop!", he said.` and `" stop ! " , he said .`

What becomes of punctuation, capitals and apostrophes is learned from the words that the model knows, whoever cut its
training text: a word that it knows as it stands stays whole.
"""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from dragoman.data.words import split_words

APOSTROPHES = "'’"
HYPHEN_TOKEN = "@-@"  # how some tokenisers write a hyphen that they have cut at
NO_SPACE_BEFORE = frozenset([*",.!?;:)]}»”’%…。、，！？", "..."])
NO_SPACE_AFTER = frozenset("([{«„“‚¿¡#$£€")
MAX_WORD_LENGTH = 100  # characters; what is longer is none, and stays as it is
NUMBER = re.compile(r"-[0-9]")
STRAIGHT_QUOTES = frozenset("\"'")  # quotes that open and close alike
# A sentence ends at a mark, whatever closes after it, and a space before what can begin one.
END_OF_SENTENCE = re.compile(r"(?<=[.!?…])([\"'”’»)\]]*)(\s+)(?=[\"'“„«(¿¡]*[^\W_a-zß-öø-ÿ])|(?<=[。！？])(\s*)(?=\S)")
CLITIC = re.compile(r"['’][^\W\d_]+|n['’]t", re.IGNORECASE)  # of dog 's, do n't
ELIDED = re.compile(r"[^\W\d_]+['’]")  # of l' ami
LINE_ENDS = re.compile(r"()(?<!\s)(\s*\n\s*)()")  # from the first space on: long gaps are read once
ABBREVIATION = re.compile(
    r"(?:^|\s)(?:\w|\w\.\w|[Mm]rs?|[Mm]s|[DdPp]r|[Pp]rof|[Ss]t|[Nn]r|[Nn]o|[Vv]gl|bzw|usw|etc|vs|ca)\.$"
)


@dataclass(frozen=True)
class PunctuationTokenizer:
    """How the words that a model knows are written."""

    vocabulary: Container[str]
    lowercase: bool  # no capitals
    html_escaped: bool  # `&apos;` for an apostrophe, and so on

    @classmethod
    def from_vocabulary(cls, words: Iterable[str]) -> PunctuationTokenizer:
        """By the vocabulary of a tokenised text."""
        listed = frozenset(words)
        lower = not any(word[:1].isupper() for word in listed)
        return cls(listed, lower, any(mark in listed for mark in ("&apos;", "&apos;s", "&quot;", "&amp;")))

    def tokenize(self, line: str) -> str:
        """A printed line as words.

        >>> spelling = Spelling.of(["the", "dog", "'s", "mr.", "x", "-", "y", ","])
        >>> spelling.words("Mr. X, the dog's x-y (The DOG)!")
        "mr. x , the dog 's x - y ( the dog ) !"
        """
        cased = line.lower() if self.lowercase else line
        return " ".join(self._escape(part) for word in split_words(cased) for part in self._split_word(word))

    def detokenize(self, words: str, source_line: str = "", names: Mapping[int, str] | None = None) -> str:
        """Words as a printed line; it begins with a capital if the line that it is like does.

        # names: how the words of some places are to be spelled, such as names copied from a line with capitals

        >>> Spelling.of(["the", "dog"]).printed('" stop " , said the dog ( 5 @-@ year @-@ old ) .', like="Halt")
        '"Stop", said the dog (5-year-old).'
        """
        tokens = [html.unescape(word) if self.html_escaped else word for word in split_words(words)]
        tokens = [(names or {}).get(place, token) for place, token in enumerate(tokens)]
        line = _join_tokens(tokens)
        return _capitalise(line) if self.lowercase and _starts_with_capital(source_line) else line

    def _knows(self, word: str) -> bool:
        return self._escape(word) in self.vocabulary

    def _escape(self, word: str) -> str:
        return html.escape(word).replace("&#x27;", "&apos;") if self.html_escaped else word

    def _split_word(self, word: str) -> list[str]:
        """What is between spaces as words: marks off its ends, then at apostrophes and hyphens."""
        if len(word) > MAX_WORD_LENGTH:
            return [word]
        before, after = list[str](), list[str]()
        while word and not self._knows(word) and not word[0].isalnum() and not NUMBER.match(word):
            mark = self._leading_mark(word)
            before.append(mark)
            word = word[len(mark) :]
        while word and not self._knows(word) and not word[-1].isalnum():
            mark = self._leading_mark(word[::-1])
            after.append(mark)
            word = word[: -len(mark)]
        return [*before, *(self._split_inside(word) if word else []), *reversed(after)]

    def _leading_mark(self, word: str) -> str:
        """The mark that a word begins with; several alike, such as `...`, if they are known together."""
        run = word[: len(word) - len(word.lstrip(word[0]))]
        return run if self._knows(run) else word[0]

    def _split_inside(self, word: str) -> list[str]:
        if self._knows(word):
            return [word]
        for place in (at for at, letter in enumerate(word) if at and letter in APOSTROPHES):
            for cut in (place, place + 1, place - 1):  # dog 's, l' ami, do n't
                one, other = word[:cut], word[cut:]
                if one and other and (self._knows(other if cut <= place else one)):
                    return [one, other]
        parts = word.split("-")
        if len(parts) > 1 and all(map(self._knows, parts)):
            hyphen = HYPHEN_TOKEN if self._knows(HYPHEN_TOKEN) else "-"
            return [part for number, part in enumerate(parts) for part in ([hyphen] if number else []) + [part]]
        return [word]


def split_sentences(text: str) -> list[tuple[str, str]]:
    """The sentences of a text, each with the space that comes after it: joined, they are the text.

    >>> sentences("Mr. X left. Why? It's late.\\n\\nGood night")
    [('Mr. X left.', ' '), ('Why?', ' '), ("It's late.", '\\n\\n'), ('Good night', '')]
    """
    body = text.strip()
    if not body:
        return [("", text)] if text else []
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    found: list[tuple[str, str]] = [("", before)] if before else []
    for paragraph, gap in _split_at(body, LINE_ENDS):
        pending = ""
        for one, space in _split_at(paragraph, END_OF_SENTENCE):
            if ABBREVIATION.search(one) and space:
                pending += one + space
            else:
                found.append((pending + one, space))
                pending = ""
        if pending:
            found.append((pending.rstrip(), pending[len(pending.rstrip()) :]))
        found[-1] = (found[-1][0], found[-1][1] + gap)
    found[-1] = (found[-1][0], found[-1][1] + after)
    return found


def _split_at(text: str, at: re.Pattern[str]) -> list[tuple[str, str]]:
    """A text in parts, each with the space after it."""
    found, start = [], 0
    for match in at.finditer(text):
        closing, space = match[1] or "", match[2] or match[3] or ""
        found.append((text[start : match.start()] + closing, space))
        start = match.end()
    return [*found, (text[start:], "")] if start < len(text) or not found else found


def _join_tokens(tokens: list[str]) -> str:
    """Words with spaces where there are some in print."""
    line, glue, opened = "", True, set[str]()
    for place, token in enumerate(tokens):
        if token == HYPHEN_TOKEN:
            line, glue = f"{line}-", True
            continue
        attached = glue or token in NO_SPACE_BEFORE or CLITIC.fullmatch(token) is not None
        glue = token in NO_SPACE_AFTER or ELIDED.fullmatch(token) is not None
        if token == "'" and token not in opened and token not in tokens[place + 1 :]:
            attached = True  # nothing closes it: an apostrophe
        elif token in STRAIGHT_QUOTES:
            attached, glue = attached or token in opened, token not in opened
            opened ^= {token}
        line += token if attached else f" {token}"
    return line


def _starts_with_capital(line: str) -> bool:
    first = next((letter for letter in line if letter.isalnum()), "")
    return first.isupper()


def _capitalise(line: str) -> str:
    place = next((at for at, letter in enumerate(line) if letter.isalnum()), 0)
    return line[:place] + line[place : place + 1].upper() + line[place + 1 :]
