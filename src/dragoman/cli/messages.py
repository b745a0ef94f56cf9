"""Messages for the user on standard error; standard output is for results."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.core.errors import DataError, shell_command

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.data.text_chunks import StoredCorpus


def info(message: str) -> None:
    """Print a line on standard error."""
    print(message, file=sys.stderr)


def warn(message: str) -> None:
    """Print a warning on standard error."""
    info(f"warning: {message}")


def status(message: str) -> AbstractContextManager[object]:
    """Show a spinner during a `with` block, if standard error is a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(message)


def suggest_command(*words: str | Path, field: str | None = None, line: str | None = None) -> None:
    """Suggest the next command, ready to be pasted into a shell; `field` is its --field, `line` its standard input."""
    is_elsewhere = sys.argv[0].endswith("dragoman") and not shutil.which("dragoman")
    program = os.path.relpath(sys.argv[0]) if is_elsewhere else "dragoman"
    options = [] if field is None else ["--field", field]
    info(f"next: {shell_command([program, *map(str, words), *options], line)}")


def warn_if_mostly_unknown(corpus: Corpus | StoredCorpus, source: str) -> None:
    """Warn if a model does not know most tokens of a text."""
    from dragoman.data.segmenters import token_name

    unknown = corpus.num_unknown
    if 2 * unknown > corpus.num_words:
        problem = f"{unknown:,} of {corpus.num_words:,} {token_name(corpus.vocab.segmenter)}s are unknown"
        warn(f"{source}: {problem}; wrong column, language or tokenisation?")


def warn_if_unfinished(paths: Iterable[Path]) -> None:
    """Warn of models whose training was interrupted, or is still running."""
    from dragoman.io.storage import CHECKPOINT_FILE

    for checkpoint in (path / CHECKPOINT_FILE for path in paths if (path / CHECKPOINT_FILE).is_file()):
        from dragoman.training.run_directory import read_progress  # imports torch, which n-gram models do not need

        path = checkpoint.parent
        with suppress(DataError):  # a damaged checkpoint does not concern a model that is only used
            if not read_progress(checkpoint).stop_reason:
                remedy = "if it is not running, run its training command again to finish it"
                warn(f"{path}: the training of this model is not finished; {remedy}")


@contextmanager
def grouped_warnings() -> Iterator[None]:
    """Print warnings that several orders of n-grams share only once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in group_messages(str(warning.message) for warning in caught):
        warn(message)


def group_messages(messages: Iterable[str]) -> list[str]:
    """Merge consecutive messages `order N: problem` with the same problem.

    >>> group_messages(["order 1: odd", "order 3: too few", "order 4: too few", "order 5: too few"])
    ['order 1: odd', 'orders 3 to 5: too few']
    """
    result = []
    for problem, group in groupby(messages, key=lambda message: message.partition(": ")[2]):
        first, *others = (message.partition(": ")[0] for message in group)
        if others and first.startswith("order "):
            first = f"orders {first.removeprefix('order ')} to {others[-1].removeprefix('order ')}"
        result.append(f"{first}: {problem}" if problem else first)
    return result
