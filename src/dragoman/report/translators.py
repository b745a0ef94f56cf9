"""Translators side by side on sentences of which everything is known: the parts of a report about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.vocabulary import END, SPECIALS
from dragoman.evaluation.alignment import GoldAlignment
from dragoman.evaluation.floor import PointEstimate
from dragoman.evaluation.translation_metrics import TranslationScores
from dragoman.evaluation.translator import DEFAULT_BEAM, TranslatorEvaluation
from dragoman.report.charts import FLOOR_LABEL as FLOOR
from dragoman.report.page import Heatmap, PageSection, PageTable, Paragraphs, without_empty_columns
from dragoman.report.tables import format_with_error

SCORES = """\
Perplexity: out of how many words, on average, does the translator pick the next one, given the German sentence? An \
unknown word is paid for in full, as one of 10,000,000; by class, it only costs being unknown. No translator can be \
expected below the floor, which is what the references cost by the grammar that they were drawn from; ± is a standard \
error.

BLEU: how much of the reference's words, in runs of up to four, is in the translation, from 0 to 100; by beam search \
with {beam} hypotheses, and greedily, word by word. Length: words of the translations by words of the references. \
Alignment error: % by which the source words that are most attended to, as the reference is predicted, differ from the \
true alignment."""
LENGTHS = """\
BLEU of beam search by the words of the German sentence. An encoder-decoder without attention keeps the whole sentence \
in one vector, and the longer the sentence, the less of it comes back; with attention every word can be looked up."""
SCORED = (  # the columns of `TranslatorRung.cells`
    *(
        "perplexity",
        "by class",
        "nats above the floor",
        f"BLEU, beam {DEFAULT_BEAM}",
        "greedy",
        "length",
        "alignment error",
    ),
    *("parameters", "seconds"),
)
EXAMPLE_WORDS = range(7, 11)  # words of a sentence whose attention is shown: it fits the width of a terminal


@dataclass(frozen=True)
class TranslatorRung:
    """One translator, measured."""

    name: str
    measured: TranslatorEvaluation  # by beam search
    greedy: TranslationScores  # the same where each word is the most probable one
    seconds: float  # of training
    parameters: int  # numbers that were learned

    def cells(self) -> list[object]:
        own = self.measured
        error = None if own.alignment is None else f"{100 * own.alignment.error_rate:.1f}"
        above = None if own.above_floor is None else f"{own.above_floor:.3f}"
        return [
            *(own.perplexity, own.perplexity_class, above),
            *(f"{own.scores.bleu:.1f}", f"{self.greedy.bleu:.1f}", f"{own.scores.length_ratio:.3f}"),
            *(error, self.parameters, f"{self.seconds:,.1f}"),
        ]

    def as_dict(self) -> dict[str, Any]:
        about = {"model": self.name, "training_seconds": round(self.seconds, 3), "parameters": self.parameters}
        return {**about, **self.measured.as_dict(), "greedy": self.greedy.as_dict()}


# -- tables ----------------------------------------------------------------------------------------------------------


def scores_section(rungs: Sequence[TranslatorRung]) -> PageSection:
    """A row for each translator, and the floor."""
    headers = ["German to English", *SCORED]
    floor: list[object] = [FLOOR, format_with_error(*translation_floor(rungs)), None, "0", *[None] * (len(headers) - 4)]
    rows: list[list[object]] = [*([rung.name, *rung.cells()] for rung in rungs), floor]
    return PageSection("Translators", [PageTable(headers, rows), Paragraphs(SCORES.format(beam=DEFAULT_BEAM))])


def scores_table(rungs: Sequence[TranslatorRung], name: str) -> PageTable:
    """A row for each translator, of any text: neither floor nor true alignment.  # name: of the first column"""
    return without_empty_columns(PageTable([name, *SCORED], [[rung.name, *rung.cells()] for rung in rungs]))


def translation_floor(rungs: Sequence[TranslatorRung]) -> PointEstimate:
    """All are measured on the same text, of which the truth is known."""
    floor = rungs[0].measured.floor
    assert floor is not None, "laboratory text"
    return floor


def lengths_section(rungs: Sequence[TranslatorRung]) -> PageSection:
    return PageSection("BLEU by sentence length", [lengths_table(rungs), Paragraphs(LENGTHS)])


