"""The ladder on the lab's text: every kind of model, compared with the floor, minimal pairs and true alignments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from dragoman.core.defaults import DEFAULT_BEAM_SIZE
from dragoman.experiments.directories import check_settings, claim_directory
from dragoman.experiments.lab import LabData, LabExperiment
from dragoman.experiments.pipeline import RESUME, ExperimentReport, SuggestedCommand
from dragoman.experiments.recipes import LAB_TRANSLATORS, LANGUAGE_MODELS, MAX_LAB_PAIRS
from dragoman.experiments.results import NGRAM_WINDOW, LanguageModelRung, Results
from dragoman.experiments.trainer import SILENT, Callbacks, select_models
from dragoman.lab.corpus_files import GRAMMAR_VERSION
from dragoman.models.configs import TREE_ENCODERS
from dragoman.report import ladder
from dragoman.report.charts import draw_accuracy_by_distance
from dragoman.report.document import NamedParts, render_document
from dragoman.report.page import PageTable

PAIRS = 20_000  # to train on, by default
DEV, TEST = 1000, 2000  # sentence pairs
MINIMAL_PAIRS = 300  # per phenomenon and class of distance
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
        minutes: time limit of each training run by gradient descent.
    """
    names = select_models(models, [*LANGUAGE_MODELS, *LAB_TRANSLATORS])
    claim_directory(output, "ladder", RESUME)
    check_settings(output, {"pairs": pairs, "seed": seed, "minutes": minutes, "grammar": GRAMMAR_VERSION})
    return LabLadder(
        output=output,
        models=output / "rungs",
        seed=seed,
        minutes=minutes,
        callbacks=callbacks,
        sizes={"train": pairs, "dev": DEV, "test": TEST},
        language_models=LANGUAGE_MODELS,
        translators=LAB_TRANSLATORS,
        names=names,
        minimal_pairs=MINIMAL_PAIRS,
    ).run()


class LabLadder(LabExperiment):
    def report(self, data: LabData, results: Results) -> ExperimentReport:
        figures, pairs = ladder.FigureWriter(self.output), self.sizes["train"]
        parts: NamedParts = {}
        values: dict[str, object] = {"pairs": pairs, "seed": self.seed, "minutes": self.minutes}
        if rungs := results.language_models:
            parts |= _language_model_parts(rungs, figures, pairs)
            floor = rungs[0].evaluation.floor
            assert floor is not None, "text of the lab"
            values |= {"floor": floor.as_dict(), "models": [rung.as_dict() for rung in rungs]}
        if results.translators:
            parts |= _translator_parts(results, data, figures, min(MAX_LAB_PAIRS, pairs))
            values["translators"] = [rung.as_dict() for rung in results.translators]
        sections = render_document(
            "lab_ladder.txt.j2", parts, results=results, window=NGRAM_WINDOW, beam=DEFAULT_BEAM_SIZE
        )
        commands = suggested_commands(self.output, results)
        return ExperimentReport("The ladder", sections, figures.files, commands, values)


def _language_model_parts(rungs: Sequence[LanguageModelRung], figures: ladder.FigureWriter, pairs: int) -> NamedParts:
    ladder_figure = figures.ladder(
        "ladder.svg",
        "Perplexity of each model, the floor, and accuracy on minimal pairs",
        rungs,
        f"Models after {pairs:,} sentences of English from the lab",
        shares={rung.name: rung.accuracy_by_column for rung in rungs},
    )
    proportions = ladder.distance_proportions(
        [rung for rung in rungs if rung.name in DISTANCE_MODELS] or rungs[-MAX_LINES:]
    )
    title = "Accuracy by distance, in words"
    draw_distances = partial(draw_accuracy_by_distance, proportions, title=title)
    distances = figures.draw("distances.svg", "Accuracy by distance", draw_distances) if proportions else None
    return {
        "perplexities": ladder.perplexity_table(rungs, "English"),
        "accuracies": ladder.accuracy_table(rungs),
        "distances": ladder.distance_tables(rungs),
        "ladder_figure": ladder_figure,
        "distances_figure": distances,
    }


def _translator_parts(results: Results, data: LabData, figures: ladder.FigureWriter, pairs: int) -> NamedParts:
    rungs, caption = results.translators, "BLEU by words of the German sentence"
    shares = {
        name: {length: bleu / 100 for length, bleu in zip(ladder.class_sizes(rungs), bleus, strict=True)}
        for name, bleus in ladder.bleu_by_class(rungs).items()
    }
    selected = rungs if len(rungs) <= MAX_LINES else [rung for rung in rungs if rung.name in LENGTH_MODELS]
    sentence = [["German", data.test.german[data.example]], ["reference", data.test.english[data.example]]]
    return {
        "scores": ladder.score_table(rungs, "German to English"),
        "translators_figure": figures.ladder(
            "translators.svg",
            "Perplexity of each translator, the floor, and BLEU by sentence length",
            rungs,
            f"Translators after {pairs:,} pairs from the lab",
            shares=shares,
            note=caption,
        ),
        "lengths": ladder.lengths_table(rungs),
        "lengths_figure": figures.lengths(selected, caption),
        "sentence": PageTable(["", "a test sentence"], sentence),
        "heatmaps": [
            ladder.attention_heatmap(attention, f"{attention.name}: each row sums to 1")
            for attention in results.attention
        ],
    }


def suggested_commands(output: Path, results: Results) -> list[SuggestedCommand]:
    """Return commands to try with the best model of either kind."""
    test, commands = output / "lab" / "test", []
    if results.language_models:
        path = str(output / "rungs" / min(results.language_models, key=lambda rung: rung.perplexity).name)
        commands += [
            SuggestedCommand(["contrast", path]),
            SuggestedCommand(["evaluate", path, "--text", f"{test}.en"]),
            SuggestedCommand(["next", path, "the farmers"]),
        ]
    if results.translators:
        best = max(results.translators, key=lambda rung: rung.bleu)
        german = f"{test}.de.trees" if best.name.endswith(TREE_ENCODERS) else f"{test}.de"
        path = str(output / "rungs" / best.name)
        commands.append(SuggestedCommand(["evaluate", path, "--src", german, "--ref", f"{test}.en"]))
    return commands
