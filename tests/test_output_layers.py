"""Output layers: distributions sum to one, and training has the values and gradients of the definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.data.vocabulary import END, START
from dragoman.nn import output as output_module
from dragoman.nn.output import (
    ClassFactoredSoftmax,
    FullSoftmax,
    WordClasses,
    expected_cost,
    frequency_classes,
    target_log_probs,
)

WORDS, HIDDEN, ROWS = 23, 5, 40
COUNTS = np.array([0, 30, 4, *range(60, 20, -2)])
CLASSES = {
    "equal sizes": frequency_classes(COUNTS),
    "equal probabilities": frequency_classes(COUNTS, classes=7, power=1),
    "Brown": WordClasses.from_numbers(np.array([0, 1, 2, *(3 + word % 4 for word in range(WORDS - 3))])),
    "one class": WordClasses.from_numbers(np.zeros(WORDS, int)),
    "single words": WordClasses.from_numbers(np.arange(WORDS)),
}
every_classes = pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)


def random(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def randomised(layer: torch.nn.Module) -> torch.nn.Module:
    with torch.no_grad():
        for seed, parameter in enumerate(layer.parameters(), 3):
            parameter.copy_(random(*parameter.shape, seed=seed))
    return layer


def full() -> FullSoftmax:
    layer = FullSoftmax(WORDS, HIDDEN).double()
    randomised(layer)
    return layer


def factored(classes: WordClasses) -> ClassFactoredSoftmax:
    layer = ClassFactoredSoftmax(classes, HIDDEN).double()
    randomised(layer)
    return layer


@pytest.fixture
def x() -> Tensor:
    return random(ROWS, HIDDEN, seed=1)


@pytest.fixture
def targets() -> Tensor:
    """Any words except `<s>`; some classes occur more than once, some not at all."""
    return torch.from_numpy(np.random.default_rng(2).integers(1, WORDS // 2, ROWS))


def naive(x: Tensor, layer: ClassFactoredSoftmax) -> Tensor:
    """P(c | x) P(e | c, x), word by word."""
    W, b = layer.within.weights()
    p_class = torch.softmax(layer.classes(x), dim=1)
    exp = torch.exp(x @ W.t() + b)
    class_of = layer.class_of
    sums = torch.stack([exp[:, class_of == class_of[word]].sum(dim=1) for word in range(WORDS)], dim=1)
    return p_class[:, class_of] * exp / sums


# -- both layers -------------------------------------------------------------------------------------------------------

LAYERS = {"full": full, **{name: lambda classes=classes: factored(classes) for name, classes in CLASSES.items()}}
every_layer = pytest.mark.parametrize("name", LAYERS)


@every_layer
def test_probabilities_sum_to_one(name: str, x: Tensor) -> None:
    sums = LAYERS[name]().log_probs(x).exp().sum(dim=1)
    torch.testing.assert_close(sums, torch.ones(ROWS, dtype=torch.float64))


@every_layer
def test_the_start_symbol_is_impossible(name: str, x: Tensor) -> None:
    log_probs = LAYERS[name]().log_probs(x)
    assert (log_probs[:, START] == -torch.inf).all()
    assert torch.isfinite(log_probs[:, START + 1 :]).all()


@every_layer
def test_target_log_probs_equal_those_of_all_words(name: str, x: Tensor, targets: Tensor) -> None:
    layer = LAYERS[name]()
    expected = layer.log_probs(x).gather(1, targets[:, None])[:, 0]
    result = layer.target_log_probs(x, targets)
    torch.testing.assert_close(result, expected)
    weights = torch.linspace(0.5, 2, ROWS, dtype=torch.float64)
    inputs = [x, *layer.parameters()]
    gradients = [torch.autograd.grad((part * weights).sum(), inputs) for part in (result, expected)]
    for first, other in zip(*gradients, strict=True):
        torch.testing.assert_close(first, other)


def test_subset_scores_are_log_probs_up_to_a_constant(x: Tensor) -> None:
    layer, words = LAYERS["full"](), torch.tensor([[7, 1, 12, START], [3, 2, 7, 1]])  # of two sentences
    grid = x[:6].view(2, 3, -1)
    scores = layer.subset(words).scores(grid).log_softmax(dim=2)
    for sentence in range(2):
        expected = layer.log_probs(grid[sentence])[:, words[sentence]].log_softmax(dim=1)
        torch.testing.assert_close(scores[sentence], expected)


@every_layer
def test_one_row_and_none(name: str) -> None:
    layer, x = LAYERS[name](), random(1, HIDDEN, seed=1)
    result = layer.target_log_probs(x, torch.tensor([END]))
    torch.testing.assert_close(result, layer.log_probs(x)[:, END])
    assert layer.target_log_probs(x[:0], torch.zeros(0, dtype=torch.long)).shape == (0,)


@every_layer
def test_a_layer_can_start_as_a_unigram_model(name: str) -> None:
    layer = LAYERS[name]()
    unigram = torch.from_numpy(np.where(np.arange(WORDS) == START, 1e-300, COUNTS + 1.0))
    unigram = unigram / unigram.sum()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
    layer.start_as_unigram(unigram.log())
    torch.testing.assert_close(layer.log_probs(torch.zeros(1, HIDDEN, dtype=torch.float64)).exp()[0], unigram)


def test_a_tied_layer_uses_the_given_matrix(x: Tensor, targets: Tensor) -> None:
    layer, tied = full(), FullSoftmax(WORDS, HIDDEN, tied=True).double()
    with torch.no_grad():
        tied.bias.copy_(layer.bias)
    assert layer.weight is not None
    W = layer.weight.weight
    assert torch.equal(tied.log_probs(x, W), layer.log_probs(x))
    assert torch.equal(tied.target_log_probs(x, targets, tied=W), layer.target_log_probs(x, targets))


# -- factored by classes -----------------------------------------------------------------------------------------------


@every_classes
def test_probabilities_are_products(classes: WordClasses, x: Tensor) -> None:
    layer = factored(classes)
    torch.testing.assert_close(layer.log_probs(x).exp(), naive(x, layer))


# -- label smoothing ---------------------------------------------------------------------------------------------------


def smoothed(scores: Tensor, targets: Tensor, share: float) -> Tensor:
    """(1 - share) log p of the target + share * the mean of log p over the possible words."""
    log_probs = scores.log_softmax(dim=1)
    possible = log_probs[:, log_probs[0].isfinite()]
    return (1 - share) * log_probs.gather(1, targets[:, None])[:, 0] + share * possible.mean(dim=1)


def test_label_smoothing_over_all_words(x: Tensor, targets: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_module, "CACHE_SIZE", 16 * WORDS)  # several chunks
    layer = full()
    W, b = layer.weights()
    weights = torch.linspace(0.5, 2, ROWS, dtype=torch.float64)
    for share in (0.0, 0.3):
        expected = smoothed(x @ W.t() + b, targets, share)
        result = layer.target_log_probs(x, targets, share)
        torch.testing.assert_close(result, expected)
        with torch.no_grad():
            torch.testing.assert_close(layer.target_log_probs(x, targets, share), expected)
        inputs = [x, *layer.parameters()]
        gradients = [
            torch.autograd.grad((part * weights).sum(), inputs, retain_graph=True) for part in (result, expected)
        ]
        for first, other in zip(*gradients, strict=True):
            torch.testing.assert_close(first, other)


@every_classes
def test_label_smoothing_by_classes_smooths_both_softmaxes(classes: WordClasses, x: Tensor, targets: Tensor) -> None:
    layer = factored(classes)
    W, b = layer.within.weights()
    class_of = layer.class_of
    of_class = smoothed(layer.classes(x), class_of[targets], 0.3)
    scores = x @ W.t() + b
    within = []
    for row, word in enumerate(targets.tolist()):
        in_class = (class_of == class_of[word]) & b.isfinite()
        log_probs = scores[row, in_class].log_softmax(dim=0)
        within.append(0.7 * log_probs[int(in_class[:word].sum())] + 0.3 * log_probs.mean())
    torch.testing.assert_close(layer.target_log_probs(x, targets, 0.3), of_class + torch.stack(within))


def test_the_gradient_can_be_taken_once(x: Tensor, targets: Tensor) -> None:
    W, b = random(WORDS, HIDDEN, seed=3), random(WORDS, seed=4)
    loss = target_log_probs(x, W, b, targets).sum()
    torch.autograd.grad(loss, [W], retain_graph=True)
    with pytest.raises(RuntimeError, match="compute them again"):
        torch.autograd.grad(loss, [W])


# -- word classes ------------------------------------------------------------------------------------------------------


@every_classes
def test_positions_of_words_in_classes(classes: WordClasses) -> None:
    by_class = [classes.words[classes.class_of[classes.words] == number].tolist() for number in range(len(classes))]
    assert sorted(word for words in by_class for word in words) == list(range(WORDS))
    assert [len(words) for words in by_class] == classes.sizes
    for word in range(WORDS):
        assert classes.words[classes.positions[word]] == word
        assert by_class[classes.class_of[word]][classes.positions_within[word]] == word


def test_start_and_end_are_in_one_class() -> None:
    assert all(classes.class_of[START] == classes.class_of[END] for classes in CLASSES.values())
    assert len(CLASSES["Brown"]) == 6  # of seven: that of <s> is removed


def test_frequent_words_are_in_small_classes() -> None:
    counts = (10_000 / np.arange(1, 401)).astype(int)
    sizes = {power: frequency_classes(counts, power=power).sizes for power in (0.0, 0.5, 1.0)}
    assert max(sizes[0.0]) - min(sizes[0.0]) <= 1 + 1  # <s> has moved
    assert sizes[0.5] == sorted(sizes[0.5])
    assert max(sizes[0.0]) < max(sizes[0.5]) < max(sizes[1.0])


def test_the_ideal_class_size() -> None:
    """The tutorial's question: of classes of equal size, those of sqrt(|V|) words are the fastest."""
    words = 400
    counts = np.ones(words, int)
    costs = {classes: expected_cost(frequency_classes(counts, classes, power=0), counts) for classes in range(5, 80)}
    assert min(costs, key=lambda classes: costs[classes]) == 20
    assert costs[20] == pytest.approx(2 * words**0.5, abs=0.1)
    assert len(frequency_classes(counts)) == 20


def test_small_classes_of_frequent_words_cost_less() -> None:
    counts = (10_000 / np.arange(1, 401)).astype(int)
    small = expected_cost(frequency_classes(counts, power=0.5), counts)
    assert small < 0.9 * expected_cost(frequency_classes(counts), counts)
