"""The floor of laboratory text, for every verb that reports a perplexity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.cli.messages import say, working
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.evaluation.floor import Truth
    from dragoman.text.corpus import Corpus


def known_truth(language: str, corpus: Corpus, text: str) -> Truth | None:
    """The truth about laboratory text; None, with a warning, if the text has been changed since it was written."""
    with working("asking the laboratory for the floor"):
        from dragoman.report.floor import truth_of

        try:
            return truth_of(language, corpus, text)
        except DataError as error:
            say(f"warning: no floor: {error}")
            return None
