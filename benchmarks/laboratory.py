"""n-gram models on lab text: the gap to the floor, accuracy on minimal pairs, and learning curves.

    python benchmarks/laboratory.py [--language en] [--sentences 20000] [--seed 1] [--json FILE] [--pictures DIR]

Models of every smoothing method and of orders 1 to 7 are trained on the same lab text. They are compared with the exact
floor of a test text and evaluated on minimal pairs. Then models are trained on texts of the sizes --sizes for learning
curves, and with three seeds for the standard deviation. The vocabulary of a model is that of its training text, so a
larger text has more known words. The full perplexity includes the spellings of unknown words; it has the same floor for
all models, so the curves are comparable. By class, each vocabulary has a different floor. Unknown words are uniform
over 10,000,000 words, the default. Only the texts are random, and depend on the seed.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import mean, stdev

from dragoman import Corpus, NgramModel
from dragoman.evaluation.floor import FloorGap, LanguageModelEvaluation, TrueLogProbs, evaluate_language_model
from dragoman.evaluation.lab_reference import lab_true_log_probs
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy, accuracy_by_kind
from dragoman.lab.lab import german_english_lab
from dragoman.lab.minimal_pairs import DISTANCE_CLASSES, MinimalPair, distance_class, sample_minimal_pairs
from dragoman.ngram.smoothing import SMOOTHINGS
from dragoman.report.charts import Proportion, draw_accuracy_by_distance, draw_curves_by_size
from dragoman.report.language_models import floor_table
from dragoman.report.tables import format_table, format_with_error
from texts_and_results import write_json

ORDERS = range(1, 8)
DEFAULT_ORDER = 5  # for tables with one order
BEST_SMOOTHING = "modified-kneser-ney"
DISTANCE_ORDERS = (1, 2, 3, 5, 7)  # for results by distance
LONG_DISTANCE_PHENOMENA = {
    "de": ("agreement", "particle", "selection"),
    "en": ("agreement", "reflexive", "selection"),
}
QUADRUPLES = "selection"  # the phenomenon whose minimal pairs are in groups of four
SIZES = "1000,2000,5000,10000,20000,50000,100000,200000"
NUM_SEEDS = 3
DEV_SENTENCES, TEST_SENTENCES = 1000, 10_000
MIN_PAIRS = 30  # minimal pairs per point of a chart

PairKind = tuple[str, int]  # phenomenon, and smallest distance of its class


@dataclass(frozen=True)
class Texts:
    """Texts encoded with the vocabulary of the training text."""

    train: Corpus
    dev: Corpus
    test: Corpus
    true_log_probs: TrueLogProbs  # of the test text

    @classmethod
    def from_sentences(cls, language: str, train: Sequence[str], dev: Sequence[str], test: Sequence[str]) -> Texts:
        train_corpus = Corpus.from_sentences(train)
        dev_corpus, test_corpus = (Corpus.from_sentences(text, train_corpus.vocab) for text in (dev, test))
        return cls(train_corpus, dev_corpus, test_corpus, lab_true_log_probs(language, test_corpus))

    def train_model(self, smoothing: str, order: int) -> NgramModel:
        return NgramModel.train(self.train, smoothing=smoothing, order=order, heldout=self.dev)

    def evaluate(self, model: NgramModel) -> LanguageModelEvaluation:
        return evaluate_language_model(model, self.test, self.true_log_probs)


@dataclass(frozen=True)
class Result:
    """One model compared with the floor, and its accuracy on minimal pairs."""

    smoothing: str
    order: int
    evaluation: LanguageModelEvaluation
    accuracy: dict[PairKind, MinimalPairAccuracy]
    notes: tuple[str, ...]  # discounts that could not be computed

    @property
    def name(self) -> str:
        return f"{self.smoothing}, order {self.order}"

    def on(self, phenomenon: str) -> MinimalPairAccuracy:
        """Return the accuracy on a phenomenon at all distances."""
        parts = (accuracy for (name, _), accuracy in self.accuracy.items() if name == phenomenon)
        return sum(parts, MinimalPairAccuracy())

    @property
    def phenomena(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.accuracy))

    @property
    def mean_accuracy(self) -> float:
        """The mean over phenomena, with equal weights."""
        return mean(self.on(name).accuracy for name in self.phenomena)

    @property
    def all_four(self) -> float:
        """The share of quadruples of which all four minimal pairs are right."""
        return self.on(QUADRUPLES).group_accuracy

    def as_dict(self) -> dict[str, object]:
        accuracies = [
            {"phenomenon": name, "distance_from": distance, **asdict(accuracy)}
            for (name, distance), accuracy in self.accuracy.items()
        ]
        description = {"smoothing": self.smoothing, "order": self.order, "notes": self.notes}
        return {**description, **self.evaluation.as_dict(), "contrasts": accuracies}


@dataclass(frozen=True)
class Point:
    """One model of a learning curve, or of the results over seeds."""

    smoothing: str
    order: int
    sentences: int
    seed: int
    vocabulary: int
    unknown: float  # share of the words of the test text
    evaluation: LanguageModelEvaluation
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.smoothing}, order {self.order}"

    def nats(self, *, by_class: bool = False) -> float:
        """Return the gap to the floor."""
        gap = floor_gap(self.evaluation)
        return (gap.by_class if by_class else gap.full).value

    def as_dict(self) -> dict[str, object]:
        description = {"smoothing": self.smoothing, "order": self.order, "seed": self.seed, "notes": self.notes}
        text = {"train_sentences": self.sentences, "vocabulary": self.vocabulary, "unknown_share": self.unknown}
        return {**description, **text, **self.evaluation.as_dict()}


def floor_gap(evaluation: LanguageModelEvaluation) -> FloorGap:
    assert evaluation.gap is not None, "the true probabilities are known"
    return evaluation.gap


# -- measurements ----------------------------------------------------------------------------------------------------


def pair_kind(pair: MinimalPair) -> PairKind:
    return pair.phenomenon, distance_class(pair.distance)


def measure_all(texts: Texts, pairs: Sequence[MinimalPair]) -> Iterator[Result]:
    """Measure every smoothing method at every order."""
    for smoothing, order in product(SMOOTHINGS, ORDERS):
        model = texts.train_model(smoothing, order)
        accuracy = accuracy_by_kind(model, pairs, pair_kind)
        yield Result(smoothing, order, texts.evaluate(model), accuracy, model.notes)


def measure_points(texts: Texts, models: Sequence[tuple[str, int]], seed: int) -> Iterator[Point]:
    sentences, vocabulary = texts.train.num_sentences, len(texts.train.vocab)
    unknown = len(texts.test.unknown_positions) / texts.test.num_words
    for smoothing, order in models:
        model = texts.train_model(smoothing, order)
        yield Point(smoothing, order, sentences, seed, vocabulary, unknown, texts.evaluate(model), model.notes)


# -- tables ----------------------------------------------------------------------------------------------------------


def main_results(results: Sequence[Result]) -> list[Result]:
    """Select every smoothing method at one order, and the best method at every order."""
    by_smoothing = [result for result in results if result.order == DEFAULT_ORDER]
    by_order = [r for r in results if r.smoothing == BEST_SMOOTHING and r.order != DEFAULT_ORDER]
    return by_smoothing + by_order


def phenomena_table(results: Sequence[Result]) -> str:
    names = results[0].phenomena
    rows = [[r.name, *(percent(r.on(name).accuracy) for name in names), percent(r.all_four)] for r in results]
    counts = [*(results[0].on(name).pairs for name in names), results[0].on(QUADRUPLES).groups]
    return format_table(["% right", *names, "all four"], [*rows, ["minimal pairs", *counts]])


def smoothing_by_order_table(title: str, results: Sequence[Result], value: Callable[[Result], object]) -> str:
    by_model = {(result.smoothing, result.order): value(result) for result in results}
    rows = [[smoothing, *(by_model[smoothing, order] for order in ORDERS)] for smoothing in SMOOTHINGS]
    return format_table([title, *(f"order {order}" for order in ORDERS)], rows)


def format_nats(value: float) -> float | str:
    return f"{value:.3f}" if math.isfinite(value) else value


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def distance_table(results: Sequence[Result], phenomena: Sequence[str], always_singular: dict[int, float]) -> str:
    """Format accuracies by phenomenon, distance and order, with the accuracy of always choosing the singular."""
    selected = [r for r in results if r.smoothing == BEST_SMOOTHING and r.order in DISTANCE_ORDERS]
    rows: list[list[object]] = []
    for phenomenon, distance in product(phenomena, DISTANCE_CLASSES):
        accuracies = [result.accuracy.get((phenomenon, distance), MinimalPairAccuracy()) for result in selected]
        pairs, groups, label = accuracies[0].pairs, accuracies[0].groups, distance_label(distance)
        singular = percent(always_singular[distance]) if phenomenon == "agreement" else None
        if pairs:
            rows.append([phenomenon, label, pairs, singular, *(percent(a.accuracy) for a in accuracies)])
        if groups < pairs:
            rows.append(["  all four", label, groups, None, *(percent(a.group_accuracy) for a in accuracies)])
    orders = (f"order {result.order}" for result in selected)
    return format_table(["% right", "words between", "minimal pairs", "always singular", *orders], rows)


def singular_shares(pairs: Sequence[MinimalPair], language: str) -> dict[int, float]:
    """Return the share of agreement pairs whose correct form is singular, by class of distance."""
    singular: dict[int, list[bool]] = {}
    for pair in pairs:
        if pair.phenomenon == "agreement":
            words = zip(pair.right.split(), pair.wrong.split(), strict=True)
            right, wrong = next((right, wrong) for right, wrong in words if right != wrong)
            singular.setdefault(distance_class(pair.distance), []).append(is_singular(right, wrong, language))
    return {distance: mean(values) for distance, values in singular.items()}


def is_singular(form: str, other: str, language: str) -> bool:
    """Return whether a form of a verb is the third person singular, given that one of two forms is.

    >>> is_singular("kisses", "kiss", "en"), is_singular("have", "has", "en"), is_singular("sind", "ist", "de")
    (True, False, False)
    """
    if language == "en":
        return (form.endswith("s"), len(form)) > (other.endswith("s"), len(other))
    return other.endswith("n") or other == "sind"


def distance_label(distance: int) -> str:
    """Return the range of the class of distances that begins here."""
    following = [start for start in DISTANCE_CLASSES if start > distance]
    if not following:
        return f"{distance}+"
    last = following[0] - 1
    return f"{distance}-{last}" if last > distance else str(distance)


def curve_table(points: Sequence[Point], *, by_class: bool = False) -> str:
    sizes = sorted({point.sentences for point in points})
    title = "nats above the floor, by class" if by_class else "nats above the floor, full"
    curves = learning_curves(points, by_class=by_class)
    rows = [[name, *(format_nats(values[size]) for size in sizes)] for name, values in curves.items()]
    return format_table([title, *(f"{size:,}" for size in sizes)], rows)


def vocabulary_table(points: Sequence[Point]) -> str:
    by_size = {point.sentences: point for point in points}
    rows = [[p.sentences, p.vocabulary, percent(p.unknown), *floors(p.evaluation)] for _, p in sorted(by_size.items())]
    return format_table(["sentences", "vocabulary", "% unknown", "floor, full", "floor, by class"], rows)


def floors(evaluation: LanguageModelEvaluation) -> tuple[float | str, float | str]:
    floor = evaluation.floor
    assert floor is not None, "the true probabilities are known"
    return format_with_error(*floor.perplexity), format_with_error(*floor.perplexity_class)


def learning_curves(points: Sequence[Point], *, by_class: bool = False) -> dict[str, dict[int, float]]:
    """Return {model: {sentences: nats above the floor}}."""
    curves: dict[str, dict[int, float]] = {}
    for point in points:
        curves.setdefault(point.name, {})[point.sentences] = point.nats(by_class=by_class)
    return curves


def seeds_table(points: Sequence[Point]) -> str:
    """Format the mean and standard deviation over seeds."""
    rows = []
    for smoothing in dict.fromkeys(point.smoothing for point in points):
        nats = [point.nats() for point in points if point.smoothing == smoothing]
        if all(map(math.isfinite, nats)):
            rows.append([smoothing, f"{mean(nats):.3f}", f"{stdev(nats):.4f}", *(f"{value:.3f}" for value in nats)])
    seeds = sorted({point.seed for point in points})
    headers = [f"order {DEFAULT_ORDER}", "mean", "standard deviation", *(f"seed {seed}" for seed in seeds)]
    return format_table(headers, rows)


# -- charts ----------------------------------------------------------------------------------------------------------


def draw_charts(results: Sequence[Result], points: Sequence[Point], phenomena: Sequence[str], directory: Path) -> None:
    """Draw the learning curves, without infinite values, and the accuracies by distance."""
    finite = [point for point in points if math.isfinite(point.nats())]
    at_default_order = [point for point in finite if point.order == DEFAULT_ORDER]
    with_best_smoothing = [point for point in finite if point.smoothing == BEST_SMOOTHING]
    draw_curves_by_size(
        {name.partition(", ")[0]: curve for name, curve in learning_curves(at_default_order).items()},
        directory / "laboratory-smoothings.svg",
        title=f"Learning curves of {DEFAULT_ORDER}-gram models by smoothing",
    )
    draw_curves_by_size(
        dict(sorted((name.partition(", ")[2], curve) for name, curve in learning_curves(with_best_smoothing).items())),
        directory / "laboratory-orders.svg",
        title=f"Learning curves of {BEST_SMOOTHING} by order",
        ordered=True,
    )
    draw_accuracy_by_distance(
        {phenomenon: lines for phenomenon in phenomena if (lines := accuracy_lines(results, phenomenon))},
        directory / "laboratory-distance.svg",
        title=f"Accuracy of {BEST_SMOOTHING} on minimal pairs",
    )


def accuracy_lines(results: Sequence[Result], phenomenon: str) -> dict[str, dict[str, Proportion]]:
    """Return {model: {class of distance: accuracy}}, where there are enough minimal pairs."""
    lines: dict[str, dict[str, Proportion]] = {}
    for result, distance in product(results, DISTANCE_CLASSES):
        accuracy = result.accuracy.get((phenomenon, distance), MinimalPairAccuracy())
        selected = result.smoothing == BEST_SMOOTHING and result.order in DISTANCE_ORDERS
        if selected and accuracy.pairs >= MIN_PAIRS:
            line = lines.setdefault(f"order {result.order}", {})
            line[distance_label(distance)] = Proportion(accuracy.accuracy, accuracy.pairs)
    return lines


# -- the command -----------------------------------------------------------------------------------------------------


def text_generator(language: str, sentences: int, seed: int, sizes: Sequence[int]) -> Callable[[int, int], Texts]:
    """Return a function that generates texts of a size and a seed. The test text is always the same.

    The training texts of the main seed are prefixes of one text, which is generated once.
    """
    lab = german_english_lab()
    test = lab.sentences(language, TEST_SENTENCES, seed, "test")
    longest = lab.sentences(language, max(sentences, *sizes), seed, "train")

    def generate(size: int, text_seed: int) -> Texts:
        train = longest[:size] if text_seed == seed else lab.sentences(language, size, text_seed, "train")
        dev = lab.sentences(language, DEV_SENTENCES, text_seed, "dev")
        return Texts.from_sentences(language, train, dev, test)

    return generate


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=("de", "en"), default="en")
    parser.add_argument("--sentences", type=int, default=20_000, help="training sentences for the tables")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--contrasts", type=int, default=300, help="minimal pairs per phenomenon and class of distance")
    parser.add_argument("--sizes", default=SIZES, help="training sentences for the learning curves")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    parser.add_argument("--pictures", type=Path, help="directory for the charts")
    return parser.parse_args()


def main() -> None:
    start = time.perf_counter()
    arguments = parse_arguments()
    warnings.simplefilter("ignore")  # discounts that could not be computed are printed below the tables
    language, seed, sentences = arguments.language, arguments.seed, arguments.sentences
    phenomena = LONG_DISTANCE_PHENOMENA[language]
    sizes = [int(size) for size in arguments.sizes.split(",")]
    generate = text_generator(language, sentences, seed, sizes)
    pairs = sample_minimal_pairs(language, arguments.contrasts, seed)
    results = list(measure_all(generate(sentences, seed), pairs))
    print_results(results, distance_table(results, phenomena, singular_shares(pairs, language)))
    at_default_order = [(smoothing, DEFAULT_ORDER) for smoothing in SMOOTHINGS]
    models = list(dict.fromkeys([*at_default_order, *((BEST_SMOOTHING, order) for order in ORDERS)]))
    curves = [point for size in sizes for point in measure_points(generate(size, seed), models, seed)]
    seeds = range(seed, seed + NUM_SEEDS)
    by_seed = [point for s in seeds for point in measure_points(generate(sentences, s), at_default_order, s)]
    print_curves(curves, by_seed, sentences)
    description: dict[str, object] = {
        "command": shlex.join(["python", *sys.argv]),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "seconds": round(time.perf_counter() - start),
    }
    print("\n" + "; ".join(f"{name}: {value}" for name, value in description.items()))
    parts: dict[str, Sequence[Result | Point]] = {"results": results, "curve": curves, "spread": by_seed}
    report = description | {name: [measured.as_dict() for measured in part] for name, part in parts.items()}
    write_json(arguments.json, report)
    if arguments.pictures:
        draw_charts(results, curves, phenomena, arguments.pictures)


def print_results(results: Sequence[Result], by_distance: str) -> None:
    selected = main_results(results)

    def nats_above_floor(result: Result) -> float | str:
        return format_nats(floor_gap(result.evaluation).full.estimate.value)

    print(floor_table([(result.name, result.evaluation) for result in selected]))
    print("\n" + smoothing_by_order_table("nats above the floor, full", results, nats_above_floor))
    print("\n" + phenomena_table(selected))
    print("\n" + smoothing_by_order_table("% right, mean of phenomena", results, lambda r: percent(r.mean_accuracy)))
    print("\n" + smoothing_by_order_table("% right, all four", results, lambda r: percent(r.all_four)))
    print("\n" + by_distance)
    print_notes((result.name, result.notes) for result in results)


def print_curves(curves: Sequence[Point], by_seed: Sequence[Point], sentences: int) -> None:
    print("\n" + curve_table(curves))
    print("\n" + curve_table(curves, by_class=True))
    print("\n" + vocabulary_table(curves))
    print_notes((f"{point.name}, {point.sentences:,} sentences", point.notes) for point in curves)
    print(f"\nnats above the floor, full, after {sentences:,} sentences, by seed:\n{seeds_table(by_seed)}")


def print_notes(notes_of_models: Iterable[tuple[str, tuple[str, ...]]]) -> None:
    """Print the messages of training, each with the models that it is about."""
    models: dict[str, list[str]] = {}
    for name, notes in notes_of_models:
        for note in notes:
            models.setdefault(note, []).append(name)
    for note, names in models.items():
        print(f"\n* {note}:\n  {'; '.join(names)}")


if __name__ == "__main__":
    main()
