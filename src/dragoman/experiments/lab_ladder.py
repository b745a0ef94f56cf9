"""The ladder on the laboratory's text: every rung made, held to the floor, the contrasts and the true alignment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.experiments.callbacks import SILENT, Voice
from dragoman.experiments.language_models import RUNGS
from dragoman.experiments.messages import Told, write
from dragoman.experiments.trainer import Ground, Made, Workshop, megabytes
from dragoman.experiments.translators import PAIRS, TRANSLATORS, looked_at, measured_translator
from dragoman.experiments.work_directory import Bitext, Texts, read_answers, read_bitext, read_texts, write_corpus

if TYPE_CHECKING:
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.translator import Translator
    from dragoman.report.ladder import Rung
    from dragoman.report.page import Heatmap, Picture, Section
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


def climb_laboratory(
    output: Path, names: Sequence[str], settings: dict[str, Any], voice: Voice = SILENT
) -> tuple[list[Rung], Climb, Told]:
    """Make and measure these rungs, and write what is to be told of them.  # settings: pairs, seed, minutes"""
    with voice.working("drawing sentences from the laboratory's grammar"):
        texts = _texts(output / "lab", settings["pairs"], settings["seed"])
    train = texts.train
    sizes = f"{train.sentences:,} sentences to train on, {train.words:,} words, {train.vocab.known - 1:,} types"
    voice.say(f"{output}: {sizes}")
    bench = Bench(output, settings["seed"], settings["minutes"], voice)
    rungs = _language_models(bench, texts, names)
    climb = _translators(bench, names)
    return rungs, climb, _write(output, rungs, climb, settings)


def _texts(corpus: Path, pairs: int, seed: int) -> Texts:
    """The laboratory's corpus, drawn if it is not there; it is written whole, so one that is there is complete."""
    if not corpus.exists():
        write_corpus(corpus, {"train": pairs, "dev": DEV, "test": TEST}, seed)
    return read_texts(corpus)


# -- making and measuring --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """Where a ladder is made, and how."""

    output: Path
    seed: int
    minutes: float | None  # most minutes that each model is trained by gradients
    voice: Voice

    @property
    def place(self) -> Path:
        """Of the models' directories."""
        return self.output / "rungs"

    def ground(self, train: Any, dev: Any) -> Ground[Any]:
        return Ground(train, dev, self.seed, self.minutes, self.place, self.voice)


@dataclass(frozen=True)
class Climb:
    """The translators, measured, and where those with attention look as they translate one sentence."""

    rungs: Sequence[TranslatorRung]
    german: str = ""
    english: str = ""
    heatmaps: Sequence[Heatmap] = ()


def _language_models(bench: Bench, texts: Texts, names: Sequence[str]) -> list[Rung]:
    from dragoman.models.loading import load_language_model

    workshop = Workshop(bench.place, bench.ground(texts.train, texts.dev), RUNGS, load_language_model)
    return list(_measured(workshop.rungs(name for name in names if name in RUNGS), texts, bench))


def _measured(made: Iterator[Made[LanguageModel]], texts: Texts, bench: Bench) -> Iterator[Rung]:
    """Each rung against the floor and the contrasts."""
    from dragoman.evaluation.floor import measured
    from dragoman.lab.minimal_pairs import contrasts
    from dragoman.report.contrasts import measure
    from dragoman.report.ladder import Rung

    found = contrasts("en", CONTRASTS, bench.seed)
    for one in made:
        with bench.voice.working(f"measuring {one.name}"):
            result = measured(one.model, texts.test, texts.truth)
            accuracies = measure({one.name: one.model}, found)[one.name]
        bench.voice.say(f"{one.name}: perplexity {result.likelihood.perplexity:,.2f}")
        yield Rung(one.name, result, accuracies, one.seconds, megabytes(one.path))


def _translators(bench: Bench, names: Sequence[str]) -> Climb:
    from dragoman.models.loading import load_translator
    from dragoman.report.translators import example_of

    wanted = [name for name in names if name in TRANSLATORS]
    if not wanted:
        return Climb([])
    corpus = bench.output / "lab"
    train, dev, test = (read_bitext(corpus, part) for part in ("train", "dev", "test"))
    answers = read_answers(corpus)
    ground = bench.ground(train.first(PAIRS), dev)
    workshop: Workshop[Bitext, Translator] = Workshop(bench.place, ground, TRANSLATORS, load_translator)
    number = example_of(test.german, answers.gold)
    rungs, heatmaps = [], []
    for made in workshop.rungs(wanted):
        lines = test.sources(made.model.source.format)
        rungs.append(measured_translator(made, lines, answers, bench.voice))
        if rungs[-1].measured.alignment is not None:
            heatmaps.append(looked_at(made.name, made.model, test.german[number], lines[number]))
    return Climb(rungs, test.german[number], test.english[number], heatmaps)


