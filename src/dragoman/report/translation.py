"""How good translations are, and where two systems differ: tables as plain text and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill

from dragoman.evaluation.comparison import LOOP_LENGTH, Comparison, NgramDifference, SentenceDifference, WordErrorCounts
from dragoman.evaluation.significance import PairedBootstrapResult
from dragoman.evaluation.translation_metrics import FEW_SENTENCES, LengthBucket, TranslationScores
from dragoman.report.tables import format_cell, format_table, format_with_error

TableRow = Sequence[object]
WIDTH = 118  # columns of what is said below a table


@dataclass(frozen=True)
class TableSection:
    """A table with its title and what it means. Or, without rows, a text."""

    title: str
    headers: Sequence[str]
    rows: Sequence[TableRow]
    note: str = ""

    def as_text(self) -> str:
        body = [format_table(self.headers, self.rows)] if self.rows else []
        lines = self.note.split("\n")
        note = "\n".join(fill(line, WIDTH, break_long_words=False, break_on_hyphens=False) for line in lines)
        return "\n\n".join([self.title, *body, *([note] if note else [])])

    def as_markdown(self) -> str:
        body = [_markdown_table(self.headers, self.rows)] if self.rows else []
        return "\n\n".join([f"### {self.title}", *body, *([self.note] if self.note else [])])


def _markdown_table(headers: Sequence[str], rows: Sequence[TableRow]) -> str:
    """The first column is a name, the others are numbers as a rule."""
    lines: list[TableRow] = [headers, ["---", *["---:"] * (len(headers) - 1)], *rows]
    return "\n".join(
        f"| {' | '.join(format_cell(value).replace('|', chr(92) + '|') for value in line)} |" for line in lines
    )


# -- one table each --------------------------------------------------------------------------------------------------


def scores_section(named: Mapping[str, TranslationScores]) -> TableSection:
    """The scores of systems."""
    rows = [
        [name, own.bleu, own.chrf, _ratio(own.length_ratio), _ratio(own.brevity_penalty), *_one_digit(own.precisions)]
        for name, own in named.items()
    ]
    first, *_ = named.values()
    headers = ["system", "BLEU", "chrF", "length ratio", "brevity", "1-grams", "2-grams", "3-grams", "4-grams"]
    empty = [f"{name}: {own.empty:,} translations are empty" for name, own in named.items() if own.empty]
    about = (
        "Length ratio: words by words of the references; below 1 BLEU is multiplied by the brevity penalty. n-grams: % "
        "of those said that are in the reference."
    )
    signatures = f"BLEU|{first.signature}\nchrF2|{first.chrf_signature}"
    note = "\n".join([about, *empty, signatures])
    return TableSection(f"Scores of {first.sentences:,} sentences", headers, rows, note)


def paired_section(names: tuple[str, str], tests: Sequence[PairedBootstrapResult]) -> TableSection:
    """Whether the second system differs from the first by more than luck with the test sentences."""
    rows = [
        [
            test.metric,
            f"{test.difference:+.2f}",
            f"{test.difference_interval.low:+.2f} to {test.difference_interval.high:+.2f}",
            f"{test.p_value:.4f}",
            _percent(test.wins / test.resamples),
            _percent(test.losses / test.resamples),
        ]
        for test in tests
    ]
    headers = ["", "difference", "95% of resamples", "p", f"{names[1]} better, %", f"{names[0]} better, %"]
    about = f"Paired bootstrap, {tests[0].resamples:,} resamples, seed {tests[0].seed}: {significance_text(names, tests[0])}"
    return TableSection(f"{names[1]} beside {names[0]}", headers, rows, about)


def significance_text(names: tuple[str, str], test: PairedBootstrapResult) -> str:
    """What a test says, in a sentence."""
    if not test.significant:
        return f"no difference in {test.metric} that chance could not make (p = {test.p_value:.2g})."
    better = names[1] if test.difference > 0 else names[0]
    return f"{better} is better in {test.metric} by more than chance (p = {test.p_value:.2g})."


def lengths_section(named: Mapping[str, Sequence[LengthBucket]], of: str = "the source") -> TableSection:
    """BLEU and length ratio by sentence length, of systems on the same sentences."""
    rows = [
        [
            classes[0].span.name,
            f"{classes[0].sentences:,}{' *' if classes[0].is_small else ''}",
            *(own.bleu for own in classes),
            *(_ratio(own.length_ratio) for own in classes),
        ]
        for classes in zip(*named.values(), strict=True)
    ]
    headers = ["words", "sentences", *(f"BLEU {name}" for name in named), *(f"length {name}" for name in named)]
    few = any(str(row[1]).endswith("*") for row in rows)
    note = f"* fewer than {FEW_SENTENCES} sentences: their BLEU says little." if few else ""
    return TableSection(f"By sentence length (words of {of})", headers, rows, note)


def frequencies_section(comparison: Comparison) -> TableSection:
    """How well words are translated, by how frequent they are."""
    classes = zip(*(system.by_frequency for system in comparison.systems), strict=True)
    rows = [
        [
            one.span.name,
            one.matches.wanted,
            *(_percent(own.matches.f1) for own in (one, two)),
            *(_percent(own.matches.precision) for own in (one, two)),
            *(_percent(own.matches.recall) for own in (one, two)),
        ]
        for one, two in classes
        if one.matches.wanted + one.matches.said + two.matches.said
    ]
    names = [system.name for system in comparison.systems]
    headers = ["times seen", "wanted", *(f"{what} {name}" for what in ("F1", "precision", "recall") for name in names)]
    where = "training text" if comparison.has_training else "references"
    note = (
        "% of words, in any order. Wanted: words of the references. Precision: of those said; recall: of those wanted."
    )
    return TableSection(f"Words by how often they come in the {where}", headers, rows, note)


def faults_section(comparison: Comparison) -> TableSection:
    """What is said twice and what is missing."""
    first, second = comparison.systems
    named = {
        "references": comparison.reference_word_errors,
        first.name: first.word_errors,
        second.name: second.word_errors,
    }
    wanted = comparison.reference_word_errors.words
    headers = ["", "words", "doubled", "repeated", "missing", "missing, %", "extra"]
    note = (
        f"Doubled: a word right after itself. Repeated: {LOOP_LENGTH} words in a row that came before in the sentence. "
        "Missing: words of the reference that are not in the translation; extra: the other way round."
    )
    return TableSection(
        "Said twice, or not at all", headers, [_fault_row(name, own, wanted) for name, own in named.items()], note
    )


def _fault_row(name: str, own: WordErrorCounts, wanted: int) -> TableRow:
    share = own.missing / wanted if wanted else math.nan
    return [name, own.words, own.doubled, own.looped, own.missing, _percent(share), own.extra]


def changes_section(title: str, changes: Sequence[NgramDifference], names: tuple[str, str]) -> TableSection:
    """n-grams that one of the systems gets right more often."""
    rows = [
        [
            " ".join(change.words),
            change.wanted,
            change.first,
            change.second,
            format_with_error(change.log_odds, change.standard_error),
        ]
        for change in changes
    ]
    headers = ["n-gram", "wanted", *(f"right {name}" for name in names), "log odds"]
    note = f"Log odds of being right, {names[1]} beside {names[0]}, ± their standard error; the surest first."
    return TableSection(title, headers, rows, note if changes else "none")


# -- all of a comparison ---------------------------------------------------------------------------------------------


def comparison_text(comparison: Comparison) -> str:
    """Everything, for a terminal."""
    return _whole(comparison, TableSection.as_text, lambda example: example)


def comparison_markdown(comparison: Comparison) -> str:
    """Everything, as Markdown."""
    return _whole(comparison, TableSection.as_markdown, lambda example: f"```\n{example}\n```")


def _whole(comparison: Comparison, write: Callable[[TableSection], str], quote: Callable[[str], str]) -> str:
    parts = [write(section) for section in _sections(comparison)]
    for title, examples in _examples(comparison):
        shown = "\n\n".join(_example(example, comparison) for example in examples)
        parts += [write(TableSection(title, [], [])), quote(shown) if examples else "none"]
    return "\n\n".join(parts)


def _sections(comparison: Comparison) -> list[TableSection]:
    names = (comparison.first.name, comparison.second.name)
    lengths = {system.name: system.by_length for system in comparison.systems}
    return [
        scores_section({system.name: system.scores for system in comparison.systems}),
        paired_section(names, (comparison.bleu, comparison.chrf)),
        lengths_section(lengths, "the source" if comparison.has_source else "the references"),
        frequencies_section(comparison),
        changes_section(f"n-grams gained: right more often in {names[1]}", comparison.gained, names),
        changes_section(f"n-grams lost: right more often in {names[0]}", comparison.lost, names),
        faults_section(comparison),
    ]


def _examples(comparison: Comparison) -> list[tuple[str, Sequence[SentenceDifference]]]:
    return [
        (f"Sentences that {comparison.second.name} translates better", comparison.better),
        (f"Sentences that {comparison.first.name} translates better", comparison.worse),
    ]


def _example(example: SentenceDifference, comparison: Comparison) -> str:
    """A sentence with its translations, one below the other."""
    lines = [
        *([("source", example.source)] if example.source is not None else []),
        ("reference", example.reference),
        (f"{comparison.first.name} {example.first_bleu:.1f}", example.first),
        (f"{comparison.second.name} {example.second_bleu:.1f}", example.second),
    ]
    width = max(len(name) for name, _ in lines)
    return "\n".join([f"line {example.line:,}", *(f"  {name:>{width}}: {text}" for name, text in lines)])


def _ratio(number: float) -> str | None:
    return None if math.isnan(number) else f"{number:.3f}"


def _percent(share: float) -> str | None:
    return None if math.isnan(share) else f"{100 * share:.1f}"


def _one_digit(numbers: Iterable[float]) -> list[str]:
    return [f"{number:.1f}" for number in numbers]
