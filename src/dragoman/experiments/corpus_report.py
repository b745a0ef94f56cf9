"""The report of a ladder on the user's text: what its narrative says is computed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.core.defaults import DEFAULT_LENGTH
from dragoman.data.corpus import Corpus
from dragoman.evaluation.translation_metrics import FEW_SENTENCES
from dragoman.evaluation.translator import DEFAULT_BEAM
from dragoman.experiments.corpus_data import SOURCE, TARGET, CorpusNames, CorpusSplit
from dragoman.experiments.corpus_ladder import (
    MODELS_DIRECTORY,
    NOT_REPLACED,
    TEXT_DIRECTORY,
    CorpusExperiment,
    CorpusResults,
    LexiconExample,
)
from dragoman.experiments.pipeline import ExperimentReport, FigureWriter, SuggestedCommand, commands_part
from dragoman.experiments.recipes import (
    ATTENTION,
    CLASSES_AND_CACHE,
    CORPUS_LANGUAGE_MODELS,
    DESCRIPTIONS,
    ENSEMBLE,
    MIXTURES,
    NETWORKS,
    NGRAMS,
    SECOND,
)
from dragoman.experiments.results import LanguageModelRung, TranslatorRung, first_of_each_length, read_learning_curve
from dragoman.experiments.time_budget import TimeBudget
from dragoman.io.storage import METRICS_FILE
from dragoman.report.charts import draw_bleu_by_length, draw_ladder, draw_learning_curves
from dragoman.report.document import SAME_PERPLEXITY, render_document
from dragoman.report.ladder import (
    attention_heatmap,
    bleu_by_class,
    class_sizes,
    example_tables,
    lengths_table,
    overview_table,
    perplexity_table,
    score_table,
    with_descriptions,
)
from dragoman.report.page import PagePart, PageTable, Preformatted

SAMPLE_LINES, MAX_LINE_LENGTH = 3, 160  # of the text that is shown
UNKNOWN_EXAMPLES = 15
MIN_CURVE_POINTS = 3  # evaluations on the dev text, below which there is no curve to draw
MIN_LEXICON_PROB = 0.03  # of a translation that is shown
FEW_TRANSLATED = 300  # sentences, below which small differences of BLEU say little
MIN_LEARNED_BLEU = 2.0  # below which no search helps
MIN_SHORT_BLEU = 10.0  # of short sentences, from which on that of long ones is given as a share of it
UNIFORM_FACTOR = 2.5  # attention with a maximum below this many times the uniform one is called uniform
PERPLEXITY_CAPTION = "perplexity of the test text, on a logarithmic scale"

Parts = dict[str, PagePart | list[PagePart] | None]
Facts = dict[str, Any]


def corpus_report(experiment: CorpusExperiment, split: CorpusSplit, results: CorpusResults) -> ExperimentReport:
    figures, budget = FigureWriter(experiment.output), experiment.budget
    commands = suggested_commands(experiment.output, results)
    parts: Parts = {
        "overview": _overview(results, split),
        "time": _time_table(results, budget),
        "commands": commands_part(commands),
        **_text_parts(split, experiment.names),
        **_language_model_parts(results.language_models, figures),
    }
    facts: Facts = {
        "minutes": f"{budget.minutes:g}",
        "split": split,
        "names": experiment.names,
        "beam": DEFAULT_BEAM,
        "translators": bool(results.translators),
        "languages": [_language_facts(name, corpora) for name, corpora in _languages(split, experiment.names).items()],
        **_language_model_facts(results.language_models, split.target_words[2]),
    }
    if results.translators:
        parts |= _translator_parts(results, experiment, figures)
        facts |= _translator_facts(results, split, parts)
    sections = render_document("corpus_ladder.txt.j2", parts, **facts)
    values = {"minutes": budget.minutes, "seed": experiment.seed, **_values(results, split, budget)}
    minutes = budget.total_seconds / 60
    return ExperimentReport(experiment.names.title, sections, figures.files, commands, values, minutes)


def _overview(results: CorpusResults, split: CorpusSplit) -> PageTable:
    """Return the best model of each kind."""
    ngrams, networks = (_select(results.language_models, names) for names in (NGRAMS, NETWORKS[1:]))
    best = [min(rungs, key=_perplexity) for rungs in (ngrams, networks, results.language_models)]
    unique = list({rung.name: rung for rung in best}.values())  # the best of all may come twice
    translators = [rung for rung in results.translators if rung.name != SECOND]
    translated, total = len(results.translated), len(split.test)
    caption = f"language models: {total:,} test sentences; translators: {translated:,} of them"
    table = overview_table(unique, translators, caption if 0 < translated < total else "")
    return with_descriptions(table, DESCRIPTIONS)


def _perplexity(rung: LanguageModelRung) -> float:
    return rung.perplexity


def _select(rungs: Sequence[LanguageModelRung], names: Sequence[str]) -> list[LanguageModelRung]:
    """Return the rungs with these names, in this order."""
    by_name = {rung.name: rung for rung in rungs}
    return [by_name[name] for name in names]


# -- the text --------------------------------------------------------------------------------------------------------

ThreeCorpora = tuple[Corpus, Corpus, Corpus]


def _languages(split: CorpusSplit, names: CorpusNames) -> dict[str, ThreeCorpora]:
    target = {names.target: split.target_words}
    return {names.source: split.source_words, **target} if split.is_parallel else target


def _text_parts(split: CorpusSplit, names: CorpusNames) -> Parts:
    headers = ["text", "language", "lines", "words", "words per line", "distinct words", "unknown words"]
    languages = _languages(split, names)
    rows = [
        [part, name if split.is_parallel else None, *_size_cells(corpora[number], has_unknown=number > 0)]
        for number, part in enumerate(split.parts)
        for name, corpora in languages.items()
    ]
    sample = [line.split("\t") for line in split.train.spread(SAMPLE_LINES).lines]
    lines = "\n\n".join("\n  ".join(text[:MAX_LINE_LENGTH] for text in texts) for texts in sample)
    return {"sizes": PageTable(headers, rows).without_empty_columns(), "examples": Preformatted(lines)}


def _size_cells(corpus: Corpus, *, has_unknown: bool) -> list[object]:
    known = len(set(corpus.ids.tolist())) - bool(len(corpus.unknown_positions))
    unknown = f"{100 * _unknown_share(corpus):.1f}%" if has_unknown else None
    length = f"{corpus.num_words / max(1, corpus.num_sentences):.1f}"
    return [corpus.num_sentences, corpus.num_words, length, known + len(corpus.spellings), unknown]


def _unknown_share(corpus: Corpus) -> float:
    return len(corpus.unknown_positions) / max(1, corpus.num_words)


def _language_facts(name: str, corpora: ThreeCorpora) -> Facts:
    train, _, test = corpora
    types = len(set(train.ids.tolist()))
    once = int((train.vocab.counts == 1).sum()) / max(1, types)
    return {"name": name, "types": types, "once": once, "unknown": _unknown_share(test)}


# -- language models -------------------------------------------------------------------------------------------------


def _language_model_parts(rungs: Sequence[LanguageModelRung], figures: FigureWriter) -> Parts:
    ngrams = _select(rungs, NGRAMS)
    likelihood = ngrams[-1].evaluation.likelihood
    unknown_rows: list[list[object]] = [
        ["unknown words left out", likelihood.tokens - likelihood.unknown_words, likelihood.perplexity_known],
        ["scored as being unknown", likelihood.tokens, likelihood.perplexity_class],
        ["scored as one of ten million words", likelihood.tokens, likelihood.perplexity],
    ]
    orders = {rung.name: rung.perplexity for rung in ngrams}
    models = {rung.name: rung.perplexity for rung in rungs}
    orders_title, models_title = "Perplexity by the order of the n-grams", "Perplexity of all language models"
    return {
        "orders": perplexity_table(ngrams),
        "orders_figure": figures.draw(
            "orders.svg", PERPLEXITY_CAPTION, lambda path: draw_ladder(orders, None, {}, path, title=orders_title)
        ),
        "unknown_words": PageTable([f"unknown words, by {ngrams[-1].name}", "tokens", "perplexity"], unknown_rows),
        "classes": perplexity_table(_select(rungs, CLASSES_AND_CACHE)),
        "networks": perplexity_table(_select(rungs, NETWORKS)),
        "all_models": perplexity_table(rungs),
        "models_figure": figures.draw(
            "models.svg", PERPLEXITY_CAPTION, lambda path: draw_ladder(models, None, {}, path, title=models_title)
        ),
    }


def _language_model_facts(rungs: Sequence[LanguageModelRung], test: Corpus) -> Facts:
    base, classes, cache = (rung.perplexity for rung in _select(rungs, CLASSES_AND_CACHE))
    networks = _select(rungs, NETWORKS)
    best_network = min(networks, key=_perplexity)
    ngrams = _select(rungs, NGRAMS)
    return {
        "counting": _counting_facts([rung.perplexity for rung in ngrams]),
        "unknown": _unknown_facts(ngrams[-1], test),
        "classes": {
            "name": CLASSES_AND_CACHE[0],
            "base": base,
            "classes": classes,
            "cache": cache,
            "cache_helps": cache < base * (1 - SAME_PERPLEXITY),
        },
        "networks": {
            "name": networks[0].name,
            "base": networks[0].perplexity,
            "models": networks[1:],
            "best_name": best_network.name,
            "best": best_network.perplexity,
            "seconds": max(rung.seconds for rung in networks[1:]),
        },
        "mixtures": [_mixture_facts(rung, rungs) for rung in _select(rungs, MIXTURES)],
        "best": min(rungs, key=_perplexity),
        "tokens": rungs[0].evaluation.likelihood.tokens,
    }


def _counting_facts(perplexities: Sequence[float]) -> Facts:
    best = min(perplexities)
    return {
        "first": perplexities[0],
        "second": perplexities[1],
        "best": best,
        "best_order": perplexities.index(best) + 1,
        "max_order": len(perplexities),
        "sufficient_order": 1 + next(n for n, p in enumerate(perplexities) if p <= best * (1 + SAME_PERPLEXITY)),
    }


def _unknown_facts(rung: LanguageModelRung, test: Corpus) -> Facts:
    likelihood = rung.evaluation.likelihood
    cost = likelihood.log_likelihood_unknown_class + likelihood.log_likelihood_unknown
    total = likelihood.log_likelihood_total
    return {
        "count": likelihood.unknown_words,
        "words": likelihood.words,
        "share": likelihood.unknown_words / likelihood.tokens,
        "cost_share": cost / total if total else 0.0,
        "examples": [word for word, _ in Counter(test.unknown_words).most_common(UNKNOWN_EXAMPLES)],
    }


def _mixture_facts(rung: LanguageModelRung, rungs: Sequence[LanguageModelRung]) -> Facts:
    member = min(_select(rungs, CORPUS_LANGUAGE_MODELS[rung.name].parts), key=_perplexity)
    return {
        "name": rung.name,
        "perplexity": rung.perplexity,
        "member": member.name,
        "member_perplexity": member.perplexity,
    }


# -- translators -----------------------------------------------------------------------------------------------------


def _single(results: CorpusResults) -> list[TranslatorRung]:
    """Return the encoder-decoder and the translator with attention."""
    return [rung for rung in results.translators if rung.name not in (SECOND, ENSEMBLE)]


def _by_name(results: CorpusResults, name: str) -> TranslatorRung | None:
    return next((rung for rung in results.translators if rung.name == name), None)


def _translator_parts(results: CorpusResults, experiment: CorpusExperiment, figures: FigureWriter) -> Parts:
    rungs, names, part = _single(results), experiment.names, results.translated
    ensemble = _by_name(results, ENSEMBLE)
    shown = [*rungs, *([ensemble] if ensemble is not None else [])]
    texts = {rung.name: rung.evaluation.texts for rung in shown}
    classes, bleu = class_sizes(rungs), bleu_by_class(rungs)
    examples = [] if results.lexicon is None else results.lexicon.examples
    words = [[example.word, example.count, _format_translations(example)] for example in examples]
    parts: Parts = {
        "lexicon": PageTable([f"word of {names.source}", "count", f"translations into {names.target}"], words),
        "scores": score_table(rungs, caption=f"BLEU by sacreBLEU: {rungs[1].evaluation.scores.signature}"),
        "lengths": lengths_table(rungs),
        "lengths_figure": figures.draw(
            "lengths.svg",
            "BLEU by words of the source sentence",
            lambda path: draw_bleu_by_length(classes, bleu, path, title="BLEU by sentence length"),
        ),
        "searches": _search_table(results),
        "replacements": PageTable(
            ["unknown words", "BLEU"], [[name, f"{bleu:.1f}"] for name, bleu in results.bleu_by_replacement.items()]
        ),
        "ensemble": score_table([rung for rung in results.translators if rung not in rungs or rung.name == ATTENTION]),
        "samples": [
            *example_tables(part.sources, part.target, texts, first_of_each_length(part.sources, rungs[0]), "source")
        ],
        "curves": _draw_curves(results, experiment.output, figures),
    }
    if (example := results.attention_example) is not None:
        lines = [["source", example.source], ["reference", example.reference], ["translation", example.translation]]
        parts |= {"sentence": PageTable(["", "a test sentence"], lines), "attention": attention_heatmap(example)}
    return parts


def _format_translations(example: LexiconExample) -> str:
    """Return the most probable translation, and others that are not too improbable."""
    first, *others = example.translations
    shown = [first, *(entry for entry in others if entry[1] >= MIN_LEXICON_PROB)]
    return ", ".join(f"{word} {100 * prob:.0f}%" for word, prob in shown)


def _search_table(results: CorpusResults) -> PageTable:
    rows = [
        [
            variant.length,
            variant.beam,
            f"{variant.scores.bleu:.1f}",
            f"{variant.scores.length_ratio:.3f}",
            f"{variant.scores.chrf:.1f}",
        ]
        for variant in results.searches
    ]
    return PageTable(["length handling", "beam", "BLEU", "length", "chrF"], rows, f"{ATTENTION}, by several searches")


def _draw_curves(results: CorpusResults, output: Path, figures: FigureWriter) -> PagePart | None:
    """Return the learning curves of the translators, if there are enough points."""
    models = output / MODELS_DIRECTORY
    names = [rung.name for rung in results.translators if rung.name != ENSEMBLE]
    curves = {name: read_learning_curve(models / name / METRICS_FILE) for name in names}
    curves = {name: points for name, points in curves.items() if len(points) >= MIN_CURVE_POINTS}
    if not curves:
        return None
    return figures.draw(
        "curves.svg",
        "perplexity of the dev text by minutes of training",
        lambda path: draw_learning_curves(curves, path, "perplexity", title="Dev text, per token, by class"),
    )


def _translator_facts(results: CorpusResults, split: CorpusSplit, parts: Mapping[str, object]) -> Facts:
    rungs = _single(results)
    translated, total = len(results.translated), len(split.test)
    return {
        "lexicon": results.lexicon,
        "units": results.units,
        "plain": rungs[0],
        "attention": rungs[1],
        "best_translator": min(rung.perplexity for rung in rungs) if translated == total else None,
        "translated": translated,
        "test_sentences": total,
        "few_translated": translated < FEW_TRANSLATED,
        "min_class": FEW_SENTENCES,
        "lengths": _length_facts(rungs),
        "focus": _focus_facts(results),
        "search": _search_facts(results),
        "replacement": _replacement_facts(results, split),
        "ensemble": _ensemble_facts(results),
        "has_curves": parts["curves"] is not None,
    }


def _length_facts(rungs: Sequence[TranslatorRung]) -> Facts | None:
    """Compare the shortest and the longest class with enough sentences."""
    classes = rungs[0].evaluation.by_length
    large = [number for number, length_class in enumerate(classes) if not length_class.is_small]
    if len(large) < 2:
        return None
    models = []
    for rung in rungs:
        short, long = (rung.evaluation.by_length[number].bleu for number in (large[0], large[-1]))
        ratio = long / short if short >= MIN_SHORT_BLEU else None
        models.append({"name": rung.name, "short": short, "long": long, "ratio": ratio})
    return {
        "models": models,
        "shortest": classes[large[0]].bucket.name,
        "longest": classes[large[-1]].bucket.name,
        "has_small": len(large) < len(classes),
    }


def _focus_facts(results: CorpusResults) -> Facts | None:
    example = results.attention_example
    if example is None:
        return None
    is_uniform = example.mean_maximum < UNIFORM_FACTOR * example.uniform
    return {"mean_maximum": example.mean_maximum, "uniform": example.uniform, "is_uniform": is_uniform}


def _search_facts(results: CorpusResults) -> Facts:
    scores = {(variant.beam, variant.length): variant.scores for variant in results.searches}
    best = max(results.searches, key=lambda variant: variant.scores.bleu)
    without = [variant for variant in results.searches if variant.length == "none"]
    widest = max(without, key=lambda variant: variant.beam, default=None)
    default = scores[DEFAULT_BEAM, DEFAULT_LENGTH]
    normalised = default if widest is None else scores.get((widest.beam, DEFAULT_LENGTH), default)
    return {
        "greedy": scores[1, DEFAULT_LENGTH].bleu,
        "beam": default.bleu,
        "unnormalised": widest,
        "normalised_ratio": normalised.length_ratio,
        "best": best,
        "learned": best.scores.bleu >= MIN_LEARNED_BLEU,
    }


def _replacement_facts(results: CorpusResults, split: CorpusSplit) -> Facts | None:
    if not results.bleu_by_replacement:
        return None
    (_, unchanged), *others = results.bleu_by_replacement.items()
    return {"unknown": _unknown_share(split.source_words[2]), "unchanged": unchanged, "others": others}


def _ensemble_facts(results: CorpusResults) -> Facts | None:
    ensemble = _by_name(results, ENSEMBLE)
    if ensemble is None:
        return None
    members = [rung for rung in results.translators if rung.name in (ATTENTION, SECOND)]
    return {
        "bleu": ensemble.bleu,
        "perplexity": ensemble.perplexity,
        "best_bleu": max(member.bleu for member in members),
        "best_perplexity": min(member.perplexity for member in members),
    }


# -- time, commands and values ---------------------------------------------------------------------------------------


def _time_table(results: CorpusResults, budget: TimeBudget) -> PageTable:
    """Return the time that each part was given and took."""
    limits = budget.notes["bounds"]
    rungs: list[LanguageModelRung | TranslatorRung] = [*results.language_models, *results.translators]
    trained = {rung.name: rung.seconds for rung in rungs if rung.name in limits}
    rows: list[list[object]] = [
        [name, f"{60 * limits[name]:,.0f}", f"{seconds:,.0f}"] for name, seconds in trained.items()
    ]
    rows.append(["everything else", None, f"{budget.total_seconds - sum(trained.values()):,.0f}"])
    rows.append(["total", f"{60 * budget.minutes:,.0f}", f"{budget.total_seconds:,.0f}"])
    return PageTable(["part", "seconds given", "seconds taken"], rows)


def suggested_commands(output: Path, results: CorpusResults) -> list[SuggestedCommand]:
    """Return commands to try with the best models."""
    text, models = output / TEXT_DIRECTORY, output / MODELS_DIRECTORY
    best = str(models / min(results.language_models, key=_perplexity).name)
    test = {extension: str(text / f"test.{extension}") for extension in (SOURCE, TARGET)}
    commands = [SuggestedCommand(["evaluate", best, "--text", test[TARGET]]), SuggestedCommand(["sample", best])]
    if results.translators:
        attention, line = str(models / ATTENTION), results.translated.sources[0]
        options = {"--src": "train.src", "--tgt": "train.tgt", "--dev-src": "dev.src", "--dev-tgt": "dev.tgt"}
        pairs = [word for option, file in options.items() for word in (option, str(text / file))]
        commands += [
            SuggestedCommand(["translate", attention], line),
            SuggestedCommand(["attention", attention, line]),
            SuggestedCommand(["evaluate", attention, "--src", test[SOURCE], "--ref", test[TARGET], "--by-length"]),
            SuggestedCommand(["train", "translator", *pairs, "-o", "translator"]),
        ]
    return [*commands, SuggestedCommand(["serve", str(output)])]


def _values(results: CorpusResults, split: CorpusSplit, budget: TimeBudget) -> Facts:
    """Return everything as plain values."""
    values: Facts = {"text": split.as_dict(), "seconds": round(budget.total_seconds, 1)}
    values["models"] = [rung.as_dict() for rung in results.language_models]
    if results.translators and results.lexicon is not None:
        values |= {
            "units": list(results.units),
            "translated": len(results.translated),
            "lexicon": [
                {"word": example.word, "times": example.count, "translations": example.translations}
                for example in results.lexicon.examples
            ],
            "translators": [rung.as_dict() for rung in results.translators],
            "searches": [variant.as_dict() for variant in results.searches],
        }
    if results.bleu_by_replacement:
        keys = {NOT_REPLACED: "left alone"}  # the name in files of earlier versions
        values["unknown_words_replaced"] = {keys.get(n, n): bleu for n, bleu in results.bleu_by_replacement.items()}
    return values
