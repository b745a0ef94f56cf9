"""dragoman explain"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from dragoman.cli.option_groups import option
from dragoman.cli.options import Json, Model, Prefix
from dragoman.core.errors import DataError


def explain(
    model: Model,
    prefix: Prefix = "",
    k: Annotated[int, option("-k", "Number of the most probable next words.", min=0)] = 5,
    words: Annotated[str, option("--words W,W,...", "Other next words to explain.")] = "",
    as_json: Json = False,
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
