"""The ladder on the laboratory's text: every rung made, held to the floor, the contrasts and the true alignment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.experiments.callbacks import SILENT, Callbacks
from dragoman.experiments.language_models import LANGUAGE_MODELS
from dragoman.experiments.messages import ReportContents, write_report
from dragoman.experiments.trainer import ModelTrainer, TrainedRung, TrainingContext, megabytes
from dragoman.experiments.translators import PAIRS, TRANSLATORS, attention_heatmap, measure_trained_translator
from dragoman.experiments.work_directory import LabBitext, LabTexts, read_answers, read_bitext, read_texts, write_corpus

if TYPE_CHECKING:
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.translator import Translator
    from dragoman.report.ladder import LanguageModelRung
    from dragoman.report.page import Heatmap, PageFigure, PageSection
    from dragoman.report.translators import TranslatorRung

DEV, TEST = 1000, 2000  # sentence pairs
CONTRASTS = 300  # for each phenomenon and class of distance
BY_DISTANCE = ("kn-2", "kn-5", "feed-forward", "rnn", "gru", "lstm")  # rungs in the picture of distances
MOST = 9  # lines in it, if none of these is there
BY_LENGTH = (  # translators in the picture of lengths, if there are too many for it
    *("encdec-forward", "encdec-reverse", "encdec-bidirectional", "encdec-convolutional", "encdec-tree-lstm"),
    *("attn-dot", "attn-mlp", "attn-convolutional", "attn-tree-lstm"),
)
CAPTIONS = {
    "ladder.svg": "Perplexity of each model against the floor, and how often it is right",
    "distances.svg": "Accuracy by distance",
    "translators.svg": "Perplexity of each translator against the floor, and BLEU by sentence length",
    "lengths.svg": "BLEU by words of the German sentence",
}


def run_lab_ladder(
    output: Path, names: Sequence[str], settings: dict[str, Any], callbacks: Callbacks = SILENT
) -> tuple[list[LanguageModelRung], LabTranslators, ReportContents]:
    """Make and measure these rungs, and write what is to be told of them.  # settings: pairs, seed, minutes"""
    with callbacks.status("drawing sentences from the laboratory's grammar"):
        texts = _texts(output / "lab", settings["pairs"], settings["seed"])
    train = texts.train
    sizes = (
        f"{train.num_sentences:,} sentences to train on, {train.num_words:,} words, {train.vocab.num_known - 1:,} types"
    )
    callbacks.info(f"{output}: {sizes}")
    bench = LabExperiment(output, settings["seed"], settings["minutes"], callbacks)
    rungs = _language_models(bench, texts, names)
    climb = _translators(bench, names)
    return rungs, climb, _write(output, rungs, climb, settings)


def _texts(corpus: Path, pairs: int, seed: int) -> LabTexts:
    """The laboratory's corpus, drawn if it is not there; it is written whole, so one that is there is complete."""
    if not corpus.exists():
        write_corpus(corpus, {"train": pairs, "dev": DEV, "test": TEST}, seed)
    return read_texts(corpus)


# -- making and measuring --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabExperiment:
    """Where a ladder is made, and how."""

    output: Path
    seed: int
    minutes: float | None  # most minutes that each model is trained by gradients
    voice: Callbacks

    @property
    def place(self) -> Path:
        """Of the models' directories."""
        return self.output / "rungs"

    def ground(self, train: Any, dev: Any) -> TrainingContext[Any]:
        return TrainingContext(train, dev, self.seed, self.minutes, self.place, self.voice)


@dataclass(frozen=True)
class LabTranslators:
    """The translators, measured, and where those with attention look as they translate one sentence."""

    rungs: Sequence[TranslatorRung]
    german: str = ""
    english: str = ""
    heatmaps: Sequence[Heatmap] = ()


def _language_models(bench: LabExperiment, texts: LabTexts, names: Sequence[str]) -> list[LanguageModelRung]:
    from dragoman.models.loading import load_language_model

    workshop = ModelTrainer(bench.place, bench.ground(texts.train, texts.dev), LANGUAGE_MODELS, load_language_model)
    return list(_measured(workshop.train_all(name for name in names if name in LANGUAGE_MODELS), texts, bench))


def _measured(
    made: Iterator[TrainedRung[LanguageModel]], texts: LabTexts, bench: LabExperiment
) -> Iterator[LanguageModelRung]:
    """Each rung against the floor and the contrasts."""
    from dragoman.evaluation.floor import evaluate_language_model
    from dragoman.evaluation.lab_reference import minimal_pair_accuracies
    from dragoman.lab.minimal_pairs import contrasts
    from dragoman.report.ladder import LanguageModelRung

    found = contrasts("en", CONTRASTS, bench.seed)
    for one in made:
        with bench.voice.status(f"measuring {one.name}"):
            result = evaluate_language_model(one.model, texts.test, texts.truth)
            accuracies = minimal_pair_accuracies(one.model, found)
        bench.voice.info(f"{one.name}: perplexity {result.likelihood.perplexity:,.2f}")
        yield LanguageModelRung(one.name, result, accuracies, one.seconds, megabytes(one.path))


