"""n-gram models in the laboratory: how far above the floor they stay, what they learn, and how fast they come down.

    python benchmarks/laboratory.py [--language en] [--sentences 20000] [--seed 1] [--json FILE] [--pictures DIR]

Every smoothing at orders 1 to 7 is trained on the same laboratory text and held to the exact floor of a test text and
to the contrasts; then training texts of --sizes give the curves, and three seeds the spread. A model's vocabulary is
that of its training text, so a larger text knows more names. By the full price, where every word is spelled out, all
models have the same floor, and curves are comparable; by class each vocabulary has a floor of its own. Unknown words
are one of 10,000,000, the default. The texts depend on the seed, and nothing else here is random.
"""

from __future__ import annotations

import argparse
import json
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
from dragoman.evaluation.floor import LanguageModelEvaluation, TrueLogProbs, evaluate_language_model
from dragoman.evaluation.lab_reference import lab_true_log_probs
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy, accuracy_by_kind
from dragoman.lab.lab import german_english_lab
from dragoman.lab.minimal_pairs import DISTANCE_CLASSES, MinimalPair, distance_class, sample_minimal_pairs
from dragoman.ngram.smoothing import SMOOTHINGS
from dragoman.report.charts import Proportion, draw_accuracy_by_distance, draw_curves_by_size
from dragoman.report.evaluation import floor_table
from dragoman.report.tables import format_table, format_with_error

ORDERS = range(1, 8)
ORDER = 5  # where only one is shown
BEST = "modified-kneser-ney"
FAR_ORDERS = (1, 2, 3, 5, 7)
FAR = {  # phenomena at a distance
    "de": ("agreement", "particle", "selection"),
    "en": ("agreement", "reflexive", "selection"),
}
QUADRUPLES = "selection"  # its contrasts come in groups of four
SIZES = "1000,2000,5000,10000,20000,50000,100000,200000"
SEEDS = 3  # for the spread
DEV, TEST = 1000, 10_000  # sentences
FEWEST = 30  # contrasts behind a point of the picture

Kind = tuple[str, int]  # phenomenon, and the smallest distance of its class


@dataclass(frozen=True)
class Texts:
    """What models are trained on and held to, with the vocabulary of the training text."""

    train: Corpus
    dev: Corpus
    test: Corpus
    truth: TrueLogProbs

    @classmethod
    def of(cls, language: str, train: Sequence[str], dev: Sequence[str], test: Sequence[str]) -> Texts:
        corpus = Corpus.from_sentences(train)
        held_out, held_to = (Corpus.from_sentences(text, corpus.vocab) for text in (dev, test))
        return cls(corpus, held_out, held_to, lab_true_log_probs(language, held_to))

    def model(self, smoothing: str, order: int) -> NgramModel:
        return NgramModel.train(self.train, smoothing=smoothing, order=order, heldout=self.dev)

    def measured(self, model: NgramModel) -> LanguageModelEvaluation:
        return evaluate_language_model(model, self.test, self.truth)


@dataclass(frozen=True)
class Result:
    """One model against the floor and the contrasts."""

    smoothing: str
    order: int
    measured: LanguageModelEvaluation
    accuracy: dict[Kind, MinimalPairAccuracy]
    notes: tuple[str, ...]  # discounts that could not be computed

    @property
    def name(self) -> str:
        return f"{self.smoothing}, order {self.order}"

    def on(self, phenomenon: str) -> MinimalPairAccuracy:
        return sum((own for (name, _), own in self.accuracy.items() if name == phenomenon), MinimalPairAccuracy())

    @property
    def phenomena(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.accuracy))

    @property
    def mean_accuracy(self) -> float:
        """Over phenomena, each alike."""
        return mean(self.on(name).accuracy for name in self.phenomena)

    @property
    def all_four(self) -> float:
        return self.on(QUADRUPLES).group_accuracy

    def as_dict(self) -> dict[str, object]:
        shares = [
            {"phenomenon": name, "distance_from": least, **asdict(own)} for (name, least), own in self.accuracy.items()
        ]
        about = {"smoothing": self.smoothing, "order": self.order, "notes": self.notes}
        return {**about, **self.measured.as_dict(), "contrasts": shares}


