"""dragoman demo"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import info, shell_command, status, suggest_command
from dragoman.cli.progress import console_callbacks
from dragoman.experiments.messages import SuggestedCommand
from dragoman.experiments.trainer import TrainingContext, train_model
from dragoman.experiments.translators import attention_heatmap, measure_translator_rung, translator
from dragoman.experiments.work_directory import (
    LabBitext,
    LabTexts,
    claim_directory,
    read_answers,
    read_bitext,
    read_texts,
    write_corpus,
)

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.evaluation.translator import ReferenceData
    from dragoman.models.recurrent import RecurrentModel
    from dragoman.models.translator import Translator
    from dragoman.ngram.model import NgramModel
    from dragoman.report.demo import SummaryRow
    from dragoman.report.page import PageSection
    from dragoman.report.translators import TranslatorRung

SIZES = {"train": 10_000, "dev": 500, "test": 1000}  # sentence pairs
SHOWN = 3  # of them, to begin with
KNESER_NEY, LSTM, PLAIN, ATTENTION = "modified Kneser-Ney, 4-gram", "LSTM", "encoder-decoder", "with attention"
PLACES = {KNESER_NEY: "kneser-ney", LSTM: "lstm", PLAIN: "encoder-decoder", ATTENTION: "attention"}
ORDER = 4
NETWORK: dict[str, Any] = {
    "cell": "lstm",
    "embedding": 64,
    "embedding_reach": 0.5,
    "hidden": 128,
    "dropout": 0.2,
    "softmax": "brown",
}
TRAINING: dict[str, Any] = {"learning_rate": 0.008, "max_epochs": 6, "warmup": 50, "patience": 6}
# What the two translators differ in, and how long they are trained; the rest is as on the ladder.
TRANSLATORS: dict[str, dict[str, Any]] = {
    PLAIN: {"encoder": "forward", "attention": "none"},
    ATTENTION: {"encoder": "bidirectional", "attention": "mlp"},
}
TRANSLATOR_TRAINING: dict[str, Any] = {"max_epochs": 6, "patience": 6}


@dataclass(frozen=True)
class DemoData:
    """What the demo works on, and where."""

    output: Path
    texts: LabTexts  # English alone, as language models read it
    train: LabBitext
    dev: LabBitext
    test: LabBitext
    answers: ReferenceData
    seed: int

    def path(self, name: str) -> Path:
        """Of a model's directory."""
        return self.output / PLACES[name]

    def ground(self, name: str) -> TrainingContext[LabBitext]:
        return TrainingContext(self.train, self.dev, self.seed, None, self.path(name), console_callbacks())


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where texts, models and report go.")
    ] = Path("runs/demo"),
    seed: Annotated[int, typer.Option("--seed", help="Of the text and of all models.")] = 1,
) -> None:
    """Train four models on lab text and write a report.

    The text is drawn from the laboratory's grammar (see dragoman lab): German sentences with their English
    translations, and how probable they are. Modified Kneser-Ney, an LSTM, a plain encoder-decoder and one with
    attention are held to that; a sentence is translated with its attention drawn, and report.html has it all with
    pictures.

    \b
    Example:
      dragoman demo
    """
    from dragoman.io.storage import REPORT_FILE
    from dragoman.report.demo import models_section
    from dragoman.report.page import Page, write_html
    from dragoman.report.translators import lengths_section

    claim_directory(output, "demo", "writes them anew when it runs again")
    stage = _set_up(output, seed)
    told = [_show(_pairs(stage))]
    rows = [_kneser_ney(stage), _lstm(stage)]
    models = {name: _translator(stage, name) for name in TRANSLATORS}
    rungs = [_measure(stage, name, *made) for name, made in models.items()]
    told.append(_show(models_section([*rows, *map(_row, rungs)])))
    told.append(_with_picture(stage, _show(lengths_section(rungs)), rungs))
    told.append(_show(_sentence(stage, {name: model for name, (model, _) in models.items()})))
    told += [_curves(stage), _examples(stage, rungs), _commands(stage)]
    write_html(Page("Language models and translators beside the truth", told), output / REPORT_FILE)
    info("")
    for command in _next(stage):
        suggest_command(*command.words, line=command.line)
    info(f"report, with pictures: {output / REPORT_FILE}")


def _set_up(output: Path, seed: int) -> DemoData:
    """Draw the texts and read them."""
    corpus = output / "lab"
    with status("drawing German and English sentences from the laboratory's grammar"):
        write_corpus(corpus, SIZES, seed)
        texts = read_texts(corpus)
    train = texts.train
    words = f"{train.num_words:,} English words of {train.vocab.num_known - 1:,} types"
    info(f"{output}: {train.num_sentences:,} sentence pairs to train on, {words}")
    pairs, dev, test = (read_bitext(corpus, part) for part in ("train", "dev", "test"))
    return DemoData(output, texts, pairs, dev, test, read_answers(corpus), seed)


def _show(section: PageSection) -> PageSection:
    """Print a section as soon as it is there."""
    from dragoman.report.demo import section_text

    print(f"\n{section_text(section, colour=sys.stdout.isatty())}", flush=True)
    return section


def _pairs(stage: DemoData) -> PageSection:
    from dragoman.report.demo import pairs_section

    german, english = (
        (stage.output / "lab" / f"train.raw.{language}").read_text(encoding="utf-8").splitlines()[:SHOWN]
        for language in ("de", "en")
    )
    return pairs_section(list(zip(german, english, strict=True)))


