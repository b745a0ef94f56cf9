"""The ladder: every kind of model on the same laboratory text, a row each, down to the floor.

A row says what the test text costs by the model, how far that is above the floor, how often the model is right about
contrasts, and what it took: seconds and megabytes. The same rows become plain text, Markdown and JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from dragoman.evaluation.floor import Floor, LanguageModelEvaluation
from dragoman.evaluation.lab_reference import PhenomenonAccuracies as Accuracies
from dragoman.evaluation.lab_reference import accuracies_as_dicts, distance_label
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy
from dragoman.report.charts import FLOOR_LABEL as FLOOR
from dragoman.report.charts import Proportion
from dragoman.report.evaluation import MIN_PAIRS
from dragoman.report.page import PageSection, PageTable, Paragraphs, without_empty_columns
from dragoman.report.tables import format_cell, format_table, format_with_error

WINDOW = 4  # words that a model of order 5 sees: what is decided farther away is beyond its window
NATS = 3  # digits
BY_DISTANCE = ("agreement", "reflexive")  # phenomena whose distances are told apart
PAIR_COUNT = "of how many"  # the row that says it
ABOVE = "nats above the floor"
COSTS = ("perplexity", "by class", ABOVE, "seconds", "MB")
LEGEND = f"""\
Perplexity: out of how many words, on average, does the model pick the next one? An unknown word is paid for in full, \
as one of 10,000,000; by class, it only costs being unknown. No model can be expected below the floor, which is what \
the text costs by the grammar it was drawn from; nats above it are a token's, by class; ± is a standard error. \
Seconds are those of training, a mixture's with those of its members; MB are those of the model on disk.

% of contrasts whose right sentence is the more probable one; guessing gives 50. Near: fewer than {WINDOW} words \
between what decides and what is decided, so that models of order 5 see both; far: {WINDOW} or more. All four: % of \
the crossed quadruples (who does what to what) that are right altogether; guessing gives 6."""


@dataclass(frozen=True)
class AccuracyColumn:
    """What models are asked: contrasts of a phenomenon, all of them or those near or far."""

    name: str
    phenomenon: str
    least: int = 0  # words between, at least
    below: float = math.inf  # and fewer than this
    all_four: bool = False  # count whole quadruples

    def accuracy(self, accuracies: Accuracies) -> MinimalPairAccuracy:
        own = (
            accuracy
            for (phenomenon, distance), accuracy in accuracies.items()
            if phenomenon == self.phenomenon and self.least <= distance < self.below
        )
        return sum(own, MinimalPairAccuracy())

    def share(self, accuracies: Accuracies) -> float:
        """How often a model is right, from 0 to 1; undefined where nothing was asked."""
        accuracy = self.accuracy(accuracies)
        return accuracy.group_accuracy if self.all_four else accuracy.accuracy


ACCURACY_COLUMNS = (
    AccuracyColumn("agreement", "agreement"),
    AccuracyColumn("reflexive, near", "reflexive", below=WINDOW),
    AccuracyColumn("reflexive, far", "reflexive", least=WINDOW),
    AccuracyColumn("selection, near", "selection", below=WINDOW),
    AccuracyColumn("all four, near", "selection", below=WINDOW, all_four=True),
    AccuracyColumn("all four, far", "selection", least=WINDOW, all_four=True),
    AccuracyColumn("topic", "topic"),
    AccuracyColumn("register", "register"),
    AccuracyColumn("article", "article"),
)


@dataclass(frozen=True)
class LanguageModelRung:
    """One model of the ladder, measured."""

    name: str
    measured: LanguageModelEvaluation
    accuracies: Accuracies
    seconds: float  # of training
    megabytes: float  # on disk

    @property
    def accuracy_by_column(self) -> dict[str, float]:
        """How often it is right, by the name of the question."""
        return {question.name: question.share(self.accuracies) for question in ACCURACY_COLUMNS}

    @property
    def floor(self) -> Floor:
        assert self.measured.floor is not None, "the truth is known"
        return self.measured.floor

    def cost_cells(self) -> list[object]:
        """The cells of `COSTS`; without a floor nothing is above it."""
        gap, likelihood = self.measured.gap, self.measured.likelihood
        above = None if gap is None else format_with_error(*gap.by_class.estimate, NATS)
        took = [f"{self.seconds:,.1f}", f"{self.megabytes:,.1f}"]
        return [likelihood.perplexity, likelihood.perplexity_class, above, *took]

    def accuracy_cells(self) -> list[object]:
        """The cells of `QUESTIONS`, in percent."""
        return [None if math.isnan(share) else f"{100 * share:.1f}" for share in self.accuracy_by_column.values()]

    def as_dict(self) -> dict[str, Any]:
        about = {"model": self.name, "seconds": round(self.seconds, 3), "megabytes": round(self.megabytes, 3)}
        asked = {"contrasts": accuracies_as_dicts(self.accuracies)} if self.accuracies else {}
        return {**about, **self.measured.as_dict(), **asked}


def ladder_text(rungs: Sequence[LanguageModelRung]) -> str:
    """The table in two halves, so that it fits a terminal: what models cost, and what they get right."""
    tables = (format_table(half.headers, half.rows) for half in _halves(rungs))
    return "\n\n".join([*tables, *(fill(paragraph, 120) for paragraph in LEGEND.split("\n\n"))])


def costs_table(rungs: Sequence[LanguageModelRung], name: str, caption: str = "") -> PageTable:
    """What models cost, and what they took; of any text, so that there is no floor.  # name: of the first column"""
    return without_empty_columns(
        PageTable([name, *COSTS], [[rung.name, *rung.cost_cells()] for rung in rungs], caption)
    )


