"""Details of beam search; test_search_laws has the properties of every beam search."""

from __future__ import annotations

import math
from functools import partial
from itertools import chain

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman import DataError
from dragoman.core.scorer import State, fold
from dragoman.data.batches import Batch
from dragoman.data.vocabulary import END
from dragoman.search.beam import beam_search, beam_search_corpus, greedy_search, top_k_words
from dragoman.search.diagnosis import diagnose, force_decode
from dragoman.search.hypothesis import Hypothesis, Lattice
from dragoman.search.length import LengthHandling, LengthNormalization, LengthPrior, NoLengthHandling, WordPenalty
from dragoman.search.scorers import EXAMPLE_SCORER, GraphScorer
from toy_translator import SOURCES, ToyTranslator, source_of

LENGTHS: list[LengthHandling] = [
    NoLengthHandling(),
    LengthNormalization(),
    WordPenalty(0.7),
    WordPenalty(-0.7),
    LengthPrior.estimate([1, 2, 2, 3, 4, 4], [2, 2, 3, 4, 4, 6]),
]
every_length = pytest.mark.parametrize("length", LENGTHS, ids=lambda length: length.name)


def batch_of(sentences: list[str] = SOURCES) -> Batch:
    return Batch.empty(len(sentences), source_of(sentences))


def assert_same(actual: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    """The same lists, but for the rounding of sums in another order."""
    assert [[hypothesis.ids for hypothesis in best] for best in actual] == [
        [hypothesis.ids for hypothesis in best] for best in expected
    ]
    for a, b in zip(chain(*actual), chain(*expected), strict=True):
        assert (a.log_prob, a.score) == pytest.approx((b.log_prob, b.score), abs=1e-9)
        assert a.finished == b.finished
        assert (a.attention is None) == (b.attention is None)
        if a.attention is not None and b.attention is not None:
            torch.testing.assert_close(a.attention, b.attention, rtol=0, atol=1e-12)


# -- a search without batches, tensors and shortcuts -----------------------------------------------------------------


def plain_beam(
    scorer: ToyTranslator, sentence: str, beam_size: int, length: LengthHandling, max_words: int
) -> list[tuple[tuple[int, ...], float]]:
    """Words and scores of all that a beam finishes, straight from the definition, without stopping early."""
    source = source_of([sentence])
    active, finished = [((), 0.0)], []
    for _ in range(max_words):
        expanded = []
        for words, log_prob in active:
            state = scorer.start(Batch.empty(1, source))
            for word in words:
                state = scorer.advance(state, torch.tensor([word]))
            steps = scorer.log_probs(state)[0].tolist()
            expanded += [((*words, word), log_prob + step) for word, step in enumerate(steps) if step > -math.inf]
        best = sorted(expanded, key=lambda pair: -pair[1])[: beam_size - len(finished)]
        active = [(words, log_prob) for words, log_prob in best if words[-1] != END]
        for words, log_prob in best:
            if words[-1] == END:
                number = torch.tensor([len(words) - 1]), torch.tensor([len(sentence.split())])
                score = length.score(torch.tensor([log_prob], dtype=torch.float64), *number)
                finished.append((words[:-1], float(score)))
    return sorted(finished, key=lambda pair: -pair[1])


@every_length
@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), (3, 2), (6, 1), (6, 6)])
def test_beam_search_follows_its_definition(length: LengthHandling, beam_size: int, n_best: int) -> None:
    """However early it stops, and whatever else is in the batch."""
    for seed in range(2):
        scorer = ToyTranslator(seed=seed)
        lists = beam_search(scorer, batch_of(), beam_size, n_best, length=length, max_words=7)
        for sentence, best in zip(SOURCES, lists, strict=True):
            expected = plain_beam(scorer, sentence, beam_size, length, 7)[:n_best]
            if expected:
                assert [hypothesis.ids for hypothesis in best] == [words for words, _ in expected]
                scores = [score for _, score in expected]
                assert [hypothesis.score for hypothesis in best] == pytest.approx(scores, abs=1e-9)
            else:
                assert not any(hypothesis.finished for hypothesis in best)


