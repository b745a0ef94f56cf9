"""The examination: read files, run all checks, and report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from dragoman.core.errors import DataError
from dragoman.data.languages import AS_IN_FILE, Languages, check_language
from dragoman.data.pair_files import pair_format, read_pair_file, tsv_fields
from dragoman.doctor import dev_checks, language_checks, pair_checks, text_checks
from dragoman.doctor.alignment_checks import check_alignment
from dragoman.doctor.arrangement import DoctorDocuments, arrange
from dragoman.doctor.dev_checks import Overlap
from dragoman.doctor.documents import Document, documents_of_pairs, name_columns, read_document
from dragoman.doctor.findings import DROP, LEAVE, WITHOUT_VALUE_KINDS, CheckResult, Finding, group_by_kind
from dragoman.doctor.text_checks import DoctorLimits
from dragoman.doctor.training_cost import TrainingCost, TranslatorCost, training_costs, translator_costs

EMPTY_KINDS = frozenset(("empty", "empty-side"))


@dataclass(frozen=True)
class DoctorInput:
    """The files to check: one text, or a source and a target; the same for dev, or nothing.

    If source and target are the same file and no fields are given, it has both sides (see `read_pair_file`).
    """

    train: tuple[str, ...]
    dev: tuple[str, ...] = ()
    fields: tuple[str | None, str | None] = (None, None)
    languages: Languages = AS_IN_FILE

    def __post_init__(self) -> None:
        if len(self.train) not in (1, 2):
            raise DataError("give either one text, or a source and a target")
        if self.dev and len(self.dev) != len(self.train):
            kind = "one dev text" if len(self.train) == 1 else "a dev source and a dev target"
            raise DataError(f"give {kind}, as for training")
        if (*self.train, *self.dev).count("-") > 1:
            raise DataError("standard input (-) can be given once")


@dataclass(frozen=True)
class DoctorReport:
    """All results of an examination."""

    files: tuple[text_checks.FileStatistics, ...]
    pairs: pair_checks.PairStatistics | None
    dev: tuple[dev_checks.DevStatistics, ...]
    costs: tuple[TrainingCost, ...]
    translator_costs: tuple[TranslatorCost, ...]
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]

    def count(self, severity: str) -> int:
        return sum(finding.info.severity == severity for finding in self.findings)

    @property
    def can_pair(self) -> bool:
        """Whether line i of one side belongs with line i of the other, or `--fix` knows with which."""
        kinds = {finding.kind for finding in self.findings}
        unknown = any(finding.kind == "line-counts" and finding.line is None for finding in self.findings)
        return "unpaired" not in kinds and (not unknown or "line-shift" in kinds)

    def remaining(self, severity: str, *, is_fixed: bool) -> int:
        """Count the findings that are left, with `is_fixed` after `--fix`."""
        findings = [finding for finding in self.findings if finding.info.severity == severity]
        return sum(not is_fixed or finding.fix == LEAVE for finding in findings)

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "files": [asdict(statistics) for statistics in self.files],
            "pairs": asdict(self.pairs) if self.pairs else None,
            "dev": [asdict(statistics) for statistics in self.dev],
            "costs": [{**asdict(cost), "basis": cost.basis} for cost in self.costs],
            "translator_costs": [asdict(cost) for cost in self.translator_costs],
            "counts": {kind: len(findings) for kind, findings in group_by_kind(self.findings).items()},
            "remarks": list(self.remarks),
            "findings": [finding.as_dict() for finding in self.findings],
        }


def read_documents(files: DoctorInput) -> DoctorDocuments:
    """Read all files, in any encoding."""
    remarks: list[str] = []
    languages = [
        None if name is None else check_language(name, option)
        for name, option in zip(files.languages, ("--src-lang", "--tgt-lang"), strict=True)
    ]

    def read_part(paths: tuple[str, ...], part: str) -> tuple[Document, ...]:
        fields = files.fields
        if len(set(paths)) == 1 and len(paths) == 2 and paths[0] != "-" and fields == (None, None):
            file_format = pair_format(paths[0])
            if file_format in ("tmx", "po", "xliff"):
                pairs = read_pair_file(paths[0], languages=files.languages)
                remarks.extend(f"{paths[0]}: not used: {reason}" for reason in pairs.rejection_summary())
                return documents_of_pairs(pairs, part)
            fields = tsv_fields(paths[0], files.languages) if file_format == "tsv" else fields
        documents = tuple(read_document(path, part, field) for path, field in zip(paths, fields, strict=False))
        documents = name_columns(documents) if len(set(paths)) < len(paths) else documents
        return tuple(
            replace(document, language=language) for document, language in zip(documents, languages, strict=False)
        )

    train, dev = read_part(files.train, "train"), read_part(files.dev, "dev")
    return DoctorDocuments(train, dev, tuple(remarks))


def examine(files: DoctorInput, limits: DoctorLimits | None = None, *, with_cost: bool = True) -> DoctorReport:
    """Check a text, or a source and its translation, before training."""
    return examine_documents(read_documents(files), limits or DoctorLimits(), with_cost=with_cost)


def examine_documents(raw: DoctorDocuments, limits: DoctorLimits, *, with_cost: bool = True) -> DoctorReport:
    """Check documents: characters as they are in the file, lines and pairs as `--fix` would write them."""
    fixed = raw.fixed()
    train, dev = fixed.train, fixed.dev
    is_parallel = _equal_line_counts(train) and _equal_line_counts(dev)
    result = check_documents(fixed, limits)
    overlap = result.overlap or (Overlap.find(train, dev) if dev and is_parallel else None)
    findings = list(encoding_findings(raw))
    without_value = {(f.part, f.index) for f in findings if f.kind in WITHOUT_VALUE_KINDS}
    findings += (f for f in result.findings if f.kind not in EMPTY_KINDS or (f.part, f.index) not in without_value)
    return DoctorReport(
        files=tuple(map(text_checks.file_statistics, fixed.documents)),
        pairs=pair_checks.pair_statistics(*train) if len(train) == 2 and is_parallel else None,
        dev=dev_checks.dev_statistics(train, dev, overlap) if overlap and is_parallel else (),
        costs=training_costs(train) if with_cost else (),
        translator_costs=translator_costs(*train) if with_cost and len(train) == 2 and is_parallel else (),
        findings=tuple(finding for group in group_by_kind(findings).values() for finding in group),
        remarks=(*raw.remarks, *result.remarks),
    )


def encoding_findings(raw: DoctorDocuments) -> Iterator[Finding]:
    """Find problems with bytes, characters and conventions of writing."""
    for document in raw.documents:
        yield from document.faults
        yield from text_checks.character_findings(document)
        yield from text_checks.style_findings(document)


@dataclass(frozen=True)
class DocumentsResult(CheckResult):
    """The result of all checks of lines and pairs."""

    overlap: Overlap | None = None  # None: there is no dev text, or lines do not belong together


def check_documents(fixed: DoctorDocuments, limits: DoctorLimits) -> DocumentsResult:
    """Find problems with the lines and pairs of fixed documents."""
    findings: list[Finding] = []
    remarks: list[str] = []
    for side in fixed.documents:
        findings += text_checks.word_length_findings(side, limits.max_word_length)
        findings += text_checks.sorted_findings(side)
        findings += language_checks.script_findings(side)
    for document in (*fixed.train, *fixed.dev) if len(fixed.train) == 1 else ():
        findings += text_checks.monolingual_findings(document, limits)
    arranged = arrange(fixed)
    findings += arranged.findings
    remarks += arranged.remarks
    train, dev = arranged.documents.train, arranged.documents.dev
    for part in (train, dev):
        if len(part) == 2:
            findings += pair_checks.pair_findings(part[0], part[1], limits)
    # Checks whose models are trained on the text itself. Dev texts are too short for them.
    language = alignment = CheckResult()
    if len(train) == 1:
        language = language_checks.check_text_language(train[0])
    elif train:
        language = language_checks.check_pair_languages(train)
        alignment = check_alignment(*train)
    findings += language.findings
    # Misaligned pairs are left out if there is a more specific finding, such as a copied line.
    explained = {(finding.part, finding.index) for finding in findings if finding.fix == DROP}
    findings += [f for f in alignment.findings if f.kind != "misaligned" or (f.part, f.index) not in explained]
    overlap = Overlap.find(train, dev) if train and dev else None
    findings += overlap.findings() if overlap else ()
    for train_side, dev_side in zip(fixed.train, fixed.dev, strict=False):
        findings += dev_checks.dev_findings(train_side, dev_side)
    if limits.keep_duplicates:
        findings = [finding for finding in findings if finding.kind not in ("duplicate", "duplicate-pair")]
    return DocumentsResult(tuple(findings), (*remarks, *language.remarks, *alignment.remarks), overlap)


def _equal_line_counts(part: Sequence[Document]) -> bool:
    return len({len(document) for document in part}) <= 1
