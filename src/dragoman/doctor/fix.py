"""A cleaned copy: lines set right where that is certain, lines that cannot be trusted left out."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragoman.core.errors import DataError
from dragoman.doctor.characters import fix_line
from dragoman.doctor.examination import DoctorDocuments, DoctorReport, check_documents, encoding_findings
from dragoman.doctor.findings import DROP, REWRITE, Finding
from dragoman.doctor.reader import Document, join_lines
from dragoman.doctor.single_text import DoctorLimits
from dragoman.io.storage import atomic_directory

DROPPED, REWRITTEN = "dropped.tsv", "mended.tsv"
STDIN = "stdin.txt"
WHOLE_FILE = frozenset(("utf-16", "cr-lines", "crlf", "bom"))  # mended by writing the file, whichever lines are kept
WITHOUT_VALUE = frozenset(("no-field", "not-json"))  # such rows are shown whole
OUT_OF_STEP = frozenset(("misaligned", "shifted"))


@dataclass(frozen=True)
class DroppedLine:
    """A line, or a pair of lines, that was left out."""

    finding: Finding
    texts: tuple[str, ...]  # as it was in the file, on each side


@dataclass(frozen=True)
class RewrittenLines:
    """How many of the lines that were kept were set right for what."""

    file: str
    kind: str
    lines: int | None  # None: the whole file


@dataclass(frozen=True)
class FixResult:
    """Cleaned documents, and what was done to them."""

    documents: DoctorDocuments
    dropped: tuple[DroppedLine, ...]
    rewritten: tuple[RewrittenLines, ...]


def fix_documents(raw: DoctorDocuments, limits: DoctorLimits) -> FixResult:
    """Mend, then drop until nothing is found any more that should be dropped.

    What is learned from a text changes a little with every line that is left out, so it is looked at again, until
    the examination of the very lines that are kept finds nothing to drop. Every round leaves fewer lines.
    """
    _require_equal_line_counts(raw)
    writing = list(encoding_findings(raw))
    sound, dropped = raw.fixed(), list[DroppedLine]()
    found = [finding for finding in writing if finding.info.fix == DROP]
    while True:
        sound, gone = _without(sound, _reasons(found), raw)
        dropped += gone
        diagnosis = check_documents(sound, limits)
        found = [finding for finding in diagnosis.findings if finding.info.fix == DROP]
        if not found:
            return FixResult(sound, tuple(dropped), _count_rewritten(writing, dropped))
        if any(finding.kind in OUT_OF_STEP for finding in found):
            found += diagnosis.near  # else they would go one by one


def _require_equal_line_counts(raw: DoctorDocuments) -> None:
    for part in (raw.train, raw.dev):
        if len({len(document) for document in part}) > 1:
            both = " and ".join(f"{document.name} ({len(document):,} lines)" for document in part)
            raise DataError(
                f"{both} are not in step and cannot be cleaned: without --fix the doctor says about where they part"
            )


def _reasons(findings: Iterable[Finding]) -> dict[tuple[str, int], Finding]:
    """For each line to be dropped, by part and index, the first reason."""
    reasons: dict[tuple[str, int], Finding] = {}
    for finding in findings:
        if finding.index is not None:
            last = finding.index + (finding.last_line or finding.line or 0) - (finding.line or 0)
            for index in range(finding.index, last + 1):
                reasons.setdefault((finding.part, index), finding)
    return reasons


def _count_rewritten(writing: Iterable[Finding], dropped: Iterable[DroppedLine]) -> tuple[RewrittenLines, ...]:
    """What was mended and kept, each line once for each kind."""
    gone = {(line.finding.part, line.finding.index) for line in dropped}
    lines: dict[tuple[str, str], set[tuple[str, int | None]]] = {}
    for finding in writing:
        place = finding.part, finding.index
        if finding.info.fix == REWRITE and (finding.kind in WHOLE_FILE or place not in gone):
            lines.setdefault((finding.file, finding.kind), set()).add(place)
    return tuple(
        RewrittenLines(file, kind, None if kind in WHOLE_FILE else len(found)) for (file, kind), found in lines.items()
    )


def drops_everything(report: DoctorReport) -> bool:
    """Whether so much would be dropped that no training line, or no dev line, would be left."""
    reasons = _reasons(finding for finding in report.findings if finding.info.fix == DROP)
    gone = Counter(part for part, _ in reasons)
    lines = {"train": report.files[0].lines, "dev": report.dev[0].lines if report.dev else 0}
    return any(count >= lines[part] > 0 for part, count in gone.items())


def _without(
    material: DoctorDocuments, reasons: dict[tuple[str, int], Finding], raw: DoctorDocuments
) -> tuple[DoctorDocuments, list[DroppedLine]]:
    parts, dropped = [], []
    for name, part, before in (("train", material.train, raw.train), ("dev", material.dev, raw.dev)):
        places = part[0].places.tolist() if part else []
        kept = [line for line, place in enumerate(places) if (name, place) not in reasons]
        if part and not kept:
            raise DataError(f"{part[0].name}: no line would be left; look at the findings before cleaning")
        chosen = set(kept)
        for line in (line for line in range(len(places)) if line not in chosen):
            finding = reasons[name, places[line]]
            texts = tuple(_as_it_was(document, places[line], finding.kind) for document in before)
            dropped.append(DroppedLine(_moved(finding, part, line), texts))
        parts.append(tuple(document.select(np.array(kept, np.int64)) for document in part))
    return DoctorDocuments(*parts), dropped


def _as_it_was(document: Document, place: int, kind: str) -> str:
    return document.layout.rows[place] if kind in WITHOUT_VALUE else document.lines[place]


def _moved(finding: Finding, part: Sequence[Document], line: int) -> Finding:
    """The finding at this line: a run's is at its first."""
    if finding.last_line is None:
        return finding
    document = next(document for document in part if document.name == finding.file)
    return document.finding(finding.kind, line, finding.message)


