"""Scoring in blocks, compared with the fold token by token and with sentences of any length."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dragoman import Corpus, NgramModel
from dragoman.evaluation.likelihood import folded_log_probs
from dragoman.ngram import scoring


def _text(source: random.Random, lengths: list[int]) -> list[str]:
    words = [f"w{number}" for number in range(60)]
    return [" ".join(source.choices(words, [1 / (rank + 1) for rank in range(60)], k=length)) for length in lengths]


SETTINGS: dict[str, dict[str, object]] = {
    "unigrams": {"order": 1},
    "bigrams": {"order": 2},
    "order 5": {"order": 5},
    "pruned": {"order": 4, "entropy_prune": 1e-4},
    "quantised": {"order": 3, "quantise": True},
    "gap": {"order": 3, "gap": 2, "smoothing": "witten-bell"},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_blocks_give_the_log_probs_of_the_fold(settings: dict[str, object]) -> None:
    source = random.Random(4)
    train = Corpus.from_sentences(_text(source, [source.randrange(15) for _ in range(400)]))
    model = NgramModel.train(train, **settings)
    lengths = [0, 1, 2, scoring.BLOCK_TOKENS - 1, 0, 3, scoring.BLOCK_TOKENS + 7, 5, 0]
    text = Corpus.from_sentences([*_text(source, lengths), "w1 unseen w2"], train.vocab)
    np.testing.assert_allclose(model.token_log_probs(text), folded_log_probs(model, text), rtol=1e-12)
    contexts = model.trace(text).context
    np.testing.assert_array_equal(model.token_log_probs(text), model.trace(text).log_prob)
    distributions = model.table.distributions(contexts.astype(np.int64))
    tokens = text.ids_with_boundaries(starts=0)
    np.testing.assert_allclose(distributions[np.arange(len(tokens)), tokens], model.token_log_probs(text), rtol=1e-12)


def test_empty_text_and_empty_sentences() -> None:
    model = NgramModel.train(Corpus.from_sentences(["a b", "b a"]), order=3, smoothing="witten-bell")
    assert model.score([]) == []
    assert model.score(["", ""]) == model.score([""]) * 2