@every_length
def test_search_stops_when_the_result_cannot_change(length: LengthHandling) -> None:
    """Without length handling, the search of a sentence ends when its best translation is known."""

    class Counting(ToyTranslator):
        steps = 0

        def log_probs(self, state: State) -> Tensor:
            self.steps += 1
            return super().log_probs(state)

    scorer = Counting(expected_length=-1)
    beam_search(scorer, batch_of(["x y"]), 50, length=length, max_words=40)
    if isinstance(length, NoLengthHandling):
        assert scorer.steps < 10
    assert scorer.steps <= 40


# -- the graph on which greedy search fails --------------------------------------------------------------------------


def test_a_wide_beam_finds_the_sentence_that_greedy_search_misses() -> None:
    """The docstring of `dragoman.search.beam` has a beam of two."""
    [wide] = beam_search(EXAMPLE_SCORER, Batch.empty(1), beam_size=50, n_best=5)
    spelled = ["a", "b", "b a", "", "b a b"]
    assert {EXAMPLE_SCORER.text(hypothesis.ids) for hypothesis in wide} <= {*spelled, "b b", "b a a"}
    assert EXAMPLE_SCORER.text(wide[0].ids) == "a"


def test_graph_probabilities_must_sum_to_one() -> None:
    with pytest.raises(DataError, match=r"after 'a': probabilities add up to 0\.9"):
        GraphScorer("a", {"": {"a": 1.0}, "a": {"a": 0.9}})


# -- limits ----------------------------------------------------------------------------------------------------------


def unending_scorer() -> GraphScorer:
    """A scorer of sentences that rarely end, with b more probable than a."""
    return GraphScorer("a b", {" ".join(["b"] * n): {"a": 0.3, "b": 0.7} for n in range(30)})


def test_hypotheses_at_the_limit_are_unfinished() -> None:
    scorer = unending_scorer()
    [[hypothesis]] = greedy_search(scorer, Batch.empty(1), max_words=4)
    assert (scorer.text(hypothesis.ids), hypothesis.finished) == ("b b b b", False)
    assert hypothesis.log_prob == pytest.approx(4 * math.log(0.7))
    [[hypothesis]] = greedy_search(scorer, Batch.empty(1), max_words=4, length=LengthNormalization())
    assert hypothesis.score == pytest.approx(4 * math.log(0.7) / 5)  # as if it ended there


def test_every_hypothesis_can_be_finished() -> None:
    """`</s>` is never among the best two continuations; after two words it has the highest mean log P of all endings."""
    ends = {0: 0.001, 1: 0.001, 2: 0.2, 3: 0.001}
    graph = {" ".join(["a"] * n): {"a": 0.5, "b": (0.5 - end), "</s>": end} for n, end in ends.items()}
    graph |= {prefix + " b": {"a": 0.5, "b": 0.4999, "</s>": 0.0001} for prefix in list(graph)}
    scorer = GraphScorer("a b", {key.strip(): value for key, value in graph.items()})
    search = partial(beam_search, scorer, Batch.empty(1), 1, max_words=4, length=LengthNormalization())
    assert not search()[0][0].finished
    [[hypothesis]] = search(always_finish=True)
    assert hypothesis.finished and scorer.text(hypothesis.ids) == "a a"
    assert hypothesis.log_prob == pytest.approx(math.log(0.5 * 0.5 * 0.2))
    assert hypothesis.score == pytest.approx(hypothesis.log_prob / 3)


def test_finished_hypotheses_come_before_unfinished_ones() -> None:
    scorer = unending_scorer()
    [best] = beam_search(scorer, Batch.empty(1), 3, 3, max_words=4)
    assert [hypothesis.finished for hypothesis in best] == [True] * len(best)
    assert {scorer.text(hypothesis.ids) for hypothesis in best} <= {"a", "b a", "b b a"}
    assert len(best) == 2  # "a" and "b a": the third place is of one that never ended


