"""Features of the context: templates, their notation, and features defined by users.

An *atom* maps the word at some offset to a value: `word1` is the identity of e_{t-1}, `class2` the class of e_{t-2},
`suffix1` the suffix of e_{t-1}. A *feature template* is an atom or the conjunction of two to four atoms, such as
`word1+word2`; every combination of values is one feature. `bag` has a feature for every earlier word of the sentence,
whose value is the word's count. Presets stand for several templates: `5-gram`, `words-4`. The decorators `atom` and
`feature` define more.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, closest_match
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import concatenate_ranges
from dragoman.data.vocabulary import END, SPECIALS, Vocab

FEATURES_VARIABLE = "DRAGOMAN_FEATURES"  # environment variable with the path of a Python file that defines features
MAX_ATOMS = 4
MAX_OFFSET = 99
MAX_SHOWN_CHARACTERS = 200  # of a function's argument in error messages
MAX_SUFFIX_LENGTH = 4
NO_WORD = -1  # the id of positions before the sentence
BAG = "bag"
BUILT_IN = ("word", "class", "suffix")
HOW_TO_DEFINE = (
    f'define it in a Python file with @dragoman.atom("name") or @dragoman.feature("name"), and give the file with '
    f"--features-from or in the environment variable {FEATURES_VARIABLE}"
)

AtomFunction = Callable[[str], object]  # word -> value, or None
FeatureFunction = Callable[[list[str]], Iterable[str] | None]  # previous words -> names of active features
A = TypeVar("A", bound=AtomFunction)
F = TypeVar("F", bound=FeatureFunction)

CUSTOM_ATOMS: dict[str, AtomFunction] = {}
CUSTOM_FEATURES: dict[str, FeatureFunction] = {}


# -- histories --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordHistories:
    """The previous words of each prediction, as slices `ids[begin:end]` of a flat array that start with `<s>`.

    Features see only this view, so they are the same for a whole corpus and for the states of the scorer.
    """

    ids: NDArray[np.integer]  # (positions,) word ids or NO_WORD
    begin: NDArray[np.int64]  # (predictions,)
    end: NDArray[np.int64]  # (predictions,)

    @classmethod
    def from_corpus(cls, corpus: Corpus) -> WordHistories:
        """Return the histories of all tokens of a corpus."""
        sizes = np.diff(corpus.token_offsets)
        sentence = np.repeat(np.arange(corpus.num_sentences), sizes)
        end = np.arange(corpus.num_tokens) + sentence + 1  # every sentence has an additional `<s>`
        begin = np.repeat(corpus.token_offsets[:-1] + np.arange(corpus.num_sentences), sizes)
        return cls(corpus.ids_with_boundaries(starts=1), begin, end)

    @classmethod
    def from_rows(cls, rows: NDArray[np.integer]) -> WordHistories:
        """Return one history per row.  # rows: (predictions, words)"""
        count, width = rows.shape
        begin = np.arange(count) * width
        return cls(rows.ravel(), begin, begin + width)

    def __len__(self) -> int:
        return len(self.begin)

    def words_at(self, offset: int) -> NDArray[np.int64]:
        """Return the word at an offset before each prediction, or NO_WORD.  # (predictions,)"""
        position = self.end - offset
        inside = position >= self.begin
        return np.where(inside, self.ids[np.where(inside, position, 0)], NO_WORD).astype(np.int64)

    def words_before(self, prediction: int) -> NDArray[np.integer]:
        """Return all words before a prediction, `<s>` first."""
        return self.ids[self.begin[prediction] : self.end[prediction]]


# -- value tables of atoms --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ValueTable:
    """The value of each word for one atom. Value id 0 means that the word has no value."""

    value_ids: NDArray[np.int32]  # (|V|,)
    names: tuple[str, ...]  # (values,) the first is the name of no value


def identity_table(vocab: Vocab) -> ValueTable:
    """Return a table in which every token is its own value, also `<s>` and `<unk>`."""
    return ValueTable(np.arange(1, len(vocab) + 1, dtype=np.int32), ("", *vocab.tokens))


def function_table(vocab: Vocab, function: Callable[[str], object]) -> ValueTable:
    """Return the values that a function gives to words; None, and the special tokens, have no value.

    >>> vocab = Vocab([*SPECIALS, "Rome", "is", "far"])
    >>> table = function_table(vocab, lambda word: len(word) if word != "is" else None)
    >>> table.value_ids.tolist(), table.names
    ([0, 0, 0, 1, 0, 2], ('', '4', '3'))
    """
    values = [function(word) for word in vocab.tokens[len(SPECIALS) :]]
    return _table([None] * len(SPECIALS) + [None if value is None else str(value) for value in values])


