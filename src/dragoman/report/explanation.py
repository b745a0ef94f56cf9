"""Tables of the contributions of features to the scores of next words."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.models.loglinear.explain import Explanation, WordContribution
from dragoman.report.tables import format_table


def format_explanation(explanation: Explanation) -> str:
    """Return two tables: the parts of each word's score, and the words with the highest weights of each feature."""
    words = explanation.words
    rows: list[list[object]] = [
        ["probability", *(f"{word.prob:.4f}" for word in words)],
        ["score", *(_rounded(word.score) for word in words)],
        ["  bias", *(_rounded(word.bias) for word in words)],
    ]
    for number, feature in enumerate(explanation.features):
        factor = f" × {feature.value:g}" if feature.value != 1 else ""
        amounts = (_rounded(word.contributions[number].amount) for word in words)
        rows.append([f"  {feature.feature}{factor}", *amounts])
    prefix = f"{explanation.prefix} ..." if explanation.prefix else "..."
    parts = [format_table([prefix, *(word.word for word in words)], rows)]
    if explanation.features:
        weights = [[feature.feature, _format(feature.up), _format(feature.down)] for feature in explanation.features]
        parts.append(format_table(["feature", "highest weights", "lowest weights"], weights))
    if explanation.unseen:
        parts.append("not in the training text: " + ", ".join(explanation.unseen))
    return "\n\n".join(parts)


def _format(weights: Sequence[WordContribution]) -> str:
    return ", ".join(f"{weight.word} {_rounded(weight.amount):.2f}" for weight in weights) or "-"


def _rounded(amount: float | None) -> float | None:
    """Round to two digits, without -0.00."""
    return None if amount is None else round(amount, 2) + 0.0
