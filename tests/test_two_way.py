"""Two translators that learn together: what they are trained by, and what is left of it on disk."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman import Corpus, DataError, fit
from dragoman.data.alignments import WordAlignments
from dragoman.data.corpus import BidirectionalCorpus, ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.models.translator import Translator
from dragoman.models.two_way import TwoWayTranslator
from dragoman.nn.attention import agreement
from dragoman.training.fit import TrainingStarted
from module_outputs import log_probs, training_output
from small_translators import ENGLISH, GERMAN

SMALL: dict[str, Any] = {"embedding": 16, "hidden": 16, "dropout": 0.0, "embedding_reach": 1.0}


def pairs_of(
    german: list[str] = GERMAN, english: list[str] = ENGLISH
) -> tuple[BidirectionalCorpus, Tokenizer, Tokenizer]:
    source, target = Tokenizer.train("word", german), Tokenizer.train("word", english)
    return BidirectionalCorpus(source.encode(german), target.encode(english)), source, target


def two_way(symmetry: float, **settings: Any) -> tuple[TwoWayTranslator, BidirectionalCorpus]:
    pairs, source, target = pairs_of()
    return TwoWayTranslator.create(pairs, source, target, symmetry=symmetry, **{**SMALL, **settings}), pairs


# -- what is learned from ----------------------------------------------------------------------------------------------


def test_bidirectional_corpora_need_both_sides() -> None:
    source, target = Corpus.from_sentences(["a b c", "d"]), Corpus.from_sentences(["x", "y z"])
    pairs = BidirectionalCorpus(source, target, WordAlignments.from_lists([[(0, 0), (2, 0)], [(0, 0), (0, 1)]]))
    assert pairs.sizes.tolist() == [6, 5]
    chosen = pairs.select(np.array([1]))
    assert isinstance(chosen, BidirectionalCorpus) and chosen.sizes.tolist() == [5]
    back = pairs.reversed
    assert (
        type(back) is ParallelCorpus and back.source is target and back.target is source and back.alignments is not None
    )
    assert [back.alignments[pair] for pair in range(2)] == [[(0, 0), (0, 2)], [(0, 0), (1, 0)]]


def test_trees_cannot_be_predicted() -> None:
    trees = Tokenizer.train("word", ["(S (N hunde) (V bellen))"], format="tree").encode(["(S (N hunde) (V bellen))"])
    with pytest.raises(DataError, match="syntax trees cannot be predicted"):
        _ = ParallelCorpus(trees, Corpus.from_sentences(["dogs bark"])).reversed


# -- the objective -----------------------------------------------------------------------------------------------------


def test_agreement_is_the_trace_of_the_product_over_words() -> None:
    generator = torch.Generator().manual_seed(1)
    words, source_words = [3, 1, 0], [2, 4, 1]
    there = torch.rand(4, 3, 5, generator=generator, dtype=torch.float64)  # the last of each is </s>
    back = torch.rand(5, 3, 4, generator=generator, dtype=torch.float64)
    actual = agreement(there, back, torch.tensor(words), torch.tensor(source_words))
    for pair, (t, j) in enumerate(zip(words, source_words, strict=True)):
        trace = torch.trace(there[:t, pair, :j] @ back[:j, pair, :t]) if t and j else 0.0
        assert float(actual[:, pair].sum()) == pytest.approx(float(trace))
        assert not actual[t:, pair].any()


def test_agreement_is_added_only_in_training() -> None:
    both, pairs = two_way(2.0)
    apart = torch.cat([log_probs(both.source_to_target, pairs), log_probs(both.target_to_source, pairs.reversed)])
    torch.testing.assert_close(log_probs(both, pairs), apart)
    assert len(apart) == int(pairs.sizes.sum())
    losses = -training_output(both, pairs, 1).losses.detach()
    there, back = (
        both.source_to_target.force_decode(GERMAN, ENGLISH),
        both.target_to_source.force_decode(ENGLISH, GERMAN),
    )
    matrices = [(first.attention, second.attention) for first, second in zip(there, back, strict=True)]
    traces = [
        np.trace(first[:-1, :-1] @ second[:-1, :-1])
        for first, second in matrices
        if first is not None and second is not None
    ]
    assert float((losses - apart).sum()) == pytest.approx(2 * sum(traces), rel=1e-4)


def test_training_together_increases_agreement() -> None:
    agreed = {}
    for symmetry in (0.0, 3.0):
        both, pairs = two_way(symmetry)
        fit(both, pairs, max_epochs=15, learning_rate=0.02, batch_size=40, threads=1)
        there, back = (
            both.source_to_target.force_decode(GERMAN, ENGLISH),
            both.target_to_source.force_decode(ENGLISH, GERMAN),
        )
        assert all(translation.attention is not None for translation in (*there, *back))
        agreed[symmetry] = np.mean(
            [
                np.trace(translation.attention[:-1, :-1] @ two.attention[:-1, :-1])
                for translation, two in zip(there, back, strict=True)
            ]  # type: ignore[index]
        )
    assert agreed[3.0] > agreed[0.0] + 1


def test_supervision_applies_to_both_directions() -> None:
    pairs, source, target = pairs_of()
    linked = BidirectionalCorpus(
        pairs.source, pairs.target, WordAlignments.from_lists([[(0, 0), (1, 2), (2, 1), (3, 3)] for _ in GERMAN])
    )
    both = TwoWayTranslator.create(linked, source, target, symmetry=0.5, supervision=1.0, **SMALL)
    fit(both, linked, max_epochs=25, learning_rate=0.02, batch_size=40, threads=1)
    for model, lines, answers in ((both.source_to_target, GERMAN, ENGLISH), (both.target_to_source, ENGLISH, GERMAN)):
        attended = [
            translation.attention[:-1].argmax(axis=1).tolist() for translation in model.force_decode(lines, answers)
        ]  # type: ignore[index]
        assert np.mean([positions == [0, 2, 1, 3] for positions in attended]) > 0.9


def test_unsupported_uses_are_refused() -> None:
    both, pairs = two_way(1.0)
    with pytest.raises(DataError, match="pairs in both directions"):
        fit(both, ParallelCorpus(pairs.source, pairs.target), max_updates=1)
    with pytest.raises(DataError, match="symmetry requires attention over words"):
        two_way(1.0, attention="none")
    with pytest.raises(DataError, match=r"create them with TwoWayTranslator\.create"):
        Translator.create(pairs, symmetry=1.0)


@pytest.mark.parametrize("settings", [{"encoder": "convolutional", "lexicon": True}, {"hard": True}], ids=str)
def test_it_combines_with_other_options(settings: dict[str, Any]) -> None:
    """And with blank lines on either side."""
    pairs, source, target = pairs_of([*GERMAN, "", GERMAN[0]], [*ENGLISH, ENGLISH[0], ""])
    both = TwoWayTranslator.create(pairs, source, target, symmetry=1.0, **{**SMALL, **settings})
    before = log_probs(both, pairs).sum()
    fit(both, pairs, max_epochs=6, learning_rate=0.02, batch_size=40, label_smoothing=0.1, threads=1)
    assert log_probs(both, pairs).sum() > before


# -- on disk -----------------------------------------------------------------------------------------------------------


def test_each_is_an_ordinary_translator_afterwards(tmp_path: Path) -> None:
    both, pairs = two_way(1.0)
    fit(both, pairs, pairs, max_epochs=3, learning_rate=0.02, output=tmp_path / "m", threads=1)
    for name, model in both.translators.items():
        loaded = dragoman.load(tmp_path / "m" / name)
        assert loaded.settings.symmetry == 0 and loaded.training_metadata["symmetry"] == 1
        record = loaded.training_metadata["data"]["train"]
        sizes = {side: record[side]["tokens"] for side in ("source", "target")}
        assert sizes == {"source": model.source.encode(GERMAN if name == "forward" else ENGLISH).num_tokens} | {
            "target": model.target.encode(ENGLISH if name == "forward" else GERMAN).num_tokens
        }
        for key, tensor in model.named_parameters():
            assert torch.equal(loaded.state_dict()[key], tensor)
    with pytest.raises(DataError, match=r"contains two translators; choose .*forward or"):
        dragoman.load(tmp_path / "m")


def test_a_resumed_training_is_bit_identical(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_epochs": 2, "batch_size": 30, "threads": 1}
    through, pairs = two_way(1.0, dropout=0.3)
    fit(through, pairs, pairs, output=tmp_path / "through", **settings)

    def stop(event: Any) -> None:
        if getattr(getattr(event, "progress", None), "update", 0) == 3 and not isinstance(event, TrainingStarted):
            signal.raise_signal(signal.SIGINT)

    stopped, _ = two_way(1.0, dropout=0.3)
    with pytest.raises(dragoman.DragomanError, match="stopped after update 3"):
        fit(stopped, pairs, pairs, output=tmp_path / "m", callback=stop, **settings)
    (tmp_path / "m" / "backward" / ".model.safetensors.tmp-0a1b2c3d").write_bytes(b"half of one")
    fit(two_way(1.0, dropout=0.3)[0], pairs, pairs, output=tmp_path / "m", **settings)
    for name in ("forward", "backward"):
        files = [tmp_path / place / name / "model.safetensors" for place in ("through", "m")]
        assert files[0].read_bytes() == files[1].read_bytes()
    assert not (tmp_path / "m" / "backward" / ".model.safetensors.tmp-0a1b2c3d").exists()
    (tmp_path / "m" / "backward" / "vocab.tsv").unlink()
    with pytest.raises(DataError, match="broken training directory"):
        fit(two_way(1.0, dropout=0.3)[0], pairs, pairs, output=tmp_path / "m", **settings)


def test_other_bounds_are_noted_for_both(tmp_path: Path) -> None:
    for epochs in (1, 2):
        both, pairs = two_way(1.0)
        fit(both, pairs, output=tmp_path / "m", max_epochs=epochs, threads=1)
    for name in both.translators:
        assert dragoman.load(tmp_path / "m" / name).training_metadata["training"]["max_epochs"] == 2


def test_another_training_and_a_damaged_one_have_different_errors(tmp_path: Path) -> None:
    both, pairs = two_way(1.0)
    single = Translator.create(ParallelCorpus(pairs.source, pairs.target), **SMALL)
    fit(both, pairs, output=tmp_path / "both", max_updates=1, threads=1)
    fit(single, ParallelCorpus(pairs.source, pairs.target), output=tmp_path / "alone", max_updates=1, threads=1)
    with pytest.raises(DataError, match="contains a different training run"):
        fit(both, pairs, output=tmp_path / "alone", max_updates=1, threads=1)
    with pytest.raises(DataError, match="contains a different training run"):
        fit(single, ParallelCorpus(pairs.source, pairs.target), output=tmp_path / "both", max_updates=1, threads=1)


def test_from_the_command_line(good: Any, run: Any, tmp_path: Path) -> None:
    for name, lines in (("t.de", GERMAN), ("t.en", ENGLISH)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    texts = ("--src", tmp_path / "t.de", "--tgt", tmp_path / "t.en")
    dev = ("--dev-src", tmp_path / "t.de", "--dev-tgt", tmp_path / "t.en")
    command = ("train", "translator", *texts, *dev, "--max-updates", 2, "--symmetry", "0.5")
    outcome = good(*command, "-o", tmp_path / "m", "--markov", "1", "--lexicon")
    assert "two translators, one for each direction" in outcome.err and "symmetry 0.5, markov 1, lexicon" in outcome.err
    assert f"{tmp_path}/m/forward: dev text: BLEU" in outcome.err
    assert f"{tmp_path}/m/backward: dev text: BLEU" in outcome.err
    assert "not usable" in outcome.err and "dragoman translate" not in outcome.err
    for name, line in (("forward", GERMAN[0]), ("backward", ENGLISH[0])):
        assert good("translate", tmp_path / "m" / name, stdin=f"{line}\n").out.count("\n") == 1
    refused = run("translate", tmp_path / "m", stdin="a\n")
    assert refused.code == 2 and "contains two translators" in refused.err
    refused = run(*command, "-o", tmp_path / "n", "--attention", "none")
    assert refused.code == 2 and "--symmetry requires attention over words" in refused.err
    assert good(*command, "-o", tmp_path / "m", "--force").code == 0
