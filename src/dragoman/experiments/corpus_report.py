"""What there is to tell of a ladder on one's own text, in the tutorial's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.experiments.corpus_ladder import RUNGS_PLACE, TEXT, CorpusResults
from dragoman.experiments.corpus_models import (
    ATTENTION,
    CORPUS_LANGUAGE_MODELS,
    COUNTING,
    DESCRIPTIONS,
    ENSEMBLE,
    LEARNED,
    MIXED,
    SECOND,
    WITHIN,
)
from dragoman.experiments.corpus_split import SOURCE, TARGET, CorpusSplit
from dragoman.experiments.messages import ReportContents, SuggestedCommand
from dragoman.experiments.time_budget import TimeBudget

if TYPE_CHECKING:
    from dragoman.report.corpus_language import CorpusLanguage
    from dragoman.report.page import PageSection

SHOWN = 3  # lines of the text
ORDERS, MODELS, LENGTHS, CURVES = "orders.svg", "models.svg", "lengths.svg", "curves.svg"
PRINTED = (  # sections that go to standard output, too
    "Mixtures, and all language models",
    "Encoder-decoder and attention",
    "Long sentences",
    "Searching",
    "Together",
)
FEWEST = 3  # looks at the dev text, below which there is no curve to draw


@dataclass(frozen=True)
class CorpusNames:
    """What the text and its languages are called."""

    title: str  # of the report
    source: str  # of a text alone, as the target
    target: str


def corpus_report(
    output: Path,
    found: CorpusResults,
    budget: TimeBudget,
    about: CorpusNames,
    settings: dict[str, Any],
    commands: Sequence[str],
) -> ReportContents:
    """The whole story.  # commands: what to try next"""
    from dragoman.report.demo import commands_section, section_text
    from dragoman.report.page import Page, to_markdown

    halves = [_language_models(output, found, about), _translators(output, found, about)]
    sections = [_in_short(found, budget), *(section for half in halves for section in half)]
    learning = _learning(output, found)
    sections += [*learning, _time(found, budget), commands_section(commands)]
    drawn = [ORDERS, MODELS, *[LENGTHS] * bool(found.translators), *[CURVES] * bool(learning)]  # in the page's order
    shown = [section for section in sections if section.heading in PRINTED]
    return ReportContents(
        "\n\n".join(section_text(section) for section in shown),
        to_markdown(Page(about.title, sections), drawn),
        sections,
        {**settings, **_values(found, budget)},
        drawn,
    )


def _in_short(found: CorpusResults, budget: TimeBudget) -> PageSection:
    """The rungs that the story goes along, each with the best that there is."""
    from dragoman.report.corpus_language import select_rungs
    from dragoman.report.demo import SummaryRow
    from dragoman.report.page import PageSection, PageTable, Paragraphs, without_empty_columns

    counts = min(select_rungs(found.rungs, COUNTING), key=lambda rung: rung.measured.likelihood.perplexity)
    learned = min(select_rungs(found.rungs, LEARNED[1:]), key=lambda rung: rung.measured.likelihood.perplexity)
    best = min(found.rungs, key=lambda rung: rung.measured.likelihood.perplexity)
    rows = [SummaryRow.of_language_model(rung.name, rung.measured, rung.seconds) for rung in (counts, learned, best)]
    rows += [SummaryRow.of_translator(rung) for rung in found.translators if rung.name != SECOND]
    headers = ["model", "what it is", "predicts", "perplexity", "its floor", "BLEU", "seconds of training"]
    reads = " sees the words so far"
    if found.translators:
        reads += "; a translator (P(E | F)) has read the source sentence, too"
    top = "attention" if found.translators else "networks"
    idea = (
        f"Every model here is a distribution over the next word. A language model (P(E)){reads}. Perplexity says out "
        "of how many words, on average, it picks the next one of the test text: the fewer, the better. This page goes "
        f"up the ladder from counting words to {top}, all of it trained on this text in {budget.minutes:g} minutes."
    )
    kinds = {row.name: [row.name, DESCRIPTIONS[row.name], *row.cells()[1:]] for row in rows}  # the best may come twice
    some, whole = len(found.translated), len(found.text.test)
    caption = f"language models: {whole:,} test sentences; translators: {some:,} of them" if 0 < some < whole else ""
    return PageSection(
        "In short", [Paragraphs(idea), without_empty_columns(PageTable(headers, list(kinds.values()), caption))]
    )


