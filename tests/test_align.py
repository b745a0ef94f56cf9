"""Alignment models against enumeration of all alignments, training on small texts, files and the command."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import dragoman
from dragoman import Corpus, DataError
from dragoman.align import expectation as expectation_module
from dragoman.align.aligner import Aligner
from dragoman.align.decoding import most_probable_sources
from dragoman.align.em import (
    FORWARD,
    POSITION_MODELS,
    SCHEDULES,
    _exp_digamma,
    maximise,
    run_em,
    sum_tables,
    uniform_tables,
)
from dragoman.align.expectation import Expectation, LexiconTables, independent_pair
from dragoman.align.hmm import (
    MAX_FERTILITY,
    MAX_JUMP,
    JumpPositions,
    JumpWork,
    apply_fertilities,
    count_words,
    jump_posteriors,
)
from dragoman.align.pair_grid import NULL, IdLines, PairGrid
from dragoman.align.positions import DiagonalPositions, IndependentPositions, PositionModel, UniformPositions
from dragoman.align.symmetrization import SYMMETRIZATIONS, symmetrize
from dragoman.align.word_association import WordAssociations
from dragoman.core.threads import limit_threads
from dragoman.data.corpus import ParallelCorpus
from dragoman.evaluation.alignment import count_all_links, parse_gold_alignment

GERMAN = ["das haus", "das buch", "ein buch", "ein kleines haus", "das kleine buch", "", "haus"]
ENGLISH = ["the house", "the book", "a book", "a small house", "the small book", "nothing here", ""]

Links = set[tuple[int, int]]


def make_pairs(german: list[str] = GERMAN, english: list[str] = ENGLISH) -> ParallelCorpus:
    return ParallelCorpus(Corpus.from_sentences(german), Corpus.from_sentences(english))


def make_grid(german: list[str] = GERMAN, english: list[str] = ENGLISH) -> PairGrid:
    return PairGrid.from_pairs(make_pairs(german, english))


def make_positions(name: str, source: IdLines) -> PositionModel:
    if name == "hmm":
        generator, size = np.random.default_rng(3), source.vocab_size
        uniform = JumpPositions.initial(source).fertilities
        return JumpPositions(
            generator.uniform(0.1, 1.0, 2 * MAX_JUMP + 1), 0.15, generator.uniform(0.1, 0.6, size), uniform
        )
    return DiagonalPositions(2.5, 0.1) if name == "ibm2" else UniformPositions()


def test_word_pairs_are_those_of_all_cells() -> None:
    grid = make_grid(
        [*GERMAN, *(f"w{n % 40_000}" for n in range(50_000))], [*ENGLISH, *(f"v{n}" for n in range(50_000))]
    )
    source, target, index = grid.word_pairs
    cells = [
        (f, e)
        for pair in range(len(grid))
        for f in grid.source.ids[slice(*grid.source.offsets[pair : pair + 2])].tolist()
        for e in grid.target.ids[slice(*grid.target.offsets[pair : pair + 2])].tolist()
    ]
    assert list(zip(source[index].tolist(), target[index].tolist(), strict=True)) == cells
    assert len(source) == len(set(cells)) and (np.diff(source) >= 0).all()


# -- posteriors --------------------------------------------------------------------------------------------------------

SOURCE = [3, 4, 5, 4]  # ids of source words; there are 6


def probabilities(targets: int, sources: int, seed: int = 1) -> np.ndarray:
    """P(e_j | f_i), and P(e_j | NULL) in the last column."""
    return np.random.default_rng(seed).uniform(0.05, 1.0, (targets, sources + 1))


def compute_posteriors(positions: PositionModel, t: np.ndarray) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """Posteriors, log-likelihood, and for the HMM expected jumps and transitions of each position."""
    targets, sources = t.shape[0], t.shape[1] - 1
    longest = max(t.shape)
    posteriors, padded = np.zeros((2, longest, longest + 1))
    padded[:targets, : sources + 1] = t
    counts, work = np.zeros(2 * MAX_JUMP + 1), JumpWork.allocate(longest)
    if isinstance(positions, JumpPositions):
        parameters, words = positions.parameters(longest), np.array(SOURCE[:sources], np.int32)
        likelihood = jump_posteriors(padded, words, targets, parameters, work, posteriors, counts)
        counts *= parameters.jumps
    else:
        assert isinstance(positions, IndependentPositions)
        likelihood = independent_pair(padded, sources, targets, positions.parameters, posteriors)[0]
    return posteriors[:targets, : sources + 1], likelihood, counts, work.transitions[:sources]


def alignment_prior(positions: PositionModel, alignment: tuple[int, ...], sources: int, targets: int) -> float:
    """P(a_1 ... a_J) by its definition; NULL is -1."""
    if isinstance(positions, JumpPositions):
        return jump_prior(positions, alignment, sources)
    prior = 1.0
    for j, i in enumerate(alignment):
        if isinstance(positions, DiagonalPositions):
            distances = [abs((k + 0.5) / sources - (j + 0.5) / targets) for k in range(sources)]
            weights = [math.exp(-positions.tension * d) for d in distances]
            prior *= positions.null if i < 0 else (1 - positions.null) * weights[i] / sum(weights)
        else:
            prior /= sources + 1
    return prior


def transition(positions: JumpPositions, i: int, previous: int, sources: int) -> float:
    """P(a_j = i | a_{j-1} = previous) where neither is NULL; -1 is the start."""
    stay = 0.0 if previous < 0 else 1.0 if sources == 1 else float(positions.stays[SOURCE[previous]])
    if i == previous:
        return (1 - positions.null) * stay
    jumps = [positions.jumps[k - previous + MAX_JUMP] for k in range(sources) if k != previous]
    return float((1 - positions.null) * (1 - stay) * positions.jumps[i - previous + MAX_JUMP] / sum(jumps))


def jump_prior(positions: JumpPositions, alignment: tuple[int, ...], sources: int) -> float:
    """NULL keeps the position of the word before; at the start it may be any."""

    def from_word(j: int, previous: int) -> float:
        if j == len(alignment):
            return 1.0
        if alignment[j] >= 0:
            return transition(positions, alignment[j], previous, sources) * from_word(j + 1, alignment[j])
        if previous < 0:
            return sum(positions.null / sources * from_word(j + 1, position) for position in range(sources))
        return positions.null * from_word(j + 1, previous)

    return from_word(0, -1)


@pytest.mark.parametrize("name", POSITION_MODELS)
@pytest.mark.parametrize(("sources", "targets"), [(3, 3), (1, 2), (4, 1)])
def test_posteriors_equal_the_sum_over_all_alignments(name: str, sources: int, targets: int) -> None:
    positions, t = (
        make_positions(name, IdLines(np.zeros(0, np.int32), np.zeros(1, np.int64), 6)),
        probabilities(targets, sources),
    )
    posteriors, total = np.zeros((targets, sources + 1)), 0.0
    for alignment in product(range(-1, sources), repeat=targets):
        p = alignment_prior(positions, alignment, sources, targets)
        p *= math.prod(float(t[j, i]) for j, i in enumerate(alignment))  # -1 is the last column
        total += p
        for j, i in enumerate(alignment):
            posteriors[j, i] += p
    computed, log_likelihood, _, _ = compute_posteriors(positions, t)
    np.testing.assert_allclose(computed, posteriors / total, rtol=1e-9, atol=1e-15)
    assert log_likelihood == pytest.approx(math.log(total))


def test_expected_jumps_equal_the_sum_over_all_alignments() -> None:
    positions, t = make_positions("hmm", IdLines(np.zeros(0, np.int32), np.zeros(1, np.int64), 6)), probabilities(2, 3)
    assert isinstance(positions, JumpPositions)
    counts, transitions, total = np.zeros(2 * MAX_JUMP + 1), np.zeros((3, 2)), 0.0
    for first, second in product(range(-1, 3), repeat=2):
        starts = [first] if first >= 0 else range(3)  # NULL at the start may have any position
        for previous in starts:
            p = transition(positions, first, -1, 3) if first >= 0 else positions.null / 3
            p *= transition(positions, second, previous, 3) if second >= 0 else positions.null
            p *= float(t[0, first] * t[1, second])
            total += p
            if first >= 0:
                counts[first + 1 + MAX_JUMP] += p
            if second >= 0:
                transitions[previous, int(second != previous)] += p
                counts[second - previous + MAX_JUMP] += p if second != previous else 0.0
    _, _, jumps, computed = compute_posteriors(positions, t)
    np.testing.assert_allclose(jumps, counts / total, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(computed, transitions / total, rtol=1e-9)


def test_fertilities_of_independent_links() -> None:
    """Their distribution by enumeration, and the factor by which the other links of a word change P(e | f)."""
    links = np.array([[0.2], [1.0], [0.5]])  # P(each of three target words comes from the only source word)
    words, counts = np.array([3], np.int32), np.zeros((6, 2 + MAX_FERTILITY + 1))
    count_words(words, 3, np.hstack([links, 1 - links]), np.zeros((1, 2)), counts)
    expected = np.zeros(MAX_FERTILITY + 1)
    for outcome in product((0, 1), repeat=3):
        expected[sum(outcome)] += math.prod(p if link else 1 - p for p, link in zip(links[:, 0], outcome, strict=True))
    np.testing.assert_allclose(counts[3, 2:], expected)
    ratios = np.ones((6, MAX_FERTILITY))
    ratios[3] = [4.0, 3.0, 2.0, 1.0]
    t = np.ones((3, 2))
    apply_fertilities(t, words, 3, ratios, links)
    # 1.5, 0.7 and 1.2 other links, interpolated
    np.testing.assert_allclose(t, [[2.5, 1.0], [3.3, 1.0], [2.8, 1.0]])


@pytest.mark.parametrize("name", POSITION_MODELS)
def test_words_without_a_source_come_from_null(name: str) -> None:
    grid = make_grid(["", "a", "a"], ["x y", "", "x"])
    positions = make_positions(name, grid.source), make_positions(name, grid.target)
    tables = uniform_tables(grid)
    forward, backward = most_probable_sources(grid, tables, positions)
    assert forward[:2].tolist() == [-1, -1] and backward[:1].tolist() == [-1]
    shards, statistics = Expectation(grid)(tables, positions)
    counts = sum_tables(shards)
    assert counts.null_target.sum() + counts.probs[:, 0].sum() == pytest.approx(3.0)
    assert all(math.isfinite(result.log_likelihood) for result in statistics)


@pytest.mark.parametrize("name", POSITION_MODELS)
def test_a_step_of_em_never_lowers_the_likelihood(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fixed positions (those of the HMM are fitted approximately), and without fertilities and agreement."""
    monkeypatch.setattr(expectation_module, "AGREEMENT_COUNT", 1e-300)
    grid, generator = make_grid(), np.random.default_rng(2)
    positions = make_positions(name, grid.source), make_positions(name, grid.target)
    random_counts = LexiconTables(*(generator.uniform(0.1, 1.0, table.shape) for table in uniform_tables(grid)))
    expectation, tables = Expectation(grid), maximise(grid, random_counts, 0.0)
    likelihoods = []
    for _ in range(8):
        shards, statistics = expectation(tables, positions)
        likelihoods.append([result.log_likelihood for result in statistics])
        tables = maximise(grid, sum_tables(shards), 0.0)
    assert (np.diff(likelihoods, axis=0) >= -1e-9).all() and (np.subtract(likelihoods[-1], likelihoods[0]) > 1).all()


