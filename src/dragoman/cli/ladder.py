"""dragoman ladder"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import say, suggest, working
from dragoman.cli.rungs import Ground, Made, Workshop, chosen, megabytes
from dragoman.cli.workplace import Texts, claim, read_texts, write_corpus
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.report.ladder import Rung

DEV, TEST = 1000, 2000  # sentence pairs
CONTRASTS = 300  # for each phenomenon and class of distance
BY_DISTANCE = ("kn-2", "kn-5", "feed-forward", "rnn", "gru", "lstm")  # rungs in the picture of distances
MOST = 9  # lines in it, if none of these is there
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
    dragoman lab), and held to the exact floor of perplexity and to contrasts: which of two sentences is right? One
    table and its picture are the result. If it is stopped, the same command goes on where it was.

    \b
    Example:
      dragoman ladder
      dragoman ladder --models kn-5,feed-forward --pairs 5000 -o small
    """
    names = chosen(models)
    _check_minutes(minutes)
    claim(output, "ladder", "goes on with them when it runs again")
    settings = {"pairs": pairs, "seed": seed, "minutes": minutes}
    _keep_to(output / SETTINGS, settings)
    with working("drawing sentences from the laboratory's grammar"):
        texts = _texts(output / "lab", pairs, seed)
    train = texts.train
    say(f"{output}: {train.sentences:,} sentences to train on, {train.words:,} words, {train.vocab.known - 1:,} types")
    place = output / "rungs"
    workshop = Workshop(place, Ground(train, texts.dev, seed, minutes, place))
    rungs = list(_measured(workshop.rungs(names), texts, seed))
    _write(output, rungs, settings)
    _suggest(output, rungs)


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


def _measured(made: Iterator[Made], texts: Texts, seed: int) -> Iterator[Rung]:
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


def _write(output: Path, rungs: Sequence[Rung], settings: dict[str, Any]) -> None:
    """The table on standard output and, as Markdown, as plain values and as a picture, in the directory."""
    from dragoman.report.ladder import distances_text, ladder_dict, ladder_markdown, ladder_text
    from dragoman.report.ladder_figure import draw_ladder
    from dragoman.storage import new_file

    print("\n\n".join(filter(None, (ladder_text(rungs), distances_text(rungs)))))
    written = {"ladder.md": ladder_markdown(rungs), "ladder.json": json.dumps(ladder_dict(rungs, settings), indent=1)}
    for name, text in written.items():
        with new_file(output / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    perplexities = {rung.name: rung.measured.likelihood.perplexity for rung in rungs}
    title = f"Models after {settings['pairs']:,} sentences of the laboratory's English"
    picture = output / "ladder.svg"
    draw_ladder(perplexities, rungs[0].floor.perplexity.value, {r.name: r.shares for r in rungs}, picture, title=title)
    drawn = [picture.name, *_draw_distances(output / "distances.svg", rungs)]
    say(f"\n{output}: ladder.md, ladder.json, {', '.join(drawn)}")


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


def _suggest(output: Path, rungs: Sequence[Rung]) -> None:
    """What to try with the best model."""
    best = min(rungs, key=lambda rung: rung.measured.likelihood.perplexity)
    path = output / "rungs" / best.name
    suggest("contrast", path)
    suggest("evaluate", path, "--text", output / "lab" / "test.en")
    suggest("next", path, "the farmers")
