"""dragoman evaluate"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.evaluate_translator import TranslatorEvaluationOptions, evaluate_translators
from dragoman.cli.messages import info, status, warn, warn_if_mostly_unknown
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.options import FORMATS, Field, Json, Models, UnknownReplacementOptions, file_option, option
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.evaluation.dynamic_evaluation import DynamicEvaluation
    from dragoman.models.language_model import LanguageModel
    from dragoman.report.language_models import NamedEvaluation

SUSPICIOUS_ERRORS = 3.0  # standard errors below the floor that random variation does not explain
LANGUAGE_MODELS = "Language models"


class TranslatorUnknownOptions(UnknownReplacementOptions):
    panel = "Translators"


@with_option_groups
def evaluate(
    models: Models,
    text: Annotated[
        str | None,
        file_option(
            "--text",
            help=f"Text for language models, one sentence per line: {FORMATS}; - is standard input.",
            rich_help_panel=LANGUAGE_MODELS,
        ),
    ] = None,
    field: Field = None,
    as_json: Json = False,
    no_floor: Annotated[
        bool, typer.Option("--no-floor", help="For lab text: do not compute the values of the true distribution.")
    ] = False,
    dynamic: Annotated[
        float | None,
        option(
            "--dynamic",
            metavar="RATE",
            help="Dynamic evaluation: neural networks continue to learn from this text with this learning rate, from "
            "each word after it was predicted.",
            rich_help_panel=LANGUAGE_MODELS,
        ),
    ] = None,
    translation: TranslatorEvaluationOptions = TranslatorEvaluationOptions(),
    unknowns: TranslatorUnknownOptions = TranslatorUnknownOptions(),
) -> None:
    """Measure language models or translators on a text.

    For language models (--text): likelihood and perplexity. For translators (--src and --ref): BLEU and chrF by
    sacreBLEU and the perplexity of the references; for several translators also, by paired bootstrap, whether they
    differ significantly from the first. Several models are printed as a table.

    For lab text, the floor is shown as well: the values of the true distribution, which are the best expected values.
    Lab text is recognised by the ending .de or .en and the file lab.yaml in its directory.

    \b
    Example:
      dragoman evaluate kn5 --text test.txt
      dragoman evaluate kn3 kn5 both --text test.txt --json
      dragoman evaluate de-en --src test.de --ref test.en
      dragoman evaluate plain attention --src test.de --ref test.en --by-length
    """
    if text is None:
        _check_translator_options(field, dynamic, translation)
        evaluate_translators(models, translation, unknowns, floor=not no_floor, as_json=as_json)
        return
    if names := [*translation.given(), *(["--replace-unknowns"] if unknowns.enabled else [])]:
        raise DataError(f"{names[0]} is for translators and --text for language models; use one of them")
    from dragoman.evaluation.dynamic_evaluation import DynamicEvaluation
    from dragoman.report.language_models import likelihood_table, likelihood_text

    learning = None if dynamic is None else DynamicEvaluation(dynamic)
    results = _evaluate_models(models, text, field, floor=not no_floor, dynamic=learning)
    if learning is not None:
        info("dynamic evaluation: the models learned from this text; compare only with results of this kind")
    if as_json:
        reports = [result.as_dict() for result in results]
        report: dict[str, Any] = reports[0] if len(reports) == 1 else {"models": reports}
        print(json.dumps(report, allow_nan=False))
    else:
        print(likelihood_text(results[0]) if len(results) == 1 else likelihood_table(results))


def _check_translator_options(
    field: str | None, dynamic: float | None, translation: TranslatorEvaluationOptions
) -> None:
    if translation.src is None and translation.ref is None:
        raise DataError("no text to evaluate on; give --text FILE, or for translators --src FILE --ref FILE")
    if field is not None or dynamic is not None:
        name = "--dynamic" if field is None else "--field"
        raise DataError(f"{name} is for language models; for translators use --src-field and --ref-field")


def _evaluate_models(
    models: list[Path], text: str, field: str | None, *, floor: bool, dynamic: DynamicEvaluation | None
) -> list[NamedEvaluation]:
    """Evaluate each model. The text is read once, and encoded once for each vocabulary."""
    from dragoman.data.corpus import Corpus
    from dragoman.data.formats import display_name, field_for, read_text
    from dragoman.data.scanner import scan
    from dragoman.evaluation.dynamic_evaluation import dynamic_token_scores
    from dragoman.evaluation.floor import evaluate_token_scores
    from dragoman.evaluation.lab_reference import true_log_probs_of
    from dragoman.evaluation.likelihood import token_scores
    from dragoman.report.language_models import NamedEvaluation

    loaded = [(path, _load(path)) for path in models]
    scanned = scan(read_text(text, field_for(text, field)))
    results: list[NamedEvaluation] = []
    corpus, true_log_probs = None, None
    for path, model in loaded:
        if corpus is None or corpus.vocab != model.vocab:
            corpus = Corpus.from_scan(scanned, model.vocab)
            warn_if_mostly_unknown(corpus, f"{display_name(text)}, by the vocabulary of {path}")
            with status("computing the floor"):
                true_log_probs = true_log_probs_of(text, corpus) if floor else None
            floor = true_log_probs is not None
        scores = token_scores(model, corpus) if dynamic is None else dynamic_token_scores(model, corpus, dynamic)
        evaluation = evaluate_token_scores(scores, true_log_probs)
        if evaluation.gap is not None and evaluation.gap.is_below(SUSPICIOUS_ERRORS):
            warn(f"{path} is significantly better than the floor: was it trained on this text?")
        results.append(NamedEvaluation(str(path), evaluation, model.carries, dynamic))
    return results


def _load(path: Path) -> LanguageModel:
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.loading import load

    model = load(path)
    if not isinstance(model, LanguageModel):
        raise DataError(f"{path}: is a {model.kind}; evaluate it with --src FILE --ref FILE instead of --text")
    return model
