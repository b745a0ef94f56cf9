"""The ladder on the lab's text: every kind of model, compared with the floor, minimal pairs and true alignments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman.experiments.directory import check_settings, claim_directory
from dragoman.experiments.lab import LabData, LabExperiment, LabResults
from dragoman.experiments.pipeline import ExperimentReport, FigureWriter, SuggestedCommand, run_experiment
from dragoman.experiments.recipes import LAB_TRANSLATORS, LANGUAGE_MODELS, MAX_LAB_PAIRS
from dragoman.experiments.results import NGRAM_WINDOW, LanguageModelRung, TranslatorRung
from dragoman.experiments.trainer import SILENT, Callbacks, select_models
from dragoman.report.page import PagePart, PageTable

PAIRS = 20_000  # to train on, by default
DEV, TEST = 1000, 2000  # sentence pairs
MINIMAL_PAIRS = 300  # per phenomenon and class of distance
RESUME = "continues them when it runs again"
MAX_LINES = 9  # in a figure
DISTANCE_MODELS = ("kn-2", "kn-5", "feed-forward", "rnn", "gru", "lstm")  # in the figure of distances, if present
LENGTH_MODELS = (  # in the figure of sentence lengths, if there are too many
    *("encdec-forward", "encdec-reverse", "encdec-bidirectional", "encdec-convolutional", "encdec-tree-lstm"),
    *("attn-dot", "attn-mlp", "attn-convolutional", "attn-tree-lstm"),
)


def run_lab_ladder(
    output: Path,
    *,
    pairs: int = PAIRS,
    models: str = "",
    seed: int = 1,
    minutes: float | None = None,
    callbacks: Callbacks = SILENT,
) -> ExperimentReport:
    """Train and compare models on the lab's text, or continue a run that was stopped.

    Args:
        output: directory of texts, models and reports.
        pairs: sentence pairs to train on.
        models: names of models, separated by commas; empty for all.
        seed: random seed of the text and of all models.
        minutes: time limit of each training by gradient descent.
    """
    from dragoman.lab.corpus_files import GRAMMAR_VERSION

    names = select_models(models, [*LANGUAGE_MODELS, *LAB_TRANSLATORS])
    settings = {"pairs": pairs, "seed": seed, "minutes": minutes}
    claim_directory(output, "ladder", RESUME)
    check_settings(output, {**settings, "grammar": GRAMMAR_VERSION})
    experiment = LabExperiment(
        output=output,
        models=output / "rungs",
        seed=seed,
        sizes={"train": pairs, "dev": DEV, "test": TEST},
        language_models=LANGUAGE_MODELS,
        translators=LAB_TRANSLATORS,
        names=names,
        make_report=lab_ladder_report,
        minutes=minutes,
        minimal_pairs=MINIMAL_PAIRS,
        callbacks=callbacks,
    )
    return run_experiment(experiment)


def lab_ladder_report(experiment: LabExperiment, data: LabData, results: LabResults) -> ExperimentReport:
    from dragoman.evaluation.translator import DEFAULT_BEAM
    from dragoman.report.document import render_document

    figures = FigureWriter(experiment.output)
    pairs = experiment.sizes["train"]
    parts: dict[str, PagePart | list[PagePart] | None] = {}
    values: dict[str, object] = {"pairs": pairs, "seed": experiment.seed, "minutes": experiment.minutes}
    if rungs := results.language_models:
        parts |= _language_model_parts(rungs, figures, pairs)
        assert rungs[0].floor is not None, "text of the lab"
        values |= {"floor": rungs[0].floor.as_dict(), "models": [rung.as_dict() for rung in rungs]}
    if results.translators:
        parts |= _translator_parts(results, data, figures, min(MAX_LAB_PAIRS, pairs))
        values["translators"] = [rung.as_dict() for rung in results.translators]
    sections = render_document(
        "lab_ladder.txt.j2",
        parts,
        language_models=bool(results.language_models),
        translators=bool(results.translators),
        attention=bool(results.attention),
        window=NGRAM_WINDOW,
        beam=DEFAULT_BEAM,
    )
    commands = suggested_commands(experiment.output, results)
    return ExperimentReport("The ladder", sections, figures.files, commands, values)


def _language_model_parts(
    rungs: Sequence[LanguageModelRung], figures: FigureWriter, pairs: int
) -> dict[str, PagePart | list[PagePart] | None]:
    from dragoman.report.charts import draw_accuracy_by_distance, draw_ladder
    from dragoman.report.ladder import accuracy_table, distance_proportions, distance_tables, perplexity_table

    perplexities = {rung.name: rung.perplexity for rung in rungs}
    shares = {rung.name: rung.accuracy_by_column for rung in rungs}
    floor = rungs[0].floor.perplexity.value if rungs[0].floor is not None else None
    proportions = distance_proportions([rung for rung in rungs if rung.name in DISTANCE_MODELS] or rungs[-MAX_LINES:])
    title = f"Models after {pairs:,} sentences of English from the lab"
    ladder = figures.draw(
        "ladder.svg",
        "Perplexity of each model, the floor, and accuracy on minimal pairs",
        lambda path: draw_ladder(perplexities, floor, shares, path, title=title),
    )
    distances = None
    if proportions:
        distances = figures.draw(
            "distances.svg",
            "Accuracy by distance",
            lambda path: draw_accuracy_by_distance(proportions, path, title="Accuracy by distance, in words"),
        )
    return {
        "perplexities": perplexity_table(rungs, "English"),
        "accuracies": accuracy_table(rungs),
        "distances": [*distance_tables(rungs)],
        "ladder_figure": ladder,
        "distances_figure": distances,
    }


def _translator_parts(
    results: LabResults, data: LabData, figures: FigureWriter, pairs: int
) -> dict[str, PagePart | list[PagePart] | None]:
    from dragoman.report.charts import draw_bleu_by_length, draw_ladder
    from dragoman.report.ladder import attention_heatmap, bleu_by_class, class_sizes, lengths_table, score_table

    rungs = results.translators
    floor = rungs[0].floor.value if rungs[0].floor is not None else None
    perplexities = {rung.name: rung.perplexity for rung in rungs}
    classes = class_sizes(rungs)
    shares = {
        name: dict(zip(classes, (bleu / 100 for bleu in bleus), strict=True))
        for name, bleus in bleu_by_class(rungs).items()
    }
    title, note = f"Translators after {pairs:,} pairs from the lab", "BLEU by words of the German sentence"
    selected = rungs if len(rungs) <= MAX_LINES else [rung for rung in rungs if rung.name in LENGTH_MODELS]
    example = data.example
    return {
        "scores": score_table(rungs, "German to English"),
        "translators_figure": figures.draw(
            "translators.svg",
            "Perplexity of each translator, the floor, and BLEU by sentence length",
            lambda path: draw_ladder(perplexities, floor, shares, path, title=title, note=note),
        ),
        "lengths": lengths_table(rungs),
        "lengths_figure": figures.draw(
            "lengths.svg",
            note,
            lambda path: draw_bleu_by_length(classes, bleu_by_class(selected), path, title="BLEU by sentence length"),
        ),
        "sentence": PageTable(
            ["", "a test sentence"],
            [["German", data.test.german[example]], ["reference", data.test.english[example]]],
        ),
        "heatmaps": [
            attention_heatmap(attention, f"{attention.name}: each row sums to 1") for attention in results.attention
        ],
    }


def suggested_commands(output: Path, results: LabResults) -> list[SuggestedCommand]:
    """Return commands to try with the best model of either kind."""
    from dragoman.models.configs import TREE_ENCODERS

    test, commands = output / "lab" / "test", []
    if results.language_models:
        path = str(output / "rungs" / min(results.language_models, key=lambda rung: rung.perplexity).name)
        commands += [
            SuggestedCommand(["contrast", path]),
            SuggestedCommand(["evaluate", path, "--text", f"{test}.en"]),
            SuggestedCommand(["next", path, "the farmers"]),
        ]
    if results.translators:
        best: TranslatorRung = max(results.translators, key=lambda rung: rung.bleu)
        german = f"{test}.de.trees" if best.name.endswith(TREE_ENCODERS) else f"{test}.de"
        path = str(output / "rungs" / best.name)
        commands.append(SuggestedCommand(["evaluate", path, "--src", german, "--ref", f"{test}.en"]))
    return commands
