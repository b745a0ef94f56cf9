"""dragoman evaluate"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.evaluate_translator import TranslatorEvaluationOptions, evaluate_translators
from dragoman.cli.messages import info, status, warn, warn_if_unfinished
from dragoman.cli.option_groups import option, with_option_groups
from dragoman.cli.options import SENTENCES, Field, Json, Models, Precision, encode_for_models
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.evaluation.dynamic_evaluation import DynamicEvaluation
    from dragoman.models.language_model import LanguageModel
    from dragoman.report.language_models import NamedEvaluation

SUSPICIOUS_ERRORS = 3.0  # standard errors below the floor that random variation does not explain
LANGUAGE_MODELS = "Language models"


@with_option_groups
def evaluate(
    models: Models,
    text: Annotated[
        str | None,
        option("--text FILE", f"Text for language models, {SENTENCES}; - is standard input.", panel=LANGUAGE_MODELS),
    ] = None,
    field: Field = None,
    as_json: Json = False,
    no_floor: Annotated[
        bool, option("--no-floor", "For lab text: do not compute the values of the true distribution.")
    ] = False,
    dynamic: Annotated[
        float | None,
        option(
            "--dynamic RATE",
            "Dynamic evaluation: neural networks continue to learn from this text with this learning rate, from each "
            "word after it was predicted.",
            panel=LANGUAGE_MODELS,
        ),
    ] = None,
    translation: TranslatorEvaluationOptions = TranslatorEvaluationOptions(),
    precision: Precision = None,
) -> None:
    """Measure language models or translators on a text.

    For language models (--text): likelihood and perplexity. Those per word and per character divide by the words and
    characters of the text, so that models of words, subwords and characters can be compared.

    For translators (--src and --ref, or --pairs): BLEU and chrF by sacreBLEU and the perplexity of the references; for several
    translators also, by paired bootstrap, whether they differ significantly from the first. Several models are printed
    as a table. Lines are translated as by dragoman translate: sentence by sentence, and joined.

    If the references are pronunciations, WER and PER come first; if they are single words, accuracy and CER. A source
    word that is listed several times has several references, of which the closest counts.

    For lab text, the floor is shown as well: the best possible values, by the true distribution of the text.
    Lab text is recognised by the ending .de or .en and the file lab.yaml in its directory.

    \b
    Example:
      dragoman evaluate kn5 --text test.txt
      dragoman evaluate kn3 kn5 both --text test.txt --json
      dragoman evaluate de-en --src test.de --ref test.en
      dragoman evaluate plain attention --src test.de --ref test.en --by-length
      dragoman evaluate g2p --pairs test.tsv
    """
    if text is not None:
        if names := translation.given():
            raise DataError(f"{names[0]} is for translators and --text for language models; use one of them")
        _evaluate_language_models(
            models, text, field, dynamic, precision=precision, floor=not no_floor, as_json=as_json
        )
        return
    if translation.src is None and translation.ref is None and translation.pair_file.pairs is None:
        raise DataError("no text to evaluate on; give --text FILE, or for translators --src FILE --ref FILE")
    if field is not None or dynamic is not None:
        name = "--dynamic" if field is None else "--field"
        raise DataError(f"{name} is for language models; for translators use --src-field and --ref-field")
    evaluate_translators(models, translation, precision=precision, floor=not no_floor, as_json=as_json)


def _evaluate_language_models(
    models: Sequence[Path],
    text: str,
    field: str | None,
    rate: float | None,
    *,
    precision: str | None,
    floor: bool,
    as_json: bool,
) -> None:
    from dragoman.evaluation.dynamic_evaluation import DynamicEvaluation
    from dragoman.report.language_models import likelihood_table, likelihood_text

    dynamic = None if rate is None else DynamicEvaluation(rate)
    warn_if_unfinished(models)
    loaded = [(str(path), _load(path, precision)) for path in models]
    results = _evaluate_models(loaded, text, field, dynamic, floor=floor)
    if dynamic is not None:
        info("dynamic evaluation: the models learned from this text; compare only with results of this kind")
    if as_json:
        reports = [result.as_dict() for result in results]
        print(json.dumps(reports[0] if len(reports) == 1 else {"models": reports}, allow_nan=False))
    else:
        print(likelihood_text(results[0]) if len(results) == 1 else likelihood_table(results))


def _load(path: Path, precision: str | None) -> LanguageModel:
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.loading import load

    model = load(path, precision)
    if not isinstance(model, LanguageModel):
        raise DataError(f"{path}: is a {model.kind}; evaluate it with --src FILE --ref FILE instead of --text")
    return model


def _evaluate_models(
    models: Sequence[tuple[str, LanguageModel]],
    text: str,
    field: str | None,
    dynamic: DynamicEvaluation | None,
    *,
    floor: bool,
) -> list[NamedEvaluation]:
    from dragoman.evaluation.dynamic_evaluation import dynamic_token_scores
    from dragoman.evaluation.floor import evaluate_token_scores
    from dragoman.evaluation.lab_reference import true_log_probs_of
    from dragoman.evaluation.likelihood import token_scores
    from dragoman.report.language_models import NamedEvaluation

    corpora = encode_for_models(models, text, field)
    with status("computing the floor"):
        corpus_of_vocab = {corpus.vocab: corpus for corpus in corpora} if floor else {}
        true_log_probs = {vocab: true_log_probs_of(text, corpus) for vocab, corpus in corpus_of_vocab.items()}
    results: list[NamedEvaluation] = []
    for (name, model), corpus in zip(models, corpora, strict=True):
        scores = token_scores(model, corpus) if dynamic is None else dynamic_token_scores(model, corpus, dynamic)
        evaluation = evaluate_token_scores(scores, true_log_probs.get(model.vocab))
        if evaluation.gap is not None and evaluation.gap.is_below(SUSPICIOUS_ERRORS):
            warn(f"{name} is significantly better than the floor: was it trained on this text?")
        results.append(NamedEvaluation(name, evaluation, model.carries, dynamic, model.vocab.segmenter.spec))
    return results