def lengths_table(rungs: Sequence[TranslatorRung]) -> PageTable:
    """A row for each translator, a column for each class of length."""
    classes = rungs[0].measured.by_length
    rows: list[list[object]] = [[rung.name, *(f"{own.bleu:.1f}" for own in rung.measured.by_length)] for rung in rungs]
    headers = ["BLEU by words", *(own.bucket.name for own in classes)]
    rows.append(["sentences", *(own.sentences for own in classes)])
    return PageTable(headers, rows)


def translators_dict(rungs: Sequence[TranslatorRung]) -> list[dict[str, Any]]:
    """All of it as plain values."""
    return [rung.as_dict() for rung in rungs]


# -- for pictures ----------------------------------------------------------------------------------------------------


def class_sizes(rungs: Sequence[TranslatorRung]) -> dict[str, int]:
    """How many sentences each class of length has."""
    return {own.bucket.name: own.sentences for own in rungs[0].measured.by_length}


def bleu_by_class(rungs: Sequence[TranslatorRung]) -> dict[str, list[float]]:
    """BLEU of each translator for each class of length."""
    return {rung.name: [own.bleu for own in rung.measured.by_length] for rung in rungs}


def bleu_as_shares(rungs: Sequence[TranslatorRung]) -> dict[str, dict[str, float]]:
    """The same from 0 to 1: {translator: {class: share}}."""
    return {rung.name: {own.bucket.name: own.bleu / 100 for own in rung.measured.by_length} for rung in rungs}


# -- attention -------------------------------------------------------------------------------------------------------


def choose_example(lines: Sequence[str], gold: Sequence[GoldAlignment] | None) -> int:
    """The number of a sentence to show attention on: not long and, if there is one, with words that change places.

    >>> short, straight, crossed = ("a b", "a b c d e f g", "a b c d e f h")
    >>> links = [frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (6, 6)}), frozenset({(0, 6), (6, 0)})]
    >>> example_of([short, straight, crossed], [Gold(own, own) for own in links])
    2
    """
    fitting = [number for number, line in enumerate(lines) if len(line.split()) in EXAMPLE_WORDS]
    crossing = [number for number in fitting if gold is not None and _crosses(gold[number])]
    return next(iter([*crossing, *fitting, 0]))


def _crosses(gold: GoldAlignment) -> bool:
    """Whether the order of target words is another than that of the source words that they are linked to."""
    targets = [target for _, target in sorted(gold.sure)]
    return targets != sorted(targets)


def heatmap(name: str, target: Sequence[str], source: str, attention: NDArray[np.float64]) -> Heatmap:
    """Where a translator looked.  # attention: (target words, source words and `</s>`)"""
    return Heatmap(target, (*source.split(), SPECIALS[END]), attention, f"{name}: each row sums to 1")


def attention_section(source: str, reference: str, heatmaps: Sequence[Heatmap]) -> PageSection:
    """One sentence by several translators."""
    about = f"{source}\n\n{reference}\n\nEach translator's own translation at the left; darker: more attention."
    return PageSection("Attention to one sentence", [Paragraphs(about), *heatmaps])


# -- examples --------------------------------------------------------------------------------------------------------


def examples_section(
    lines: Sequence[str],
    references: Sequence[str],
    translations: Mapping[str, Sequence[str]],
    numbers: Sequence[int],
    source: str = "German",
) -> PageSection:
    """Some sentences with their references and translations."""
    tables = [
        PageTable(
            [f"sentence {number + 1}", f"{len(lines[number].split())} words"],
            [
                [source, lines[number]],
                ["reference", references[number]],
                *([name, told[number]] for name, told in translations.items()),
            ],
        )
        for number in numbers
    ]
    return PageSection("Example translations", tables)


def first_of_each_length(lines: Sequence[str], rung: TranslatorRung) -> list[int]:
    """The first sentence of each class of length."""
    lengths = [len(line.split()) for line in lines]
    spans = [own.bucket for own in rung.measured.by_length]
    return [
        next(number for number, length in enumerate(lengths) if span.minimum <= length <= (span.maximum or length))
        for span in spans
    ]
