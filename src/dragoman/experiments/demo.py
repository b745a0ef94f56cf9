"""The demo: two language models and two translators on the lab's text, compared with the floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from dragoman.experiments.directory import claim_directory
from dragoman.experiments.lab import LabData, LabExperiment, LabResults
from dragoman.experiments.pipeline import (
    ExperimentReport,
    FigureWriter,
    SuggestedCommand,
    commands_part,
    run_experiment,
)
from dragoman.experiments.recipes import DEMO_LANGUAGE_MODELS, DEMO_TRANSLATORS
from dragoman.experiments.results import TranslatorRung, first_of_each_length, read_learning_curve
from dragoman.experiments.trainer import SILENT, Callbacks
from dragoman.report.page import PagePart, Preformatted, section_text

SIZES = {"train": 10_000, "dev": 500, "test": 1000}  # sentence pairs
SAMPLE_PAIRS = 3  # that are shown first
NAMES = {  # of the model directories, in tables
    "kneser-ney": "modified Kneser-Ney, 4-gram",
    "lstm": "LSTM",
    "encoder-decoder": "encoder-decoder",
    "attention": "with attention",
}
CURVES = ("lstm", "encoder-decoder", "attention")  # models with learning curves


def run_demo(output: Path, seed: int = 1, callbacks: Callbacks = SILENT) -> ExperimentReport:
    """Train and compare the models of the demo, and write `report.html` to the output directory."""
    claim_directory(output, "demo", "writes them again when it runs again")
    experiment = LabExperiment(
        output=output,
        models=output,
        seed=seed,
        sizes=SIZES,
        language_models=DEMO_LANGUAGE_MODELS,
        translators=DEMO_TRANSLATORS,
        names=list(NAMES),
        make_report=demo_report,
        start_again=True,
        announce=_show_sample,
        callbacks=callbacks,
    )
    return run_experiment(experiment)


def demo_report(experiment: LabExperiment, data: LabData, results: LabResults) -> ExperimentReport:
    from dragoman.io.storage import METRICS_FILE
    from dragoman.report.charts import draw_bleu_by_length, draw_learning_curves
    from dragoman.report.document import render_document
    from dragoman.report.ladder import (
        attention_heatmap,
        bleu_by_class,
        class_sizes,
        example_tables,
        lengths_table,
        overview_table,
    )

    models = [replace(rung, name=NAMES[rung.name]) for rung in results.language_models]
    translators = [replace(rung, name=NAMES[rung.name]) for rung in results.translators]
    texts = {rung.name: rung.evaluation.texts for rung in translators}
    figures = FigureWriter(experiment.output)
    draw_lengths = partial(draw_bleu_by_length, class_sizes(translators), bleu_by_class(translators))
    curves = {NAMES[name]: read_learning_curve(experiment.output / name / METRICS_FILE) for name in CURVES}
    commands = suggested_commands(experiment.output, data)
    examples = first_of_each_length(data.test.german, translators[0])
    parts: dict[str, PagePart | list[PagePart] | None] = {
        "pairs": _sample(experiment),
        "models": overview_table(models, translators),
        "lengths": lengths_table(translators),
        "lengths_figure": figures.draw(
            "lengths.svg",
            "BLEU by words of the German sentence",
            lambda path: draw_lengths(path, title="BLEU by sentence length"),
        ),
        "sentence": _translations(data, translators),
        "attention": attention_heatmap(results.attention[0], f"{NAMES['attention']}: each row sums to 1"),
        "curves": figures.draw(
            "curves.svg",
            "perplexity of the dev text, by class",
            lambda path: draw_learning_curves(curves, path, "perplexity", title="Dev text, by class"),
        ),
        "examples": [*example_tables(data.test.german, data.test.english, texts, examples)],
        "commands": commands_part(commands),
    }
    sections = render_document("demo.txt.j2", parts, trained=True, curves=parts["curves"] is not None)
    sections[0] = replace(sections[0], in_summary=False)  # it was shown before training
    return ExperimentReport(
        "Language models and translators compared with the floor", sections, figures.files, commands
    )


def _show_sample(experiment: LabExperiment, data: LabData) -> None:
    """Show a few sentence pairs before models are trained."""
    from dragoman.report.document import render_document

    section = render_document("demo.txt.j2", {"pairs": _sample(experiment)}, trained=False)[0]
    experiment.callbacks.show(f"\n{section_text(section)}")


def _sample(experiment: LabExperiment) -> Preformatted:
    """Return a few pairs of the training text as they are written, before tokenisation."""
    german, english = (
        (experiment.data_directory / f"train.raw.{language}").read_text(encoding="utf-8").splitlines()[:SAMPLE_PAIRS]
        for language in ("de", "en")
    )
    return Preformatted("\n".join(f"{source}\n  {target}" for source, target in zip(german, english, strict=True)))


def _translations(data: LabData, translators: Sequence[TranslatorRung]) -> Preformatted:
    """Return the example sentence by all translators."""
    lines = {
        "German": data.test.german[data.example],
        "reference": data.test.english[data.example],
        **{rung.name: rung.evaluation.texts[data.example] for rung in translators},
    }
    width = max(map(len, lines))
    return Preformatted("\n".join(f"{name:{width}}  {line}" for name, line in lines.items()))


def suggested_commands(output: Path, data: LabData) -> list[SuggestedCommand]:
    """Return commands to try with the trained models."""
    attention, plain, lstm = (str(output / name) for name in ("attention", "encoder-decoder", "lstm"))
    sentence, test = data.test.german[data.example], output / "lab" / "test"
    files = ["--src", f"{test}.de", "--ref", f"{test}.en"]
    return [
        SuggestedCommand(["translate", attention], sentence),
        SuggestedCommand(["attention", attention, sentence]),
        SuggestedCommand(["evaluate", attention, plain, *files, "--by-length"]),
        SuggestedCommand(["contrast", lstm]),
        SuggestedCommand(["serve", f"de-en={output}"]),
    ]
