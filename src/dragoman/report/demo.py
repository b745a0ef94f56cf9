"""The demo's story: sections that are printed one by one as they come about, and make the report's page at the end."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from dragoman.evaluation.floor import LanguageModelEvaluation
from dragoman.report.attention import attention_text
from dragoman.report.page import Heatmap, PageFigure, PagePart, PageSection, PageTable, Paragraphs, Preformatted
from dragoman.report.tables import format_table, format_with_error
from dragoman.report.translators import TranslatorRung

WIDTH = 110  # columns of what is printed
MODELS = """\
Perplexity: out of how many words, on average, does the model pick the next one? A language model (P(E)) sees the \
English words so far; a translator (P(E | F)) sees the German sentence too, so its floor is lower.

The floor is what the test text costs by the grammar it was drawn from: no model can be expected below it, and ± is \
its standard error. An unknown word is paid for in full, as one of 10,000,000. BLEU, from 0 to 100, is how much of the \
reference is in the translation."""
CURVES = """\
What the held-out text costs after each pass over the training text; an unknown word only costs being unknown."""
SENTENCE = """\
Each row is an English word of the translation; the darker a German word, the more the translator looked at it while \
it chose that word. Where German has its verb at the end, the dark fields leave the diagonal."""


@dataclass(frozen=True)
class SummaryRow:
    """One model of the demo: what it predicts, what that costs, and what it took."""

    name: str
    predicts: str
    perplexity: float
    floor: str | float | None  # none where the truth is not known
    bleu: float | None
    seconds: float

    @classmethod
    def of_language_model(cls, name: str, measured: LanguageModelEvaluation, seconds: float) -> SummaryRow:
        floor = None if measured.floor is None else format_with_error(*measured.floor.perplexity)
        return cls(name, "P(E)", measured.likelihood.perplexity, floor, None, seconds)

    @classmethod
    def of_translator(cls, rung: TranslatorRung) -> SummaryRow:
        own, floor = rung.measured, None if rung.measured.floor is None else format_with_error(*rung.measured.floor)
        return cls(rung.name, "P(E | F)", own.perplexity, floor, own.scores.bleu, rung.seconds)

    def cells(self) -> list[object]:
        bleu = None if self.bleu is None else f"{self.bleu:.1f}"
        return [self.name, self.predicts, self.perplexity, self.floor, bleu, f"{self.seconds:.1f}"]


# -- sections --------------------------------------------------------------------------------------------------------


def pairs_section(pairs: Sequence[tuple[str, str]]) -> PageSection:
    """Some pairs of the training text."""
    about = "Pairs drawn from the laboratory's grammar, which knows how probable each of them is."
    return PageSection(
        "The text", [Paragraphs(about), Preformatted("\n".join(f"{german}\n  {english}" for german, english in pairs))]
    )


def models_section(rows: Sequence[SummaryRow]) -> PageSection:
    headers = ["model", "predicts", "perplexity", "its floor", "BLEU", "seconds"]
    return PageSection(
        "Models beside the truth", [PageTable(headers, [row.cells() for row in rows]), Paragraphs(MODELS)]
    )


def sentence_section(source: str, reference: str, told: Mapping[str, str], looked: Heatmap) -> PageSection:
    """One test sentence by all translators, and the attention of one of them."""
    lines = {"German": source, "reference": reference, **told}
    wide = max(map(len, lines))
    texts = "\n".join(f"{name:{wide}}  {line}" for name, line in lines.items())
    return PageSection("One sentence, translated", [Preformatted(texts), looked, Paragraphs(SENTENCE)])


def curves_section(svg: str) -> PageSection:
    return PageSection(
        "Learning curves", [Paragraphs(CURVES), PageFigure(svg, "perplexity of the held-out text, by class")]
    )


def commands_section(commands: Sequence[str]) -> PageSection:
    return PageSection("What to try next", [Preformatted("\n".join(commands))])


def read_learning_curve(metrics: Path) -> list[tuple[float, float]]:
    """Minutes of training and perplexity of the dev text, from what a training noted."""
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    return [(line["seconds"] / 60, math.exp(line["dev_loss"])) for line in lines if line.get("dev_loss", 99.0) < 20]


# -- as text ---------------------------------------------------------------------------------------------------------


def section_text(section: PageSection, *, width: int = WIDTH, colour: bool = False) -> str:
    """A section for a terminal; pictures are left to the page.

    >>> print(as_text(Section("Words", [Text("Two lines of it."), Table(["a"], [[1]])])))
    Words
    =====
    <BLANKLINE>
    Two lines of it.
    <BLANKLINE>
    a
    -
    1
    """
    heading = f"{section.heading}\n{'=' * len(section.heading)}"
    return "\n\n".join([heading, *(text for part in section.parts for text in _told(part, width, colour))])


def _told(part: PagePart, width: int, colour: bool) -> Iterator[str]:
    match part:
        case Paragraphs():
            yield from (fill(paragraph, width) for paragraph in part.text.split("\n\n"))
        case Preformatted():
            yield part.text
        case PageTable():
            yield format_table(part.headers, part.rows)
        case Heatmap():
            caption = [part.caption] if part.caption else []
            picture = attention_text(part.target_words, part.source_words, part.matrix, width, colour)
            yield "\n".join([*caption, picture])