# -- language models -------------------------------------------------------------------------------------------------


def _language_models(output: Path, found: CorpusResults, about: CorpusNames) -> list[PageSection]:
    from dragoman.report import corpus_language as tell

    rungs, test = found.rungs, found.text.words[2]
    mixtures = {name: CORPUS_LANGUAGE_MODELS[name].parts for name in MIXED}
    return [
        tell.text_section(_languages(found.text, about), _examples(found.text), _notes(found.text)),
        tell.counting_section(tell.select_rungs(rungs, COUNTING), output / ORDERS),
        tell.unknown_section(tell.select_rungs(rungs, COUNTING)[-1], test),
        tell.classes_section(tell.select_rungs(rungs, WITHIN)),
        tell.networks_section(tell.select_rungs(rungs, LEARNED)),
        tell.mixtures_section(rungs, mixtures, output / MODELS),
    ]


def _languages(text: CorpusSplit, about: CorpusNames) -> list[CorpusLanguage]:
    from dragoman.report.corpus_language import CorpusLanguage

    target = CorpusLanguage(about.target, *text.words)
    return [CorpusLanguage(about.source, *text.source_words), target] if text.is_parallel else [target]


def _examples(text: CorpusSplit) -> list[list[str]]:
    some = text.train.spread(SHOWN)
    return [line.split("\t") for line in some.lines]


def _notes(text: CorpusSplit) -> list[str]:
    """What was done to the text."""
    notes = []
    if text.held_out:
        parts = " and ".join(text.held_out)
        notes.append(
            f"Held out from the training text: {parts}, drawn from lines that come once, so that no line of theirs is "
            "in what is learned from."
        )
    if text.omitted:
        notes.append(f"There is no time for {text.omitted:,} more lines of the training text: they were left out.")
    if text.test_lines_in_training:
        notes.append(
            f"Careful: {text.test_lines_in_training:,} of the {len(text.test):,} test lines are in the training text."
        )
    return notes


# -- translators -----------------------------------------------------------------------------------------------------


def _translators(output: Path, found: CorpusResults, about: CorpusNames) -> list[PageSection]:
    from dragoman.report import corpus_translation as tell

    if not found.translators:
        return []
    alone = [rung for rung in found.translators if rung.name not in (SECOND, ENSEMBLE)]
    whole, some = len(found.text.test), len(found.translated)
    best = min(rung.measured.likelihood.perplexity for rung in found.rungs) if some == whole else None
    sections = [
        tell.lexicon_section(found.entries, found.aligned, found.certain_share, (about.source, about.target)),
        tell.translators_section(alone, found.units, (some, whole), best),
        tell.sentence_lengths_section(alone, output / LENGTHS),
    ]
    if found.attention_example is not None:
        sections.append(tell.attention_example_section(found.attention_example))
    sections.append(tell.search_section(found.searches, ATTENTION))
    if found.bleu_by_replacement:
        test = found.text.source_words[2]
        sections.append(
            tell.replaced_section(found.bleu_by_replacement, len(test.unknown_positions) / max(1, test.num_words))
        )
    if together := [rung for rung in found.translators if rung.name == ENSEMBLE]:
        members = [rung for rung in found.translators if rung.name in (ATTENTION, SECOND)]
        sections.append(tell.ensemble_section(members, together[0]))
    return [*sections, tell.samples_section([*alone, *together], found.translated.sources, found.translated.target)]


# -- how it went -----------------------------------------------------------------------------------------------------


