"""Paired bootstrap: the same as sacreBLEU's, and what must hold of any such test."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from sacrebleu.significance import PairedTest, estimate_ci

from dragoman.core.errors import DataError
from dragoman.evaluation import significance
from dragoman.evaluation.significance import ConfidenceInterval, p_value, paired_bootstrap, resampled_scores
from dragoman.evaluation.translation_metrics import bleu, chrf

WORDS = [f"w{n}" for n in range(30)]
METRICS = {"BLEU": bleu(tokenised=True), "chrF": chrf()}


def references(sentences: int = 150) -> list[str]:
    rng = Random(1)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 15))) for _ in range(sentences)]


def damaged(lines: list[str], share: float, seed: int) -> list[str]:
    """Translations in which so many words are wrong."""
    rng = Random(seed)
    return [" ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split()) for line in lines]


REFERENCES = references()
WORSE, SIMILAR, BETTER = damaged(REFERENCES, 0.3, 0), damaged(REFERENCES, 0.3, 11), damaged(REFERENCES, 0.2, 2)


def statistics(lines: list[str], metric: str = "BLEU"):
    return METRICS[metric].statistics(lines, REFERENCES)


@pytest.fixture(scope="module")
def oracle():
    """sacreBLEU's own test of both systems against the first."""
    systems = [("worse", WORSE), ("similar", SIMILAR), ("better", BETTER)]
    rules = {name: metric.rule for name, metric in METRICS.items()}
    return PairedTest(systems, rules, [REFERENCES], test_type="bs", n_samples=400)()[1]


# -- sacreBLEU says the same -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("number", [1, 2])
def test_the_same_resamples_give_sacrebleus_numbers(oracle, metric: str, number: int) -> None:
    """Its seed is ours, so that the same sentences are drawn."""
    expected = oracle[metric if metric == "BLEU" else "chrF2"][number]
    found = paired_bootstrap(
        statistics(WORSE, metric), statistics([SIMILAR, BETTER][number - 1], metric), resamples=400
    )
    assert found.p_value == expected.p_value
    assert found.second == pytest.approx(expected.score)
    assert found.second_interval.mean == pytest.approx(expected.mean, abs=1e-4)  # it sums in single precision
    assert (found.second_interval.high - found.second_interval.low) / 2 == pytest.approx(expected.ci, abs=1e-4)


def test_other_resamples_give_nearly_its_p_value(oracle) -> None:
    expected = oracle["BLEU"][1].p_value
    found = paired_bootstrap(statistics(WORSE), statistics(SIMILAR), resamples=2000, seed=7)
    assert 0.05 < expected < 0.5, "a case that is not clear"
    assert found.p_value == pytest.approx(expected, abs=5 * (0.25 / 400) ** 0.5)


def test_intervals_are_cut_as_sacrebleu_does() -> None:
    values = np.random.default_rng(1).normal(size=777)
    mean, half = estimate_ci(values)
    found = ConfidenceInterval.from_samples(values)
    assert (found.mean, (found.high - found.low) / 2) == (pytest.approx(mean), pytest.approx(half))


# -- what must hold --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_a_system_does_not_differ_from_itself(metric: str) -> None:
    found = paired_bootstrap(statistics(WORSE, metric), statistics(WORSE, metric), resamples=100)
    assert (found.difference, found.wins, found.losses, found.p_value) == (0, 0, 0, 1)
    assert not found.significant
    assert found.difference_interval == ConfidenceInterval(0, 0, 0)
    assert found.first_interval == found.second_interval


def test_a_clear_difference_is_significant_and_a_small_one_is_not() -> None:
    clear = paired_bootstrap(statistics(WORSE), statistics(BETTER))
    assert clear.significant
    assert clear.wins == clear.resamples == 1000
    assert 0 < clear.difference_interval.low < clear.difference < clear.difference_interval.high
    assert not paired_bootstrap(statistics(WORSE), statistics(SIMILAR)).significant


def test_the_other_way_round_everything_is_the_other_way_round() -> None:
    found = paired_bootstrap(statistics(WORSE), statistics(SIMILAR), resamples=390)
    back = paired_bootstrap(statistics(SIMILAR), statistics(WORSE), resamples=390)
    assert back.difference == -found.difference
    assert (back.wins, back.losses, back.p_value) == (found.losses, found.wins, found.p_value)
    assert back.difference_interval.low == -found.difference_interval.high


def test_seeds_decide() -> None:
    one, again, other = (paired_bootstrap(statistics(WORSE), statistics(SIMILAR), seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.difference_interval != other.difference_interval
    assert one.difference == other.difference


def test_resamples_drawn_some_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = resampled_scores([statistics(WORSE)], 50, seed=3)[0]
    monkeypatch.setattr(significance, "AT_ONCE", 7 * len(REFERENCES) + 1)
    assert (resampled_scores([statistics(WORSE)], 50, seed=3)[0] == whole).all()
    monkeypatch.setattr(significance, "AT_ONCE", 1)  # less than one resample
    assert (resampled_scores([statistics(WORSE)], 50, seed=3)[0] == whole).all()


def test_a_resample_is_a_text_of_sentences_drawn() -> None:
    """By hand: draw lines, join them, and let the metric judge that text."""
    drawn = np.random.default_rng(5).choice(len(REFERENCES), size=(3, len(REFERENCES)), replace=True)
    by_hand = [METRICS["BLEU"].statistics([WORSE[n] for n in row], [REFERENCES[n] for n in row]).score for row in drawn]
    assert resampled_scores([statistics(WORSE)], 3, seed=5)[0].tolist() == pytest.approx(by_hand)


def test_one_sentence_can_be_resampled() -> None:
    one, two = (METRICS["BLEU"].statistics([line], ["a b c d e"]) for line in ("a b c d e", "a b c x e"))
    found = paired_bootstrap(one, two, resamples=20)
    assert (found.wins, found.losses) == (0, 20)


def test_p_values_lie_between_none_and_all() -> None:
    differences = np.array([0.5, -0.5, 1.5, 0.1])
    assert p_value(differences, 100.0) == 1 / 5
    assert p_value(differences, 0.0) == 2 / 5  # 1.5 alone is above the mean of the sizes


@pytest.mark.parametrize(
    ("second", "resamples", "said"),
    [
        (METRICS["BLEU"].statistics(WORSE[:9], REFERENCES[:9]), 10, "150 and 9 translations"),
        (METRICS["chrF"].statistics(WORSE, REFERENCES), 10, "different measures"),
        (METRICS["BLEU"].statistics(WORSE, REFERENCES), 0, "0 resamples"),
    ],
)
def test_what_cannot_be_compared_is_refused(second, resamples: int, said: str) -> None:
    with pytest.raises(DataError, match=said):
        paired_bootstrap(statistics(WORSE), second, resamples=resamples)


def test_nothing_cannot_be_resampled() -> None:
    nothing = statistics(WORSE).select(np.zeros(0, np.int64))
    with pytest.raises(DataError, match="at least one line"):
        paired_bootstrap(nothing, nothing)
