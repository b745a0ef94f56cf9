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

from dragoman.evaluation.floor import Floor, Measured
from dragoman.evaluation.minimal_pairs import Accuracy
from dragoman.report.contrasts import FEW, Accuracies, as_dicts, distance_name
from dragoman.report.figures import FLOOR, Share
from dragoman.report.page import Section, Table, Text, without_empty
from dragoman.report.tables import cell, plus_minus, table

WINDOW = 4  # words that a model of order 5 sees: what is decided farther away is beyond its window
NATS = 3  # digits
BY_DISTANCE = ("agreement", "reflexive")  # phenomena whose distances are told apart
ASKED = "of how many"  # the row that says it
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
class Question:
    """What models are asked: contrasts of a phenomenon, all of them or those near or far."""

    name: str
    phenomenon: str
    least: int = 0  # words between, at least
    below: float = math.inf  # and fewer than this
    all_four: bool = False  # count whole quadruples

    def of(self, found: Accuracies) -> Accuracy:
        own = (
            accuracy
            for (phenomenon, distance), accuracy in found.items()
            if phenomenon == self.phenomenon and self.least <= distance < self.below
        )
        return sum(own, Accuracy())

    def share(self, found: Accuracies) -> float:
        """How often a model is right, from 0 to 1; undefined where nothing was asked."""
        accuracy = self.of(found)
        return accuracy.share_of_groups if self.all_four else accuracy.share


QUESTIONS = (
    Question("agreement", "agreement"),
    Question("reflexive, near", "reflexive", below=WINDOW),
    Question("reflexive, far", "reflexive", least=WINDOW),
    Question("selection, near", "selection", below=WINDOW),
    Question("all four, near", "selection", below=WINDOW, all_four=True),
    Question("all four, far", "selection", least=WINDOW, all_four=True),
    Question("topic", "topic"),
    Question("register", "register"),
    Question("article", "article"),
)


@dataclass(frozen=True)
class Rung:
    """One model of the ladder, measured."""

    name: str
    measured: Measured
    accuracies: Accuracies
    seconds: float  # of training
    megabytes: float  # on disk

    @property
    def shares(self) -> dict[str, float]:
        """How often it is right, by the name of the question."""
        return {question.name: question.share(self.accuracies) for question in QUESTIONS}

    @property
    def floor(self) -> Floor:
        assert self.measured.floor is not None, "the truth is known"
        return self.measured.floor

    def costs(self) -> list[object]:
        """The cells of `COSTS`; without a floor nothing is above it."""
        gap, likelihood = self.measured.gap, self.measured.likelihood
        above = None if gap is None else plus_minus(*gap.by_class.estimate, NATS)
        took = [f"{self.seconds:,.1f}", f"{self.megabytes:,.1f}"]
        return [likelihood.perplexity, likelihood.perplexity_class, above, *took]

    def right(self) -> list[object]:
        """The cells of `QUESTIONS`, in percent."""
        return [None if math.isnan(share) else f"{100 * share:.1f}" for share in self.shares.values()]

    def as_dict(self) -> dict[str, Any]:
        about = {"model": self.name, "seconds": round(self.seconds, 3), "megabytes": round(self.megabytes, 3)}
        asked = {"contrasts": as_dicts(self.accuracies)} if self.accuracies else {}
        return {**about, **self.measured.as_dict(), **asked}


def ladder_text(rungs: Sequence[Rung]) -> str:
    """The table in two halves, so that it fits a terminal: what models cost, and what they get right."""
    tables = (table(half.headers, half.rows) for half in _halves(rungs))
    return "\n\n".join([*tables, *(fill(paragraph, 120) for paragraph in LEGEND.split("\n\n"))])


def costs_table(rungs: Sequence[Rung], name: str, caption: str = "") -> Table:
    """What models cost, and what they took; of any text, so that there is no floor.  # name: of the first column"""
    return without_empty(Table([name, *COSTS], [[rung.name, *rung.costs()] for rung in rungs], caption))


