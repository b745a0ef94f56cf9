"""The doctor's whole examination: what is read, what is looked at, and the report of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.core.errors import DataError
from dragoman.doctor.alignment_checks import check_alignment
from dragoman.doctor.cost import TrainingCost, estimate_training_cost
from dragoman.doctor.findings import DROP, LEAVE, Finding, group_by_kind
from dragoman.doctor.language_checks import check_pair_languages, check_text_language, script_findings
from dragoman.doctor.parallel_text import (
    DevStatistics,
    PairStatistics,
    dev_findings,
    dev_statistics,
    line_count_finding,
    overlap_findings,
    pair_findings,
    pair_statistics,
)
from dragoman.doctor.reader import Document, read_document
from dragoman.doctor.single_text import (
    DoctorLimits,
    FileStatistics,
    TextStatistics,
    character_findings,
    file_statistics,
    line_findings,
    monolingual_findings,
    style_findings,
)


@dataclass(frozen=True)
class DoctorInput:
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
class DoctorDocuments:
    """The documents as they were read: one or two of train, as many or none of dev."""

    train: tuple[Document, ...]
    dev: tuple[Document, ...] = ()

    @property
    def documents(self) -> tuple[Document, ...]:
        return (*self.train, *self.dev)

    def fixed(self) -> DoctorDocuments:
        return DoctorDocuments(*(tuple(document.fixed() for document in part) for part in (self.train, self.dev)))


@dataclass(frozen=True)
class CheckResult:
    """What was found, and why something could not be looked at."""

    findings: tuple[Finding, ...]
    remarks: tuple[str, ...] = ()
    near: tuple[Finding, ...] = ()  # what is just not bad enough, and may be when other lines are taken out


@dataclass(frozen=True)
class DoctorReport:
    """All that the doctor has to say."""

    files: tuple[FileStatistics, ...]
    pairs: PairStatistics | None
    dev: tuple[DevStatistics, ...]
    costs: tuple[TrainingCost, ...]
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]

    def count(self, severity: str) -> int:
        return sum(finding.info.severity == severity for finding in self.findings)

    @property
    def fixable(self) -> bool:
        return any(finding.info.fix != LEAVE for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "files": [asdict(figures) for figures in self.files],
            "pairs": asdict(self.pairs) if self.pairs else None,
            "dev": [asdict(figures) for figures in self.dev],
            "costs": [{**asdict(cost), "basis": cost.basis} for cost in self.costs],
            "counts": {kind: len(found) for kind, found in group_by_kind(self.findings).items()},
            "remarks": list(self.remarks),
            "findings": [finding.as_dict() for finding in self.findings],
        }


def read_documents(files: DoctorInput) -> DoctorDocuments:
    """Read all files, whatever is wrong with them."""
    parts = []
    for part, paths in (("train", files.train), ("dev", files.dev)):
        fields = (*files.fields, None)
        parts.append(tuple(read_document(path, part, field) for path, field in zip(paths, fields, strict=False)))
    return DoctorDocuments(*parts)


def examine(files: DoctorInput, limits: DoctorLimits | None = None, *, with_cost: bool = True) -> DoctorReport:
    """Look over a text, or a source and its translation, before training."""
    return examine_documents(read_documents(files), limits or DoctorLimits(), with_cost=with_cost)


def examine_documents(raw: DoctorDocuments, limits: DoctorLimits, *, with_cost: bool = True) -> DoctorReport:
    """Examine what was read. Letters are looked at as they stand, lines as `--fix` would write them."""
    sound = raw.fixed()
    train, dev = (tuple(map(TextStatistics.from_document, part)) for part in (sound.train, sound.dev))
    in_step = _in_step(train) and _in_step(dev)
    diagnosis = check_texts(train, dev, limits)
    findings = [*encoding_findings(raw), *diagnosis.findings]
    return DoctorReport(
        files=tuple(map(file_statistics, (*train, *dev))),
        pairs=pair_statistics(*train) if len(train) == 2 and in_step else None,
        dev=tuple(dev_statistics(train, dev)) if dev and in_step else (),
        costs=tuple(found for found in map(estimate_training_cost, train) if found) if with_cost else (),
        findings=tuple(finding for kind in group_by_kind(findings).values() for finding in kind),
        remarks=diagnosis.remarks,
    )


def encoding_findings(raw: DoctorDocuments) -> Iterator[Finding]:
    """What is wrong with bytes, letters and habits of writing."""
    for document in raw.documents:
        yield from document.faults
        yield from character_findings(document)
        yield from style_findings(document)


def check_documents(sound: DoctorDocuments, limits: DoctorLimits) -> CheckResult:
    """What is wrong with lines and pairs of mended documents."""
    return check_texts(
        tuple(map(TextStatistics.from_document, sound.train)),
        tuple(map(TextStatistics.from_document, sound.dev)),
        limits,
    )


def check_texts(train: Sequence[TextStatistics], dev: Sequence[TextStatistics], limits: DoctorLimits) -> CheckResult:
    findings: list[Finding] = []
    remarks: list[str] = []
    for part in (train, dev):
        for side in part:
            findings += line_findings(side, limits)
            findings += script_findings(side)
        if len(part) == 1:
            findings += monolingual_findings(part[0], limits)
        elif part and not _in_step(part):
            findings.append(line_count_finding(part[0].document, part[1].document))
            remarks.append(f"{part[0].document.name}: pairs were not looked at, as the two sides are not in step")
        elif part:
            findings += pair_findings(part[0], part[1], limits)
    diagnosis = _by_statistics(train)
    findings += without_explained_misalignments(diagnosis.findings, findings)
    remarks += diagnosis.remarks
    if dev and _in_step(train) and _in_step(dev):
        findings += overlap_findings([side.document for side in train], [side.document for side in dev])
    for known, side in zip(train, dev, strict=False):
        findings += dev_findings(known, side)
    if limits.keep_duplicates:
        findings = [finding for finding in findings if finding.kind not in ("duplicate", "duplicate-pair")]
    return CheckResult(tuple(findings), tuple(remarks), diagnosis.near)


def _in_step(part: Sequence[TextStatistics]) -> bool:
    return len({len(side.document) for side in part}) <= 1


def _by_statistics(train: Sequence[TextStatistics]) -> CheckResult:
    """What the training text itself teaches about its lines. Dev texts are too short for that."""
    if len(train) == 1:
        language = check_text_language(train[0])
        return CheckResult(language.findings, _remark(train[0].document, language.remark))
    if not _in_step(train):
        return CheckResult(())
    source, target = train[0].document, train[1].document
    language, aligned = check_pair_languages(train), check_alignment(source, target)
    findings = (*language.findings, *without_explained_misalignments(aligned.findings, language.findings))
    return CheckResult(findings, (*_remark(source, language.remark), *_remark(source, aligned.remark)), aligned.near)


def _remark(document: Document, remark: str) -> tuple[str, ...]:
    return (f"{document.name}: {remark}",) if remark else ()


def without_explained_misalignments(findings: Iterable[Finding], others: Iterable[Finding]) -> list[Finding]:
    """Findings, but no line called misaligned of which something plainer is known, such as that it was copied."""
    known = {(finding.part, finding.index) for finding in others if finding.info.fix == DROP}
    return [f for f in findings if f.kind != "misaligned" or (f.part, f.index) not in known]
