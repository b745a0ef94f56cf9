"""dragoman sample"""

from __future__ import annotations

from typing import Annotated

from dragoman.cli.option_groups import option
from dragoman.cli.options import Model, check_utf8_argument


def sample(
    model: Model,
    n: Annotated[int, option("-n", "Number of sentences.", min=1)] = 10,
    seed: Annotated[int, option("--seed", "Random seed.", min=0)] = 1,
    prefix: Annotated[str, option("--prefix TEXT", "Beginning of each sentence.")] = "",
    temperature: Annotated[
        float, option("--temperature", "Below 1, probable words are preferred; above 1, rare ones.")
    ] = 1.0,
    top_k: Annotated[int | None, option("--top-k N", "Sample from the N most probable next words only.")] = None,
    top_p: Annotated[
        float,
        option("--top-p P", "Sample from the nucleus only: the smallest set of next words with total probability P."),
    ] = 1.0,
    max_words: Annotated[
        int, option("--max-words", "Maximum number of words in a sentence, including the prefix.", min=1)
    ] = 200,
) -> None:
    """Sample sentences from a language model.

    Samples from the unchanged distribution often contain improbable words, because there are so many of them. --top-k
    40 or --top-p 0.9 excludes them, and --temperature 0.7 makes them rarer. Temperature is applied first, then --top-k,
    then --top-p. With --top-k 1, each next word is the most probable one.

    \b
    Example:
      dragoman sample kn5 -n 3 --seed 7
      dragoman sample kn5 --prefix "the cat" --temperature 0.8 --top-p 0.9
    """
    from dragoman.models.loading import load_language_model

    check_utf8_argument(prefix)
    sentences = load_language_model(model).iter_samples(
        n, seed, prefix=prefix, temperature=temperature, top_k=top_k, top_p=top_p, max_words=max_words
    )
    for sentence in sentences:
        print(sentence, flush=True)
