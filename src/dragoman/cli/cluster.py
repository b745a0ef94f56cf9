"""dragoman cluster"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import info, status, suggest_command
from dragoman.cli.option_groups import option, with_option_groups
from dragoman.cli.options import Field, ForceFile, Text, check_new_file
from dragoman.cli.progress import step_bars
from dragoman.cli.training import VocabOptions
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.brown import BrownClustering
    from dragoman.data.corpus import Corpus

BROWN_PREFIX = "brown:"  # of a value of --classes that is a number of classes instead of a file


@with_option_groups
def cluster(
    text: Text,
    output: Annotated[Path, option("--output, -o FILE", "The file to write.")],
    classes: Annotated[int | None, option("--classes, -n N", "Number of classes. Default: 200.")] = None,
    passes: Annotated[
        int | None,
        option("--passes N", "Maximum number of passes in which words move to better classes. Default: 10.", min=0),
    ] = None,
    field: Field = None,
    vocab: VocabOptions = VocabOptions(),
    force: ForceFile = False,
) -> None:
    """Find classes of words by Brown clustering.

    Each word starts in its own class, and the two classes are merged whose merge loses the least mutual information of
    adjacent classes. Then words move to classes that fit them better. Words in similar contexts, such as weekdays or
    towns, end up in one class. 50 to 1000 classes are usual.

    Writes lines `bits TAB word TAB count`. The bits are the path in the tree of merges, so that their prefixes are
    coarser classes. Prints a dozen classes with their most frequent words.

    \b
    Example:
      dragoman cluster --text train.txt -n 200 -o classes.tsv
      dragoman train class-ngram --text train.txt --classes classes.tsv -o class5
    or in one step:
      dragoman train class-ngram --text train.txt --classes brown:200 -o class5
    """
    from dragoman.data.formats import field_for
    from dragoman.io.files import write_text
    from dragoman.report.language_models import format_classes

    start_time = perf_counter()
    check_new_file(output, replace=force)
    with status("reading"):
        corpus = vocab.read(text, field_for(text, field), vocab.load_model())
    clustering = cluster_with_progress(corpus, classes, passes)
    write_text(output, clustering.to_text())
    print(format_classes(clustering))
    size = f"{len(clustering.as_mapping()):,} words in {clustering.num_classes:,} classes"
    info(f"{output}: {size}; {perf_counter() - start_time:.1f} seconds")
    info(f"average mutual information of adjacent classes: {clustering.mutual_information:.4f} nats")
    vocab_arguments = [] if vocab.vocab_from is None else ["--vocab", str(vocab.vocab_from)]
    arguments = ["--text", text, *vocab_arguments, "--classes", str(output), "-o", "DIR"]
    suggest_command("train", "class-ngram", *arguments, field=field)


def cluster_with_progress(corpus: Corpus, classes: int | None, passes: int | None = None) -> BrownClustering:
    """Return Brown clusters, with the library's defaults for None."""
    from dragoman.data.brown import brown_clusters

    given = {name: value for name, value in (("classes", classes), ("passes", passes)) if value is not None}
    with step_bars() as progress:
        return brown_clusters(corpus, **given, progress=progress)


def parse_class_count(choice: str) -> int | None:
    """Return N of `brown:N`; None if the value is the name of a file."""
    if not choice.startswith(BROWN_PREFIX):
        return None
    number = choice.removeprefix(BROWN_PREFIX)
    if not number.isdecimal() or len(number) > 9:
        raise DataError(f"--classes {choice}: give a number of classes, such as {BROWN_PREFIX}200")
    return int(number)