def test_agreement_prefers_links_of_both_directions() -> None:
    """A word that occurs once has no claim to words whose translations are rare: each counts for its own only."""
    grid = make_grid(["a b"] * 2 + ["a"], ["x y"] * 2 + ["x"])
    positions = JumpPositions.initial(grid.source), JumpPositions.initial(grid.target)
    source, target, _ = grid.word_pairs
    a, b = (grid.source.ids[:2]).tolist()
    x, y = (grid.target.ids[:2]).tolist()

    def share(count: float) -> float:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(expectation_module, "AGREEMENT_COUNT", count)
            tables = uniform_tables(grid)
            tables.probs[(source == b) & (target == x), 1] = 1e-9  # b does not come from x
            counts = sum_tables(Expectation(grid)(tables, positions)[0]).probs
        return float(counts[(source == b) & (target == x), 0][0] / counts[(source == b) & (target == y), 0][0])

    assert share(1e6) < 0.1 * share(1e-300)
    assert a != b


def test_the_tension_is_recovered_from_the_expected_distance() -> None:
    grid = make_grid(["a b c d e"] * 3, ["v w x y z"] * 3)
    for tension in (0.5, 3.0, 9.0):
        positions = DiagonalPositions(tension, 0.1)
        statistics = Expectation(grid)(uniform_tables(grid), (positions, positions))[1][FORWARD]
        fitted = DiagonalPositions(1.0, 0.1).fit(grid.source, grid.target, statistics)
        assert fitted.tension == pytest.approx(tension, rel=1e-3)
    nothing = statistics._replace(sums=np.zeros(3))
    assert DiagonalPositions(4.0).fit(grid.source, grid.target, nothing).tension == 4.0, (
        "no aligned words: nothing changes"
    )


