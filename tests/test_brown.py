"""Brown clustering, compared with exhaustive search."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import ClassNgramModel, Corpus, DataError, Vocab
from dragoman.data import brown
from dragoman.data import brown_merges as merging
from dragoman.data.brown import BrownClustering, brown_clusters, mutual_information
from dragoman.data.vocabulary import END, START, UNK
from dragoman.ngram.class_model import read_classes

# -- the definition, word by word ------------------------------------------------------------------------------------

Partition = list[frozenset[str]]  # classes in order of their first words


def f(x: int) -> int:
    """x log x in the units in which the clustering counts, so that ties are the same ties."""
    return round(x * math.log(x) * merging.UNIT) if x else 0


def information(lines: list[list[str]], partition: Partition) -> int:
    """tokens * I, up to a constant, for a framed text in which all words without a class are one class."""
    class_of = {word: number for number, words in enumerate(partition) for word in words} | {"|": "|", "<unk>": "<unk>"}
    text = [class_of.get(word, "rest") for line in lines for word in ["|", *line]]
    pairs, single = Counter(pairwise([*text, text[0]])), Counter(text)
    return sum(map(f, pairs.values())) - 2 * sum(map(f, single.values()))


def merged(partition: Partition, first: int, second: int) -> Partition:
    """The classes after a merge of two, in the place of the earlier one."""
    joined = partition[first] | partition[second]
    return [joined if number == first else words for number, words in enumerate(partition) if number != second]


def best_merge(lines: list[list[str]], partition: Partition) -> tuple[int, int]:
    """By trying out all: `max` takes the first of equal ones, which is that of the earlier classes."""
    pairs = list(combinations(range(len(partition)), 2))
    return max(pairs, key=lambda pair: information(lines, merged(partition, *pair)))


def brute_merged(lines: list[list[str]], ranked: list[str], classes: int) -> Partition:
    partition: Partition = []
    for word in ranked:
        partition.append(frozenset([word]))
        if len(partition) > classes:
            partition = merged(partition, *best_merge(lines, partition))
    return partition


def brute_exchanged(lines: list[list[str]], ranked: list[str], partition: Partition, passes: int) -> Partition:
    for _ in range(passes):
        before = partition
        for word in ranked:
            home = next(number for number, words in enumerate(partition) if word in words)
            if len(partition[home]) == 1:
                continue
            choices = [
                [words | {word} if number == choice else words - {word} for number, words in enumerate(partition)]
                for choice in range(len(partition))
            ]
            worth = [information(lines, choice) for choice in choices]
            if max(worth) > worth[home]:
                partition = choices[worth.index(max(worth))]
        if partition == before:
            break
    return partition


def brute_paths(lines: list[list[str]], partition: Partition) -> dict[frozenset[str], str]:
    """Each class with its path; at each merge 0 leads to the part with the first of the classes."""
    paths = dict.fromkeys(partition, "")
    tree = partition
    while len(tree) > 1:
        first, second = best_merge(lines, tree)
        for words, path in paths.items():
            turn = "0" if words <= tree[first] else "1" if words <= tree[second] else ""
            paths[words] = turn + path
        tree = merged(tree, first, second)
    return paths


def brute_force(lines: list[str], classes: int, passes: int) -> dict[frozenset[str], str]:
    split = [line.split() for line in lines]
    counts = Counter(word for line in split for word in line if word != "<unk>")  # in the order of first use
    ranked = sorted(counts, key=lambda word: -counts[word])
    partition = brute_merged(split, ranked, classes)
    return brute_paths(split, brute_exchanged(split, ranked, partition, passes))


def class_paths(clustering: BrownClustering) -> dict[frozenset[str], str]:
    return {frozenset(words): path for words, path in zip(clustering.members[3:], clustering.paths[3:], strict=True)}


def random_lines(seed: int, words: str = "abcdefghij", sentences: int = 30) -> list[str]:
    """Sentences of a random chain over words, some of them much more frequent than others."""
    source = random.Random(seed)
    likes = {word: source.choices(words, k=4) for word in words}
    lines = []
    for _ in range(sentences):
        line = [source.choice(words[:4])]
        while source.random() < 0.8:
            line.append("<unk>" if source.random() < 0.05 else source.choice(likes.get(line[-1], words)))
        lines.append(" ".join(line))
    return [*lines, "", " ".join(words)]


@pytest.mark.parametrize("classes", [2, 5, 10])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_exhaustive_search_of_merges(seed: int, classes: int) -> None:
    lines = random_lines(seed)
    corpus = Corpus.from_sentences(lines)
    for passes in (0, 3):
        clustering = brown_clusters(corpus, classes, passes=passes)
        assert class_paths(clustering) == brute_force(lines, classes, passes)


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c", "d", "e", "<unk>"]), max_size=6), max_size=6), st.integers(2, 4)
)
def test_agrees_with_exhaustive_search_on_ties(tokens: list[list[str]], classes: int) -> None:
    lines = [*map(" ".join, tokens), "a b c d"]
    assert class_paths(brown_clusters(Corpus.from_sentences(lines), classes)) == brute_force(lines, classes, passes=10)


def test_counts_too_large_for_the_table_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.from_sentences(random_lines(1))
    usual = brown_clusters(corpus, 4)
    monkeypatch.setattr(brown, "xlogx_table", lambda tokens: merging.xlogx_table(tokens, largest=3))
    assert class_paths(brown_clusters(corpus, 4)) == class_paths(usual)


def test_word_stays_if_no_class_is_better() -> None:
    text = np.array([0, 3, 0, 4, 0, 5], np.int32)  # three words in the very same places
    class_of = np.array([0, 1, 2, 3, 4, 4])
    bigrams, xlogx = merging.count_bigrams(text, 6), merging.xlogx_table(len(text))
    settled = brown._exchange(text, bigrams, class_of, 5, xlogx, lambda *step: None)
    assert settled.tolist() == class_of.tolist()


def test_no_class_is_left_empty() -> None:
    """In units, rounded as they are, these two words would be better off together by two."""
    lines = ["x a", "x b", *["y a", "y b"] * 5]
    split = [line.split() for line in lines]
    apart, together = ([frozenset(words) for words in classes] for classes in (("a", "b", "x", "y"), ("ab", "x", "y")))
    assert information(split, together) > information(split, apart)
    assert sorted(brown_clusters(Corpus.from_sentences(lines), 4).members[3:]) == [("a",), ("b",), ("x",), ("y",)]


# -- what is reported ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.from_sentences(random_lines(7, "abcdefghijklmnopqrstuvwxyz", sentences=200))


@pytest.fixture(scope="module")
def clustering(corpus: Corpus) -> BrownClustering:
    return brown_clusters(corpus, 6)


def test_information_is_that_of_the_final_classes(corpus: Corpus, clustering: BrownClustering) -> None:
    """By its definition, from the pairs in each framed sentence."""
    left, right, both = Counter[int](), Counter[int](), Counter[tuple[int, int]]()
    for sentence in corpus:
        for pair in pairwise(clustering.class_of[[START, *sentence, END]].tolist()):
            left[pair[0]] += 1
            right[pair[1]] += 1
            both[pair] += 1
    total = both.total()
    by_definition = sum(n / total * math.log(n * total / left[a] / right[b]) for (a, b), n in both.items())
    assert clustering.mutual_information == pytest.approx(by_definition)
    assert clustering.mutual_information == mutual_information(corpus, clustering.class_of)


def test_information_minus_entropy_is_the_class_bigram_likelihood(corpus: Corpus, clustering: BrownClustering) -> None:
    model = ClassNgramModel.train(corpus, clustering.as_mapping(), order=2, smoothing="maximum-likelihood")
    shares = np.bincount(corpus.ids_with_boundaries(starts=0)) / corpus.num_tokens
    entropy = -sum(share * math.log(share) for share in shares if share)
    assert model.token_log_probs(corpus).mean() == pytest.approx(clustering.mutual_information - entropy, abs=1e-5)


def test_more_classes_and_passes_give_more_information(corpus: Corpus) -> None:
    by_classes = [brown_clusters(corpus, classes, passes=0).mutual_information for classes in (2, 5, 10, 26)]
    assert by_classes == sorted(by_classes) and len(set(by_classes)) == 4
    by_passes = [brown_clusters(corpus, 5, passes=passes).mutual_information for passes in (0, 1, 10)]
    assert by_passes == sorted(by_passes) and by_passes[0] < by_passes[-1]
    everything = np.arange(len(corpus.vocab), dtype=np.int32)
    assert by_classes[-1] == pytest.approx(mutual_information(corpus, everything))  # each word a class


def test_paths_are_a_full_tree(clustering: BrownClustering) -> None:
    paths = clustering.paths[3:]
    assert len(set(paths)) == clustering.num_classes == 6
    assert not any(other.startswith(path) for path in paths for other in paths if other != path)
    assert sum(2.0 ** -len(path) for path in paths) == 1.0  # every turn leads somewhere
    assert list(paths) == sorted(paths) and clustering.paths[:3] == ("", "", "")


def test_every_word_has_one_class(corpus: Corpus, clustering: BrownClustering) -> None:
    assert clustering.class_of.dtype == np.int32 and clustering.class_of.shape == (len(corpus.vocab),)
    assert clustering.class_of[:3].tolist() == [START, END, UNK]
    words = [word for members in clustering.members[3:] for word in members]
    assert sorted(words) == sorted(corpus.vocab.tokens[3:])
    for word, path in clustering.as_mapping().items():
        assert clustering.paths[clustering.class_of[corpus.vocab.id(word)]] == path
    for members in clustering.members[3:]:
        counts = [int(clustering.counts[corpus.vocab.id(word)]) for word in members]
        assert counts == sorted(counts, reverse=True) and counts[-1] > 0


def test_written_classes_can_be_read_again(corpus: Corpus, clustering: BrownClustering, tmp_path: Path) -> None:
    (tmp_path / "classes.tsv").write_text(clustering.to_text(), encoding="utf-8")
    assert read_classes(tmp_path / "classes.tsv") == clustering.as_mapping()
    counts = {line.split("\t")[1]: int(line.split("\t")[2]) for line in clustering.to_text().splitlines()}
    assert counts == {word: int(n) for word, n in zip(corpus.vocab.tokens[3:], clustering.counts[3:], strict=True)}


def test_words_missing_from_the_text_are_in_the_unknown_class() -> None:
    vocab = Vocab(["<s>", "</s>", "<unk>", "never", "a", "b", "c"])
    clustering = brown_clusters(Corpus.from_sentences(["a b", "c b", "d a"], vocab), 2)
    assert clustering.class_of[vocab.id("never")] == UNK
    assert set(clustering.as_mapping()) == {"a", "b", "c"}
    assert clustering.members[:3] == (("<s>",), ("</s>",), ("<unk>",))


# -- what it is good for ---------------------------------------------------------------------------------------------

KINDS = {
    "who": ["anna", "ben", "carl", "dora"],
    "does": ["sees", "hears", "knows"],
    "how": ["often", "never", "seldom", "now"],
    "what": ["bread", "milk", "wine", "salt", "oil"],
}


def test_similar_words_share_a_class() -> None:
    """A planted text: each position of a sentence has different words."""
    source = random.Random(3)
    lines = [" ".join(source.choice(words) for words in KINDS.values()) for _ in range(300)]
    clustering = brown_clusters(Corpus.from_sentences(lines), len(KINDS))
    assert {frozenset(words) for words in clustering.members[3:]} == {frozenset(words) for words in KINDS.values()}


def test_progress_is_reported_and_does_not_change_the_result(corpus: Corpus, clustering: BrownClustering) -> None:
    reports: list[tuple[str, int, int]] = []
    again = brown_clusters(corpus, 6, progress=lambda *step: reports.append(step))
    assert again.class_of.tolist() == clustering.class_of.tolist()
    assert {doing for doing, _, _ in reports} == {"merging", "exchanging"}
    assert all(0 <= done <= of for _, done, of in reports)


def test_progress_interval_does_not_change_the_result(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = brown_clusters(corpus, 6, passes=0)
    monkeypatch.setattr(brown, "PROGRESS_INTERVAL", 1)
    assert class_paths(brown_clusters(corpus, 6, passes=0)) == class_paths(usual)


@pytest.mark.parametrize(
    ("classes", "message"), [(1, "give 2 or more"), (-3, "give 2"), (27, "only 26 different words")]
)
def test_invalid_numbers_of_classes_raise_an_error(classes: int, message: str, corpus: Corpus) -> None:
    with pytest.raises(DataError, match=message):
        brown_clusters(corpus, classes)
