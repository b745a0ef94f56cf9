"""One side of a synchronous grammar, as a weighted context-free grammar in the form that the inside algorithm reads.

What several rules of a parent say alike is one right side here, with their probabilities added up. Right sides of more
than two parts are cut into pairs from the left, and equal beginnings are shared by all rules that have them. Steps from
one symbol to a single other symbol are followed through to the end beforehand.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.data.vocabulary import UNK, Vocab
from dragoman.lab.synchronous import Grammar, Item, Leaf, OpenClass, Rule

NOWHERE = -1  # the row of words that no sentence at hand has
SMALL = 1e-6  # below this a difference to one is added up from its parts, as too few digits of it are left


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol of the grammar."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """A word among other parts of a right side."""

    spelling: str


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first parts of a right side: two parts by their numbers, of which the left may be a beginning itself."""

    left: int
    right: int


Part = Symbol | Word | Beginning
RightSides = Mapping[tuple[int, tuple[int, ...]], float]  # parent and right side, by the numbers of the parts
Shares = dict[int, float]  # by the numbers of parts


class Table(NamedTuple):
    """Lists of (part, log-probability), one list after the other: row r is `begin[r]` up to `begin[r + 1]`."""

    begin: NDArray[np.int64]  # (rows + 1,)
    part: NDArray[np.int32]  # (entries,)
    log_prob: NDArray[np.float64]  # (entries,)


class Pairs(NamedTuple):
    """Rules `parent -> left right`, those of one right part side by side: `begin[right]` up to `begin[right + 1]`."""

    begin: NDArray[np.int64]  # (parts + 1,)
    left: NDArray[np.int32]  # (rules,)
    parent: NDArray[np.int32]  # (rules,)
    log_prob: NDArray[np.float64]  # (rules,)


@dataclass(frozen=True, eq=False)
class Uses:
    """What words may be, alone: the i-th use is the part `part[i]` becoming the word `word[i]`."""

    word: NDArray[np.int64]
    part: NDArray[np.int32]
    prob: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Open:
    """A class of made-up words, and the parts that may become one of them."""

    words: OpenClass
    part: NDArray[np.int32]
    prob: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SideGrammar:
    """One side of a grammar, compiled once for all vocabularies."""

    parts: tuple[Part, ...]  # by their numbers
    start: int
    words: tuple[str, ...]  # those of the rules, without the open classes
    uses: Uses  # of `words`
    open_classes: tuple[Open, ...]
    pairs: Pairs
    ancestors: Table  # for each part, what it may come from by rules with a single symbol on the right

    @classmethod
    def of(cls, grammar: Grammar, side: int) -> SideGrammar:
        """Compile one side; ValueError, if a right side is empty or a symbol can become itself and nothing else."""
        numbers = _Numbers()
        start = numbers[Symbol(grammar.start)]
        right_sides = _right_sides(grammar, side, numbers)
        classes = _by_class(grammar, numbers)
        single = {key: prob for key, prob in right_sides.items() if len(key[1]) == 1}
        pairs = _pairs({key: prob for key, prob in right_sides.items() if len(key[1]) > 1}, numbers)
        parts = tuple(numbers)
        ancestors = _ancestors(single, parts)
        words, uses = _uses(single, pairs, ancestors, parts)
        return cls(
            parts,
            start,
            words,
            uses,
            tuple(Open(words_, *_columns(_closed(shares, ancestors))) for words_, shares in classes),
            _pair_table(pairs, len(parts)),
            _ancestor_table(ancestors, len(parts)),
        )

    def collapsed(self, vocab: Vocab) -> Table:
        """What each word of a vocabulary may be; `<unk>` is any one of the words outside it, with all their mass."""
        inside = vocab.tokens[UNK + 1 :]
        return self._lexicon(vocab.ids(self.words), inside, np.arange(UNK + 1, len(vocab)), len(vocab), UNK)

    def spelled(self, words: Sequence[str]) -> Table:
        """What each of these words may be, nothing collapsed. A last row stands for what the grammar cannot say."""
        number = {word: place for place, word in enumerate(words)}
        rows = np.array([number.get(word, NOWHERE) for word in self.words], np.int64)
        return self._lexicon(rows, words, np.arange(len(words)), len(words) + 1, NOWHERE)

    def _lexicon(
        self, rows: NDArray[np.integer], inside: Sequence[str], places: NDArray[np.int64], size: int, rest: int
    ) -> Table:
        """Words of the rules go to the given rows, made-up words `inside` to `places`, the others to `rest`."""
        row, part, prob = [rows[self.uses.word]], [self.uses.part], [self.uses.prob]
        for opened in self.open_classes:
            known = np.fromiter(map(opened.words.prob, inside), np.float64, len(inside))
            at, mass = places[known > 0], known[known > 0]
            if rest != NOWHERE:
                at, mass = np.append(at, rest), np.append(mass, _remainder(opened.words, mass, inside))
            row.append(np.repeat(at, len(opened.part)))
            part.append(np.tile(opened.part, len(at)))
            prob.append(np.outer(mass, opened.prob).ravel())
        rows, part_, prob_ = np.concatenate(row), np.concatenate(part), np.concatenate(prob)
        kept = rows != NOWHERE
        return _table(rows[kept], part_[kept], prob_[kept], size, len(self.parts))


class _Numbers(dict[Part, int]):
    """Numbers for parts, given out as they are asked for."""

    def __missing__(self, part: Part) -> int:
        self[part] = len(self)
        return self[part]


# -- compiling ---------------------------------------------------------------------------------------------------