# -- models ----------------------------------------------------------------------------------------------------------


def _kneser_ney(stage: DemoData) -> SummaryRow:
    """Counted, saved and measured."""
    from dragoman.evaluation.floor import evaluate_language_model
    from dragoman.report.demo import SummaryRow

    _count(stage.texts.dev)  # to compile, so that the time is the method's own
    began = perf_counter()
    model = _count(stage.texts.train)
    seconds = perf_counter() - began
    model.save(stage.path(KNESER_NEY), replace=True)
    return SummaryRow.of_language_model(
        KNESER_NEY, evaluate_language_model(model, stage.texts.test, stage.texts.truth), seconds
    )


def _count(corpus: Corpus) -> NgramModel:
    from dragoman.ngram.model import NgramModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a small text has too few counts for some discounts
        return NgramModel.train(corpus, order=ORDER)


def _lstm(stage: DemoData) -> SummaryRow:
    from dragoman.evaluation.floor import evaluate_language_model
    from dragoman.models.recurrent import RecurrentModel
    from dragoman.report.demo import SummaryRow
    from dragoman.training.presets import RECURRENT

    info(f"training: {LSTM}, on the English alone")
    began = perf_counter()
    texts = stage.texts
    model: RecurrentModel = RecurrentModel.create(texts.train, seed=stage.seed, **NETWORK)
    train_model(stage.ground(LSTM), model, (texts.train, texts.dev), RECURRENT, TRAINING, force=True)
    seconds = perf_counter() - began
    return SummaryRow.of_language_model(LSTM, evaluate_language_model(model, texts.test, texts.truth), seconds)


def _translator(stage: DemoData, name: str) -> tuple[Translator, float]:
    """A translator, and the seconds that its training took."""
    info(f"training: {name}, from German to English")
    began = perf_counter()
    model = translator(stage.ground(name), training=TRANSLATOR_TRAINING, force=True, **TRANSLATORS[name])
    return model, perf_counter() - began


def _measure(stage: DemoData, name: str, model: Translator, seconds: float) -> TranslatorRung:
    with status(f"translating the test text: {name}"):
        return measure_translator_rung(name, model, stage.test.german, stage.answers, seconds)


def _row(rung: TranslatorRung) -> SummaryRow:
    from dragoman.report.demo import SummaryRow

    return SummaryRow.of_translator(rung)


# -- the report ------------------------------------------------------------------------------------------------------


def _with_picture(stage: DemoData, section: PageSection, rungs: list[TranslatorRung]) -> PageSection:
    """BLEU by sentence length, drawn too."""
    from dataclasses import replace

    from dragoman.report.charts import draw_bleu_by_length
    from dragoman.report.page import PageFigure
    from dragoman.report.translators import bleu_by_class, class_sizes

    path = stage.output / "lengths.svg"
    draw_bleu_by_length(class_sizes(rungs), bleu_by_class(rungs), path, title="BLEU by sentence length")
    picture = PageFigure(path.read_text(encoding="utf-8"), "BLEU by words of the German sentence")
    return replace(section, parts=[*section.parts, picture])


def _sentence(stage: DemoData, models: dict[str, Translator]) -> PageSection:
    """One test sentence by both translators, with the attention of the one that has it."""
    from dragoman.report.demo import sentence_section
    from dragoman.report.translators import choose_example

    number = choose_example(stage.test.german, stage.answers.gold_alignments)
    line = stage.test.german[number]
    told = {name: model.translate([line])[0].text for name, model in models.items()}
    return sentence_section(
        line, stage.test.english[number], told, attention_heatmap(ATTENTION, models[ATTENTION], line, line)
    )


def _curves(stage: DemoData) -> PageSection:
    from dragoman.io.storage import METRICS_FILE
    from dragoman.report.charts import draw_learning_curves
    from dragoman.report.demo import curves_section, read_learning_curve

    path = stage.output / "curves.svg"
    curves = {name: read_learning_curve(stage.path(name) / METRICS_FILE) for name in (LSTM, PLAIN, ATTENTION)}
    draw_learning_curves(curves, path, "perplexity", title="Held-out text, by class")
    return curves_section(path.read_text(encoding="utf-8"))


def _examples(stage: DemoData, rungs: list[TranslatorRung]) -> PageSection:
    from dragoman.report.translators import examples_section, first_of_each_length

    lines, references = stage.test.german, stage.test.english
    translations = {rung.name: rung.measured.texts for rung in rungs}
    return examples_section(lines, references, translations, first_of_each_length(lines, rungs[0]))


def _commands(stage: DemoData) -> PageSection:
    from dragoman.report.demo import commands_section

    return commands_section([shell_command(["dragoman", *command.words], command.line) for command in _next(stage)])


def _next(stage: DemoData) -> list[SuggestedCommand]:
    from dragoman.report.translators import choose_example

    test, model = stage.output / "lab" / "test", str(stage.path(ATTENTION))
    sentence = stage.test.german[choose_example(stage.test.german, stage.answers.gold_alignments)]
    pair = ["--src", f"{test}.de", "--ref", f"{test}.en"]
    return [
        SuggestedCommand(["translate", model], sentence),
        SuggestedCommand(["attention", model, sentence]),
        SuggestedCommand(["evaluate", model, str(stage.path(PLAIN)), *pair, "--by-length"]),
        SuggestedCommand(["contrast", str(stage.path(LSTM))]),
        SuggestedCommand(["serve", f"de-en={stage.output}"]),
    ]
