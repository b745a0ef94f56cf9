"""Paired bootstrap: agreement with sacreBLEU, and general properties."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from sacrebleu import BLEU, CHRF
from sacrebleu.significance import PairedTest, estimate_ci

from dragoman.core.errors import DataError
from dragoman.evaluation import significance
from dragoman.evaluation.significance import ConfidenceInterval, p_value, paired_bootstrap, resampled_scores
from dragoman.evaluation.translation_metrics import Bleu, Chrf

WORDS = [f"w{n}" for n in range(30)]
METRICS = {"BLEU": Bleu(tokenised=True), "chrF": Chrf()}


def references(sentences: int = 150) -> list[str]:
    rng = Random(1)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 15))) for _ in range(sentences)]


def damaged(lines: list[str], share: float, seed: int) -> list[str]:
    """Translations in which this share of the words is wrong."""
    rng = Random(seed)
    return [" ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split()) for line in lines]


REFERENCES = references()
WORSE, SIMILAR, BETTER = damaged(REFERENCES, 0.3, 0), damaged(REFERENCES, 0.3, 11), damaged(REFERENCES, 0.2, 2)


def statistics(lines: list[str], metric: str = "BLEU"):
    return METRICS[metric].statistics(lines, REFERENCES)


@pytest.fixture(scope="module")
def oracle():
    """sacreBLEU's test of both systems against the first."""
    systems = [("worse", WORSE), ("similar", SIMILAR), ("better", BETTER)]
    metrics = {"BLEU": BLEU(tokenize="none", force=True), "chrF": CHRF()}
    return PairedTest(systems, metrics, [REFERENCES], test_type="bs", n_samples=400)()[1]


# -- agreement with sacreBLEU -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("number", [1, 2])
def test_the_same_resamples_give_the_numbers_of_sacrebleu(oracle, metric: str, number: int) -> None:
    """The seeds are the same, so that the same sentences are drawn."""
    expected = oracle[metric if metric == "BLEU" else "chrF2"][number]
    result = paired_bootstrap(
        statistics(WORSE, metric), statistics([SIMILAR, BETTER][number - 1], metric), resamples=400
    )
    assert result.p_value == expected.p_value
    assert result.second == pytest.approx(expected.score)
    assert result.second_interval.mean == pytest.approx(expected.mean, abs=1e-4)  # it sums in single precision
    assert (result.second_interval.high - result.second_interval.low) / 2 == pytest.approx(expected.ci, abs=1e-4)


def test_other_resamples_give_a_similar_p_value(oracle) -> None:
    expected = oracle["BLEU"][1].p_value
    result = paired_bootstrap(statistics(WORSE), statistics(SIMILAR), resamples=2000, seed=7)
    assert 0.05 < expected < 0.5, "a case that is not clear"
    assert result.p_value == pytest.approx(expected, abs=5 * (0.25 / 400) ** 0.5)


def test_intervals_equal_those_of_sacrebleu() -> None:
    values = np.random.default_rng(1).normal(size=777)
    mean, half = estimate_ci(values)
    interval = ConfidenceInterval.from_samples(values)
    assert (interval.mean, (interval.high - interval.low) / 2) == (pytest.approx(mean), pytest.approx(half))


# -- properties --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_a_system_does_not_differ_from_itself(metric: str) -> None:
    result = paired_bootstrap(statistics(WORSE, metric), statistics(WORSE, metric), resamples=100)
    assert (result.difference, result.wins, result.losses, result.p_value) == (0, 0, 0, 1)
    assert not result.significant
    assert result.difference_interval == ConfidenceInterval(0, 0, 0)
    assert result.first_interval == result.second_interval


def test_a_clear_difference_is_significant_and_a_small_one_is_not() -> None:
    clear = paired_bootstrap(statistics(WORSE), statistics(BETTER))
    assert clear.significant
    assert clear.wins == clear.resamples == 1000
    assert 0 < clear.difference_interval.low < clear.difference < clear.difference_interval.high
    assert not paired_bootstrap(statistics(WORSE), statistics(SIMILAR)).significant


def test_exchanging_the_systems_exchanges_the_result() -> None:
    result = paired_bootstrap(statistics(WORSE), statistics(SIMILAR), resamples=390)
    back = paired_bootstrap(statistics(SIMILAR), statistics(WORSE), resamples=390)
    assert back.difference == -result.difference
    assert (back.wins, back.losses, back.p_value) == (result.losses, result.wins, result.p_value)
    assert back.difference_interval.low == -result.difference_interval.high


def test_the_result_depends_on_the_seed_only() -> None:
    first, same, other = (paired_bootstrap(statistics(WORSE), statistics(SIMILAR), seed=seed) for seed in (1, 1, 2))
    assert first == same
    assert first.difference_interval != other.difference_interval
    assert first.difference == other.difference


def test_the_result_does_not_depend_on_the_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = resampled_scores([statistics(WORSE)], 50, seed=3)[0]
    monkeypatch.setattr(significance, "MAX_DRAWS", 7 * len(REFERENCES) + 1)
    assert (resampled_scores([statistics(WORSE)], 50, seed=3)[0] == whole).all()
    monkeypatch.setattr(significance, "MAX_DRAWS", 1)  # less than one resample
    assert (resampled_scores([statistics(WORSE)], 50, seed=3)[0] == whole).all()


def test_a_resample_is_scored_like_a_text() -> None:
    """Draw lines and score them as one text."""
    drawn = np.random.default_rng(5).choice(len(REFERENCES), size=(3, len(REFERENCES)), replace=True)
    by_hand = [METRICS["BLEU"].statistics([WORSE[n] for n in row], [REFERENCES[n] for n in row]).score for row in drawn]
    assert resampled_scores([statistics(WORSE)], 3, seed=5)[0].tolist() == pytest.approx(by_hand)


def test_a_single_sentence_can_be_resampled() -> None:
    first, second = (METRICS["BLEU"].statistics([line], ["a b c d e"]) for line in ("a b c d e", "a b c x e"))
    result = paired_bootstrap(first, second, resamples=20)
    assert (result.wins, result.losses) == (0, 20)


def test_p_values_are_shares_of_resamples() -> None:
    differences = np.array([0.5, -0.5, 1.5, 0.1])
    assert p_value(differences, 100.0) == 1 / 5
    assert p_value(differences, 0.0) == 2 / 5  # only 1.5 is above the mean of the sizes


@pytest.mark.parametrize(
    ("second", "resamples", "message"),
    [
        (METRICS["BLEU"].statistics(WORSE[:9], REFERENCES[:9]), 10, "150 and 9 translations"),
        (METRICS["chrF"].statistics(WORSE, REFERENCES), 10, "cannot compare"),
        (METRICS["BLEU"].statistics(WORSE, REFERENCES), 0, "0 resamples"),
    ],
)
def test_statistics_that_do_not_match_are_rejected(second, resamples: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        paired_bootstrap(statistics(WORSE), second, resamples=resamples)


def test_no_sentences_are_rejected() -> None:
    nothing = statistics(WORSE).select(np.zeros(0, np.int64))
    with pytest.raises(DataError, match="at least one line"):
        paired_bootstrap(nothing, nothing)
