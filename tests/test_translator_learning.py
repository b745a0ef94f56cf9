"""Translators: settings and training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman import Corpus, DataError, fit
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.vocabulary import START
from dragoman.models.translator import Translator
from dragoman.nn.attention import SCORES
from module_outputs import log_probs, training_output
from zoo import HELD_OUT, SAME, TRANSLATORS, batch_of, pairs_of, read_by, translator

# -- settings ----------------------------------------------------------------------------------------------------------

TOY_PAIRS = ParallelCorpus(Corpus.from_sentences(["x y", "y"]), Corpus.from_sentences(["a b", "b"]))


def toy(**settings: Any) -> Translator:
    return Translator.create(TOY_PAIRS, **{"embedding": 4, "hidden": 6, **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bridge": "copy", "layers": 2}, "as many layers"),
        ({"bridge": "copy", "encoder_hidden": 5}, "states of the same length"),
        ({"bridge": "copy", "encoder": "convolutional", "filters": 5}, "the same length"),
        (
            {"bridge": "copy", "encoder": "convolutional", "filters": 6, "pooling": "k-max", "k_max": 2},
            "the same length",
        ),
        ({"attention": "dot", "encoder_hidden": 5}, "dot attention needs vectors of the same length"),
        ({"attention": "dot", "hidden": 7}, "dot attention needs vectors of the same length"),
        ({"encoder": "tree-lstm"}, "reads bracketed trees, and the source is plain text"),
        ({"attention": "mpl"}, "mlp"),
        ({"encoder": "transformer"}, "encoder"),
    ],
)
def test_incompatible_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    source = Tokenizer.train("word", ["x y", "y"], min_count=1)
    with pytest.raises(DataError, match=message):
        Translator.create(TOY_PAIRS, source, **{"embedding": 4, "hidden": 6, **settings})


def test_a_tree_needs_an_encoder_of_trees() -> None:
    source = Tokenizer.train("word", ["(S x y)", "(S y)"], min_count=1, format="tree")
    with pytest.raises(DataError, match="reads plain text; for trees choose --encoder tree-lstm or recursive"):
        Translator.create(TOY_PAIRS, source, embedding=4, hidden=6)


@pytest.mark.parametrize("encoder", ["recursive", "tree-lstm"])
def test_a_tree_of_another_size_than_the_state_cannot_be_copied(encoder: str) -> None:
    source = Tokenizer.train("word", ["(S x y)", "(S y)"], min_count=1, format="tree")
    pairs = ParallelCorpus(source.encode(["(S x y)", "(S y)"]), TOY_PAIRS.target)
    with pytest.raises(DataError, match="the same length"):
        Translator.create(pairs, source, encoder=encoder, encoder_hidden=5, hidden=6, bridge="copy")


def test_texts_with_another_vocabulary_are_refused() -> None:
    model, other = toy(), Corpus.from_sentences(["z z", "z"])
    for pairs in (ParallelCorpus(other, TOY_PAIRS.target), ParallelCorpus(TOY_PAIRS.source, other)):
        with pytest.raises(DataError, match="another vocabulary"):
            fit(model, pairs, max_epochs=1)


def test_no_pairs_have_no_tokens() -> None:
    nothing = np.zeros(0, np.int64)
    assert toy().pair_log_probs(TOY_PAIRS.source.select(nothing), TOY_PAIRS.target.select(nothing)).shape == (0,)


# -- learning ----------------------------------------------------------------------------------------------------------


def numbers(seed: int) -> list[str]:
    """Sequences of three symbols, 1 to 4 of them."""
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(list("abc"), size=generator.integers(1, 5))) for _ in range(30)]


@pytest.mark.parametrize(
    "settings",
    [
        {"encoder": "bidirectional", "attention": "mlp"},
        {"encoder": "forward", "attention": "none", "cell": "gru"},
    ],
    ids=lambda settings: settings["encoder"],
)
def test_it_learns_to_reverse_sequences(settings: dict[str, Any]) -> None:
    lines = numbers(1)
    turned = [" ".join(reversed(line.split())).upper() for line in lines]
    source, target = Tokenizer.train("word", lines), Tokenizer.train("word", turned)
    pairs = ParallelCorpus(source.encode(lines), target.encode(turned))
    model = Translator.create(
        pairs, source, target, embedding=8, hidden=16, dropout=0.0, embedding_reach=1.0, **settings
    )
    before = -float(log_probs(model, pairs).mean())
    fit(model, pairs, max_epochs=80, batch_size=60, learning_rate=0.02, clip=1.0, pool=4, threads=1)
    after = -float(log_probs(model, pairs).mean())
    assert before > 1.0
    assert after < 0.05
    assert [translation.text for translation in model.translate(lines)] == turned


def test_label_smoothing_is_the_definition() -> None:
    """(1 - s) log p of the word + s times the mean of log p over all words but `<s>`, which cannot come."""
    for name in (
        "bidirectional, perceptron",
        "bidirectional, perceptron, lexicon",
        "forward, Elman, copied",
        "reverse, perceptron, GRU, readout, tied",
    ):
        model = translator(name)
        pairs = pairs_of(model)
        state, batch = model.start(batch_of(pairs)), batch_of(pairs)
        expected = torch.zeros(batch.ids.shape, dtype=torch.float64)
        for t, words in enumerate(batch.ids.T):
            of_words = model.log_probs(state)
            possible = torch.cat([of_words[:, :START], of_words[:, START + 1 :]], dim=1)
            right = of_words.gather(1, words[:, None])[:, 0]
            expected[:, t] = 0.8 * right + 0.2 * possible.mean(dim=1)
            state = model.advance(state, words)
        torch.testing.assert_close(log_probs(model, pairs, label_smoothing=0.2), expected[batch.mask], **SAME)


@pytest.mark.parametrize("rates", [{"dropout": 0.5}, {"dropout": 0.0, "embedding_dropout": 0.5}])
@pytest.mark.parametrize("attention", ["none", "mlp"])
def test_dropout_is_used_only_in_training(rates: dict[str, float], attention: str) -> None:
    model, silent = (toy(attention=attention, layers=2, **options) for options in (rates, {"dropout": 0.0}))
    plain = log_probs(silent, TOY_PAIRS)
    assert torch.equal(log_probs(model, TOY_PAIRS), plain)
    noisy = [-training_output(model, TOY_PAIRS, seed).losses for seed in (1, 1, 2)]
    assert torch.equal(noisy[0], noisy[1])
    assert not torch.allclose(noisy[0], noisy[2])
    assert not torch.allclose(noisy[0], plain)
    assert torch.equal(-training_output(silent, TOY_PAIRS, 1).losses, plain)


def test_dropout_keeps_the_expectation() -> None:
    """The rate is so small that the mean over many draws is close to the output without dropout."""
    model = toy(dropout=0.02, layers=2)
    plain = log_probs(model, TOY_PAIRS)
    with torch.no_grad():
        drawn = torch.stack([training_output(model, TOY_PAIRS, seed).log_probs for seed in range(100)])
    torch.testing.assert_close(drawn.mean(dim=0), plain, rtol=0, atol=0.01)


def test_training_depends_only_on_the_seed() -> None:
    def trained(seed: int) -> dict[str, Tensor]:
        model = toy(seed=seed)
        fit(model, TOY_PAIRS, max_epochs=3, seed=seed, batch_size=2, threads=1)
        return dict(model.state_dict())

    first, again, other = trained(1), trained(1), trained(2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first if first[name].dim() > 1)


def test_training_changes_every_parameter() -> None:
    """All parameters receive gradients."""
    for settings in ({"attention": "mlp", "layers": 2, "readout": 5}, {"attention": "bilinear", "tied": True}):
        model = toy(**settings)
        before = {name: tensor.clone() for name, tensor in model.named_parameters()}
        fit(model, TOY_PAIRS, max_epochs=2, threads=1)
        assert not [name for name, tensor in model.named_parameters() if torch.equal(tensor, before[name])]


def test_scores_of_held_out_text_are_plausible() -> None:
    """Every score of every translator is a log-probability, and none is impossible but by a shortlist."""
    for name in (name for name in TRANSLATORS if "shortlist" not in name):
        model = translator(name)
        scored = model.force_decode([read_by(model, line) for line in HELD_OUT], HELD_OUT)
        assert all(-200 < translation.log_prob < 0 for translation in scored)


assert set(SCORES) == {"dot", "bilinear", "mlp"}, "another attention needs its line above"
