"""The inside algorithm against sums over everything that small grammars can say."""

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
from dragoman.lab.inside import inside_log_probs, inside_log_probs_with_spelling
from dragoman.lab.monolingual import MonolingualGrammar

Sayings = dict[tuple[str, ...], float]  # sentences and their probabilities


# -- everything a grammar can say ----------------------------------------------------------------------------------


def sayings(grammar: Grammar, side: int, longest: int) -> dict[str, float]:
    """All sentences of so many words, by trying all trees: each round lets them be one rule deeper."""
    known: dict[str, Sayings] = {
        symbol: {(word,): words.prob(word) for word in words.words()} for symbol, words in grammar.open_classes.items()
    }
    while True:
        deeper = known | {symbol: said(rules, side, known, longest) for symbol, rules in grammar.rules.items()}
        if deeper == known:
            return {" ".join(words): prob for words, prob in known[grammar.start].items()}
        known = deeper


def said(rules: Iterable[Rule], side: int, known: Mapping[str, Sayings], longest: int) -> Sayings:
    total: Sayings = defaultdict(float)
    for rule in rules:
        for way in rule.right_sides[side]:
            each = [
                {(item.word,): 1.0} if isinstance(item, Terminal) else known.get(rule.children[item], {})
                for item in way.items
            ]
            for choice in product(*(some.items() for some in each)):
                words = tuple(word for part, _ in choice for word in part)
                if len(words) <= longest:
                    total[words] += rule.prob * way.prob * math.prod(prob for _, prob in choice)
    return dict(total)


def collapsed(sentences: Mapping[str, float], vocab: Vocab) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for sentence, prob in sentences.items():
        total[" ".join(vocab.tokens[number] for number in vocab.ids(sentence.split()).tolist())] += prob
    return dict(total)


def vocab_of(*words: str) -> Vocab:
    return Vocab([*SPECIALS, *words])


def assert_says(log_probs: np.ndarray, expected: Iterable[float]) -> None:
    np.testing.assert_allclose(np.exp(log_probs), list(expected), rtol=1e-12)


# -- small grammars ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Few:
    """An open class of a few words."""

    shares: tuple[tuple[str, float], ...]
    tag: str = "X"

    def draw(self, uniform: Callable[[], float]) -> str:
        raise AssertionError("nothing is drawn here")

    def prob(self, word: str) -> float:
        return dict(self.shares).get(word, 0.0)

    def words(self) -> Iterator[str]:
        return (word for word, _ in self.shares)

    def entropy(self) -> float:
        raise AssertionError("nobody asks here")


def village() -> GrammarBuilder:
    """Finite; a word of two meanings, two orders, chains of single symbols, and names, one of them a common noun."""
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
    builder.open_classes["Name"] = Few((("kalina", 0.5), ("dora", 0.25), ("frau", 0.25)))
    return builder


def recursive() -> GrammarBuilder:
    """Without end, and ambiguous: whether she saw it with the glass, or saw what had the glass."""
    builder = GrammarBuilder()
    builder.add("S", 1, {"s": "NP", "v": "VP"}, "{s} {v}", "{s} {v}")
    builder.add("VP", 2, {"o": "NP"}, "{o} sah/V", "saw/V {o}")
    builder.add("VP", 1, {"v": "VP", "p": "PP"}, "{p} {v}", "{v} {p}")
    builder.add("NP", 3, {}, "sie/D", "she/D")
    builder.add("NP", 2, {}, "das/D glas/N", "the/D glass/N")
    builder.add("NP", 1, {"n": "NP", "p": "PP"}, "{n} {p}", "{n} {p}")
    builder.add("PP", 1, {"n": "NP"}, "mit/P {n}", "with/P {n}")
    return builder


def heap() -> GrammarBuilder:
    """One word, bracketed in every way: S -> S S."""
    builder = GrammarBuilder()
    builder.add("S", 2, {"a": "S", "b": "S"}, "{a} {b}", "{a} {b}")
    builder.add("S", 3, {}, "a/X", "a/X")
    return builder


VILLAGE, RECURSIVE, HEAP = village().build("S"), recursive().build("S"), heap().build("S")


