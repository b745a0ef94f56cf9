"""Features of the context, and the small notation they are written in.

An *atom* is a table from words to values, applied to the word so many places back: `word1` is the identity of e_{t-1},
`class2` the class of e_{t-2}, `suffix1` the common ending of e_{t-1}. A *feature* is one atom, or two to four joined by
`+`: `word1+word2` is on for one pair of words and no other. `bag` is every earlier word of the sentence, as often as it
came: the sum of their one-hot vectors. Presets stand for several features: `5-gram`, `words-4`.

Two decorators define more:

>>> @atom("capital")
... def capital(word):
...     return "yes" if word[0].isupper() else None
>>> @feature("question")
... def question(words):
...     return ["begins with " + words[0]] if words and words[0] in ("who", "what") else []
>>> [one.name for one in parse(["capital1+word2", "question"])]
['capital1+word2', 'question']
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, SPECIALS, Vocab

FEATURES_VARIABLE = "DRAGOMAN_FEATURES"  # names a Python file that defines features
MAX_ATOMS = 4
MAX_OFFSET = 99  # places back
MAX_SHOWN_CHARACTERS = 200  # characters of the words that a message shows
BAG = "bag"
BUILT_IN = ("word", "class", "suffix")
HOW_TO_DEFINE = (
    f'define it in a Python file with @dragoman.atom("name") or @dragoman.feature("name"), and name that file in the '
    f"environment variable {FEATURES_VARIABLE}, or to train with --features-from"
)

AtomFunction = Callable[[str], object]  # a word's value: anything that prints, or None
FeatureFunction = Callable[[list[str]], Iterable[str] | None]  # the words before -> the names of what is on
A = TypeVar("A", bound=AtomFunction)
F = TypeVar("F", bound=FeatureFunction)

CUSTOM_ATOMS: dict[str, AtomFunction] = {}  # defined by users
CUSTOM_FEATURES: dict[str, FeatureFunction] = {}


class FeatureOccurrences(NamedTuple):
    """Where a feature is on: at which prediction, which of its instances, and how strongly (x_j)."""

    prediction: NDArray[np.int64]  # (occurrences,)
    key: NDArray[np.uint64]  # (occurrences,)
    value: NDArray[np.float64]  # (occurrences,)


class FeatureTemplate(Protocol):
    """Something about the context that may help to predict the next word."""

    @property
    def name(self) -> str:
        """How it is written."""
        ...

    @property
    def context_length(self) -> int | None:
        """How many words back it looks; None: to the beginning of the sentence."""
        ...

    @property
    def is_unigram(self) -> bool:
        """Whether it has about as many instances as there are words."""
        ...

    def extract(self, history: WordHistories, tables: Mapping[str, ValueTable], vocab: Vocab) -> FeatureOccurrences: ...

    def describe(self, history: WordHistories, tables: Mapping[str, ValueTable], vocab: Vocab) -> list[str]:
        """The occurrences of one prediction as a person reads them, in the same order."""
        ...


# -- the kinds of features -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Atom:
    """The value that a table has for the word so many places back."""

    table: str
    offset: int

    @property
    def name(self) -> str:
        return f"{self.table}{self.offset}"

    def values(self, history: WordHistories, tables: Mapping[str, ValueTable]) -> NDArray[np.int64]:
        """The number of the value at each prediction; 0 where there is none.  # (predictions,)"""
        words = history.words_at(self.offset)
        return np.where(words == NO_WORD, 0, tables[self.table].value_ids[words])