# -- lexicon -----------------------------------------------------------------------------------------------------------


def test_exp_digamma() -> None:
    digamma = {1.0: -0.5772156649015329, 0.5: -1.9635100260214235, 0.01: -100.56088545786867, 10.0: 2.251752589066721}
    np.testing.assert_allclose(_exp_digamma(np.array(list(digamma))), np.exp(list(digamma.values())), rtol=1e-7)


@pytest.mark.parametrize("model", SCHEDULES)
@pytest.mark.parametrize("prior", [0.0, 0.01])
def test_translation_probabilities_sum_to_one(model: str, prior: float) -> None:
    aligner = Aligner.train(make_pairs(), model, prior=prior)
    for lexicon in (aligner.forward.lexicon, aligner.backward.lexicon):
        for word in (None, *lexicon.source.tokens[3:]):
            total = sum(prob for _, prob in lexicon.translations(word, None))
            assert total == pytest.approx(1.0) or (total == 0 and not lexicon.translations(word, None))


def test_lexicon_queries() -> None:
    lexicon = Aligner.train(make_pairs(), "ibm1", 20, prior=0.0).forward.lexicon
    assert [lexicon.translations(word, 1)[0].word for word in ("das", "buch", "haus")] == ["the", "book", "house"]
    assert lexicon.prob("buch", "book") == lexicon.translations("buch")[0].prob > 0.9
    assert lexicon.prob("buch", "nothing") == lexicon.prob("zug", "book") == lexicon.prob("buch", "train") == 0.0
    assert lexicon.translations("zug") == [] and len(lexicon.translations("das", 2)) == 2
    assert lexicon.translations(None, None) != []