def _translators(bench: LabExperiment, names: Sequence[str]) -> LabTranslators:
    from dragoman.models.loading import load_translator
    from dragoman.report.translators import choose_example

    wanted = [name for name in names if name in TRANSLATORS]
    if not wanted:
        return LabTranslators([])
    corpus = bench.output / "lab"
    train, dev, test = (read_bitext(corpus, part) for part in ("train", "dev", "test"))
    answers = read_answers(corpus)
    ground = bench.ground(train.first(PAIRS), dev)
    workshop: ModelTrainer[LabBitext, Translator] = ModelTrainer(bench.place, ground, TRANSLATORS, load_translator)
    number = choose_example(test.german, answers.gold_alignments)
    rungs, heatmaps = [], []
    for made in workshop.train_all(wanted):
        lines = test.sources(made.model.source.format)
        rungs.append(measure_trained_translator(made, lines, answers, bench.voice))
        if rungs[-1].measured.alignment is not None:
            heatmaps.append(attention_heatmap(made.name, made.model, test.german[number], lines[number]))
    return LabTranslators(rungs, test.german[number], test.english[number], heatmaps)


# -- telling ---------------------------------------------------------------------------------------------------------


def _write(
    output: Path, rungs: Sequence[LanguageModelRung], climb: LabTranslators, settings: dict[str, Any]
) -> ReportContents:
    """What there is to tell, written into the directory."""
    halves = []
    if rungs:
        halves.append(_told_of_language_models(output, rungs, settings))
    if climb.rungs:
        halves.append(_told_of_translators(output, climb, settings))
    told = ReportContents(
        "\n\n".join(half.text for half in halves),
        "\n".join(half.markdown for half in halves),
        [section for half in halves for section in half.sections],
        {**settings, **{name: value for half in halves for name, value in half.values.items()}},
        [name for half in halves for name in half.drawn],
    )
    write_report(output, "The ladder", told)
    return told


def _told_of_language_models(
    output: Path, rungs: Sequence[LanguageModelRung], settings: dict[str, Any]
) -> ReportContents:
    from dragoman.report.charts import draw_ladder
    from dragoman.report.ladder import distances_text, ladder_dict, ladder_markdown, ladder_section, ladder_text

    perplexities = {rung.name: rung.measured.likelihood.perplexity for rung in rungs}
    title = f"Models after {settings['pairs']:,} sentences of the laboratory's English"
    picture = output / "ladder.svg"
    draw_ladder(
        perplexities,
        rungs[0].floor.perplexity.value,
        {r.name: r.accuracy_by_column for r in rungs},
        picture,
        title=title,
    )
    drawn = [picture.name, *_draw_distances(output / "distances.svg", rungs)]
    return ReportContents(
        "\n\n".join(filter(None, (ladder_text(rungs), distances_text(rungs)))),
        ladder_markdown(rungs),
        [_illustrated(ladder_section(rungs), output, drawn)],
        ladder_dict(rungs, {}),
        drawn,
    )


def _told_of_translators(output: Path, climb: LabTranslators, settings: dict[str, Any]) -> ReportContents:
    from dragoman.report.demo import section_text
    from dragoman.report.page import Page, to_markdown
    from dragoman.report.translators import attention_section, lengths_section, scores_section, translators_dict

    scores, lengths = scores_section(climb.rungs), lengths_section(climb.rungs)
    drawn = _draw_translators(output, climb.rungs, min(PAIRS, settings["pairs"]))
    looked = [attention_section(climb.german, climb.english, climb.heatmaps)] if climb.heatmaps else []
    return ReportContents(
        f"\n{section_text(scores)}\n\n{section_text(lengths)}",
        to_markdown(Page("Translators of the ladder", [scores, lengths])),
        [_illustrated(scores, output, drawn[:1]), _illustrated(lengths, output, drawn[1:]), *looked],
        {"translators": translators_dict(climb.rungs)},
        drawn,
    )


def _illustrated(section: PageSection, output: Path, drawn: Sequence[str]) -> PageSection:
    """A section with pictures at its end."""
    return replace(section, parts=[*section.parts, *(_picture(output / name) for name in drawn)])


def _picture(path: Path) -> PageFigure:
    from dragoman.report.page import PageFigure

    return PageFigure(path.read_text(encoding="utf-8"), CAPTIONS[path.name])


def _draw_translators(output: Path, rungs: Sequence[TranslatorRung], pairs: int) -> list[str]:
    """Perplexity and BLEU of all, and BLEU by length of some."""
    from dragoman.report.charts import draw_bleu_by_length, draw_ladder
    from dragoman.report.translators import bleu_as_shares, bleu_by_class, class_sizes, translation_floor

    perplexities = {rung.name: rung.measured.perplexity for rung in rungs}
    title = f"Translators after {pairs:,} pairs of the laboratory's German and English"
    note, floor = "BLEU by words of the German sentence", translation_floor(rungs).value
    ladder, lengths = output / "translators.svg", output / "lengths.svg"
    draw_ladder(perplexities, floor, bleu_as_shares(rungs), ladder, title=title, note=note)
    told = rungs if len(rungs) <= MOST else [rung for rung in rungs if rung.name in BY_LENGTH]
    draw_bleu_by_length(class_sizes(told), bleu_by_class(told), lengths, title="BLEU by sentence length")
    return [ladder.name, lengths.name]


def _draw_distances(picture: Path, rungs: Sequence[LanguageModelRung]) -> list[str]:
    """The name of the picture of accuracy by distance, if there are contrasts enough to draw one."""
    from dragoman.report.charts import draw_accuracy_by_distance
    from dragoman.report.ladder import distance_shares

    told = [rung for rung in rungs if rung.name in BY_DISTANCE] or rungs[-MOST:]
    shares = distance_shares(told)
    if not shares:
        return []
    title = "Right, by the words between what decides and what is decided"
    draw_accuracy_by_distance(shares, picture, title=title)
    return [picture.name]
