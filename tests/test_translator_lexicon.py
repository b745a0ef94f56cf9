"""The lexicon of a translator. (Other laws are in test_translator.)"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dragoman
from dragoman import Corpus, DataError, fit
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.vocabulary import END, START
from dragoman.models.translator import Translator
from dragoman.models.translator_parts import MAX_TRANSLATIONS, MIN_PROB, learn_lexicon, saved_lexicon
from dragoman.nn.lexicon import LexiconBias, LexiconTable
from module_outputs import log_probs
from small_translators import ENGLISH, GERMAN

# words of the source: 3 has two translations, 4 one, 5 none
TABLE = LexiconTable(torch.tensor([0, 0, 0, 0, 2, 3, 3]), torch.tensor([5, 7, 7]), torch.tensor([0.75, 0.25, 0.5]))


def pairs() -> ParallelCorpus:
    return ParallelCorpus(Corpus.from_sentences(GERMAN), Corpus.from_sentences(ENGLISH))


def test_candidates_are_the_translations_of_the_words_of_a_sentence() -> None:
    candidates = LexiconBias(TABLE, 9, 0.01).candidates(torch.tensor([[3, 4, END], [5, END, END], [4, 3, 3]]))
    assert candidates.words.tolist() == [[5, 7], [START, START], [5, 7]]
    assert candidates.probs[0].tolist() == [[0.75, 0.25], [0.0, 0.5], [0.0, 0.0]]
    assert not candidates.probs[1].any()
    assert candidates.probs[2].tolist() == [[0.0, 0.5], [0.75, 0.25], [0.75, 0.25]]
    assert LexiconBias(TABLE, 9, 0.01).candidates(torch.tensor([[5]])).probs.shape == (1, 1, 1), "none at all"


def test_boosts_equal_a_bias_of_the_softmax() -> None:
    """softmax(s + log(p_lex + floor)), written out over all words."""
    source, floor = torch.tensor([[3, 4, END], [5, END, END]]), 0.01
    alpha = torch.tensor([[[0.6, 0.3, 0.1], [0.1, 0.8, 0.1]], [[0.5, 0.2, 0.3], [1.0, 0.0, 0.0]]])
    scores = torch.randn(4, 9, generator=torch.Generator().manual_seed(1))
    lexicon = LexiconBias(TABLE, 9, floor)
    candidates = lexicon.candidates(source)
    boost = lexicon.boosts(candidates, alpha).flatten(0, 1)
    result = lexicon.log_probs(scores.log_softmax(dim=1), candidates.words.repeat_interleave(2, dim=0), boost)
    p_lex = torch.zeros(4, 9)
    for row, weights in enumerate(alpha.flatten(0, 1)):
        for weight, word in zip(weights.tolist(), source[row // 2].tolist(), strict=True):
            for entry in range(int(TABLE.starts[word]), int(TABLE.starts[word + 1])):
                p_lex[row, TABLE.words[entry]] += weight * TABLE.probs[entry]
    torch.testing.assert_close(result, (scores + (p_lex + floor).log()).log_softmax(dim=1))


def test_the_lexicon_has_the_most_probable_translations() -> None:
    text = pairs()
    table = learn_lexicon(text)
    words, source = text.target.vocab.tokens, text.source.vocab
    for german, english in (("hund", "dog"), ("katze", "cat"), ("bellt", "barks")):
        first, last = table.starts[source.id(german)], table.starts[source.id(german) + 1]
        probs = {
            words[int(word)]: float(prob)
            for word, prob in zip(table.words[first:last], table.probs[first:last], strict=True)
        }
        assert max(probs, key=lambda word: probs[word]) == english
        assert (
            0 < len(probs) <= MAX_TRANSLATIONS and min(probs.values()) >= MIN_PROB and sum(probs.values()) <= 1 + 1e-9
        )
    assert table.probs.dtype == torch.float64
    assert table.starts[END] == table.starts[END + 1], "</s> is not a word"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("starts", [0, 1]),
        ("starts", [0, 0, 0, 2, 1, 3, 3]),
        ("starts", [0, 0, 0, 0, 2, 3, 4]),
        ("words", [5, 7, 9]),
        ("words", [5, -1, 7]),
        ("probs", [0.5]),
    ],
)
def test_invalid_lexicons_are_refused(name: str, value: list[Any]) -> None:
    arrays = {f"lexicon.{part}": tensor.numpy() for part, tensor in TABLE._asdict().items()}
    assert all(map(torch.equal, saved_lexicon(arrays, 6, 9), TABLE))
    with pytest.raises(ValueError, match="lexicon"):
        saved_lexicon({**arrays, f"lexicon.{name}": np.array(value)}, 6, 9)


def test_a_loaded_translator_has_its_lexicon(tmp_path: Path) -> None:
    model = Translator.create(pairs(), lexicon=True, embedding=8, hidden=8)
    assert model.lexicon is not None
    model.save(tmp_path / "model")
    back = dragoman.load(tmp_path / "model")
    assert all(map(torch.equal, back.lexicon.table, model.lexicon.table))
    assert [translation.log_prob for translation in back.translate(GERMAN[:3])] == [
        translation.log_prob for translation in model.translate(GERMAN[:3])
    ]
    assert Translator.create(pairs(), embedding=8, hidden=8).lexicon is None


def test_the_lexicon_is_written_as_text(tmp_path: Path) -> None:
    model = Translator.create(pairs(), lexicon=True, embedding=8, hidden=8)
    model.save(tmp_path / "model")
    rows = [line.split("\t") for line in (tmp_path / "model" / "lexicon.tsv").read_text(encoding="utf-8").splitlines()]
    assert model.lexicon is not None and len(rows) == len(model.lexicon.words)
    probs = {word: float(prob) for german, word, prob in rows if german == "hund"}
    assert next(iter(probs)) == "dog" and list(probs.values()) == sorted(probs.values(), reverse=True)
    model.save(tmp_path / "model", replace=True)
    Translator.create(pairs(), embedding=8, hidden=8).save(tmp_path / "without")
    assert not (tmp_path / "without" / "lexicon.tsv").exists()


def test_a_lexicon_helps_in_the_first_updates() -> None:
    """With a lexicon, a few updates make the right words far likelier than without."""
    right = {}
    for lexicon in (False, True):
        text = pairs()
        model = Translator.create(text, lexicon=lexicon, embedding=16, hidden=16, dropout=0.0, embedding_reach=1.0)
        fit(model, text, max_updates=12, learning_rate=0.01, batch_size=60, threads=1)
        right[lexicon] = -float(log_probs(model, text).mean())
    assert right[True] < 0.9 * right[False]


@pytest.mark.parametrize(
    "settings",
    [{"attention": "none"}, {"softmax": "brown"}],
)
def test_a_lexicon_needs_attention_and_a_full_softmax(settings: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="lexicon requires attention over words and a full softmax"):
        Translator.create(pairs(), lexicon=True, embedding=4, hidden=4, **settings)


def test_from_the_command_line(good: Any, run: Any, tmp_path: Path) -> None:
    for name, lines in (("t.de", GERMAN), ("t.en", ENGLISH)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    command = ("train", "translator", "--src", tmp_path / "t.de", "--tgt", tmp_path / "t.en", "--max-updates", 2)
    good(*command, "-o", tmp_path / "model", "--lexicon", "--units", "word")
    assert dragoman.load(tmp_path / "model").lexicon is not None
    refused = run(*command, "-o", tmp_path / "other", "--lexicon-floor", "0.1")
    assert refused.code == 2 and "--lexicon-floor requires a lexicon" in refused.err
    refused = run(*command, "-o", tmp_path / "other", "--lexicon", "--attention", "none")
    assert refused.code == 2 and "lexicon requires attention" in refused.err
