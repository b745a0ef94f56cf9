"""dragoman explain"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.models.loglinear.explain import Explanation, Push


def explain(
    model: options.Model,
    prefix: Annotated[str, typer.Argument(help="The sentence so far.", show_default=False)] = "",
    k: Annotated[int, typer.Option("-k", min=0, help="How many of the most probable next words.")] = 5,
    words: Annotated[
        str, typer.Option("--words", metavar="W,W,...", help="Next words to explain besides.", show_default=False)
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
) -> None:
    """Show how features contribute to the next word's probability.

    A word's score is the sum of its column; probabilities are the scores' exponentials, made to sum to one. A dash:
    the feature has no weight for this word.

    \b
    Example:
      dragoman explain maxent "farmers eat" --words hay,grass
    """
    from dragoman.models.loading import load_language_model

    loaded = load_language_model(model)
    explained = getattr(loaded, "explain", None)
    if explained is None:
        kinds = ", ".join(_kinds())
        raise DataError(f"{model}: a {loaded.kind} model has no features to explain; kinds that have are {kinds}")
    explanation: Explanation = explained(prefix, words=[word for word in words.split(",") if word], k=k)
    print(json.dumps(asdict(explanation), ensure_ascii=False) if as_json else _told(explanation))


def _kinds() -> list[str]:
    """The kinds of models that can explain themselves."""
    from dragoman.models.loading import MODEL_CLASSES

    places = {kind: place.partition(":") for kind, place in MODEL_CLASSES.items()}
    return [
        kind for kind, (module, _, name) in places.items() if hasattr(getattr(import_module(module), name), "explain")
    ]


def _told(explanation: Explanation) -> str:
    """Two tables: how the score of each word came about, and what each feature pushes most."""
    from dragoman.report.tables import format_table

    words = explanation.words
    rows: list[list[object]] = [
        ["probability", *(f"{word.prob:.4f}" for word in words)],
        ["score", *(_rounded(word.score) for word in words)],
        ["  bias", *(_rounded(word.bias) for word in words)],
    ]
    for number, feature in enumerate(explanation.features):
        times = f" × {feature.value:g}" if feature.value != 1 else ""
        amounts = (_rounded(word.contributions[number].amount) for word in words)
        rows.append([f"  {feature.feature}{times}", *amounts])
    parts = [format_table([_shown(explanation.prefix), *(word.word for word in words)], rows)]
    if explanation.features:
        pushes = [[one.feature, _listed(one.up), _listed(one.down)] for one in explanation.features]
        parts.append(format_table(["feature", "pushes up", "pushes down"], pushes))
    if explanation.unseen:
        parts.append("never met in training: " + ", ".join(explanation.unseen))
    return "\n\n".join(parts)


def _shown(prefix: str) -> str:
    return f"{prefix} ..." if prefix else "..."


def _listed(pushes: Sequence[Push]) -> str:
    return ", ".join(f"{push.word} {_rounded(push.amount):.2f}" for push in pushes) or "-"


def _rounded(amount: float | None) -> float | None:
    """To two digits, and never -0.00."""
    return None if amount is None else round(amount, 2) + 0.0
