"""What is known about text files that `dragoman lab` wrote, recognised by their names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.evaluation.alignment import GoldAlignment, read_gold_alignments
from dragoman.evaluation.floor import TrueLogProbs
from dragoman.evaluation.translator import ReferenceData, read_log_probs
from dragoman.lab.corpus_files import lab_language


def true_log_probs_of(text: str, corpus: Corpus) -> TrueLogProbs | None:
    """Return the true log-probabilities of a text; None if it is not from the lab or was changed (with a warning)."""
    language = lab_language(text)
    if language is None:
        return None
    from dragoman.evaluation.lab_reference import lab_true_log_probs

    try:
        return lab_true_log_probs(language, corpus, text)
    except DataError as error:
        warnings.warn(f"no floor: {error}", stacklevel=2)
        return None


def reference_data_of(src: str, ref: str, references: Sequence[str]) -> ReferenceData:
    """Return references with true alignments and log-probabilities, if source and references are from the lab."""
    languages = (lab_language(src), lab_language(ref))
    part = _part(src)
    if None in languages or languages[0] == languages[1] or part != _part(ref):
        return ReferenceData(references)
    is_reversed = languages[0] == "en"
    gold, log_probs = read_gold_alignments(f"{part}.align"), read_log_probs(Path(f"{part}.logprob"))
    if len(gold) != len(references) or len(log_probs) != len(references):
        warnings.warn(f"{part}.align or .logprob has another number of lines, so neither is used", stacklevel=2)
        return ReferenceData(references)
    if is_reversed:
        gold = [_reverse(alignment) for alignment in gold]
    return ReferenceData(references, None if is_reversed else log_probs, gold)


def _part(path: str) -> Path:
    """Return the part of the corpus that a file belongs to.

    >>> _part("lab/test.de.gz").as_posix()
    'lab/test'
    """
    return Path(path.removesuffix(".gz")).with_suffix("")


def _reverse(alignment: GoldAlignment) -> GoldAlignment:
    sure, possible = (
        frozenset((target, source) for source, target in links) for links in (alignment.sure, alignment.possible)
    )
    return GoldAlignment(sure, possible)
