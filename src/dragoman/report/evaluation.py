"""Tables of evaluations: language models and the floor, minimal pairs, and translators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dragoman.evaluation.alignment import AlignmentCounts
from dragoman.evaluation.floor import FloorGap, LanguageModelEvaluation, RatioEstimator
from dragoman.evaluation.lab_reference import PhenomenonAccuracies, distance_label
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy
from dragoman.evaluation.significance import BaselineComparison
from dragoman.evaluation.translator import TranslatorEvaluation
from dragoman.report.comparison import lengths_section, paired_section
from dragoman.report.tables import format_cell, format_table, format_with_error

NATS_DIGITS = 4
MIN_PAIRS = 10  # minimal pairs, below which an accuracy is not meaningful
MINIMAL_PAIRS_LEGEND = f"""\
% of minimal pairs whose correct sentence is the more probable one; ties count one half. Guessing gives 50%, and 6% on
all four of a group. Distances with fewer than {MIN_PAIRS} pairs have no row of their own."""


# -- language models -------------------------------------------------------------------------------------------------


def floor_table(results: Sequence[tuple[str, LanguageModelEvaluation]]) -> str:
    """Return named models and the floor: by class, then in full. Models without a floor are left out."""
    headers = ["model", "class", "floor", "nats above", "perplexity", "floor", "nats above"]
    rows = [
        (
            name,
            result.likelihood.perplexity_class,
            format_with_error(*floor.perplexity_class),
            _format_nats(gap.by_class),
            result.likelihood.perplexity,
            format_with_error(*floor.perplexity),
            _format_nats(gap.full),
        )
        for name, result in results
        if (floor := result.floor) is not None and (gap := result.gap) is not None
    ]
    return format_table(headers, rows)


def gap_text(gap: FloorGap) -> str:
    """Describe how far above the floor a model is."""
    by_class, full = format_cell(_format_nats(gap.by_class)), format_cell(_format_nats(gap.full))
    return f"above the floor: {by_class} nats per token by class, {full} in full"


def _format_nats(ratio: RatioEstimator) -> str | float:
    return format_with_error(*ratio.estimate, NATS_DIGITS)


def minimal_pair_table(title: str, results: Mapping[str, PhenomenonAccuracies]) -> str:
    """Return accuracies with one row per phenomenon, and per class of distance where there are several.

    Args:
        title: header of the first column.
        results: accuracies by the name of the model.
    """
    first, *_ = results.values()
    rows: list[list[object]] = []
    for phenomenon in dict.fromkeys(name for name, _ in first):
        by_distance = [
            {minimum: accuracy for (name, minimum), accuracy in accuracies.items() if name == phenomenon}
            for accuracies in results.values()
        ]
        rows += _phenomenon_rows(phenomenon, by_distance)
    headers = [title, "distance", "pairs", *results]
    return f"{format_table(headers, rows)}\n\n{MINIMAL_PAIRS_LEGEND}"


def _phenomenon_rows(
    phenomenon: str, by_distance: Sequence[Mapping[int, MinimalPairAccuracy]]
) -> Iterator[list[object]]:
    """Yield the rows of one phenomenon; `by_distance` has the accuracies of each model."""
    totals = [sum(accuracies.values(), MinimalPairAccuracy()) for accuracies in by_distance]
    yield [phenomenon, "", totals[0].pairs, *(f"{100 * total.accuracy:.1f}" for total in totals)]
    if totals[0].groups < totals[0].pairs:
        shares = [f"{100 * total.group_accuracy:.1f}" for total in totals]
        yield ["  all four of a group", "", totals[0].groups, *shares]
    if len(by_distance[0]) > 1:
        for minimum, accuracy in sorted(by_distance[0].items()):
            if accuracy.pairs >= MIN_PAIRS:
                shares = [f"{100 * accuracies[minimum].accuracy:.1f}" for accuracies in by_distance]
                yield ["", f"{distance_label(minimum)} words between", accuracy.pairs, *shares]


# -- translators -----------------------------------------------------------------------------------------------------


class SearchDescription(NamedTuple):
    """How translations were searched for."""

    beam_size: int
    length: str
    coverage: float = 0.0
    shortlist: bool = False  # whether only words of a shortlist were considered
    unknowns_replaced: bool = False

    def __str__(self) -> str:
        coverage = f", coverage penalty {self.coverage:g}" if self.coverage else ""
        shortlist = ", with shortlists (perplexities are over all words)" if self.shortlist else ""
        replaced = ", unknown words replaced" if self.unknowns_replaced else ""
        return f"beam size {self.beam_size}, length {self.length}{coverage}{shortlist}{replaced}"


def evaluation_text(
    evaluations: Mapping[str, TranslatorEvaluation],
    comparisons: Sequence[BaselineComparison],
    search: SearchDescription,
    *,
    by_length: bool,
) -> str:
    """Return one translator as a list of its scores, or several as a table with tests against the first."""
    if len(evaluations) == 1:
        parts = [_score_list(*next(iter(evaluations.items())), search)]
    else:
        parts = [_score_table(evaluations, search)]
    parts += [paired_section(pair.names, (pair.bleu, pair.chrf)).as_text() for pair in comparisons]
    if by_length:
        classes = {name: evaluation.by_length for name, evaluation in evaluations.items()}
        parts.append(lengths_section(classes).as_text())
    return "\n\n".join(parts)


def _score_list(name: str, evaluation: TranslatorEvaluation, search: SearchDescription) -> str:
    scores, edits, likelihood = evaluation.scores, evaluation.edits, evaluation.reference_likelihood
    floor = "" if evaluation.floor is None else f"; the true distribution has {evaluation.floor.value:,.2f}"
    speed = len(evaluation.translations) / evaluation.seconds
    rows: list[tuple[str, object, str]] = [
        ("sentences", scores.sentences, str(search)),
        ("BLEU", scores.bleu, scores.signature),
        ("chrF", scores.chrf, scores.chrf_signature),
        ("length ratio", f"{scores.length_ratio:.3f}", "words, divided by words of the references"),
        ("exactly right", f"{100 * edits.exact_match:.1f}%", "translations that are the same as the reference"),
        ("word error rate", f"{100 * edits.word_error_rate:.1f}%", "words to insert, delete or replace"),
        ("repeated words", edits.repeated, "more often than in the reference, after the first"),
        ("dropped words", edits.dropped, f"of {edits.words:,} in the references, with nothing in their place"),
        *_unknown_word_row(evaluation),
        ("perplexity", evaluation.perplexity, f"of the references, per word or sentence end{floor}"),
        (
            "perplexity class",
            evaluation.perplexity_class,
            f"the same, if {likelihood.unknown:,} unknown tokens are only scored as being unknown",
        ),
        ("perplexity characters", f"{likelihood.perplexity_characters:.4f}", "per character"),
        ("sentences per second", speed, f"{evaluation.seconds:,.1f} seconds"),
    ]
    if scores.empty or evaluation.unfinished:
        rows.append(("empty", scores.empty, f"translations without words; {evaluation.unfinished:,} were cut off"))
    if evaluation.alignment is not None:
        error = f"{_format_error_rate(evaluation.alignment)}%"
        rows.append(("alignment error", error, "of the attention, compared with the true alignment of the references"))
    rows += _error_rows(evaluation.errors)
    return format_table([name, "", ""], rows)


def _unknown_word_row(evaluation: TranslatorEvaluation) -> list[tuple[str, object, str]]:
    recall = evaluation.unknown_word_recall
    if recall is None or not recall.words:
        return []
    explanation = f"of {recall.words:,} in the references that are not in its vocabulary"
    return [("unknown words found", recall.recalled, explanation)]


def _error_rows(errors: Mapping[str, int]) -> list[tuple[str, object, str]]:
    if not errors:
        return []
    total = max(1, sum(errors.values()))
    search, model = (f"{100 * errors[error] / total:.1f}%" for error in ("search", "model"))
    same = f"{errors['none']:,} are the same as the reference"
    return [
        ("search errors", errors["search"], f"{search}: the reference has a better score than the translation"),
        ("model errors", errors["model"], f"{model}: the translation has the same or a better score; {same}"),
    ]


def _score_table(evaluations: Mapping[str, TranslatorEvaluation], search: SearchDescription) -> str:
    results = list(evaluations.values())
    first = results[0]
    columns: dict[str, list[object]] = {
        "system": list(evaluations),
        "BLEU": [result.scores.bleu for result in results],
        "chrF": [result.scores.chrf for result in results],
        "length ratio": [f"{result.scores.length_ratio:.3f}" for result in results],
        "exact, %": [f"{100 * result.edits.exact_match:.1f}" for result in results],
        "word errors, %": [f"{100 * result.edits.word_error_rate:.1f}" for result in results],
        "perplexity": [result.perplexity for result in results],
        "characters": [f"{result.reference_likelihood.perplexity_characters:.4f}" for result in results],
        "sentences/s": [len(result.translations) / result.seconds for result in results],
    }
    if any(result.alignment is not None for result in results):
        columns["alignment error, %"] = [_format_error_rate(result.alignment) for result in results]
    if first.errors:
        columns["search errors"] = [result.errors["search"] for result in results]
        columns["model errors"] = [result.errors["model"] for result in results]
    floor = "" if first.floor is None else f"; perplexity of the true distribution: {first.floor.value:,.2f}"
    table = format_table(list(columns), list(zip(*columns.values(), strict=True)))
    signatures = f"BLEU|{first.scores.signature}\nchrF2|{first.scores.chrf_signature}"
    return f"{table}\n\n{first.scores.sentences:,} sentences, {search}{floor}\n{signatures}"


def _format_error_rate(counts: AlignmentCounts | None) -> str | None:
    return None if counts is None else f"{100 * counts.error_rate:.1f}"
