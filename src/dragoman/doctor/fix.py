"""A cleaned copy of texts: lines are fixed where the fix is unambiguous, and dropped where they are unusable."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dragoman.core.errors import DataError
from dragoman.doctor.arrangement import DoctorDocuments, arrange_for_fix
from dragoman.doctor.characters import fix_line
from dragoman.doctor.documents import Document, join_lines
from dragoman.doctor.examination import DoctorReport, check_documents, encoding_findings
from dragoman.doctor.findings import DROP, REWRITE, WITHOUT_VALUE_KINDS, Finding
from dragoman.doctor.text_checks import DoctorLimits
from dragoman.io.storage import new_directory

DROPPED_FILE, REWRITTEN_FILE = "dropped.tsv", "fixed.tsv"
STDIN_FILE = "stdin.txt"
WHOLE_FILE_KINDS = frozenset(("utf-16", "cr-lines", "crlf", "bom"))  # fixed for the file, not for single lines
UNSAFE_CHARACTERS = re.compile("[\0\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")  # would break rows or cells of a TSV file


@dataclass(frozen=True)
class DroppedLine:
    """A line, or a pair of lines, that was dropped."""

    finding: Finding
    texts: tuple[str, ...]  # as in the file, of each side


@dataclass(frozen=True)
class RewrittenLines:
    """How many lines of a file were fixed for one kind of finding."""

    file: str
    kind: str
    lines: int | None  # None: the whole file


@dataclass(frozen=True)
class FixResult:
    """Cleaned documents, and what was changed."""

    documents: DoctorDocuments
    dropped: tuple[DroppedLine, ...]
    rewritten: tuple[RewrittenLines, ...]


def fix_documents(raw: DoctorDocuments, limits: DoctorLimits) -> FixResult:
    """Fix lines, then drop lines until there are no findings left for which lines are dropped.

    The models that check the text change with every line that is dropped, so the remaining lines are checked again
    until there are no more findings. Every round leaves fewer lines.
    """
    encoding = list(encoding_findings(raw))
    documents, dropped = raw.fixed(), list[DroppedLine]()

    def drop_without_partner(finding: Finding, document: Document, line: int) -> None:
        is_source = document.layout is (raw.train if document.part == "train" else raw.dev)[0].layout
        text = document.lines[line]
        dropped.append(DroppedLine(finding, (text, "") if is_source else ("", text)))

    paired = arrange_for_fix(raw, documents, drop_without_partner)
    for part in (paired.train, paired.dev):
        if len({len(document) for document in part}) > 1:
            files = " and ".join(f"{document.name} ({len(document):,} lines)" for document in part)
            raise DataError(
                f"{files} have different line counts and their lines cannot be paired again; compare the files"
            )
    raw, encoding = paired, [_moved(finding, raw, paired) for finding in encoding]
    documents = raw.fixed()
    findings = [finding for finding in encoding if finding.fix == DROP]
    while True:
        documents, newly_dropped = _drop_lines(documents, _drop_reasons(findings), raw)
        dropped += newly_dropped
        result = check_documents(documents, limits)
        findings = [f for f in result.findings if f.fix == DROP and f.index is not None]
        if not findings:
            return FixResult(documents, tuple(dropped), _count_rewritten(encoding, dropped))


def _moved(finding: Finding, raw: DoctorDocuments, paired: DoctorDocuments) -> Finding:
    """Return a finding about a line with the index of its pair, now that the lines are paired again."""
    for before, after in zip(raw.documents, paired.documents, strict=True):
        is_same = (finding.part, finding.file) == (after.part, after.file) and finding.side in ("", after.side)
        if finding.index is not None and is_same:
            if after.pair_indices is None:
                return finding
            position = int(np.searchsorted(after.places, finding.index))
            is_left = position < len(after) and after.places[position] == finding.index and len(before) > 0
            return replace(finding, index=position if is_left else None)
    return finding


def _drop_reasons(findings: Iterable[Finding]) -> dict[tuple[str, int], Finding]:
    """The first reason to drop each line, by part and index."""
    reasons: dict[tuple[str, int], Finding] = {}
    for finding in findings:
        if finding.index is not None:
            last = finding.index + (finding.last_line or finding.line or 0) - (finding.line or 0)
            for index in range(finding.index, last + 1):
                reasons.setdefault((finding.part, index), finding)
    return reasons


def _count_rewritten(encoding: Iterable[Finding], dropped: Iterable[DroppedLine]) -> tuple[RewrittenLines, ...]:
    """Count the fixed lines that were not dropped, each once per kind."""
    dropped_lines = {(line.finding.part, line.finding.index) for line in dropped}
    lines: dict[tuple[str, str], set[tuple[str, int | None]]] = {}
    for finding in encoding:
        line = finding.part, finding.index
        if finding.fix == REWRITE and (finding.kind in WHOLE_FILE_KINDS or line not in dropped_lines):
            lines.setdefault((finding.document, finding.kind), set()).add(line)
    return tuple(
        RewrittenLines(file, kind, None if kind in WHOLE_FILE_KINDS else len(fixed))
        for (file, kind), fixed in lines.items()
    )


def drops_everything(report: DoctorReport) -> bool:
    """Whether no training line, or no dev line, would remain."""
    reasons = _drop_reasons(finding for finding in report.findings if finding.fix == DROP)
    dropped = Counter(part for part, _ in reasons)
    lines = {"train": report.files[0].lines, "dev": report.dev[0].lines if report.dev else 0}
    return any(count >= lines[part] > 0 for part, count in dropped.items())


def _drop_lines(
    documents: DoctorDocuments, reasons: dict[tuple[str, int], Finding], raw: DoctorDocuments
) -> tuple[DoctorDocuments, list[DroppedLine]]:
    parts, dropped = [], []
    for name, part, raw_part in (("train", documents.train, raw.train), ("dev", documents.dev, raw.dev)):
        remaining = []
        for line, index in enumerate(part[0].indices.tolist() if part else []):
            finding = reasons.get((name, index))
            if finding is None:
                remaining.append(line)
                continue
            is_row = finding.kind in WITHOUT_VALUE_KINDS  # listed completely
            texts = tuple(
                document.layout.rows[document.places[index]] if is_row else document.lines[index]
                for document in raw_part
            )
            if finding.last_line is not None:  # the finding for one line of a run
                document = next(document for document in part if document.name == finding.document)
                finding = document.finding(finding.kind, line, finding.message)
            dropped.append(DroppedLine(finding, texts))
        if part and not remaining:
            raise DataError(f"{part[0].name}: no line would be left; check the findings before cleaning")
        parts.append(tuple(document.select(np.array(remaining, np.int64)) for document in part))
    return DoctorDocuments(parts[0], parts[1], documents.remarks), dropped


def write_fixed(fixed: FixResult, directory: Path) -> dict[str, Path]:
    """Write the cleaned files atomically, and return the new path of each old one."""
    check_new_directory(directory)
    names = output_names([document.layout.path for document in fixed.documents.documents])
    with new_directory(directory) as temporary:
        for path, name in names.items():
            sides = [document for document in fixed.documents.documents if document.layout.path == path]
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            content = _file_content(sides)
            (temporary / name).write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
        (temporary / DROPPED_FILE).write_bytes(join_lines(_dropped_rows(fixed.dropped)))
        counts = (f"{r.file}\t{r.kind}\t{'whole file' if r.lines is None else r.lines}" for r in fixed.rewritten)
        (temporary / REWRITTEN_FILE).write_bytes(join_lines(["file\tkind\tlines", *counts]))
    return {path: directory / name for path, name in names.items()}


def check_new_directory(directory: Path) -> None:
    """Raise `DataError` unless the directory is new or empty: nothing is ever overwritten."""
    if directory.exists() and not directory.is_dir():
        raise DataError(f"{directory}: exists already; choose another name")
    if directory.is_dir() and any(directory.iterdir()):
        raise DataError(f"{directory}: exists already and is not empty; choose another name")


def output_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the name of each file in the new directory; files of the same name keep their folder.

    >>> output_names(["a/train.de", "a/train.en"])
    {'a/train.de': 'train.de', 'a/train.en': 'train.en'}
    >>> output_names(["train/text", "dev/text"])
    {'train/text': 'train/text', 'dev/text': 'dev/text'}
    """
    files = {path: Path(STDIN_FILE if path == "-" else path) for path in dict.fromkeys(paths)}
    counts = Counter([DROPPED_FILE, REWRITTEN_FILE, *(file.name for file in files.values())])
    names = {
        path: file.name if counts[file.name] == 1 else str(Path(file.absolute().parent.name, file.name))
        for path, file in files.items()
    }
    if len(set(names.values())) < len(names):
        name = Counter(names.values()).most_common(1)[0][0]
        raise DataError(f"several files would be written as {name}; rename one")
    return names


def _file_content(sides: Sequence[Document]) -> bytes:
    """The cleaned content of a file from which one document was read, or two fields."""
    layout = sides[0].layout
    rows = [layout.rows[place] for place in sides[0].places.tolist()]
    for document in sides:
        rows = [document.layout.row(row, line) for row, line in zip(rows, document.lines, strict=True)]
    header = [] if layout.header is None else ["\t".join(map(fix_line, layout.header.split("\t")))]
    return join_lines([*header, *rows])


def _dropped_rows(dropped: Sequence[DroppedLine]) -> list[str]:
    sides = ["source", "target"] if any(len(line.texts) == 2 for line in dropped) else ["text"]
    rows = ["\t".join(["file", "line", "kind", "reason", *sides])]
    for line in dropped:
        finding = line.finding
        cells = [finding.file, str(finding.line), finding.kind, finding.description, *line.texts]
        escaped = (UNSAFE_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode(), c) for c in cells)
        rows.append("\t".join(escaped))
    return rows