# -- telling ---------------------------------------------------------------------------------------------------------


def _write(output: Path, rungs: Sequence[Rung], climb: Climb, settings: dict[str, Any]) -> Told:
    """What there is to tell, written into the directory."""
    halves = []
    if rungs:
        halves.append(_told_of_language_models(output, rungs, settings))
    if climb.rungs:
        halves.append(_told_of_translators(output, climb, settings))
    told = Told(
        "\n\n".join(half.text for half in halves),
        "\n".join(half.markdown for half in halves),
        [section for half in halves for section in half.sections],
        {**settings, **{name: value for half in halves for name, value in half.values.items()}},
        [name for half in halves for name in half.drawn],
    )
    write(output, "The ladder", told)
    return told


def _told_of_language_models(output: Path, rungs: Sequence[Rung], settings: dict[str, Any]) -> Told:
    from dragoman.report.ladder import distances_text, ladder_dict, ladder_markdown, ladder_section, ladder_text
    from dragoman.report.ladder_figure import draw_ladder

    perplexities = {rung.name: rung.measured.likelihood.perplexity for rung in rungs}
    title = f"Models after {settings['pairs']:,} sentences of the laboratory's English"
    picture = output / "ladder.svg"
    draw_ladder(perplexities, rungs[0].floor.perplexity.value, {r.name: r.shares for r in rungs}, picture, title=title)
    drawn = [picture.name, *_draw_distances(output / "distances.svg", rungs)]
    return Told(
        "\n\n".join(filter(None, (ladder_text(rungs), distances_text(rungs)))),
        ladder_markdown(rungs),
        [_illustrated(ladder_section(rungs), output, drawn)],
        ladder_dict(rungs, {}),
        drawn,
    )


def _told_of_translators(output: Path, climb: Climb, settings: dict[str, Any]) -> Told:
    from dragoman.report.demo import as_text
    from dragoman.report.page import Page, to_markdown
    from dragoman.report.translators import attention_section, lengths_section, scores_section, translators_dict

    scores, lengths = scores_section(climb.rungs), lengths_section(climb.rungs)
    drawn = _draw_translators(output, climb.rungs, min(PAIRS, settings["pairs"]))
    looked = [attention_section(climb.german, climb.english, climb.heatmaps)] if climb.heatmaps else []
    return Told(
        f"\n{as_text(scores)}\n\n{as_text(lengths)}",
        to_markdown(Page("Translators of the ladder", [scores, lengths])),
        [_illustrated(scores, output, drawn[:1]), _illustrated(lengths, output, drawn[1:]), *looked],
        {"translators": translators_dict(climb.rungs)},
        drawn,
    )


def _illustrated(section: Section, output: Path, drawn: Sequence[str]) -> Section:
    """A section with pictures at its end."""
    return replace(section, parts=[*section.parts, *(_picture(output / name) for name in drawn)])


def _picture(path: Path) -> Picture:
    from dragoman.report.page import Picture

    return Picture(path.read_text(encoding="utf-8"), CAPTIONS[path.name])


def _draw_translators(output: Path, rungs: Sequence[TranslatorRung], pairs: int) -> list[str]:
    """Perplexity and BLEU of all, and BLEU by length of some."""
    from dragoman.report.curves import bleu_by_length
    from dragoman.report.ladder_figure import draw_ladder
    from dragoman.report.translators import bleu_as_shares, bleu_of_classes, floor_of, length_classes

    perplexities = {rung.name: rung.measured.perplexity for rung in rungs}
    title = f"Translators after {pairs:,} pairs of the laboratory's German and English"
    note, floor = "BLEU by words of the German sentence", floor_of(rungs).value
    ladder, lengths = output / "translators.svg", output / "lengths.svg"
    draw_ladder(perplexities, floor, bleu_as_shares(rungs), ladder, title=title, note=note)
    told = rungs if len(rungs) <= MOST else [rung for rung in rungs if rung.name in BY_LENGTH]
    bleu_by_length(length_classes(told), bleu_of_classes(told), lengths, title="BLEU by sentence length")
    return [ladder.name, lengths.name]


def _draw_distances(picture: Path, rungs: Sequence[Rung]) -> list[str]:
    """The name of the picture of accuracy by distance, if there are contrasts enough to draw one."""
    from dragoman.report.figures import accuracy_by_distance
    from dragoman.report.ladder import distance_shares

    told = [rung for rung in rungs if rung.name in BY_DISTANCE] or rungs[-MOST:]
    shares = distance_shares(told)
    if not shares:
        return []
    title = "Right, by the words between what decides and what is decided"
    accuracy_by_distance(shares, picture, title=title)
    return [picture.name]