# -- in full spelling ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [GERMAN, ENGLISH])
def test_all_sentences_of_a_finite_grammar(side: int) -> None:
    expected = sayings(VILLAGE, side, longest=20)
    log_probs = inside_log_probs_with_spelling(MonolingualGrammar.project(VILLAGE, side), expected)
    assert_says(log_probs, expected.values())
    assert math.fsum(np.exp(log_probs)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("side", [GERMAN, ENGLISH])
def test_a_grammar_without_end(side: int) -> None:
    expected = sayings(RECURSIVE, side, longest=9)
    assert_says(
        inside_log_probs_with_spelling(MonolingualGrammar.project(RECURSIVE, side), expected), expected.values()
    )


def test_rules_that_are_said_alike_are_added_up() -> None:
    side = MonolingualGrammar.project(VILLAGE, GERMAN)
    entries = side.lexicon_for_words(["bank"])
    symbols = [getattr(side.symbols[part], "name", None) for part in entries.symbol]
    shares = dict(zip(symbols, np.exp(entries.log_prob), strict=True))
    assert shares == {"Noun": pytest.approx(0.6 + 0.4 / 2), "Kind": pytest.approx(0.5)}


def test_every_bracketing_is_counted() -> None:
    """n words have as many trees as the Catalan number says."""
    lengths = range(1, 61)
    log_probs = inside_log_probs_with_spelling(
        MonolingualGrammar.project(HEAP, ENGLISH), [" ".join("a" * n) for n in lengths]
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
def test_what_cannot_be_said(sentence: str) -> None:
    assert (
        inside_log_probs_with_spelling(MonolingualGrammar.project(VILLAGE, ENGLISH), ["she sees the bank", sentence])[1]
        == -np.inf
    )


def test_no_sentences() -> None:
    side = MonolingualGrammar.project(VILLAGE, ENGLISH)
    assert inside_log_probs_with_spelling(side, []).shape == (0,)
    assert inside_log_probs(side, Corpus.from_sentences([], vocab_of("she"))).shape == (0,)


@pytest.mark.parametrize("storeys", ["ABC", "CBA", "BCA"])
def test_a_pair_of_words_on_every_storey(storeys: str) -> None:
    """A may become B and B may become C, and each may say "a a" itself: nothing is to be climbed twice."""
    builder = GrammarBuilder()
    for symbol in storeys:
        builder.add(symbol, 1, {}, "a/X a/X", "a/X a/X")
        if symbol != "C":
            builder.add(symbol, 1, {"x": chr(ord(symbol) + 1)}, "{x}", "{x}")
    side = MonolingualGrammar.project(builder.build("A"), ENGLISH)
    assert_says(inside_log_probs_with_spelling(side, ["a a", "a"]), [1.0, 0.0])


def test_a_symbol_and_a_word_of_the_same_name() -> None:
    builder = GrammarBuilder()
    builder.add("the", 1, {"n": "dog"}, "the/D {n}", "the/D {n}")
    builder.add("dog", 1, {}, "dog/N", "dog/N")
    side = MonolingualGrammar.project(builder.build("the"), ENGLISH)
    assert_says(inside_log_probs_with_spelling(side, ["the dog", "the the dog", "dog", "the"]), [1, 0, 0, 0])


def test_many_sentences_are_shared_among_the_cores() -> None:
    expected = sayings(RECURSIVE, ENGLISH, longest=9)
    many = 40
    log_probs = inside_log_probs_with_spelling(MonolingualGrammar.project(RECURSIVE, ENGLISH), list(expected) * many)
    assert_says(log_probs, list(expected.values()) * many)


def test_a_sentence_is_one_line() -> None:
    with pytest.raises(DataError, match="sentences:2: contains a line break"):
        inside_log_probs_with_spelling(MonolingualGrammar.project(VILLAGE, ENGLISH), ["she", "she\nshe"])


# -- through a vocabulary ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [GERMAN, ENGLISH])
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["die", "the", ".", "sieht", "sees"],
        ["die", "the", ".", "sieht", "sees", "dora", "bank", "unheard", "of"],
        ["kalina", "dora", "frau", "lives", "lebt", "institute"],
    ],
)
def test_words_outside_the_vocabulary_keep_their_mass(words: list[str], side: int) -> None:
    vocab, spelled = vocab_of(*words), sayings(VILLAGE, side, longest=20)
    expected = collapsed(spelled, vocab)
    compiled = MonolingualGrammar.project(VILLAGE, side)
    log_probs = inside_log_probs(compiled, Corpus.from_sentences(expected, vocab))
    assert_says(log_probs, expected.values())
    assert math.fsum(np.exp(log_probs)) == pytest.approx(1, abs=1e-12)
    as_it_was = inside_log_probs(compiled, Corpus.from_sentences(spelled, vocab))
    assert len(set(as_it_was.tolist())) <= len(expected)  # sentences that look the same have the same probability


