"""The tutorial's story told with one's own text: word alignment, translators and their search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dragoman.data.vocabulary import END, SPECIALS
from dragoman.evaluation.translation_metrics import FEW_SENTENCES, TranslationScores
from dragoman.evaluation.translator import DEFAULT_BEAM, DEFAULT_LENGTH
from dragoman.report.charts import draw_bleu_by_length
from dragoman.report.corpus_language import describe_change, join_names, than
from dragoman.report.page import Heatmap, PageFigure, PagePart, PageSection, PageTable, Paragraphs
from dragoman.report.translators import (
    TranslatorRung,
    bleu_by_class,
    class_sizes,
    examples_section,
    first_of_each_length,
    lengths_table,
    scores_table,
)

EVENLY = 2.5  # times the share of all alike, below which attention is called even
TOO_FEW = 300  # sentences, below which small differences of BLEU say little
WORTH = 0.03  # probability from which on a translation of a word is shown
LITTLE = 0.3  # points of BLEU, below which a difference is not worth a word
LEAST_LEARNED = 2.0  # BLEU, below which there is nothing to be found
LEAST_SHORT = 10.0  # BLEU of short sentences, from which on what is left of it for long ones is told
SCORES = """\
Perplexity: out of how many words, on average, does the translator pick the next one of the reference, given the \
source? BLEU: how much of the reference's words, in runs of up to four, is in the translation, from 0 to 100; by beam \
search with {beam} hypotheses, and greedily, word by word. Length: words of the translations by words of the \
references."""


@dataclass(frozen=True)
class LexiconExample:
    """A word of the lexicon."""

    word: str
    count: int  # that it was seen
    translations: tuple[tuple[str, float], ...]  # with their probabilities, likeliest first

    @property
    def translations_text(self) -> str:
        """Those worth telling, and the first in any case."""
        kept = [own for place, own in enumerate(self.translations) if not place or own[1] >= WORTH]
        return ", ".join(f"{word} {100 * prob:.0f}%" for word, prob in kept)


@dataclass(frozen=True)
class SearchVariant:
    """What one way to search leads to."""

    beam: int
    length: str  # handling of lengths
    judged: TranslationScores

    def as_dict(self) -> dict[str, Any]:
        return {"beam": self.beam, "length": self.length, **self.judged.as_dict()}


@dataclass(frozen=True, eq=False)
class AttentionExample:
    """A sentence, its translation, and where attention was."""

    source: str
    reference: str
    translation: str
    target_words: Sequence[str]
    source_words: Sequence[str]
    matrix: ArrayLike  # (target words and `</s>`, source words and `</s>`)


def describe_units(spec: str) -> str:
    """
    >>> units_told("subword:4000"), units_told("word"), units_told("char")
    ('pieces of words (4000 kinds)', 'words', 'characters')
    """
    kind, _, number = spec.partition(":")
    names = {"word": "words", "char": "characters"}
    return names.get(kind, f"pieces of words ({number} kinds)")


def describe_difference(new: float, old: float) -> str:
    """How a BLEU score is beside another.

    >>> difference(30.0, 20.0), difference(20.0, 20.1), difference(18.0, 20.0)
    ('10.0 points more', 'about as much', '2.0 points less')
    """
    if abs(new - old) < LITTLE:
        return "about as much"
    return f"{abs(new - old):.1f} points {'more' if new > old else 'less'}"


# -- words -----------------------------------------------------------------------------------------------------------


def lexicon_section(
    entries: Sequence[LexiconExample], pairs: int, certain: float, names: tuple[str, str]
) -> PageSection:
    """What some words are translated to."""
    source, target = names
    idea = (
        f"Which word of {target} belongs to which of {source}? Nobody says; but words that belong together come "
        "together, sentence after sentence. IBM Model 1 and a hidden Markov model find that out by counting what they "
        "believe, and believing what they have counted (EM). A lexicon of translation probabilities comes of it."
    )
    rows: list[list[object]] = [[one.word, one.count, one.translations_text] for one in entries]
    seen = (
        f"Learned from {pairs:,} pairs. {100 * certain:.0f}% of the words that were seen often have one translation "
        "that is more probable than all others together; the rest share theirs out among forms, or among meanings."
    )
    table = PageTable([f"word of {source}", "times", "likeliest translations"], rows)
    return PageSection("Words that belong together", [Paragraphs(idea), table, Paragraphs(seen)])


# -- translators -----------------------------------------------------------------------------------------------------


