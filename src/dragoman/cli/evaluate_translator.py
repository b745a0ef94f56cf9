"""What `dragoman evaluate` does with translators."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import info, status, warn_if_mostly_unknown
from dragoman.cli.option_groups import OptionGroup
from dragoman.cli.pair_options import LinePairs, SrcField, read_pairs
from dragoman.cli.translator_options import (
    BeamSize,
    CoveragePenalty,
    Length,
    ShortlistFrom,
    Threads,
    UnknownReplacementOptions,
    check_distinct,
    check_output_file,
    check_tree,
    combine_translators,
    limited_threads,
    reads_trees,
    with_shortlists,
)
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.evaluation.significance import BaselineComparison
    from dragoman.evaluation.translator import ReferenceData, TranslatorEvaluation


@dataclass(frozen=True)
class TranslatorEvaluationOptions(OptionGroup):
    """What is translated, how, and what is told of it."""

    src: Annotated[
        str | None,
        typer.Option("--src", metavar="FILE", help="Of translators: the text to translate.", show_default=False),
    ] = None
    ref: Annotated[
        str | None,
        typer.Option(
            "--ref", "--tgt", metavar="FILE", help="Its translation: line i translates line i.", show_default=False
        ),
    ] = None
    src_field: SrcField = None
    ref_field: Annotated[
        str | None,
        typer.Option("--ref-field", metavar="NAME", help="The same of the translation.", show_default=False),
    ] = None
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="Use several translators together, as one.", show_default=False)
    ] = False
    beam_size: BeamSize = 5
    length: Length = "norm"
    coverage_penalty: CoveragePenalty = 0.0
    shortlist: ShortlistFrom = None
    tokenised: Annotated[
        bool | None,
        typer.Option(
            "--tokenised/--raw",
            help="Take words as they are (tok:none), or let sacreBLEU split them (13a). Default: as the training text.",
            show_default=False,
        ),
    ] = None
    by_length: Annotated[
        bool, typer.Option("--by-length", help="Also BLEU by the length of the source.", show_default=False)
    ] = False
    diagnose: Annotated[
        bool,
        typer.Option(
            "--diagnose",
            help="Also how often the search is to blame (the reference has a better score than what was found), and "
            "how often the model.",
            show_default=False,
        ),
    ] = False
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Keep the translations.", show_default=False)
    ] = None
    threads: Threads = None

    def given(self) -> list[str]:
        """The options that are not as they are by themselves."""
        default = type(self)()
        names = [field.name for field in fields(self) if getattr(self, field.name) != getattr(default, field.name)]
        return [f"--{name.replace('_', '-')}" for name in names]


def evaluate_translators(
    models: Sequence[Path],
    choice: TranslatorEvaluationOptions,
    unknowns: UnknownReplacementOptions,
    *,
    floor: bool,
    as_json: bool,
) -> None:
    """Translate, judge, and print what there is to say of it."""
    if choice.src is None or choice.ref is None:
        raise DataError("--src and --ref go together: the text to translate, and its translation")
    if choice.diagnose and choice.shortlist is not None:
        raise DataError("--diagnose asks what the translator itself thinks of references; leave --shortlist out for it")
    check_distinct(models)
    if choice.output is not None:
        if len(models) > 1 and not choice.ensemble:
            raise DataError("--output keeps the translations of one system; evaluate one, or several with --ensemble")
        check_output_file("--output", choice.output)
    from dragoman.evaluation.significance import compare_to_first

    with limited_threads(choice.threads):
        systems = _systems(models, choice)
        lines = _read(choice, systems.values())
        answers = _answers(choice, lines, systems.values(), floor=floor)
        named = {name: _measured(name, model, lines, answers, choice, unknowns) for name, model in systems.items()}
    beside = compare_to_first({name: (own.bleu_statistics, own.chrf_statistics) for name, own in named.items()})
    tell = _as_json if as_json else _written
    print(tell(named, beside, choice, unknowns), flush=True)
    if choice.output is not None:  # last, so that the scores are out whatever becomes of the file
        _keep(next(iter(named.values())).texts, choice.output)


# -- what is to be done ------------------------------------------------------------------------------------------------


def _systems(models: Sequence[Path], choice: TranslatorEvaluationOptions) -> dict[str, Any]:
    from dragoman.models.loading import load
    from dragoman.models.translation import BaseTranslator

    loaded = {path: load(path) for path in models}
    for path, model in loaded.items():
        if not isinstance(model, BaseTranslator):
            raise DataError(
                f"{path}: is a language model ({model.kind}), not a translator; evaluate it with --text FILE"
            )
    found = with_shortlists(models, list(loaded.values()), choice.shortlist)
    if choice.ensemble and len(found) > 1:
        return {" + ".join(map(str, models)): combine_translators(models, found)}
    return {str(path): model for path, model in zip(models, found, strict=True)}


def _read(choice: TranslatorEvaluationOptions, models: Collection[Any]) -> LinePairs:
    """The text, if all these translators can read it."""
    from dragoman.models.segmented_line import MAX_TOKENS

    assert choice.src is not None and choice.ref is not None
    lines = read_pairs(choice.src, choice.ref, choice.src_field, choice.ref_field)
    for model in models:
        model.length_handling(choice.length)
        if reads_trees(model):
            for number, line in enumerate(lines.source, 1):
                check_tree(line, choice.src, number, MAX_TOKENS, "leave the pair out")
        else:
            warn_if_mostly_unknown(model.source.encode(lines.source), choice.src)
    return lines


def _answers(
    choice: TranslatorEvaluationOptions, lines: LinePairs, models: Collection[Any], *, floor: bool
) -> ReferenceData:
    from dragoman.cli.lab_reference import lab_reference_answers
    from dragoman.evaluation.translator import ReferenceData

    assert choice.src is not None and choice.ref is not None
    known = lab_reference_answers(choice.src, choice.ref, lines.target) if floor else ReferenceData(lines.target)
    return replace(known, tokenised=_is_tokenised(choice, models))


def _is_tokenised(choice: TranslatorEvaluationOptions, models: Collection[Any]) -> bool:
    """Whether words are taken as they are: as was said, else as the translators' own text has it."""
    if choice.tokenised is not None:
        return choice.tokenised
    found = {model.target.tokenised for model in models}
    if len(found) > 1:
        raise DataError(
            "some were trained on tokenised text and some on raw: say --tokenised or --raw, so that BLEU is one"
        )
    return bool(found.pop())