@dataclass(frozen=True)
class Point:
    """One model of a curve, or of the spread."""

    smoothing: str
    order: int
    sentences: int
    seed: int
    vocabulary: int
    unknown: float  # share of the test text's words
    measured: LanguageModelEvaluation
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.smoothing}, order {self.order}"

    def nats(self, *, by_class: bool = False) -> float:
        gap = self.measured.gap
        assert gap is not None, "the truth is known"
        return (gap.by_class if by_class else gap.full).estimate.value

    def as_dict(self) -> dict[str, object]:
        about = {"smoothing": self.smoothing, "order": self.order, "seed": self.seed, "notes": self.notes}
        text = {"train_sentences": self.sentences, "vocabulary": self.vocabulary, "unknown_share": self.unknown}
        return {**about, **text, **self.measured.as_dict()}


# -- measuring -------------------------------------------------------------------------------------------------------


def kind(contrast: MinimalPair) -> Kind:
    return contrast.phenomenon, distance_class(contrast.distance)


def results(texts: Texts, found: Sequence[MinimalPair]) -> Iterator[Result]:
    """Every smoothing at every order."""
    for smoothing, order in product(SMOOTHINGS, ORDERS):
        model = texts.model(smoothing, order)
        yield Result(smoothing, order, texts.measured(model), accuracy_by_kind(model, found, kind), model.notes)


def points(texts: Texts, models: Sequence[tuple[str, int]], seed: int) -> Iterator[Point]:
    unknown = len(texts.test.unknown_positions) / texts.test.num_words
    for smoothing, order in models:
        model = texts.model(smoothing, order)
        sentences, vocabulary, found = texts.train.num_sentences, len(texts.train.vocab), texts.measured(model)
        yield Point(smoothing, order, sentences, seed, vocabulary, unknown, found, model.notes)


# -- tables ----------------------------------------------------------------------------------------------------------


def detail(found: Sequence[Result]) -> list[Result]:
    """Every smoothing at one order, and the best one at every order."""
    at_one = [result for result in found if result.order == ORDER]
    return [*at_one, *(result for result in found if result.smoothing == BEST and result.order != ORDER)]


def phenomena_table(found: Sequence[Result]) -> str:
    names = found[0].phenomena
    headers = ["% right", *names, "all four"]
    rows = [[r.name, *(percent(r.on(name).accuracy) for name in names), percent(r.all_four)] for r in found]
    counts = [*(found[0].on(name).pairs for name in names), found[0].on(QUADRUPLES).groups]
    return format_table(headers, [*rows, ["contrasts", *counts]])


def matrix(title: str, found: Sequence[Result], value: Callable[[Result], object]) -> str:
    """Smoothings by orders."""
    by_model = {(result.smoothing, result.order): value(result) for result in found}
    rows = [[smoothing, *(by_model[smoothing, order] for order in ORDERS)] for smoothing in SMOOTHINGS]
    return format_table([title, *(f"order {order}" for order in ORDERS)], rows)


def nats_above(result: Result) -> float | str:
    gap = result.measured.gap
    assert gap is not None, "the truth is known"
    return nats(gap.full.estimate.value)


def nats(value: float) -> float | str:
    return f"{value:.3f}" if math.isfinite(value) else value


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def distance_table(found: Sequence[Result], phenomena: Sequence[str], singular: dict[int, float]) -> str:
    """One smoothing: phenomena at a distance, by class of distance, and orders; what "always singular" would get."""
    orders = {result.order: result for result in found if result.smoothing == BEST and result.order in FAR_ORDERS}
    rows: list[list[object]] = []
    for phenomenon, least in product(phenomena, DISTANCE_CLASSES):
        own = [result.accuracy.get((phenomenon, least), MinimalPairAccuracy()) for result in orders.values()]
        always = percent(singular[least]) if phenomenon == "agreement" else None
        if own[0].pairs:
            rows.append([phenomenon, distances(least), own[0].pairs, always, *(percent(one.accuracy) for one in own)])
        if own[0].groups < own[0].pairs:
            four = (percent(one.group_accuracy) for one in own)
            rows.append(["  all four", distances(least), own[0].groups, None, *four])
    headers = ["% right", "words between", "contrasts", "always singular", *(f"order {order}" for order in orders)]
    return format_table(headers, rows)


def always_singular(found: Sequence[MinimalPair], language: str) -> dict[int, float]:
    """How many contrasts of agreement have the singular as the right form, by class of distance."""
    right: dict[int, list[bool]] = {}
    for contrast in found:
        if contrast.phenomenon == "agreement":
            words = zip(contrast.right.split(), contrast.wrong.split(), strict=True)
            form, other = next((one, another) for one, another in words if one != another)
            right.setdefault(distance_class(contrast.distance), []).append(is_singular(form, other, language))
    return {least: mean(answers) for least, answers in right.items()}


