"""The tutorial's story told with one's own text: the text, and language models of it.

A section says what the idea is, shows the numbers, and then says what is to be seen in them, by rules.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.corpus import Corpus
from dragoman.report.charts import draw_ladder
from dragoman.report.ladder import LanguageModelRung, costs_table
from dragoman.report.page import (
    PageFigure,
    PagePart,
    PageSection,
    PageTable,
    Paragraphs,
    Preformatted,
    without_empty_columns,
)

ALIKE = 0.01  # perplexities that differ by less than this share are called about the same
SHOWN_UNKNOWN = 15  # unknown words that are shown
LONGEST = 160  # characters of a line that is shown
PERPLEXITY = """\
Perplexity: out of how many words, on average, does the model pick the next one? An unknown word is paid for in full, \
as one of 10,000,000; by class, it only costs being unknown. Seconds are those of training, a mixture's with those of \
its members; MB are those of the model on disk."""


@dataclass(frozen=True)
class CorpusLanguage:
    """One language of the text: its three parts as words."""

    name: str
    train: Corpus
    dev: Corpus
    test: Corpus


def describe_change(new: float, old: float) -> str:
    """How a cost is beside another.

    >>> compared(80.0, 100.0), compared(100.2, 100.0), compared(110.0, 100.0)
    ('20% lower', 'about the same', '10% higher')
    """
    change = new / old - 1 if math.isfinite(new) and math.isfinite(old) and old else 0.0
    if abs(change) < ALIKE:
        return "about the same"
    return f"{100 * abs(change):.0f}% {'lower' if change < 0 else 'higher'}"


def than(told: str, other: str) -> str:
    """A comparison, and what is compared with.

    >>> than("20% lower", "before"), than("about the same", "before")
    ('20% lower than before', 'about the same as before')
    """
    return f"{told} {'as' if told.startswith('about') else 'than'} {other}"


def join_names(names: Iterable[str]) -> str:
    """
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def perplexity_of(rungs: Sequence[LanguageModelRung], name: str) -> float:
    """The perplexity of a model."""
    return next(rung.measured.likelihood.perplexity for rung in rungs if rung.name == name)


def select_rungs(rungs: Sequence[LanguageModelRung], names: Sequence[str]) -> list[LanguageModelRung]:
    """These, in this order."""
    return [rung for name in names for rung in rungs if rung.name == name]


# -- the text --------------------------------------------------------------------------------------------------------


def text_section(
    languages: Sequence[CorpusLanguage], examples: Sequence[Sequence[str]], notes: Sequence[str]
) -> PageSection:
    """How much text there is, and some of it.  # examples: lines, with their translations"""
    idea = (
        "Everything below is learned from the training text. The dev text says when to stop, and how to mix; the test "
        "text is looked at by nobody before it is used to compare models. A word is what stands between spaces."
    )
    headers = ["text", "language", "lines", "words", "words a line", "kinds of words", "unknown words"]
    rows = [row for part in ("train", "dev", "test") for row in _sizes(part, languages)]
    shown = Preformatted("\n\n".join("\n  ".join(line[:LONGEST] for line in lines) for lines in examples))
    seen = " ".join([*notes, *(_of_language(own) for own in languages)])
    one = len(languages) == 1
    table = PageTable(
        headers, [[None if one and place == 1 else cell for place, cell in enumerate(row)] for row in rows]
    )
    return PageSection("The text", [Paragraphs(idea), without_empty_columns(table), shown, Paragraphs(seen)])


def _sizes(part: str, languages: Sequence[CorpusLanguage]) -> list[list[object]]:
    rows: list[list[object]] = []
    for own in languages:
        corpus: Corpus = getattr(own, part)
        kinds = len(set(corpus.ids.tolist())) if part == "train" else _kinds(corpus)
        unknown = None if part == "train" else f"{100 * len(corpus.unknown_positions) / max(1, corpus.num_words):.1f}%"
        length = f"{corpus.num_words / max(1, corpus.num_sentences):.1f}"
        rows.append([part, own.name, corpus.num_sentences, corpus.num_words, length, kinds, unknown])
    return rows


