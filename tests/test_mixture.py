"""Mixtures: their weights, buckets, files and error messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import dragoman
from command import Outcome, is_one_line
from dragoman import Corpus, DataError, Mixture, NgramModel
from dragoman.combine import mixture
from dragoman.combine.buckets import BUCKETINGS
from dragoman.combine.mixture import fit_bucket_weights, fit_mixture_weights
from dragoman.data.batches import Batch
from dragoman.data.unknown_words import ClosedVocabulary, UniformUnknownWords
from dragoman.data.vocabulary import END
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.io.digests import to_yaml
from dragoman.models.cache import CacheModel
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.entropy import entropies
from zoo import HELD_OUT, TRAINING, model


def perplexity(scorer: LanguageModel, text: Corpus) -> float:
    return math.exp(-token_log_probs(scorer, text).mean())


def random_members(models: int, tokens: int, seed: int) -> np.ndarray:
    return np.log(np.random.default_rng(seed).uniform(0.01, 1.0, (models, tokens)))


def log_likelihood(weights: np.ndarray, log_probs: np.ndarray) -> float:
    return float(np.log(weights @ np.exp(log_probs)).sum())


# -- EM ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_weights_agree_with_a_grid_search(seed: int) -> None:
    log_probs = random_members(2, 50, seed)
    grid = np.linspace(0, 1, 10_001)
    best = max(grid, key=lambda weight: log_likelihood(np.array([weight, 1 - weight]), log_probs))
    assert fit_mixture_weights(log_probs) == pytest.approx([best, 1 - best], abs=2e-3)


def test_three_weights_are_not_beaten_by_a_grid() -> None:
    log_probs = random_members(3, 80, seed=3)
    fitted = log_likelihood(fit_mixture_weights(log_probs), log_probs)
    steps = np.linspace(0, 1, 51)
    rivals = [np.array([a, b, 1 - a - b]) for a in steps for b in steps if a + b <= 1]
    assert max(log_likelihood(rival, log_probs) for rival in rivals) <= fitted + 1e-6


def test_likelihood_never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    log_probs = random_members(4, 60, seed=4)
    objectives = []
    for iterations in range(25):
        monkeypatch.setattr(mixture, "MAX_ITERATIONS", iterations)
        objectives.append(log_likelihood(fit_mixture_weights(log_probs), log_probs))
    assert all(later >= earlier - 1e-12 for earlier, later in zip(objectives[:-1], objectives[1:], strict=True))
    assert objectives[-1] > objectives[0]


def test_weights_do_not_depend_on_the_scale_of_probabilities() -> None:
    log_probs = random_members(2, 50, seed=5)
    assert fit_mixture_weights(log_probs - 600) == pytest.approx(fit_mixture_weights(log_probs), abs=1e-9)


def test_a_member_may_assign_zero_probability() -> None:
    log_probs = np.log([[0.9, 0.9, 0.9, 0.2], [0.1, 0.1, 0.1, 0.8]])
    log_probs[0, 3] = -math.inf
    weights = fit_mixture_weights(log_probs)
    assert 0.5 < weights[0] < 1
    assert weights.sum() == pytest.approx(1)


def test_words_impossible_for_all_members_are_refused() -> None:
    with pytest.raises(DataError, match="every model gives probability 0"):
        fit_mixture_weights(np.array([[0.0, -math.inf], [-1.0, -math.inf]]))


# -- mixtures ------------------------------------------------------------------------------------------------------


def test_probabilities_are_weighted_sums() -> None:
    first, second = model("modified-kneser-ney, order 3"), model("cache")
    both = Mixture([first, second], [0.3, 0.7])
    batch = Batch.empty(2)
    words = torch.tensor([5, 7])
    probs = [m.log_probs(m.advance(m.start(batch), words)).exp() for m in (first, second, both)]
    torch.testing.assert_close(probs[2], 0.3 * probs[0] + 0.7 * probs[1], rtol=0, atol=1e-12)


def test_uniform_mixtures_have_equal_weights() -> None:
    members = [model(f"witten-bell, order {order}") for order in (2, 5)]
    assert Mixture.uniform(members).weights == pytest.approx([1 / 2] * 2)


def test_a_smoothed_member_makes_the_mixture_positive(held_out: Corpus) -> None:
    fragile, safe = model("maximum-likelihood, order 3"), model("witten-bell, order 1")
    assert token_log_probs(fragile, held_out).min() == -math.inf
    fitted = Mixture.fit([fragile, safe], held_out)
    assert np.isfinite(token_log_probs(fitted, held_out)).all()
    assert perplexity(fitted, held_out) <= perplexity(safe, held_out) + 1e-9


def test_domain_adaptation() -> None:
    """Much text of one sort, little of another: on the second sort, the mixture beats both of its members."""
    weather = ["the cat hears rain .", "rain !", "the rain hears a dog .", "rain"]
    dev = ["the bird hears rain !", "the old cat sees the rain .", "rain"]
    language = Corpus.from_sentences([*TRAINING, *weather]).vocab
    much, little, text = (Corpus.from_sentences(lines, language) for lines in (TRAINING, weather, dev))
    members = [NgramModel.train(part, order=2, smoothing="witten-bell") for part in (much, little)]
    adapted = Mixture.fit(members, text)
    assert perplexity(adapted, text) < 0.5 * min(perplexity(member, text) for member in members)
    assert adapted.weights.min() > 0.2
    assert Mixture.fit(members, much).weights[1] < 0.05


# -- weights that depend on the context ---------------------------------------------------------------------------

KINDS = [*BUCKETINGS, "order+recent", "entropy+position+frequency"]


def members() -> list[LanguageModel]:
    """The cache decays quickly, so that words also leave it."""
    language = model("mixture by order").vocab
    text = Corpus.from_sentences(TRAINING, language)
    forgetful = CacheModel.train(text, order=3, decay=0.6, prior=0.5)
    assert forgetful.size < text.num_tokens / 5
    return [model("modified-kneser-ney, order 5"), forgetful, model("witten-bell, order 1")]


def buckets_by_fold(mixed: Mixture, text: Corpus) -> list[int]:
    carry, buckets = None, []
    for sentence in text:
        state = mixed.start(Batch.from_sentences([sentence]), carry)
        for word in [*sentence.tolist(), END]:
            buckets.append(int(mixed.bucket(state)))
            state = mixed.advance(state, torch.tensor([word]))
        carry = mixed.finish(state)
    return buckets


@pytest.mark.parametrize("kind", KINDS)
def test_buckets_of_states_and_corpora_agree(kind: str) -> None:
    mixed = Mixture(members(), buckets=kind)
    text = Corpus.from_sentences([*TRAINING, *HELD_OUT], mixed.vocab)
    buckets = mixed.bucketing.buckets_of_corpus(text)
    assert buckets.tolist() == buckets_by_fold(mixed, text)
    assert len(set(buckets.tolist())) >= (1 if kind == "none" else 3)
    assert len(set(mixed.bucketing.labels)) == len(mixed.bucketing.labels) > buckets.max()


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_corpus_has_no_buckets(kind: str) -> None:
    mixed = Mixture(members(), buckets=kind)
    assert mixed.bucketing.buckets_of_corpus(Corpus.from_sentences([], mixed.vocab)).shape == (0,)


def test_buckets_by_hand() -> None:
    text = Corpus.from_sentences(["a b a b", "a c a b", "b"])
    two = NgramModel.train(Corpus.from_sentences(["a b a b", "c"], text.vocab), order=3, smoothing="witten-bell")
    parts = [two, CacheModel.train(text, order=3)]

    def bucket_labels(kind: str, lines: list[str]) -> list[str]:
        mixed = Mixture(parts, buckets=kind)
        numbers = mixed.bucketing.buckets_of_corpus(Corpus.from_sentences(lines, text.vocab)).tolist()
        return [mixed.bucketing.labels[number].removeprefix(f"{kind} ") for number in numbers]

    assert bucket_labels("position", ["a b a b c", ""]) == ["1", "2", "3-4", "3-4", "5-8", "5-8", "1"]
    # In the vocabulary `a` was counted 4 times, `b` 4 times and `c` once.
    assert bucket_labels("frequency", ["a c zzz"]) == ["of <s>", "4-7", "1", "0"]
    # The bigrams known are <s>a, ab, ba, <s>c; `a a` and `c b` are not among them.
    assert bucket_labels("order", ["a b", "a a", "c b a"]) == ["1", "2", "2", "1", "2", "1", "1", "2", "1", "2"]
    # `</s> a` was seen nowhere before, `a b` was; then `b </s>`, `</s> a` and `a b` were.
    assert bucket_labels("recent", ["a b", "a b", "a b"]) == ["0", "0", "0", "0", "1", "2", "2", "2", "2"]


def test_entropy_is_that_of_the_distribution() -> None:
    for name in (
        "modified-kneser-ney, order 5",
        "maximum-likelihood, order 3",
        "katz, order 3",
        "whole-prefix, order 3",
        "quantised",
        "pruned by entropy",
        "stupid-backoff, order 3",
    ):
        ngram = model(name)
        assert isinstance(ngram, NgramModel)
        contexts = np.arange(ngram.table.trie.contexts)
        log_probs = ngram.table.distributions(contexts)
        expected = -(np.exp(log_probs) * np.maximum(log_probs, -1e9)).sum(axis=1)
        np.testing.assert_allclose(entropies(ngram.table, contexts), expected, rtol=0, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("prior_strength", [0.0, 10.0])
def test_posterior_never_falls(monkeypatch: pytest.MonkeyPatch, prior_strength: float) -> None:
    log_probs, prior_weights = random_members(3, 40, seed=6), np.array([0.7, 0.2, 0.1])
    objectives = []
    for iterations in range(25):
        monkeypatch.setattr(mixture, "MAX_ITERATIONS", iterations)
        weights = fit_mixture_weights(log_probs, prior_weights, prior_strength)
        objectives.append(log_likelihood(weights, log_probs) + prior_strength * float(prior_weights @ np.log(weights)))
    assert all(later >= earlier - 1e-12 for earlier, later in zip(objectives[:-1], objectives[1:], strict=True))
    assert objectives[-1] > objectives[0]


def test_a_stronger_prior_gives_weights_closer_to_it() -> None:
    log_probs, prior_weights = random_members(2, 30, seed=7), np.array([0.9, 0.1])
    distances = [abs(fit_mixture_weights(log_probs, prior_weights, s)[0] - 0.9) for s in (0.0, 10.0, 100.0, 1e4)]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 0.1 and distances[-1] < 0.01


def test_the_prior_strength_is_a_number_of_tokens() -> None:
    """Where each token can come from one model only, weights are shares of tokens, and the prior's join them."""
    log_probs = np.log([[1.0, 1e-300, 1e-300], [1e-300, 1.0, 1.0]])
    assert fit_mixture_weights(log_probs, np.array([0.8, 0.2]), 10.0) == pytest.approx([9 / 13, 4 / 13])


