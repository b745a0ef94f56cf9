"""dragoman ladder"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import say, suggest, working
from dragoman.cli.rungs import RUNGS
from dragoman.cli.translator_rungs import PAIRS, TRANSLATORS, looked_at, measured_rung
from dragoman.cli.workplace import Bitext, Texts, claim, read_answers, read_bitext, read_texts, write_corpus
from dragoman.cli.workshop import Ground, Made, Workshop, chosen, megabytes
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.evaluation.conditional import Answers
    from dragoman.language_model import LanguageModel
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
REPORT = "report.html"
CAPTIONS = {
    "ladder.svg": "Perplexity of each model against the floor, and how often it is right",
    "distances.svg": "Accuracy by distance",
    "translators.svg": "Perplexity of each translator against the floor, and BLEU by sentence length",
    "lengths.svg": "BLEU by words of the German sentence",
}
SETTINGS = "settings.yaml"  # what a ladder was begun with


def ladder(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where texts, models, table and picture go.")
    ] = Path("runs/ladder"),
    pairs: Annotated[int, typer.Option("--pairs", min=1, metavar="N", help="Sentence pairs to train on.")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", help="Of the texts and of all models.")] = 1,
    models: Annotated[
        str, typer.Option("--models", metavar="NAME,...", help="These rungs alone.", show_default=False)
    ] = "",
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes", metavar="N", help="Most minutes that each model is trained by gradients.", show_default=False
        ),
    ] = None,
) -> None:
    """Compare every kind of model on text whose truth is known.

    Counts, classes, caches, features, networks and mixtures of them are trained on the laboratory's English (see
    dragoman lab), and held to the exact floor of perplexity and to contrasts: which of two sentences is right? Then
    translators from German, with every encoder and every attention, are held to the floor, to references and to the
    true alignment. Tables and pictures are the result. If it is stopped, the same command goes on where it was.

    \b
    Example:
      dragoman ladder
      dragoman ladder --models kn-5,feed-forward,attn-mlp --pairs 5000 -o small
    """
    names = chosen(models, [*RUNGS, *TRANSLATORS])
    _check_minutes(minutes)
    claim(output, "ladder", "goes on with them when it runs again")
    settings = {"pairs": pairs, "seed": seed, "minutes": minutes}
    _keep_to(output / SETTINGS, settings)
    with working("drawing sentences from the laboratory's grammar"):
        texts = _texts(output / "lab", pairs, seed)
    train = texts.train
    say(f"{output}: {train.sentences:,} sentences to train on, {train.words:,} words, {train.vocab.known - 1:,} types")
    place = output / "rungs"
    rungs = _language_models(place, texts, names, seed, minutes)
    climb = _translators(output, names, seed, minutes)
    _write(output, rungs, climb, settings)
    _suggest(output, rungs, climb.rungs)


def _check_minutes(minutes: float | None) -> None:
    """The networks' training would refuse them too, but only once half the ladder is made."""
    from dragoman.settings import Given, validated
    from dragoman.training.config import TrainingConfig

    validated(TrainingConfig, {"minutes": Given(minutes, "--minutes")}, "command line")


def _keep_to(path: Path, settings: dict[str, Any]) -> None:
    """Note what a ladder is begun with; refuse to go on with anything else, as its rungs would not compare."""
    import yaml

    from dragoman.lab.place import VERSION
    from dragoman.settings import differences
    from dragoman.storage import new_file

    settings = {**settings, "grammar": VERSION}
    if path.exists() and (changes := differences(_begun_with(path), settings)):
        remedy = "repeat what it was begun with, or give another directory with -o"
        raise DataError(f"{path.parent}: holds another ladder ({'; '.join(changes)}); {remedy}")
    with new_file(path) as temporary:
        temporary.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


def _begun_with(path: Path) -> dict[str, Any]:
    """What a ladder noted when it was begun."""
    import yaml

    try:
        there = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, OSError, RecursionError):  # a ValueError: no UTF-8, or no such date
        there = None
    if not isinstance(there, dict):
        remedy = "delete the directory to begin anew, or give another with -o"
        raise DataError(f"{path}: damaged, so nobody knows what the ladder was begun with; {remedy}")
    return there


def _texts(corpus: Path, pairs: int, seed: int) -> Texts:
    """The laboratory's corpus, drawn if it is not there; it is written whole, so one that is there is complete."""
    if not corpus.exists():
        write_corpus(corpus, {"train": pairs, "dev": DEV, "test": TEST}, seed)
    return read_texts(corpus)


# -- making and measuring --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Climb:
    """The translators, measured, and where those with attention look as they translate one sentence."""

    rungs: Sequence[TranslatorRung]
    german: str = ""
    english: str = ""
    heatmaps: Sequence[Heatmap] = ()


