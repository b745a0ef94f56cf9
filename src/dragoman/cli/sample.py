"""dragoman sample"""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli import options


def sample(
    model: options.Model,
    n: Annotated[int, typer.Option("-n", min=1, help="How many sentences.")] = 10,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed draws the same sentences.")] = 1,
    temperature: Annotated[
        float, typer.Option("--temperature", help="Below 1: more of the probable; above 1: more of the rare.")
    ] = 1.0,
    max_words: Annotated[int, typer.Option("--max-words", min=1, help="Where a sentence is cut off.")] = 200,
) -> None:
    """Draw sentences from a model, word by word.

    \b
    Example:
      dragoman sample kn5 -n 3 --seed 7
    """
    from dragoman.loading import load

    for sentence in load(model).sample(n, seed, temperature=temperature, max_words=max_words):
        print(sentence)