def test_one_bucket_equals_the_plain_mixture(held_out: Corpus) -> None:
    log_probs = np.stack([token_log_probs(member, held_out) for member in members()])
    plain = fit_mixture_weights(log_probs)
    rows = fit_bucket_weights(log_probs, np.zeros(held_out.num_tokens, int), 1, plain)
    assert rows == pytest.approx(plain[None], abs=1e-5)
    bucketed = Mixture(members(), plain.tolist(), buckets="order+recent")
    expected = token_log_probs(Mixture(members(), plain.tolist()), held_out)
    np.testing.assert_allclose(token_log_probs(bucketed, held_out), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_buckets_do_not_decrease_the_dev_likelihood(kind: str, held_out: Corpus) -> None:
    plain = perplexity(Mixture.fit(members(), held_out), held_out)
    bucketed = perplexity(Mixture.fit(members(), held_out, buckets=kind, prior_strength=0.0), held_out)
    assert bucketed <= plain + 1e-9
    assert kind == "none" or bucketed < 0.999 * plain


def test_unseen_buckets_have_the_global_weights(held_out: Corpus) -> None:
    for prior_strength in (0.0, 10.0):
        fitted = Mixture.fit(members(), held_out, buckets="position", prior_strength=prior_strength)
        unseen = ~np.isin(np.arange(8), fitted.bucketing.buckets_of_corpus(held_out))
        assert 0 < unseen.sum() < 8
        assert (fitted.bucket_weights[unseen] == fitted.weights).all()
        assert (fitted.bucket_weights[~unseen] != fitted.weights).any(axis=1).all()


def test_each_bucket_uses_its_weights(held_out: Corpus) -> None:
    """One member has all weight at the first word, the other afterwards."""
    first, second = model("witten-bell, order 1"), model("modified-kneser-ney, order 3")
    mixed = Mixture([first, second], buckets="position", bucket_weights=[[1, 0], *[[0, 1]] * 7])
    is_first_word = np.zeros(held_out.num_tokens, bool)
    is_first_word[held_out.token_offsets[:-1]] = True
    expected = np.where(is_first_word, token_log_probs(first, held_out), token_log_probs(second, held_out))
    np.testing.assert_allclose(token_log_probs(mixed, held_out), expected, rtol=0, atol=1e-12)


def test_buckets_help_where_members_are_good_in_different_contexts() -> None:
    """One member has only learned how sentences begin, the other how they continue; the mixture learns which is which."""
    lines = [f"{a} {b} {c}" for a in "pq" for b in "xyz" for c in "xyz"]
    language = Corpus.from_sentences(lines).vocab
    begins = NgramModel.train(Corpus.from_sentences(["p", "q"] * 20, language), order=2, smoothing="witten-bell")
    goes_on = NgramModel.train(Corpus.from_sentences(["x y z"] * 20, language), order=1, smoothing="witten-bell")
    text = Corpus.from_sentences(lines * 10, language)
    plain, bucketed = (Mixture.fit([begins, goes_on], text, buckets=kind) for kind in ("none", "position"))
    assert perplexity(bucketed, text) < 0.8 * perplexity(plain, text)
    assert bucketed.bucket_weights[0, 0] > 0.9 > 0.5 > bucketed.bucket_weights[1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_saving_and_loading_changes_no_weight(kind: str, held_out: Corpus, tmp_path: Path) -> None:
    fitted = Mixture.fit(members(), held_out, buckets=kind)
    fitted.save(tmp_path / "m")
    loaded = dragoman.load(tmp_path / "m")
    assert isinstance(loaded, Mixture)
    assert (loaded.buckets, loaded.bucketing.labels) == (kind, fitted.bucketing.labels)
    assert np.array_equal(loaded.weights, fitted.weights)
    assert np.array_equal(loaded.bucket_weights, fitted.bucket_weights)
    assert np.array_equal(token_log_probs(loaded, held_out), token_log_probs(fitted, held_out))


def test_the_config_without_buckets_has_weights_only(tmp_path: Path) -> None:
    """The saved settings of a mixture without buckets do not mention them."""
    assert Mixture(members()).config() == {"weights": pytest.approx([1 / 3] * 3)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"buckets": "positon"}, "no buckets 'positon'; did you mean 'position'?"),
        ({"buckets": "weekday"}, "no buckets 'weekday'; choose from none, order, entropy"),
        ({"buckets": 7}, "buckets 7: must be text"),
        ({"buckets": "order"}, "8 rows of weights, but 5 buckets of 'order'"),
        ({"bucket_weights": [[0.5, 0.2, 0.2]] * 8}, "position 1: weights .* with a sum of 1"),
        ({"bucket_weights": [[0.5, 0.5]] * 8}, "position 1: weights .* one for each of 3 models"),
        ({"bucket_weights": [*[[1, 0, 0]] * 7, [math.nan, 0, 1]]}, r"bucket_weights .* must be a finite number"),
        ({"bucket_weights": [*[[1, 0, 0]] * 7, [1.5, -0.5, 0]]}, r"position 65\+: weights .* with a sum of 1"),
        ({"bucket_weights": [[1, 0, 0]] * 7}, "7 rows of weights, but 8 buckets"),
        ({"bucket_weights": [1, 0, 0]}, r"bucket_weights \[1,0,0\]: must be a list"),
        ({"bucket_weights": 3}, "bucket_weights 3: must be a list"),
        ({"weights": [0.5, 0.5, 0.5]}, "weights .* with a sum of 1"),
        ({"bukets": "order"}, "unknown key 'bukets'; did you mean 'buckets'?"),
    ],
)
def test_invalid_configs_are_refused(change: dict[str, object], message: str, tmp_path: Path) -> None:
    Mixture(members(), buckets="position").save(tmp_path / "m")
    config = tmp_path / "m" / "config.yaml"
    config.write_text(to_yaml({**yaml.safe_load(config.read_text()), **change}))
    with pytest.raises(DataError, match=message) as refused:
        dragoman.load(tmp_path / "m")
    assert str(tmp_path / "m") in str(refused.value) and "\n" not in str(refused.value)