def class_table(vocab: Vocab, classes: Mapping[str, str] | NDArray[np.integer]) -> ValueTable:
    """Return the class of each word. Words without a class, and the special tokens, are separate classes."""
    if isinstance(classes, Mapping):
        names: list[str | None] = [classes.get(word) for word in vocab.tokens]
    else:
        if classes.shape != (len(vocab),):
            raise DataError(f"{len(classes)} classes for {len(vocab)} words; give one for each entry of the vocabulary")
        names = [str(number) for number in classes.tolist()]
    names[: len(SPECIALS)] = [None] * len(SPECIALS)
    # A class may have the name of a word. A prefix keeps them apart and is removed from the names afterwards.
    prefixed = [f"w{word}" if name is None else f"c{name}" for word, name in zip(vocab.tokens, names, strict=True)]
    table = _table(prefixed)
    return ValueTable(table.value_ids, ("", *(name[1:] for name in table.names[1:])))


def suffix_table(vocab: Vocab, min_types: int) -> ValueTable:
    """Return the longest ending of 1 to 4 letters that at least `min_types` words of the vocabulary share.

    >>> table = suffix_table(Vocab([*SPECIALS, "singing", "ringing", "rings", "sings", "42"]), min_types=2)
    >>> [table.names[value] for value in table.value_ids[3:]]
    ['-ging', '-ging', '-ings', '-ings', '']
    """
    words = vocab.tokens[len(SPECIALS) :]
    types = Counter(ending for word in words for ending in _endings(word))
    return function_table(
        vocab, lambda word: next((f"-{ending}" for ending in _endings(word) if types[ending] >= min_types), None)
    )


def _endings(word: str) -> list[str]:
    """Return the proper endings of a word that consist of letters, the longest first."""
    longest = min(MAX_SUFFIX_LENGTH, len(word) - 1)
    return [word[-length:] for length in range(longest, 0, -1) if word[-length:].isalpha()]


def _table(values: Sequence[str | None]) -> ValueTable:
    """Number values from 1 in order of appearance."""
    names = list(dict.fromkeys(value for value in values if value is not None))
    ids = {name: index for index, name in enumerate(names, 1)}
    return ValueTable(np.array([0 if value is None else ids[value] for value in values], np.int32), ("", *names))


ValueTables = Mapping[str, ValueTable]  # by the name of the atom


# -- feature templates ------------------------------------------------------------------------------------------------


class FeatureOccurrences(NamedTuple):
    """The active features of a template: prediction, hash key of the feature, and value x_j."""

    prediction: NDArray[np.int64]  # (occurrences,)
    key: NDArray[np.uint64]  # (occurrences,)
    value: NDArray[np.float64]  # (occurrences,)


class FeatureTemplate(ABC):
    """A family of features, instantiated by the words of a history."""

    name: str  # in the notation of the settings
    context_length: int | None = None  # the number of previous words that it uses; None for the whole sentence
    is_unigram: bool = False  # whether it has about as many features as the vocabulary has words

    @abstractmethod
    def extract(self, history: WordHistories, tables: ValueTables, vocab: Vocab) -> FeatureOccurrences: ...

    @abstractmethod
    def describe(self, history: WordHistories, tables: ValueTables, vocab: Vocab) -> list[str]:
        """Return readable names of the features that are active at the first prediction, in the order of `extract`."""


@dataclass(frozen=True)
class Atom:
    """The value that a table gives to the word at an offset."""

    table: str
    offset: int

    @property
    def name(self) -> str:
        return f"{self.table}{self.offset}"

    def values(self, history: WordHistories, tables: ValueTables) -> NDArray[np.int64]:
        """Return the value id at each prediction, 0 for no value.  # (predictions,)"""
        words = history.words_at(self.offset)
        return np.where(words == NO_WORD, 0, tables[self.table].value_ids[words])


class Conjunction(FeatureTemplate):
    """One to four atoms; every combination of values is a feature."""

    def __init__(self, atoms: tuple[Atom, ...]):
        self.atoms = atoms
        self.name = "+".join(atom.name for atom in atoms)
        self.context_length = max(atom.offset for atom in atoms)
        self.is_unigram = len(atoms) == 1

    def extract(self, history: WordHistories, tables: ValueTables, vocab: Vocab) -> FeatureOccurrences:
        values = [atom.values(history, tables) for atom in self.atoms]
        active = np.flatnonzero(np.all(values, axis=0))
        key = np.full(len(active), hash_name(self.name), np.uint64)
        for value in values:
            key = combine_hashes(key, value[active])
        return FeatureOccurrences(active, key, np.ones(len(active)))

    def describe(self, history: WordHistories, tables: ValueTables, vocab: Vocab) -> list[str]:
        values = [int(atom.values(history, tables)[0]) for atom in self.atoms]
        if not all(values):
            return []
        names = [tables[atom.table].names[value] for atom, value in zip(self.atoms, values, strict=True)]
        return [f"{self.name}={'+'.join(names)}"]