def is_singular(form: str, other: str, language: str) -> bool:
    """Which of the two forms of a verb, third person singular and plural, this is.

    >>> is_singular("kisses", "kiss", "en"), is_singular("have", "has", "en"), is_singular("sind", "ist", "de")
    (True, False, False)
    """
    if language == "en":
        return (form.endswith("s"), len(form)) > (other.endswith("s"), len(other))
    return other.endswith("n") or other == "sind"


def distances(least: int) -> str:
    """The class of distance that begins here."""
    following = [start for start in DISTANCE_CLASSES if start > least]
    if not following:
        return f"{least}+"
    return f"{least}-{following[0] - 1}" if following[0] - 1 > least else str(least)


def curve_table(curve: Sequence[Point], *, by_class: bool = False) -> str:
    sizes = sorted({point.sentences for point in curve})
    rows = [
        [name, *(nats(values[size]) for size in sizes)] for name, values in curves(curve, by_class=by_class).items()
    ]
    return format_table(
        ["nats above, " + ("by class" if by_class else "in full"), *(f"{size:,}" for size in sizes)], rows
    )


def vocabulary_table(curve: Sequence[Point]) -> str:
    by_size = {point.sentences: point for point in curve}
    rows = [[p.sentences, p.vocabulary, percent(p.unknown), *floors(p.measured)] for _, p in sorted(by_size.items())]
    return format_table(["sentences", "vocabulary", "% unknown", "floor, in full", "floor by class"], rows)


def floors(found: LanguageModelEvaluation) -> tuple[float | str, float | str]:
    floor = found.floor
    assert floor is not None, "the truth is known"
    return format_with_error(*floor.perplexity), format_with_error(*floor.perplexity_class)


def curves(curve: Sequence[Point], *, by_class: bool = False) -> dict[str, dict[int, float]]:
    """{model: {sentences: nats above the floor}}"""
    found: dict[str, dict[int, float]] = {}
    for point in curve:
        found.setdefault(point.name, {})[point.sentences] = point.nats(by_class=by_class)
    return found


def spread_table(spread: Sequence[Point]) -> str:
    """Mean and standard deviation over seeds."""
    rows = []
    for smoothing in dict.fromkeys(point.smoothing for point in spread):
        own = [point.nats() for point in spread if point.smoothing == smoothing]
        if all(map(math.isfinite, own)):
            rows.append([smoothing, f"{mean(own):.3f}", f"{stdev(own):.4f}", *(f"{value:.3f}" for value in own)])
    seeds = sorted({point.seed for point in spread})
    return format_table([f"order {ORDER}", "mean", "deviation", *(f"seed {seed}" for seed in seeds)], rows)


# -- pictures --------------------------------------------------------------------------------------------------------


def draw(found: Sequence[Result], curve: Sequence[Point], phenomena: Sequence[str], directory: Path) -> None:
    """What cannot be drawn, because it is infinite, is left out."""
    possible = [point for point in curve if math.isfinite(point.nats())]
    at_order = [point for point in possible if point.order == ORDER]
    of_best = [point for point in possible if point.smoothing == BEST]
    draw_curves_by_size(
        {name.partition(", ")[0]: line for name, line in curves(at_order).items()},
        directory / "laboratory-smoothings.svg",
        title=f"How fast {ORDER}-grams come down to the floor, by smoothing",
    )
    draw_curves_by_size(
        dict(sorted((name.partition(", ")[2], line) for name, line in curves(of_best).items())),
        directory / "laboratory-orders.svg",
        title=f"How fast {BEST} comes down to the floor, by order",
        ordered=True,
    )
    draw_accuracy_by_distance(
        {phenomenon: lines for phenomenon in phenomena if (lines := shares(found, phenomenon))},
        directory / "laboratory-distance.svg",
        title=f"How often {BEST} finds the right sentence more probable",
    )


