"""The doctor's whole examination: what is read, what is looked at, and the report of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.core.errors import DataError
from dragoman.doctor.alignment import alignment
from dragoman.doctor.cost import Cost, cost
from dragoman.doctor.findings import DROP, LEAVE, Finding, grouped
from dragoman.doctor.language import pair_languages, script_findings, text_language
from dragoman.doctor.parallel_text import (
    DevFigures,
    PairFigures,
    dev_figures,
    dev_findings,
    line_counts,
    overlap_findings,
    pair_figures,
    pair_findings,
)
from dragoman.doctor.reader import Document, read_document
from dragoman.doctor.single_text import (
    FileFigures,
    Limits,
    Measured,
    character_findings,
    figures,
    line_findings,
    lone_text_findings,
    style_findings,
)


@dataclass(frozen=True)
class Files:
    """Which files to look at: one text, or a source and a target; the same of dev, or nothing."""

    train: tuple[str, ...]
    dev: tuple[str, ...] = ()
    fields: tuple[str | None, ...] = (None, None)

    def __post_init__(self) -> None:
        if len(self.train) not in (1, 2):
            raise DataError("give either one text, or a source and a target")
        if self.dev and len(self.dev) != len(self.train):
            kind = "one dev text" if len(self.train) == 1 else "a dev source and a dev target"
            raise DataError(f"give {kind}, as for training")
        if (*self.train, *self.dev).count("-") > 1:
            raise DataError("standard input (-) can be given once")


@dataclass(frozen=True)
class Material:
    """The documents as they were read: one or two of train, as many or none of dev."""

    train: tuple[Document, ...]
    dev: tuple[Document, ...] = ()

    @property
    def documents(self) -> tuple[Document, ...]:
        return (*self.train, *self.dev)

    def mended(self) -> Material:
        return Material(*(tuple(document.mended() for document in part) for part in (self.train, self.dev)))


@dataclass(frozen=True)
class Diagnosis:
    """What was found, and why something could not be looked at."""

    findings: tuple[Finding, ...]
    remarks: tuple[str, ...] = ()
    near: tuple[Finding, ...] = ()  # what is just not bad enough, and may be when other lines are taken out


@dataclass(frozen=True)
class Report:
    """All that the doctor has to say."""

    files: tuple[FileFigures, ...]
    pairs: PairFigures | None
    dev: tuple[DevFigures, ...]
    costs: tuple[Cost, ...]
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]

    def count(self, severity: str) -> int:
        return sum(finding.about.severity == severity for finding in self.findings)

    @property
    def fixable(self) -> bool:
        return any(finding.about.fix != LEAVE for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "files": [asdict(figures) for figures in self.files],
            "pairs": asdict(self.pairs) if self.pairs else None,
            "dev": [asdict(figures) for figures in self.dev],
            "costs": [{**asdict(cost), "basis": cost.basis} for cost in self.costs],
            "counts": {kind: len(found) for kind, found in grouped(self.findings).items()},
            "remarks": list(self.remarks),
            "findings": [finding.as_dict() for finding in self.findings],
        }


def read(files: Files) -> Material:
    """Read all files, whatever is wrong with them."""
    parts = []
    for part, paths in (("train", files.train), ("dev", files.dev)):
        fields = (*files.fields, None)
        parts.append(tuple(read_document(path, part, field) for path, field in zip(paths, fields, strict=False)))
    return Material(*parts)


def examine(files: Files, limits: Limits | None = None, *, with_cost: bool = True) -> Report:
    """Look over a text, or a source and its translation, before training."""
    return report_on(read(files), limits or Limits(), with_cost=with_cost)


def report_on(raw: Material, limits: Limits, *, with_cost: bool = True) -> Report:
    """Examine what was read. Letters are looked at as they stand, lines as `--fix` would write them."""
    sound = raw.mended()
    train, dev = (tuple(map(Measured.of, part)) for part in (sound.train, sound.dev))
    in_step = _in_step(train) and _in_step(dev)
    diagnosis = diagnose_measured(train, dev, limits)
    findings = [*writing_findings(raw), *diagnosis.findings]
    return Report(
        files=tuple(map(figures, (*train, *dev))),
        pairs=pair_figures(*train) if len(train) == 2 and in_step else None,
        dev=tuple(dev_figures(train, dev)) if dev and in_step else (),
        costs=tuple(found for found in map(cost, train) if found) if with_cost else (),
        findings=tuple(finding for kind in grouped(findings).values() for finding in kind),
        remarks=diagnosis.remarks,
    )


def writing_findings(raw: Material) -> Iterator[Finding]:
    """What is wrong with bytes, letters and habits of writing."""
    for document in raw.documents:
        yield from document.faults
        yield from character_findings(document)
        yield from style_findings(document)


def diagnose(sound: Material, limits: Limits) -> Diagnosis:
    """What is wrong with lines and pairs of mended documents."""
    return diagnose_measured(tuple(map(Measured.of, sound.train)), tuple(map(Measured.of, sound.dev)), limits)


def diagnose_measured(train: Sequence[Measured], dev: Sequence[Measured], limits: Limits) -> Diagnosis:
    findings: list[Finding] = []
    remarks: list[str] = []
    for part in (train, dev):
        for side in part:
            findings += line_findings(side, limits)
            findings += script_findings(side)
        if len(part) == 1:
            findings += lone_text_findings(part[0], limits)
        elif part and not _in_step(part):
            findings.append(line_counts(part[0].document, part[1].document))
            remarks.append(f"{part[0].document.name}: pairs were not looked at, as the two sides are not in step")
        elif part:
            findings += pair_findings(part[0], part[1], limits)
    diagnosis = _by_statistics(train)
    findings += without_repetition(diagnosis.findings, findings)
    remarks += diagnosis.remarks
    if dev and _in_step(train) and _in_step(dev):
        findings += overlap_findings([side.document for side in train], [side.document for side in dev])
    for known, side in zip(train, dev, strict=False):
        findings += dev_findings(known, side)
    if limits.keep_duplicates:
        findings = [finding for finding in findings if finding.kind not in ("duplicate", "duplicate-pair")]
    return Diagnosis(tuple(findings), tuple(remarks), diagnosis.near)


def _in_step(part: Sequence[Measured]) -> bool:
    return len({len(side.document) for side in part}) <= 1


def _by_statistics(train: Sequence[Measured]) -> Diagnosis:
    """What the training text itself teaches about its lines. Dev texts are too short for that."""
    if len(train) == 1:
        language = text_language(train[0])
        return Diagnosis(language.findings, _remark(train[0].document, language.remark))
    if not _in_step(train):
        return Diagnosis(())
    source, target = train[0].document, train[1].document
    language, aligned = pair_languages(train), alignment(source, target)
    findings = (*language.findings, *without_repetition(aligned.findings, language.findings))
    return Diagnosis(findings, (*_remark(source, language.remark), *_remark(source, aligned.remark)), aligned.near)


def _remark(document: Document, remark: str) -> tuple[str, ...]:
    return (f"{document.name}: {remark}",) if remark else ()


def without_repetition(findings: Iterable[Finding], others: Iterable[Finding]) -> list[Finding]:
    """Findings, but no line called misaligned of which something plainer is known, such as that it was copied."""
    known = {(finding.part, finding.index) for finding in others if finding.about.fix == DROP}
    return [f for f in findings if f.kind != "misaligned" or (f.part, f.index) not in known]
