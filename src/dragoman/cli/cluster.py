"""dragoman cluster"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.export import check_file_free
from dragoman.cli.messages import info, status, suggest_command
from dragoman.cli.training import VocabOptions
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.brown import BrownClustering, ProgressCallback
    from dragoman.data.corpus import Corpus

SHOWN, WORDS_SHOWN = 12, 8  # classes, and words of each
BROWN = "brown:"  # how --classes asks for a clustering instead of a file


def cluster(
    text: options.Text,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.", show_default=False)
    ],
    classes: Annotated[
        int | None,
        typer.Option("--classes", "-n", metavar="N", help="How many classes. Default: 200.", show_default=False),
    ] = None,
    passes: Annotated[
        int | None,
        typer.Option(
            "--passes",
            min=0,
            metavar="N",
            help="How often, at most, each word may move to a better class. Default: 10.",
            show_default=False,
        ),
    ] = None,
    field: options.Field = None,
    vocab: options.VocabFrom = None,
    min_count: options.MinCount = 1,
    max_size: options.MaxSize = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")] = False,
) -> None:
    """Find classes of words by Brown clustering.

    Brown clustering: words start as classes of their own, and those are merged which lose the least of what a class
    says about the next one. Then every word may move to a class where it fits better. No dictionary is needed: names of
    days, months or towns find each other by the company they keep. More classes are finer; 50 to 1000 are usual.

    Writes `bits TAB word TAB count` a line. The bits say where in the tree of merges a word is, so that their first
    few are a coarser class. Prints a dozen of the classes, with their most frequent words.

    \b
    Example:
      dragoman cluster --text train.txt -n 200 -o classes.tsv
      dragoman train class-ngram --text train.txt --classes classes.tsv -o class5
    or, in one:
      dragoman train class-ngram --text train.txt --classes brown:200 -o class5
    """
    from dragoman.io.storage import atomic_file

    began = perf_counter()
    check_file_free(output, replace=force)
    words = VocabOptions(vocab, min_count, max_size, replace_singletons=False)
    clustering = cluster_with_progress(_read(text, field, words), classes, passes)
    with atomic_file(output) as place:
        place.write_text(clustering.to_text(), encoding="utf-8", newline="\n")
    print(_shown(clustering))
    size = f"{len(clustering.as_mapping()):,} words in {clustering.num_classes:,} classes"
    info(f"{output}: {size}; {perf_counter() - began:.1f} seconds")
    info(f"average mutual information of adjacent classes: {clustering.mutual_information:.4f} nats")
    same = [*options.field_arguments(field), *(["--vocab", str(vocab)] if vocab is not None else [])]
    suggest_command("train", "class-ngram", "--text", text, *same, "--classes", output, "-o", "DIR")


def _read(text: str, field: str | None, words: VocabOptions) -> Corpus:
    """The text to cluster, which must have words."""
    from dragoman.data.formats import display_name
    from dragoman.models.loading import load_language_model

    with status("reading"):
        lender = load_language_model(words.vocab_from) if words.vocab_from is not None else None
        corpus = words.read(text, options.field_for(text, field), lender)
    if not corpus.num_words:
        raise DataError(f"{display_name(text)}: the text has no words")
    return corpus


def cluster_with_progress(corpus: Corpus, classes: int | None, passes: int | None = None) -> BrownClustering:
    """Brown clusters, with a sign of life on a terminal; what is not said is as the library has it."""
    from dragoman.data.brown import brown_clusters

    said = {name: value for name, value in (("classes", classes), ("passes", passes)) if value is not None}
    with _bar() as progress:
        return brown_clusters(corpus, **said, progress=progress)


def parse_class_count(choice: str) -> int | None:
    """How many classes `brown:N` asks for; nothing where a file is named."""
    if not choice.startswith(BROWN):
        return None
    number = choice.removeprefix(BROWN)
    if not number.isdecimal() or len(number) > 9:
        raise DataError(f"--classes {choice}: say how many classes, such as {BROWN}200")
    return int(number)


@contextmanager
def _bar() -> Iterator[ProgressCallback | None]:
    """A bar for each step; only on a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, int] = {}

        def show(doing: str, done: int, of: int) -> None:
            if doing not in tasks:
                tasks[doing] = bars.add_task(doing, total=of)
            bars.update(tasks[doing], completed=done)  # type: ignore[arg-type]

        yield show


def _shown(clustering: BrownClustering) -> str:
    """The classes in which words share most of the text, in the order of the tree.

    A class is not chosen for its most frequent word: `the` and a few strays would tell nothing.
    """
    import numpy as np

    from dragoman.data.vocabulary import SPECIALS
    from dragoman.report.tables import format_table

    classes, counts = clustering.class_of, clustering.counts
    tokens, most = np.zeros(len(clustering.paths), np.int64), np.zeros(len(clustering.paths), np.int64)
    np.add.at(tokens, classes, counts)
    np.maximum.at(most, classes, counts)
    shared = (tokens - most)[len(SPECIALS) :]
    chosen = np.sort(np.argsort(-shared, kind="stable")[:SHOWN]) + len(SPECIALS)
    members = {clustering.paths[number]: clustering.members[number] for number in chosen}
    # The blank after the bits keeps them from being set as numbers.
    rows = [[f"{path} ", len(words), " ".join(words[:WORDS_SHOWN])] for path, words in members.items()]
    return format_table(["bits ", "words", "the most frequent"], rows)
