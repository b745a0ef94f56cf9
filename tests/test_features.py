"""Features of the context: notation, extraction, and features defined by users."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Corpus, DataError, LogLinearModel, Vocab
from dragoman.data.vocabulary import SPECIALS, START
from dragoman.models.loglinear.features import (
    CUSTOM_ATOMS,
    CUSTOM_FEATURES,
    FEATURES_VARIABLE,
    NO_WORD,
    PRESETS,
    ValueTable,
    WordHistories,
    atom,
    class_table,
    combine_hashes,
    custom_atom_value,
    custom_feature_names,
    feature,
    function_table,
    hash_name,
    identity_table,
    load_environment_features,
    load_feature_file,
    parse_features,
    suffix_table,
)
from dragoman.models.loglinear.weights import NOT_FOUND, FeatureIndex

LINES = ["cows eat hay", "", "farmers eat hay hay"]


@pytest.fixture
def corpus() -> Corpus:
    return Corpus.from_sentences(LINES)


@pytest.fixture
def definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the definitions of a test afterwards."""
    monkeypatch.setattr("dragoman.models.loglinear.features.CUSTOM_ATOMS", dict(CUSTOM_ATOMS))
    monkeypatch.setattr("dragoman.models.loglinear.features.CUSTOM_FEATURES", dict(CUSTOM_FEATURES))


def names_at(notation: str, prefix: str, corpus: Corpus, **tables: ValueTable) -> list[str]:
    """Return readable names of the features that are active after a prefix."""
    ids = Corpus.from_sentences([prefix], corpus.vocab).ids
    history = WordHistories.from_rows(np.array([[START, *ids.tolist()]]))
    all_tables = {"word": identity_table(corpus.vocab), **tables}
    return [name for t in parse_features(notation) for name in t.describe(history, all_tables, corpus.vocab)]


# -- histories ------------------------------------------------------------------------------------------------


def test_histories_of_a_corpus_equal_those_of_states(corpus: Corpus) -> None:
    text = WordHistories.from_corpus(corpus)
    token = 0
    for sentence in corpus:
        for length in range(len(sentence) + 1):
            row = np.array([[START, *sentence[:length].tolist()]])
            assert text.words_before(token).tolist() == row[0].tolist()
            for offset in (1, 2, 3, 9):
                assert text.words_at(offset)[token] == WordHistories.from_rows(row).words_at(offset)[0]
            token += 1
    assert token == corpus.num_tokens == len(text)


def test_sentence_is_preceded_by_one_start_token(corpus: Corpus) -> None:
    text = WordHistories.from_corpus(corpus)
    assert text.words_at(1)[:2].tolist() == [START, corpus.ids[0]]
    assert text.words_at(2)[:3].tolist() == [NO_WORD, START, corpus.ids[0]]
    assert text.words_at(1)[corpus.token_offsets[1:3]].tolist() == [START, START]  # for each sentence


# -- value tables ------------------------------------------------------------------------------------------------


def test_suffixes_are_endings_shared_by_enough_words() -> None:
    vocab = Vocab([*SPECIALS, "walking", "talking", "going", "walked", "ing", "1990s", "s"])
    values = suffix_table(vocab, min_types=2)
    named = dict(zip(vocab.tokens, (values.names[index] for index in values.value_ids), strict=True))
    assert named["walking"] == named["talking"] == "-king"
    assert named["going"] == "-ing"  # shared with the other two
    assert named["walked"] == "" and named["1990s"] == "" and named["s"] == ""
    assert named["ing"] == "-ng"  # a word is not its own ending
    assert not values.value_ids[:3].any()


def test_classes_can_be_names_or_numbers() -> None:
    vocab = Vocab([*SPECIALS, "rome", "oslo", "fly"])
    named = class_table(vocab, {"rome": "CITY", "oslo": "CITY", "<s>": "CITY"})
    assert named.value_ids[3] == named.value_ids[4] and len(set(named.value_ids.tolist())) == 5
    assert named.names[named.value_ids[3]] == "CITY" and named.names[named.value_ids[5]] == "fly"
    numbered = class_table(vocab, np.array([0, 1, 2, 7, 7, 8]))
    assert numbered.value_ids.tolist() == named.value_ids.tolist()
    with pytest.raises(DataError, match="5 classes for 6 words"):
        class_table(vocab, np.zeros(5, np.int64))


def test_class_with_the_name_of_a_word_is_distinct_from_it() -> None:
    vocab = Vocab([*SPECIALS, "rome", "oslo", "fly"])
    values = class_table(vocab, {"rome": "fly"})
    assert values.value_ids[3] != values.value_ids[5]


# -- notation --------------------------------------------------------------------------------------------------------


