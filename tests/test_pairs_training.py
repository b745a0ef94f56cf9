"""Training on pairs of sentences: batches that long sources do not swell, and unknown words on both sides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dragoman import Corpus, TrainingConfig, fit
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.trees import Treebank
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.data.vocabulary import UNK
from dragoman.models.translator import Translator
from dragoman.training import loop
from dragoman.training.batch_order import SENTENCES
from dragoman.training.objectives import UnknownWordReplacement, with_unknown_words
from training_helpers import PowerCut, Recorder
from zoo import bracketed

SMALL: dict[str, Any] = {"embedding": 6, "hidden": 6}
TRAINING: dict[str, Any] = {"max_epochs": 2, "batch_size": 12, "threads": 1}

# -- batches -----------------------------------------------------------------------------------------------------------

BUDGET, LONGEST = 50, 3000
LENGTHS = np.random.default_rng(4).integers(4, 9, size=(200, 2))
LENGTHS[[7, 90, 150], 0] = LONGEST  # sources, of short targets
LENGTHS[[20, 160], 1] = 400  # and targets, of short sources


def words(lengths: np.ndarray) -> list[str]:
    """Sentences of these lengths, each with a different word."""
    return [" ".join([f"w{number}"] * length) for number, length in enumerate(lengths.tolist())]


SWOLLEN = ParallelCorpus(*(Corpus.from_sentences(words(side)) for side in LENGTHS.T))


def padded(pairs: Any) -> int:
    """Places of a batch's source or target, whichever has more."""
    return len(pairs) * max(int(side.sizes.max()) for side in (pairs.source, pairs.target))


def assert_all_and_bounded(batches: list[Any], budget: int) -> None:
    """Every pair occurs once, and only batches of a single pair exceed the limit."""
    ids_of_pairs = sorted(int(pair[0]) for batch in batches for pair in batch.target)
    assert ids_of_pairs == sorted(int(pair[0]) for pair in SWOLLEN.target)
    assert all(len(batch) == 1 or padded(batch) < 3 * budget for batch in batches)
    assert {padded(batch) for batch in batches if len(batch) == 1} >= {LONGEST + 1, 401}
    assert sum(len(batch) > 1 for batch in batches) > 10, "the others are still learned from together"


@pytest.mark.parametrize("pool", [0, 5])
@pytest.mark.parametrize("epoch", [0, 1])
def test_long_sources_are_separate_batches(pool: int, epoch: int) -> None:
    config = TrainingConfig(batch_size=BUDGET, pool=pool)
    assert_all_and_bounded(list(SENTENCES.epoch_batches(SWOLLEN, config, epoch)), BUDGET)


def test_long_sources_of_a_dev_text_are_separate_chunks() -> None:
    assert_all_and_bounded(list(SENTENCES.evaluation_batches(SWOLLEN, BUDGET)), BUDGET)


