"""dragoman next"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dragoman.cli import options
from dragoman.core.errors import DataError

BAR = 40  # columns of a bar for probability 1


def next_words(
    model: options.Model,
    prefix: Annotated[str, typer.Argument(help="The sentence so far.", show_default=False)] = "",
    k: Annotated[int, typer.Option("-k", min=1, help="How many words.")] = 10,
) -> None:
    """Print the most probable next words after a prefix.

    </s>, the end, and <unk>, any unknown word, are among them.

    \b
    Example:
      dragoman next kn5 "the cat"
    """
    from dragoman.models.loading import load_language_model
    from dragoman.report.tables import format_table

    check_utf8_argument(prefix)
    words = load_language_model(model).next_words(prefix, k)
    if sys.stdout.isatty():
        print(format_table(["word", "probability", ""], [(w, f"{p:.6f}", "█" * round(BAR * p)) for w, p in words]))
    else:
        print("\n".join(f"{word}\t{prob:.6g}" for word, prob in words))


def check_utf8_argument(prefix: str, name: str = "prefix") -> None:
    """What the shell hands over may be any bytes."""
    try:
        prefix.encode()
    except UnicodeEncodeError:
        raise DataError(f"the {name} is not UTF-8; check the terminal's encoding") from None