# -- on the command line -------------------------------------------------------------------------------------------


@pytest.fixture
def directories(tmp_path: Path) -> list[Path]:
    places = [tmp_path / name for name in ("kn", "cache", "unigrams")]
    for place, member in zip(places, members(), strict=True):
        member.save(place)
    (tmp_path / "dev.txt").write_text("\n".join(HELD_OUT) + "\n")
    return places


def test_mix_prints_and_saves_buckets(
    good: Callable[..., Outcome], directories: list[Path], tmp_path: Path, held_out: Corpus
) -> None:
    dev = ("--dev-text", tmp_path / "dev.txt", "--buckets", "order+recent", "-o", tmp_path / "m")
    header, everything, *lines = (line.split("\t") for line in good("mix", *directories, *dev).lines)
    loaded = dragoman.load(tmp_path / "m")
    assert isinstance(loaded, Mixture) and loaded.buckets == "order+recent"
    assert header == ["bucket", "tokens", *map(str, directories)]
    assert everything[:2] == ["all", str(held_out.num_tokens)]
    assert [line[0] for line in lines] == list(loaded.bucketing.labels)
    assert sum(int(line[1]) for line in lines) == held_out.num_tokens
    printed = np.array([[float(weight) for weight in line[2:]] for line in lines])
    assert printed == pytest.approx(loaded.bucket_weights, abs=1e-6)
    assert perplexity(loaded, held_out) < perplexity(Mixture.fit(members(), held_out), held_out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--buckets", "odrer", "--dev-text", "DEV"], "did you mean 'order'?"),
        (["--buckets", "order", "--equal-weights"], "needs --dev-text"),
        (["--buckets", "order+order", "--dev-text", "DEV"], "give each once"),
        (["--buckets", "frequency+entropy+position+order+recent", "--dev-text", "DEV"], "combine fewer"),
    ],
)
def test_invalid_buckets_are_refused(
    run: Callable[..., Outcome], directories: list[Path], tmp_path: Path, arguments: list[str], message: str
) -> None:
    given = [str(tmp_path / "dev.txt") if argument == "DEV" else argument for argument in arguments]
    outcome = run("mix", *directories, *given, "-o", tmp_path / "m")
    assert outcome.code == 2 and is_one_line(outcome.err) and message in outcome.err, outcome.err
    assert not (tmp_path / "m").exists()