def ladder_section(rungs: Sequence[Rung]) -> Section:
    """The same, and by distance, for a page."""
    return Section("Language models", [*_halves(rungs), Text(LEGEND), *_distance_tables(rungs)])


def _halves(rungs: Sequence[Rung]) -> tuple[Table, Table]:
    costs = [[rung.name, *rung.costs()] for rung in rungs]
    right = [[rung.name, *rung.right()] for rung in rungs]
    return (
        Table(["English", *COSTS], [*costs, [FLOOR, *_costs_of_truth(rungs[0].floor)]]),
        Table(["% right", *_names()], [*right, [ASKED, *_asked(rungs[0])]]),
    )


def distances_text(rungs: Sequence[Rung]) -> str:
    """How often each model is right by how far what decides is from what is decided."""
    return "\n\n".join(table(own.headers, own.rows) for own in _distance_tables(rungs))


def _distance_tables(rungs: Sequence[Rung]) -> list[Table]:
    return [
        Table([f"% right, {phenomenon}", *names], [[rung.name, *_by_distance(rung, phenomenon)] for rung in rungs])
        for phenomenon, names in _distances(rungs[0]).items()
    ]


def distance_shares(rungs: Sequence[Rung]) -> dict[str, dict[str, dict[str, Share]]]:
    """The same for a picture: {phenomenon: {model: {distance: share}}}."""
    return {
        phenomenon: {
            rung.name: {
                distance_name(least).replace(" and more", "+"): Share(own.share, own.contrasts)
                for (name, least), own in sorted(rung.accuracies.items())
                if name == phenomenon and own.contrasts >= FEW
            }
            for rung in rungs
        }
        for phenomenon in _distances(rungs[0])
    }


def _distances(rung: Rung) -> dict[str, list[str]]:
    """The classes of distance of each phenomenon that has several, with how many words there are between."""
    found: dict[str, list[str]] = {}
    for (phenomenon, least), own in sorted(rung.accuracies.items()):
        if phenomenon in BY_DISTANCE and own.contrasts >= FEW:
            found.setdefault(phenomenon, []).append(f"{distance_name(least)} between")
    return found


def _by_distance(rung: Rung, phenomenon: str) -> list[object]:
    own = [accuracy for (name, _), accuracy in sorted(rung.accuracies.items()) if name == phenomenon]
    return [f"{100 * accuracy.share:.1f}" for accuracy in own if accuracy.contrasts >= FEW]


def ladder_markdown(rungs: Sequence[Rung]) -> str:
    """The whole table in Markdown."""
    rows: list[list[object]] = [
        *([rung.name, *rung.costs(), *rung.right()] for rung in rungs),
        [FLOOR, *_costs_of_truth(rungs[0].floor), *[""] * len(QUESTIONS)],
        [ASKED, *[""] * len(COSTS), *_asked(rungs[0])],
    ]
    lines: list[list[object]] = [
        ["English", *COSTS, *_names()],
        ["---", *["---:"] * (len(COSTS) + len(QUESTIONS))],
        *rows,
    ]
    whole = "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)
    distances = f"\n```\n{distances_text(rungs)}\n```\n" if _distances(rungs[0]) else ""
    return f"{whole}\n\n{LEGEND}\n{distances}"


def ladder_dict(rungs: Sequence[Rung], about: Mapping[str, Any]) -> dict[str, Any]:
    """The same as plain values, with all distances, and how it was made."""
    return {**about, "floor": rungs[0].floor.as_dict(), "models": [rung.as_dict() for rung in rungs]}


def _names() -> list[str]:
    return [question.name for question in QUESTIONS]


def _costs_of_truth(floor: Floor) -> list[object]:
    return [plus_minus(*floor.perplexity), plus_minus(*floor.perplexity_class), "0", None, None]


def _asked(rung: Rung) -> list[object]:
    """How many contrasts, or quadruples, each question has."""
    found = [(question, question.of(rung.accuracies)) for question in QUESTIONS]
    return [own.groups if question.all_four else own.contrasts for question, own in found]