# -- what is told ------------------------------------------------------------------------------------------------------


def _measured(
    name: str,
    model: Any,
    lines: LinePairs,
    answers: ReferenceData,
    choice: TranslatorEvaluationOptions,
    unknowns: UnknownReplacementOptions,
) -> TranslatorEvaluation:
    from dragoman.evaluation.translator import evaluate_translator

    with status(f"{name}: translating"):
        return evaluate_translator(
            model,
            lines.source,
            answers,
            choice.beam_size,
            length=choice.length,
            coverage=choice.coverage_penalty,
            diagnose=choice.diagnose,
            unknown_replacer=unknowns.rules(model),
        )


def _as_json(
    named: Mapping[str, TranslatorEvaluation],
    beside: Sequence[BaselineComparison],
    choice: TranslatorEvaluationOptions,
    unknowns: UnknownReplacementOptions,
) -> str:
    how: dict[str, Any] = {"beam_size": choice.beam_size, "length": choice.length}
    how |= {"coverage_penalty": choice.coverage_penalty, **unknowns.told()}
    if choice.shortlist is not None:
        how["shortlist"] = str(choice.shortlist)
    reports = [{"model": name, **own.as_dict(), **how} for name, own in named.items()]
    if not choice.by_length:
        for report in reports:
            del report["by_length"]
    several = {"models": reports, "paired_bootstrap": [pair.as_dict() for pair in beside]}
    return json.dumps(reports[0] if len(reports) == 1 else several, allow_nan=False)


def _written(
    named: Mapping[str, TranslatorEvaluation],
    beside: Sequence[BaselineComparison],
    choice: TranslatorEvaluationOptions,
    unknowns: UnknownReplacementOptions,
) -> str:
    from dragoman.report.evaluation import SearchDescription, evaluation_text

    replaced = bool(unknowns.told())
    search = SearchDescription(
        choice.beam_size, choice.length, choice.coverage_penalty, choice.shortlist is not None, replaced
    )
    return evaluation_text(named, beside, search, by_length=choice.by_length)


def _keep(translations: Iterable[str], path: Path) -> None:
    from dragoman.io.storage import atomic_file

    with atomic_file(path) as temporary:
        temporary.write_text("".join(f"{told}\n" for told in translations), encoding="utf-8", newline="\n")
    info(f"{path}: the translations")
