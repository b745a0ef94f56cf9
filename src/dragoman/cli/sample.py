"""dragoman sample"""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.cli.next import check_utf8_argument


def sample(
    model: options.Model,
    n: Annotated[int, typer.Option("-n", min=1, help="How many sentences.")] = 10,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed draws the same sentences.")] = 1,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", help="How each sentence begins.", show_default=False)
    ] = "",
    temperature: Annotated[
        float, typer.Option("--temperature", help="Below 1: more of the probable; above 1: more of the rare.")
    ] = 1.0,
    top_k: Annotated[
        int | None,
        typer.Option(
            "--top-k", metavar="N", help="Draw from the N most probable next words alone.", show_default=False
        ),
    ] = None,
    top_p: Annotated[
        float,
        typer.Option(
            "--top-p",
            metavar="P",
            help="Draw from the nucleus alone: the fewest next words that together have probability P.",
        ),
    ] = 1.0,
    max_words: Annotated[
        int, typer.Option("--max-words", min=1, help="Where a sentence is cut off; the prefix counts.")
    ] = 200,
) -> None:
    """Sample sentences from a language model.

    As they are, the model's probabilities give its whole range, blunders too: there are so many improbable words that
    one of them comes up often. --top-k 40 or --top-p 0.9 cuts them off, --temperature 0.7 makes them rarer. Given
    several, temperature comes first, then --top-k, then --top-p of what is left. --top-k 1 is the most probable next
    word every time.

    \b
    Example:
      dragoman sample kn5 -n 3 --seed 7
      dragoman sample kn5 --prefix "the cat" --temperature 0.8 --top-p 0.9
    """
    from dragoman.models.loading import load_language_model

    check_utf8_argument(prefix)
    drawn = load_language_model(model).iter_samples(
        n, seed, prefix=prefix, temperature=temperature, top_k=top_k, top_p=top_p, max_words=max_words
    )
    for sentence in drawn:
        print(sentence, flush=True)