@pytest.mark.parametrize("way", [{"batch_size": 0}, {"batch_size": 200, "batch_by": "sentences"}])
def test_large_batches_are_gathered_from_pieces_that_no_source_swells(
    way: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MAX_PREDICTIONS", BUDGET)
    model = Translator.create(SWOLLEN, attention="none", encoder="forward", embedding=1, hidden=1)
    weight, read = next(iter(model.parameters())), []

    def recording_objective(model: Any, pairs: ParallelCorpus, generator: Any) -> torch.Tensor:
        if generator is not None:
            read.append(pairs)
        return weight.sum() * torch.zeros(int(pairs.sizes.sum()))

    fit(model, SWOLLEN, objective=recording_objective, max_updates=1, **way, threads=1)
    assert_all_and_bounded(read, BUDGET)


def test_losses_are_counted_by_what_is_predicted() -> None:
    assert SWOLLEN.sizes.tolist() == (LENGTHS[:, 1] + 1).tolist()
    assert SWOLLEN.weights.tolist() == (LENGTHS.max(axis=1) + 1).tolist()
    pairs = SWOLLEN.select(np.arange(5))
    model = Translator.create(pairs, **SMALL, dropout=0.0)
    reports: list[Any] = []
    fit(model, pairs, callback=reports.append, batch_size=0, max_updates=1, threads=1)
    assert reports[-1].predictions == pairs.sizes.sum()


# -- unknown words -----------------------------------------------------------------------------------------------------

GERMAN = ["der hund bellt", "der hund schläft", "eine katze schläft", "der vogel", "eine amsel singt"]
ENGLISH = ["the dog barks", "the dog sleeps", "a cat sleeps", "the bird", "a thrush sings"]
PAIRS = ParallelCorpus(Corpus.from_sentences(GERMAN), Corpus.from_sentences(ENGLISH))
TREES = ParallelCorpus(Treebank.from_lines([bracketed(line) for line in GERMAN]), PAIRS.target)


def create_translator(pairs: ParallelCorpus = PAIRS, **settings: Any) -> Translator:
    encoder = {"encoder": "tree-lstm"} if isinstance(pairs.source, Treebank) else {}
    return Translator.create(pairs, **{**SMALL, **encoder, **settings})


def shares(pairs: ParallelCorpus, model: Translator | None = None, **settings: Any) -> tuple[float, float]:
    """The share of words that occur once and were unknown in training, of source and of target."""
    read: list[ParallelCorpus] = []

    def recording_objective(model: Any, pairs: ParallelCorpus, generator: Any) -> torch.Tensor:
        if generator is not None:
            read.append(pairs)
        return model.output.bias.sum() * torch.zeros(int(pairs.sizes.sum()))  # what it learns does not matter

    settings = {"batch_size": 0, "max_epochs": 60, "threads": 1, **settings}
    fit(model or create_translator(pairs), pairs, objective=recording_objective, learning_rate=1e-6, **settings)
    result = []
    for side in ("source", "target"):
        text = getattr(pairs, side)
        at_first = text.ids
        singletons = UnknownWordReplacement.of_singletons(text, rate=None).words
        once = int(singletons[at_first].sum())
        unknown = np.mean([(getattr(pair, side).ids == UNK).sum() for pair in read]) - (at_first == UNK).sum()
        frequent = at_first[~singletons[at_first] & (at_first != UNK)]
        known = np.concatenate([getattr(pair, side).ids for pair in read])
        assert np.isin(known, frequent).sum() == len(frequent) * len(read), "words seen more often are never forgotten"
        result.append(float(unknown) / once)
    return result[0], result[1]


@pytest.mark.parametrize("pairs", [PAIRS, TREES], ids=["text", "trees"])
def test_singletons_are_sometimes_unknown_on_both_sides(pairs: ParallelCorpus) -> None:
    assert shares(pairs) == pytest.approx((0.5, 0.5), abs=0.1)
    assert shares(pairs, unknown_rate=0.2) == pytest.approx((0.2, 0.2), abs=0.1)
    assert shares(pairs, unknown_rate=0.0) == (0.0, 0.0)


def test_a_side_with_unknown_words_gets_no_others() -> None:
    """A side that has unknown words gets no others, unless `unknown_rate` is given."""
    vocab = Corpus.from_sentences(GERMAN[:4]).vocab
    other_pairs = ParallelCorpus(Corpus.from_sentences(GERMAN, vocab), PAIRS.target)
    source, target = shares(other_pairs)
    assert source == 0
    assert target == pytest.approx(0.5, abs=0.1)
    other = ParallelCorpus(PAIRS.source, Corpus.from_sentences(ENGLISH, Corpus.from_sentences(ENGLISH[:4]).vocab))
    source, target = shares(other)
    assert source == pytest.approx(0.5, abs=0.1)
    assert target == 0
    assert shares(other_pairs, unknown_rate=0.5) == pytest.approx((0.5, 0.5), abs=0.1)


def test_a_closed_target_vocabulary_is_unchanged() -> None:
    source, target = shares(PAIRS, create_translator(unknown=ClosedVocabulary(PAIRS.target.vocab.num_known)))
    assert source == pytest.approx(0.5, abs=0.1)
    assert target == 0


def test_words_of_both_sides_are_replaced_independently() -> None:
    """Words at the same positions of both sides are not replaced together."""
    both = ParallelCorpus(PAIRS.target, PAIRS.target)
    read: list[ParallelCorpus] = []

    def recording_objective(model: Any, pairs: ParallelCorpus, generator: Any) -> torch.Tensor:
        read.append(pairs)
        return model(pairs, generator=generator).losses  # type: ignore[no-any-return]

    fit(create_translator(both), both, objective=recording_objective, batch_size=0, max_epochs=10, threads=1)
    assert any((pairs.source.ids != pairs.target.ids).any() for pairs in read)


@pytest.mark.parametrize("pairs", [PAIRS, TREES], ids=["text", "trees"])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_the_vectors_of_unknown_words_are_learned(pairs: ParallelCorpus, rate: float) -> None:
    model = create_translator(pairs)
    before = {name: tensor.clone() for name, tensor in model.named_parameters()}
    fit(model, pairs, unknown_rate=rate, **TRAINING)
    for name in ("source_embedding.weight", "embedding.weight"):
        after = model.state_dict()[name]
        assert torch.equal(after[UNK], before[name][UNK]) == (rate == 0), name
        assert not torch.equal(after, before[name])


def test_no_words_are_replaced_in_evaluation() -> None:
    read: list[ParallelCorpus] = []

    def objective(pairs: Any, generator: Any, carry: Any) -> Any:
        read.append(pairs)
        return torch.zeros(int(pairs.sizes.sum())), None

    always = (UnknownWordReplacement(np.ones(len(side.vocab), bool), 1.0) for side in (PAIRS.target, PAIRS.source))
    forgetful = with_unknown_words(objective, *always)
    forgetful(PAIRS, None, None)
    forgetful(PAIRS, torch.Generator(), None)
    judged, trained = read
    assert judged is PAIRS
    assert (trained.source.ids == UNK).all() and (trained.target.ids == UNK).all()


@pytest.mark.parametrize("pairs", [PAIRS, TREES], ids=["text", "trees"])
def test_a_resumed_training_replaces_the_same_words(pairs: ParallelCorpus, tmp_path: Path) -> None:
    def cut() -> None:
        raise PowerCut

    settings = {**TRAINING, "unknown_rate": 0.5, "save_every": 1}
    whole, parts = create_translator(pairs), create_translator(pairs)
    updates = fit(whole, pairs, **settings).progress.update
    assert updates > 3
    with pytest.raises(PowerCut):
        fit(create_translator(pairs), pairs, output=tmp_path / "parts", callback=Recorder(2, cut), **settings)
    fit(parts, pairs, output=tmp_path / "parts", **settings)
    for name, tensor in whole.named_parameters():
        assert torch.equal(tensor, parts.state_dict()[name]), name