# -- associations ------------------------------------------------------------------------------------------------------


def test_pair_scores_do_not_depend_on_counts_of_the_pair_itself() -> None:
    """Leaving a pair out of the last expected counts equals subtracting its posteriors from them."""
    grid = make_grid(["a b", "a c", "b c", "a", "b"], ["x y", "x z", "y z", "x", "y"])
    source, target = grid.source, grid.target
    associations = WordAssociations.train(source, target)
    lines, is_training_pair = np.arange(5), np.ones(5, np.bool_)
    scores = associations.pair_scores(source, target, lines, lines, is_training_pair)
    em = run_em(grid, ("ibm1",), 4, prior=0.0)
    entries = em.entries(FORWARD)
    first_pair = PairGrid(source.select(np.arange(1)), target.select(np.arange(1)))
    in_first = [grid.word_pairs.cell_numbers[cell] for cell in range(first_pair.num_cells)]
    tables = LexiconTables(em.previous_tables.probs[in_first], *em.previous_tables[1:])
    left_out = sum_tables(Expectation(first_pair)(tables, (UniformPositions(), UniformPositions()))[0])
    rest = LexiconTables(em.counts.probs.copy(), em.counts.null_target - left_out.null_target, em.counts.null_source)
    rest.probs[in_first] -= left_out.probs
    counts = entries.values(rest, FORWARD)
    without = WordAssociations(
        entries.keys,
        associations.starts,
        counts,
        associations.previous_probs,
        np.diff(np.concatenate([[0.0], np.cumsum(counts)])[associations.starts]),
        associations.target_counts - np.bincount(target.ids[:2], minlength=target.vocab_size),
    )
    # the total count is that of all lines in both cases
    without.target_counts[NULL] = associations.target_counts.sum() - without.target_counts.sum()
    expected = without.pair_scores(source, target, lines[:1], lines[:1], np.zeros(5, np.bool_))
    assert scores[0] == pytest.approx(expected[0])


