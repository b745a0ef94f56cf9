"""What is known of laboratory text, told by the names of its files: for every verb that measures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.messages import info, status
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.evaluation.alignment import GoldAlignment
    from dragoman.evaluation.floor import TrueLogProbs
    from dragoman.evaluation.translator import ReferenceData


def lab_reference_scores(language: str, corpus: Corpus, text: str) -> TrueLogProbs | None:
    """The truth about laboratory text; None, with a warning, if the text has been changed since it was written."""
    with status("asking the laboratory for the floor"):
        from dragoman.evaluation.lab_reference import lab_true_log_probs

        try:
            return lab_true_log_probs(language, corpus, text)
        except DataError as error:
            info(f"warning: no floor: {error}")
            return None


def lab_reference_answers(src: str, ref: str, references: Sequence[str]) -> ReferenceData:
    """What is known of a text to translate: true alignments and log-probabilities, if it is the laboratory's."""
    from dragoman.evaluation.translator import ReferenceData, read_log_probs
    from dragoman.lab.paths import language_of

    languages = (language_of(src), language_of(ref))
    if None in languages or languages[0] == languages[1] or _part(src) != _part(ref):
        return ReferenceData(references)
    part, turned = _part(src), languages[0] == "en"
    gold, log_probs = _gold(part, turned=turned), read_log_probs(Path(f"{part}.logprob"))
    if len(gold) != len(references) or len(log_probs) != len(references):
        info(f"warning: {part}.align or .logprob has another number of lines, so neither is used")
        return ReferenceData(references)
    return ReferenceData(references, None if turned else log_probs, gold)


def _part(path: str) -> Path:
    """The part of the corpus, such as lab/test.

    >>> _part("lab/test.de.gz").as_posix()
    'lab/test'
    """
    return Path(path.removesuffix(".gz")).with_suffix("")


def _gold(part: Path, *, turned: bool) -> list[GoldAlignment]:
    """The links of each pair; the file has German first."""
    from dragoman.evaluation.alignment import GoldAlignment, read_gold_alignments

    gold = read_gold_alignments(f"{part}.align")
    if not turned:
        return gold
    return [GoldAlignment(*(frozenset((b, a) for a, b in some) for some in (one.sure, one.possible))) for one in gold]
