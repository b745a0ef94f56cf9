"""Alignment models against enumeration, and what they learn on texts small enough to see through."""

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
from dragoman.align.aligner import SCHEDULES, Aligner
from dragoman.align.em import (
    INITIAL_POSITION_MODELS,
    _exp_digamma,
    _lexicon_entries,
    _maximise,
    most_probable_source,
    train_directional_model,
)
from dragoman.align.lexicon import Lexicon
from dragoman.align.pair_grid import NULL, PairGrid
from dragoman.align.positions import MAX_JUMP, DiagonalPositions, JumpPositions, PositionModel, UniformPositions
from dragoman.align.symmetrization import SYMMETRIZATIONS, symmetrize
from dragoman.core.threads import limit_threads
from dragoman.data.corpus import ParallelCorpus
from dragoman.evaluation.alignment import count_all_links, parse_gold_alignment

GERMAN = ["das haus", "das buch", "ein buch", "ein kleines haus", "das kleine buch", "", "haus"]
ENGLISH = ["the house", "the book", "a book", "a small house", "the small book", "nothing here", ""]


def texts(german: list[str] = GERMAN, english: list[str] = ENGLISH) -> ParallelCorpus:
    return ParallelCorpus(Corpus.from_sentences(german), Corpus.from_sentences(english))


def some_positions(name: str) -> PositionModel:
    if name == "hmm":
        weights = np.random.default_rng(3).uniform(0.1, 1.0, 2 * MAX_JUMP + 1)
        return JumpPositions(weights, 0.15)
    return DiagonalPositions(2.5, 0.1) if name == "ibm2" else UniformPositions()


# -- posteriors --------------------------------------------------------------------------------------------------------


def prior_of(positions: PositionModel, alignment: tuple[int, ...], sources: int, targets: int) -> float:
    """P(a_1 ... a_J) by its definition; 0 is the empty word."""
    if isinstance(positions, JumpPositions):
        return jumping(positions, alignment, sources)
    found = 1.0
    for j, i in enumerate(alignment):
        if isinstance(positions, DiagonalPositions):
            far = [abs((k + 0.5) / sources - (j + 0.5) / targets) for k in range(sources)]
            weights = [math.exp(-positions.tension * d) for d in far]
            found *= positions.null if i == 0 else (1 - positions.null) * weights[i - 1] / sum(weights)
        else:
            found /= sources + 1
    return found


def jumping(positions: JumpPositions, alignment: tuple[int, ...], sources: int) -> float:
    """The empty word keeps the place of the word before; before the first word it may be any."""

    def p(i: int, before: int) -> float:
        jump = [positions.jumps[min(max(k - before, -MAX_JUMP), MAX_JUMP) + MAX_JUMP] for k in range(sources)]
        return float((1 - positions.null) * jump[i] / sum(jump))

    def rest(at: int, before: int) -> float:
        if at == len(alignment):
            return 1.0
        if alignment[at]:
            return p(alignment[at] - 1, before) * rest(at + 1, alignment[at] - 1)
        if at == 0 or before < 0:
            return sum(positions.null / sources * rest(at + 1, place) for place in range(sources))
        return positions.null * rest(at + 1, before)

    return rest(0, -1)


@pytest.mark.parametrize("name", INITIAL_POSITION_MODELS)
def test_posteriors_are_those_of_all_alignments_gone_through(name: str) -> None:
    pairs, positions = texts(["a b c", "b", "c c a"], ["x y z", "y x", "z"]), some_positions(name)
    cells = PairGrid.from_pairs(pairs)
    keys, entry = _lexicon_entries(cells)
    t = np.random.default_rng(1).uniform(0.05, 1.0, len(keys))
    expected = positions.expect(cells, entry, t)
    total = 0.0
    for pair in range(len(pairs)):
        sources, targets = (int(np.diff(side.offsets)[pair]) for side in (pairs.source, pairs.target))
        own = entry[cells.offsets[pair] : cells.offsets[pair + 1]].reshape(targets, sources + 1)
        posterior, mass = np.zeros((targets, sources + 1)), 0.0
        for alignment in product(range(sources + 1), repeat=targets):
            p = prior_of(positions, alignment, sources, targets)
            p *= math.prod(float(t[own[j, i]]) for j, i in enumerate(alignment))
            mass += p
            for j, i in enumerate(alignment):
                posterior[j, i] += p
        found = expected.posteriors[cells.offsets[pair] : cells.offsets[pair + 1]].reshape(targets, sources + 1)
        np.testing.assert_allclose(found, posterior / mass, rtol=1e-10)
        total += math.log(mass)
    assert expected.log_likelihood == pytest.approx(total)


