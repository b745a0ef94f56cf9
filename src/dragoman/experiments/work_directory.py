"""A directory that a verb fills by itself, as a demo or a ladder does: taken, and given the laboratory's texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.evaluation.floor import TrueLogProbs
    from dragoman.evaluation.translator import ReferenceData

SETTINGS = "settings.yaml"  # what a ladder was begun with
MARK_FILE = "ABOUT-THESE-FILES.txt"  # by which a verb knows the directory of an earlier run


@dataclass(frozen=True)
class LabTexts:
    """The laboratory's English, read as anybody's text would be, and the truth about the test text."""

    train: Corpus
    dev: Corpus
    test: Corpus
    truth: TrueLogProbs


@dataclass(frozen=True)
class LabBitext:
    """The laboratory's German and English, line by line, and the trees of the German."""

    german: Sequence[str]
    trees: Sequence[str]
    english: Sequence[str]

    def first(self, pairs: int) -> LabBitext:
        """So many pairs from the beginning, or all if there are fewer."""
        return LabBitext(self.german[:pairs], self.trees[:pairs], self.english[:pairs])

    def sources(self, format: str) -> Sequence[str]:
        """The German as a translator reads it."""
        from dragoman.data.tokenizer import TREE

        return self.trees if format == TREE else self.german


def claim_directory(output: Path, verb: str, habit: str) -> None:
    """Take a directory that is new, empty or an earlier run's of the same verb; leave all others alone.

    `habit` is what the verb does when it runs again: the mark tells it to whoever looks into the directory.
    """
    from dragoman.io.storage import atomic_file

    remedy = "give it a directory of its own with -o"
    about = f"dragoman {verb} wrote these files, and {habit}: keep nothing of your own here.\n"
    if output.exists() and not output.is_dir():
        raise DataError(f"{output}: is a file, not the directory of a {verb}; {remedy}")
    if output.is_dir() and any(output.iterdir()) and not _is_marked(output, about):
        raise DataError(f"{output}: holds files that are not a {verb}'s; {remedy}")
    with atomic_file(output / MARK_FILE) as path:
        path.write_text(about, encoding="utf-8")


def _is_marked(output: Path, about: str) -> bool:
    mark = output / MARK_FILE
    return mark.is_file() and mark.read_text(encoding="utf-8", errors="replace") == about


def write_corpus(corpus: Path, sizes: Mapping[str, int], seed: int) -> None:
    """Write the laboratory's corpus, over an older one."""
    from dragoman.lab.laboratory import laboratory
    from dragoman.lab.write_corpus import write

    write(laboratory(), corpus, sizes, seed, replace=True)


def read_texts(corpus: Path) -> LabTexts:
    """The English of the laboratory's corpus."""
    from dragoman.data.corpus import Corpus
    from dragoman.evaluation.lab_reference import lab_true_log_probs

    train = Corpus.read(corpus / "train.en")
    dev, test = (Corpus.read(corpus / f"{part}.en", train.vocab) for part in ("dev", "test"))
    return LabTexts(train, dev, test, lab_true_log_probs("en", test))


def read_bitext(corpus: Path, part: str) -> LabBitext:
    """Both languages of a part of the laboratory's corpus."""
    return LabBitext(*(_lines(corpus / f"{part}.{ending}") for ending in ("de", "de.trees", "en")))


def read_answers(corpus: Path) -> ReferenceData:
    """What is known about the test text: references, their true log P(E | F), the true alignments."""
    from dragoman.evaluation.alignment import read_gold_alignments
    from dragoman.evaluation.translator import ReferenceData, read_log_probs

    gold, log_probs = read_gold_alignments(corpus / "test.align"), read_log_probs(corpus / "test.logprob")
    return ReferenceData(_lines(corpus / "test.en"), log_probs, gold)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def check_settings(output: Path, settings: dict[str, Any]) -> None:
    """Note what a ladder is begun with; refuse to go on with anything else, as its rungs would not compare."""
    import yaml

    from dragoman.core.settings import config_differences
    from dragoman.io.storage import atomic_file

    path = output / SETTINGS
    if path.exists() and (changes := config_differences(_begun_with(path), settings)):
        remedy = "repeat what it was begun with, or give another directory with -o"
        raise DataError(f"{path.parent}: holds another ladder ({'; '.join(changes)}); {remedy}")
    with atomic_file(path) as temporary:
        temporary.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


def _begun_with(path: Path) -> dict[str, Any]:
    """What a ladder noted when it was begun."""
    import yaml

    try:
        there = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, OSError, RecursionError):  # a ValueError: no UTF-8, or no such date
        there = None
    if not isinstance(there, dict):
        remedy = "delete the directory to begin anew, or give another with -o"
        raise DataError(f"{path}: damaged, so nobody knows what the ladder was begun with; {remedy}")
    return there
