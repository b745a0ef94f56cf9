"""The lab: exact probabilities, properties of the grammar, and alignments."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

from dragoman.lab.corpus_files import GRAMMAR_VERSION
from dragoman.lab.derivation import Derivation, DerivationSampler, realize
from dragoman.lab.grammar import (
    ENGLISH,
    GERMAN,
    LANGUAGES,
    Grammar,
    GrammarBuilder,
    Rule,
    Terminal,
    category_of,
)
from dragoman.lab.inside import MonolingualGrammar, inside_log_probs_with_spelling
from dragoman.lab.lab import SentencePair, german_english_lab
from dragoman.lab.lexical_rules import CROSSED_OBJECTS, CROSSED_SUBJECTS, FEMALE, MALE, DigitNumbers, MadeUpNames
from dragoman.lab.lexicon import TOPICS
from dragoman.lab.minimal_pairs import RELATIVE_CLAUSE_SHARE
from dragoman.lab.probabilities import DerivationScorer, PairLogProbs, expected_counts, pair_entropy
from dragoman.lab.sentence_rules import PREFERENCE, german_english_grammar

LANGUAGE_NAMES = {GERMAN: "german", ENGLISH: "english"}


@cache
def sampled_pairs() -> list[SentencePair]:
    return list(german_english_lab().pairs(3000, seed=5))


# -- exact probabilities, by enumeration of small grammars -----------------------------------------------------------

WIDTHS = {"S": 2, "N": 2, "AN": 2, "V": 2, "A": 2, "TIME": 2}  # rules sampled per symbol; 1 for others


def small_grammar(seed: int) -> Grammar:
    """Return the grammar without recursion and with a few random rules of each symbol."""
    generator, whole = random.Random(seed), german_english_grammar(relative_clause_share=0.0)
    b = GrammarBuilder()
    b.open_classes = {
        "NAME[man]": MadeUpNames.ending_in(MALE, ("ma", "mo")),
        "NAME[woman]": MadeUpNames.ending_in(FEMALE, ("ma", "mo")),
        "DIGITS": DigitNumbers(range(100, 102)),
    }
    reachable, agenda = {whole.start}, [whole.start]
    while agenda:
        symbol = agenda.pop()
        rules = [rule for rule in whole.rules.get(symbol, ()) if symbol not in rule.children]
        chosen = generator.sample(rules, min(len(rules), WIDTHS.get(category_of(symbol), 1)))
        total = sum(rule.prob for rule in chosen)
        b.rules[symbol] = [replace(rule, prob=rule.prob / total) for rule in chosen]
        new = {child for rule in chosen for child in rule.children} - reachable - set(b.open_classes)
        reachable |= new
        agenda += sorted(new)
    return b.build(whole.start)


def count_derivations(g: Grammar, symbol: str) -> int:
    """Return the number of derivations."""
    if symbol in g.open_classes:
        return len(list(g.open_classes[symbol].words()))
    return sum(
        math.prod(count_derivations(g, child) for child in rule.children)
        * len(rule.right_sides[0])
        * len(rule.right_sides[1])
        for rule in g.rules[symbol]
    )


@cache
def small_grammars() -> list[Grammar]:
    """Return grammars with a number of derivations that can be enumerated."""
    candidates = (small_grammar(seed) for seed in range(10_000))
    return list(islice((g for g in candidates if 500 < count_derivations(g, g.start) < 10_000), 3))


def all_derivations(g: Grammar, symbol: str) -> list[tuple[float, Derivation]]:
    """Return every derivation of a symbol with its probability."""
    if symbol in g.open_classes:
        rules = [g.open_class_rule(symbol, word) for word in g.open_classes[symbol].words()]
        return [(rule.prob, Derivation(rule, (0, 0), ())) for rule in rules]
    derivations = []
    for rule in g.rules[symbol]:
        for children in product(*(all_derivations(g, child) for child in rule.children)):
            prob = rule.prob * math.prod(share for share, _ in children)
            nodes = tuple(node for _, node in children)
            for (f, german), (e, english) in product(*map(enumerate, rule.right_sides)):
                derivations.append((prob * german.prob * english.prob, Derivation(rule, (f, e), nodes)))
    return derivations


class Enumerated(NamedTuple):
    """A derivation and its sentences."""

    prob: float
    node: Derivation
    german: tuple[str, ...]
    english: tuple[str, ...]


@pytest.fixture(scope="module", params=range(3))
def small(request) -> tuple[Grammar, list[Enumerated]]:
    """A small grammar and all its derivations."""
    g = small_grammars()[request.param]
    derivations = all_derivations(g, g.start)
    return g, [
        Enumerated(prob, node, realize(node, GERMAN).words, realize(node, ENGLISH).words) for prob, node in derivations
    ]


def test_probabilities_of_all_derivations_sum_to_one(small):
    _, derivations = small
    assert len(derivations) > 500
    assert math.fsum(derivation.prob for derivation in derivations) == pytest.approx(1, abs=1e-12)


def test_log_probs_are_sums_over_derivations(small):
    g, derivations = small
    pairs, sides = defaultdict(float), (defaultdict(float), defaultdict(float))
    for prob, _, german, english in derivations:
        pairs[german, english] += prob
        sides[GERMAN][german] += prob
        sides[ENGLISH][english] += prob
    scorer = DerivationScorer(g)
    for _, node, german, english in random.Random(1).sample(derivations, min(200, len(derivations))):
        log_probs = scorer.log_probs(node)
        assert math.exp(log_probs.german) == pytest.approx(sides[GERMAN][german], rel=1e-9)
        assert math.exp(log_probs.english) == pytest.approx(sides[ENGLISH][english], rel=1e-9)
        assert math.exp(log_probs.both) == pytest.approx(pairs[german, english], rel=1e-9)
        given = pairs[german, english] / sides[GERMAN][german]
        assert math.exp(log_probs.english_given_german) == pytest.approx(given, rel=1e-9)


def test_entropies_are_sums_over_sentences(small):
    g, derivations = small
    tables = [defaultdict(float) for _ in range(3)]
    words = [0.0, 0.0]
    for prob, _, german, english in derivations:
        for table, key in zip(tables, (english, german, (english, german)), strict=True):
            table[key] += prob
        words = [words[0] + prob * len(english), words[1] + prob * len(german)]
    expected = [-math.fsum(p * math.log(p) for p in table.values()) for table in tables]
    computed = pair_entropy(g)
    assert (computed.english, computed.german, computed.both) == pytest.approx(tuple(expected), rel=1e-9)
    assert (computed.english_words, computed.german_words) == pytest.approx(tuple(words), rel=1e-9)


# -- exact probabilities of the complete grammar ---------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_a_sentence_has_only_one_tree(language):
    """The inside algorithm sums over all trees, so a second tree would give a higher probability."""
    texts = [" ".join(getattr(pair, LANGUAGE_NAMES[language]).words) for pair in sampled_pairs()]
    by_inside = inside_log_probs_with_spelling(
        MonolingualGrammar.project(german_english_lab().grammar, language), texts
    )
    by_derivation = np.array([getattr(pair.log_probs, LANGUAGE_NAMES[language]) for pair in sampled_pairs()])
    np.testing.assert_allclose(by_inside, by_derivation, rtol=0, atol=1e-9)


@dataclass(frozen=True)
class ScoredSample:
    """Sampled derivations with their exact probabilities."""

    grammar: Grammar
    nodes: list[Derivation]
    log_probs: list[PairLogProbs]

    @classmethod
    def sample(cls, g: Grammar, count: int, seed: int) -> ScoredSample:
        sampler, scorer, uniform = DerivationSampler(g), DerivationScorer(g), random.Random(seed).random
        nodes = [sampler.sample(uniform) for _ in range(count)]
        return cls(g, nodes, [scorer.log_probs(node) for node in nodes])


def assert_one_tree_per_sentence(sample: ScoredSample, language: int) -> None:
    texts = [" ".join(realize(node, language).words) for node in sample.nodes]
    by_inside = inside_log_probs_with_spelling(MonolingualGrammar.project(sample.grammar, language), texts)
    by_derivation = [getattr(log_probs, LANGUAGE_NAMES[language]) for log_probs in sample.log_probs]
    np.testing.assert_allclose(by_inside, by_derivation, rtol=0, atol=1e-9)


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_a_sentence_with_rare_words_has_only_one_tree(language):
    """All words of a class are equally probable here, so rare words are frequent."""
    assert_one_tree_per_sentence(uniform_word_sample(), language)


@cache
def uniform_word_sample() -> ScoredSample:
    rules = {symbol: with_uniform_words(rules) for symbol, rules in german_english_lab().grammar.rules.items()}
    return ScoredSample.sample(
        Grammar(german_english_lab().grammar.start, rules, german_english_lab().grammar.open_classes), 1000, seed=4
    )


def with_uniform_words(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Make lexical rules equally probable and leave other rules unchanged."""
    if any(rule.children for rule in rules):
        return tuple(rules)
    return tuple(Rule(rule.parent, 1 / len(rules), (), rule.right_sides, rule.name) for rule in rules)


