"""Tables of the likelihood of a text under language models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.evaluation.dynamic_evaluation import DynamicEvaluation
from dragoman.evaluation.floor import LanguageModelEvaluation
from dragoman.evaluation.likelihood import Likelihood
from dragoman.report.evaluation import floor_table, gap_text
from dragoman.report.tables import format_cell, format_table, format_with_error


@dataclass(frozen=True)
class NamedEvaluation:
    """The evaluation of one model on a text."""

    path: str
    evaluation: LanguageModelEvaluation
    carries: bool  # whether the model keeps its state from one sentence to the next
    dynamic: DynamicEvaluation | None  # settings of dynamic evaluation, if used

    @property
    def name(self) -> str:
        return self.path if self.dynamic is None else f"{self.path} (dynamic)"

    def as_dict(self) -> dict[str, Any]:
        dynamic = {} if self.dynamic is None else {"dynamic_evaluation": asdict(self.dynamic)}
        return {"model": self.path, **dynamic, "carries": self.carries, **self.evaluation.as_dict()}


def likelihood_text(result: NamedEvaluation) -> str:
    """Return all figures of one model, with explanations."""
    likelihood, floor = result.evaluation.likelihood, _floor_cells(result.evaluation)
    rows: list[tuple[str, object, str]] = [
        ("sentences", likelihood.sentences, f"lines, including empty ones; {_context(result)}"),
        ("words", likelihood.words, ""),
        ("tokens", likelihood.tokens, "words and sentence ends </s>: all predictions"),
        ("unknown words", likelihood.unknown_words, "words outside the vocabulary"),
        ("log-likelihood", likelihood.log_likelihood, "natural log; an unknown word counts as <unk>"),
        ("log-likelihood unknown", likelihood.log_likelihood_unknown, "of the spellings of unknown words"),
        ("perplexity", likelihood.perplexity, "per token, with the spellings of unknown words"),
        ("perplexity words", likelihood.perplexity_words, "the same, but per word without </s>"),
        ("perplexity class", likelihood.perplexity_class, "per token, an unknown word counts as <unk>"),
        ("perplexity known", likelihood.perplexity_known, "per token, without unknown words"),
        ("bits per character", _format_bits(likelihood), f"over {likelihood.characters:,} characters"),
    ]
    if likelihood.impossible:
        rows.append(("impossible tokens", likelihood.impossible, "with probability 0: perplexity is infinite"))
    if floor:
        table = format_table(
            [result.name, "", "floor", ""], [(row, value, floor.get(row, ""), note) for row, value, note in rows]
        )
    else:
        table = format_table([result.name, "", ""], rows)
    lines = [table, "", _mean_costs(likelihood)]
    if result.evaluation.gap is not None:
        lines += [gap_text(result.evaluation.gap), "floor: the values of the true distribution, ± standard error"]
    if likelihood.matched_orders:
        orders = sorted(likelihood.matched_orders.items())
        counts = [(order, count, 100 * count / likelihood.tokens) for order, count in orders]
        lines += ["", format_table(["n-grams of order", "used for tokens", "%"], counts)]
    return "\n".join(lines)


def _context(result: NamedEvaluation) -> str:
    if result.dynamic is not None:
        return "the model learned from the sentences before"
    return "the state is kept between them" if result.carries else "each is scored separately"


def _floor_cells(evaluation: LanguageModelEvaluation) -> dict[str, object]:
    floor = evaluation.floor
    if floor is None:
        return {}
    return {
        "perplexity": format_with_error(*floor.perplexity),
        "perplexity words": format_with_error(*floor.perplexity_words),
        "perplexity class": format_with_error(*floor.perplexity_class),
        "bits per character": format_with_error(*floor.bits_per_character, digits=4),
    }


def _mean_costs(likelihood: Likelihood) -> str:
    per_token = format_cell(-likelihood.log_likelihood / max(1, likelihood.tokens))
    if not likelihood.unknown_words:
        return f"{per_token} nats per token; there are no unknown words"
    per_unknown = format_cell(-likelihood.log_likelihood_unknown / likelihood.unknown_words)
    return f"{per_token} nats per token, and {per_unknown} more for the spelling of each unknown word"


def _format_bits(likelihood: Likelihood) -> str:
    bits = likelihood.bits_per_character
    return f"{bits:.4f}" if math.isfinite(bits) else format_cell(bits)


def likelihood_table(results: Sequence[NamedEvaluation]) -> str:
    """Return several models as a table with one row each."""
    headers = ["model", "perplexity", "words", "class", "known", "bits/char", "unknown", "log-lik.", "log-lik. unknown"]
    rows = []
    for result in results:
        likelihood = result.evaluation.likelihood
        perplexities = (
            *(likelihood.perplexity, likelihood.perplexity_words),
            *(likelihood.perplexity_class, likelihood.perplexity_known),
        )
        log_likelihoods = likelihood.log_likelihood, likelihood.log_likelihood_unknown
        rows.append([result.name, *perplexities, _format_bits(likelihood), likelihood.unknown_words, *log_likelihoods])
    first = results[0].evaluation.likelihood
    sizes = f"{first.sentences:,} sentences, {first.words:,} words, {first.tokens:,} tokens"
    parts = [
        format_table(headers, rows),
        f"{sizes}; perplexity: with spellings of unknown words, per word without </s>, by class, of known words",
    ]
    if carrying := [result.name for result in results if result.carries]:
        parts.append(f"the state is kept between sentences by {', '.join(carrying)}")
    if results[0].evaluation.floor is not None:
        parts.append(floor_table([(result.name, result.evaluation) for result in results]))
        parts.append("floor: the values of the true distribution, ± standard error; nats per token above it")
    return "\n\n".join(parts)
