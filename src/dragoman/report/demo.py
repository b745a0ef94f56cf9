"""The demo's story: sections that are printed one by one as they come about, and make the report's page at the end."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from dragoman.evaluation.floor import Measured
from dragoman.report.attention import attention_text
from dragoman.report.page import Heatmap, Part, Picture, Pre, Section, Table, Text
from dragoman.report.tables import plus_minus, table
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
class Row:
    """One model of the demo: what it predicts, what that costs, and what it took."""

    name: str
    predicts: str
    perplexity: float
    floor: str | float | None  # none where the truth is not known
    bleu: float | None
    seconds: float

    @classmethod
    def of_language_model(cls, name: str, measured: Measured, seconds: float) -> Row:
        floor = None if measured.floor is None else plus_minus(*measured.floor.perplexity)
        return cls(name, "P(E)", measured.likelihood.perplexity, floor, None, seconds)

    @classmethod
    def of_translator(cls, rung: TranslatorRung) -> Row:
        own, floor = rung.measured, None if rung.measured.floor is None else plus_minus(*rung.measured.floor)
        return cls(rung.name, "P(E | F)", own.perplexity, floor, own.judged.bleu, rung.seconds)

    def cells(self) -> list[object]:
        bleu = None if self.bleu is None else f"{self.bleu:.1f}"
        return [self.name, self.predicts, self.perplexity, self.floor, bleu, f"{self.seconds:.1f}"]


# -- sections --------------------------------------------------------------------------------------------------------


def pairs_section(pairs: Sequence[tuple[str, str]]) -> Section:
    """Some pairs of the training text."""
    about = "Pairs drawn from the laboratory's grammar, which knows how probable each of them is."
    return Section("The text", [Text(about), Pre("\n".join(f"{german}\n  {english}" for german, english in pairs))])


def models_section(rows: Sequence[Row]) -> Section:
    headers = ["model", "predicts", "perplexity", "its floor", "BLEU", "seconds"]
    return Section("Models beside the truth", [Table(headers, [row.cells() for row in rows]), Text(MODELS)])


def sentence_section(source: str, reference: str, told: Mapping[str, str], looked: Heatmap) -> Section:
    """One test sentence by all translators, and the attention of one of them."""
    lines = {"German": source, "reference": reference, **told}
    wide = max(map(len, lines))
    texts = "\n".join(f"{name:{wide}}  {line}" for name, line in lines.items())
    return Section("One sentence, translated", [Pre(texts), looked, Text(SENTENCE)])


def curves_section(svg: str) -> Section:
    return Section("Learning curves", [Text(CURVES), Picture(svg, "perplexity of the held-out text, by class")])


def commands_section(commands: Sequence[str]) -> Section:
    return Section("What to try next", [Pre("\n".join(commands))])


def curve(metrics: Path) -> list[tuple[float, float]]:
    """Minutes of training and perplexity of the dev text, from what a training noted."""
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    return [(line["seconds"] / 60, math.exp(line["dev_loss"])) for line in lines if line.get("dev_loss", 99.0) < 20]


# -- as text ---------------------------------------------------------------------------------------------------------


def as_text(section: Section, *, width: int = WIDTH, colour: bool = False) -> str:
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


def _told(part: Part, width: int, colour: bool) -> Iterator[str]:
    match part:
        case Text():
            yield from (fill(paragraph, width) for paragraph in part.text.split("\n\n"))
        case Pre():
            yield part.text
        case Table():
            yield table(part.headers, part.rows)
        case Heatmap():
            caption = [part.caption] if part.caption else []
            picture = attention_text(part.target_words, part.source_words, part.matrix, width, colour)
            yield "\n".join([*caption, picture])