def test_limits_apply_per_sentence() -> None:
    scorer = ToyTranslator(expected_length=1000)
    sizes = [len(sentence.split()) for sentence in SOURCES]
    for limit in (None, lambda words: words + 1, torch.arange(1, len(SOURCES) + 1), 3):
        most = {
            type(None): [2 * size + 20 for size in sizes],
            int: [3] * len(sizes),
            Tensor: list(range(1, len(SOURCES) + 1)),
        }.get(type(limit), [size + 1 for size in sizes])
        for lists in (
            greedy_search(scorer, batch_of(), max_words=limit),
            beam_search_corpus(scorer, source_of(), active_hypotheses=4, beam_size=1, max_words=limit),
        ):
            assert [len(best[0].ids) for best in lists] == most
            assert not any(best[0].finished for best in lists)


def test_there_is_a_default_limit_without_a_source() -> None:
    scorer = GraphScorer("a", {" ".join(["a"] * n): {"a": 1.0} for n in range(300)})
    assert len(greedy_search(scorer, Batch.empty(1))[0][0].ids) == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam 0"),
        ({"beam_size": 2, "n_best": 3}, "n_best must be between 1 and beam_size"),
        ({"n_best": 0}, "got 0"),
        ({"max_words": 0}, "max_words must be >= 1"),
        ({"max_words": lambda words: words}, "needs a source"),
        ({"length": LENGTHS[-1]}, "needs a source"),
    ],
)
def test_invalid_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        beam_search(EXAMPLE_SCORER, Batch.empty(1), **options)


def test_empty_input_gives_empty_output() -> None:
    assert beam_search(EXAMPLE_SCORER, Batch.empty(0)) == []
    assert beam_search_corpus(ToyTranslator(), source_of([])) == []


# -- the best words of a row -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 64, 127, 640, 1000, 6401])
@pytest.mark.parametrize("k", [1, 3])
def test_top_k_words_are_the_highest_values(size: int, k: int) -> None:
    log_probs = torch.randn(40, size, generator=torch.Generator().manual_seed(size))
    log_probs[:10, -1] += 9  # the best is in what is left over by blocks
    log_probs[10:20, :2] += 9  # several in one block
    values, words = top_k_words(log_probs, k)
    assert torch.equal(values, log_probs.sort(dim=1, descending=True).values[:, :k])
    assert torch.equal(log_probs.gather(1, words), values)
    assert all(len(set(row)) == k for row in words.tolist())


def test_top_k_words_with_impossible_words() -> None:
    log_probs = torch.full((2, 700), -math.inf)
    log_probs[0, 650], log_probs[1, 699] = 0.0, 0.0
    values, words = top_k_words(log_probs, 3)
    assert (words[:, 0].tolist(), values[:, 0].tolist()) == ([650, 699], [0.0, 0.0])
    assert values[:, 1:].isneginf().all()
    assert all(len(set(row)) == 3 for row in words.tolist())


# -- batches and memory ----------------------------------------------------------------------------------------------


@every_length
def test_results_do_not_depend_on_batches(length: LengthHandling) -> None:
    scorer, source = ToyTranslator(), source_of(SOURCES * 3)
    whole = beam_search(scorer, Batch.empty(len(source), source), 4, 2, length=length)
    for rows in (1, 8, 17, 1000):
        assert_same(
            beam_search_corpus(scorer, source, active_hypotheses=rows, beam_size=4, n_best=2, length=length), whole
        )
    for number in range(len(SOURCES)):
        single = beam_search(scorer, batch_of([SOURCES[number]]), 4, 2, length=length)
        assert_same(single, [whole[number]])


def test_memory_of_finished_sentences_is_dropped() -> None:
    """Their rows at once, their memory when there is enough of it."""
    sizes: list[tuple[int, int]] = []

    class Recording(ToyTranslator):
        def log_probs(self, state: State) -> Tensor:
            assert state.sentence is not None
            sizes.append((len(torch.unique(state.sentence)), len(state.memory[0])))
            return super().log_probs(state)

    greedy_search(Recording(), batch_of(SOURCES * 8))
    assert sizes[0] == (56, 56)
    assert len({active for active, _ in sizes}) > 2  # they end at different times
    for active, in_memory in sizes:
        assert active <= in_memory
        assert active > 7 / 8 * in_memory