def test_presets_stand_for_several_templates() -> None:
    assert PRESETS["5-gram"] == ["word1", "word1+word2", "word1+word2+word3", "word1+word2+word3+word4"]
    assert PRESETS["words-4"] == ["word1", "word2", "word3", "word4"]
    assert [template.name for template in parse_features("3-gram,word1, bag")] == ["word1", "word1+word2", "bag"]


def test_context_length_of_templates() -> None:
    assert [template.context_length for template in parse_features("word1,word1+word3,bag")] == [1, 3, None]


@pytest.mark.parametrize(
    ("notation", "problem"),
    [
        ("", "not known"),
        ([], "no features"),
        ("word", "did you mean word1"),
        ("wrod1", "did you mean word1"),
        ("word0", "looks 0 words back"),
        ("word100", "looks 100 words back"),
        ("word1+", "not known"),
        ("word1+word1", "an atom twice"),
        ("word1+word2+word3+word4+word5", "joins 5 atoms"),
        ("capitals1", "--features-from"),
        ("bag1", "did you mean bag"),
        ("bag+word1", "did you mean bag"),
    ],
)
def test_invalid_notation_is_an_error_with_a_remedy(notation: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        parse_features(notation)


# -- extraction ------------------------------------------------------------------------------------------------------


def test_readable_names_of_active_features(corpus: Corpus) -> None:
    tables = {"class": class_table(corpus.vocab, {"eat": "010"}), "suffix": suffix_table(corpus.vocab, min_types=2)}
    notation = "word1,word1+word2,word3,class1+word2,suffix1,bag"
    assert names_at(notation, "farmers eat", corpus, **tables) == [
        "word1=eat",
        "word1+word2=eat+farmers",
        "word3=<s>",
        "class1+word2=010+farmers",
        "bag: eat",
        "bag: farmers",
    ]
    assert names_at(notation, "", corpus, **tables) == ["word1=<s>"]
    assert names_at("suffix1,word4", "farmers cows", corpus, **tables) == ["suffix1=-s"]


def test_bag_of_words_counts_words(corpus: Corpus) -> None:
    (bag,) = parse_features("bag")
    occurrences = bag.extract(WordHistories.from_corpus(corpus), {}, corpus.vocab)
    last = occurrences.prediction == corpus.num_tokens - 1
    assert sorted(occurrences.value[last].tolist()) == [1, 1, 2]  # farmers eat hay hay
    assert not np.isin(occurrences.prediction, corpus.token_offsets[:-1]).any()  # no features at the first word


def test_keys_of_different_features_differ(corpus: Corpus) -> None:
    tables = {"word": identity_table(corpus.vocab)}
    history = WordHistories.from_corpus(corpus)
    templates = parse_features("word1,word2,bag")
    keys = [set(t.extract(history, tables, corpus.vocab).key.tolist()) for t in templates]
    assert all(not a & b for a in keys for b in keys if a is not b)
    forward, backward = (
        set(template.extract(history, tables, corpus.vocab).key.tolist())
        for template in parse_features("word1+word2,word2+word1")
    )
    assert len(forward) == len(backward)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), unique=True, max_size=200))