class BagOfWords(FeatureTemplate):
    """All earlier words of the sentence, with their counts as values."""

    name = BAG
    is_unigram = True

    def extract(self, history: WordHistories, tables: ValueTables, vocab: Vocab) -> FeatureOccurrences:
        sizes = history.end - history.begin
        prediction = np.repeat(np.arange(len(history)), sizes)
        words = history.ids[concatenate_ranges(history.begin, sizes)]
        is_word = words > END  # not `<s>`
        pairs = prediction[is_word] * len(vocab) + words[is_word]
        distinct, counts = np.unique(pairs, return_counts=True)
        prediction, word = np.divmod(distinct, len(vocab))
        key = combine_hashes(np.full(len(word), hash_name(self.name)), word)
        return FeatureOccurrences(prediction, key, counts.astype(float))

    def describe(self, history: WordHistories, tables: ValueTables, vocab: Vocab) -> list[str]:
        words = history.words_before(0)
        return [f"{BAG}: {vocab.tokens[word]}" for word in np.unique(words[words > END])]


class CustomFeature(FeatureTemplate):
    """A template defined by a user: a feature for each name that its function returns, with its count as value."""

    def __init__(self, name: str):
        self.name = name

    def extract(self, history: WordHistories, tables: ValueTables, vocab: Vocab) -> FeatureOccurrences:
        counts = [self._counts(history, prediction, vocab) for prediction in range(len(history))]
        prediction = np.repeat(np.arange(len(history)), [len(names) for names in counts])
        hashes = np.array([hash_name(name) for names in counts for name in names], np.uint64)
        key = combine_hashes(np.full(len(hashes), hash_name(self.name)), hashes)
        values = np.array([count for names in counts for count in names.values()], float)
        return FeatureOccurrences(prediction, key, values)

    def describe(self, history: WordHistories, tables: ValueTables, vocab: Vocab) -> list[str]:
        return [f"{self.name}: {name}" for name in self._counts(history, 0, vocab)]

    def _counts(self, history: WordHistories, prediction: int, vocab: Vocab) -> Counter[str]:
        words = history.words_before(prediction)
        return custom_feature_names(self.name, [vocab.tokens[word] for word in words[words > END].tolist()])


@lru_cache(maxsize=1 << 20)
def hash_name(name: str) -> np.uint64:
    """Return a 64-bit hash of a name, the same in every process."""
    return np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"))


