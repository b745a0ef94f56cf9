"""Tables and figures of the models of an experiment: perplexities, accuracies, translation scores, examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dragoman.core.defaults import DEFAULT_BEAM_SIZE
from dragoman.core.errors import is_installed
from dragoman.evaluation.lab_reference import distance_label
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy
from dragoman.evaluation.task_scores import TargetKind
from dragoman.experiments.results import ACCURACY_COLUMNS, AttentionExample, LanguageModelRung, TranslatorRung
from dragoman.report.charts import (
    ACCURACY_NOTE,
    FLOOR_LABEL,
    Proportion,
    draw_bleu_by_length,
    draw_ladder,
    draw_learning_curves,
)
from dragoman.report.language_models import MIN_PAIRS
from dragoman.report.page import Heatmap, PageFigure, PageTable
from dragoman.report.tables import format_with_error, percent_cell

ABOVE_FLOOR = "nats above the floor"
DISTANCE_PHENOMENA = ("agreement", "reflexive")  # that are shown by distance
PERPLEXITY_COLUMNS = ("perplexity", "by class", ABOVE_FLOOR, "seconds", "MB")
SCORE_COLUMNS = (
    *("perplexity", "by class", ABOVE_FLOOR, f"BLEU, beam {DEFAULT_BEAM_SIZE}", "greedy", "length", "alignment error"),
    *("parameters", "seconds"),
)

Row = list[object]


def perplexity_table(rungs: Sequence[LanguageModelRung], header: str = "model") -> PageTable:
    """Return perplexities, training time and size, with a last row for the floor if it is known."""
    rows: list[Row] = []
    for rung in rungs:
        likelihood, gap = rung.evaluation.likelihood, rung.evaluation.gap
        above = None if gap is None else format_with_error(*gap.by_class, digits=3)
        costs = f"{rung.seconds:,.1f}", f"{rung.megabytes:,.1f}"
        rows.append([rung.name, likelihood.perplexity, likelihood.perplexity_class, above, *costs])
    if (floor := rungs[0].evaluation.floor) is not None:
        perplexities = (format_with_error(*estimate) for estimate in (floor.perplexity, floor.perplexity_class))
        rows.append([FLOOR_LABEL, *perplexities, "0", None, None])
    return PageTable([header, *PERPLEXITY_COLUMNS], rows).without_empty_columns()


def accuracy_table(rungs: Sequence[LanguageModelRung]) -> PageTable:
    """Return accuracies on minimal pairs in percent, with a last row for the number of pairs."""
    rows: list[Row] = [[rung.name, *map(percent_cell, rung.accuracy_by_column.values())] for rung in rungs]
    counts = [column.accuracy(rungs[0].accuracies)[1] for column in ACCURACY_COLUMNS]
    headers = ["% correct", *(column.name for column in ACCURACY_COLUMNS)]
    return PageTable(headers, [*rows, ["number of pairs", *counts]])


def distance_tables(rungs: Sequence[LanguageModelRung]) -> list[PageTable]:
    """Return accuracies by distance, one table per phenomenon with enough pairs."""
    tables = []
    for phenomenon in DISTANCE_PHENOMENA:
        by_distance = [_accuracy_by_distance(rung, phenomenon) for rung in rungs]
        if by_distance[0]:
            headers = [f"% correct, {phenomenon}", *(f"{distance} between" for distance in by_distance[0])]
            rows: list[Row] = [
                [rung.name, *(percent_cell(accuracy.accuracy) for accuracy in accuracies.values())]
                for rung, accuracies in zip(rungs, by_distance, strict=True)
            ]
            tables.append(PageTable(headers, rows))
    return tables


def distance_proportions(rungs: Sequence[LanguageModelRung]) -> dict[str, dict[str, dict[str, Proportion]]]:
    """Return the same for a figure: {phenomenon: {model: {distance: accuracy}}}."""
    return {
        phenomenon: {
            rung.name: {
                distance.replace(" and more", "+"): Proportion(accuracy.accuracy, accuracy.pairs)
                for distance, accuracy in _accuracy_by_distance(rung, phenomenon).items()
            }
            for rung in rungs
        }
        for phenomenon in DISTANCE_PHENOMENA
        if _accuracy_by_distance(rungs[0], phenomenon)
    }


def _accuracy_by_distance(rung: LanguageModelRung, phenomenon: str) -> dict[str, MinimalPairAccuracy]:
    return {
        distance_label(minimum): accuracy
        for (name, minimum), accuracy in sorted(rung.accuracies.items())
        if name == phenomenon and accuracy.pairs >= MIN_PAIRS
    }


def score_table(rungs: Sequence[TranslatorRung], header: str = "translator", caption: str = "") -> PageTable:
    """Return the scores of translators, with a last row for the floor if it is known."""
    rows: list[Row] = []
    for rung in rungs:
        evaluation, scores = rung.evaluation, rung.evaluation.scores
        cells = [
            None if evaluation.above_floor is None else f"{evaluation.above_floor:.3f}",
            f"{scores.bleu:.1f}",
            f"{rung.greedy.bleu:.1f}",
            f"{scores.length_ratio:.3f}",
            None if evaluation.alignment is None else percent_cell(evaluation.alignment.error_rate),
            rung.parameters,
            f"{rung.seconds:,.1f}",
        ]
        rows.append([rung.name, evaluation.perplexity, evaluation.perplexity_class, *cells])
    if (floor := rungs[0].floor) is not None:
        rows.append([FLOOR_LABEL, format_with_error(*floor), None, "0", *[None] * (len(SCORE_COLUMNS) - 3)])
    table = _with_error_rates(PageTable([header, *SCORE_COLUMNS], rows, caption), rungs)
    return table if floor is not None else table.without_empty_columns()


def _with_error_rates(table: PageTable, rungs: Sequence[TranslatorRung]) -> PageTable:
    """Insert the headline metrics after the names, if the translators write words or phones instead of sentences."""
    if rungs[0].evaluation.task_scores.kind == TargetKind.SENTENCES:
        return table
    results = [rung.evaluation.task_scores.headline for rung in rungs]
    cells = [[f"{result.value:.2f}" for result in row] for row in results]
    cells += [[""] * len(results[0])] * (len(table.rows) - len(rungs))  # the floor
    headers = [table.headers[0], *(f"{result.name}, %" for result in results[0]), *table.headers[1:]]
    rows = [[row[0], *more, *row[1:]] for row, more in zip(table.rows, cells, strict=True)]
    return replace(table, headers=headers, rows=rows)


def lengths_table(rungs: Sequence[TranslatorRung]) -> PageTable:
    """Return BLEU by sentence length, one column per length class."""
    rows: list[Row] = [[name, *(f"{bleu:.1f}" for bleu in bleus)] for name, bleus in bleu_by_class(rungs).items()]
    classes = class_sizes(rungs)
    return PageTable(["BLEU by words", *classes], [*rows, ["sentences", *classes.values()]])


def class_sizes(rungs: Sequence[TranslatorRung]) -> dict[str, int]:
    """Return the number of sentences of each length class."""
    return {length_class.bucket.name: length_class.sentences for length_class in rungs[0].evaluation.by_length}


def bleu_by_class(rungs: Sequence[TranslatorRung]) -> dict[str, list[float]]:
    """Return BLEU of each translator for each length class."""
    return {rung.name: [length_class.bleu for length_class in rung.evaluation.by_length] for rung in rungs}


def attention_heatmap(example: AttentionExample, caption: str = "each row sums to 1") -> Heatmap:
    return Heatmap(example.target_words, example.source_words, example.matrix, caption)


def example_tables(
    lines: Sequence[str],
    references: Sequence[str],
    translators: Sequence[TranslatorRung],
    numbers: Sequence[int],
    source: str = "German",
) -> list[PageTable]:
    """Return one table per sentence: the source line, its reference and its translations."""
    return [
        PageTable(
            [f"sentence {number + 1}", f"{len(lines[number].split())} words"],
            [
                [source, lines[number]],
                ["reference", references[number]],
                *([rung.name, rung.evaluation.translations[number].text] for rung in translators),
            ],
        )
        for number in numbers
    ]


def overview_table(rungs: Sequence[LanguageModelRung | TranslatorRung], caption: str = "") -> PageTable:
    """Return language models and translators in one table, with the first metric of translators: BLEU of sentences."""
    rows: list[Row] = []
    metric = "BLEU"
    for rung in rungs:
        predicts, score = "P(E)", None
        if isinstance(rung, TranslatorRung):
            result = rung.evaluation.task_scores.headline[0]
            predicts, score = "P(E | F)", f"{result.value:.1f}"
            metric = f"{result.name}, %" if result.is_percentage else result.name
        floor = None if rung.floor is None else format_with_error(*rung.floor)
        rows.append([rung.name, predicts, rung.perplexity, floor, score, f"{rung.seconds:.1f}"])
    return PageTable(["model", "predicts", "perplexity", "its floor", metric, "seconds"], rows, caption)


def with_descriptions(table: PageTable, descriptions: Mapping[str, str]) -> PageTable:
    """Insert a second column that says what each model is."""
    headers = [table.headers[0], "what it is", *table.headers[1:]]
    rows = [[row[0], descriptions[str(row[0])], *row[1:]] for row in table.rows]
    return replace(table, headers=headers, rows=rows).without_empty_columns()


@dataclass
class FigureWriter:
    """Draws figures into the output directory, or none if Matplotlib is not installed."""

    output: Path
    files: list[str] = field(default_factory=list)

    def draw(self, name: str, caption: str, draw: Callable[[Path], None]) -> PageFigure | None:
        """Call `draw` with the path of the file, and return the figure for the page."""
        if not is_installed("matplotlib"):
            return None
        draw(self.output / name)
        self.files.append(name)
        return PageFigure((self.output / name).read_text(encoding="utf-8"), caption, name)

    def ladder(
        self,
        name: str,
        caption: str,
        rungs: Sequence[LanguageModelRung | TranslatorRung],
        title: str,
        *,
        shares: Mapping[str, Mapping[str, float]] | None = None,
        note: str = ACCURACY_NOTE,
    ) -> PageFigure | None:
        """Draw the perplexities of models, and shares such as accuracies: {model: {column: share}}."""
        perplexities = {rung.name: rung.perplexity for rung in rungs}
        floor = None if rungs[0].floor is None else rungs[0].floor.value
        return self.draw(
            name, caption, lambda path: draw_ladder(perplexities, floor, shares or {}, path, title=title, note=note)
        )

    def lengths(self, rungs: Sequence[TranslatorRung], caption: str) -> PageFigure | None:
        """Draw BLEU by sentence length."""
        classes, bleu = class_sizes(rungs), bleu_by_class(rungs)
        title = "BLEU by sentence length"
        return self.draw("lengths.svg", caption, lambda path: draw_bleu_by_length(classes, bleu, path, title=title))

    def curves(
        self, curves: Mapping[str, Sequence[tuple[float, float]]], caption: str, title: str
    ) -> PageFigure | None:
        """Draw learning curves: minutes of training and perplexity of the dev text."""
        return self.draw(
            "curves.svg", caption, lambda path: draw_learning_curves(curves, path, "perplexity", title=title)
        )