def _kinds(corpus: Corpus) -> int:
    known = set(corpus.ids.tolist())
    return len(known) - bool(len(corpus.unknown_positions)) + len(corpus.spellings)


def _of_language(own: CorpusLanguage) -> str:
    once = int((own.train.vocab.counts == 1).sum())
    kinds = len(set(own.train.ids.tolist()))
    unknown = len(own.test.unknown_positions) / max(1, own.test.num_words)
    return (
        f"Of the {kinds:,} kinds of words in {own.name}, {100 * once / max(1, kinds):.0f}% come once only, and "
        f"{100 * unknown:.1f}% of the words of the test text never came before."
    )


# -- counting --------------------------------------------------------------------------------------------------------


def counting_section(rungs: Sequence[LanguageModelRung], picture: Path) -> PageSection:
    """n-grams of growing order.  # rungs: order 1, 2, 3, ..."""
    idea = (
        "The simplest language model counts: how often did each word follow the n - 1 words before it? Longer contexts "
        "say more but are seen more seldom, so modified Kneser-Ney smoothing takes a little from what was seen and "
        "gives it to shorter contexts. kn-5 is of order 5: it sees four words. By class: where an unknown word costs "
        "only being unknown, as explained below."
    )
    costs = [rung.measured.likelihood.perplexity for rung in rungs]
    best = min(range(len(costs)), key=costs.__getitem__)
    seen = f"Knowing one word before instead of none makes perplexity {describe_change(costs[1], costs[0])}. "
    seen += f"Order {best + 1} is the best with {costs[best]:,.1f}; "
    enough = next(order for order, cost in enumerate(costs) if cost <= costs[best] * (1 + ALIKE))
    seen += (
        f"from order {enough + 1} on there is no more than {100 * ALIKE:.0f}% to be gained: longer contexts are too "
        "rare in a text of this size."
        if enough < len(costs) - 1
        else "each longer context has helped, so a still longer one, or more text, may help further."
    )
    _draw(rungs, picture, "Perplexity of the test text by the order of the n-grams")
    return PageSection(
        "Counting words", [Paragraphs(idea), costs_table(rungs, "model"), _shown(picture), Paragraphs(seen)]
    )


def unknown_section(rung: LanguageModelRung, test: Corpus) -> PageSection:
    """What unknown words cost by one model."""
    idea = (
        "A word that was never seen has to get a probability, too, or the whole sentence has none. Here it is paid for "
        "in two parts: that it is unknown, by the model, and which one it is, as one of ten million words. What a "
        "model pays depends on it, so comparing models of different vocabularies without that is comparing nothing."
    )
    own = rung.measured.likelihood
    rows: list[list[object]] = [
        ["unknown words left out", own.tokens - own.unknown_words, own.perplexity_known],
        ["an unknown word costs being unknown", own.tokens, own.perplexity_class],
        ["and which one it is", own.tokens, own.perplexity],
    ]
    price = own.log_likelihood_unknown_class + own.log_likelihood_unknown
    share = price / own.log_likelihood_total if own.log_likelihood_total else 0.0
    seen = f"{own.unknown_words:,} of {own.words:,} words of the test text are unknown"
    if own.unknown_words:
        of_words = own.unknown_words / own.tokens
        seen += f": {100 * of_words:.1f}% of what is predicted, and {100 * share:.0f}% of what the text costs. "
        common = Counter(test.unknown_words).most_common(SHOWN_UNKNOWN)
        seen += f"Some of them: {', '.join(word for word, _ in common)}."
    else:
        seen += "."
    headers = [f"price by {rung.name}", "tokens", "perplexity"]
    return PageSection("Unknown words", [Paragraphs(idea), PageTable(headers, rows), Paragraphs(seen)])


# -- classes, features, networks, mixtures ---------------------------------------------------------------------------


