"""The report of a ladder on the user's text: its tables, its figures, and the facts that its narrative states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dragoman.core.defaults import DEFAULT_BEAM_SIZE, DEFAULT_LENGTH
from dragoman.data.corpus import Corpus
from dragoman.evaluation.translation_metrics import FEW_SENTENCES
from dragoman.experiments import recipes
from dragoman.experiments.corpus_data import SOURCE, TARGET, CorpusSplit, ThreeCorpora
from dragoman.experiments.corpus_ladder import (
    MODELS_DIRECTORY,
    NOT_REPLACED,
    TEXT_DIRECTORY,
    CorpusExperiment,
    CorpusResults,
    LexiconExample,
)
from dragoman.experiments.pipeline import ExperimentReport, SuggestedCommand, commands_part
from dragoman.experiments.results import LanguageModelRung, TranslatorRung, first_of_each_length, read_learning_curve
from dragoman.experiments.time_budget import TimeBudget
from dragoman.io.storage import METRICS_FILE
from dragoman.report import ladder
from dragoman.report.document import NamedParts, render_document
from dragoman.report.page import PageTable, Preformatted

SAMPLE_LINES, MAX_LINE_LENGTH = 3, 160  # of the text that is shown
UNKNOWN_EXAMPLES = 15
MIN_CURVE_POINTS = 3  # evaluations on the dev text, below which there is no curve to draw
MIN_LEXICON_PROB = 0.03  # of a translation that is shown
PERPLEXITY_CAPTION = "perplexity of the test text, on a logarithmic scale"

Facts = dict[str, object]


def corpus_report(experiment: CorpusExperiment, split: CorpusSplit, results: CorpusResults) -> ExperimentReport:
    figures, budget, names = ladder.FigureWriter(experiment.output), experiment.budget, experiment.names
    commands = suggested_commands(experiment.output, results)
    languages = {names.source: split.source_words} if split.is_parallel else {}
    languages[names.target] = split.target_words
    parts: NamedParts = {
        "overview": _overview(results, split),
        "time": _time_table(results, budget),
        "commands": commands_part(commands),
        **_text_parts(split, languages),
        **_language_model_parts(results.language_models, figures),
    }
    facts: Facts = {
        "minutes": f"{budget.minutes:g}",
        "split": split,
        "names": names,
        "beam": DEFAULT_BEAM_SIZE,
        "results": results,
        "languages": [_language_facts(name, *corpora) for name, corpora in languages.items()],
        **_language_model_facts(results.language_models, split.target_words[2]),
    }
    if results.translators:
        parts |= _translator_parts(results, experiment, figures)
        rungs = _single(results)
        is_comparable = len(results.translated) == len(split.test)  # perplexities are of the same sentences
        facts |= {
            "plain": rungs[0],
            "attention": rungs[1],
            "best_translator": min(rung.perplexity for rung in rungs) if is_comparable else None,
            "min_class": FEW_SENTENCES,
            "length": DEFAULT_LENGTH,
            "unknown_source_words": _unknown_share(split.source_words[2]),
            "ensemble": next((rung for rung in results.translators if rung.name == recipes.ENSEMBLE), None),
            "members": [rung for rung in results.translators if rung.name in (recipes.ATTENTION, recipes.SECOND)],
            "has_curves": parts["curves"] is not None,
        }
    sections = render_document("corpus_ladder.txt.j2", parts, **facts)
    values = {"minutes": budget.minutes, "seed": experiment.seed, **_values(results, split, budget)}
    return ExperimentReport(names.title, sections, figures.files, commands, values, budget.total_seconds / 60)


def _overview(results: CorpusResults, split: CorpusSplit) -> PageTable:
    """Return the best model of each kind."""
    ngrams, networks = (_select(results.language_models, names) for names in (recipes.NGRAMS, recipes.NETWORKS[1:]))
    best = [_best(rungs) for rungs in (ngrams, networks, results.language_models)]
    unique = list({rung.name: rung for rung in best}.values())  # the best of all may come twice
    translators = [rung for rung in results.translators if rung.name != recipes.SECOND]
    translated, total = len(results.translated), len(split.test)
    caption = f"language models: {total:,} test sentences; translators: {translated:,} of them"
    table = ladder.overview_table([*unique, *translators], caption if 0 < translated < total else "")
    return ladder.with_descriptions(table, recipes.DESCRIPTIONS)


def _best(rungs: Sequence[LanguageModelRung]) -> LanguageModelRung:
    return min(rungs, key=lambda rung: rung.perplexity)


def _select(rungs: Sequence[LanguageModelRung], names: Sequence[str]) -> list[LanguageModelRung]:
    """Return the rungs with these names, in this order."""
    by_name = {rung.name: rung for rung in rungs}
    return [by_name[name] for name in names]


def _text_parts(split: CorpusSplit, languages: dict[str, ThreeCorpora]) -> NamedParts:
    headers = ["text", "language", "lines", "words", "words per line", "distinct words", "unknown words"]
    rows: list[list[object]] = []
    for number, part in enumerate(split.parts):
        for name, corpora in languages.items():
            corpus = corpora[number]
            known = len(set(corpus.ids.tolist())) - bool(len(corpus.unknown_positions))
            rows.append(
                [
                    part,
                    name if split.is_parallel else None,
                    corpus.num_sentences,
                    corpus.num_words,
                    f"{corpus.num_words / max(1, corpus.num_sentences):.1f}",
                    known + len(corpus.spellings),
                    f"{100 * _unknown_share(corpus):.1f}%" if number else None,
                ]
            )
    sample = [line.split("\t") for line in split.train.spread(SAMPLE_LINES).lines]
    lines = "\n\n".join("\n  ".join(text[:MAX_LINE_LENGTH] for text in texts) for texts in sample)
    return {"sizes": PageTable(headers, rows).without_empty_columns(), "examples": Preformatted(lines)}


def _unknown_share(corpus: Corpus) -> float:
    return len(corpus.unknown_positions) / max(1, corpus.num_words)


def _language_facts(name: str, train: Corpus, dev: Corpus, test: Corpus) -> Facts:
    types = len(set(train.ids.tolist()))
    once = int((train.vocab.counts == 1).sum()) / max(1, types)
    return {"name": name, "types": types, "once": once, "unknown": _unknown_share(test)}


def _language_model_parts(rungs: Sequence[LanguageModelRung], figures: ladder.FigureWriter) -> NamedParts:
    ngrams = _select(rungs, recipes.NGRAMS)
    likelihood = ngrams[-1].evaluation.likelihood
    unknown_rows: list[list[object]] = [
        ["unknown words left out", likelihood.tokens - likelihood.unknown_words, likelihood.perplexity_known],
        ["scored as being unknown", likelihood.tokens, likelihood.perplexity_class],
        ["scored as one of ten million words", likelihood.tokens, likelihood.perplexity],
    ]
    orders_title, models_title = "Perplexity by the order of the n-grams", "Perplexity of all language models"
    return {
        "orders": ladder.perplexity_table(ngrams),
        "orders_figure": figures.ladder("orders.svg", PERPLEXITY_CAPTION, ngrams, orders_title),
        "unknown_words": PageTable([f"unknown words, by {ngrams[-1].name}", "tokens", "perplexity"], unknown_rows),
        "classes": ladder.perplexity_table(_select(rungs, recipes.CLASSES_AND_CACHE)),
        "networks": ladder.perplexity_table(_select(rungs, recipes.NETWORKS)),
        "all_models": ladder.perplexity_table(rungs),
        "models_figure": figures.ladder("models.svg", PERPLEXITY_CAPTION, rungs, models_title),
    }


def _language_model_facts(rungs: Sequence[LanguageModelRung], test: Corpus) -> Facts:
    ngrams = _select(rungs, recipes.NGRAMS)
    likelihood = ngrams[-1].evaluation.likelihood
    cost = likelihood.log_likelihood_unknown_class + likelihood.log_likelihood_unknown
    total = likelihood.log_likelihood_total
    members = {name: _select(rungs, recipes.CORPUS_LANGUAGE_MODELS[name].parts) for name in recipes.MIXTURES}
    return {
        "ngrams": ngrams,
        "likelihood": likelihood,
        "unknown_cost": cost / total if total else 0.0,
        "unknown_examples": [word for word, _ in Counter(test.unknown_words).most_common(UNKNOWN_EXAMPLES)],
        "classes": _select(rungs, recipes.CLASSES_AND_CACHE),
        "networks": _select(rungs, recipes.NETWORKS),
        "mixtures": [(rung, _best(members[rung.name])) for rung in _select(rungs, recipes.MIXTURES)],
        "best": _best(rungs),
    }


def _single(results: CorpusResults) -> list[TranslatorRung]:
    """Return the encoder-decoder and the translator with attention."""
    return [rung for rung in results.translators if rung.name not in (recipes.SECOND, recipes.ENSEMBLE)]


def _translator_parts(results: CorpusResults, experiment: CorpusExperiment, figures: ladder.FigureWriter) -> NamedParts:
    rungs, names, part = _single(results), experiment.names, results.translated
    shown = [rung for rung in results.translators if rung.name != recipes.SECOND]
    examples = [] if results.lexicon is None else results.lexicon.examples
    words = [[example.word, example.count, _format_translations(example)] for example in examples]
    searches = [
        [
            each.length,
            each.beam,
            f"{each.scores.bleu:.1f}",
            f"{each.scores.length_ratio:.3f}",
            f"{each.scores.chrf:.1f}",
        ]
        for each in results.searches
    ]
    parts: NamedParts = {
        "lexicon": PageTable([f"word of {names.source}", "count", f"translations into {names.target}"], words),
        "scores": ladder.score_table(rungs, caption=f"BLEU by sacreBLEU: {rungs[1].evaluation.scores.signature}"),
        "lengths": ladder.lengths_table(rungs),
        "lengths_figure": figures.lengths(rungs, "BLEU by words of the source sentence"),
        "searches": PageTable(
            ["length handling", "beam", "BLEU", "length", "chrF"], searches, f"{recipes.ATTENTION}, by several searches"
        ),
        "replacements": PageTable(
            ["unknown words", "BLEU"], [[name, f"{bleu:.1f}"] for name, bleu in results.bleu_by_replacement.items()]
        ),
        "ensemble": ladder.score_table(
            [rung for rung in results.translators if rung not in rungs or rung.name == recipes.ATTENTION]
        ),
        "samples": ladder.example_tables(
            part.sources, part.target, shown, first_of_each_length(part.sources, rungs[0]), "source"
        ),
    }
    trained = [rung.name for rung in results.translators if rung.name != recipes.ENSEMBLE]
    curves = {name: read_learning_curve(experiment.models / name / METRICS_FILE) for name in trained}
    curves = {name: points for name, points in curves.items() if len(points) >= MIN_CURVE_POINTS}
    caption = "perplexity of the dev text by minutes of training"
    parts["curves"] = figures.curves(curves, caption, "Dev text, per token, by class") if curves else None
    for example in results.attention:
        lines = [["source", example.source], ["reference", example.reference], ["translation", example.translation]]
        parts |= {"sentence": PageTable(["", "a test sentence"], lines), "attention": ladder.attention_heatmap(example)}
    return parts


def _format_translations(example: LexiconExample) -> str:
    """Return the most probable translation, and others that are not too improbable."""
    first, *others = example.translations
    shown = [first, *(entry for entry in others if entry[1] >= MIN_LEXICON_PROB)]
    return ", ".join(f"{word} {100 * prob:.0f}%" for word, prob in shown)


def _time_table(results: CorpusResults, budget: TimeBudget) -> PageTable:
    """Return the time that each part was given and took."""
    limits = budget.notes.bounds
    rungs: list[LanguageModelRung | TranslatorRung] = [*results.language_models, *results.translators]
    trained = {rung.name: rung.seconds for rung in rungs if rung.name in limits}
    rows = [[name, f"{60 * limits[name]:,.0f}", f"{seconds:,.0f}"] for name, seconds in trained.items()]
    rest = ["everything else", None, f"{budget.total_seconds - sum(trained.values()):,.0f}"]
    total = ["total", f"{60 * budget.minutes:,.0f}", f"{budget.total_seconds:,.0f}"]
    return PageTable(["part", "seconds given", "seconds taken"], [*rows, rest, total])


def suggested_commands(output: Path, results: CorpusResults) -> list[SuggestedCommand]:
    """Return commands to try with the best models."""
    text, models = output / TEXT_DIRECTORY, output / MODELS_DIRECTORY
    best = str(models / _best(results.language_models).name)
    test = {extension: str(text / f"test.{extension}") for extension in (SOURCE, TARGET)}
    commands = [SuggestedCommand(["evaluate", best, "--text", test[TARGET]]), SuggestedCommand(["sample", best])]
    if results.translators:
        attention, line = str(models / recipes.ATTENTION), results.translated.sources[0]
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
    values: Facts = {
        "text": {
            "lines": {name: len(part) for name, part in split.parts.items()},
            "held_out": list(split.held_out),
            "left_out": split.omitted,
            "test_lines_in_training": split.test_lines_in_training,
        },
        "seconds": round(budget.total_seconds, 1),
        "models": [rung.as_dict() for rung in results.language_models],
    }
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
    if replaced := results.bleu_by_replacement:
        keys = {NOT_REPLACED: "left alone"}  # the name in files of earlier versions
        values["unknown_words_replaced"] = {keys.get(name, name): bleu for name, bleu in replaced.items()}
    return values
