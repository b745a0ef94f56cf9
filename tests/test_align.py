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
from dragoman.align.aligner import Aligner
from dragoman.align.em import (
    SCHEDULES,
    _exp_digamma,
    maximise,
    most_probable_source,
    run_em,
    train_directional_model,
)
from dragoman.align.pair_grid import NULL, IdLines, PairGrid
from dragoman.align.positions import (
    MAX_JUMP,
    POSITION_MODELS,
    DiagonalPositions,
    JumpPositions,
    PositionModel,
    UniformPositions,
)
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


def make_positions(name: str) -> PositionModel:
    if name == "hmm":
        weights = np.random.default_rng(3).uniform(0.1, 1.0, 2 * MAX_JUMP + 1)
        return JumpPositions(weights, 0.15)
    return DiagonalPositions(2.5, 0.1) if name == "ibm2" else UniformPositions()


def test_word_pairs_are_those_of_all_cells() -> None:
    grid = make_grid([*GERMAN, *(f"w{n}" for n in range(40_000))], [*ENGLISH, *(f"v{n}" for n in range(40_000))])
    keys, index = grid.word_pairs()
    cells = [
        source * grid.target.vocab_size + target
        for pair in range(len(grid))
        for target in grid.target.ids[slice(*grid.target.offsets[pair : pair + 2])].tolist()
        for source in [NULL, *grid.source.ids[slice(*grid.source.offsets[pair : pair + 2])].tolist()]
    ]
    assert keys[index].tolist() == cells and keys.tolist() == sorted(set(cells))


# -- posteriors --------------------------------------------------------------------------------------------------------


def alignment_prior(positions: PositionModel, alignment: tuple[int, ...], sources: int, targets: int) -> float:
    """P(a_1 ... a_J) by its definition; 0 is NULL."""
    if isinstance(positions, JumpPositions):
        return jump_prior(positions, alignment, sources)
    prior = 1.0
    for j, i in enumerate(alignment):
        if isinstance(positions, DiagonalPositions):
            distances = [abs((k + 0.5) / sources - (j + 0.5) / targets) for k in range(sources)]
            weights = [math.exp(-positions.tension * d) for d in distances]
            prior *= positions.null if i == 0 else (1 - positions.null) * weights[i - 1] / sum(weights)
        else:
            prior /= sources + 1
    return prior


def jump_prior(positions: JumpPositions, alignment: tuple[int, ...], sources: int) -> float:
    """NULL keeps the position of the word before; at the start it may be any."""

    def transition(i: int, previous: int) -> float:
        jumps = [positions.jumps[min(max(k - previous, -MAX_JUMP), MAX_JUMP) + MAX_JUMP] for k in range(sources)]
        return float((1 - positions.null) * jumps[i] / sum(jumps))

    def from_word(j: int, previous: int) -> float:
        if j == len(alignment):
            return 1.0
        if alignment[j]:
            return transition(alignment[j] - 1, previous) * from_word(j + 1, alignment[j] - 1)
        if j == 0 or previous < 0:
            return sum(positions.null / sources * from_word(j + 1, position) for position in range(sources))
        return positions.null * from_word(j + 1, previous)

    return from_word(0, -1)


@pytest.mark.parametrize("name", POSITION_MODELS)
def test_posteriors_equal_the_sum_over_all_alignments(name: str) -> None:
    grid, positions = make_grid(["a b c", "b", "c c a"], ["x y z", "y x", "z"]), make_positions(name)
    keys, index = grid.word_pairs()
    probs = np.random.default_rng(1).uniform(0.05, 1.0, len(keys))
    expectation = positions.expect(grid, index, probs)
    log_likelihood = 0.0
    for pair in range(len(grid)):
        sources, targets = int(grid.source.sizes[pair]), int(grid.target.sizes[pair])
        cells = slice(*grid.offsets.cells[pair : pair + 2])
        entries = index[cells].reshape(targets, sources + 1)
        posteriors, total = np.zeros((targets, sources + 1)), 0.0
        for alignment in product(range(sources + 1), repeat=targets):
            p = alignment_prior(positions, alignment, sources, targets)
            p *= math.prod(float(probs[entries[j, i]]) for j, i in enumerate(alignment))
            total += p
            for j, i in enumerate(alignment):
                posteriors[j, i] += p
        computed = expectation.posteriors[cells].reshape(targets, sources + 1)
        np.testing.assert_allclose(computed, posteriors / total, rtol=1e-10)
        log_likelihood += math.log(total)
    assert expectation.log_likelihood == pytest.approx(log_likelihood)


