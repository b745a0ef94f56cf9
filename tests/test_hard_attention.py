"""Hard attention: one word is looked at, drawn in training. (Its laws are held in test_translator.)"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman import Corpus, DataError, fit
from dragoman.data.corpus import ParallelCorpus
from dragoman.models.translator import Translator
from dragoman.nn.attention import EXPECTED, drawn, likeliest
from dragoman.nn.attention_losses import reinforced
from small_translators import ENGLISH, GERMAN

SETTINGS = {"embedding": 16, "hidden": 16, "dropout": 0.0, "embedding_reach": 1.0}


def pairs() -> ParallelCorpus:
    return ParallelCorpus(Corpus.from_sentences(GERMAN), Corpus.from_sentences(ENGLISH))


def test_words_are_drawn_by_their_weights() -> None:
    alpha = torch.tensor([0.5, 0.2, 0.3, 0.0]).expand(4000, 1, 4)
    weights = drawn(torch.Generator().manual_seed(1))(alpha)
    assert weights.shape == alpha.shape
    average = (weights == alpha).all(dim=-1)[:, 0]
    assert abs(float(average.float().mean()) - EXPECTED) < 5 * math.sqrt(0.25 / 4000)
    chosen = weights[~average]
    assert torch.equal(chosen.sum(dim=-1), torch.ones(len(chosen), 1)) and set(chosen.flatten().tolist()) == {0.0, 1.0}
    shares = chosen.mean(dim=0)[0].numpy()
    np.testing.assert_allclose(shares, [0.5, 0.2, 0.3, 0.0], rtol=0, atol=5 * math.sqrt(0.25 / len(chosen)))
    assert shares[3] == 0
    assert likeliest(alpha)[:, 0].argmax(dim=1).tolist() == [0] * 4000 and float(likeliest(alpha).sum()) == 4000


def test_what_came_of_a_choice_teaches_it() -> None:
    """The gradient of the weights is that of log alpha of the choice, times by how much it beat the baseline."""
    scores = torch.randn(3, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()
    log_probs = torch.tensor([-1.0, -2.0, -6.0], dtype=torch.float64, requires_grad=True)
    chosen = torch.eye(4, dtype=torch.float64)[[2, 0, 1]]
    chosen[1] = scores[1].softmax(dim=0).detach()  # nothing was chosen
    baseline = torch.tensor([-3.0, -3.0, -3.0], dtype=torch.float64)
    told = reinforced(log_probs, scores.softmax(dim=1), chosen, baseline)
    torch.testing.assert_close(told, log_probs)  # as it is
    of_scores, of_log_probs = torch.autograd.grad(told.sum(), [scores, log_probs])
    better = torch.tensor([2.0, 0.0, -3.0], dtype=torch.float64)[:, None]
    torch.testing.assert_close(of_scores, better * (chosen - scores.softmax(dim=1)).detach())
    torch.testing.assert_close(of_log_probs, torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("settings", [{}, {"dropout": 0.4, "readout": 8}, {"lexicon": True}], ids=str)
def test_the_baseline_is_what_soft_attention_says(settings: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """All else being equal, dropout and lexicon included: where all words were looked at, nothing was gained."""
    seen = []

    def noted(log_probs: Tensor, alphas: Tensor, chosen: Tensor, baseline: Tensor) -> Tensor:
        seen.append((log_probs - baseline)[(chosen == alphas).all(dim=1)])
        return reinforced(log_probs, alphas, chosen, baseline)

    monkeypatch.setattr("dragoman.models.translator_losses.reinforced", noted)
    model = Translator.create(pairs(), hard=True, **{**SETTINGS, **settings})
    model.batch_log_probs(pairs(), torch.Generator().manual_seed(3))
    assert len(seen[0]) > 10
    torch.testing.assert_close(seen[0], torch.zeros_like(seen[0]), atol=1e-4, rtol=0)


def test_drawing_depends_on_the_noise_alone() -> None:
    model = Translator.create(pairs(), hard=True, **SETTINGS)
    one, same, other = (model.batch_log_probs(pairs(), torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)
    assert torch.equal(model.batch_log_probs(pairs()), model.batch_log_probs(pairs())), "outside of training, none"


def test_it_learns_to_look_and_to_translate() -> None:
    text = pairs()
    model = Translator.create(text, hard=True, **SETTINGS)
    before = -float(model.batch_log_probs(text).mean())
    fit(model, text, max_epochs=40, learning_rate=0.02, batch_size=40, threads=1)
    assert -float(model.batch_log_probs(text).mean()) < 0.3 * before


def test_there_must_be_something_to_look_at() -> None:
    with pytest.raises(DataError, match="hard is for attention"):
        Translator.create(pairs(), hard=True, attention="none", **SETTINGS)
