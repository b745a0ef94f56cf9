"""The inside algorithm, compared with sums over all derivations of small grammars."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Corpus
from dragoman.core.errors import DataError
from dragoman.data.vocabulary import SPECIALS, Vocab
from dragoman.lab.grammar import ENGLISH, GERMAN, Grammar, GrammarBuilder, RightHandSide, Rule, Terminal
from dragoman.lab.inside import MonolingualGrammar, inside_log_probs, inside_log_probs_with_spelling

Distribution = dict[tuple[str, ...], float]  # probabilities of sentences


# -- enumeration ----------------------------------------------------------------------------------


def enumerate_sentences(grammar: Grammar, language: int, longest: int) -> dict[str, float]:
    """Return all sentences up to a length; each round adds derivations that are one rule deeper."""
    known: dict[str, Distribution] = {
        symbol: {(word,): words.prob(word) for word in words.words()} for symbol, words in grammar.open_classes.items()
    }
    while True:
        deeper = known | {symbol: expand(rules, language, known, longest) for symbol, rules in grammar.rules.items()}
        if deeper == known:
            return {" ".join(words): prob for words, prob in known[grammar.start].items()}
        known = deeper


def expand(rules: Iterable[Rule], language: int, known: Mapping[str, Distribution], longest: int) -> Distribution:
    total: Distribution = defaultdict(float)
    for rule in rules:
        for side in rule.right_sides[language]:
            parts = [
                {(item.word,): 1.0} if isinstance(item, Terminal) else known.get(rule.children[item], {})
                for item in side.items
            ]
            for choice in product(*(options.items() for options in parts)):
                words = tuple(word for part, _ in choice for word in part)
                if len(words) <= longest:
                    total[words] += rule.prob * side.prob * math.prod(prob for _, prob in choice)
    return dict(total)


def collapsed(sentences: Mapping[str, float], vocab: Vocab) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for sentence, prob in sentences.items():
        total[" ".join(vocab.tokens[number] for number in vocab.ids(sentence.split()).tolist())] += prob
    return dict(total)


def vocabulary(*words: str) -> Vocab:
    return Vocab([*SPECIALS, *words])


def assert_probs(log_probs: np.ndarray, expected: Iterable[float]) -> None:
    np.testing.assert_allclose(np.exp(log_probs), list(expected), rtol=1e-12)


# -- small grammars ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SmallOpenClass:
    """An open class with few words."""

    shares: tuple[tuple[str, float], ...]
    tags: tuple[str, str] = ("X", "X")

    def sample(self, uniform: Callable[[], float]) -> str:
        raise AssertionError("not used")

    def prob(self, word: str) -> float:
        return dict(self.shares).get(word, 0.0)

    def words(self) -> Iterator[str]:
        return (word for word, _ in self.shares)

    def entropy(self) -> float:
        raise AssertionError("not used")


def village() -> GrammarBuilder:
    """A finite grammar with an ambiguous word, two word orders, unary chains, and a name that is also a noun."""
    builder = GrammarBuilder()
    builder.add("S", 3, {"x": "Clause"}, "{x} ./P", "{x} ./P")
    builder.add("S", 1, {"x": "Clause"}, "{x}", "{x}")
    builder.add("Clause", 2, {"s": "NP", "o": "NP"}, {"{s} sieht/V {o}": 3, "{o} sieht/V {s}": 1}, "{s} sees/V {o}")
    builder.add("Clause", 1, {"s": "Name"}, "{s} lebt/V", "{s} lives/V")
    builder.add("NP", 3, {"n": "Noun"}, "die/D {n}", "the/D {n}")
    builder.add("NP", 1, {"n": "Name"}, "{n}", "{n}")
    builder.add("NP", 0.5, {}, "sie/D", "she/D")
    builder.add("Noun", 1, {}, "bank/N", "bench/N")
    builder.add("Noun", 2, {}, "bank/N", {"bank/N": 2, "credit/N institute/N": 1})
    builder.add("Noun", 2, {"n": "Kind"}, "{n}", "{n}")
    builder.add("Kind", 1, {}, "frau/N", "woman/N")
    builder.add("Kind", 1, {}, "bank/N", "bank/N")
    builder.open_classes["Name"] = SmallOpenClass((("kalina", 0.5), ("dora", 0.25), ("frau", 0.25)))
    return builder


def recursive() -> GrammarBuilder:
    """A recursive grammar with ambiguous attachment of "with the glass"."""
    builder = GrammarBuilder()
    builder.add("S", 1, {"s": "NP", "v": "VP"}, "{s} {v}", "{s} {v}")
    builder.add("VP", 2, {"o": "NP"}, "{o} sah/V", "saw/V {o}")
    builder.add("VP", 1, {"v": "VP", "p": "PP"}, "{p} {v}", "{v} {p}")
    builder.add("NP", 3, {}, "sie/D", "she/D")
    builder.add("NP", 2, {}, "das/D glas/N", "the/D glass/N")
    builder.add("NP", 1, {"n": "NP", "p": "PP"}, "{n} {p}", "{n} {p}")
    builder.add("PP", 1, {"n": "NP"}, "mit/P {n}", "with/P {n}")
    return builder


def binary_trees() -> GrammarBuilder:
    """All binary trees over one word: S -> S S."""
    builder = GrammarBuilder()
    builder.add("S", 2, {"a": "S", "b": "S"}, "{a} {b}", "{a} {b}")
    builder.add("S", 3, {}, "a/X", "a/X")
    return builder


VILLAGE, RECURSIVE, BINARY_TREES = village().build("S"), recursive().build("S"), binary_trees().build("S")


# -- with spelling ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", [GERMAN, ENGLISH])
def test_probabilities_of_a_finite_grammar_sum_to_one(language: int) -> None:
    expected = enumerate_sentences(VILLAGE, language, longest=20)
    log_probs = inside_log_probs_with_spelling(MonolingualGrammar.project(VILLAGE, language), expected)
    assert_probs(log_probs, expected.values())
    assert math.fsum(np.exp(log_probs)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("language", [GERMAN, ENGLISH])
def test_recursive_grammar(language: int) -> None:
    expected = enumerate_sentences(RECURSIVE, language, longest=9)
    assert_probs(
        inside_log_probs_with_spelling(MonolingualGrammar.project(RECURSIVE, language), expected), expected.values()
    )


def test_rules_with_equal_right_hand_sides_are_added_up() -> None:
    side = MonolingualGrammar.project(VILLAGE, GERMAN)
    entries = side.lexicon(["bank"], 1, with_unknown=False)
    symbols = [getattr(side.symbols[part], "name", None) for part in entries.symbol]
    shares = dict(zip(symbols, np.exp(entries.log_prob), strict=True))
    assert shares == {"Noun": pytest.approx(0.6 + 0.4 / 2), "Kind": pytest.approx(0.5)}


def test_all_trees_are_counted() -> None:
    """The number of trees over n words is a Catalan number."""
    lengths = range(1, 61)
    log_probs = inside_log_probs_with_spelling(
        MonolingualGrammar.project(BINARY_TREES, ENGLISH), [" ".join("a" * n) for n in lengths]
    )
    trees = [math.comb(2 * n - 2, n - 1) // n for n in lengths]
    expected = [math.log(t) + (n - 1) * math.log(0.4) + n * math.log(0.6) for n, t in zip(lengths, trees, strict=True)]
    np.testing.assert_allclose(log_probs, expected, rtol=1e-12)


def test_long_sentences_do_not_underflow() -> None:
    builder = GrammarBuilder()
    builder.add("S", 1, {"s": "S"}, "{s} a/X", "a/X {s}")
    builder.add("S", 9_999, {}, "b/X", "b/X")
    grammar = builder.build("S")
    expected = 200 * math.log(1e-4) + math.log(1 - 1e-4)  # e-1842
    assert inside_log_probs_with_spelling(MonolingualGrammar.project(grammar, ENGLISH), ["a " * 200 + "b"])[
        0
    ] == pytest.approx(expected, rel=1e-12)
    assert inside_log_probs_with_spelling(MonolingualGrammar.project(grammar, GERMAN), ["b" + " a" * 200])[
        0
    ] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "sentence", ["", "sees the she", "the woman", "she sees the", "she sees dragons", "she sees <unk>"]
)
def test_impossible_sentences_have_probability_zero(sentence: str) -> None:
    assert (
        inside_log_probs_with_spelling(MonolingualGrammar.project(VILLAGE, ENGLISH), ["she sees the bank", sentence])[1]
        == -np.inf
    )


def test_empty_corpus() -> None:
    side = MonolingualGrammar.project(VILLAGE, ENGLISH)
    assert inside_log_probs_with_spelling(side, []).shape == (0,)
    assert inside_log_probs(side, Corpus.from_sentences([], vocabulary("she"))).shape == (0,)


@pytest.mark.parametrize("order", ["ABC", "CBA", "BCA"])
def test_unary_closure_is_applied_once(order: str) -> None:
    """A -> B -> C, and each of them also has "a a": no chain is counted twice."""
    builder = GrammarBuilder()
    for symbol in order:
        builder.add(symbol, 1, {}, "a/X a/X", "a/X a/X")
        if symbol != "C":
            builder.add(symbol, 1, {"x": chr(ord(symbol) + 1)}, "{x}", "{x}")
    side = MonolingualGrammar.project(builder.build("A"), ENGLISH)
    assert_probs(inside_log_probs_with_spelling(side, ["a a", "a"]), [1.0, 0.0])


def test_symbol_and_word_with_the_same_name() -> None:
    builder = GrammarBuilder()
    builder.add("the", 1, {"n": "dog"}, "the/D {n}", "the/D {n}")
    builder.add("dog", 1, {}, "dog/N", "dog/N")
    side = MonolingualGrammar.project(builder.build("the"), ENGLISH)
    assert_probs(inside_log_probs_with_spelling(side, ["the dog", "the the dog", "dog", "the"]), [1, 0, 0, 0])


def test_many_sentences_in_several_threads() -> None:
    expected = enumerate_sentences(RECURSIVE, ENGLISH, longest=9)
    many = 40
    log_probs = inside_log_probs_with_spelling(MonolingualGrammar.project(RECURSIVE, ENGLISH), list(expected) * many)
    assert_probs(log_probs, list(expected.values()) * many)


def test_line_break_in_a_sentence_is_an_error() -> None:
    with pytest.raises(DataError, match="sentences:2: contains a line break"):
        inside_log_probs_with_spelling(MonolingualGrammar.project(VILLAGE, ENGLISH), ["she", "she\nshe"])


# -- with a vocabulary ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", [GERMAN, ENGLISH])
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["die", "the", ".", "sieht", "sees"],
        ["die", "the", ".", "sieht", "sees", "dora", "bank", "unheard", "of"],
        ["kalina", "dora", "frau", "lives", "lebt", "institute"],
    ],
)
def test_unknown_words_have_their_total_probability(words: list[str], language: int) -> None:
    vocab, spelled = vocabulary(*words), enumerate_sentences(VILLAGE, language, longest=20)
    expected = collapsed(spelled, vocab)
    compiled = MonolingualGrammar.project(VILLAGE, language)
    log_probs = inside_log_probs(compiled, Corpus.from_sentences(expected, vocab))
    assert_probs(log_probs, expected.values())
    assert math.fsum(np.exp(log_probs)) == pytest.approx(1, abs=1e-12)
    with_spelling = inside_log_probs(compiled, Corpus.from_sentences(spelled, vocab))
    assert len(set(with_spelling.tolist())) <= len(expected)  # sentences with equal ids have equal probabilities


def test_full_vocabulary_equals_spelling() -> None:
    sentences = enumerate_sentences(VILLAGE, ENGLISH, longest=20)
    side = MonolingualGrammar.project(VILLAGE, ENGLISH)
    corpus = Corpus.from_sentences([*sentences, "she sees dragons", ""])
    np.testing.assert_array_equal(
        inside_log_probs(side, corpus), inside_log_probs_with_spelling(side, [*sentences, "she sees dragons", ""])
    )


def test_no_remainder_if_all_names_are_known() -> None:
    """1 - sum of the probabilities would be 1e-16 instead of 0."""
    names = SmallOpenClass(tuple((f"n{number}", 0.1) for number in range(10)))
    side = MonolingualGrammar.project(Grammar("Name", {}, {"Name": names}), ENGLISH)
    known = vocabulary(*names.words())
    assert inside_log_probs(side, Corpus.from_sentences(["n3", "<unk>"], known)).tolist() == [math.log(0.1), -np.inf]


def test_small_remainder_is_exact() -> None:
    names = SmallOpenClass((("common", 1 - 3e-14), ("rare", 1e-14), ("other", 2e-14)))
    side = MonolingualGrammar.project(Grammar("Name", {}, {"Name": names, "Same": names}), ENGLISH)
    assert_probs(inside_log_probs(side, Corpus.from_sentences(["rare"], vocabulary("common"))), [3e-14])


def test_special_tokens_in_text_are_unknown_words() -> None:
    builder = GrammarBuilder()
    builder.add("S", 3, {}, "<s>/X", "<s>/X")
    builder.add("S", 1, {}, "word/X", "word/X")
    side = MonolingualGrammar.project(builder.build("S"), ENGLISH)
    assert_probs(
        inside_log_probs(side, Corpus.from_sentences(["<s>", "<unk>", "word"], vocabulary("word"))), [0.75, 0.75, 0.25]
    )
    assert_probs(inside_log_probs_with_spelling(side, ["<s>"]), [0.75])


# -- random grammars ---------------------------------------------------------------------------------------------------


SYMBOLS, WORDS = ("A", "B", "C", "D"), ("a", "b", "c")


@st.composite
def grammars(draw: st.DrawFn) -> Grammar:
    """Four symbols, each with a word; unary rules lead only to later symbols, so there is no cycle."""
    builder = GrammarBuilder()
    weight = st.integers(1, 5)
    for place, symbol in enumerate(SYMBOLS):
        english = draw(st.sampled_from(WORDS))
        builder.add(symbol, draw(weight), {}, "a/X", f"{english}/X")
        if place + 1 < len(SYMBOLS) and draw(st.booleans()):
            builder.add(symbol, draw(weight), {"x": draw(st.sampled_from(SYMBOLS[place + 1 :]))}, "{x}", "{x}")
        for parts in draw(st.lists(st.lists(st.sampled_from(SYMBOLS + WORDS), min_size=2, max_size=4), max_size=3)):
            children = {f"x{number}": part for number, part in enumerate(parts) if part in SYMBOLS}
            items = [f"{{x{number}}}" if part in SYMBOLS else f"{part}/X" for number, part in enumerate(parts)]
            german = {" ".join(items[::-1]): draw(weight), " ".join(draw(st.permutations(items))): draw(weight)}
            builder.add(symbol, draw(weight), children, german, " ".join(items))
    return builder.build("A")


ALL_SENTENCES = [" ".join(words) for length in range(1, 5) for words in product(WORDS, repeat=length)]


@given(grammars(), st.sampled_from([GERMAN, ENGLISH]), st.sets(st.sampled_from(WORDS)))
def test_random_grammar_and_vocabulary(grammar: Grammar, language: int, known: set[str]) -> None:
    compiled, expected = (
        MonolingualGrammar.project(grammar, language),
        enumerate_sentences(grammar, language, longest=4),
    )
    assert_probs(
        inside_log_probs_with_spelling(compiled, ALL_SENTENCES),
        [expected.get(sentence, 0.0) for sentence in ALL_SENTENCES],
    )
    vocab = vocabulary(*sorted(known))
    by_ids = collapsed(expected, vocab)
    assert_probs(inside_log_probs(compiled, Corpus.from_sentences(by_ids, vocab)), by_ids.values())


# -- invalid grammars -----------------------------------------------------------------------------------------------


def test_cycle_of_unary_rules_is_an_error() -> None:
    builder = village()
    builder.add("Kind", 1, {"n": "Noun"}, "{n}", "{n}")
    with pytest.raises(ValueError, match=r"a cycle of unary rules: (Noun -> Kind -> Noun|Kind -> Noun -> Kind)$"):
        MonolingualGrammar.project(builder.build("S"), ENGLISH)


def test_empty_right_hand_side_is_an_error() -> None:
    silent = Rule("S", 1.0, (), ((RightHandSide(1.0, (Terminal("a", "X"),)),), (RightHandSide(1.0, ()),)))
    grammar = replace(BINARY_TREES, rules={"S": (silent,)})
    assert_probs(inside_log_probs_with_spelling(MonolingualGrammar.project(grammar, GERMAN), ["a"]), [1.0])
    with pytest.raises(ValueError, match="a rule of S has an empty right-hand side"):
        MonolingualGrammar.project(grammar, ENGLISH)


def test_rules_of_probability_zero_are_removed() -> None:
    a, b = (RightHandSide(prob, (Terminal(word, "X"),)) for prob, word in ((1.0, "a"), (0.0, "b")))
    never = Rule("S", 0.0, ("S", "S"), ((RightHandSide(1.0, (0, 1)),),) * 2)
    grammar = replace(BINARY_TREES, rules={"S": (Rule("S", 1.0, (), ((a, b), (a, b))), never)})
    side = MonolingualGrammar.project(grammar, ENGLISH)
    assert_probs(inside_log_probs_with_spelling(side, ["a", "b", "a a"]), [1.0, 0.0, 0.0])
    assert side.binary_rules.parent.size == 0