def test_expected_jumps_equal_the_sum_over_all_alignments() -> None:
    grid, positions = make_grid(["a b c"], ["x y"]), make_positions("hmm")
    assert isinstance(positions, JumpPositions)
    keys, index = grid.word_pairs()
    probs = np.random.default_rng(1).uniform(0.05, 1.0, len(keys))
    entries, counts, total = index.reshape(2, 4), np.zeros(2 * MAX_JUMP + 1), 0.0
    for first, second in product(range(4), repeat=2):
        starts = [first - 1] if first else range(3)  # NULL at the start may have any position
        for previous in starts:
            p_first = jump_prior(positions, (first,), 3) if first else positions.null / 3
            jumps = [positions.jumps[k - previous + MAX_JUMP] for k in range(3)]
            p_second = float((1 - positions.null) * jumps[second - 1] / sum(jumps)) if second else positions.null
            p = p_first * p_second * float(probs[entries[0, first]] * probs[entries[1, second]])
            total += p
            if first:
                counts[first + MAX_JUMP] += p
            if second:
                counts[second - 1 - previous + MAX_JUMP] += p
    statistics = positions.expect(grid, index, probs).statistics
    np.testing.assert_allclose(statistics, counts / total, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", POSITION_MODELS)
def test_words_without_a_source_come_from_null(name: str) -> None:
    grid = make_grid(["", "a", "a"], ["x y", "", "x"])
    keys, index = grid.word_pairs()
    expectation = make_positions(name).expect(grid, index, np.full(len(keys), 0.5))
    assert expectation.posteriors[:2].tolist() == [1.0, 1.0]
    assert most_probable_source(grid, expectation.posteriors)[:2].tolist() == [-1, -1]
    assert math.isfinite(expectation.log_likelihood)


@pytest.mark.parametrize("name", POSITION_MODELS)
def test_a_step_of_em_never_lowers_the_likelihood(name: str) -> None:
    """With fixed positions; those of the HMM are fitted approximately."""
    grid, positions = make_grid(), make_positions(name)
    keys, index = grid.word_pairs()
    starts = np.searchsorted(keys, np.arange(grid.source.vocab_size + 1) * grid.target.vocab_size)
    probs = maximise(starts, np.random.default_rng(2).uniform(0.1, 1.0, len(keys)), 0.0)
    likelihoods = []
    for _ in range(8):
        expectation = positions.expect(grid, index, probs)
        likelihoods.append(expectation.log_likelihood)
        probs = maximise(starts, np.bincount(index, expectation.posteriors, len(keys)).astype(np.float64), 0.0)
    assert (np.diff(likelihoods) >= -1e-9).all() and likelihoods[-1] > likelihoods[0] + 1


def test_the_tension_is_recovered_from_the_expected_distance() -> None:
    grid = make_grid(["a b c d e"] * 3, ["v w x y z"] * 3)
    keys, index = grid.word_pairs()
    probs = np.full(len(keys), 0.2)
    for tension in (0.5, 3.0, 9.0):
        statistics = DiagonalPositions(tension, 0.1).expect(grid, index, probs).statistics
        assert DiagonalPositions(1.0, 0.1).fit(grid, statistics).tension == pytest.approx(tension, rel=1e-3)
    assert DiagonalPositions(4.0).fit(grid, np.zeros(2)).tension == 4.0, "no aligned words: nothing changes"


# -- lexicon -----------------------------------------------------------------------------------------------------------


def test_exp_digamma() -> None:
    digamma = {1.0: -0.5772156649015329, 0.5: -1.9635100260214235, 0.01: -100.56088545786867, 10.0: 2.251752589066721}
    np.testing.assert_allclose(_exp_digamma(np.array(list(digamma))), np.exp(list(digamma.values())), rtol=1e-7)


@pytest.mark.parametrize("model", SCHEDULES)
@pytest.mark.parametrize("prior", [0.0, 0.01])
def test_translation_probabilities_sum_to_one(model: str, prior: float) -> None:
    for pairs in (make_pairs(), make_pairs().reversed):
        lexicon = train_directional_model(pairs, model, prior=prior).lexicon
        for word in (None, *lexicon.source.tokens[3:]):
            total = sum(prob for _, prob in lexicon.translations(word, None))
            assert total == pytest.approx(1.0) or (total == 0 and not lexicon.translations(word, None))


def test_lexicon_queries() -> None:
    lexicon = train_directional_model(make_pairs(), "ibm1", 20, prior=0.0).lexicon
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
    posteriors = UniformPositions().expect(grid, grid.word_pairs()[1], em.previous_probs).posteriors
    cells = slice(*grid.offsets.cells[:2])
    rest = em.counts - np.bincount(grid.word_pairs()[1][cells], posteriors[cells], len(em.keys))
    without = WordAssociations(
        em.keys,
        em.starts,
        rest,
        em.previous_probs,
        np.diff(np.concatenate([[0.0], np.cumsum(rest)])[em.starts]),
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
        ("config.yaml", "kind: aligner\nformat: 1\n", "damaged aligner"),
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
