"""dragoman evaluate"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli import options
from dragoman.cli.evaluate_translator import TranslatorEvaluationOptions, evaluate_translators
from dragoman.cli.lab_reference import lab_reference_scores
from dragoman.cli.messages import info, warn_if_mostly_unknown
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.translator_options import UnknownReplacementOptions
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.evaluation.dynamic_evaluation import DynamicEvaluation
    from dragoman.evaluation.floor import LanguageModelEvaluation
    from dragoman.evaluation.likelihood import Likelihood, TokenScores
    from dragoman.models.language_model import LanguageModel

CERTAIN = 3.0  # standard errors below the floor from which on something must be wrong


Text = Annotated[
    str | None,
    typer.Option(
        "--text",
        metavar="FILE",
        help="Of language models. One sentence a line: plain, .gz, .tsv or .jsonl; - is standard input.",
        show_default=False,
    ),
]


@with_option_groups
def evaluate(
    models: options.Models,
    text: Text = None,
    field: options.Field = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object; what is infinite is null.")] = False,
    no_floor: Annotated[
        bool, typer.Option("--no-floor", help="Of laboratory text: leave out what the truth itself pays.")
    ] = False,
    dynamic: Annotated[
        float | None,
        typer.Option(
            "--dynamic",
            metavar="RATE",
            help="Dynamic evaluation: let networks go on learning from this text, at this rate, each word after it was "
            "predicted. What is measured is then not the model alone, and the report says so.",
            show_default=False,
        ),
    ] = None,
    translation: TranslatorEvaluationOptions = TranslatorEvaluationOptions(),
    unknowns: UnknownReplacementOptions = UnknownReplacementOptions(),
) -> None:
    """Measure language models or translators on a text.

    Of language models (--text): how probable they find a text. Of translators (--src and --ref): BLEU and chrF by
    sacreBLEU, and how probable they find the references; of several, by paired bootstrap, whether they differ from the
    first by more than luck.

    Beside models on laboratory text stands the floor: the price by the true distribution, which in expectation no
    model can beat. Laboratory text is told by its ending, .de or .en, and by the lab.yaml beside it.

    \b
    Example:
      dragoman evaluate kn5 --text test.txt
      dragoman evaluate kn3 kn5 both --text test.txt --json
      dragoman evaluate de-en --src test.de --ref test.en
      dragoman evaluate plain attention --src test.de --ref test.en --by-length
    """
    if text is None:
        _refuse_language_model_options(field, dynamic, translation)
        evaluate_translators(models, translation, unknowns, floor=not no_floor, as_json=as_json)
        return
    if given := translation.given() or (["--replace-unknowns"] if unknowns != UnknownReplacementOptions() else []):
        raise DataError(f"{given[0]} is for translators and --text for language models; take one or the other")
    from dragoman.evaluation.dynamic_evaluation import DynamicEvaluation

    learning = None if dynamic is None else DynamicEvaluation(dynamic)
    results = _results(models, text, field, floor=not no_floor, dynamic=learning)
    if dynamic is not None:
        info(
            "dynamic evaluation: the models learned from this text while it was measured; compare them with others "
            "measured so"
        )
    if as_json:
        reports = [result.as_dict() for result in results]
        report: dict[str, Any] = reports[0] if len(reports) == 1 else {"models": reports}
        print(json.dumps(report, allow_nan=False))
    elif len(results) == 1:
        print(_report(results[0]))
    else:
        print(_comparison(results))


def _refuse_language_model_options(
    field: str | None, dynamic: float | None, translation: TranslatorEvaluationOptions
) -> None:
    if translation.src is None and translation.ref is None:
        raise DataError("nothing to evaluate on; give --text FILE, or for translators --src FILE --ref FILE")
    if field is not None or dynamic is not None:
        option = "--dynamic" if field is None else "--field"
        raise DataError(
            f"{option} is for language models and --text; for translators there is --src-field, --ref-field"
        )


@dataclass(frozen=True)
class ModelEvaluation:
    """What a text costs by one model."""

    path: Path
    measured: LanguageModelEvaluation
    carries: bool  # whether each sentence was read after those before it
    dynamic: DynamicEvaluation | None  # how the model went on learning, if it did

    @property
    def name(self) -> str:
        return str(self.path) if self.dynamic is None else f"{self.path} (dynamic)"

    def as_dict(self) -> dict[str, Any]:
        marked = {} if self.dynamic is None else {"dynamic_evaluation": asdict(self.dynamic)}
        return {"model": str(self.path), **marked, "carries": self.carries, **self.measured.as_dict()}


def _results(
    models: list[Path], text: str, field: str | None, *, floor: bool, dynamic: DynamicEvaluation | None
) -> list[ModelEvaluation]:
    """What the text costs by each model. It is read once, and turned into numbers once for each vocabulary."""
    from dragoman.data.corpus import Corpus
    from dragoman.data.formats import display_name, read_text
    from dragoman.data.scanner import scan
    from dragoman.evaluation.floor import evaluate_token_scores
    from dragoman.lab.paths import language_of

    loaded = [(path, _language_model(path)) for path in models]
    scanned = scan(read_text(text, options.field_for(text, field)))
    language = language_of(text) if floor else None
    results: list[ModelEvaluation] = []
    corpus, truth = None, None
    for path, model in loaded:
        if corpus is None or corpus.vocab != model.vocab:
            corpus = Corpus.from_scan(scanned, model.vocab)
            warn_if_mostly_unknown(corpus, f"{display_name(text)}, by the vocabulary of {path}")
            truth = lab_reference_scores(language, corpus, text) if language else None
            language = language if truth else None  # the text does not become possible by another vocabulary
        paid = evaluate_token_scores(_prices(model, corpus, dynamic), truth)
        results.append(ModelEvaluation(path, paid, model.carries, dynamic))
    _suspect(results)
    return results


def _language_model(path: Path) -> LanguageModel:
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.loading import load

    model = load(path)
    if not isinstance(model, LanguageModel):
        raise DataError(f"{path}: is a {model.kind}; evaluate it with --src FILE --ref FILE instead of --text")
    return model


def _prices(model: LanguageModel, corpus: Corpus, dynamic: DynamicEvaluation | None) -> TokenScores:
    from dragoman.evaluation.dynamic_evaluation import dynamic_token_scores
    from dragoman.evaluation.likelihood import token_scores

    return token_scores(model, corpus) if dynamic is None else dynamic_token_scores(model, corpus, dynamic)


def _suspect(results: list[ModelEvaluation]) -> None:
    """Warn of models that are better than the truth."""
    for result in results:
        if result.measured.gap is not None and result.measured.gap.is_below(CERTAIN):
            info(
                f"warning: {result.path} beats the floor by more than chance can explain: was it trained on this text?"
            )


def _report(judged: ModelEvaluation) -> str:
    from dragoman.report.tables import format_table

    name, measured = judged.name, judged.measured
    result, floor = measured.likelihood, _floor_cells(measured)
    rows: list[tuple[str, object, str]] = [
        ("sentences", result.sentences, f"lines, empty ones too, {_history(judged)}"),
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
        headers = [name, "", "floor", ""]
        lines = [format_table(headers, [(row, value, floor.get(row, ""), note) for row, value, note in rows])]
    else:
        lines = [format_table([name, "", ""], rows)]
    lines += ["", _paid(result), *_above(measured)]
    if result.found_orders:
        found = [(order, count, 100 * count / result.tokens) for order, count in sorted(result.found_orders.items())]
        lines += ["", format_table(["n-grams of order", "found for tokens", "%"], found)]
    return "\n".join(lines)


def _history(result: ModelEvaluation) -> str:
    if result.dynamic is not None:
        return "each read after learning from those before it"
    return "each read after those before it" if result.carries else "each read on its own"


def _floor_cells(measured: LanguageModelEvaluation) -> dict[str, object]:
    """The floor of each row of the report that has one."""
    floor = measured.floor
    if floor is None:
        return {}
    from dragoman.report.tables import format_with_error

    return {
        "perplexity": format_with_error(*floor.perplexity),
        "perplexity words": format_with_error(*floor.perplexity_words),
        "perplexity class": format_with_error(*floor.perplexity_class),
        "bits per character": format_with_error(*floor.bits_per_character, digits=4),
    }


def _above(measured: LanguageModelEvaluation) -> list[str]:
    if measured.gap is None:
        return []
    from dragoman.report.evaluation import gap_text

    return [gap_text(measured.gap), "the floor is what the true distribution pays, ± its standard error"]


def _paid(result: Likelihood) -> str:
    """What the two halves of the price come to."""
    from dragoman.report.tables import format_cell

    main = f"the model paid {format_cell(-result.log_likelihood / max(1, result.tokens))} nats a token"
    if not result.unknown_words:
        return f"{main}; there were no unknown words"
    identity = -result.log_likelihood_unknown / result.unknown_words
    return f"{main}, and the unknown-word model {format_cell(identity)} more for each unknown word"


def _bits(result: Likelihood) -> str:
    from dragoman.report.tables import format_cell

    bits = result.bits_per_character
    return f"{bits:.4f}" if math.isfinite(bits) else format_cell(bits)


def _comparison(results: list[ModelEvaluation]) -> str:
    from dragoman.report.tables import format_table

    headers = ["model", "perplexity", "words", "class", "known", "bits/char", "unknown", "log-lik.", "log-lik. unknown"]
    rows = [
        (
            one.name,
            *(result.perplexity, result.perplexity_words, result.perplexity_class, result.perplexity_known),
            *(_bits(result), result.unknown_words, result.log_likelihood, result.log_likelihood_unknown),
        )
        for one, result in ((one, one.measured.likelihood) for one in results)
    ]
    first = results[0].measured.likelihood
    caption = f"{first.sentences:,} sentences, {first.words:,} words, {first.tokens:,} tokens"
    explained = f"{caption}; perplexity: in full, by words without </s>, by class, known words only"
    return "\n\n".join([format_table(headers, rows), explained, *_histories(results), *_beside_the_floor(results)])


def _histories(results: list[ModelEvaluation]) -> list[str]:
    """Which models knew of the sentences before, if any did."""
    carrying = [result.name for result in results if result.carries]
    return [f"each sentence was read after those before it by {', '.join(carrying)}"] if carrying else []


def _beside_the_floor(results: list[ModelEvaluation]) -> list[str]:
    if results[0].measured.floor is None:
        return []
    from dragoman.report.evaluation import floor_table

    return [
        floor_table([(result.name, result.measured) for result in results]),
        "floor: what the true distribution pays, ± its standard error; nats above it a token: by class, then in full",
    ]