def test_lines_without_words_have_no_score() -> None:
    empty = IdLines(np.zeros(0, np.int32), np.zeros(3, np.int64), 4)
    scores = WordAssociations.train(empty, empty).pair_scores(
        empty, empty, np.arange(2), np.arange(2), np.zeros(2, np.bool_)
    )
    assert np.isnan(scores).all() and len(scores) == 2


# -- symmetrization ----------------------------------------------------------------------------------------------------


def symmetrize_by_definition(forward: Links, backward: Links, rows: int, columns: int, method: str) -> Links:
    """Symmetrisation as in Koehn et al. (2003)."""
    union = forward | backward
    if method != "grow-diag-final-and":
        return {"forward": forward, "backward": backward, "intersection": forward & backward, "union": union}[method]
    links = forward & backward
    grew = True
    while grew:
        grew = False
        for i, j in product(range(rows), range(columns)):
            if (i, j) not in links:
                continue
            for a, b in product((i - 1, i, i + 1), (j - 1, j, j + 1)):
                is_free = all(k != a for k, _ in links) or all(k != b for _, k in links)
                if (a, b) in union - links and is_free:
                    links.add((a, b))
                    grew = True
    for direction in (forward, backward):
        for a, b in product(range(rows), range(columns)):
            if (a, b) in direction and all(k != a for k, _ in links) and all(k != b for _, k in links):
                links.add((a, b))
    return links


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_symmetrization_follows_its_definition(data: st.DataObject) -> None:
    def draw_positions(length: int, limit: int) -> list[int]:
        return data.draw(st.lists(st.integers(-1, limit - 1), min_size=length, max_size=length))

    sizes = data.draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=3))
    grid = make_grid([" ".join("a" * rows) for rows, _ in sizes], [" ".join("b" * columns) for _, columns in sizes])
    forward = [draw_positions(columns, rows) for rows, columns in sizes]
    backward = [draw_positions(rows, columns) for rows, columns in sizes]
    flat = [np.array([i for positions in lists for i in positions], np.int32) for lists in (forward, backward)]
    for method in SYMMETRIZATIONS:
        links = symmetrize(grid, *flat, method)
        assert len(links) == len(sizes)
        for number, (rows, columns) in enumerate(sizes):
            forward_links = {(i, j) for j, i in enumerate(forward[number]) if i >= 0}
            backward_links = {(i, j) for i, j in enumerate(backward[number]) if j >= 0}
            expected = symmetrize_by_definition(forward_links, backward_links, rows, columns, method)
            assert links[number] == sorted(expected)


# -- aligner -----------------------------------------------------------------------------------------------------------


def test_all_models_align_an_easy_text() -> None:
    lines = ("0-0 1-1", "0-0 1-1", "0-0 1-1", "0-0 1-1 2-2", "0-0 1-1 2-2", "", "")
    gold = [parse_gold_alignment(line) for line in lines]
    for model in SCHEDULES:
        links = Aligner.train(make_pairs(), model, 10).align(make_pairs())
        assert count_all_links([links[pair] for pair in range(7)], gold).error_rate < 0.1, model