def combine_hashes(keys: NDArray[np.uint64], values: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return hashes of (key, value) with the finaliser of splitmix64."""
    x = keys + (values.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


# -- notation ---------------------------------------------------------------------------------------------------------


WORDS = [f"word{offset}" for offset in range(1, 10)]
PRESETS = {  # 3-gram: word1, word1+word2, the contexts of all lengths of an n-gram model
    **{f"{n}-gram": ["+".join(WORDS[:length]) for length in range(1, n)] for n in range(2, MAX_ATOMS + 2)},
    **{f"words-{count}": WORDS[:count] for count in range(1, 10)},
}


def parse_features(notation: str | Sequence[str], known: Collection[str] = ()) -> tuple[FeatureTemplate, ...]:
    """Parse feature templates.

    Args:
        notation: templates and presets; a string is split at commas.
        known: names of atoms that are valid in addition to built-in and user-defined ones.

    >>> [template.name for template in parse_features("3-gram, word2+class1, bag")]
    ['word1', 'word1+word2', 'word2+class1', 'bag']
    """
    parts = notation.split(",") if isinstance(notation, str) else notation
    names = [name for part in parts for name in PRESETS.get(part.strip(), [part.strip()])]
    if not names:
        raise DataError("no features; give at least one, such as 5-gram or word1,word2,class1")
    return tuple(_parse_template(name, known) for name in dict.fromkeys(names))


def _parse_template(name: str, known: Collection[str]) -> FeatureTemplate:
    if name == BAG:
        return BagOfWords()
    if name in CUSTOM_FEATURES:
        return CustomFeature(name)
    parts = name.split("+")
    if len(parts) > MAX_ATOMS:
        raise DataError(f"feature {name!r}: joins {len(parts)} atoms; at most {MAX_ATOMS} can be joined")
    if len(set(parts)) < len(parts):
        raise DataError(f"feature {name!r}: has an atom twice; remove one of them")
    return Conjunction(tuple(_parse_atom(part, name, known) for part in parts))


def _parse_atom(text: str, template: str, known: Collection[str]) -> Atom:
    match = re.fullmatch(r"([a-z][a-z_-]*?)(\d+)", text)
    if match is None:
        raise DataError(f"feature {template!r}: {text!r} {_unknown(text)}")
    table, offset = match[1], int(match[2])
    if not 1 <= offset <= MAX_OFFSET:
        raise DataError(f"feature {template!r}: looks {offset} words back; choose 1 to {MAX_OFFSET}")
    if table not in (*BUILT_IN, *CUSTOM_ATOMS, *known):
        raise DataError(f"feature {template!r}: {table!r} {_unknown(table)}")
    return Atom(table, offset)


def _unknown(name: str) -> str:
    """Return the end of the error message for an unknown name, with a remedy."""
    known = [*BUILT_IN, *CUSTOM_ATOMS, BAG, *CUSTOM_FEATURES, *PRESETS]
    close = closest_match(name.rstrip("0123456789"), known) or closest_match(name, known)
    if close:
        example = f"{close}1" if close in (*BUILT_IN, *CUSTOM_ATOMS) else close
        return f"is not known; did you mean {example}? Or {HOW_TO_DEFINE}"
    return f"is not known; known are {', '.join(known)}. Or {HOW_TO_DEFINE}"


def distinct_atoms(templates: Sequence[FeatureTemplate]) -> list[Atom]:
    """Return one atom for each value table that the templates use."""
    atoms = [atom for template in templates if isinstance(template, Conjunction) for atom in template.atoms]
    return list({atom.table: atom for atom in atoms}.values())


# -- features defined by users ----------------------------------------------------------------------------------------


def atom(name: str) -> Callable[[A], A]:
    """Define an atom: a function from a word to its value, or None for no value. `name1` is then a template.

    >>> @atom("vowels")
    ... def vowels(word):
    ...     return sum(letter in "aeiou" for letter in word)
    >>> CUSTOM_ATOMS.pop("vowels")("tree")  # now, `vowels1` would be a feature of the previous word
    2
    """
    _check_name(name)

    def define(function: A) -> A:
        CUSTOM_ATOMS[name] = function
        return function

    return define


def feature(name: str) -> Callable[[F], F]:
    """Define a feature template: a function from the list of previous words to the names of active features, or None.

    It must depend only on these words. Words outside the model's vocabulary are `<unk>`.

    >>> @feature("question")
    ... def question(words):
    ...     return ["question"] if words[:1] == ["who"] else None
    >>> CUSTOM_FEATURES.pop("question")(["who", "is"])
    ['question']
    """
    _check_name(name)

    def define(function: F) -> F:
        CUSTOM_FEATURES[name] = function
        return function

    return define


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z_-]*", name):
        raise DataError(f"feature {name!r}: a name has only lowercase letters, - and _, such as capital")
    if name in (*BUILT_IN, BAG):
        raise DataError(f"feature {name!r}: is built in; choose another name")


def load_feature_file(path: str | Path) -> None:
    """Run a Python file that defines features. Call this only for files that the user has named."""
    spec = importlib.util.spec_from_file_location(f"dragoman_features_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise DataError(f"{path}: not a Python file; define features in a file whose name ends in .py")
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; name a Python file that defines features") from None
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:  # the file may raise anything
        raise DataError(f"{path}: cannot be run ({_one_line(error)}); fix the file") from error


def load_environment_features() -> None:
    """Run the file named by the environment variable, if it is set."""
    if path := os.environ.get(FEATURES_VARIABLE):
        load_feature_file(path)


def custom_atom_value(name: str, word: str) -> str | None:
    """Return the value that a user's atom gives to a word."""
    with _user_code(name, word):
        value = CUSTOM_ATOMS[name](word)
        return None if value is None else _text(value)


def custom_feature_names(name: str, words: list[str]) -> Counter[str]:
    """Return the names that a user's feature returns for these words, with their counts."""
    with _user_code(name, words):
        names = CUSTOM_FEATURES[name](words.copy())  # the function may change its argument
        if not isinstance(names, str | bytes):
            return Counter(map(_text, names)) if names is not None else Counter()
    # A string would be a list of single letters, which is hardly intended.
    raise DataError(f"{_describe_call(name, words)}: returned {names!r}, which is not a list; return [{names!r}]")


@contextmanager
def _user_code(name: str, argument: str | list[str]) -> Iterator[None]:
    """Turn any error of a user's function into a DataError that names the function."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise DataError(f"{_describe_call(name, argument)}: failed ({_one_line(error)}); fix its function") from error


def _text(value: object) -> str:
    """Return a value as a string; a string that cannot be encoded is an error."""
    text = str(value)
    text.encode()
    return text


def _describe_call(name: str, argument: str | list[str]) -> str:
    shown = repr(argument)
    return f"feature {name!r}, called with {'...' * (len(shown) > MAX_SHOWN_CHARACTERS)}{shown[-MAX_SHOWN_CHARACTERS:]}"


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
