"""dragoman evaluate"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli import options
from dragoman.cli.messages import doubt

if TYPE_CHECKING:
    from dragoman.evaluation.likelihood import Likelihood


def evaluate(
    models: options.Models,
    text: options.Text,
    field: options.Field = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object; what is infinite is null.")] = False,
) -> None:
    """Report how probable models find a text. Of several models: a table.

    \b
    Example:
      dragoman evaluate kn5 --text test.txt
      dragoman evaluate kn3 kn5 both --text test.txt --json
    """
    results = _likelihoods(models, text, field)
    if as_json:
        reports = [{"model": str(path), **result.as_dict()} for path, result in results]
        report: dict[str, Any] = reports[0] if len(reports) == 1 else {"models": reports}
        print(json.dumps(report, allow_nan=False))
    elif len(results) == 1:
        print(_report(*results[0]))
    else:
        print(_comparison(results))


def _likelihoods(models: list[Path], text: str, field: str | None) -> list[tuple[Path, Likelihood]]:
    """Each model's likelihood. The text is read once, and turned into numbers once for each vocabulary."""
    from dragoman.evaluation.likelihood import likelihood
    from dragoman.loading import load
    from dragoman.text.corpus import Corpus
    from dragoman.text.formats import read_text, source_name
    from dragoman.text.scan import scan

    loaded = [(path, load(path)) for path in models]
    scanned = scan(read_text(text, options.field_of(text, field)))
    results, corpus = [], None
    for path, model in loaded:
        if corpus is None or corpus.vocab != model.vocab:
            corpus = Corpus.from_scan(scanned, model.vocab)
            doubt(corpus, f"{source_name(text)}, by the vocabulary of {path}")
        results.append((path, likelihood(model, corpus)))
    return results


def _report(path: Path, result: Likelihood) -> str:
    from dragoman.report.tables import table

    rows: list[tuple[str, object, str]] = [
        ("sentences", result.sentences, "lines, empty ones too"),
        ("words", result.words, ""),
        ("tokens", result.tokens, "words and sentence ends </s>: what is predicted"),
        ("unknown words", result.unknown_words, "words outside the vocabulary"),
        ("log-likelihood", result.log_likelihood, "natural log; an unknown word costs its class <unk>"),
        ("log-likelihood unknown", result.log_likelihood_unknown, "which unknown words they were"),
        ("perplexity", result.perplexity, "a token, unknown words paid for in full"),
        ("perplexity words", result.perplexity_words, "the same price, but </s> is not counted"),
        ("perplexity class", result.perplexity_class, "a token, an unknown word costs only its class"),
        ("perplexity known", result.perplexity_known, "a token, unknown words left out"),
        ("bits per character", _bits(result), f"of {result.characters:,} characters, paid in full"),
    ]
    if result.impossible:
        rows.append(("impossible tokens", result.impossible, "of probability 0: perplexity is infinite"))
    lines = [table([str(path), "", ""], rows), "", _paid(result)]
    if result.found_orders:
        found = [(order, count, 100 * count / result.tokens) for order, count in sorted(result.found_orders.items())]
        lines += ["", table(["n-grams of order", "found for tokens", "%"], found)]
    return "\n".join(lines)


def _paid(result: Likelihood) -> str:
    """What the two halves of the price come to."""
    from dragoman.report.tables import cell

    main = f"the model paid {cell(-result.log_likelihood / max(1, result.tokens))} nats a token"
    if not result.unknown_words:
        return f"{main}; there were no unknown words"
    identity = -result.log_likelihood_unknown / result.unknown_words
    return f"{main}, and the unknown-word model {cell(identity)} more for each unknown word"


def _bits(result: Likelihood) -> str:
    from dragoman.report.tables import cell

    bits = result.bits_per_character
    return f"{bits:.4f}" if math.isfinite(bits) else cell(bits)


def _comparison(results: list[tuple[Path, Likelihood]]) -> str:
    from dragoman.report.tables import table

    headers = ["model", "perplexity", "words", "class", "known", "bits/char", "unknown", "log-lik.", "log-lik. unknown"]
    rows = [
        (
            str(path),
            *(result.perplexity, result.perplexity_words, result.perplexity_class, result.perplexity_known),
            *(_bits(result), result.unknown_words, result.log_likelihood, result.log_likelihood_unknown),
        )
        for path, result in results
    ]
    _, first = results[0]
    caption = f"{first.sentences:,} sentences, {first.words:,} words, {first.tokens:,} tokens"
    return (
        f"{table(headers, rows)}\n\n{caption}; perplexity: in full, by words without </s>, by class, known words only"
    )