def test_a_text_with_another_vocabulary_is_rejected() -> None:
    """Its ids would be those of other words, or of none."""
    pairs = make_pairs()
    aligner = Aligner.train(pairs, "hmm", 1)
    new, first = make_pairs(["ein ganz anderer satz"], ["quite another sentence"]), pairs.select(np.arange(1))
    for other in (ParallelCorpus(new.source, first.target), ParallelCorpus(first.source, new.target)):
        with pytest.raises(DataError, match="another vocabulary"):
            aligner.align(other)


def test_the_number_of_threads_does_not_change_the_result() -> None:
    pairs = make_pairs(
        [f"{line} {n % 7}" for n in range(1500) for line in GERMAN],
        [f"{line} {n % 7}" for n in range(1500) for line in ENGLISH],
    )
    aligners = []
    for threads in (1, 2):
        with limit_threads(threads):
            aligners.append(Aligner.train(pairs, "hmm", 2))
    first, second = aligners
    for one_thread, two_threads in ((first.forward, second.forward), (first.backward, second.backward)):
        assert np.array_equal(one_thread.lexicon.probs, two_threads.lexicon.probs)
        assert one_thread.config() == two_threads.config()


def test_invalid_settings_are_rejected() -> None:
    with pytest.raises(DataError, match="'ibm9'; choose from ibm1, ibm2, hmm"):
        Aligner.train(make_pairs(), "ibm9")
    with pytest.raises(DataError, match="0 iterations"):
        Aligner.train(make_pairs(), "ibm1", 0)
    with pytest.raises(DataError, match="no words"):
        Aligner.train(make_pairs([""], ["x"]))
    with pytest.raises(DataError, match="'sum'; choose from grow"):
        Aligner.train(make_pairs(), "ibm1").align(make_pairs(), "sum")


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", SCHEDULES)
def test_a_saved_aligner_is_loaded_unchanged(model: str, tmp_path: Path) -> None:
    aligner = Aligner.train(make_pairs(), model)
    aligner.save(tmp_path / "aligner")
    loaded = Aligner.load(tmp_path / "aligner")
    lexicon = aligner.forward.lexicon
    new = ParallelCorpus(
        Corpus.from_sentences(["das kleine haus", "ein zug"], lexicon.source),
        Corpus.from_sentences(["the small house", "a train"], lexicon.target),
    )
    assert [loaded.align(new)[pair] for pair in range(2)] == [aligner.align(new)[pair] for pair in range(2)]
    assert loaded.align(new)[0] == [(0, 0), (1, 1), (2, 2)]
    assert np.array_equal(loaded.backward.lexicon.probs, aligner.backward.lexicon.probs)
    assert loaded.forward.config() == aligner.forward.config()