def test_a_vocabulary_of_everything_is_full_spelling() -> None:
    sentences = sayings(VILLAGE, ENGLISH, longest=20)
    side = MonolingualGrammar.project(VILLAGE, ENGLISH)
    corpus = Corpus.from_sentences([*sentences, "she sees dragons", ""])
    np.testing.assert_array_equal(
        inside_log_probs(side, corpus), inside_log_probs_with_spelling(side, [*sentences, "she sees dragons", ""])
    )


def test_no_name_is_left_outside() -> None:
    """One less the sum of the shares would be 1e-16 here, and not nothing."""
    names = Few(tuple((f"n{number}", 0.1) for number in range(10)))
    side = MonolingualGrammar.project(Grammar("Name", {}, {"Name": names}), ENGLISH)
    known = vocab_of(*names.words())
    assert inside_log_probs(side, Corpus.from_sentences(["n3", "<unk>"], known)).tolist() == [math.log(0.1), -np.inf]


def test_a_rare_name_is_left_outside() -> None:
    names = Few((("common", 1 - 3e-14), ("rare", 1e-14), ("other", 2e-14)))
    side = MonolingualGrammar.project(Grammar("Name", {}, {"Name": names, "Same": names}), ENGLISH)
    assert_says(inside_log_probs(side, Corpus.from_sentences(["rare"], vocab_of("common"))), [3e-14])


def test_reserved_words_are_unknown_words() -> None:
    builder = GrammarBuilder()
    builder.add("S", 3, {}, "<s>/X", "<s>/X")
    builder.add("S", 1, {}, "word/X", "word/X")
    side = MonolingualGrammar.project(builder.build("S"), ENGLISH)
    assert_says(
        inside_log_probs(side, Corpus.from_sentences(["<s>", "<unk>", "word"], vocab_of("word"))), [0.75, 0.75, 0.25]
    )
    assert_says(inside_log_probs_with_spelling(side, ["<s>"]), [0.75])


# -- any grammar ---------------------------------------------------------------------------------------------------


SYMBOLS, WORDS = ("A", "B", "C", "D"), ("a", "b", "c")


@st.composite
def grammars(draw: st.DrawFn) -> Grammar:
    """Four symbols, each with a word; single symbols lead to later ones, so that there is no circle."""
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


EVERYTHING = [" ".join(words) for length in range(1, 5) for words in product(WORDS, repeat=length)]


@given(grammars(), st.sampled_from([GERMAN, ENGLISH]), st.sets(st.sampled_from(WORDS)))
def test_any_grammar_and_any_vocabulary(grammar: Grammar, side: int, known: set[str]) -> None:
    compiled, expected = MonolingualGrammar.project(grammar, side), sayings(grammar, side, longest=4)
    assert_says(
        inside_log_probs_with_spelling(compiled, EVERYTHING), [expected.get(sentence, 0.0) for sentence in EVERYTHING]
    )
    vocab = vocab_of(*sorted(known))
    through = collapsed(expected, vocab)
    assert_says(inside_log_probs(compiled, Corpus.from_sentences(through, vocab)), through.values())


# -- what is refused -----------------------------------------------------------------------------------------------


def test_circles_of_single_symbols_are_refused() -> None:
    builder = village()
    builder.add("Kind", 1, {"n": "Noun"}, "{n}", "{n}")
    with pytest.raises(ValueError, match=r"a cycle of unary rules: (Noun -> Kind -> Noun|Kind -> Noun -> Kind)$"):
        MonolingualGrammar.project(builder.build("S"), ENGLISH)


def test_saying_nothing_is_refused() -> None:
    silent = Rule("S", 1.0, (), ((RightHandSide(1.0, (Terminal("a", "X"),)),), (RightHandSide(1.0, ()),)))
    grammar = replace(HEAP, rules={"S": (silent,)})
    assert_says(inside_log_probs_with_spelling(MonolingualGrammar.project(grammar, GERMAN), ["a"]), [1.0])
    with pytest.raises(ValueError, match="a rule of S has an empty right-hand side"):
        MonolingualGrammar.project(grammar, ENGLISH)


def test_what_has_no_weight_is_not_said() -> None:
    a, b = (RightHandSide(prob, (Terminal(word, "X"),)) for prob, word in ((1.0, "a"), (0.0, "b")))
    never = Rule("S", 0.0, ("S", "S"), ((RightHandSide(1.0, (0, 1)),),) * 2)
    grammar = replace(HEAP, rules={"S": (Rule("S", 1.0, (), ((a, b), (a, b))), never)})
    side = MonolingualGrammar.project(grammar, ENGLISH)
    assert_says(inside_log_probs_with_spelling(side, ["a", "b", "a a"]), [1.0, 0.0, 0.0])
    assert side.binary_rules.parent.size == 0