def test_the_help_explains_all_buckets(good: Callable[..., Outcome]) -> None:
    help_text = " ".join(good("mix", "--help").out.replace("│", " ").split())
    assert all(f"{kind} (" in help_text for kind in BUCKETINGS if kind != "none")


@pytest.mark.parametrize(
    ("kind", "message"), [("order", "need an n-gram model"), ("entropy", "need an n-gram"), ("recent", "need a cache")]
)
def test_buckets_need_their_kind_of_model(kind: str, message: str) -> None:
    with pytest.raises(DataError, match=f"{message}.* which are class-ngram; .*leave {kind} out"):
        Mixture([model("classes")], buckets=kind)


# -- refusals ------------------------------------------------------------------------------------------------------


def trained(lines: list[str], **settings: object) -> NgramModel:
    return NgramModel.train(Corpus.from_sentences(lines), order=1, smoothing="witten-bell", **settings)


def test_vocabularies_of_different_sizes_are_refused() -> None:
    with pytest.raises(DataError, match=r"model 1 and model 2 .*\(5 entries against 6\): .*--vocab"):
        Mixture([trained(["a b"]), trained(["a b c"])])


def test_vocabularies_with_different_words_are_refused() -> None:
    with pytest.raises(DataError, match=r"model 1 and model 3 .*entry 4 is 'b' in one and 'c' in the other"):
        Mixture([trained(["a b"]), trained(["a b"]), trained(["a c"])])


def test_different_unknown_words_are_refused() -> None:
    with pytest.raises(
        DataError, match=r"different unknown-word models \(uniform over .* words, and none\).*--unknown"
    ):
        Mixture([trained(["a b"]), trained(["a b"], unknown=ClosedVocabulary(3))])
    with pytest.raises(DataError, match=r"10,000,000.*500"):
        Mixture([trained(["a b"]), trained(["a b"], unknown=UniformUnknownWords(3, 500))])


def test_fit_checks_vocabularies_first() -> None:
    first, second = trained(["a b"]), trained(["a c"])
    with pytest.raises(DataError, match="entry 4"):
        Mixture.fit([first, second], Corpus.from_sentences(["a"], first.vocab))


@pytest.mark.parametrize("weights", [[0.5], [0.7, 0.7], [1.5, -0.5], [math.nan, 1.0], [0.2, 0.2, 0.6]])
def test_invalid_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(DataError, match="with a sum of 1"):
        Mixture([trained(["a b"]), trained(["a b"])], weights)


def test_empty_mixtures_are_refused() -> None:
    with pytest.raises(DataError, match="at least one model"):
        Mixture([])