def test_rows_of_finished_hypotheses_are_dropped() -> None:
    sizes: list[int] = []

    class Recording(ToyTranslator):
        def log_probs(self, state: State) -> Tensor:
            sizes.append(len(state.rows[0]))
            return super().log_probs(state)

    lattice = Lattice(max_pruned=0)
    beam_search(Recording(), batch_of(["x y"]), 6, 6, lattice=lattice, max_words=30)
    by_step: dict[int, list[str]] = {}
    for node in lattice.nodes[1:]:
        by_step.setdefault(len(lattice.path_ids(node)), []).append(node.fate)
    finished = 0
    for step, fates in sorted(by_step.items()):
        assert len(fates) <= 6 - finished  # a finished one keeps its place
        finished += fates.count("finished")
        if step < len(sizes):
            assert sizes[step] == fates.count("kept")
    assert finished == 6


# -- attention -------------------------------------------------------------------------------------------------------


@every_length
def test_attention_belongs_to_the_predicted_words(length: LengthHandling) -> None:
    """The scorer's distribution in each row, over the words of the source and `</s>`."""
    scorer = ToyTranslator()
    for sentence, best in zip(SOURCES, beam_search(scorer, batch_of(), 4, 3, length=length, max_words=4), strict=True):
        for hypothesis in best:
            state = scorer.start(batch_of([sentence]))
            rows = []
            for word in [*hypothesis.ids, END][: len(hypothesis.ids) + hypothesis.finished]:
                rows.append(scorer.attention(state)[0])
                state = scorer.advance(state, torch.tensor([word]))
            assert hypothesis.attention is not None
            assert hypothesis.attention.shape == (len(hypothesis.ids) + hypothesis.finished, len(sentence.split()) + 1)
            torch.testing.assert_close(hypothesis.attention, torch.stack(rows), rtol=0, atol=1e-12)


def test_scorers_without_attention_give_none() -> None:
    assert greedy_search(EXAMPLE_SCORER, Batch.empty(1))[0][0].attention is None


def test_attention_width_comes_from_the_source() -> None:
    """As a tree has more nodes than words."""

    class Nodes:
        def __init__(self, corpus: object):
            self.corpus = corpus

        def __getattr__(self, name: str) -> object:
            return getattr(self.corpus, name)

        def __getitem__(self, number: int) -> object:
            return self.corpus[number]  # type: ignore[index]

        def __len__(self) -> int:
            return len(self.corpus)  # type: ignore[arg-type]

        @property
        def memory_sizes(self) -> np.ndarray:
            return np.full(len(self), 5)

    source = Nodes(source_of())  # the longest has four words: five columns for all
    for best in greedy_search(ToyTranslator(), Batch.empty(len(SOURCES), source)):  # type: ignore[arg-type]
        assert best[0].attention is not None
        assert best[0].attention.shape[1] == 5


# -- the lattice -----------------------------------------------------------------------------------------------------


@every_length
@pytest.mark.parametrize("pruned", [0, 2, 1000])
def test_lattice_records_the_search(length: LengthHandling, pruned: int) -> None:
    scorer, lattice = ToyTranslator(), Lattice(max_pruned=pruned)
    lists = beam_search(scorer, batch_of(), 3, 3, length=length, max_words=6, lattice=lattice)
    assert_same(lists, beam_search(scorer, batch_of(), 3, 3, length=length, max_words=6))  # recording changes nothing
    assert [node.id for node in lattice.nodes] == list(range(len(lattice.nodes)))
    for number, best in enumerate(lists):
        nodes = [node for node in lattice.nodes if node.sentence == number]
        ends = {lattice.path_ids(node): node for node in nodes if node.fate == "finished"}
        assert len(ends) <= 3
        assert all(words[-1] == END for words in ends)
        for hypothesis in best:
            if hypothesis.finished:
                end = ends[(*hypothesis.ids, END)]
                assert (end.log_prob, end.score) == (hypothesis.log_prob, hypothesis.score)
        assert best[0].score == max(node.score for node in ends.values()) if ends else not best[0].finished


