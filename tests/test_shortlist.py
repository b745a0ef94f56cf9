"""Shortlists: the allowed words, and the effect on translators and ensembles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman import Corpus, DataError, fit
from dragoman.align.aligner import Aligner
from dragoman.align.lexicon import Lexicon
from dragoman.align.shortlist import Shortlist
from dragoman.combine.ensemble import Ensemble
from dragoman.combine.shortlist import ShortlistScorer
from dragoman.core.scorer import select_rows, select_sentences
from dragoman.data.batches import Batch
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.vocabulary import END, START, UNK
from dragoman.evaluation.translator import ReferenceData, evaluate_translator
from dragoman.models.translation import Translation
from dragoman.models.translator import Translator
from dragoman.nn import output
from dragoman.search.beam import beam_search
from dragoman.search.scorers import PrefixConstrainedScorer
from small_translators import ENGLISH, GERMAN

SOURCE, TARGET = Tokenizer.train("word", GERMAN), Tokenizer.train("word", ENGLISH)
PAIRS = ParallelCorpus(SOURCE.encode(GERMAN), TARGET.encode(ENGLISH))


@cache
def lexicon() -> Lexicon:
    """Translation probabilities of IBM model 1."""
    return Aligner.train(PAIRS, "ibm1").forward.lexicon


def trained(**settings: Any) -> Translator:
    shape = {"embedding": 16, "hidden": 16, "dropout": 0.0, "embedding_reach": 1.0, "dtype": "float64"}
    model = Translator.create(PAIRS, SOURCE, TARGET, **{**shape, **settings})
    fit(model, PAIRS, max_epochs=6, learning_rate=0.02, threads=1)
    return model


def shortlist(common: int = 2, each: int = 2) -> Shortlist:
    return Shortlist.from_lexicon(lexicon(), SOURCE.vocab, TARGET.vocab, common, each)


def everything() -> Shortlist:
    return shortlist(common=len(TARGET.vocab))


class Hidden:
    """A scorer without the sparse interface."""

    def __init__(self, scorer: Any):
        self.vocab, self.unknown = scorer.vocab, scorer.unknown
        self.start, self.log_probs, self.advance, self.finish = (
            *(scorer.start, scorer.log_probs),
            *(scorer.advance, scorer.finish),
        )
        self.attention = scorer.attention


# -- what is on it -----------------------------------------------------------------------------------------------------


def test_translations_of_source_words_and_frequent_words_are_allowed() -> None:
    lines = [GERMAN[0], ""]
    allowed = shortlist(common=2, each=1).allowed_words(SOURCE.encode(lines))
    words = np.array(TARGET.vocab.tokens)
    frequent = set(words[np.argsort(-TARGET.vocab.counts, kind="stable")[:2]])
    from_nothing = {entry.word for entry in lexicon().translations(None, 1)}
    everywhere = {"</s>", "<unk>"} | frequent | from_nothing
    assert set(words[allowed[1].numpy()]) == everywhere
    of_source = {lexicon().translations(word, 1)[0].word for word in GERMAN[0].split()}
    assert set(words[allowed[0].numpy()]) == everywhere | of_source


def test_the_lexicon_may_have_another_vocabulary() -> None:
    german = [*GERMAN, "ein einhorn ."]
    english = [*ENGLISH, "a unicorn ."]
    others = (Corpus.from_sentences(lines) for lines in (german, english))
    larger = Aligner.train(ParallelCorpus(*others), "ibm1").forward.lexicon
    known = Shortlist.from_lexicon(larger, SOURCE.vocab, TARGET.vocab, 0, 3)
    assert known.coverage == 1.0
    assert int(known.starts[UNK + 1]) == 0  # no entries for unknown words
    assert ((known.translations > UNK) & (known.translations < len(TARGET.vocab))).all()
    shortlist = Shortlist.from_lexicon(lexicon(), Tokenizer.train("word", ["x y", "x y"]).vocab, TARGET.vocab)
    assert shortlist.coverage == 0.0


# -- scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"lexicon": True}, {"attention": "none"}, {"tied": True}], ids=str)
def test_a_shortlist_of_all_words_changes_nothing(settings: dict[str, Any]) -> None:
    model = trained(**settings)
    listed = ShortlistScorer(model, everything())
    for exact, short in zip(model.translate(GERMAN), listed.translate(GERMAN), strict=True):
        assert exact.tokens == short.tokens
        assert exact.log_prob == pytest.approx(short.log_prob)
    batch = Batch.from_sentences(TARGET.encode(ENGLISH[:3]), SOURCE.encode(GERMAN[:3]))
    listed_state, model_state = listed.start(batch), model.start(batch)
    torch.testing.assert_close(listed.log_probs(listed_state), model.log_probs(model_state))


def test_probabilities_are_normalised_over_the_shortlist() -> None:
    model = trained(lexicon=True)
    listed = ShortlistScorer(model, shortlist())
    batch = Batch.from_sentences(TARGET.encode(ENGLISH[:5]), SOURCE.encode(GERMAN[:5]))
    state, exact = listed.start(batch), model.start(batch)
    allowed = listed.shortlist.allowed_words(SOURCE.encode(GERMAN[:5]))
    assert not allowed[:, START].any() and allowed[:, [END, UNK]].all() and not allowed.all(dim=0)[UNK + 1 :].all()
    expected = model.log_probs(exact).masked_fill(~allowed, -torch.inf).log_softmax(dim=1)
    torch.testing.assert_close(listed.log_probs(state), expected)


@pytest.mark.parametrize("settings", [{}, {"lexicon": True}, {"attention": "none"}], ids=str)
def test_parameters_may_be_copied_or_not(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies for each sentence cost memory, so large batches score all words."""
    listed, log_probs = ShortlistScorer(trained(**settings), shortlist()), []
    for copies in (0, 1000):
        monkeypatch.setattr(output, "MAX_COPIES", copies)
        state = listed.start(Batch.empty(len(GERMAN), SOURCE.encode(GERMAN)))
        assert (state.memory.subset.weights is None) == (copies == 0)
        log_probs.append(listed.log_probs(state))
    torch.testing.assert_close(*log_probs)


