"""dragoman next, dragoman sample, dragoman explain"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

from dragoman.cli.option_groups import option
from dragoman.cli.options import Json, Model, Prefix, check_utf8_argument
from dragoman.core.errors import DataError

BAR_WIDTH = 40  # columns of a bar for probability 1


def next_words(
    model: Model,
    prefix: Prefix = "",
    k: Annotated[int, option("-k N", "Number of words.", min=1)] = 10,
    tokens: Annotated[
        bool, option("--tokens", "Print the tokens of the model, such as subwords, with their exact probabilities.")
    ] = False,
) -> None:
    """Print the most probable next words after a prefix.

    </s> is the end of the sentence. <unk>, all unknown words together, is left out; --tokens shows it. A model of
    subwords or characters completes them to words; a word that begins with … continues the last word of the prefix.

    \b
    Example:
      dragoman next kn5 "the cat"
    """
    from dragoman.models.loading import load_language_model
    from dragoman.report.tables import format_table

    check_utf8_argument(prefix)
    loaded = load_language_model(model)
    words = loaded.next_tokens(prefix, k) if tokens else loaded.next_words(prefix, k, show_unknown=False)
    if sys.stdout.isatty():
        rows = [(word, f"{prob:.6f}", "█" * round(BAR_WIDTH * prob)) for word, prob in words]
        print(format_table(["word", "probability", ""], rows))
    else:
        print("\n".join(f"{word}\t{prob:.6g}" for word, prob in words))


def sample(
    model: Model,
    n: Annotated[int, option("-n N", "Number of sentences.", min=1)] = 10,
    seed: Annotated[int, option("--seed N", "Random seed.", min=0)] = 1,
    prefix: Annotated[str, option("--prefix TEXT", "Beginning of each sentence.")] = "",
    temperature: Annotated[
        float, option("--temperature X", "Below 1, probable words are preferred; above 1, rare ones.")
    ] = 1.0,
    top_k: Annotated[int | None, option("--top-k N", "Sample from the N most probable next words only.")] = None,
    top_p: Annotated[
        float,
        option("--top-p P", "Sample from the nucleus only: the smallest set of next words with total probability P."),
    ] = 1.0,
    max_words: Annotated[
        int, option("--max-words N", "Maximum number of words in a sentence, including the prefix.", min=1)
    ] = 200,
    show_unknown: Annotated[
        bool,
        option(
            "--show-unknown",
            "Print <unk> for an unknown word. By default it is spelled by the model of unknown words (--unknown "
            "characters in training), or another word is sampled.",
        ),
    ] = False,
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
        n,
        seed,
        prefix=prefix,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        max_words=max_words,
        show_unknown=show_unknown,
    )
    for sentence in sentences:
        print(sentence, flush=True)


def explain(
    model: Model,
    prefix: Prefix = "",
    k: Annotated[int, option("-k N", "Number of the most probable next words.", min=0)] = 5,
    words: Annotated[str, option("--words W,W,...", "Other next words to explain.")] = "",
    as_json: Json = False,
) -> None:
    """Show how features contribute to the next word's probability.

    The score of a word is the sum of its column, and the softmax of the scores gives probabilities. A dash means that
    the feature has no weight for the word. For log-linear models.

    \b
    Example:
      dragoman explain maxent "farmers eat" --words hay,grass
    """
    from dragoman.models.loading import load_language_model
    from dragoman.models.loglinear.model import LogLinearModel
    from dragoman.report.language_models import format_explanation

    loaded = load_language_model(model)
    if not isinstance(loaded, LogLinearModel):
        remedy = "give a log-linear model (dragoman train log-linear)"
        raise DataError(f"{model}: a {loaded.kind} model has no features to explain; {remedy}")
    explanation = loaded.explain(prefix, words=[word for word in words.split(",") if word], k=k)
    print(json.dumps(asdict(explanation), ensure_ascii=False) if as_json else format_explanation(explanation))