def test_lattice_is_a_tree_with_correct_scores() -> None:
    scorer, lattice = ToyTranslator(), Lattice(max_pruned=2)
    beam_search(scorer, batch_of(), 3, lattice=lattice, max_words=6)
    expanded = {node.parent for node in lattice.nodes}
    steps: dict[tuple[int, int], list[tuple[str, float]]] = {}
    for node in lattice.nodes[len(SOURCES) :]:
        assert node.parent is not None
        parent = lattice.nodes[node.parent]
        assert (parent.sentence, parent.fate) == (node.sentence, "kept")
        assert node.log_prob < parent.log_prob
        words = lattice.path_ids(node)
        whole = fold(scorer, Batch.from_sentences([words], source_of([SOURCES[node.sentence]])))[0][0, : len(words)]
        assert node.log_prob == pytest.approx(float(whole.sum()), abs=1e-9)
        steps.setdefault((node.sentence, len(words)), []).append((node.fate, node.log_prob))
        assert node.fate == "kept" or node.id not in expanded
    for nodes in steps.values():
        lost = [log_prob for fate, log_prob in nodes if fate == "pruned"]
        stayed = [log_prob for fate, log_prob in nodes if fate != "pruned"]
        assert len(lost) <= 2
        assert not lost or max(lost) <= min(stayed)
    assert any(fate == "pruned" for nodes in steps.values() for fate, _ in nodes)


# -- diagnosis -------------------------------------------------------------------------------------------------------


def test_diagnosis_of_the_example() -> None:
    references = Batch.from_sentences([EXAMPLE_SCORER.vocab.ids(text.split()) for text in ("a", "b a", "b b", "")])
    [[first]], [[best]] = greedy_search(EXAMPLE_SCORER, Batch.empty(1)), beam_search(EXAMPLE_SCORER, Batch.empty(1), 2)
    assert [diagnosis.error for diagnosis in diagnose(EXAMPLE_SCORER, references, [first] * 4)] == [
        "search",
        "none",
        "search",
        "model",
    ]
    assert [diagnosis.error for diagnosis in diagnose(EXAMPLE_SCORER, references, [best] * 4)] == [
        "none",
        "model",
        "model",
        "model",
    ]
    penalty = WordPenalty(2.0)  # by which the longer ones are better
    [[best]] = beam_search(EXAMPLE_SCORER, Batch.empty(1), 2, length=penalty)
    diagnoses = diagnose(EXAMPLE_SCORER, references, [best] * 4, length=penalty)
    assert [EXAMPLE_SCORER.text(best.ids), *(diagnosis.error for diagnosis in diagnoses)] == [
        "b a",
        "model",
        "none",
        "search",
        "model",
    ]


def test_an_unfinished_hypothesis_is_a_search_error() -> None:
    scorer = unending_scorer()
    [[cut]] = greedy_search(scorer, Batch.empty(1), max_words=2)
    reference = Batch.from_sentences([scorer.vocab.ids(["b", "a"])])
    assert reference.ids[0, 0] == cut.ids[0]
    assert [diagnosis.error for diagnosis in diagnose(scorer, reference, [cut])] == ["search"]
    impossible = Batch.from_sentences([scorer.vocab.ids(["b", "b"])])  # never ends there
    assert [diagnosis.error for diagnosis in diagnose(scorer, impossible, [cut])] == ["model"]


@every_length
def test_force_decoding_reproduces_hypotheses(length: LengthHandling) -> None:
    """Log-probability, score and attention; and so it is diagnosed."""
    scorer = ToyTranslator()
    hypotheses = [best[0] for best in beam_search(scorer, batch_of(), 3, length=length)]
    assert all(hypothesis.finished for hypothesis in hypotheses)
    given = Batch.from_sentences([hypothesis.ids for hypothesis in hypotheses], source_of())
    assert_same([force_decode(scorer, given, length=length)], [hypotheses])
    assert {diagnosis.error for diagnosis in diagnose(scorer, given, hypotheses, length=length)} == {"none"}
    worse = [best[0] for best in greedy_search(scorer, batch_of(), length=length)]
    for diagnosis, good, bad in zip(diagnose(scorer, given, worse, length=length), hypotheses, worse, strict=True):
        expected = "none" if good.ids == bad.ids else "search" if good.score > bad.score else "model"
        assert diagnosis.error == expected