def test_expected_jumps_are_those_of_all_alignments_gone_through() -> None:
    pairs, positions = texts(["a b c"], ["x y"]), some_positions("hmm")
    cells = PairGrid.from_pairs(pairs)
    _, entry = _lexicon_entries(cells)
    t = np.random.default_rng(1).uniform(0.05, 1.0, entry.max() + 1)
    own, counts, mass = entry.reshape(2, 4), np.zeros(2 * MAX_JUMP + 1), 0.0
    for alignment in product(range(4), repeat=2):
        places = [alignment] if alignment[0] else [alignment] * 3  # the place that the empty word keeps at the start
        for place, a in enumerate(places):
            first = positions.null / 3 if not a[0] else jumping(positions, a[:1], 3)
            before = a[0] - 1 if a[0] else place
            reach = [positions.jumps[k - before + MAX_JUMP] for k in range(3)]
            second = positions.null if not a[1] else float((1 - positions.null) * reach[a[1] - 1] / sum(reach))
            p = first * second * float(t[own[0, a[0]]] * t[own[1, a[1]]])
            mass += p
            if a[0]:
                counts[a[0] + MAX_JUMP] += p
            if a[1]:
                counts[a[1] - 1 - before + MAX_JUMP] += p
    np.testing.assert_allclose(positions.expect(cells, entry, t).statistics, counts / mass, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", INITIAL_POSITION_MODELS)
def test_a_sentence_beside_nothing_comes_from_the_empty_word(name: str) -> None:
    cells = PairGrid.from_pairs(texts(["", "a", "a"], ["x y", "", "x"]))
    _, entry = _lexicon_entries(cells)
    expected = some_positions(name).expect(cells, entry, np.full(entry.max() + 1, 0.5))
    assert expected.posteriors[:2].tolist() == [1.0, 1.0]
    assert most_probable_source(cells, expected.posteriors)[:2].tolist() == [-1, -1]
    assert math.isfinite(expected.log_likelihood)


@pytest.mark.parametrize("name", INITIAL_POSITION_MODELS)
def test_a_step_of_em_never_makes_a_text_less_probable(name: str) -> None:
    """With positions as they are; those of the hidden Markov model are fitted by rule of thumb."""
    cells, positions = PairGrid.from_pairs(texts()), some_positions(name)
    keys, entry = _lexicon_entries(cells)
    lexicon = Lexicon(cells.source.vocab, cells.target.vocab, keys, np.zeros(len(keys)))
    t = _maximise(lexicon, np.random.default_rng(2).uniform(0.1, 1.0, len(keys)), 0.0)
    likelihoods = []
    for _ in range(8):
        expected = positions.expect(cells, entry, t)
        likelihoods.append(expected.log_likelihood)
        t = _maximise(lexicon, np.bincount(entry, expected.posteriors, len(keys)).astype(np.float64), 0.0)
    assert (np.diff(likelihoods) >= -1e-9).all() and likelihoods[-1] > likelihoods[0] + 1


def test_the_tension_makes_distances_as_far_as_they_were_seen() -> None:
    cells = PairGrid.from_pairs(texts(["a b c d e"] * 3, ["v w x y z"] * 3))
    _, entry = _lexicon_entries(cells)
    t = np.full(entry.max() + 1, 0.2)
    for tension in (0.5, 3.0, 9.0):
        noted = DiagonalPositions(tension, 0.1).expect(cells, entry, t).statistics
        assert DiagonalPositions(1.0, 0.1).fit(cells, noted).tension == pytest.approx(tension, rel=1e-3)
    assert DiagonalPositions(4.0).fit(cells, (0.0, 0.0)).tension == 4.0, "nothing was seen"


# -- lexicon -----------------------------------------------------------------------------------------------------------


def test_the_expected_weights_are_by_the_digamma_function() -> None:
    known = {1.0: -0.5772156649015329, 0.5: -1.9635100260214235, 0.01: -100.56088545786867, 10.0: 2.251752589066721}
    found = _exp_digamma(np.array(list(known)))
    np.testing.assert_allclose(found, np.exp(list(known.values())), rtol=1e-7)


@pytest.mark.parametrize("model", SCHEDULES)
@pytest.mark.parametrize("prior", [0.0, 0.01])
def test_translations_of_a_word_sum_to_one(model: str, prior: float) -> None:
    for cells in (PairGrid.from_pairs(texts()), PairGrid.from_pairs(texts()).reversed):
        lexicon = train_directional_model(cells, SCHEDULES[model], prior=prior).lexicon
        for word in (None, *lexicon.source.tokens[3:]):
            total = sum(prob for _, prob in lexicon.translations(word, None))
            assert total == pytest.approx(1.0) or (total == 0 and not lexicon.translations(word, None))


def test_what_a_lexicon_knows() -> None:
    lexicon = train_directional_model(PairGrid.from_pairs(texts()), ["ibm1"], 20, prior=0.0).lexicon
    assert [lexicon.translations(word, 1)[0].word for word in ("das", "buch", "haus")] == ["the", "book", "house"]
    assert lexicon.prob("buch", "book") == lexicon.translations("buch")[0].prob > 0.9
    assert lexicon.prob("buch", "nothing") == lexicon.prob("zug", "book") == lexicon.prob("buch", "train") == 0.0
    assert lexicon.translations("zug") == [] and len(lexicon.translations("das", 2)) == 2
    assert [one.word for one in lexicon.translations(None, None)] != []
    best = lexicon.best_translations()
    words = lexicon.target.tokens
    assert [words[best[lexicon.source.id(word)]] for word in ("das", "buch")] == ["the", "book"]
    assert best[NULL + 1] == 2, "</s> is no word, so it has none"


# -- two directions ----------------------------------------------------------------------------------------------------


def slowly(one: set[tuple[int, int]], other: set[tuple[int, int]], rows: int, columns: int, way: str) -> set[Any]:
    """Symmetrisation as it is written down (Koehn et al. 2003)."""
    if way != "grow-diag-final-and":
        return {"forward": one, "backward": other, "intersection": one & other, "union": one | other}[way]
    kept = one & other
    grew = True
    while grew:
        grew = False
        for i, j in product(range(rows), range(columns)):
            if (i, j) not in kept:
                continue
            for a, b in product((i - 1, i, i + 1), (j - 1, j, j + 1)):
                free = all(k != a for k, _ in kept) or all(k != b for _, k in kept)
                if (a, b) in (one | other) - kept and free:
                    kept.add((a, b))
                    grew = True
    for found in (one, other):
        for a, b in product(range(rows), range(columns)):
            if (a, b) in found and all(k != a for k, _ in kept) and all(k != b for _, k in kept):
                kept.add((a, b))
    return kept


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_symmetrised_as_it_is_written_down(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=3))
    pairs = texts([" ".join("a" * rows) for rows, _ in sizes], [" ".join("b" * columns) for _, columns in sizes])
    forward = [
        data.draw(st.lists(st.integers(-1, rows - 1), min_size=columns, max_size=columns)) for rows, columns in sizes
    ]
    backward = [
        data.draw(st.lists(st.integers(-1, columns - 1), min_size=rows, max_size=rows)) for rows, columns in sizes
    ]
    flat = [np.array([i for own in some for i in own], np.int32) for some in (forward, backward)]
    for way in SYMMETRIZATIONS:
        links = symmetrize(PairGrid.from_pairs(pairs), *flat, way)
        assert len(links) == len(sizes)
        for number, (rows, columns) in enumerate(sizes):
            one = {(i, j) for j, i in enumerate(forward[number]) if i >= 0}
            other = {(i, j) for i, j in enumerate(backward[number]) if j >= 0}
            assert links[number] == sorted(slowly(one, other, rows, columns, way))