@dataclass(frozen=True)
class Conjunction:
    """One to four atoms, all at once: a feature for each combination of their values."""

    atoms: tuple[Atom, ...]

    @property
    def name(self) -> str:
        return "+".join(atom.name for atom in self.atoms)

    @property
    def context_length(self) -> int:
        return max(atom.offset for atom in self.atoms)

    @property
    def is_unigram(self) -> bool:
        return len(self.atoms) == 1

    def extract(self, history: WordHistories, tables: Mapping[str, ValueTable], vocab: Vocab) -> FeatureOccurrences:
        values = [atom.values(history, tables) for atom in self.atoms]
        there = np.flatnonzero(np.all(values, axis=0))  # 0 is no value
        key = np.full(len(there), hash_name(self.name), np.uint64)
        for value in values:
            key = combine_hashes(key, value[there])
        return FeatureOccurrences(there, key, np.ones(len(there)))

    def describe(self, history: WordHistories, tables: Mapping[str, ValueTable], vocab: Vocab) -> list[str]:
        values = [int(atom.values(history, tables)[0]) for atom in self.atoms]
        if not all(values):
            return []
        said = [tables[atom.table].names[value] for atom, value in zip(self.atoms, values, strict=True)]
        return [f"{self.name}={'+'.join(said)}"]


@dataclass(frozen=True)
class BagOfWords:
    """Every earlier word of the sentence, as often as it came."""

    name: str = BAG
    context_length: None = None
    is_unigram: bool = True

    def extract(self, history: WordHistories, tables: Mapping[str, ValueTable], vocab: Vocab) -> FeatureOccurrences:
        sizes = history.end - history.begin
        prediction = np.repeat(np.arange(len(history)), sizes)
        starts = np.cumsum(sizes) - sizes
        words = history.ids[np.arange(sizes.sum()) + np.repeat(history.begin - starts, sizes)]
        said = words > END  # `<s>` is no word
        packed = prediction[said] * len(vocab) + words[said]
        distinct, counts = np.unique(packed, return_counts=True)
        prediction, word = np.divmod(distinct, len(vocab))
        return FeatureOccurrences(
            prediction, combine_hashes(np.full(len(word), hash_name(self.name)), word), counts.astype(float)
        )

    def describe(self, history: WordHistories, tables: Mapping[str, ValueTable], vocab: Vocab) -> list[str]:
        words = history.words_before(0)
        return [f"{BAG}: {vocab.tokens[word]}" for word in np.unique(words[words > END])]


@dataclass(frozen=True)
class CustomFeature:
    """A feature that a user defined: each name its function returns is on, as often as it is returned."""

    name: str
    context_length: None = None
    is_unigram: bool = False

    def extract(self, history: WordHistories, tables: Mapping[str, ValueTable], vocab: Vocab) -> FeatureOccurrences:
        found = [self._names(history, prediction, vocab) for prediction in range(len(history))]
        prediction = np.repeat(np.arange(len(history)), [len(names) for names in found])
        numbers = np.array([hash_name(name) for names in found for name in names], np.uint64)
        key = combine_hashes(np.full(len(numbers), hash_name(self.name)), numbers)
        return FeatureOccurrences(
            prediction, key, np.array([count for names in found for count in names.values()], float)
        )

    def describe(self, history: WordHistories, tables: Mapping[str, ValueTable], vocab: Vocab) -> list[str]:
        return [f"{self.name}: {name}" for name in self._names(history, 0, vocab)]

    def _names(self, history: WordHistories, prediction: int, vocab: Vocab) -> Counter[str]:
        words = history.words_before(prediction)
        said = [vocab.tokens[word] for word in words[words > END].tolist()]
        return custom_feature_names(self.name, said)


# -- numbers ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 20)
def hash_name(name: str) -> np.uint64:
    """64 bits that stand for a name, the same in every process."""
    return np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"))


