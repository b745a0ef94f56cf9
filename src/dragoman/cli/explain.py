"""dragoman explain"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from dragoman.cli.options import Model, Prefix, option
from dragoman.core.errors import DataError


def explain(
    model: Model,
    prefix: Prefix = "",
    k: Annotated[int, typer.Option("-k", min=0, help="Number of the most probable next words.")] = 5,
    words: Annotated[str, option("--words", metavar="W,W,...", help="Other next words to explain.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
) -> None:
    """Show how features contribute to the next word's probability.

    The score of a word is the sum of its column, and the softmax of the scores gives probabilities. A dash means that
    the feature has no weight for the word. For log-linear models.

    \b
    Example:
      dragoman explain maxent "farmers eat" --words hay,grass
    """
    from dragoman.models.loading import load_language_model
    from dragoman.models.loglinear.model import LogLinearModel
    from dragoman.report.language_models import format_explanation

    loaded = load_language_model(model)
    if not isinstance(loaded, LogLinearModel):
        remedy = "give a log-linear model (dragoman train log-linear)"
        raise DataError(f"{model}: a {loaded.kind} model has no features to explain; {remedy}")
    explanation = loaded.explain(prefix, words=[word for word in words.split(",") if word], k=k)
    print(json.dumps(asdict(explanation), ensure_ascii=False) if as_json else format_explanation(explanation))