def _right_sides(grammar: Grammar, side: int, numbers: _Numbers) -> RightSides:
    """Every right side of every parent, with the probabilities of all rules and ways that say it added up."""
    shares: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
    for symbol, rules in grammar.rules.items():
        parent = numbers[Symbol(symbol)]
        for rule in rules:
            for way in rule.ways[side]:
                if not way.items:
                    raise ValueError(f"a rule of {symbol} says nothing at all")
                parts = tuple(numbers[_part(rule, item)] for item in way.items)
                shares[parent, parts] += rule.prob * way.prob
    return {key: share for key, share in shares.items() if share > 0}


def _part(rule: Rule, item: Item) -> Symbol | Word:
    return Word(item.word) if isinstance(item, Leaf) else Symbol(rule.children[item])


def _by_class(grammar: Grammar, numbers: _Numbers) -> list[tuple[OpenClass, Shares]]:
    """Each class once, with all symbols that stand for it."""
    found: dict[int, tuple[OpenClass, Shares]] = {}
    for symbol, words in grammar.open_classes.items():
        found.setdefault(id(words), (words, {}))[1][numbers[Symbol(symbol)]] = 1.0
    return list(found.values())


def _pairs(right_sides: RightSides, numbers: _Numbers) -> dict[tuple[int, int, int], float]:
    """Right sides cut into pairs: (parent, left, right). The probability is paid with the last part."""
    pairs: dict[tuple[int, int, int], float] = {}
    for (parent, (left, *middle, last)), prob in right_sides.items():
        for part in middle:
            longer = numbers[Beginning(left, part)]
            pairs[longer, left, part] = 1.0
            left = longer
        pairs[parent, left, last] = prob
    return pairs


def _ancestors(single: RightSides, parts: Sequence[Part]) -> dict[int, Shares]:
    """The sum over all chains of single steps from an ancestor down to each part that has any."""
    parents: dict[int, Shares] = defaultdict(dict)
    for (parent, (child,)), prob in single.items():
        if isinstance(parts[child], Symbol):
            parents[child][parent] = prob
    try:
        order = list(TopologicalSorter(parents).static_order())  # parents before their children
    except CycleError as error:
        cycle = (parts[number] for number in reversed(error.args[1]))
        names = " -> ".join(part.name for part in cycle if isinstance(part, Symbol))
        raise ValueError(f"a symbol can become itself and nothing else: {names}") from None
    above: dict[int, Shares] = {}
    for child in order:
        if child in parents:
            above[child] = _closed(parents[child], above)
    return above


def _closed(shares: Shares, ancestors: Mapping[int, Shares]) -> Shares:
    """These parts and their ancestors."""
    total: dict[int, float] = defaultdict(float)
    for part, share in shares.items():
        total[part] += share
        for ancestor, chain in ancestors.get(part, {}).items():
            total[ancestor] += share * chain
    return total


def _uses(
    single: RightSides, pairs: Iterable[tuple[int, int, int]], ancestors: Mapping[int, Shares], parts: Sequence[Part]
) -> tuple[tuple[str, ...], Uses]:
    """The words, and what each of them may be alone: itself, where pairs ask for it, and what single steps reach."""
    shares: dict[str, Shares] = defaultdict(dict)
    for (parent, (child,)), prob in single.items():
        part = parts[child]
        if isinstance(part, Word):
            shares[part.spelling][parent] = prob
    for part, number in ((parts[number], number) for pair in pairs for number in pair[1:]):
        if isinstance(part, Word):
            shares[part.spelling][number] = 1.0
    closed = [_columns(_closed(some, ancestors)) for some in shares.values()]
    word = np.repeat(np.arange(len(closed)), [len(part) for part, _ in closed])
    column = np.concatenate([np.zeros(0, np.int32), *(part for part, _ in closed)])
    return tuple(shares), Uses(word, column, np.concatenate([np.zeros(0), *(prob for _, prob in closed)]))


def _columns(shares: Shares) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    return np.fromiter(shares, np.int32, len(shares)), np.fromiter(shares.values(), np.float64, len(shares))


def _pair_table(pairs: Mapping[tuple[int, int, int], float], parts: int) -> Pairs:
    parent, left, right = np.array(list(pairs), np.int32).reshape(-1, 3).T
    order = np.lexsort((left, right))
    begin = np.searchsorted(right[order], np.arange(parts + 1))
    log_prob = np.log(np.fromiter(pairs.values(), np.float64, len(pairs)))
    return Pairs(begin, left[order], parent[order], log_prob[order])


def _ancestor_table(ancestors: Mapping[int, Shares], parts: int) -> Table:
    part = np.repeat(np.fromiter(ancestors, np.int64), [len(above) for above in ancestors.values()])
    columns = [_columns(above) for above in ancestors.values()]
    ancestor = np.concatenate([np.zeros(0, np.int32), *(column for column, _ in columns)])
    return _table(part, ancestor, np.concatenate([np.zeros(0), *(prob for _, prob in columns)]), parts, parts)


def _table(
    row: NDArray[np.integer], part: NDArray[np.int32], prob: NDArray[np.float64], rows: int, parts: int
) -> Table:
    """Entries in rows; where a row has a part several times, the probabilities are added up."""
    keys, place = np.unique(row.astype(np.int64) * parts + part, return_inverse=True)
    total = np.bincount(place, prob, minlength=len(keys))
    keys, total = keys[total > 0], total[total > 0]
    begin = np.searchsorted(keys, np.arange(rows + 1) * parts)
    return Table(begin, (keys % parts).astype(np.int32), np.log(total))


def _remainder(words: OpenClass, known: NDArray[np.float64], inside: Sequence[str]) -> float:
    """The mass of a class outside a vocabulary."""
    rest = 1.0 - math.fsum(known)
    if rest > SMALL:
        return rest
    among = set(inside)
    return math.fsum(words.prob(word) for word in words.words() if word not in among)
