"""Hard attention: one word is chosen, at random in training. (Other laws are in test_translator.)"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman import Corpus, DataError, fit
from dragoman.data.corpus import ParallelCorpus
from dragoman.models.translator import Translator
from dragoman.nn.attention import SOFT_SHARE, most_probable, reinforce, sample
from module_outputs import log_probs, training_output
from small_translators import ENGLISH, GERMAN

SETTINGS = {"embedding": 16, "hidden": 16, "dropout": 0.0, "embedding_reach": 1.0}


def pairs() -> ParallelCorpus:
    return ParallelCorpus(Corpus.from_sentences(GERMAN), Corpus.from_sentences(ENGLISH))


def test_words_are_sampled_by_their_weights() -> None:
    alpha = torch.tensor([0.5, 0.2, 0.3, 0.0]).expand(4000, 1, 4)
    weights = sample(alpha, torch.Generator().manual_seed(1))
    assert weights.shape == alpha.shape
    average = (weights == alpha).all(dim=-1)[:, 0]
    assert abs(float(average.float().mean()) - SOFT_SHARE) < 5 * math.sqrt(0.25 / 4000)
    chosen = weights[~average]
    assert torch.equal(chosen.sum(dim=-1), torch.ones(len(chosen), 1)) and set(chosen.flatten().tolist()) == {0.0, 1.0}
    shares = chosen.mean(dim=0)[0].numpy()
    np.testing.assert_allclose(shares, [0.5, 0.2, 0.3, 0.0], rtol=0, atol=5 * math.sqrt(0.25 / len(chosen)))
    assert shares[3] == 0
    assert most_probable(alpha)[:, 0].argmax(dim=1).tolist() == [0] * 4000 and float(most_probable(alpha).sum()) == 4000


def test_the_gradient_of_a_choice_depends_on_the_baseline() -> None:
    """The gradient of the weights is that of log alpha of the choice, times by how much it beat the baseline."""
    scores = torch.randn(3, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()
    log_probs = torch.tensor([-1.0, -2.0, -6.0], dtype=torch.float64, requires_grad=True)
    chosen = torch.eye(4, dtype=torch.float64)[[2, 0, 1]]
    chosen[1] = scores[1].softmax(dim=0).detach()  # nothing was chosen
    baseline = torch.tensor([-3.0, -3.0, -3.0], dtype=torch.float64)
    result = reinforce(log_probs, scores.softmax(dim=1), chosen, baseline)
    torch.testing.assert_close(result, log_probs)  # as it is
    of_scores, of_log_probs = torch.autograd.grad(result.sum(), [scores, log_probs])
    better = torch.tensor([2.0, 0.0, -3.0], dtype=torch.float64)[:, None]
    torch.testing.assert_close(of_scores, better * (chosen - scores.softmax(dim=1)).detach())
    torch.testing.assert_close(of_log_probs, torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("settings", [{}, {"dropout": 0.4, "readout": 8}, {"lexicon": True}], ids=str)
def test_the_baseline_equals_soft_attention(settings: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sampled attention equals the soft attention, both log-probabilities are equal, also with dropout."""
    differences = []

    def record(log_probs: Tensor, alphas: Tensor, chosen: Tensor, baseline: Tensor) -> Tensor:
        differences.append((log_probs - baseline)[(chosen == alphas).all(dim=1)])
        return reinforce(log_probs, alphas, chosen, baseline)

    monkeypatch.setattr("dragoman.models.translator.reinforce", record)
    model = Translator.create(pairs(), hard=True, **{**SETTINGS, **settings})
    training_output(model, pairs(), 3)
    assert len(differences[0]) > 10
    torch.testing.assert_close(differences[0], torch.zeros_like(differences[0]), atol=1e-4, rtol=0)


def test_samples_depend_on_the_generator_only() -> None:
    model = Translator.create(pairs(), hard=True, **SETTINGS)
    first, same, other = (-training_output(model, pairs(), seed).losses for seed in (1, 1, 2))
    assert torch.equal(first, same) and not torch.equal(first, other)
    assert torch.equal(log_probs(model, pairs()), log_probs(model, pairs())), "outside of training, none"


def test_a_translator_with_hard_attention_learns() -> None:
    text = pairs()
    model = Translator.create(text, hard=True, **SETTINGS)
    before = -float(log_probs(model, text).mean())
    fit(model, text, max_epochs=40, learning_rate=0.02, batch_size=40, threads=1)
    assert -float(log_probs(model, text).mean()) < 0.3 * before


def test_hard_attention_needs_attention() -> None:
    with pytest.raises(DataError, match="hard requires attention"):
        Translator.create(pairs(), hard=True, attention="none", **SETTINGS)