def translators_section(
    rungs: Sequence[TranslatorRung], units: tuple[str, str], sentences: tuple[int, int], alone: float | None
) -> PageSection:
    """Encoder-decoder and attention.  # sentences: translated, and all; alone: best perplexity without the source"""
    plain, attending = rungs[0], rungs[1]
    idea = (
        "A translator is a language model that has read the source sentence. An encoder-decoder reads it into one "
        "vector, and predicts the translation from that. With attention it keeps a vector for each word, and looks, "
        f"for each word it writes, at those it needs. Here the source is read in {describe_units(units[0])}, the "
        f"translation written in {describe_units(units[1])}, chosen by the text."
    )
    one, other = plain.measured, attending.measured
    gain = than(describe_difference(other.scores.bleu, one.scores.bleu), "without")
    cost = describe_change(other.perplexity, one.perplexity)
    seen = f"With attention BLEU is {other.scores.bleu:.1f}, {gain}, and perplexity is {cost}. "
    if alone is not None:
        best = min(one.perplexity, other.perplexity)
        seen += (
            f"Knowing the source is worth much: the best language model that does not has a perplexity of "
            f"{alone:,.1f}, and {best:,.1f} is left. "
            if best < alone
            else f"Yet the best language model, which does not see the source, predicts it better ({alone:,.1f}): "
            "there was too little time or text to learn how to use it. "
        )
    if sentences[0] < sentences[1]:
        seen += (
            f"There was time to translate {sentences[0]:,} of the {sentences[1]:,} test sentences, the same for all."
        )
    if sentences[0] < TOO_FEW:
        seen += f" With {sentences[0]:,} sentences, a point or two of BLEU may be chance."
    table = replace(scores_table(rungs, "translator"), caption=f"BLEU by sacreBLEU: {other.scores.signature}")
    parts: list[PagePart] = [Paragraphs(idea), table, Paragraphs(SCORES.format(beam=DEFAULT_BEAM)), Paragraphs(seen)]
    return PageSection("Encoder-decoder and attention", parts)


def sentence_lengths_section(rungs: Sequence[TranslatorRung], picture: Path) -> PageSection:
    """BLEU by the length of sentences."""
    idea = (
        "One vector has to hold a short sentence or a long one; attention keeps as many as there are words. So what "
        "becomes of long sentences tells the two apart."
    )
    draw_bleu_by_length(class_sizes(rungs), bleu_by_class(rungs), picture, title="BLEU by sentence length")
    drawn = PageFigure(picture.read_text(encoding="utf-8"), "BLEU by words of the source sentence")
    enough = [place for place, own in enumerate(rungs[0].measured.by_length) if own.sentences >= FEW_SENTENCES]
    parts: list[PagePart] = [Paragraphs(idea), lengths_table(rungs), drawn, Paragraphs(_by_length(rungs, enough))]
    return PageSection("Long sentences", parts)


def _by_length(rungs: Sequence[TranslatorRung], enough: Sequence[int]) -> str:
    if len(enough) < 2:
        return f"There are too few test sentences to compare lengths: fewer than {FEW_SENTENCES} in most classes."
    first, last = enough[0], enough[-1]
    spans = rungs[0].measured.by_length
    told = []
    for rung in rungs[:2]:
        short, long = rung.measured.by_length[first].bleu, rung.measured.by_length[last].bleu
        kept = f", {100 * long / short:.0f}% of it" if short >= LEAST_SHORT else ""
        told.append(f"{rung.name} has {short:.1f} and {long:.1f}{kept}")
    few = f" Classes of fewer than {FEW_SENTENCES} sentences say little." if len(enough) < len(spans) else ""
    return f"From {spans[first].bucket.name} words to {spans[last].bucket.name}: {'; '.join(told)}.{few}"


def attention_example_section(looked: AttentionExample) -> PageSection:
    idea = (
        "Each row is a word of the translation; the darker a word of the source, the more the translator looked at it "
        "while it chose that word. Nobody told it where to look."
    )
    end = SPECIALS[END]
    rows, columns = len(looked.matrix), len(looked.matrix[0])  # type: ignore[arg-type,index]  # an array
    heat = Heatmap(
        [*looked.target_words, end][:rows], [*looked.source_words, end][:columns], looked.matrix, "each row sums to 1"
    )
    lines = [["source", looked.source], ["reference", looked.reference], ["translation", looked.translation]]
    return PageSection(
        "Where attention looks",
        [Paragraphs(idea), PageTable(["", "a test sentence"], lines), heat, Paragraphs(_sharp(heat))],
    )