def test_all_models_find_what_is_plain_to_see() -> None:
    for model in SCHEDULES:
        aligner = Aligner.train(texts(), model, 10)
        links = aligner.align(texts())
        gold = [
            parse_gold_alignment(line)
            for line in ("0-0 1-1", "0-0 1-1", "0-0 1-1", "0-0 1-1 2-2", "0-0 1-1 2-2", "", "")
        ]
        assert count_all_links([links[pair] for pair in range(7)], gold).error_rate < 0.1, model


def test_the_number_of_threads_changes_nothing() -> None:
    many = texts(
        [f"{line} {n % 7}" for n in range(1500) for line in GERMAN],
        [f"{line} {n % 7}" for n in range(1500) for line in ENGLISH],
    )
    found = []
    for threads in (1, 2):
        with limit_threads(threads):
            found.append(Aligner.train(many, "hmm", 2))
    for one, other in zip((found[0].forward, found[0].backward), (found[1].forward, found[1].backward), strict=True):
        assert np.array_equal(one.lexicon.probs, other.lexicon.probs)
        assert one.config() == other.config()


def test_wrong_wishes_are_refused() -> None:
    with pytest.raises(DataError, match="'ibm9': there are ibm1, ibm2, hmm"):
        Aligner.train(texts(), "ibm9")
    with pytest.raises(DataError, match="0 iterations"):
        Aligner.train(texts(), "ibm1", 0)
    with pytest.raises(DataError, match="no words"):
        Aligner.train(texts([""], ["x"]))
    with pytest.raises(DataError, match="'sum': there are grow"):
        Aligner.train(texts(), "ibm1").align(texts(), "sum")


