"""Messages about text that a translator cannot read well: unknown tokens, or another language."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from dragoman.data.detokenize import looks_tokenised
from dragoman.data.formats import NumberedLine
from dragoman.data.languages import describe_language
from dragoman.data.letter_profiles import MAX_FOREIGN_SHARE, LineLetters, foreign_lines, line_letters
from dragoman.data.segmenters import SPACE_MARK, token_name
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.trees import parse_tree
from dragoman.data.vocabulary import UNK
from dragoman.models.text_pipeline import TranslatedSentence
from dragoman.models.translation import BaseTranslator

MAX_LISTED_LINES = 5
MAX_CHECKED_PAIRS = 1000  # of a text
CONTEXT_LINES = 256  # before a line, which say what is usual in its text


class LineList:
    """Lines with the same problem: how many, and the first ones."""

    def __init__(self, singular: str, plural: str):
        """For example "is blank" and "are blank"."""
        self.singular, self.plural = singular, plural
        self.count, self.first = 0, list[int]()

    def add(self, number: int) -> None:
        self.count += 1
        self.first += [number] if len(self.first) < MAX_LISTED_LINES else []

    def message(self, total: int) -> str:
        """Return what is wrong with these lines, of a total number.

        >>> lines = LineList("is blank", "are blank")
        >>> lines.add(3)
        >>> lines.message(9)
        'line 3 is blank'
        >>> for number in range(4, 10):
        ...     lines.add(number)
        >>> lines.message(9)
        '7 of 9 lines are blank: lines 3, 4, 5, 6, 7, ...'
        """
        if self.count == 1:
            return f"line {self.first[0]} {self.singular}"
        listed = ", ".join(f"{number:,}" for number in self.first)
        return (
            f"{self.count:,} of {total:,} lines {self.plural}: lines {listed}{', ...' * (self.count > len(self.first))}"
        )


class LanguageCheck:
    """Finds lines in another language, by the letter profiles of the training texts."""

    def __init__(self, source: Tokenizer, target: Tokenizer):
        """`source` is the tokenizer of the language in which the lines should be."""
        self.source, self.target = source, target
        self._context = deque[LineLetters](maxlen=CONTEXT_LINES)

    def foreign(self, lines: Iterable[NumberedLine]) -> list[int]:
        """Return the numbers of lines in another language."""
        if self.source.letters is None or self.source.format == TREE:
            return []
        judged = [
            (line.number, letters)
            for line in lines
            if (letters := line_letters(line.text, self.source.letters, self.target.letters)) is not None
        ]
        self._context.extend(letters for _, letters in judged)
        context = list(self._context) if len(judged) <= CONTEXT_LINES else [letters for _, letters in judged]
        are_foreign = foreign_lines(context, self.source.letters.limit)[len(context) - len(judged) :]
        return [number for (number, _), is_foreign in zip(judged, are_foreign, strict=True) if is_foreign]


def find_foreign(texts: Iterable[str], source: Tokenizer, target: Tokenizer) -> list[int]:
    """Return the numbers of texts, from 1, that are in another language than the source."""
    return LanguageCheck(source, target).foreign([NumberedLine(*text) for text in enumerate(texts, 1)])


class InputCheck:
    """Collects what is wrong with the lines of a text."""

    def __init__(self, model: BaseTranslator):
        self.tokenizer, self._language_check = model.source, LanguageCheck(model.source, model.target)
        language, unit = describe_role(model.source, "from"), token_name(model.source.segmenter)
        consist = f"mostly of {unit}s that do not occur in the training text"
        self._foreign = LineList(f"does not look like {language}", f"do not look like {language}")
        self._unknown = LineList(f"consists {consist}", f"consist {consist}")
        self._lines = self._reported_foreign = 0

    def add(self, lines: Sequence[NumberedLine], sentences: Sequence[Sequence[TranslatedSentence]]) -> Iterator[str]:
        """Check lines, and yield a message about the first ones of each kind."""
        self._lines, known = self._lines + len(lines), list[NumberedLine]()
        for line, parts in zip(lines, sentences, strict=True):
            message = describe_unknown(self.tokenizer, parts)
            if message is None:
                known.append(line)
                continue
            self._unknown.add(line.number)
            if self._unknown.count == 1:
                yield f"line {line.number}: {message}"
        for number in self._language_check.foreign(known):
            self._foreign.add(number)
        if self._foreign.count and not self._reported_foreign:
            self._reported_foreign = self._foreign.count
            yield self._foreign.message(self._lines)

    def summary(self) -> Iterator[str]:
        """Yield messages about all lines, if there are more than those that were reported."""
        if self._foreign.count > self._reported_foreign:
            yield self._foreign.message(self._lines)
        if self._unknown.count > 1:
            yield self._unknown.message(self._lines)


def input_warning(model: BaseTranslator, sentences: Sequence[TranslatedSentence]) -> str | None:
    """Return a message about a text that is mostly unknown to the translator, or in another language; None if neither."""
    if message := describe_unknown(model.source, sentences):
        return message
    text, language = " ".join(sentence.text for sentence in sentences), describe_role(model.source, "from")
    if find_foreign([text], model.source, model.target):
        return f"this does not look like {language}"
    foreign = find_foreign([sentence.text for sentence in sentences], model.source, model.target)
    if not foreign:
        return None
    look = "does not look" if len(foreign) == 1 else "do not look"
    return f"{len(foreign):,} of {len(sentences):,} sentences {look} like {language}"


def pair_warnings(
    source: Tokenizer, target: Tokenizer, texts: Sequence[Sequence[str]], names: Sequence[str]
) -> Iterator[str]:
    """Yield warnings about sentence pairs that are not in the languages of a translator.

    `texts` are the source and the target of the pairs, and `names` those of their files.
    """
    texts = [text[:: max(1, len(text) // MAX_CHECKED_PAIRS)] for text in texts]
    foreign = [len(find_foreign(texts[0], source, target)), len(find_foreign(texts[1], target, source))]
    exchanged = [len(find_foreign(texts[0], target, source)), len(find_foreign(texts[1], source, target))]
    are_foreign = [count > MAX_FOREIGN_SHARE * len(text) for count, text in zip(foreign, texts, strict=True)]
    if all(are_foreign) and exchanged[0] < foreign[0] and exchanged[1] < foreign[1]:
        yield f"{names[0]} is in the target language and {names[1]} in the source language; exchange the two texts"
        return
    roles = describe_role(source, "from"), describe_role(target, "to")
    for name, text, count, is_foreign, role in zip(names, texts, foreign, are_foreign, roles, strict=True):
        if is_foreign:
            yield f"{name}: {100 * count / len(text):.0f}% of the lines do not look like {role}"


def describe_unknown(tokenizer: Tokenizer, sentences: Sequence[TranslatedSentence]) -> str | None:
    """Return a message about a line if it consists mostly of unknown tokens, or if it is copied for this reason."""
    read = " ".join(sentence.segmented.text for sentence in sentences)
    reason = _probable_reason(tokenizer, read)
    copied = sum(sentence.segmented.is_copied and bool(sentence.segmented.chunks) for sentence in sentences)
    if copied == len(sentences):
        return f"most of its letters do not occur in the training text, so it is copied; {reason}"
    if copied:
        consist = "consist mostly of letters that do not occur in the training text and are copied"
        return f"{copied:,} of {len(sentences):,} sentences {consist}; {reason}"
    tokens = [token for sentence in sentences for token in sentence.segmented.tokens]
    if tokenizer.format == TREE and sentences[0].segmented.chunks:
        tokens = parse_tree(read).words
        reason = _probable_reason(tokenizer, " ".join(tokens))
    if tokenizer.segmenter.kind != "char":
        tokens = [token for token in tokens if token != SPACE_MARK]  # before an unknown piece
    unknown = int((tokenizer.vocab.ids(tokens) == UNK).sum())
    if 2 * unknown <= len(tokens):
        return None
    return (
        f"{unknown:,} of {len(tokens):,} {token_name(tokenizer.segmenter)}s do not occur in the training text; {reason}"
    )


def describe_role(tokenizer: Tokenizer, direction: str) -> str:
    """Describe the language of a side of a translator, which translates "from" or "to" it."""
    language = describe_language(tokenizer.language)
    if language is None:
        return f"the language that the model translates {direction}"
    return f"{language}, which the model translates {direction}"


def _probable_reason(tokenizer: Tokenizer, line: str) -> str:
    """Describe how the training text was written, as far as this line is written differently."""
    is_lowercase = line != line.lower() and all(word == word.lower() for word in tokenizer.vocab.tokens)
    is_tokenised = tokenizer.tokenised and not looks_tokenised([line])
    form = ", ".join(name for name, holds in (("lower-cased", is_lowercase), ("tokenised", is_tokenised)) if holds)
    return f"the model was trained on {form} text" if form else f"is this {describe_role(tokenizer, 'from')}?"
