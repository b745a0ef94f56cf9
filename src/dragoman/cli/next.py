"""dragoman next"""

from __future__ import annotations

import sys
from typing import Annotated

from dragoman.cli.option_groups import option
from dragoman.cli.options import Model, Prefix, check_utf8_argument

BAR_WIDTH = 40  # columns of a bar for probability 1


def next_words(
    model: Model, prefix: Prefix = "", k: Annotated[int, option("-k", "Number of words.", min=1)] = 10
) -> None:
    """Print the most probable next words after a prefix.

    </s> is the end of the sentence, and <unk> any unknown word.

    \b
    Example:
      dragoman next kn5 "the cat"
    """
    from dragoman.models.loading import load_language_model
    from dragoman.report.tables import format_table

    check_utf8_argument(prefix)
    words = load_language_model(model).next_words(prefix, k)
    if sys.stdout.isatty():
        rows = [(word, f"{prob:.6f}", "█" * round(BAR_WIDTH * prob)) for word, prob in words]
        print(format_table(["word", "probability", ""], rows))
    else:
        print("\n".join(f"{word}\t{prob:.6g}" for word, prob in words))
