"""Losses on attention: supervision by word alignments, and fertility."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman import Corpus, DataError, fit
from dragoman.data.alignments import WordAlignments, word_links_to_tokens
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.evaluation.alignment import parse_gold_alignment
from dragoman.evaluation.translator import attention_alignment_counts
from dragoman.models.translator import Translator
from dragoman.nn.attention import fertility_loss, gold_attention, supervision_loss
from module_outputs import log_probs, training_output
from small_translators import ENGLISH, GERMAN

LINKS = WordAlignments.from_lists([[(0, 0), (1, 2), (2, 2)], [], [(0, 1)]])
ALPHAS = torch.rand(4, 3, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64).softmax(dim=2)


def small(supervised: float, turned: bool = False) -> tuple[Translator, ParallelCorpus]:
    source, target = Tokenizer.train("word", GERMAN), Tokenizer.train("word", ENGLISH)
    # the second word of one with the third of the other and so on: not what is learned from predicting words
    links = WordAlignments.from_lists(
        [[(0, 0), (1, 2), (2, 1), (3, 3)] if turned else [(i, i) for i in range(4)] for _ in GERMAN]
    )
    pairs = ParallelCorpus(source.encode(GERMAN), target.encode(ENGLISH), links)
    settings = {"embedding": 16, "hidden": 16, "dropout": 0.0, "embedding_reach": 1.0}
    return Translator.create(pairs, source, target, supervision=supervised, **settings), pairs


# -- links -------------------------------------------------------------------------------------------------------------


def test_alignments_are_selected_with_their_pairs() -> None:
    pairs = ParallelCorpus(
        Corpus.from_sentences(["a b c", "d", "e"]), Corpus.from_sentences(["x y z", "x", "y z"]), LINKS
    )
    chosen = pairs.select(np.array([2, 2, 0]))
    assert chosen.alignments is not None
    assert [chosen.alignments[pair] for pair in range(3)] == [[(0, 1)], [(0, 1)], [(0, 0), (1, 2), (2, 2)]]
    assert (
        LINKS.pair_indices.tolist() == [0, 0, 0, 2] and LINKS.select(np.zeros(0, np.int64)).pair_indices.tolist() == []
    )
    with pytest.raises(DataError, match="3 alignments but 2 sentence pairs"):
        ParallelCorpus(Corpus.from_sentences(["a", "b"]), Corpus.from_sentences(["x", "y"]), LINKS)


def test_links_of_words_are_links_of_all_their_units() -> None:
    assert word_links_to_tokens([[(1, 0)], []], [([0, 1, 1], [0, 0]), ([], [])])[0] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    with pytest.raises(DataError, match=r"t\.align:2: 1-0 links words that do not exist"):
        word_links_to_tokens([[], [(1, 0)]], [([0], [0]), ([0], [0])], "t.align")


# -- losses ------------------------------------------------------------------------------------------------------------


def test_supervision_is_a_cross_entropy() -> None:
    gold = gold_attention(LINKS, 4, 5)
    assert gold[2, 0].tolist() == [0, 0.5, 0.5, 0, 0] and gold[0, 0].tolist() == [1, 0, 0, 0, 0]
    assert not gold[:, 1].any() and not gold[1, 0].any()
    loss = supervision_loss(ALPHAS, LINKS)
    expected = torch.zeros(4, 3, dtype=torch.float64)
    expected[0, 0] = -ALPHAS[0, 0, 0].log()
    expected[2, 0] = -(ALPHAS[2, 0, 1].log() + ALPHAS[2, 0, 2].log()) / 2
    expected[1, 2] = -ALPHAS[1, 2, 0].log()
    torch.testing.assert_close(loss, expected)


def test_fertility_is_the_squared_error_of_coverage() -> None:
    mask = torch.tensor([[1, 1, 1], [1, 0, 1], [1, 0, 0], [1, 0, 0]], dtype=torch.float64)
    phi, words = torch.full((3, 5), 0.8, dtype=torch.float64), torch.tensor([4, 2, 0])
    loss = fertility_loss(ALPHAS, mask, phi, words)
    for pair in range(3):
        steps = int(mask[:, pair].sum())
        coverage = ALPHAS[:steps, pair, : int(words[pair])].sum(dim=0)
        assert float(loss[:, pair].sum()) == pytest.approx(float(((coverage - 0.8) ** 2).sum()))
        assert not loss[steps:, pair].any()


def test_attention_losses_apply_in_training_only() -> None:
    model, pairs = small(2.0)
    plain, output = log_probs(model, pairs), training_output(model, pairs)
    without_alignments = ParallelCorpus(pairs.source, pairs.target)
    torch.testing.assert_close(log_probs(model, without_alignments), plain)
    torch.testing.assert_close(output.log_probs.detach(), plain)
    translations = model.force_decode(GERMAN, ENGLISH)
    losses = [-2.0 * np.log(t.attention[i, i]) for t in translations for i in range(4) if t.attention is not None]
    assert float(output.auxiliary_loss.detach().sum()) == pytest.approx(sum(losses), rel=1e-4)
    torch.testing.assert_close(output.losses, output.auxiliary_loss - output.log_probs)
    with pytest.raises(DataError, match="no word alignment"):
        training_output(model, without_alignments)


def test_the_fertility_loss_is_shared_by_the_tokens_of_a_sentence() -> None:
    _, pairs = small(0.0)
    settings = {"embedding": 6, "hidden": 6, "dropout": 0.0, "fertility": 1.0}
    plain, penalised = (Translator.create(pairs, fertility_penalty=weight, **settings) for weight in (0.0, 3.0))
    loss = training_output(penalised, pairs).auxiliary_loss.detach().reshape(len(pairs), -1)
    assert (loss > 0).all()
    torch.testing.assert_close(loss, loss[:, :1].expand_as(loss))
    assert training_output(plain, pairs).auxiliary_loss is None
    torch.testing.assert_close(log_probs(plain, pairs), log_probs(penalised, pairs))


def test_supervised_attention_follows_the_alignment() -> None:
    """Even where words would be predicted as well from elsewhere."""
    errors = {}
    for strength in (0.0, 1.0):
        model, pairs = small(strength, turned=True)
        fit(model, pairs, max_epochs=25, learning_rate=0.02, batch_size=40, threads=1)
        counts = attention_alignment_counts(
            model, GERMAN, ENGLISH, [parse_gold_alignment("0-0 1-2 2-1 3-3")] * len(GERMAN)
        )
        assert counts is not None
        errors[strength] = counts.error_rate
    assert errors[1.0] < 0.05 < 0.3 < errors[0.0]


# -- combinations of settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"supervision": 1.0, "attention": "none"}, "supervision requires attention"),
        ({"fertility_penalty": 1.0}, "fertility_penalty requires fertility"),
        ({"position": 1.0, "attention": "none"}, "position requires attention"),
    ],
)
def test_inapplicable_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Translator.create(small(0.0)[1], embedding=4, hidden=4, **settings)


def test_from_the_command_line(good: Any, run: Any, tmp_path: Path) -> None:
    for name, lines in (("t.de", GERMAN), ("t.en", ENGLISH), ("t.align", ["0-0 1-1 2-2 3-3"] * len(GERMAN))):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    command = ("train", "translator", "--src", tmp_path / "t.de", "--tgt", tmp_path / "t.en", "--max-updates", 2)
    penalties = ("--supervision", "0.5", "--fertility", "1", "--fertility-penalty", "0.1")
    messages = good(*command, "-o", tmp_path / "found", *penalties).err
    assert "(with auxiliary losses)" in messages and "perplexity" not in messages
    assert dragoman.load(tmp_path / "found").settings.supervision == 0.5
    given = ("--alignments", tmp_path / "t.align")
    good(*command, "-o", tmp_path / "given", "--supervision", "0.5", "--units", "subword:40", *given)
    refused = run(*command, "-o", tmp_path / "none", *given)
    assert refused.code == 2 and "--supervision" in refused.err
    (tmp_path / "t.align").write_text("0-0\n")
    refused = run(*command, "-o", tmp_path / "none", "--supervision", "1", *given)
    assert refused.code == 2 and "1 lines and there are 20 pairs" in refused.err