def classes_section(rungs: Sequence[LanguageModelRung]) -> PageSection:
    """Classes and a cache.  # rungs: the n-grams that they start from, classes, cache"""
    idea = (
        "Counts can be shared out better. Classes put words that occur alike together, so that what is counted of one "
        "serves all. A cache believes that words come back: it mixes in how often each word came in the lines before."
    )
    base, classes, cache = (rung.measured.likelihood.perplexity for rung in rungs)
    seen = f"Beside {rungs[0].name}, perplexity with classes is {describe_change(classes, base)}, with a cache "
    seen += f"{describe_change(cache, base)}. "
    seen += (
        "Words do come back here: lines that follow each other belong together."
        if cache < base * (1 - ALIKE)
        else "A cache has little to remember where lines that follow each other have little to do with each other."
    )
    return PageSection("Classes and a cache", [Paragraphs(idea), costs_table(rungs, "model"), Paragraphs(seen)])


def networks_section(rungs: Sequence[LanguageModelRung]) -> PageSection:
    """What learns by gradients.  # rungs: the n-grams to compare with, log-linear, feed-forward, recurrent"""
    idea = (
        "Instead of counting contexts, learn what each word of the context says. A log-linear model adds up a score "
        "for each of the last four words; a feed-forward network turns them into vectors, in which similar words are "
        "near each other, and lets them work together in a hidden layer; a recurrent network (LSTM) reads the whole "
        "sentence so far, one word at a time, and keeps what it needs."
    )
    base, *others = rungs
    cost = base.measured.likelihood.perplexity
    told = [f"{rung.name} {describe_change(rung.measured.likelihood.perplexity, cost)}" for rung in others]
    seen = f"Beside the counts of {base.name}, perplexity is by {join_names(told)}. "
    best = min(rungs, key=lambda rung: rung.measured.likelihood.perplexity)
    seen += (
        f"Counting is not beaten in this time, which was short for networks: {max(r.seconds for r in others):,.0f} "
        "seconds at most. More minutes let them catch up."
        if best is base
        else f"The best of them is {best.name}, with {best.measured.likelihood.perplexity:,.1f}."
    )
    return PageSection("Features and networks", [Paragraphs(idea), costs_table(rungs, "model"), Paragraphs(seen)])


def mixtures_section(
    rungs: Sequence[LanguageModelRung], mixtures: Mapping[str, Sequence[str]], picture: Path
) -> PageSection:
    """Mixtures, and all models side by side.  # mixtures: name and members"""
    tokens = rungs[0].measured.likelihood.tokens
    idea = (
        "Models that err in different places do better together. A linear mixture averages their probabilities, with "
        "weights that make the dev text most probable. All models here are compared on the same "
        f"{tokens:,} tokens of the test text."
    )
    told = []
    for name, members in mixtures.items():
        best = min(members, key=lambda member: perplexity_of(rungs, member))
        told.append(
            f"{name} is {than(describe_change(perplexity_of(rungs, name), perplexity_of(rungs, best)), f'{best} alone')}"
        )
    first = min(rungs, key=lambda rung: rung.measured.likelihood.perplexity)
    seen = (
        f"In perplexity, {join_names(told)}. Best of all is {first.name}: {first.measured.likelihood.perplexity:,.1f}."
    )
    _draw(rungs, picture, "Perplexity of the test text by each model")
    parts: list[PagePart] = [
        Paragraphs(idea),
        costs_table(rungs, "model"),
        Paragraphs(PERPLEXITY),
        _shown(picture),
        Paragraphs(seen),
    ]
    return PageSection("Mixtures, and all language models", parts)


def _draw(rungs: Sequence[LanguageModelRung], picture: Path, title: str) -> None:
    draw_ladder({rung.name: rung.measured.likelihood.perplexity for rung in rungs}, None, {}, picture, title=title)


def _shown(picture: Path, caption: str = "perplexity of the test text, on a scale of logarithms") -> PageFigure:
    return PageFigure(picture.read_text(encoding="utf-8"), caption)
