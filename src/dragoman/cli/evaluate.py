"""dragoman evaluate"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli import options
from dragoman.cli.floor import known_truth
from dragoman.cli.messages import doubt, say

if TYPE_CHECKING:
    from dragoman.evaluation.floor import Measured
    from dragoman.evaluation.likelihood import Likelihood

CERTAIN = 3.0  # standard errors below the floor from which on something must be wrong


def evaluate(
    models: options.Models,
    text: options.Text,
    field: options.Field = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object; what is infinite is null.")] = False,
    no_floor: Annotated[
        bool, typer.Option("--no-floor", help="Of laboratory text: leave out what the truth itself pays.")
    ] = False,
) -> None:
    """Report how probable models find a text. Of several models: a table.

    Beside models on laboratory text stands the floor: the price by the true distribution, which in expectation no
    model can beat. Laboratory text is told by its ending, .de or .en, and by the lab.yaml beside it.

    \b
    Example:
      dragoman evaluate kn5 --text test.txt
      dragoman evaluate kn3 kn5 both --text test.txt --json
    """
    results = _results(models, text, field, floor=not no_floor)
    if as_json:
        reports = [{"model": str(path), **result.as_dict()} for path, result in results]
        report: dict[str, Any] = reports[0] if len(reports) == 1 else {"models": reports}
        print(json.dumps(report, allow_nan=False))
    elif len(results) == 1:
        print(_report(*results[0]))
    else:
        print(_comparison(results))


def _results(models: list[Path], text: str, field: str | None, *, floor: bool) -> list[tuple[Path, Measured]]:
    """What the text costs by each model. It is read once, and turned into numbers once for each vocabulary."""
    from dragoman.evaluation.floor import measured
    from dragoman.lab.place import language_of
    from dragoman.loading import load
    from dragoman.text.corpus import Corpus
    from dragoman.text.formats import read_text, source_name
    from dragoman.text.scan import scan

    loaded = [(path, load(path)) for path in models]
    scanned = scan(read_text(text, options.field_of(text, field)))
    language = language_of(text) if floor else None
    results: list[tuple[Path, Measured]] = []
    corpus, truth = None, None
    for path, model in loaded:
        if corpus is None or corpus.vocab != model.vocab:
            corpus = Corpus.from_scan(scanned, model.vocab)
            doubt(corpus, f"{source_name(text)}, by the vocabulary of {path}")
            truth = known_truth(language, corpus, text) if language else None
            language = language if truth else None  # the text does not become possible by another vocabulary
        results.append((path, measured(model, corpus, truth)))
    _suspect(results)
    return results


def _suspect(results: list[tuple[Path, Measured]]) -> None:
    """Warn of models that are better than the truth."""
    for path, result in results:
        if result.gap is not None and result.gap.is_below(CERTAIN):
            say(f"warning: {path} beats the floor by more than chance can explain: was it trained on this text?")


def _report(path: Path, measured: Measured) -> str:
    from dragoman.report.tables import table

    result, floor = measured.likelihood, _floor_cells(measured)
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
    if floor:
        headers = [str(path), "", "floor", ""]
        lines = [table(headers, [(name, value, floor.get(name, ""), note) for name, value, note in rows])]
    else:
        lines = [table([str(path), "", ""], rows)]
    lines += ["", _paid(result), *_above(measured)]
    if result.found_orders:
        found = [(order, count, 100 * count / result.tokens) for order, count in sorted(result.found_orders.items())]
        lines += ["", table(["n-grams of order", "found for tokens", "%"], found)]
    return "\n".join(lines)


def _floor_cells(measured: Measured) -> dict[str, object]:
    """The floor of each row of the report that has one."""
    floor = measured.floor
    if floor is None:
        return {}
    from dragoman.report.tables import plus_minus

    return {
        "perplexity": plus_minus(*floor.perplexity),
        "perplexity words": plus_minus(*floor.perplexity_words),
        "perplexity class": plus_minus(*floor.perplexity_class),
        "bits per character": plus_minus(*floor.bits_per_character, digits=4),
    }


def _above(measured: Measured) -> list[str]:
    if measured.gap is None:
        return []
    from dragoman.report.floor import above

    return [above(measured.gap), "the floor is what the true distribution pays, ± its standard error"]


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


def _comparison(results: list[tuple[Path, Measured]]) -> str:
    from dragoman.report.tables import table

    headers = ["model", "perplexity", "words", "class", "known", "bits/char", "unknown", "log-lik.", "log-lik. unknown"]
    rows = [
        (
            str(path),
            *(result.perplexity, result.perplexity_words, result.perplexity_class, result.perplexity_known),
            *(_bits(result), result.unknown_words, result.log_likelihood, result.log_likelihood_unknown),
        )
        for path, result in ((path, measured.likelihood) for path, measured in results)
    ]
    first = results[0][1].likelihood
    caption = f"{first.sentences:,} sentences, {first.words:,} words, {first.tokens:,} tokens"
    explained = f"{caption}; perplexity: in full, by words without </s>, by class, known words only"
    return "\n\n".join([table(headers, rows), explained, *_beside_the_floor(results)])


def _beside_the_floor(results: list[tuple[Path, Measured]]) -> list[str]:
    if results[0][1].floor is None:
        return []
    from dragoman.report.floor import floor_table

    return [
        floor_table([(str(path), measured) for path, measured in results]),
        "floor: what the true distribution pays, ± its standard error; nats above it a token: by class, then in full",
    ]
