"""How often models are right about the laboratory's contrasts, as a table: by phenomenon and distance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy, accuracy_by_kind
from dragoman.lab.minimal_pairs import DISTANCE_CLASSES, MinimalPair, distance_class
from dragoman.models.language_model import LanguageModel
from dragoman.report.tables import format_table

Kind = tuple[str, int]  # phenomenon, and the smallest distance of its class
Accuracies = dict[Kind, MinimalPairAccuracy]
Results = dict[str, Accuracies]  # of each model
MIN_PAIRS = 10  # contrasts, below which a share says nothing
LEGEND = f"""\
% of contrasts whose right sentence is the more probable one; one half where both are alike. Guessing gives 50%, and
6% on all four of a group. Distances of which there are fewer than {MIN_PAIRS} contrasts have no row of their own."""


def minimal_pair_accuracies(models: Mapping[str, LanguageModel], pairs: Sequence[MinimalPair]) -> Results:
    """How often each model is right, by phenomenon and class of distance."""

    def kind(contrast: MinimalPair) -> Kind:
        return contrast.phenomenon, distance_class(contrast.distance)

    return {name: accuracy_by_kind(model, pairs, kind) for name, model in models.items()}


def minimal_pair_table(title: str, results: Results) -> str:
    """A row for each phenomenon, one for each class of distance where there are several, and all four of a group."""
    first, *_ = results.values()
    rows: list[list[object]] = []
    for phenomenon in dict.fromkeys(name for name, _ in first):
        rows += _rows(phenomenon, [_of(phenomenon, found) for found in results.values()])
    headers = [title, "distance", "contrasts", *results]
    return f"{format_table(headers, rows)}\n\n{LEGEND}"


def accuracies_as_dicts(accuracies: Accuracies) -> list[dict[str, Any]]:
    """The accuracies of one model as plain values, by phenomenon and class of distance."""
    return [
        {
            "phenomenon": phenomenon,
            "distance_from": least,
            "contrasts": own.pairs,
            "accuracy": own.accuracy,
            "groups": own.groups,
            "groups_accuracy": own.group_accuracy,
        }
        for (phenomenon, least), own in sorted(accuracies.items())
    ]


def _rows(phenomenon: str, parts: list[dict[int, MinimalPairAccuracy]]) -> Iterator[list[object]]:
    """Of one phenomenon: the accuracies of each model by distance."""
    wholes = [_sum(part) for part in parts]
    yield [phenomenon, "", wholes[0].pairs, *(_percent(whole.accuracy) for whole in wholes)]
    if wholes[0].groups < wholes[0].pairs:
        yield ["  all four of a group", "", wholes[0].groups, *(_percent(whole.group_accuracy) for whole in wholes)]
    if len(parts[0]) > 1:
        for least in sorted(least for least, own in parts[0].items() if own.pairs >= MIN_PAIRS):
            shares = [_percent(part[least].accuracy) for part in parts]
            yield ["", f"{distance_label(least)} words between", parts[0][least].pairs, *shares]


def _of(phenomenon: str, found: Accuracies) -> dict[int, MinimalPairAccuracy]:
    return {least: own for (name, least), own in found.items() if name == phenomenon}


def _sum(parts: dict[int, MinimalPairAccuracy]) -> MinimalPairAccuracy:
    return sum(parts.values(), MinimalPairAccuracy())


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def distance_label(least: int) -> str:
    """The class of distance that begins here."""
    following = [start for start in DISTANCE_CLASSES if start > least]
    if not following:
        return f"{least} and more"
    return f"{least} to {following[0] - 1}" if following[0] - 1 > least else str(least)
