"""Mixtures and ensembles: their weights, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dragoman import Corpus, DataError, LanguageModel, Mixture, NgramModel, ensemble, mixture
from dragoman.mixture import fit_weights
from dragoman.scorer import token_log_probs
from dragoman.text.batches import Batch
from dragoman.text.unknown import Closed, Uniform
from zoo import TRAINING, model


def perplexity(scorer: LanguageModel, text: Corpus) -> float:
    return math.exp(-token_log_probs(scorer, text).mean())


def random_members(models: int, tokens: int, seed: int) -> np.ndarray:
    return np.log(np.random.default_rng(seed).uniform(0.01, 1.0, (models, tokens)))


def log_likelihood(weights: np.ndarray, log_probs: np.ndarray) -> float:
    return float(np.log(weights @ np.exp(log_probs)).sum())


# -- EM ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_weights_agree_with_a_grid(seed: int) -> None:
    log_probs = random_members(2, 50, seed)
    grid = np.linspace(0, 1, 10_001)
    best = max(grid, key=lambda weight: log_likelihood(np.array([weight, 1 - weight]), log_probs))
    assert fit_weights(log_probs) == pytest.approx([best, 1 - best], abs=2e-3)


def test_three_weights_are_not_beaten_by_a_grid() -> None:
    log_probs = random_members(3, 80, seed=3)
    fitted = log_likelihood(fit_weights(log_probs), log_probs)
    steps = np.linspace(0, 1, 51)
    rivals = [np.array([a, b, 1 - a - b]) for a in steps for b in steps if a + b <= 1]
    assert max(log_likelihood(rival, log_probs) for rival in rivals) <= fitted + 1e-6


def test_likelihood_never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    log_probs = random_members(4, 60, seed=4)
    course = []
    for iterations in range(25):
        monkeypatch.setattr(mixture, "ITERATIONS", iterations)
        course.append(log_likelihood(fit_weights(log_probs), log_probs))
    assert all(later >= earlier - 1e-12 for earlier, later in zip(course[:-1], course[1:], strict=True))
    assert course[-1] > course[0]


def test_very_small_probabilities_do_not_upset_the_weights() -> None:
    log_probs = random_members(2, 50, seed=5)
    assert fit_weights(log_probs - 600) == pytest.approx(fit_weights(log_probs), abs=1e-9)


def test_member_with_zeros_is_fine_if_another_covers() -> None:
    log_probs = np.log([[0.9, 0.9, 0.9, 0.2], [0.1, 0.1, 0.1, 0.8]])
    log_probs[0, 3] = -math.inf
    weights = fit_weights(log_probs)
    assert 0.5 < weights[0] < 1
    assert weights.sum() == pytest.approx(1)


def test_a_word_no_member_can_explain_is_refused() -> None:
    with pytest.raises(DataError, match="every model gives probability 0"):
        fit_weights(np.array([[0.0, -math.inf], [-1.0, -math.inf]]))


# -- mixtures ------------------------------------------------------------------------------------------------------


def test_probabilities_are_weighted_sums() -> None:
    one, two = model("modified-kneser-ney, order 3"), model("cache")
    both = Mixture([one, two], [0.3, 0.7])
    batch = Batch.to_generate(2)
    words = torch.tensor([5, 7])
    says = [m.log_probs(m.advance(m.start(batch), words)).exp() for m in (one, two, both)]
    torch.testing.assert_close(says[2], 0.3 * says[0] + 0.7 * says[1], rtol=0, atol=1e-12)


def test_ensemble_weighs_all_alike() -> None:
    members = [model(f"witten-bell, order {order}") for order in (1, 2, 3)]
    assert ensemble(members).weights == pytest.approx([1 / 3] * 3)


def test_zero_probabilities_of_one_member_leave_the_mixture_positive(held_out: Corpus) -> None:
    fragile, safe = model("maximum-likelihood, order 3"), model("witten-bell, order 1")
    assert token_log_probs(fragile, held_out).min() == -math.inf
    fitted = Mixture.fit([fragile, safe], held_out)
    assert np.isfinite(token_log_probs(fitted, held_out)).all()
    assert perplexity(fitted, held_out) <= perplexity(safe, held_out) + 1e-9


def test_domain_adaptation() -> None:
    """Much text of one sort, little of another: on the second sort, the mixture beats both of its members."""
    weather = ["the cat hears rain .", "rain !", "the rain hears a dog .", "rain"]
    dev = ["the bird hears rain !", "the old cat sees the rain .", "rain"]
    language = Corpus.from_sentences([*TRAINING, *weather]).vocab
    much, little, text = (Corpus.from_sentences(lines, language) for lines in (TRAINING, weather, dev))
    members = [NgramModel.train(part, order=2, smoothing="witten-bell") for part in (much, little)]
    adapted = Mixture.fit(members, text)
    assert perplexity(adapted, text) < 0.5 * min(perplexity(member, text) for member in members)
    assert adapted.weights.min() > 0.2
    assert Mixture.fit(members, much).weights[1] < 0.05


# -- refusals ------------------------------------------------------------------------------------------------------


def trained(lines: list[str], **settings: object) -> NgramModel:
    return NgramModel.train(Corpus.from_sentences(lines), order=1, smoothing="witten-bell", **settings)


def test_vocabularies_of_different_sizes_are_refused() -> None:
    with pytest.raises(DataError, match=r"model 1 and model 2 .*\(5 entries against 6\): .*--vocab"):
        Mixture([trained(["a b"]), trained(["a b c"])])


def test_vocabularies_with_different_words_are_refused() -> None:
    with pytest.raises(DataError, match=r"model 1 and model 3 .*entry 4 is 'b' in one and 'c' in the other"):
        Mixture([trained(["a b"]), trained(["a b"]), trained(["a c"])])


def test_different_unknown_words_are_refused() -> None:
    with pytest.raises(DataError, match=r"unknown words differently \(uniform over .* words, and none\).*--unknown"):
        Mixture([trained(["a b"]), trained(["a b"], unknown=Closed(3))])
    with pytest.raises(DataError, match=r"10,000,000.*500"):
        Mixture([trained(["a b"]), trained(["a b"], unknown=Uniform(3, 500))])


def test_fit_refuses_before_it_scores() -> None:
    one, two = trained(["a b"]), trained(["a c"])
    with pytest.raises(DataError, match="entry 4"):
        Mixture.fit([one, two], Corpus.from_sentences(["a"], one.vocab))


@pytest.mark.parametrize("weights", [[0.5], [0.7, 0.7], [1.5, -0.5], [math.nan, 1.0], [0.2, 0.2, 0.6]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(DataError, match="adding up to 1"):
        Mixture([trained(["a b"]), trained(["a b"])], weights)


def test_no_members_are_refused() -> None:
    with pytest.raises(DataError, match="at least one model"):
        Mixture([])
