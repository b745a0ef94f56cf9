"""The pairs of lines as they belong together: shifted lines moved back, and exchanged sides exchanged back.

Single pairs are examined in this arrangement, and `--fix` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding
from dragoman.doctor.swap_checks import (
    dev_swap_findings,
    exchange_lines,
    exchanged_run_findings,
    find_exchanged_runs,
    stated_language_findings,
)
from dragoman.doctor.text_checks import alphabetical_findings
from dragoman.doctor.text_pairing import Pairing, find_pairing

Part = tuple[Document, ...]


@dataclass(frozen=True)
class DoctorDocuments:
    """The documents: one or two of train, as many or none of dev."""

    train: Part
    dev: Part = ()
    remarks: tuple[str, ...] = ()  # about units that are not used

    @property
    def documents(self) -> Part:
        return (*self.train, *self.dev)

    def fixed(self) -> DoctorDocuments:
        """Return the documents with all lines fixed."""
        train, dev = (tuple(document.fixed() for document in part) for part in (self.train, self.dev))
        return DoctorDocuments(train, dev, self.remarks)


@dataclass(frozen=True)
class PartArrangement:
    """How the lines of two documents belong together."""

    source_lines: NDArray[np.int64]
    target_lines: NDArray[np.int64]
    exchanged: tuple[tuple[int, int], ...] = ()  # first and last of these pairs

    def apply(self, part: Part) -> Part:
        """Return the two documents with their lines in pairs."""
        indices = np.arange(len(self.source_lines))
        pair = (
            replace(document.select(lines), pair_indices=indices)
            for document, lines in zip(part, (self.source_lines, self.target_lines), strict=True)
        )
        return exchange_lines(tuple(pair), self.exchanged)

    def left_out(self, part: Part) -> Iterator[tuple[Document, int]]:
        """The lines of each document that belong to no pair."""
        for document, lines in zip(part, (self.source_lines, self.target_lines), strict=True):
            for line in np.setdiff1d(np.arange(len(document)), lines).tolist():
                yield document, line


@dataclass(frozen=True)
class Arrangement:
    """Documents whose pairs can be examined, and the findings about all lines together.

    A part whose lines do not belong together is empty. `parts` has what is to be done with train and dev, where lines
    have to be paired again or exchanged.
    """

    documents: DoctorDocuments
    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()
    parts: tuple[PartArrangement | None, PartArrangement | None] = (None, None)


def arrange(documents: DoctorDocuments) -> Arrangement:
    """Find out how the lines of parallel texts belong together. A single text stays as it is."""
    if len(documents.train) == 1:
        return Arrangement(documents)
    train = _arrange_part(documents.train)
    dev = _arrange_part(documents.dev, train) if documents.dev else _ArrangedPart()
    return Arrangement(
        DoctorDocuments(train.documents, dev.documents),
        (*train.findings, *dev.findings),
        (*train.remarks, *dev.remarks),
        (train.change, dev.change),
    )


@dataclass(frozen=True)
class _ArrangedPart:
    """The result for train or dev."""

    documents: Part = ()
    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()
    change: PartArrangement | None = None
    pairing: Pairing | None = None


def _arrange_part(part: Part, train: _ArrangedPart | None = None) -> _ArrangedPart:
    """Find out how the lines of train, or of dev, belong together."""
    swap_findings = tuple(dev_swap_findings(train.documents, part)) if train and train.documents else ()
    order = -1 if swap_findings else 1  # the dev sides are paired in the order of the training sides
    source, target = part[::order]
    pairing = find_pairing(source, target, train.pairing if train else None)
    findings = (
        *pairing.findings(),
        *alphabetical_findings(*part),
        *stated_language_findings(part),
        *swap_findings,
    )
    if not pairing.can_check_pairs:
        remark = f"{part[0].name}: single pairs not checked, because the lines do not belong together"
        return _ArrangedPart((), findings, (remark,), pairing=pairing)
    pair = pairing.paired()[::order]
    runs = tuple(find_exchanged_runs(pair))
    source_lines, target_lines = pairing.lines()[::order]
    change = PartArrangement(source_lines, target_lines, runs) if runs or pairing.is_shifted else None
    documents = exchange_lines(pair, runs) if runs else pair
    return _ArrangedPart(documents, (*findings, *exchanged_run_findings(pair, runs)), (), change, pairing)


def arrange_for_fix(
    raw: DoctorDocuments, fixed: DoctorDocuments, left_out: Callable[[Finding, Document, int], None]
) -> DoctorDocuments:
    """Return the raw documents with their lines in pairs; call `left_out` for each line without a partner."""
    arranged = arrange(fixed)
    parts = []
    for part, change in zip((raw.train, raw.dev), arranged.parts, strict=True):
        if change is None:
            parts.append(part)
            continue
        for document, line in change.left_out(part):
            finding = document.finding("line-shift", line, "without a partner, or next to the place of the shift")
            left_out(finding, document, line)
        parts.append(change.apply(part))
    return DoctorDocuments(parts[0], parts[1], raw.remarks)