@pytest.mark.parametrize("language", LANGUAGE_NAMES)
def test_a_deeply_nested_sentence_has_only_one_tree(language):
    assert_one_tree_per_sentence(nested_sample(), language)


@cache
def nested_sample() -> ScoredSample:
    return ScoredSample.sample(german_english_grammar(RELATIVE_CLAUSE_SHARE), 100, seed=3)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda pair: -pair.log_probs.english, "english"),
        (lambda pair: -pair.log_probs.german, "german"),
        (lambda pair: -pair.log_probs.english_given_german, "english_given_german"),
        (lambda pair: len(pair.english.words), "english_words"),
        (lambda pair: len(pair.german.words), "german_words"),
    ],
    ids=["H(E)", "H(F)", "H(E | F)", "words of E", "words of F"],
)
def test_sample_means_approach_entropies_and_lengths(value, expected):
    values = np.array([value(pair) for pair in sampled_pairs()])
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert values.mean() == pytest.approx(getattr(german_english_lab().entropy, expected), abs=4 * error)
    assert error < 0.03 * values.mean()


def test_conditional_entropy_is_far_below_the_marginal():
    assert german_english_lab().entropy.english_given_german < 0.1 * german_english_lab().entropy.english


def test_inconsistent_grammar_is_an_error():
    b = GrammarBuilder()
    b.add("A", 0.9, {"x": "A", "y": "A"}, "{x} {y}", "{x} {y}")
    b.add("A", 0.1, {}, "a/X=", "a/X=")
    with pytest.raises(ValueError, match="infinite"):
        expected_counts(b.build("A"))