def _language_models(place: Path, texts: Texts, names: Sequence[str], seed: int, minutes: float | None) -> list[Rung]:
    from dragoman.loading import load_language_model

    ground = Ground(texts.train, texts.dev, seed, minutes, place)
    workshop = Workshop(place, ground, RUNGS, load_language_model)
    return list(_measured(workshop.rungs(name for name in names if name in RUNGS), texts, seed))


def _measured(made: Iterator[Made[LanguageModel]], texts: Texts, seed: int) -> Iterator[Rung]:
    """Each rung against the floor and the contrasts."""
    from dragoman.evaluation.floor import measured
    from dragoman.lab.contrasts import contrasts
    from dragoman.report.contrasts import measure
    from dragoman.report.ladder import Rung

    found = contrasts("en", CONTRASTS, seed)
    for one in made:
        with working(f"measuring {one.name}"):
            result = measured(one.model, texts.test, texts.truth)
            accuracies = measure({one.name: one.model}, found)[one.name]
        say(f"{one.name}: perplexity {result.likelihood.perplexity:,.2f}")
        yield Rung(one.name, result, accuracies, one.seconds, megabytes(one.path))


def _translators(output: Path, names: Sequence[str], seed: int, minutes: float | None) -> Climb:
    from dragoman.loading import load_translator
    from dragoman.report.translators import example_of

    wanted = [name for name in names if name in TRANSLATORS]
    if not wanted:
        return Climb([])
    corpus, place = output / "lab", output / "rungs"
    train, dev, test = (read_bitext(corpus, part) for part in ("train", "dev", "test"))
    answers = read_answers(corpus)
    ground = Ground(train.first(PAIRS), dev, seed, minutes, place)
    workshop: Workshop[Bitext, Translator] = Workshop(place, ground, TRANSLATORS, load_translator)
    number = example_of(test.german, answers.gold)
    rungs, heatmaps = [], []
    for made in workshop.rungs(wanted):
        rungs.append(_measured_translator(made, test, answers))
        if rungs[-1].measured.alignment is not None:
            line = test.sources(made.model.source.format)[number]
            heatmaps.append(looked_at(made.name, made.model, test.german[number], line))
    return Climb(rungs, test.german[number], test.english[number], heatmaps)


def _measured_translator(made: Made[Translator], test: Bitext, answers: Answers) -> TranslatorRung:
    """A translator against the floor, the references and the true alignment."""
    lines = test.sources(made.model.source.format)
    with working(f"measuring {made.name}"):
        rung = measured_rung(made.name, made.model, lines, answers, made.seconds)
    say(f"{made.name}: perplexity {rung.measured.perplexity:,.2f}, BLEU {rung.measured.judged.bleu:.1f}")
    return rung


# -- telling ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """One half of the ladder: as text, as Markdown, as sections of a page, as plain values; and what was drawn."""

    text: str
    markdown: str
    sections: Sequence[Section]
    values: dict[str, Any]
    drawn: Sequence[str]


def _write(output: Path, rungs: Sequence[Rung], climb: Climb, settings: dict[str, Any]) -> None:
    """The tables on standard output and, as Markdown, as plain values, as pictures and as a page, in the directory."""
    from dragoman.report.page import Page, write_html
    from dragoman.storage import new_file

    halves = []
    if rungs:
        halves.append(_told_of_language_models(output, rungs, settings))
    if climb.rungs:
        halves.append(_told_of_translators(output, climb, settings))
    print("\n\n".join(half.text for half in halves))
    values = {**settings, **{name: value for half in halves for name, value in half.values.items()}}
    written = {"ladder.md": "\n".join(half.markdown for half in halves), "ladder.json": json.dumps(values, indent=1)}
    for name, text in written.items():
        with new_file(output / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    write_html(Page("The ladder", [section for half in halves for section in half.sections]), output / REPORT)
    drawn = [name for half in halves for name in half.drawn]
    say(f"\n{output}: {', '.join([*written, REPORT, *drawn])}")


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
    from dragoman.report.page import Page, to_markdown
    from dragoman.report.story import as_text
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


def _suggest(output: Path, rungs: Sequence[Rung], translators: Sequence[TranslatorRung]) -> None:
    """What to try with the best model of either kind."""
    test = output / "lab" / "test"
    if rungs:
        path = output / "rungs" / min(rungs, key=lambda rung: rung.measured.likelihood.perplexity).name
        suggest("contrast", path)
        suggest("evaluate", path, "--text", f"{test}.en")
        suggest("next", path, "the farmers")
    if translators:
        from dragoman.models.translator_config import TREES

        best = max(translators, key=lambda rung: rung.measured.judged.bleu).name
        german = f"{test}.de.trees" if best.endswith(TREES) else f"{test}.de"
        suggest("evaluate", output / "rungs" / best, "--src", german, "--ref", f"{test}.en")