# -- on disk, and from the command line --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", SCHEDULES)
def test_an_aligner_comes_back_as_it_was(model: str, tmp_path: Path) -> None:
    aligner = Aligner.train(texts(), model)
    aligner.save(tmp_path / "kept")
    back = Aligner.load(tmp_path / "kept")
    lexicon = aligner.forward.lexicon
    new = ParallelCorpus(
        Corpus.from_sentences(["das kleine haus", "ein zug"], lexicon.source),
        Corpus.from_sentences(["the small house", "a train"], lexicon.target),
    )
    assert [back.align(new)[pair] for pair in range(2)] == [aligner.align(new)[pair] for pair in range(2)]
    assert back.align(new)[0] == [(0, 0), (1, 1), (2, 2)]
    assert np.array_equal(back.backward.lexicon.probs, aligner.backward.lexicon.probs)
    assert back.forward.config() == aligner.forward.config()


def test_the_lexicon_can_be_read(tmp_path: Path) -> None:
    aligner = Aligner.train(texts(), "ibm1")
    aligner.save(tmp_path / "kept")
    rows = [line.split("\t") for line in (tmp_path / "kept" / "lexicon.tsv").read_text().splitlines()]
    told = {(row[0], row[1]): (float(row[2]), float(row[3])) for row in rows}
    forward, backward = aligner.forward.lexicon, aligner.backward.lexicon
    for (german, english), (one, other) in told.items():
        assert one == pytest.approx(forward.prob(german, english), abs=1e-6)
        assert other == pytest.approx(backward.prob(english, german), abs=1e-6)
        assert max(one, other) >= 0.0099
    assert ("buch", "book") in told and len(told) == len(rows)
    own = [row for row in rows if row[0] == "das"]
    assert [float(row[2]) for row in own] == sorted((float(row[2]) for row in own), reverse=True)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("config.yaml", "kind: ngram\n", "is no aligner"),
        ("config.yaml", "kind: aligner\nformat: 7\n", "another format"),
        ("config.yaml", "kind: aligner\nformat: 1\n", "broken aligner"),
        ("config.yaml", "\x00", "there is no aligner"),
        ("model.safetensors", "nonsense", "safetensors"),
        ("source-vocab.tsv", "", "vocab"),
    ],
)
def test_a_broken_aligner_is_refused(name: str, content: str, told: str, tmp_path: Path) -> None:
    Aligner.train(texts(), "ibm1").save(tmp_path / "kept")
    (tmp_path / "kept" / name).write_text(content)
    with pytest.raises(DataError, match=told):
        Aligner.load(tmp_path / "kept")


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [("hmm", "jumps", [0.5]), ("hmm", "jumps", [-1.0] * 81), ("hmm", "null", 1.5), ("ibm2", "tension", -1.0)],
)
def test_positions_that_cannot_be_are_refused(model: str, name: str, value: Any, tmp_path: Path) -> None:
    """Kernels look jumps up without asking how many there are."""
    Aligner.train(texts(), model).save(tmp_path / "kept")
    config = yaml.safe_load((tmp_path / "kept" / "config.yaml").read_text())
    config["forward"][name] = value
    (tmp_path / "kept" / "config.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(DataError, match="broken aligner"):
        Aligner.load(tmp_path / "kept")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, lines in (("t.de", GERMAN), ("t.en", ENGLISH)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "t.align").write_text("0-0 1-1\n0-0 1-1\n0-0 1-1\n0-0 1-1 2-2\n0-0 1-1 2?2\n\n\n")
    return tmp_path


def test_pairs_on_standard_output_the_rest_elsewhere(good: Any, place: Path) -> None:
    shown = good(
        "align",
        "--src",
        place / "t.de",
        "--tgt",
        place / "t.en",
        "--model",
        "ibm1",
        "-o",
        place / "kept",
        "--gold",
        place / "t.align",
    )
    assert len(shown.lines) == len(GERMAN) and shown.lines[0] == "0-0 1-1" and shown.lines[-1] == ""
    assert "alignment error rate" in shown.err and "lexicon.tsv" in shown.err
    again = good("align", "--src", place / "t.de", "--tgt", place / "t.en", "--with", place / "kept")
    assert "unknown to" not in again.err
    swapped = good("align", "--src", place / "t.en", "--tgt", place / "t.de", "--with", place / "kept")
    assert "--src: " in swapped.err and "are --src and --tgt the languages that it learned from?" in swapped.err
    assert again.out == shown.out
    told = json.loads(
        good("align", "--src", place / "t.de", "--tgt", place / "t.en", "--gold", place / "t.align", "--json").out
    )
    assert told["model"] == "hmm" and 0 <= told["error_rate"] <= 1 and told["sure"] == 11


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--model", "ibm9"], "ibm9"),
        (["--symmetrise", "sum"], "--symmetrise sum"),
        (["--json"], "--gold"),
        (["--with", "nowhere"], "nowhere: there is no aligner"),
        (["--with", "nowhere", "--prior", "1"], "no --model, --iterations or --prior"),
        (["--gold", "t.de"], "t.de:1: 'das' is no link"),
        (["--iterations", "0"], "iterations"),
        (["--gold", "short.align"], "short.align has 1 lines but there are 7 pairs"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(
    run: Any, place: Path, monkeypatch: Any, options: list[str], told: str
) -> None:
    monkeypatch.chdir(place)
    (place / "short.align").write_text("0-0\n")
    outcome = run("align", "--src", "t.de", "--tgt", "t.en", *options)
    assert outcome.code == 2 and told in outcome.err and "Traceback" not in outcome.err


def test_an_aligner_is_not_written_over(run: Any, good: Any, place: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(place)
    command = ("align", "--src", "t.de", "--tgt", "t.en", "-o", "kept")
    good(*command)
    assert run(*command).code == 2
    good(*command, "--force")
    (place / "kept" / "mine.txt").write_text("mine")
    assert run(*command, "--force").code == 2 and (place / "kept" / "mine.txt").exists()


def test_an_aligner_is_not_a_model(tmp_path: Path) -> None:
    Aligner.train(texts(), "ibm1").save(tmp_path / "kept")
    with pytest.raises(DataError, match=r"is an aligner, not a model; .*--lexicon"):
        dragoman.load(tmp_path / "kept")