# -- properties of the grammar -----------------------------------------------------------------------------------------


def test_size_and_entropy_of_the_corpus():
    entropy = german_english_lab().entropy
    assert 8 <= entropy.english_words <= 14
    assert 8 <= entropy.german_words <= 14
    assert 0.1 <= entropy.english_given_german_per_word <= 0.5
    for language in LANGUAGES.values():
        sides = (
            side
            for rules in german_english_lab().grammar.rules.values()
            for rule in rules
            for side in rule.right_sides[language]
        )
        assert len({item.word for side in sides for item in side.items if isinstance(item, Terminal)}) >= 600


def test_a_few_sentences_are_long():
    lengths = Counter(len(pair.english.words) for pair in sampled_pairs())
    assert max(lengths) >= 30
    assert sum(count for length, count in lengths.items() if length > 40) < 0.01 * len(sampled_pairs())


def test_rule_probabilities_of_every_symbol_sum_to_one():
    for rules in german_english_lab().grammar.rules.values():
        assert math.fsum(rule.prob for rule in rules) == pytest.approx(1)
        for rule in rules:
            for sides in rule.right_sides:
                assert math.fsum(side.prob for side in sides) == pytest.approx(1)


def crossed_shares(topic: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return P(object | subject, verb) of a crossed quadruple."""
    shares: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for rule in german_english_lab().grammar.rules[f"CL[{topic},formal,main]"]:
        _, verb, subject, _, obj, *_ = rule.name
        if verb.startswith("quad"):
            shares[subject, verb][obj] += rule.prob
    return {pair: {obj: p / sum(objects.values()) for obj, p in objects.items()} for pair, objects in shares.items()}


@pytest.mark.parametrize("topic", TOPICS)
def test_no_additive_model_solves_a_crossed_quadruple(topic):
    """Scores a(subject, object) + b(verb, object) can prefer the right object in any three cases, but not in four."""
    shares = crossed_shares(topic)
    assert len(shares) == 4
    assert all(max(objects.values()) == pytest.approx(PREFERENCE) for objects in shares.values())
    preferred = {pair: max(objects, key=objects.get) for pair, objects in shares.items()}
    assert not additive_model_exists(preferred)
    for left_out in preferred:
        assert additive_model_exists({pair: obj for pair, obj in preferred.items() if pair != left_out})


def additive_model_exists(preferred: dict[tuple[str, str], str]) -> bool:
    """Whether scores exist by which every preferred object wins by at least 1 (linear programming)."""
    parts = [*CROSSED_SUBJECTS, "quad0", "quad1"]
    column = {key: number for number, key in enumerate(product(parts, CROSSED_OBJECTS))}
    rows = []
    for (subject, verb), best in preferred.items():
        other = next(obj for obj in CROSSED_OBJECTS if obj != best)
        row = np.zeros(len(column))
        for part in (subject, verb):
            row[column[part, best]] -= 1
            row[column[part, other]] += 1
        rows.append(row)  # score(other) - score(best) <= -1
    bounds = [(None, None)] * len(column)
    result = linprog(np.zeros(len(column)), A_ub=np.array(rows), b_ub=-np.ones(len(rows)), bounds=bounds)
    assert result.status in (0, 2), "solved, or proved infeasible"
    return result.status == 0


def test_equal_right_hand_sides_have_children_in_the_same_order():
    """The scorer adds up rules with the same words and children in order: no two rules differ only in the order."""
    for language in LANGUAGES.values():
        for rules in german_english_lab().grammar.rules.values():
            orders = defaultdict(set)
            for rule in rules:
                for side in rule.right_sides[language]:
                    key = tuple(item.word if isinstance(item, Terminal) else rule.children[item] for item in side.items)
                    orders[key].add((rule.children, tuple(item for item in side.items if isinstance(item, int))))
            assert all(len(distinct) == 1 for distinct in orders.values())


def digest(g: Grammar) -> str:
    """A hash of all rules, with the exact bits of their probabilities."""
    digest = hashlib.sha256()
    for symbol in sorted(g.rules):
        for rule in g.rules[symbol]:
            sides = [[(side.prob.hex(), side.items) for side in right_sides] for right_sides in rule.right_sides]
            plain = [
                [(prob, [tuple(i) if isinstance(i, Terminal) else i for i in items]) for prob, items in s]
                for s in sides
            ]
            digest.update(repr((symbol, rule.prob.hex(), rule.children, plain)).encode())
    for symbol in sorted(g.open_classes):
        words = g.open_classes[symbol]
        probs = [(word, words.prob(word).hex()) for word in words.words()]
        digest.update(repr((symbol, words.tags, probs)).encode())
    return digest.hexdigest()[:16]


def test_grammar_version_belongs_to_the_grammar():
    """If you change the grammar, increase GRAMMAR_VERSION and update both values: probabilities of old text change."""
    assert (GRAMMAR_VERSION, digest(german_english_lab().grammar)) == (1, "b21b84c9153397fb")


def test_same_seed_gives_same_pairs_on_every_machine():
    text = "".join(
        f"{' '.join(pair.german.words)}\t{' '.join(pair.english.words)}\n"
        for pair in german_english_lab().pairs(50, seed=1)
    )
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "547658414649e130"


# -- trees and alignments --------------------------------------------------------------------------------------------


def leaves(tree: str) -> list[str]:
    return re.findall(r"\(\S+ ([^\s()]+)\)", tree)


@pytest.mark.parametrize("language", LANGUAGE_NAMES.values())
def test_leaves_of_trees_are_the_words(language):
    for pair in sampled_pairs():
        sentence = getattr(pair, language)
        assert leaves(sentence.tree) == list(sentence.words)
        assert sentence.tree.startswith("(ROOT (S ")
        depth = np.cumsum([{"(": 1, ")": -1}.get(character, 0) for character in sentence.tree])
        assert depth[-1] == 0
        assert (depth[:-1] > 0).all()


def test_alignments_are_pairs_of_positions():
    for pair in sampled_pairs():
        assert len(set(pair.alignment)) == len(pair.alignment)
        for german, english in pair.alignment:
            assert 0 <= german < len(pair.german.words)
            assert 0 <= english < len(pair.english.words)


def test_names_and_digits_are_aligned_with_themselves():
    count = 0
    for pair in sampled_pairs():
        for german, english in pair.alignment:
            if (pair.german.tags[german], pair.english.tags[english]) in (("NE", "NNP"), ("CARD", "CD")):
                if not pair.german.words[german].isdigit() and pair.german.tags[german] == "CARD":
                    continue  # a number written as a word
                assert pair.german.words[german] == pair.english.words[english]
                count += 1
    assert count > 100


def test_only_commas_are_unaligned():
    unaligned = Counter()
    for pair in sampled_pairs():
        aligned = [set(positions) for positions in zip(*pair.alignment, strict=True)]
        for sentence, positions in zip((pair.german, pair.english), aligned, strict=True):
            unaligned.update(word for i, word in enumerate(sentence.words) if i not in positions)
    assert set(unaligned) == {","}


def test_fertility_in_both_directions():
    """Compounds are two words in English, and some two German words are one English word."""
    fertile = Counter()
    for pair in sampled_pairs():
        german, english = (Counter(positions) for positions in zip(*pair.alignment, strict=True))
        fertile["one German word, several English ones"] += sum(count > 1 for count in german.values())
        fertile["several German words, one English one"] += sum(count > 1 for count in english.values())
    assert min(fertile.values()) > 300
    assert len(fertile) == 2


def test_word_order_differs_between_languages():
    crossing = sum(
        any(a < c and b > d for (a, b), (c, d) in product(pair.alignment, repeat=2)) for pair in sampled_pairs()[:500]
    )
    assert 150 < crossing < 450


def test_words_have_several_translations():
    """Some German words have two translations, and so have some English words."""
    by_german, by_english = defaultdict(set), defaultdict(set)
    for pair in sampled_pairs():
        for german, english in pair.alignment:
            by_german[pair.german.words[german]].add(pair.english.words[english])
            by_english[pair.english.words[english]].add(pair.german.words[german])
    assert {"bank", "bench"} <= by_german["bank"]
    assert {"verein", "knüppel"} <= by_english["club"]


# -- open classes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [MadeUpNames.ending_in(FEMALE, ("ma", "lo", "mi")), MadeUpNames.ending_in(MALE), DigitNumbers()],
    ids=["women", "men", "numbers"],
)
def test_probabilities_of_generated_words_sum_to_one(names):
    words = list(names.words())
    assert len(set(words)) == len(words)
    assert math.fsum(map(names.prob, words)) == pytest.approx(1)
    assert -math.fsum(p * math.log(p) for p in map(names.prob, words)) == pytest.approx(names.entropy())


def test_generated_words_are_sampled_by_their_probability():
    names, generator = MadeUpNames.ending_in(FEMALE, ("ma", "lo", "mi")), random.Random(1)
    count = 20_000
    counts = Counter(names.sample(generator.random) for _ in range(count))
    for word in names.words():
        p = names.prob(word)
        assert counts[word] / count == pytest.approx(p, abs=5 * math.sqrt(p / count))


@pytest.mark.parametrize("word", ["", "kal", "kali0", "99", "0123", "1000", "x"])
def test_other_words_are_not_in_open_classes(word):
    assert (
        MadeUpNames.ending_in(FEMALE).prob(word)
        == MadeUpNames.ending_in(MALE).prob(word)
        == DigitNumbers().prob(word)
        == 0
    )
