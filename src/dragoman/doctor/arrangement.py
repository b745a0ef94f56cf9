"""The pairs of lines as they belong together: after slips, and with exchanged sides exchanged back.

Single pairs are examined in this arrangement, and `--fix` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dragoman.doctor.documents import Document
from dragoman.doctor.findings import Finding
from dragoman.doctor.pairing_checks import Pairing, find_pairing
from dragoman.doctor.swap_checks import (
    dev_swap_findings,
    exchange_lines,
    exchanged_run_findings,
    find_exchanged_runs,
    name_findings,
)
from dragoman.doctor.text_checks import alphabetical_findings

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
    """Documents whose pairs can be examined, and what was found out about all lines together.

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
    findings: list[Finding] = []
    remarks: list[str] = []
    arranged: list[Part] = []
    changes: list[PartArrangement | None] = []
    train_pairing: Pairing | None = None
    for part in (documents.train, documents.dev):
        if not part:
            arranged.append(())
            changes.append(None)
            continue
        pairing = find_pairing(part[0], part[1], train_pairing)
        train_pairing = train_pairing or pairing
        findings += [*pairing.findings(), *alphabetical_findings(*part), *name_findings(part)]
        if not pairing.can_check_pairs:
            remarks.append(f"{part[0].name}: single pairs not checked, because the lines do not belong together")
            arranged.append(())
            changes.append(None)
            continue
        pair: Part = pairing.paired()
        runs = tuple(find_exchanged_runs(pair))
        findings += exchanged_run_findings(pair, runs)
        arranged.append(exchange_lines(pair, runs) if runs else pair)
        lines = pairing.lines()
        changes.append(PartArrangement(*lines, runs) if runs or pairing.has_slips else None)
    train, dev = arranged
    if train and dev:
        findings += dev_swap_findings(train, dev)
    return Arrangement(DoctorDocuments(train, dev), tuple(findings), tuple(remarks), (changes[0], changes[1]))


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
            finding = document.finding("out-of-step", line, "no line of the other side belongs with this one")
            left_out(finding, document, line)
        parts.append(change.apply(part))
    return DoctorDocuments(parts[0], parts[1], raw.remarks)
