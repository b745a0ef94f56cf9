"""The softmax by classes: it sums to one, and the path of training is the definition's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.data.vocabulary import END, START
from dragoman.nn import class_softmax, softmax
from dragoman.nn.class_softmax import Output, WordClasses, expected_cost, frequency_classes

WORDS, HIDDEN, ROWS = 23, 5, 40
COUNTS = np.array([0, 30, 4, *range(60, 20, -2)])
CLASSES = {
    "by size": frequency_classes(COUNTS),
    "by frequency": frequency_classes(COUNTS, classes=7, power=1),
    "as of Brown": WordClasses.of(np.array([0, 1, 2, *(3 + word % 4 for word in range(WORDS - 3))])),  # ends alone
    "all in one": WordClasses.of(np.zeros(WORDS, int)),
    "each for itself": WordClasses.of(np.arange(WORDS)),
}


def drawn(*shape: int, seed: int) -> Tensor:
    chance = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=chance, dtype=torch.float64).requires_grad_()


@pytest.fixture
def h() -> Tensor:
    return drawn(ROWS, HIDDEN, seed=1)


@pytest.fixture
def targets() -> Tensor:
    """Any words but `<s>`; some classes are there more than once, some not at all."""
    return torch.from_numpy(np.random.default_rng(2).integers(1, WORDS // 2, ROWS))


@pytest.fixture(params=CLASSES)
def output(request: pytest.FixtureRequest) -> Output:
    classes = CLASSES[request.param]
    W, b = drawn(WORDS, HIDDEN, seed=3), drawn(WORDS, seed=4)
    W_c, b_c = drawn(len(classes), HIDDEN, seed=5), drawn(len(classes), seed=6)
    return Output(W, softmax.never_start(b), W_c, b_c, classes)


def naive(h: Tensor, output: Output) -> Tensor:
    """P(c | h) P(e | c, h), word by word."""
    p_class = torch.softmax(h @ output.W_c.t() + output.b_c, dim=1)
    exp = torch.exp(h @ output.W.t() + output.b)
    class_of = output.classes.class_of
    sums = torch.stack([exp[:, class_of == class_of[word]].sum(dim=1) for word in range(WORDS)], dim=1)
    return p_class[:, class_of] * exp / sums


# -- by classes ------------------------------------------------------------------------------------------------------


def test_probabilities_are_the_product(h: Tensor, output: Output) -> None:
    torch.testing.assert_close(class_softmax.word_log_probs(h, output).exp(), naive(h, output))


def test_probabilities_sum_to_one(h: Tensor, output: Output) -> None:
    sums = class_softmax.word_log_probs(h, output).exp().sum(dim=1)
    torch.testing.assert_close(sums, torch.ones(ROWS, dtype=torch.float64))


def test_no_sentence_has_its_start_inside(h: Tensor, output: Output) -> None:
    log_probs = class_softmax.word_log_probs(h, output)
    assert (log_probs[:, START] == -torch.inf).all()
    assert torch.isfinite(log_probs[:, START + 1 :]).all()


def test_training_needs_one_word(h: Tensor, output: Output, targets: Tensor) -> None:
    every = class_softmax.word_log_probs(h, output)
    picked = class_softmax.target_log_probs(h, output, targets)
    torch.testing.assert_close(picked, every.gather(1, targets[:, None])[:, 0])


def test_gradients_are_those_of_the_definition(h: Tensor, targets: Tensor) -> None:
    for classes in CLASSES.values():
        W, b, W_c = drawn(WORDS, HIDDEN, seed=3), drawn(WORDS, seed=4), drawn(len(classes), HIDDEN, seed=5)
        b_c = drawn(len(classes), seed=6)
        output = Output(W, softmax.never_start(b), W_c, b_c, classes)
        weights = torch.linspace(0.5, 2, ROWS, dtype=torch.float64)
        log_probs = naive(h, output).gather(1, targets[:, None])[:, 0].log()
        expected = torch.autograd.grad((log_probs * weights).sum(), [h, W, b, W_c, b_c])
        picked = class_softmax.target_log_probs(h, output, targets)
        found = torch.autograd.grad((picked * weights).sum(), [h, W, b, W_c, b_c])
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)


def smoothed(scores: Tensor, targets: Tensor, share: float) -> Tensor:
    """(1 - share) log p of the target + share * the mean of log p over the words that can come."""
    log_probs = scores.log_softmax(dim=1)
    possible = log_probs[:, log_probs[0].isfinite()]
    return (1 - share) * log_probs.gather(1, targets[:, None])[:, 0] + share * possible.mean(dim=1)


def test_smoothing_all_words_is_the_definition(h: Tensor, targets: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax, "IN_CACHE", 16 * WORDS)  # several pieces
    W, b = drawn(WORDS, HIDDEN, seed=3), drawn(WORDS, seed=4)
    weights = torch.linspace(0.5, 2, ROWS, dtype=torch.float64)
    for share in (0.0, 0.3):
        expected = smoothed(h @ W.t() + softmax.never_start(b), targets, share)
        found = softmax.target_log_probs(h, W, softmax.never_start(b), targets, share)
        torch.testing.assert_close(found, expected)
        with torch.no_grad():
            torch.testing.assert_close(softmax.target_log_probs(h, W, softmax.never_start(b), targets, share), expected)
        gradients = [torch.autograd.grad((way * weights).sum(), [h, W, b]) for way in (found, expected)]
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other)


def test_smoothing_by_classes_smooths_both_softmaxes(h: Tensor, output: Output, targets: Tensor) -> None:
    class_of = output.classes.class_of
    of_class = smoothed(h @ output.W_c.t() + output.b_c, class_of[targets], 0.3)
    scores = h @ output.W.t() + output.b
    within = []
    for row, word in enumerate(targets.tolist()):
        own = (class_of == class_of[word]) & output.b.isfinite()
        log_probs = scores[row, own].log_softmax(dim=0)
        within.append(0.7 * log_probs[int(own[:word].sum())] + 0.3 * log_probs.mean())
    found = class_softmax.target_log_probs(h, output, targets, 0.3)
    torch.testing.assert_close(found, of_class + torch.stack(within))


def test_the_gradient_can_be_taken_once(h: Tensor, targets: Tensor) -> None:
    W, b = drawn(WORDS, HIDDEN, seed=3), drawn(WORDS, seed=4)
    loss = softmax.target_log_probs(h, W, b, targets).sum()
    torch.autograd.grad(loss, [W], retain_graph=True)
    with pytest.raises(RuntimeError, match="compute them again"):
        torch.autograd.grad(loss, [W])


def test_one_row_and_none(output: Output) -> None:
    h = drawn(1, HIDDEN, seed=1)
    torch.testing.assert_close(
        class_softmax.target_log_probs(h, output, torch.tensor([END])),
        class_softmax.word_log_probs(h, output)[:, END],
    )
    assert class_softmax.target_log_probs(h[:0], output, torch.zeros(0, dtype=torch.long)).shape == (0,)


def test_a_model_starts_as_a_unigram_model() -> None:
    """With these biases and all weights 0."""
    classes = CLASSES["by frequency"]
    unigram = torch.from_numpy((COUNTS + 1) / (COUNTS + 1).sum())
    b_c = class_softmax.class_log_probs(unigram.log(), classes)
    zeros = torch.zeros(WORDS, HIDDEN, dtype=torch.float64)
    output = Output(zeros, unigram.log(), zeros[: len(classes)], b_c, classes)
    torch.testing.assert_close(class_softmax.word_log_probs(zeros[:1], output).exp()[0], unigram)


# -- the classes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
def test_places_are_those_of_the_words(classes: WordClasses) -> None:
    together = [classes.words[classes.class_of[classes.words] == number].tolist() for number in range(len(classes))]
    assert sorted(word for words in together for word in words) == list(range(WORDS))
    assert [len(words) for words in together] == classes.sizes
    for word in range(WORDS):
        assert classes.words[classes.places[word]] == word
        assert together[classes.class_of[word]][classes.places_within[word]] == word


def test_the_start_is_with_the_end() -> None:
    assert all(classes.class_of[START] == classes.class_of[END] for classes in CLASSES.values())
    assert len(CLASSES["as of Brown"]) == 6  # of seven: that of <s> is gone


def test_frequent_words_are_in_small_classes() -> None:
    counts = (10_000 / np.arange(1, 401)).astype(int)
    sizes = {power: frequency_classes(counts, power=power).sizes for power in (0.0, 0.5, 1.0)}
    assert max(sizes[0.0]) - min(sizes[0.0]) <= 1 + 1  # <s> has moved
    assert sizes[0.5] == sorted(sizes[0.5])
    assert max(sizes[0.0]) < max(sizes[0.5]) < max(sizes[1.0])


def test_the_ideal_class_size() -> None:
    """The tutorial's question: of classes of one size, those of sqrt(|V|) words cost the least."""
    words = 400
    counts = np.ones(words, int)
    costs = {classes: expected_cost(frequency_classes(counts, classes, power=0), counts) for classes in range(5, 80)}
    assert min(costs, key=lambda classes: costs[classes]) == 20
    assert costs[20] == pytest.approx(2 * words**0.5, abs=0.1)
    assert len(frequency_classes(counts)) == 20


def test_small_classes_for_frequent_words_cost_less() -> None:
    counts = (10_000 / np.arange(1, 401)).astype(int)
    small = expected_cost(frequency_classes(counts, power=0.5), counts)
    assert small < 0.9 * expected_cost(frequency_classes(counts), counts)
