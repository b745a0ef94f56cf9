"""Texts and tables about translators: evaluations, and the differences between two systems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import NamedTuple

from dragoman.evaluation.comparison import LOOP_LENGTH, Comparison, NgramDifference, SentenceDifference
from dragoman.evaluation.significance import BaselineComparison, PairedBootstrapResult
from dragoman.evaluation.task_scores import TargetKind, TaskScores
from dragoman.evaluation.translation_metrics import FEW_SENTENCES, LengthBucket, TranslationScores
from dragoman.evaluation.translator import TranslatorEvaluation
from dragoman.report.tables import format_cell, format_table, format_with_error, markdown_table, percent_cell

NOTE_WIDTH = 118  # columns
SENTENCE_METRICS = ("BLEU", "chrF")


@dataclass(frozen=True)
class TableSection:
    """A title, a table and a note. Without rows there is no table."""

    title: str
    headers: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    note: str = ""

    def as_text(self) -> str:
        table = [format_table(self.headers, self.rows)] if self.rows else []
        lines = self.note.split("\n")
        note = "\n".join(fill(line, NOTE_WIDTH, break_long_words=False, break_on_hyphens=False) for line in lines)
        return "\n\n".join([self.title, *table, *([note] if note else [])])

    def as_markdown(self) -> str:
        rows = [[format_cell(value).replace("|", r"\|") for value in row] for row in (self.headers, *self.rows)]
        numeric = [False, *[True] * (len(self.headers) - 1)]  # the first column is a name
        table = [markdown_table(rows[0], rows[1:], numeric)] if self.rows else []
        return "\n\n".join([f"### {self.title}", *table, *([self.note] if self.note else [])])


def metrics_section(scores: Mapping[str, TaskScores]) -> list[TableSection]:
    """Return the metrics that come before BLEU and chrF, with confidence intervals; none if there are no others."""
    first, *_ = scores.values()
    results = [result for result in first.results if result.name not in SENTENCE_METRICS]
    if not results:
        return []
    rows: list[list[object]] = []
    for name, score in scores.items():
        shown = score.results[: len(results)]
        cells = [f"{result.value:.2f} ({result.interval.low:.2f} to {result.interval.high:.2f})" for result in shown]
        rows.append([name, *cells])
    notes = [f"{result.name}: % of {result.description}." for result in results]
    note = "\n".join([*notes, "In brackets: 95% confidence interval by bootstrap."])
    headers = ["system", *(f"{result.name}, %" for result in results)]
    return [TableSection(f"Accuracy and error rates of {first.entries_text}", headers, rows, note)]


def scores_section(scores: Mapping[str, TranslationScores]) -> TableSection:
    """Return the scores of systems."""
    rows: list[list[object]] = []
    for name, score in scores.items():
        ratios = map(_format_ratio, (score.length_ratio, score.brevity_penalty))
        rows.append([name, score.bleu, score.chrf, *ratios, *(f"{precision:.1f}" for precision in score.precisions)])
    first, *_ = scores.values()
    headers = ["system", "BLEU", "chrF", "length ratio", "brevity", "1-grams", "2-grams", "3-grams", "4-grams"]
    empty = [f"{name}: {score.empty:,} translations are empty" for name, score in scores.items() if score.empty]
    explanation = (
        "Length ratio: words of the translations, divided by words of the references; if it is below 1, BLEU is "
        "multiplied by the brevity penalty. n-grams: % of the n-grams of the translations that are in the reference."
    )
    signatures = f"BLEU|{first.signature}\nchrF2|{first.chrf_signature}"
    note = "\n".join([explanation, *empty, signatures])
    return TableSection(f"Scores of {first.sentences:,} sentences", headers, rows, note)


def paired_section(names: tuple[str, str], tests: Sequence[PairedBootstrapResult]) -> TableSection:
    """Return tests of whether the second system differs from the first."""
    rows = [
        [
            test.metric,
            f"{test.difference:+.2f}",
            f"{test.difference_interval.low:+.2f} to {test.difference_interval.high:+.2f}",
            f"{test.p_value:.4f}",
            *(percent_cell(count / test.resamples) for count in (test.wins, test.losses)),
        ]
        for test in tests
    ]
    headers = ["", "difference", "95% of resamples", "p", f"{names[1]} better, %", f"{names[0]} better, %"]
    bootstrap = f"Paired bootstrap, {tests[0].resamples:,} resamples, seed {tests[0].seed}"
    note = f"{bootstrap}: {significance_text(names, tests[0])}"
    return TableSection(f"{names[1]} compared with {names[0]}", headers, rows, note)


def significance_text(names: tuple[str, str], test: PairedBootstrapResult) -> str:
    """Describe the result of a test."""
    if not test.significant:
        return f"no significant difference in {test.metric} (p = {test.p_value:.2g})."
    better = names[1] if test.second_is_better else names[0]
    return f"{better} is significantly better in {test.metric} (p = {test.p_value:.2g})."


def lengths_section(systems: Mapping[str, Sequence[LengthBucket]], side: str = "the source") -> TableSection:
    """Return BLEU and length ratio by sentence length, of systems on the same sentences."""
    rows = [
        [
            classes[0].bucket.name,
            f"{classes[0].sentences:,}{' *' if classes[0].is_small else ''}",
            *(length_class.bleu for length_class in classes),
            *(_format_ratio(length_class.length_ratio) for length_class in classes),
        ]
        for classes in zip(*systems.values(), strict=True)
    ]
    headers = ["words", "sentences", *(f"BLEU {name}" for name in systems), *(f"length {name}" for name in systems)]
    has_small = any(length_class.is_small for classes in systems.values() for length_class in classes)
    note = f"* fewer than {FEW_SENTENCES} sentences: their BLEU says little." if has_small else ""
    return TableSection(f"By sentence length (words of {side})", headers, rows, note)


def frequencies_section(comparison: Comparison) -> TableSection:
    """Return how well words are translated, by how frequent they are."""
    names = [system.name for system in comparison.systems]
    rows = [
        [
            first.bucket.name,
            first.matches.expected,
            *map(percent_cell, (first.matches.f1, second.matches.f1)),
            *map(percent_cell, (first.matches.precision, second.matches.precision)),
            *map(percent_cell, (first.matches.recall, second.matches.recall)),
        ]
        for first, second in zip(*(system.by_frequency for system in comparison.systems), strict=True)
        if first.matches.expected + first.matches.predicted + second.matches.predicted
    ]
    measures = [f"{measure} {name}" for measure in ("F1", "precision", "recall") for name in names]
    text = "training text" if comparison.has_training else "references"
    note = "% of words, in any order. References: words of the references. Precision and recall are of words."
    return TableSection(f"Words by frequency in the {text}", ["frequency", "references", *measures], rows, note)


def word_errors_section(comparison: Comparison) -> TableSection:
    """Return repeated and missing words."""
    first, second = comparison.systems
    reference = comparison.reference_word_errors
    counts = {"references": reference, first.name: first.word_errors, second.name: second.word_errors}
    headers = ["", "words", "doubled", "repeated", "missing", "missing, %", "extra"]
    rows: list[list[object]] = []
    for name, count in counts.items():
        missing = count.missing / reference.words if reference.words else math.nan
        numbers = count.words, count.doubled, count.looped, count.missing
        rows.append([name, *numbers, percent_cell(missing), count.extra])
    note = (
        f"Doubled: the same word twice in a row. Repeated: {LOOP_LENGTH} words in a row that occurred before in the "
        "sentence. Missing: words of the reference that are not in the translation; extra: the other way round."
    )
    return TableSection("Repeated and missing words", headers, rows, note)


def ngrams_section(title: str, differences: Sequence[NgramDifference], names: tuple[str, str]) -> TableSection:
    """Return n-grams that one of the systems gets right more often."""
    rows: list[list[object]] = []
    for difference in differences:
        counts = difference.expected, difference.first, difference.second
        log_odds = format_with_error(difference.log_odds, difference.standard_error)
        rows.append([" ".join(difference.words), *counts, log_odds])
    headers = ["n-gram", "references", *(f"right {name}" for name in names), "log odds"]
    note = f"Log odds of being right, {names[1]} compared with {names[0]}, ± standard error; the most certain first."
    return TableSection(title, headers, rows, note if differences else "none")


def comparison_text(comparison: Comparison, *, markdown: bool = False) -> str:
    """Return all tables and examples, for a terminal or as Markdown."""
    format_section = TableSection.as_markdown if markdown else TableSection.as_text
    first, second = names = (comparison.first.name, comparison.second.name)
    lengths = {system.name: system.by_length for system in comparison.systems}
    length_side = "the source" if comparison.has_source else "the references"
    has_sentences = comparison.first.task_scores.kind == TargetKind.SENTENCES
    sections = [
        *metrics_section({system.name: system.task_scores for system in comparison.systems}),
        scores_section({system.name: system.scores for system in comparison.systems}),
        paired_section(names, comparison.tests),
        *([lengths_section(lengths, length_side)] if has_sentences else []),
        frequencies_section(comparison),
        ngrams_section(f"n-grams gained: right more often in {second}", comparison.gained, names),
        ngrams_section(f"n-grams lost: right more often in {first}", comparison.lost, names),
        word_errors_section(comparison),
    ]
    parts = [format_section(section) for section in sections]
    for name, examples in ((second, comparison.better), (first, comparison.worse)):
        text = "\n\n".join(_format_example(example, names) for example in examples)
        quoted = f"```\n{text}\n```" if markdown else text
        title = format_section(TableSection(f"Sentences that {name} translates better"))
        parts += [title, quoted if examples else "none"]
    return "\n\n".join(parts)


def _format_example(example: SentenceDifference, names: tuple[str, str]) -> str:
    """Return a sentence and its translations, one per line."""
    lines = [
        *([("source", example.source)] if example.source is not None else []),
        ("reference", example.reference),
        (f"{names[0]} {example.first_bleu:.1f}", example.first),
        (f"{names[1]} {example.second_bleu:.1f}", example.second),
    ]
    width = max(len(name) for name, _ in lines)
    return "\n".join([f"line {example.line:,}", *(f"  {name:>{width}}: {text}" for name, text in lines)])


def _format_ratio(number: float) -> str | None:
    return None if math.isnan(number) else f"{number:.3f}"


class SearchDescription(NamedTuple):
    """How translations were searched for."""

    beam_size: int
    length: str
    coverage: float = 0.0
    shortlist: bool = False  # whether only words of a shortlist were considered
    unknowns_replaced: bool = False
    whole_lines: bool = False  # whether lines of several sentences were translated at once

    def __str__(self) -> str:
        coverage = f", coverage penalty {self.coverage:g}" if self.coverage else ""
        shortlist = ", with shortlists (perplexities are over all words)" if self.shortlist else ""
        replaced = ", unknown words replaced" if self.unknowns_replaced else ""
        whole = ", whole lines" if self.whole_lines else ""
        return f"beam size {self.beam_size}, length {self.length}{coverage}{shortlist}{replaced}{whole}"


def evaluation_text(
    evaluations: Mapping[str, TranslatorEvaluation],
    comparisons: Sequence[BaselineComparison],
    search: SearchDescription,
    *,
    by_length: bool,
) -> str:
    """Return one translator as a list of its scores, or several as a table with tests against the first."""
    format_scores = _score_list if len(evaluations) == 1 else _score_table
    parts = [format_scores(evaluations, search)]
    parts += [paired_section(pair.names, pair.tests).as_text() for pair in comparisons]
    if by_length:
        classes = {name: evaluation.by_length for name, evaluation in evaluations.items()}
        parts.append(lengths_section(classes).as_text())
    return "\n\n".join(parts)


TextRow = tuple[str, object, str]  # name, value, explanation


def _score_list(evaluations: Mapping[str, TranslatorEvaluation], search: SearchDescription) -> str:
    ((name, evaluation),) = evaluations.items()
    task, scores = evaluation.task_scores, evaluation.scores
    metric_rows: dict[str, TextRow] = {
        result.name: (result.name, result.value_text, f"{result.interval_text}; {result.description}")
        for result in task.results
    }
    rows: list[TextRow]
    if task.kind == TargetKind.SENTENCES:
        rows = [("sentences", scores.sentences, str(search)), *metric_rows.values(), *_word_rows(evaluation)]
    else:
        several = f"{task.entries_with_variants:,} with several references, of which the closest counts; "
        rows = [("words", task.entries, f"{several if task.entries_with_variants else ''}{search}")]
        rows += (metric_rows[result.name] for result in task.shown_results)
    rows += _perplexity_rows(evaluation)
    if scores.empty or evaluation.unfinished:
        rows.append(("empty", scores.empty, f"translations without words; {evaluation.unfinished:,} were cut off"))
    if evaluation.alignment is not None:
        error = f"{100 * evaluation.alignment.error_rate:.1f}%"
        rows.append(("alignment error", error, "of the attention, compared with the true alignment of the references"))
    return format_table([name, "", ""], [*rows, *_diagnosis_rows(evaluation.errors)])


def _word_rows(evaluation: TranslatorEvaluation) -> list[TextRow]:
    """Return what concerns the words of sentences."""
    scores, edits = evaluation.scores, evaluation.edits
    rows: list[TextRow] = [
        ("length ratio", f"{scores.length_ratio:.3f}", "words of the translations, divided by words of the references"),
        ("exactly right", f"{100 * edits.exact_match:.1f}%", "of the translations are the same as the reference"),
        (
            "word error rate",
            f"{100 * edits.word_error_rate:.1f}%",
            "words to insert, delete or replace, in % of the words of the references",
        ),
        ("repeated words", edits.repeated, "words that a translation has again, and its reference has not"),
        ("dropped words", edits.dropped, f"of the {edits.words:,} words of the references are left out"),
    ]
    if (recall := evaluation.unknown_word_recall) is not None and recall.words:
        explanation = f"of the {recall.words:,} words of the references that are not in its vocabulary"
        rows.append(("unknown words found", recall.recalled, explanation))
    return rows


def _perplexity_rows(evaluation: TranslatorEvaluation) -> list[TextRow]:
    likelihood = evaluation.reference_likelihood
    floor = "" if evaluation.floor is None else f"; the true distribution has {evaluation.floor.value:,.2f}"
    speed = len(evaluation.translations) / evaluation.seconds
    task = evaluation.task_scores
    rows: list[TextRow] = [
        ("perplexity", evaluation.perplexity, f"of the references, per {task.token} or end of a line{floor}"),
    ]
    if likelihood.unknown:
        by_class = (
            f"the same, but the {likelihood.unknown:,} unknown words need not be spelled, only predicted as <unk>"
        )
        rows.append(("perplexity class", evaluation.perplexity_class, by_class))
    if task.kind != TargetKind.PHONES:
        rows.append(
            ("perplexity characters", f"{likelihood.perplexity_characters:.4f}", "of the references, per character")
        )
    return [*rows, (f"{task.unit}s per second", speed, f"translated in {evaluation.seconds:,.1f} seconds")]


def _diagnosis_rows(errors: Mapping[str, int]) -> list[TextRow]:
    """Return the numbers of search errors and model errors, if they were counted."""
    if not errors:
        return []
    search_share, model_share = (
        f"{100 * errors[kind] / max(1, sum(errors.values())):.1f}%" for kind in ("search", "model")
    )
    same = f"{errors['none']:,} are the same as the reference"
    better = "the translation has the same or a better score"
    worse = "the reference has a better score than the translation"
    return [
        ("search errors", errors["search"], f"{search_share}: {worse}"),
        ("model errors", errors["model"], f"{model_share}: {better}; {same}"),
    ]


def _score_table(evaluations: Mapping[str, TranslatorEvaluation], search: SearchDescription) -> str:
    results = list(evaluations.values())
    first = results[0]
    columns: dict[str, list[object]] = {"system": list(evaluations)}
    for metric in first.task_scores.shown_results:
        name = f"{metric.name}, %" if metric.is_percentage else metric.name
        columns[name] = [f"{result.task_scores.of(metric.name).score:.2f}" for result in results]
    if first.task_scores.kind == TargetKind.SENTENCES:
        columns |= {
            "length ratio": [f"{result.scores.length_ratio:.3f}" for result in results],
            "exact, %": [f"{100 * result.edits.exact_match:.1f}" for result in results],
            "word errors, %": [f"{100 * result.edits.word_error_rate:.1f}" for result in results],
        }
    columns |= {
        "perplexity": [result.perplexity for result in results],
        "perplexity characters": [f"{result.reference_likelihood.perplexity_characters:.4f}" for result in results],
        f"{first.task_scores.unit}s/s": [len(result.translations) / result.seconds for result in results],
    }
    if any(result.alignment is not None for result in results):
        columns["alignment error, %"] = [
            None if result.alignment is None else f"{100 * result.alignment.error_rate:.1f}" for result in results
        ]
    if first.errors:
        columns["search errors"] = [result.errors["search"] for result in results]
        columns["model errors"] = [result.errors["model"] for result in results]
    floor = "" if first.floor is None else f"; perplexity of the true distribution: {first.floor.value:,.2f}"
    table = format_table(list(columns), list(zip(*columns.values(), strict=True)))
    task = first.task_scores
    explanations = [f"{metric.name}: {metric.description}" for metric in task.shown_results if metric.is_percentage]
    signatures = f"BLEU|{first.scores.signature}\nchrF2|{first.scores.chrf_signature}"
    notes = [*explanations, *([signatures] if task.kind == TargetKind.SENTENCES else [])]
    return "\n".join([table, "", f"{task.entries_text}, {search}{floor}", *notes])
