"""Settings and texts that the tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

from command import good, run, shared
from dragoman import Corpus
from zoo import HELD_OUT, LANGUAGE, TRAINING

__all__ = ["good", "run", "shared"]  # fixtures of the command line

# The same examples in every run, and no stop-watch: the first example may compile a kernel.
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def training() -> Corpus:
    """The zoo's training text."""
    return Corpus.from_sentences(TRAINING, LANGUAGE)


@pytest.fixture(scope="session")
def held_out() -> Corpus:
    """Text the zoo's models have not seen: new sentences, unknown words, a literal `<unk>`, an empty line."""
    return Corpus.from_sentences(HELD_OUT, LANGUAGE)
