"""Coefficients fitted on held-out text."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dragoman import Corpus, NgramModel
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.ngram import heldout
from zoo import HELD_OUT, LANGUAGE


def test_fitted_coefficient_agrees_with_grid_search(training: Corpus) -> None:
    """Of order 1 there is one alpha; the fitted one is the best of all on the held-out text."""
    text = Corpus.from_sentences([*HELD_OUT, "unicorn"], LANGUAGE)
    fitted = NgramModel.train(training, order=1, smoothing="interpolated-fitted", heldout=text)
    rivals = [
        NgramModel.train(training, order=1, smoothing="interpolated", coefficients=(alpha,))
        for alpha in np.linspace(0.005, 0.995, 100)
    ]
    best = max(float(token_log_probs(rival, text).sum()) for rival in rivals)
    assert math.isfinite(best)
    assert float(token_log_probs(fitted, text).sum()) >= best - 1e-3


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("gap", [0, 1])
def test_trace_stays_within_its_arrays(
    training: Corpus, held_out: Corpus, monkeypatch: pytest.MonkeyPatch, order: int, gap: int
) -> None:
    """Compiled code would write beyond an array without an error; as plain Python it raises an IndexError."""
    settings = {"order": order, "gap": gap, "smoothing": "interpolated-bucketed", "heldout": held_out}
    compiled = NgramModel.train(training, **settings)
    monkeypatch.setattr(heldout, "_trace", heldout._trace.function)
    plain = NgramModel.train(training, **settings)
    assert np.array_equal(token_log_probs(plain, held_out), token_log_probs(compiled, held_out))
