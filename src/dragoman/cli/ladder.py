"""dragoman ladder"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import say, suggest
from dragoman.cli.watching import aloud

if TYPE_CHECKING:
    from dragoman.report.ladder import Rung
    from dragoman.report.translators import TranslatorRung


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
    from dragoman.lab.place import VERSION
    from dragoman.ladder.laboratory import climb_laboratory
    from dragoman.ladder.rungs import RUNGS
    from dragoman.ladder.translator_rungs import TRANSLATORS
    from dragoman.ladder.workplace import claim, keep_to
    from dragoman.ladder.workshop import chosen

    names = chosen(models, [*RUNGS, *TRANSLATORS])
    _check_minutes(minutes)
    claim(output, "ladder", "goes on with them when it runs again")
    settings: dict[str, Any] = {"pairs": pairs, "seed": seed, "minutes": minutes}
    keep_to(output, {**settings, "grammar": VERSION})
    rungs, climb, told = climb_laboratory(output, names, settings, aloud())
    print(told.text)
    say(f"\n{output}: {', '.join(told.files)}")
    _suggest(output, rungs, climb.rungs)


def _check_minutes(minutes: float | None) -> None:
    """The networks' training would refuse them too, but only once half the ladder is made."""
    from dragoman.settings import Given, validated
    from dragoman.training.config import TrainingConfig

    validated(TrainingConfig, {"minutes": Given(minutes, "--minutes")}, "command line")


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
