"""Evaluation of translators by `dragoman evaluate`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dragoman.cli.messages import info, status, warn_if_mostly_unknown
from dragoman.cli.option_groups import OptionGroup
from dragoman.cli.options import (
    BeamSize,
    CoveragePenalty,
    Length,
    ShortlistFrom,
    SrcField,
    Threads,
    UnknownReplacementOptions,
    check_output_file,
    file_option,
    limited_threads,
    option,
)
from dragoman.core.defaults import DEFAULT_LENGTH, MAX_TOKENS
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.tokenizer import LinePairs
    from dragoman.evaluation.significance import BaselineComparison
    from dragoman.evaluation.translator import ReferenceData, TranslatorEvaluation
    from dragoman.models.translation import BaseTranslator


@dataclass(frozen=True)
class TranslatorEvaluationOptions(OptionGroup):
    panel = "Translators"

    src: Annotated[str | None, file_option("--src", help="Text to translate, one sentence per line.")] = None
    ref: Annotated[
        str | None, file_option("--ref", "--tgt", help="References: line i is the translation of line i of --src.")
    ] = None
    src_field: SrcField = None
    ref_field: Annotated[
        str | None,
        option("--ref-field", metavar="NAME", help="Column or key of the references, for .tsv and .jsonl files."),
    ] = None
    ensemble: Annotated[bool, option("--ensemble", help="Use several translators as an ensemble.")] = False
    beam_size: BeamSize = 5
    length: Length = DEFAULT_LENGTH
    coverage_penalty: CoveragePenalty = 0.0
    shortlist: ShortlistFrom = None
    tokenised: Annotated[
        bool | None,
        option(
            "--tokenised/--raw",
            help="Use words as they are (tok:none), or let sacreBLEU tokenise (13a). Default: as the training text.",
        ),
    ] = None
    by_length: Annotated[bool, option("--by-length", help="Also print BLEU by the length of the source.")] = False
    diagnose: Annotated[
        bool,
        option(
            "--diagnose",
            help="Also count search errors (the reference has a higher score than the translation) and model errors.",
        ),
    ] = False
    output: Annotated[Path | None, file_option("--output", help="Write the translations to this file.")] = None
    threads: Threads = None

    def given(self) -> list[str]:
        """Return the names of the options that are not at their defaults."""
        default = type(self)()
        names = [field.name for field in fields(self) if getattr(self, field.name) != getattr(default, field.name)]
        return [f"--{name.replace('_', '-')}" for name in names]


def evaluate_translators(
    models: Sequence[Path],
    options: TranslatorEvaluationOptions,
    unknowns: UnknownReplacementOptions,
    *,
    floor: bool,
    as_json: bool,
) -> None:
    """Translate the text with each system, and print scores."""
    from dragoman.evaluation.significance import compare_to_first

    src, ref = _check_options(models, options)
    with limited_threads(options.threads):
        systems = _load_systems(models, options)
        lines = _read_lines(src, ref, options, systems.values())
        references = _reference_data(src, ref, lines, options, systems.values(), floor=floor)
        evaluations = {
            name: _evaluate(name, model, lines, references, options, unknowns) for name, model in systems.items()
        }
    comparisons = compare_to_first(
        {name: (result.bleu_statistics, result.chrf_statistics) for name, result in evaluations.items()}
    )
    format_results = _format_json if as_json else _format_text
    print(format_results(evaluations, comparisons, options, unknowns), flush=True)
    if options.output is not None:  # last, so that the scores are printed even if the file cannot be written
        _write(next(iter(evaluations.values())).texts, options.output)


def _check_options(models: Sequence[Path], options: TranslatorEvaluationOptions) -> tuple[str, str]:
    """Return the files of source and references, or raise an error if options contradict each other."""
    from dragoman.combine.load_translators import check_distinct

    if options.src is None or options.ref is None:
        raise DataError("--src and --ref must be given together: the text to translate and its translation")
    if options.diagnose and options.shortlist is not None:
        raise DataError("--diagnose scores references without a shortlist; remove --shortlist")
    check_distinct(models)
    if options.output is not None:
        if len(models) > 1 and not options.ensemble:
            raise DataError("--output is for the translations of one system; evaluate one, or use --ensemble")
        check_output_file("--output", options.output)
    return options.src, options.ref


def _load_systems(models: Sequence[Path], options: TranslatorEvaluationOptions) -> dict[str, BaseTranslator]:
    from dragoman.combine.load_translators import ensemble_of, load_with_shortlists
    from dragoman.models.loading import MODEL_CLASSES, read_model_kind

    for path in models:
        if (kind := read_model_kind(path)) in MODEL_CLASSES and kind != "translator":
            raise DataError(f"{path}: is a language model ({kind}), not a translator; evaluate it with --text FILE")
    loaded = load_with_shortlists(models, options.shortlist)
    if options.ensemble and len(loaded) > 1:
        return {" + ".join(map(str, models)): ensemble_of(models, loaded)}
    return {str(path): model for path, model in zip(models, loaded, strict=True)}


def _read_lines(
    src: str, ref: str, options: TranslatorEvaluationOptions, models: Collection[BaseTranslator]
) -> LinePairs:
    """Read the texts and check that all translators can read the source."""
    from dragoman.data.tokenizer import TREE, read_pairs
    from dragoman.models.line_translation import check_tree

    lines = read_pairs(src, ref, options.src_field, options.ref_field)
    for model in models:
        model.length_handling(options.length)
        if model.source.format == TREE:
            for number, line in enumerate(lines.source, 1):
                check_tree(line, src, number, MAX_TOKENS, "remove the pair")
        else:
            warn_if_mostly_unknown(model.source.encode(lines.source), src)
    return lines


def _reference_data(
    src: str,
    ref: str,
    lines: LinePairs,
    options: TranslatorEvaluationOptions,
    models: Collection[BaseTranslator],
    *,
    floor: bool,
) -> ReferenceData:
    from dragoman.evaluation.lab_reference import reference_data_of
    from dragoman.evaluation.translator import ReferenceData

    tokenised = {model.target.tokenised for model in models} if options.tokenised is None else {options.tokenised}
    if len(tokenised) > 1:
        raise DataError("some were trained on tokenised text and some on raw text; give --tokenised or --raw for all")
    data = reference_data_of(src, ref, lines.target) if floor else ReferenceData(lines.target)
    return replace(data, tokenised=tokenised.pop())


def _evaluate(
    name: str,
    model: BaseTranslator,
    lines: LinePairs,
    references: ReferenceData,
    options: TranslatorEvaluationOptions,
    unknowns: UnknownReplacementOptions,
) -> TranslatorEvaluation:
    from dragoman.evaluation.translator import evaluate_translator

    with status(f"{name}: translating"):
        return evaluate_translator(
            model,
            lines.source,
            references,
            options.beam_size,
            length=options.length,
            coverage=options.coverage_penalty,
            diagnose=options.diagnose,
            unknown_replacer=unknowns.load(model),
        )


def _format_json(
    evaluations: Mapping[str, TranslatorEvaluation],
    comparisons: Sequence[BaselineComparison],
    options: TranslatorEvaluationOptions,
    unknowns: UnknownReplacementOptions,
) -> str:
    search: dict[str, Any] = {
        "beam_size": options.beam_size,
        "length": options.length,
        "coverage_penalty": options.coverage_penalty,
        **unknowns.as_dict(),
        **({} if options.shortlist is None else {"shortlist": str(options.shortlist)}),
    }
    reports = [{"model": name, **result.as_dict(), **search} for name, result in evaluations.items()]
    if not options.by_length:
        for report in reports:
            del report["by_length"]
    several = {"models": reports, "paired_bootstrap": [comparison.as_dict() for comparison in comparisons]}
    return json.dumps(reports[0] if len(reports) == 1 else several, allow_nan=False)


def _format_text(
    evaluations: Mapping[str, TranslatorEvaluation],
    comparisons: Sequence[BaselineComparison],
    options: TranslatorEvaluationOptions,
    unknowns: UnknownReplacementOptions,
) -> str:
    from dragoman.report.translators import SearchDescription, evaluation_text

    has_shortlist, is_replaced = options.shortlist is not None, unknowns.enabled
    penalty = options.coverage_penalty
    search = SearchDescription(options.beam_size, options.length, penalty, has_shortlist, is_replaced)
    return evaluation_text(evaluations, comparisons, search, by_length=options.by_length)


def _write(translations: Sequence[str], path: Path) -> None:
    from dragoman.io.storage import atomic_file

    with atomic_file(path) as temporary:
        temporary.write_text("".join(f"{text}\n" for text in translations), encoding="utf-8", newline="\n")
    info(f"{path}: the translations")