def test_pairs_of_values_have_different_keys(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    keys = combine_hashes(combine_hashes(np.full(len(pairs), hash_name("x")), first), second)
    assert len(set(keys.tolist())) == len(pairs)


@given(st.sets(st.integers(0, 2**64 - 1), max_size=300), st.sets(st.integers(0, 2**64 - 1), max_size=50))
def test_index_finds_exactly_its_keys(present: set[int], others: set[int]) -> None:
    keys = np.array(sorted(present), np.uint64)
    index = FeatureIndex.build(keys)
    assert index.find(keys).tolist() == list(range(len(keys)))
    absent = np.array(sorted(others - present), np.uint64)
    assert (index.find(absent) == NOT_FOUND).all()


def test_index_resolves_collisions() -> None:
    keys = np.arange(100, dtype=np.uint64) << np.uint64(32)
    index = FeatureIndex.build(keys)
    assert index.find(keys[::-1].copy()).tolist() == list(range(99, -1, -1))
    with pytest.raises(ValueError, match="two ids"):
        FeatureIndex.build(np.array([5, 7, 5], np.uint64))


# -- defined by users ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("definitions")
def test_custom_atom(corpus: Corpus) -> None:
    @atom("length")
    def length(word: str) -> int | None:
        return len(word) if len(word) > 3 else None

    table = function_table(corpus.vocab, length)
    assert names_at("length1", "cows", corpus, length=table) == ["length1=4"]
    assert names_at("length1+word2", "cows eat", corpus, length=table) == []  # None means no value
    assert names_at("length2+word1", "cows eat", corpus, length=table) == ["length2+word1=4+eat"]


@pytest.mark.usefixtures("definitions")
def test_custom_feature_counts_its_names(corpus: Corpus) -> None:
    @feature("letters")
    def letters(words: list[str]) -> list[str]:
        return [letter for word in words for letter in word]

    assert names_at("letters", "hay", corpus) == ["letters: h", "letters: a", "letters: y"]
    assert names_at("letters", "unheard", corpus) == [f"letters: {letter}" for letter in "<unk>"]
    (template,) = parse_features("letters")
    occurrences = template.extract(WordHistories.from_corpus(corpus), {}, corpus.vocab)
    values = occurrences.value[occurrences.prediction == corpus.num_tokens - 1]
    assert values.sum() == len("farmerseathayhay") and values.max() == 4


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("name", ["word", "bag", "Capital", "caps1", "a+b", ""])
def test_invalid_names_of_custom_features(name: str) -> None:
    with pytest.raises(DataError, match=r"is built in|lowercase letters"):
        atom(name)(len)
    with pytest.raises(DataError, match=r"is built in|lowercase letters"):
        feature(name)(list)


@pytest.mark.usefixtures("definitions")
def test_custom_feature_that_returns_none_is_inactive(corpus: Corpus) -> None:
    feature("silent")(lambda words: None)
    assert names_at("silent", "cows eat", corpus) == []
    (template,) = parse_features("silent")
    assert len(template.extract(WordHistories.from_corpus(corpus), {}, corpus.vocab).key) == 0


@pytest.mark.usefixtures("definitions")
def test_custom_feature_that_returns_a_string_is_an_error(corpus: Corpus) -> None:
    feature("greeting")(lambda words: "hello")
    with pytest.raises(DataError, match=r"^feature 'greeting', called with \['cows'\]: .* return \['hello'\]$"):
        names_at("greeting", "cows", corpus)


def fail(words: object) -> list[str]:
    raise KeyError("two\nlines")


def fail_late(words: object) -> object:
    yield "one"
    fail(words)


def refuse(words: object) -> list[str]:
    raise DataError("mine")


FAILING = {
    "raises": (fail, "KeyError"),
    "raises while its result is read": (fail_late, "KeyError"),
    "raises DataError": (refuse, "DataError: mine"),
    "exits": (sys.exit, "SystemExit"),
    "returns a number": (lambda words: 5, "TypeError"),
    "returns a lone surrogate": (lambda words: ["\ud800"], "UnicodeEncodeError"),
}


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("failure", FAILING)
def test_error_of_a_custom_feature_names_its_words(failure: str) -> None:
    function, problem = FAILING[failure]
    feature("mine")(function)
    with pytest.raises(DataError) as raised:
        custom_feature_names("mine", ["cows", "eat"])
    assert str(raised.value).startswith("feature 'mine', called with ['cows', 'eat']: failed (")
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("function", [fail, refuse, sys.exit, lambda word: "\ud800"])
def test_error_of_a_custom_atom_names_its_word(corpus: Corpus, function: Callable[[str], object]) -> None:
    atom("mine")(function)
    with pytest.raises(DataError, match=r"^feature 'mine', called with 'hay': failed \(.*\); fix its function$"):
        custom_atom_value("mine", "hay")
    with pytest.raises(DataError, match=r"^feature 'mine', called with '"):
        LogLinearModel.create(corpus, features="mine1+word2")


@pytest.mark.usefixtures("definitions")
def test_error_message_shows_only_the_last_words() -> None:
    feature("mine")(fail)
    with pytest.raises(DataError, match="before', 'last'") as raised:
        custom_feature_names("mine", [*["word"] * 10_000, "before", "last"])
    assert len(str(raised.value)) < 400


DEFINING = """
from dragoman.models.loglinear.features import atom

@atom("first-letter")
def first_letter(word):
    return word[0]
"""


@pytest.mark.usefixtures("definitions")
def test_features_from_a_file(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match="not known"):
        parse_features("first-letter1")
    path = tmp_path / "mine.py"
    path.write_text(DEFINING)
    monkeypatch.setenv(FEATURES_VARIABLE, str(path))
    load_environment_features()
    assert parse_features("first-letter1+word2")[0].name == "first-letter1+word2"
    load_environment_features()  # loading twice is allowed
    monkeypatch.delenv(FEATURES_VARIABLE)
    load_environment_features()  # does nothing without the variable


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("missing.py", None, "no such file"),
        ("mine.txt", "", "not a Python file"),
        ("mine.py", "1 / 0", "ZeroDivisionError"),
        ("mine.py", "def", "SyntaxError"),
        ("mine.py", "import sys; sys.exit()", "SystemExit"),
        ("mine.py", DEFINING.replace("first-letter", "bag"), "mine.py: feature 'bag': is built in"),
    ],
)
def test_invalid_feature_files_are_errors(tmp_path, name, content, problem) -> None:  # type: ignore[no-untyped-def]
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=problem):
        load_feature_file(tmp_path / name)
