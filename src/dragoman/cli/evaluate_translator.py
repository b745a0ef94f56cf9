"""Evaluation of translators by `dragoman evaluate`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import info, status, warn, warn_if_mostly_unknown, warn_if_unfinished
from dragoman.cli.option_groups import OptionGroup, option
from dragoman.cli.options import (
    DEFAULT_SEARCH,
    NO_PAIR_FILE,
    Metrics,
    NoSplit,
    PairFileOptions,
    SearchOptions,
    SrcField,
    Threads,
    check_output_file,
    limited_threads,
    parse_metrics,
)
from dragoman.core.defaults import MAX_TOKENS
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.evaluation.significance import BaselineComparison
    from dragoman.evaluation.translator import ReferenceData, TranslatorEvaluation
    from dragoman.models.translation import BaseTranslator


@dataclass(frozen=True)
class TranslatorEvaluationOptions(OptionGroup):
    panel = "Translators"

    src: Annotated[str | None, option("--src FILE", "Text to translate, one sentence per line.")] = None
    ref: Annotated[
        str | None, option("--ref, --tgt FILE", "References, each line the translation of the same line of --src.")
    ] = None
    src_field: SrcField = None
    ref_field: Annotated[
        str | None,
        option("--ref-field, --tgt-field NAME", "Column or key of the references, for .tsv and .jsonl files."),
    ] = None
    pair_file: PairFileOptions = NO_PAIR_FILE
    ensemble: Annotated[bool, option("--ensemble", "Use several translators as an ensemble.")] = False
    search: SearchOptions = DEFAULT_SEARCH
    no_split: NoSplit = False
    tokenised: Annotated[
        bool | None,
        option(
            "--tokenised/--raw",
            "Use words as they are (tok:none), or let sacreBLEU tokenise (13a). Default: by the training text and the "
            "references.",
        ),
    ] = None
    metrics: Metrics = ""
    by_length: Annotated[bool, option("--by-length", "Also print BLEU by the length of the source.")] = False
    diagnose: Annotated[
        bool,
        option(
            "--diagnose",
            "Also count search errors (the reference has a higher score than the translation) and model errors. The "
            "search is over all words.",
        ),
    ] = False
    output: Annotated[Path | None, option("--output FILE", "Write the translations to this file.")] = None
    threads: Threads = None

    def given(self) -> list[str]:
        """Return the names of the options that are not at their defaults."""
        groups = (
            (self, TranslatorEvaluationOptions()),
            (self.search, DEFAULT_SEARCH),
            (self.pair_file, NO_PAIR_FILE),
        )
        names = [name for group, default in groups for name in vars(group) if vars(group)[name] != vars(default)[name]]
        return [f"--{name.replace('_', '-')}" for name in names if name not in ("search", "pair_file")]


def evaluate_translators(
    models: Sequence[Path],
    options: TranslatorEvaluationOptions,
    *,
    precision: str | None = None,
    floor: bool,
    as_json: bool,
) -> None:
    """Translate the text with each system, and print scores."""
    from dragoman.evaluation.significance import compare_to_first
    from dragoman.evaluation.translator import evaluate_translator
    from dragoman.io.files import write_text
    from dragoman.report.translators import SearchDescription, evaluation_text

    if options.pair_file.pairs is None and (options.src is None or options.ref is None):
        raise DataError("--src and --ref must be given together: the text to translate and its translation")
    search, metrics = options.search, parse_metrics(options.metrics)
    evaluations: dict[str, TranslatorEvaluation] = {}
    with limited_threads(options.threads):
        systems = _load_systems(models, options, precision)
        lines, references = _read(options, systems.values(), floor=floor)
        for name, model in systems.items():
            with status(f"{name}: translating"):
                search_kwargs = search.search_kwargs(model)
                evaluations[name] = evaluate_translator(
                    model,
                    lines,
                    references,
                    search.beam_size,
                    split_sentences=not options.no_split,
                    diagnose=options.diagnose,
                    metrics=metrics,
                    **search_kwargs,
                )
        _warn_if_not_paired(lines, next(iter(evaluations.values())), options)
    comparisons = compare_to_first({name: result.task_scores.statistics for name, result in evaluations.items()})
    if as_json:
        print(_format_json(evaluations, comparisons, options), flush=True)
    else:
        summary = SearchDescription(
            search.beam_size,
            search.length,
            search.coverage_penalty,
            shortlist=any(result.with_shortlist for result in evaluations.values()),
            unknowns_replaced=search.replaces_unknowns,
            whole_lines=options.no_split,
        )
        print(evaluation_text(evaluations, comparisons, summary, by_length=options.by_length), flush=True)
    if options.output is not None:  # last, so that the scores are printed even if the file cannot be written
        write_text(options.output, "".join(f"{text}\n" for text in next(iter(evaluations.values())).texts))
        info(f"{options.output}: the translations")


def _load_systems(
    models: Sequence[Path], options: TranslatorEvaluationOptions, precision: str | None
) -> dict[str, BaseTranslator]:
    """Check the options that concern the systems, and load them."""
    from dragoman.combine.load_translators import ensemble_of, load_with_shortlists, parse_shortlist
    from dragoman.models.loading import MODEL_CLASSES, TRANSLATOR_KINDS, check_distinct, read_model_kind

    shortlist = parse_shortlist(options.search.shortlist)
    if options.diagnose and isinstance(shortlist, Path):
        raise DataError("--diagnose scores references without a shortlist; remove --shortlist")
    check_distinct(models)
    if options.output is not None and len(models) > 1 and not options.ensemble:
        raise DataError("--output is for the translations of one system; evaluate one, or use --ensemble")
    check_output_file("--output", options.output)
    for path in models:
        if (kind := read_model_kind(path)) in MODEL_CLASSES and kind not in TRANSLATOR_KINDS:
            raise DataError(f"{path}: is a language model ({kind}), not a translator; evaluate it with --text FILE")
    loaded = load_with_shortlists(models, shortlist, precision)
    warn_if_unfinished(models)
    if options.ensemble and len(loaded) > 1:
        return {" + ".join(map(str, models)): ensemble_of(models, loaded)}
    return {str(path): model for path, model in zip(models, loaded, strict=True)}


def _read(
    options: TranslatorEvaluationOptions, models: Collection[BaseTranslator], *, floor: bool
) -> tuple[list[str], ReferenceData]:
    """Read the texts, and check that all translators can read the source."""
    from dragoman.data.tokenizer import TREE
    from dragoman.evaluation.lab_reference import reference_data_of
    from dragoman.evaluation.translator import ReferenceData, are_tokenised
    from dragoman.models.input_checks import pair_warnings
    from dragoman.models.line_translation import check_tree

    lines = options.pair_file.read(options.src, options.ref, options.src_field, options.ref_field, "--src, --ref")
    src, ref = options.src or lines.name, options.ref or lines.name
    for model in models:
        model.length_handling(options.search.length)
        if model.source.format == TREE:
            for number, line in enumerate(lines.source, 1):
                check_tree(line, src, number, MAX_TOKENS, "remove the pair")
        else:
            source, _ = model.read_pairs(lines.source, lines.target)
            warn_if_mostly_unknown(model.source.encode(source), src)
            for message in pair_warnings(model.source, model.target, (lines.source, lines.target), (src, ref)):
                warn(message)
    tokenised = {
        are_tokenised(lines.target, model.target) if options.tokenised is None else options.tokenised
        for model in models
    }
    if len(tokenised) > 1:
        raise DataError("some were trained on tokenised text and some on raw text; give --tokenised or --raw for all")
    references = reference_data_of(src, ref, lines.target) if floor else ReferenceData(lines.target)
    return lines.source, replace(references, tokenised=tokenised.pop())


def _warn_if_not_paired(
    lines: Sequence[str], evaluation: TranslatorEvaluation, options: TranslatorEvaluationOptions
) -> None:
    """Warn if neither the translations nor their sources fit the references."""
    from dragoman.doctor.text_pairing import fit_line_by_line

    references = evaluation.reference_data.references
    if fit_line_by_line(evaluation.texts, references) is False and fit_line_by_line(lines, references) is False:
        src, ref = options.src or options.pair_file.pairs, options.ref or options.pair_file.pairs
        fit = "the references fit the sources no better than lines paired at random"
        warn(f"{ref}: {fit}; is each line the translation of the same line of {src}?")


def _format_json(
    evaluations: Mapping[str, TranslatorEvaluation],
    comparisons: Sequence[BaselineComparison],
    options: TranslatorEvaluationOptions,
) -> str:
    search: dict[str, object] = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in vars(options.search).items()
        if value is not None and value is not False
    }
    if options.no_split:
        search["no_split"] = True
    if "lexicon" in search:
        search.pop("replace_unknowns", None)
    reports = [{"model": name, **result.as_dict(), **search} for name, result in evaluations.items()]
    if not options.by_length:
        for report in reports:
            del report["by_length"]
    for report, result in zip(reports, evaluations.values(), strict=True):
        if result.with_shortlist:
            report.setdefault("shortlist", "stored")
    several = {"models": reports, "paired_bootstrap": [comparison.as_dict() for comparison in comparisons]}
    return json.dumps(reports[0] if len(reports) == 1 else several, allow_nan=False)