def combine_hashes(keys: NDArray[np.uint64], values: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Keys that depend on the keys before and on one more value (the finaliser of splitmix64)."""
    x = keys + (values.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


# -- the notation ----------------------------------------------------------------------------------------------------


def _ngram(order: int) -> list[str]:
    """All context lengths of an n-gram model: word1, word1+word2, ..."""
    atoms = [f"word{back}" for back in range(1, order)]
    return ["+".join(atoms[:length]) for length in range(1, order)]


PRESETS = {
    **{f"{order}-gram": _ngram(order) for order in range(2, MAX_ATOMS + 2)},
    **{f"words-{count}": [f"word{back}" for back in range(1, count + 1)] for count in range(1, 10)},
}


def parse_features(notation: str | Sequence[str], known: Collection[str] = ()) -> tuple[FeatureTemplate, ...]:
    """The features that are meant; a string is split at commas. `known` are atoms besides those that are defined.

    >>> [feature.name for feature in parse("3-gram, word2+class1, bag")]
    ['word1', 'word1+word2', 'word2+class1', 'bag']
    """
    written = notation.split(",") if isinstance(notation, str) else notation
    names = [name for part in written for name in PRESETS.get(part.strip(), [part.strip()])]
    if not names:
        raise DataError("no features; give some, such as 5-gram or word1,word2,class1")
    return tuple(_feature(name, known) for name in dict.fromkeys(names))


def _feature(name: str, known: Collection[str]) -> FeatureTemplate:
    if name == BAG:
        return BagOfWords()
    if name in CUSTOM_FEATURES:
        return CustomFeature(name)
    parts = name.split("+")
    if len(parts) > MAX_ATOMS:
        raise DataError(f"feature {name!r}: joins {len(parts)} atoms; up to {MAX_ATOMS} can be joined")
    if len(set(parts)) < len(parts):
        raise DataError(f"feature {name!r}: has an atom twice; remove one of the two")
    return Conjunction(tuple(_atom(part, name, known) for part in parts))


def _atom(text: str, whole: str, known: Collection[str]) -> Atom:
    match = re.fullmatch(r"([a-z][a-z_-]*?)(\d+)", text)
    if match is None:
        raise DataError(f"feature {whole!r}: {text!r} {_unknown(text)}")
    table, back = match[1], int(match[2])
    if not 1 <= back <= MAX_OFFSET:
        raise DataError(f"feature {whole!r}: looks {back} words back; from 1 to {MAX_OFFSET} can be")
    if table not in (*BUILT_IN, *CUSTOM_ATOMS, *known):
        raise DataError(f"feature {whole!r}: {table!r} {_unknown(table)}")
    return Atom(table, back)


def _unknown(name: str) -> str:
    """What to do about a name that means nothing."""
    known = [*BUILT_IN, *CUSTOM_ATOMS, BAG, *CUSTOM_FEATURES, *PRESETS]
    near = difflib.get_close_matches(name.rstrip("0123456789"), known, 1) or difflib.get_close_matches(name, known, 1)
    if near:
        example = f"{near[0]}1" if near[0] in (*BUILT_IN, *CUSTOM_ATOMS) else near[0]
        return f"is not known; did you mean {example}? Or {HOW_TO_DEFINE}"
    return f"is not known; known are {', '.join(known)}. Or {HOW_TO_DEFINE}"


def distinct_atoms(features: Sequence[FeatureTemplate]) -> list[Atom]:
    """One atom for each table that the features look into."""
    every = [atom for feature in features if isinstance(feature, Conjunction) for atom in feature.atoms]
    return list({atom.table: atom for atom in every}.values())


# -- defining more ---------------------------------------------------------------------------------------------------


def atom(name: str) -> Callable[[A], A]:
    """Define an atom: a function from a word to its value, or None; `name` and a number then say which word.

    >>> @atom("vowels")
    ... def vowels(word):
    ...     return sum(letter in "aeiou" for letter in word)
    >>> ATOMS.pop("vowels")("tree")  # now, `vowels1` would be a feature of the previous word
    2
    """
    _check_name(name)

    def define(function: A) -> A:
        CUSTOM_ATOMS[name] = function
        return function

    return define


def feature(name: str) -> Callable[[F], F]:
    """Define a feature: a function from the list of words before to the names of what is on; None: nothing is.

    It must depend on these words alone. A word that the model does not know is `<unk>`.

    >>> @feature("question")
    ... def question(words):
    ...     return ["question"] if words[:1] == ["who"] else None
    >>> FEATURES.pop("question")(["who", "is"])
    ['question']
    """
    _check_name(name)

    def define(function: F) -> F:
        CUSTOM_FEATURES[name] = function
        return function

    return define


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z_-]*", name):
        raise DataError(f"feature {name!r}: names are of small letters, - and _, such as capital")
    if name in (*BUILT_IN, BAG):
        raise DataError(f"feature {name!r}: is built in; choose another name")


def load_feature_file(path: str | Path) -> None:
    """Run a user's Python file, whose decorators define features. Only ever because the user named it."""
    spec = importlib.util.spec_from_file_location(f"dragoman_features_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise DataError(f"{path}: not a Python file; features are defined in a file whose name ends in .py")
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; name a Python file that defines features") from None
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:  # whatever a user's file may raise
        raise DataError(f"{path}: cannot be run ({_one_line(error)}); mend the file") from error


def load_environment_features() -> None:
    """The same for the file that the environment names, if it names one."""
    if path := os.environ.get(FEATURES_VARIABLE):
        load_feature_file(path)


# -- asking what users defined ---------------------------------------------------------------------------------------


def custom_atom_value(name: str, word: str) -> str | None:
    """What a user's atom says of a word; None is no value."""
    with _user_code(name, word):
        value = CUSTOM_ATOMS[name](word)
        return None if value is None else _name(value)


def custom_feature_names(name: str, words: list[str]) -> Counter[str]:
    """What a user's feature says is on after these words, and how often it says so."""
    with _user_code(name, words):
        found = CUSTOM_FEATURES[name](words.copy())  # which the function may do with as it likes
        if not isinstance(found, str | bytes):
            return Counter(map(_name, found)) if found is not None else Counter()
    # Each of its letters would be a name, which is hardly what was meant.
    raise DataError(f"{_describe_call(name, words)}: returned {found!r}, which is no list of names; return [{found!r}]")


@contextmanager
def _user_code(name: str, argument: str | list[str]) -> Iterator[None]:
    """Tell what goes wrong inside a user's function as what it is: not ours, but the user's to mend."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise DataError(f"{_describe_call(name, argument)}: failed ({_one_line(error)}); mend its function") from error


def _name(value: object) -> str:
    """A value as text that can be written into a file: half a character cannot, and is an error here."""
    text = str(value)
    text.encode()
    return text


def _describe_call(name: str, argument: str | list[str]) -> str:
    """Which function was called with what; of many words, the last."""
    said = repr(argument)
    return f"feature {name!r}, called with {said if len(said) <= MAX_SHOWN_CHARACTERS else '...' + said[-MAX_SHOWN_CHARACTERS:]}"


def _one_line(error: BaseException) -> str:
    """An error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


NO_WORD = -1  # the number of a place before the sentence


@dataclass(frozen=True)
class WordHistories:
    """For each prediction, the stretch of a flat array that holds the words before it, `<s>` first.

    Features are computed from this view alone, so a text and the states of the fold cannot differ.
    """

    ids: NDArray[Any]  # (places,) word numbers, or NOTHING
    begin: NDArray[np.int64]  # (predictions,) where each stretch begins
    end: NDArray[np.int64]  # (predictions,) where it ends: one past the word before

    @classmethod
    def from_corpus(cls, corpus: Corpus) -> WordHistories:
        """One prediction for every token."""
        sizes = np.diff(corpus.token_offsets)
        sentence = np.repeat(np.arange(corpus.num_sentences), sizes)
        last = np.arange(corpus.num_tokens) + sentence + 1  # a sentence and its `<s>` come before
        first = np.repeat(corpus.token_offsets[:-1] + np.arange(corpus.num_sentences), sizes)
        return cls(corpus.ids_with_boundaries(starts=1), first, last)

    @classmethod
    def from_rows(cls, rows: NDArray[Any]) -> WordHistories:
        """One prediction for every row of words.  # rows: (rows, words)"""
        count, width = rows.shape
        first = np.arange(count) * width
        return cls(rows.ravel(), first, first + width)

    def __len__(self) -> int:
        return len(self.begin)

    def words_at(self, places: int) -> NDArray[np.int64]:
        """The word so many places back, or NOTHING.  # (predictions,)"""
        at = self.end - places
        inside = at >= self.begin
        return np.where(inside, self.ids[np.where(inside, at, 0)], NO_WORD).astype(np.int64)

    def words_before(self, prediction: int) -> NDArray[Any]:
        """All words before one prediction, `<s>` first."""
        return self.ids[self.begin[prediction] : self.end[prediction]]


MAX_SUFFIX_LENGTH = 4  # letters


@dataclass(frozen=True)
class ValueTable:
    """The value of each word, and what the values are called. Value 0 is none: the feature is off."""

    value_ids: NDArray[np.int32]  # (|V|,)
    names: tuple[str, ...]  # (values,) the first stands for none


def identity_table(vocab: Vocab) -> ValueTable:
    """Each word its own value, `<s>` and `<unk>` too."""
    return ValueTable(np.arange(1, len(vocab) + 1, dtype=np.int32), ("", *vocab.tokens))


def function_table(vocab: Vocab, function: Callable[[str], object]) -> ValueTable:
    """What a function says of each word; None is no value. `<s>`, `</s>` and `<unk>` have none.

    >>> values = by_function(Vocab([*SPECIALS, "Rome", "is", "far"]), lambda word: len(word) if word != "is" else None)
    >>> values.number.tolist(), values.names
    ([0, 0, 0, 1, 0, 2], ('', '4', '3'))
    """
    return _numbered([None] * len(SPECIALS) + [function(word) for word in vocab.tokens[len(SPECIALS) :]])


def class_table(vocab: Vocab, classes: Mapping[str, str] | NDArray[np.integer]) -> ValueTable:
    """The class of each word. A word without a class is a class of its own, and so are `<s>`, `</s>` and `<unk>`."""
    if isinstance(classes, Mapping):
        given: list[str | None] = [classes.get(word) for word in vocab.tokens]
    else:
        if classes.shape != (len(vocab),):
            raise DataError(f"{len(classes)} classes for {len(vocab)} words; give one for each entry of the vocabulary")
        given = [str(number) for number in classes.tolist()]
    given[: len(SPECIALS)] = [None] * len(SPECIALS)
    # A class may be called like a word: what tells the two apart is cut off the names again.
    marked = [f"w{word}" if name is None else f"c{name}" for word, name in zip(vocab.tokens, given, strict=True)]
    values = _numbered(marked)
    return ValueTable(values.value_ids, ("", *(name[1:] for name in values.names[1:])))


def suffix_table(vocab: Vocab, types: int) -> ValueTable:
    """The longest ending of 1 to 4 letters that at least so many of the vocabulary's words share.

    >>> values = by_suffix(Vocab([*SPECIALS, "singing", "ringing", "rings", "sings", "42"]), types=2)
    >>> [values.names[number] for number in values.number[3:]]
    ['-ging', '-ging', '-ings', '-ings', '']
    """
    words = vocab.tokens[len(SPECIALS) :]
    shared = Counter(ending for word in words for ending in _endings(word))
    return function_table(
        vocab, lambda word: next((f"-{ending}" for ending in _endings(word) if shared[ending] >= types), None)
    )


def _endings(word: str) -> list[str]:
    """The proper endings of a word that are letters, the longest first."""
    longest = min(MAX_SUFFIX_LENGTH, len(word) - 1)
    return [word[-length:] for length in range(longest, 0, -1) if word[-length:].isalpha()]


def _numbered(values: list[object] | list[None] | list[str]) -> ValueTable:
    """Values numbered from 1 in the order in which they come."""
    names = list(dict.fromkeys(str(value) for value in values if value is not None))
    number = {name: place for place, name in enumerate(names, 1)}
    return ValueTable(
        np.array([0 if value is None else number[str(value)] for value in values], np.int32), ("", *names)
    )


def check_value_table(values: ValueTable, vocab_size: int) -> ValueTable:
    """A table from a file; ValueError if it is not what training writes."""
    number = values.value_ids
    if number.dtype != np.int32 or number.shape != (vocab_size,) or not values.names:
        raise ValueError("values and vocabulary do not fit together")
    if number.min() < 0 or number.max() >= len(values.names):
        raise ValueError("words with values that do not exist")
    return values