class Shapes(TorchDispatchMode):
    """Records the shapes of all results."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[tuple[int, ...]] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        self.shapes |= {tuple(part.shape) for part in (result,) if isinstance(part, torch.Tensor)}
        return result


def test_a_step_with_a_lexicon_computes_only_the_shortlist() -> None:
    listed = ShortlistScorer(trained(lexicon=True), shortlist(0, 1)).search_scorer()
    state = listed.start(Batch.empty(3, SOURCE.encode(GERMAN[:3])))
    assert state.memory.subset.words.shape[1] < len(TARGET.vocab)
    with Shapes() as recorded:
        listed.sparse_log_probs(state)
    assert recorded.shapes and not [shape for shape in recorded.shapes if shape[-1:] == (len(TARGET.vocab),)]


def test_words_are_copied_when_few_sentences_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ShortlistScorer(trained(attention="none"), shortlist())
    state = listed.start(Batch.empty(len(GERMAN), SOURCE.encode(GERMAN)))
    monkeypatch.setattr(output, "MAX_COPIES", state.memory.subset.words.shape[1] / len(TARGET.vocab))  # one sentence
    state = listed.start(Batch.empty(len(GERMAN), SOURCE.encode(GERMAN)))
    few = select_sentences(select_rows(state, torch.tensor([3, 3])), torch.tensor([3]))
    words = torch.full((len(GERMAN),), TARGET.vocab.id("the"))
    for subset in (state.memory.subset, few.memory.subset):
        assert subset.weights is None
    assert listed.advance(few, words[:2]).memory.subset.weights is not None
    assert listed.advance(state, words).memory.subset.weights is None


def test_threads_may_share_a_scorer() -> None:
    """State is a value: searches of other sentences, at the same time or in between, change nothing."""
    listed = ShortlistScorer(trained(lexicon=True), shortlist()).search_scorer()
    batches = [Batch.empty(len(lines), SOURCE.encode(lines)) for lines in (GERMAN[:3], GERMAN[3:9], GERMAN[9:])]
    states = [listed.start(batch) for batch in batches]
    expected = [listed.log_probs(state) for state in states]
    for state, log_probs in zip(reversed(states), reversed(expected), strict=True):
        assert torch.equal(listed.log_probs(state), log_probs)
    searches = [beam_search(listed, batch, 3) for batch in batches]
    with ThreadPoolExecutor(4) as threads:
        at_once = list(threads.map(lambda batch: beam_search(listed, batch, 3), batches * 4))
    ids = [[[best.ids for best in each] for each in search] for search in searches]
    assert [[[best.ids for best in each] for each in search] for search in at_once] == ids * 4


def test_search_with_and_without_the_sparse_interface_agree() -> None:
    listed = ShortlistScorer(trained(), shortlist())
    source = SOURCE.encode(GERMAN)
    for beam in (1, 4):
        sparse = beam_search(listed, Batch.empty(len(GERMAN), source), beam)
        hidden = beam_search(Hidden(listed), Batch.empty(len(GERMAN), source), beam)
        assert [[h.ids for h in best] for best in sparse] == [[h.ids for h in best] for best in hidden]
        assert [best[0].log_prob for best in sparse] == pytest.approx([best[0].log_prob for best in hidden])


def test_the_likelihood_of_references_ignores_the_shortlist() -> None:
    model = trained()
    listed = ShortlistScorer(model, shortlist(0, 0))
    assert listed.force_decode([GERMAN[0]], [ENGLISH[0]])[0].log_prob == -np.inf
    expected = model.likelihood(GERMAN, ENGLISH).perplexity
    together = Ensemble([model, model]).likelihood(GERMAN, ENGLISH).perplexity
    model.shortlist = shortlist(0, 0)
    assert evaluate_translator(model, GERMAN, ReferenceData(ENGLISH)).perplexity == expected < np.inf
    assert evaluate_translator(Ensemble([model, model]), GERMAN, ReferenceData(ENGLISH)).perplexity == together


def test_a_search_may_ignore_the_shortlist() -> None:
    model = trained(dropout=0.5)
    exact, score = model.translate(GERMAN), model.score(GERMAN, ENGLISH)
    restricted = ShortlistScorer(model, shortlist(0, 0)).translate(GERMAN)
    model.shortlist = shortlist(0, 0)
    assert texts(model.translate(GERMAN)) == texts(restricted) != texts(exact)
    assert texts(model.translate(GERMAN, use_shortlist=False)) == texts(exact)
    assert texts(Ensemble([model]).translate(GERMAN, use_shortlist=False)) == texts(exact)
    model.search_scorer(use_shortlist=False)
    assert not any(module.training for module in model.modules()) and model.score(GERMAN, ENGLISH) == score


def texts(translations: Sequence[Translation]) -> list[tuple[str, float]]:
    return [(translation.text, round(translation.log_prob, 6)) for translation in translations]


def test_an_ensemble_of_shortlists_allows_their_words() -> None:
    first, second = trained(), trained(seed=2)
    both = Ensemble([ShortlistScorer(model, shortlist()) for model in (first, second)])
    batch = Batch.empty(len(GERMAN), SOURCE.encode(GERMAN))
    probs = both.log_probs(both.start(batch)).exp()
    torch.testing.assert_close(probs.sum(dim=1), torch.ones(len(GERMAN), dtype=torch.float64))
    allowed = shortlist().allowed_words(SOURCE.encode(GERMAN))
    assert not probs[~allowed].any() and (probs[allowed] > 0).all()


@pytest.mark.parametrize("mode", ["linear", "log-linear"])
@pytest.mark.parametrize("lists", [(2, 2), (2, 0), (2, None), (None, None)], ids=str)
def test_an_ensemble_computes_only_the_possible_words(mode: Any, lists: tuple[int | None, ...]) -> None:
    """Members of the same shortlist, of different ones, and with none: by all words it is the same."""
    members = [
        model if each is None else ShortlistScorer(model, shortlist(1, each))
        for model, each in zip((trained(), trained(seed=2)), lists, strict=True)
    ]
    both = Ensemble(members, mode=mode)
    batch = Batch.empty(len(GERMAN), SOURCE.encode(GERMAN))
    state = both.start(batch)
    sparse, words = both.sparse_log_probs(state)
    first, second = (member.log_probs(member.start(batch)) for member in members)
    by_hand = ((first.exp() + second.exp()) / 2).log() if mode == "linear" else (first + second).log_softmax(dim=1)
    torch.testing.assert_close(both.log_probs(state), by_hand)
    is_restricted = lists == (2, 2) or (lists == (2, None) and mode == "log-linear")
    assert (words is not None) == is_restricted
    assert sparse.shape == (len(GERMAN), len(TARGET.vocab)) if words is None else words.shape
    for row, log_probs in zip([] if words is None else words, by_hand, strict=False):
        assert set(log_probs.isfinite().nonzero()[:, 0].tolist()) == set(row.tolist()) - {START}  # which is padding


def test_translations_with_a_prefix_are_searched_over_all_words() -> None:
    model = trained()
    listed = ShortlistScorer(model, shortlist(1, 1))
    outside = next(word for word in TARGET.vocab.tokens[3:] if not allowed_in(listed, word))
    with_prefix = listed.translate(GERMAN[:1], prefix=[outside])
    assert with_prefix == model.translate(GERMAN[:1], prefix=[outside]) and with_prefix[0].tokens[0] == outside
    constrained = PrefixConstrainedScorer(listed, [TARGET.vocab.id(outside)])
    with pytest.raises(DataError, match=f"{outside!r} has probability 0"):
        constrained.log_probs(constrained.start(Batch.empty(1, SOURCE.encode(GERMAN[:1]))))


def allowed_in(listed: ShortlistScorer, word: str) -> bool:
    return bool(listed.shortlist.allowed_words(SOURCE.encode(GERMAN[:1]))[0, TARGET.vocab.id(word)])


def test_the_shortlist_may_be_smaller_than_the_beam() -> None:
    listed = ShortlistScorer(trained(), shortlist(0, 0))
    assert int(listed.shortlist.always_allowed.sum()) == 2  # </s> and <unk>
    [best] = beam_search(listed, Batch.empty(1, SOURCE.encode(GERMAN[:1])), 5, 5)
    allowed = {UNK, TARGET.vocab.id(".")}  # written alike in both languages
    assert 1 <= len(best) <= 5 and all(set(hypothesis.ids) <= allowed for hypothesis in best)


def test_shortlists_of_trees_use_their_leaves() -> None:
    source = Tokenizer.train("word", ["(S (NP ein hund) bellt)"] * 2, format="tree")
    read = source.encode(["(S (NP ein hund) bellt)", "(S bellt)"])
    allowed = Shortlist.from_lexicon(lexicon(), source.vocab, TARGET.vocab, 0, 1).allowed_words(read)
    dog = TARGET.vocab.id(lexicon().translations("hund", 1)[0].word)
    assert allowed.shape == (2, len(TARGET.vocab)) and allowed[0, dog] and not allowed[1, dog]


def test_the_most_probable_translations_are_used() -> None:
    starts, probs = lexicon().starts, lexicon().probs
    by_hand = []
    for number in range(len(lexicon().source)):
        entries_of_word = range(*starts[number : number + 2].tolist())
        best = sorted(entries_of_word, key=lambda entry: (-probs[entry], entry))[:2]
        by_hand += sorted(entry for entry in best if probs[entry] >= 0.1)
    assert lexicon().top_entries(2, 0.1).tolist() == by_hand


def test_invalid_uses_are_refused() -> None:
    with pytest.raises(DataError, match="each member of an ensemble"):
        ShortlistScorer(Ensemble([trained(attention="none")]), shortlist())
    with pytest.raises(DataError, match="cannot be limited to a shortlist"):
        ShortlistScorer(trained(softmax="brown", softmax_classes=3), shortlist())
    with pytest.raises(DataError, match="both must be 0 or more"):
        shortlist(common=-1)


# -- the command line --------------------------------------------------------------------------------------------------


def test_the_command_line_option(good: Any, run: Any, tmp_path: Path) -> None:
    for name, lines in (("t.de", GERMAN), ("t.en", ENGLISH)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    texts = ("--src", tmp_path / "t.de", "--tgt", tmp_path / "t.en")
    trained().save(tmp_path / "m")
    trained(seed=2).save(tmp_path / "n")
    Translator.create(PAIRS.reversed, TARGET, SOURCE, embedding=4, hidden=4).save(tmp_path / "back")
    good("align", *texts, "-o", tmp_path / "al", "--model", "ibm1")
    short = ("--shortlist", tmp_path / "al")
    outcome = good("translate", tmp_path / "m", *short, "--text", tmp_path / "t.de")
    assert "normalised over the words of each line's shortlist" in outcome.err and outcome.out.count("\n") == len(
        GERMAN
    )
    report = good("evaluate", tmp_path / "m", *texts, *short)
    assert "with shortlists (perplexities are over all words)" in report.out
    assert json.loads(good("evaluate", tmp_path / "m", *texts, *short, "--json").out)["shortlist"] == f"{tmp_path}/al"
    pieces = ("--units", "char", "--max-updates", 1, "-o", tmp_path / "letters")
    good("train", "translator", *texts, *pieces)
    both = good("evaluate", tmp_path / "m", tmp_path / "n", *texts, *short, "--ensemble", "--json")
    assert json.loads(both.out)["perplexity"] is not None
    back = good("translate", tmp_path / "back", *short, "--text", tmp_path / "t.en")  # the aligner has both directions
    assert back.out.count("\n") == len(ENGLISH)
    refused = run("evaluate", tmp_path / "m", *texts, *short, "--diagnose")
    assert refused.code == 2 and "--diagnose" in refused.err
    refused = run("translate", tmp_path / "m", *short, "--lm", tmp_path / "m", "--fusion", "linear", stdin="a\n")
    assert refused.code == 2 and "--fusion linear" in refused.err
    refused = run("translate", tmp_path / "letters", *short, stdin="ein hund\n")
    assert refused.code == 2 and f"dragoman units {tmp_path}/letters --source" in refused.err