def _sharp(heat: Heatmap) -> str:
    """How sure attention is of where to look."""
    matrix = np.asarray(heat.matrix, np.float64)  # (target words, source words)
    most, even = float(matrix.max(1).mean()), 1 / matrix.shape[1]
    told = f"On average the word looked at most has {100 * most:.0f}% of the attention"
    if most < EVENLY * even:
        return f"{told}, where looking at all alike gives each {100 * even:.0f}%: it has not learned where to look yet."
    return f"{told}; looking at all alike would give each {100 * even:.0f}%."


# -- search ----------------------------------------------------------------------------------------------------------


def search_section(searches: Sequence[SearchVariant], name: str) -> PageSection:
    """Beams and lengths."""
    idea = (
        "The most probable translation has to be searched for. Greedy search takes the most probable word each time "
        "and may regret it; a beam keeps several beginnings. But every word costs probability, so the more is "
        "searched, the shorter the translations that are found: dividing by the length (norm), or asking for a length "
        "as in the training text (prior), holds against it."
    )
    rows: list[list[object]] = [
        [own.length, own.beam, f"{own.judged.bleu:.1f}", f"{own.judged.length_ratio:.3f}", f"{own.judged.chrf:.1f}"]
        for own in searches
    ]
    by_key = {(own.beam, own.length): own.judged for own in searches}
    greedy, beam = by_key[1, DEFAULT_LENGTH], by_key[DEFAULT_BEAM, DEFAULT_LENGTH]
    seen = (
        f"By BLEU a beam of {DEFAULT_BEAM} has {than(describe_difference(beam.bleu, greedy.bleu), 'greedy search')}. "
    )
    bare = [own for own in searches if own.length == "none"]
    if bare:
        widest = max(bare, key=lambda own: own.beam)
        normed = by_key.get((widest.beam, DEFAULT_LENGTH), beam)
        seen += (
            f"Without length handling, a beam of {widest.beam} writes {widest.judged.length_ratio:.2f} times as many "
            f"words as the references, with it {normed.length_ratio:.2f}. "
        )
    best = max(searches, key=lambda own: own.judged.bleu)
    seen += (
        f"Best here: {best.judged.bleu:.1f} with a beam of {best.beam} and {best.length}."
        if best.judged.bleu >= LEAST_LEARNED
        else "But no search finds what has not been learned: there was too little time or text."
    )
    table = PageTable(["length handling", "beam", "BLEU", "length", "chrF"], rows, f"{name}, by several searches")
    return PageSection("Searching", [Paragraphs(idea), table, Paragraphs(seen)])


def replaced_section(bleu: Mapping[str, float], unknown: float) -> PageSection:
    """Unknown words replaced, where words are written.  # unknown: share of the source's test words"""
    idea = (
        "A translator that writes whole words cannot write those it does not know: it writes <unk>. Attention says "
        "which word of the source that stands for; its translation can be looked up in the lexicon, or the word be "
        "copied, as suits names and numbers."
    )
    first, *others = bleu.items()
    told = [f"{name}: {describe_difference(score, first[1])}" for name, score in others]
    seen = f"{100 * unknown:.1f}% of the source's words in the test text are unknown. Against {first[0]}, {join_names(told)}."
    rows: list[list[object]] = [[name, f"{score:.1f}"] for name, score in bleu.items()]
    return PageSection(
        "Unknown words in translations",
        [Paragraphs(idea), PageTable(["unknown words", "BLEU"], rows), Paragraphs(seen)],
    )


def ensemble_section(members: Sequence[TranslatorRung], together: TranslatorRung) -> PageSection:
    idea = (
        "Two translators that differ in nothing but the chance they began with make different mistakes. Averaging "
        "their probabilities word by word keeps what they agree about."
    )
    best = max(members, key=lambda rung: rung.measured.scores.bleu)
    gain = describe_difference(together.measured.scores.bleu, best.measured.scores.bleu)
    seen = f"Together they have {together.measured.scores.bleu:.1f} BLEU, {than(gain, 'the better of them')}"
    seen += (
        f"; perplexity is {describe_change(together.measured.perplexity, min(m.measured.perplexity for m in members))}."
    )
    table = scores_table([*members, together], "translator")
    return PageSection("Together", [Paragraphs(idea), table, Paragraphs(seen)])


def samples_section(rungs: Sequence[TranslatorRung], sources: Sequence[str], references: Sequence[str]) -> PageSection:
    """One sentence of each length by all translators."""
    told = {rung.name: rung.measured.texts for rung in rungs}
    section = examples_section(sources, references, told, first_of_each_length(sources, rungs[0]), "source")
    idea = Paragraphs("The first test sentence of each length, as each translator has it (beam search).")
    return PageSection("Sample translations", [idea, *section.parts])
