"""Settings and texts that the tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

# Before anything imports torch or NumPy's libraries: two workers with two threads each would be in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from command import good, run, shared
from dragoman import Corpus
from zoo import HELD_OUT, LANGUAGE, TRAINING

__all__ = ["good", "run", "shared"]  # fixtures of the command line

collect_ignore = [] if find_spec("schemathesis") else ["torture/schemathesis_hooks.py"]  # is imported by schemathesis

# The same examples in every run, and no stop-watch: the first example may compile a kernel.
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Let two workers begin with different files: by size, the two that use every model would come first, and both
    workers would compile the same kernels at the same time, each for itself."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """Do not wait until files are on the disk; a separate test checks the order of flushes and renames."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def training() -> Corpus:
    """The zoo's training text."""
    return Corpus.from_sentences(TRAINING, LANGUAGE)


@pytest.fixture(scope="session")
def held_out() -> Corpus:
    """Text the zoo's models have not seen: new sentences, unknown words, a literal `<unk>`, an empty line."""
    return Corpus.from_sentences(HELD_OUT, LANGUAGE)
