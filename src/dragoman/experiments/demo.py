"""The demo: two language models and two translators on the lab's text, compared with the floor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dragoman.experiments.directories import claim_directory
from dragoman.experiments.lab import LabData, LabExperiment
from dragoman.experiments.pipeline import ExperimentReport, SuggestedCommand, commands_part
from dragoman.experiments.recipes import DEMO_LANGUAGE_MODELS, DEMO_TRANSLATORS
from dragoman.experiments.results import Results, first_of_each_length, read_learning_curve
from dragoman.experiments.trainer import SILENT, Callbacks
from dragoman.io.storage import METRICS_FILE
from dragoman.report.document import NamedParts, render_document
from dragoman.report.ladder import FigureWriter, attention_heatmap, example_tables, lengths_table, overview_table
from dragoman.report.page import Preformatted, section_text

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
    return Demo(
        output=output,
        models=output,
        seed=seed,
        sizes=SIZES,
        language_models=DEMO_LANGUAGE_MODELS,
        translators=DEMO_TRANSLATORS,
        names=list(NAMES),
        start_again=True,
        callbacks=callbacks,
    ).run()


class Demo(LabExperiment):
    def prepare(self) -> LabData:
        """Show a few sentence pairs before models are trained."""
        data = super().prepare()
        (section,) = render_document("demo.txt.j2", {"pairs": self._sample()}, trained=False)
        self.callbacks.show(f"\n{section_text(section)}")
        return data

    def _sample(self) -> Preformatted:
        """Return a few pairs of the training text as they are written, before tokenisation."""
        german, english = (
            (self.data_directory / f"train.raw.{language}").read_text(encoding="utf-8").splitlines()[:SAMPLE_PAIRS]
            for language in ("de", "en")
        )
        return Preformatted("\n".join(f"{source}\n  {target}" for source, target in zip(german, english, strict=True)))

    def report(self, data: LabData, results: Results) -> ExperimentReport:
        models = [replace(rung, name=NAMES[rung.name]) for rung in results.language_models]
        translators = [replace(rung, name=NAMES[rung.name]) for rung in results.translators]
        german, english = data.test.german, data.test.english
        lines = {"German": german[data.example], "reference": english[data.example]}
        lines |= {rung.name: rung.evaluation.texts[data.example] for rung in translators}
        width = max(map(len, lines))
        curves = {NAMES[name]: read_learning_curve(self.models / name / METRICS_FILE) for name in CURVES}
        figures = FigureWriter(self.output)
        commands = suggested_commands(self.output, data)
        parts: NamedParts = {
            "pairs": self._sample(),
            "models": overview_table([*models, *translators]),
            "lengths": lengths_table(translators),
            "lengths_figure": figures.lengths(translators, "BLEU by words of the German sentence"),
            "sentence": Preformatted("\n".join(f"{name:{width}}  {line}" for name, line in lines.items())),
            "attention": attention_heatmap(results.attention[0], f"{NAMES['attention']}: each row sums to 1"),
            "curves": figures.curves(curves, "perplexity of the dev text, by class", "Dev text, by class"),
            "examples": example_tables(german, english, translators, first_of_each_length(german, translators[0])),
            "commands": commands_part(commands),
        }
        sections = render_document("demo.txt.j2", parts, trained=True, curves=parts["curves"] is not None)
        title = "Language models and translators compared with the floor"
        return ExperimentReport(title, sections, figures.files, commands)


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