def shares(found: Sequence[Result], phenomenon: str) -> dict[str, dict[str, Proportion]]:
    """{model: {class of distance: share}}, where there are contrasts enough."""
    lines: dict[str, dict[str, Proportion]] = {}
    for result, least in product(found, DISTANCE_CLASSES):
        own = result.accuracy.get((phenomenon, least), MinimalPairAccuracy())
        if result.smoothing == BEST and result.order in FAR_ORDERS and own.pairs >= FEWEST:
            lines.setdefault(f"order {result.order}", {})[distances(least)] = Proportion(own.accuracy, own.pairs)
    return lines


# -- the whole -------------------------------------------------------------------------------------------------------


def draw_texts(language: str, count: int, seed: int, sizes: Sequence[int]) -> Callable[[int, int], Texts]:
    """Texts of a size and a seed; a seed's longest training text is drawn once. The test text stays the same."""
    lab = german_english_lab()
    test = lab.sentences(language, TEST, seed, "test")
    longest = {seed: lab.sentences(language, max(count, *sizes), seed, "train")}

    def texts(size: int, own_seed: int) -> Texts:
        train = longest[own_seed][:size] if own_seed in longest else lab.sentences(language, size, own_seed, "train")
        return Texts.of(language, train, lab.sentences(language, DEV, own_seed, "dev"), test)

    return texts


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=("de", "en"), default="en")
    parser.add_argument("--sentences", type=int, default=20_000, help="training sentences of the tables")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--contrasts", type=int, default=300, help="for each phenomenon and class of distance")
    parser.add_argument("--sizes", default=SIZES, help="training sentences of the curves")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument("--pictures", type=Path, help="a directory for the pictures")
    return parser.parse_args()


def main() -> None:
    began = time.perf_counter()
    options = arguments()
    warnings.simplefilter("ignore")  # discounts that could not be computed are reported below the tables
    sizes = [int(size) for size in options.sizes.split(",")]
    texts = draw_texts(options.language, options.sentences, options.seed, sizes)
    pairs = sample_minimal_pairs(options.language, options.contrasts, options.seed)
    found = list(results(texts(options.sentences, options.seed), pairs))
    report_results(found, distance_table(found, FAR[options.language], always_singular(pairs, options.language)))
    models = list(dict.fromkeys([*((name, ORDER) for name in SMOOTHINGS), *((BEST, order) for order in ORDERS)]))
    curve = [point for size in sizes for point in points(texts(size, options.seed), models, options.seed)]
    seeds = range(options.seed, options.seed + SEEDS)
    at_order = [(name, ORDER) for name in SMOOTHINGS]
    spread = [point for seed in seeds for point in points(texts(options.sentences, seed), at_order, seed)]
    report_curves(curve, spread, options.sentences)
    about: dict[str, object] = {
        "command": shlex.join(["python", *sys.argv]),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "seconds": round(time.perf_counter() - began),
    }
    print("\n" + "; ".join(f"{name}: {value}" for name, value in about.items()))
    if options.json:
        parts: dict[str, Sequence[Result | Point]] = {"results": found, "curve": curve, "spread": spread}
        figures = about | {name: [one.as_dict() for one in part] for name, part in parts.items()}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if options.pictures:
        draw(found, curve, FAR[options.language], options.pictures)


def report_results(found: Sequence[Result], by_distance: str) -> None:
    shown = detail(found)
    print(floor_table([(result.name, result.measured) for result in shown]))
    print("\n" + matrix("nats above, in full", found, nats_above))
    print("\n" + phenomena_table(shown))
    print("\n" + matrix("% right, mean of phenomena", found, lambda result: percent(result.mean_accuracy)))
    print("\n" + matrix("% right, all four", found, lambda result: percent(result.all_four)))
    print("\n" + by_distance)
    print_notes((result.name, result.notes) for result in found)


def report_curves(curve: Sequence[Point], spread: Sequence[Point], size: int) -> None:
    print("\n" + curve_table(curve))
    print("\n" + curve_table(curve, by_class=True))
    print("\n" + vocabulary_table(curve))
    print_notes((f"{point.name}, {point.sentences:,} sentences", point.notes) for point in curve)
    print(f"\nnats above the floor, in full, after {size:,} sentences of three seeds:\n{spread_table(spread)}")


def print_notes(found: Iterable[tuple[str, tuple[str, ...]]]) -> None:
    """What training had to say, and of which models."""
    models: dict[str, list[str]] = {}
    for name, notes in found:
        for note in notes:
            models.setdefault(note, []).append(name)
    for note, names in models.items():
        print(f"\n* {note}:\n  {'; '.join(names)}")


if __name__ == "__main__":
    main()