def _learning(output: Path, found: CorpusResults) -> list[PageSection]:
    """Curves of the translators, if the dev text was looked at often enough to draw any."""
    from dragoman.io.storage import METRICS_FILE
    from dragoman.report.charts import draw_learning_curves
    from dragoman.report.demo import read_learning_curve
    from dragoman.report.page import PageFigure, PageSection, Paragraphs

    names = [rung.name for rung in found.translators if rung.name != ENSEMBLE]
    curves = {name: read_learning_curve(output / RUNGS_PLACE / name / METRICS_FILE) for name in names}
    curves = {name: points for name, points in curves.items() if len(points) >= FEWEST}
    if not curves:
        return []
    draw_learning_curves(curves, output / CURVES, "perplexity", title="Dev text, a unit, by class")
    idea = (
        "What the dev text costs after each pass over the training text. Where a line still falls at its end, more "
        "minutes would have helped."
    )
    drawn = PageFigure(
        (output / CURVES).read_text(encoding="utf-8"), "perplexity of the dev text by minutes of training"
    )
    return [PageSection("Learning curves", [Paragraphs(idea), drawn])]


def _time(found: CorpusResults, budget: TimeBudget) -> PageSection:
    """What took how long."""
    from dragoman.report.page import PageSection, PageTable, Paragraphs

    given = budget.notes["bounds"]
    taken = [(rung.name, rung.seconds) for rung in found.rungs]
    taken += [(rung.name, rung.seconds) for rung in found.translators]
    made = [(name, seconds) for name, seconds in taken if name in given]
    rows: list[list[object]] = [[name, f"{60 * given[name]:,.0f}", f"{seconds:,.0f}"] for name, seconds in made]
    rest = budget.total_seconds - sum(seconds for _, seconds in made)
    rows += [
        ["all else", None, f"{rest:,.0f}"],
        ["in all", f"{60 * budget.minutes:,.0f}", f"{budget.total_seconds:,.0f}"],
    ]
    idea = (
        f"All of this was to take {budget.minutes:g} minutes. What learns by gradients shares the time by weight; a "
        "training ends before its time if it has gone through the text often enough, or if the dev text is no longer "
        "predicted better, and leaves the rest to the others. All else is reading, counting, aligning, measuring and "
        "translating the test text."
    )
    return PageSection(
        "How the time was spent", [Paragraphs(idea), PageTable(["part", "seconds given", "seconds taken"], rows)]
    )


def suggested_commands(output: Path, found: CorpusResults) -> list[SuggestedCommand]:
    """What to try with the best models."""
    text, rungs = output / TEXT, output / RUNGS_PLACE
    train, dev, test = (
        {ending: str(text / f"{part}.{ending}") for ending in (SOURCE, TARGET)} for part in ("train", "dev", "test")
    )
    best = str(rungs / min(found.rungs, key=lambda rung: rung.measured.likelihood.perplexity).name)
    commands = [SuggestedCommand(["evaluate", best, "--text", test[TARGET]]), SuggestedCommand(["sample", best])]
    if found.translators:
        attention, line = str(rungs / ATTENTION), found.translated.sources[0]
        pairs = ["--src", train[SOURCE], "--tgt", train[TARGET], "--dev-src", dev[SOURCE], "--dev-tgt", dev[TARGET]]
        commands += [
            SuggestedCommand(["translate", attention], line),
            SuggestedCommand(["attention", attention, line]),
            SuggestedCommand(["evaluate", attention, "--src", test[SOURCE], "--ref", test[TARGET], "--by-length"]),
            SuggestedCommand(["train", "translator", *pairs, "-o", "translator"]),
        ]
    return [*commands, SuggestedCommand(["serve", str(output)])]


def _values(found: CorpusResults, budget: TimeBudget) -> dict[str, Any]:
    """All of it as plain values."""
    values: dict[str, Any] = {"text": found.text.as_dict(), "seconds": round(budget.total_seconds, 1)}
    values["models"] = [rung.as_dict() for rung in found.rungs]
    if found.translators:
        values |= {
            "units": list(found.units),
            "translated": len(found.translated),
            "lexicon": [
                {"word": own.word, "times": own.count, "translations": own.translations} for own in found.entries
            ],
            "translators": [rung.as_dict() for rung in found.translators],
            "searches": [own.as_dict() for own in found.searches],
            **({"unknown_words_replaced": found.bleu_by_replacement} if found.bleu_by_replacement else {}),
        }
    return values
