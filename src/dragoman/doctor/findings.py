"""The kinds of findings of the doctor: each with its severity, a remedy and what `--fix` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SEVERITIES = ("error", "warning", "note")  # training fails or is wrong; training may suffer; good to know
REWRITE, DROP, LEAVE = "mend", "drop", "leave"  # what `--fix` does with a line


@dataclass(frozen=True)
class FindingKind:
    """A kind of problem in a text."""

    severity: str
    title: str  # heading of the list of findings
    remedy: str
    fix: str = LEAVE


FINDING_KINDS = {
    # -- encoding and characters
    "utf-16": FindingKind("error", "UTF-16 or UTF-32 instead of UTF-8", "--fix or iconv -t UTF-8 converts it", REWRITE),
    "undecodable": FindingKind(
        "error", "bytes that are not text", "find out the encoding and convert the file; --fix drops the lines", DROP
    ),
    "not-utf8": FindingKind(
        "error", "Windows-1252 (Latin-1) instead of UTF-8", "--fix or iconv -f CP1252 -t UTF-8 converts it", REWRITE
    ),
    "cr-lines": FindingKind(
        "error", "lines end in CR only", "training would read a single line; --fix ends lines in LF", REWRITE
    ),
    "nul": FindingKind("error", "NUL characters", "training rejects them; --fix removes them", REWRITE),
    "no-field": FindingKind("error", "rows without the field", "correct the file; --fix drops the rows", DROP),
    "not-json": FindingKind("error", "rows that are not valid JSON", "correct the file; --fix drops the rows", DROP),
    "reserved": FindingKind(
        "error", "reserved words <s> or </s>", "training rejects them; --fix removes them", REWRITE
    ),
    "mojibake": FindingKind("warning", "UTF-8 that was decoded twice", "--fix decodes it correctly", REWRITE),
    "replacement": FindingKind(
        "warning", "U+FFFD, which replaces a lost character", "get the original text; --fix drops the lines", DROP
    ),
    "control": FindingKind("warning", "control characters", "--fix removes them", REWRITE),
    "separator": FindingKind(
        "warning", "unusual line separators in a line", "they do not end a line here; --fix replaces them by spaces",
        REWRITE,
    ),
    "invisible": FindingKind(
        "warning", "invisible characters (zero width, bidi)", "they make equal words differ; --fix removes them",
        REWRITE,
    ),
    "odd-space": FindingKind(
        "note", "unusual spaces", "words are split at spaces and TABs only; --fix replaces them by spaces", REWRITE
    ),
    "not-nfc": FindingKind("note", "text not in Unicode normal form C", "--fix normalises it", REWRITE),
    "mixed-forms": FindingKind("warning", "words in two Unicode normal forms", "--fix normalises them", REWRITE),
    "bom": FindingKind("note", "byte order mark", "ignored here, but not by all programs; --fix removes it", REWRITE),
    "crlf": FindingKind("note", "lines end in CR LF", "ignored here; --fix ends lines in LF", REWRITE),
    "spaces": FindingKind("note", "superfluous spaces", "ignored here; --fix leaves one space between words", REWRITE),
    # -- lines
    "empty": FindingKind("note", "empty lines", "training uses them as sentences without words; --fix drops them", DROP),
    "long-line": FindingKind("note", "very long lines", "put one sentence per line, or raise --max-words"),
    "long-word": FindingKind("warning", "very long words", "check whether this is text; --fix drops the lines", DROP),
    "unsegmented": FindingKind("warning", "text without spaces between words", "split it into words or characters first"),
    "duplicate": FindingKind(
        "note", "repeated lines", "--fix keeps the first of each; --keep-duplicates keeps all", DROP
    ),
    "sorted": FindingKind("note", "lines sorted by length", "shuffle before taking dev lines, test lines or a sample"),
    "placeholder": FindingKind(
        "note", "a literal <unk>", "it counts as an unknown word whose spelling has probability 1"
    ),
    "markup": FindingKind("note", "markup or escaped characters", "remove or unescape it unless it should be learned"),
    "mixed-style": FindingKind("note", "two conventions for the same", "use one of them in all texts"),
    "odd-script": FindingKind("warning", "lines in another script", "probably another language; --fix drops them", DROP),
    "odd-language": FindingKind(
        "note", "lines spelled unlike the rest", "check for other languages; remove lines that are wrong"
    ),
    # -- pairs
    "line-counts": FindingKind(
        "error", "files with different numbers of lines", "line i of one must be the translation of line i of the other"
    ),
    "same-text": FindingKind(
        "error", "source and target are the same text", "check whether one file was given twice, or not translated"
    ),
    "empty-side": FindingKind("warning", "pairs with an empty side", "--fix drops them", DROP),
    "long-pair": FindingKind(
        "warning", "pairs with a very long side", "--fix drops them; --max-words sets the limit", DROP
    ),
    "length-ratio": FindingKind("warning", "pairs of very different lengths", "check them; --fix drops them", DROP),
    "duplicate-pair": FindingKind(
        "note", "repeated pairs", "--fix keeps the first of each; --keep-duplicates keeps all", DROP
    ),
    "shifted": FindingKind(
        "error", "runs of shifted lines", "find the missing or extra line; --fix drops the run", DROP
    ),
    "misaligned": FindingKind("warning", "pairs that look misaligned", "check them; --fix drops them", DROP),
    "nearly-misaligned": FindingKind(
        "warning", "pairs that look nearly misaligned", "--fix drops them with misaligned pairs", DROP
    ),
    "swapped": FindingKind("error", "pairs with source and target exchanged", "swap them; --fix drops them", DROP),
    "wrong-language": FindingKind("warning", "lines in the language of the other side", "--fix drops the pairs", DROP),
    "untranslated": FindingKind("warning", "pairs with the same words on both sides", "--fix drops them", DROP),
    # -- dev and train
    "overlap": FindingKind(
        "warning", "training lines that are also in dev", "dev scores would be too good; --fix drops them from train",
        DROP,
    ),
    "overlap-source": FindingKind(
        "note", "dev sources that are also training sources", "dev scores may be too good"
    ),
    "unknown-words": FindingKind(
        "warning", "many unknown words in dev", "use the same language, case and tokenisation as in train"
    ),
    "dev-differs": FindingKind("warning", "dev written unlike train", "prepare both in the same way"),
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One place with a problem. Lines and columns count from 1; a finding for a whole file has no line."""

    kind: str
    file: str
    line: int | None
    message: str
    column: int | None = None
    last_line: int | None = None  # of a run of lines
    part: str = "train"  # or "dev"
    index: int | None = None  # of the line in the document, counted from 0

    @property
    def info(self) -> FindingKind:
        return FINDING_KINDS[self.kind]

    @property
    def location(self) -> str:
        """`file:line:column`"""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "kind": self.kind,
            "severity": self.info.severity,
            "file": self.file,
            "line": self.line,
            "last_line": self.last_line,
            "column": self.column,
            "what": self.message,
            "advice": self.info.remedy,
            "fix": self.info.fix,
        }


@dataclass(frozen=True)
class CheckResult:
    """Findings, and remarks about checks that were not possible."""

    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()
    near: tuple[Finding, ...] = ()  # pairs just above the limit, which may fall below it when others are dropped


def group_by_kind(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Group findings by kind, the most severe kinds first, otherwise in the order of `FINDING_KINDS`."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.kind, []).append(finding)
    order = sorted(FINDING_KINDS, key=lambda kind: SEVERITIES.index(FINDING_KINDS[kind].severity))
    return {kind: groups[kind] for kind in order if kind in groups}