# -- writing ----------------------------------------------------------------------------------------------------------


def write_fixed(fixed: FixResult, directory: Path) -> dict[str, Path]:
    """Write the cleaned files, whole or not at all; by the old paths, where the new files are."""
    check_output_directory(directory)
    names = output_names([document.layout.path for document in fixed.documents.documents])
    with atomic_directory(directory) as place:
        for path, name in names.items():
            sides = [document for document in fixed.documents.documents if document.layout.path == path]
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(_packed(_file(sides), name))
        (place / DROPPED).write_bytes(join_lines(_dropped_rows(fixed.dropped)))
        (place / REWRITTEN).write_bytes(join_lines(_rewritten_rows(fixed.rewritten)))
    return {path: directory / name for path, name in names.items()}


def check_output_directory(directory: Path) -> None:
    """Refuse to write where something is. Nothing of it may be replaced, whatever it is."""
    if directory.exists() and not directory.is_dir():
        raise DataError(f"{directory}: exists already; choose another name")
    if directory.is_dir() and any(directory.iterdir()):
        raise DataError(f"{directory}: exists already and is not empty; choose another name")


def output_names(paths: Iterable[str]) -> dict[str, str]:
    """The name of each file in the new directory: its own; where two are the same, with its folder's.

    >>> output_names(["a/train.de", "a/train.en"])
    {'a/train.de': 'train.de', 'a/train.en': 'train.en'}
    >>> output_names(["train/text", "dev/text"])
    {'train/text': 'train/text', 'dev/text': 'dev/text'}
    """
    files = {path: Path(STDIN if path == "-" else path) for path in dict.fromkeys(paths)}
    taken = Counter([DROPPED, REWRITTEN, *(file.name for file in files.values())])
    names = {
        path: file.name if taken[file.name] == 1 else str(Path(file.absolute().parent.name, file.name))
        for path, file in files.items()
    }
    if len(set(names.values())) < len(names):
        raise DataError(f"several files would be written as {Counter(names.values()).most_common(1)[0][0]}; rename one")
    return names


def _file(sides: Sequence[Document]) -> bytes:
    """The file that these documents were read from: one, or two fields of one."""
    layout = sides[0].layout
    rows = [layout.rows[place] for place in sides[0].places.tolist()]
    for document in sides:
        rows = [document.layout.row(row, line) for row, line in zip(rows, document.lines, strict=True)]
    header = [] if layout.header is None else [fix_header(layout.header)]
    return join_lines([*header, *rows])


def fix_header(header: str) -> str:
    return "\t".join(fix_line(name) for name in header.split("\t"))


def _packed(text: bytes, name: str) -> bytes:
    return gzip.compress(text, mtime=0) if name.endswith(".gz") else text


def _dropped_rows(dropped: Sequence[DroppedLine]) -> list[str]:
    sides = ["source", "target"] if any(len(line.texts) == 2 for line in dropped) else ["text"]
    rows = ["\t".join(["file", "line", "kind", "reason", *sides])]
    for line in dropped:
        finding = line.finding
        cells = [finding.file, str(finding.line), finding.kind, finding.message, *line.texts]
        rows.append("\t".join(BREAK.sub(_written_out, cell) for cell in cells))
    return rows


BREAK = re.compile("[\0\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")  # what would break a row or a cell somewhere


def _written_out(sign: re.Match[str]) -> str:
    return sign[0].encode("unicode_escape").decode()


def _rewritten_rows(mended: Iterable[RewrittenLines]) -> list[str]:
    rows = (f"{m.file}\t{m.kind}\t{'whole file' if m.lines is None else m.lines}" for m in mended)
    return ["file\tkind\tlines", *rows]