def test_the_lexicon_file_has_the_probabilities_of_both_directions(tmp_path: Path) -> None:
    aligner = Aligner.train(make_pairs(), "ibm1")
    aligner.save(tmp_path / "aligner")
    rows = [line.split("\t") for line in (tmp_path / "aligner" / "lexicon.tsv").read_text().splitlines()]
    entries = {(row[0], row[1]): (float(row[2]), float(row[3])) for row in rows}
    forward, backward = aligner.forward.lexicon, aligner.backward.lexicon
    for (german, english), (prob, reverse_prob) in entries.items():
        assert prob == pytest.approx(forward.prob(german, english), abs=1e-6)
        assert reverse_prob == pytest.approx(backward.prob(english, german), abs=1e-6)
        assert max(prob, reverse_prob) >= 0.0099
    assert ("buch", "book") in entries and len(entries) == len(rows)
    probs = [float(row[2]) for row in rows if row[0] == "das"]
    assert probs == sorted(probs, reverse=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.yaml", "kind: ngram\n", "is not an aligner"),
        ("config.yaml", "kind: aligner\nformat: 7\n", "another format"),
        ("config.yaml", "kind: aligner\nformat: 2\n", "damaged aligner"),
        ("config.yaml", "\x00", "config.yaml: broken or incomplete"),
        ("model.safetensors", "nonsense", "safetensors"),
        ("source-vocab.tsv", "", "vocab"),
    ],
)
def test_damaged_files_are_rejected(name: str, content: str, message: str, tmp_path: Path) -> None:
    Aligner.train(make_pairs(), "ibm1").save(tmp_path / "aligner")
    (tmp_path / "aligner" / name).write_text(content)
    with pytest.raises(DataError, match=message):
        Aligner.load(tmp_path / "aligner")


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [("hmm", "jumps", [0.5]), ("hmm", "jumps", [-1.0] * 81), ("hmm", "null", 1.5), ("ibm2", "tension", -1.0)],
)
def test_invalid_position_parameters_are_rejected(model: str, name: str, value: Any, tmp_path: Path) -> None:
    """Kernels use the jumps without bounds checks."""
    Aligner.train(make_pairs(), model).save(tmp_path / "aligner")
    config = yaml.safe_load((tmp_path / "aligner" / "config.yaml").read_text())
    config["forward"][name] = value
    (tmp_path / "aligner" / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(DataError, match="damaged aligner"):
        Aligner.load(tmp_path / "aligner")


def test_an_aligner_cannot_be_loaded_as_a_model(tmp_path: Path) -> None:
    Aligner.train(make_pairs(), "ibm1").save(tmp_path / "aligner")
    with pytest.raises(DataError, match=r"is an aligner, not a model; .*--lexicon"):
        dragoman.load(tmp_path / "aligner")


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, lines in (("t.de", GERMAN), ("t.en", ENGLISH)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "t.align").write_text("0-0 1-1\n0-0 1-1\n0-0 1-1\n0-0 1-1 2-2\n0-0 1-1 2?2\n\n\n")
    (tmp_path / "short.align").write_text("0-0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_links_are_printed_and_messages_go_to_stderr(good: Any, workdir: Path) -> None:
    files = ("align", "--src", "t.de", "--tgt", "t.en")
    trained = good(*files, "--model", "ibm1", "-o", "aligner", "--gold", "t.align")
    assert len(trained.lines) == len(GERMAN) and trained.lines[0] == "0-0 1-1" and trained.lines[-1] == ""
    assert "alignment error rate" in trained.err and "lexicon.tsv" in trained.err
    loaded = good(*files, "--with", "aligner")
    assert "unknown to" not in loaded.err and loaded.out == trained.out
    swapped = good("align", "--src", "t.en", "--tgt", "t.de", "--with", "aligner")
    assert "--src: " in swapped.err and "words are unknown to --with aligner" in swapped.err
    report = json.loads(good(*files, "--gold", "t.align", "--json").out)
    assert report["model"] == "hmm" and 0 <= report["error_rate"] <= 1 and report["sure"] == 11


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "ibm9"], "ibm9"),
        (["--symmetrise", "sum"], "--symmetrise sum"),
        (["--json"], "--gold"),
        (["--with", "nowhere"], "nowhere: no aligner here"),
        (["--with", "nowhere", "--prior", "1"], "--prior"),
        (["--gold", "t.de"], "t.de:1: 'das' is not a link"),
        (["--iterations", "0"], "iterations"),
        (["--gold", "short.align"], "short.align has 1 lines and there are 7 pairs"),
    ],
)
def test_errors_of_the_command(run: Any, workdir: Path, options: list[str], message: str) -> None:
    outcome = run("align", "--src", "t.de", "--tgt", "t.en", *options)
    assert outcome.code == 2 and message in outcome.err and "Traceback" not in outcome.err


def test_an_aligner_is_only_overwritten_with_force(run: Any, good: Any, workdir: Path) -> None:
    command = ("align", "--src", "t.de", "--tgt", "t.en", "-o", "aligner")
    good(*command)
    assert run(*command).code == 2
    good(*command, "--force")
    (workdir / "aligner" / "mine.txt").write_text("mine")
    assert run(*command, "--force").code == 2 and (workdir / "aligner" / "mine.txt").exists()