def ladder_section(rungs: Sequence[LanguageModelRung]) -> PageSection:
    """The same, and by distance, for a page."""
    return PageSection("Language models", [*_halves(rungs), Paragraphs(LEGEND), *_distance_tables(rungs)])


def _halves(rungs: Sequence[LanguageModelRung]) -> tuple[PageTable, PageTable]:
    costs = [[rung.name, *rung.cost_cells()] for rung in rungs]
    right = [[rung.name, *rung.accuracy_cells()] for rung in rungs]
    return (
        PageTable(["English", *COSTS], [*costs, [FLOOR, *_costs_of_truth(rungs[0].floor)]]),
        PageTable(["% right", *_names()], [*right, [PAIR_COUNT, *_asked(rungs[0])]]),
    )


def distances_text(rungs: Sequence[LanguageModelRung]) -> str:
    """How often each model is right by how far what decides is from what is decided."""
    return "\n\n".join(format_table(own.headers, own.rows) for own in _distance_tables(rungs))


def _distance_tables(rungs: Sequence[LanguageModelRung]) -> list[PageTable]:
    return [
        PageTable([f"% right, {phenomenon}", *names], [[rung.name, *_by_distance(rung, phenomenon)] for rung in rungs])
        for phenomenon, names in _distances(rungs[0]).items()
    ]


def distance_shares(rungs: Sequence[LanguageModelRung]) -> dict[str, dict[str, dict[str, Proportion]]]:
    """The same for a picture: {phenomenon: {model: {distance: share}}}."""
    return {
        phenomenon: {
            rung.name: {
                distance_label(least).replace(" and more", "+"): Proportion(own.accuracy, own.pairs)
                for (name, least), own in sorted(rung.accuracies.items())
                if name == phenomenon and own.pairs >= MIN_PAIRS
            }
            for rung in rungs
        }
        for phenomenon in _distances(rungs[0])
    }


def _distances(rung: LanguageModelRung) -> dict[str, list[str]]:
    """The classes of distance of each phenomenon that has several, with how many words there are between."""
    found: dict[str, list[str]] = {}
    for (phenomenon, least), own in sorted(rung.accuracies.items()):
        if phenomenon in BY_DISTANCE and own.pairs >= MIN_PAIRS:
            found.setdefault(phenomenon, []).append(f"{distance_label(least)} between")
    return found


def _by_distance(rung: LanguageModelRung, phenomenon: str) -> list[object]:
    own = [accuracy for (name, _), accuracy in sorted(rung.accuracies.items()) if name == phenomenon]
    return [f"{100 * accuracy.accuracy:.1f}" for accuracy in own if accuracy.pairs >= MIN_PAIRS]


def ladder_markdown(rungs: Sequence[LanguageModelRung]) -> str:
    """The whole table in Markdown."""
    rows: list[list[object]] = [
        *([rung.name, *rung.cost_cells(), *rung.accuracy_cells()] for rung in rungs),
        [FLOOR, *_costs_of_truth(rungs[0].floor), *[""] * len(ACCURACY_COLUMNS)],
        [PAIR_COUNT, *[""] * len(COSTS), *_asked(rungs[0])],
    ]
    lines: list[list[object]] = [
        ["English", *COSTS, *_names()],
        ["---", *["---:"] * (len(COSTS) + len(ACCURACY_COLUMNS))],
        *rows,
    ]
    whole = "\n".join(f"| {' | '.join(map(format_cell, line))} |" for line in lines)
    distances = f"\n```\n{distances_text(rungs)}\n```\n" if _distances(rungs[0]) else ""
    return f"{whole}\n\n{LEGEND}\n{distances}"


def ladder_dict(rungs: Sequence[LanguageModelRung], about: Mapping[str, Any]) -> dict[str, Any]:
    """The same as plain values, with all distances, and how it was made."""
    return {**about, "floor": rungs[0].floor.as_dict(), "models": [rung.as_dict() for rung in rungs]}


def _names() -> list[str]:
    return [question.name for question in ACCURACY_COLUMNS]


def _costs_of_truth(floor: Floor) -> list[object]:
    return [format_with_error(*floor.perplexity), format_with_error(*floor.perplexity_class), "0", None, None]


def _asked(rung: LanguageModelRung) -> list[object]:
    """How many contrasts, or quadruples, each question has."""
    found = [(question, question.accuracy(rung.accuracies)) for question in ACCURACY_COLUMNS]
    return [own.groups if question.all_four else own.pairs for question, own in found]
