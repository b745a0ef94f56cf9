"""The kinds of findings of the doctor: each with its severity, a remedy and what `--fix` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SEVERITIES = ("error", "warning", "note")  # training fails or is wrong; training may suffer; good to know
REWRITE, DROP, LEAVE = "mend", "drop", "leave"  # what `--fix` does with a line
PAIR, EXCHANGE = "pair", "exchange"  # with all lines after a shift; with the sides of some pairs


@dataclass(frozen=True)
class FindingKind:
    """A kind of problem in a text."""

    severity: str
    title: str  # heading of the list of findings
    remedy: str
    fix: str = LEAVE


KindTable = dict[str, tuple[str, str] | tuple[str, str, str]]  # title, remedy and fix of each kind

ERRORS: KindTable = {
    "utf-16": ("UTF-16 or UTF-32 instead of UTF-8", "--fix or iconv -t UTF-8 converts it", REWRITE),
    "undecodable": (
        "bytes that are not text",
        "find out the encoding and convert the file; --fix drops the lines",
        DROP,
    ),
    "not-utf8": ("Windows-1252 (Latin-1) instead of UTF-8", "--fix or iconv -f CP1252 -t UTF-8 converts it", REWRITE),
    "cr-lines": ("lines end in CR only", "training would read a single line; --fix ends lines in LF", REWRITE),
    "nul": ("NUL characters", "training rejects them; --fix removes them", REWRITE),
    "no-field": ("rows without the column or field", "correct the file; --fix drops the rows", DROP),
    "not-json": ("rows that are not valid JSON", "correct the file; --fix drops the rows", DROP),
    "reserved": ("reserved words <s> or </s>", "training rejects them; --fix removes them", REWRITE),
    "line-counts": (
        "files with different numbers of lines",
        "line i of one must be the translation of line i of the other; find the missing or extra lines. If their place is "
        "known, --fix pairs the lines again",
        PAIR,
    ),
    "unpaired": (
        "lines that do not belong together",
        "check whether these are the right two files, and whether one was shuffled or sorted without the other",
    ),
    "line-shift": (
        "lines shifted against each other from some line on",
        "find the missing or extra line, or let --fix pair the lines again",
        PAIR,
    ),
    "swapped-lines": ("runs of pairs with source and target exchanged", "--fix exchanges them", EXCHANGE),
    "swapped-dev": ("dev with source and target exchanged", "exchange the two dev files (or the two training files)"),
    "swapped-names": (
        "source and target exchanged",
        "exchange --src and --tgt, or correct the names, columns or languages that are given",
    ),
    "dev-in-train": (
        "most of dev is in train",
        "dev scores would say little about new sentences; divide the text with dragoman split, or let --fix drop these "
        "lines from train",
        DROP,
    ),
    "same-text": ("source and target are the same text", "check whether one file was given twice, or not translated"),
    "shifted": ("runs of shifted lines", "find the missing or extra line; --fix drops the run", DROP),
    "swapped": ("single pairs with source and target exchanged", "exchange them; --fix drops them", DROP),
}
WARNINGS: KindTable = {
    "sorted-sides": (
        "both sides in alphabetical order",
        "if each was sorted without the other, the pairs are lost: use the files from before sorting",
    ),
    "mojibake": ("UTF-8 that was decoded twice", "--fix decodes it correctly", REWRITE),
    "replacement": ("U+FFFD, which replaces a lost character", "get the original text; --fix drops the lines", DROP),
    "control": ("control characters", "--fix removes them", REWRITE),
    "separator": (
        "unusual line separators in a line",
        "they do not end a line here; --fix replaces them by spaces",
        REWRITE,
    ),
    "invisible": (
        "invisible characters (zero width, bidi)",
        "they make equal words differ; --fix removes them",
        REWRITE,
    ),
    "mixed-forms": ("words in two Unicode normal forms", "--fix normalises them", REWRITE),
    "long-word": ("very long words", "check whether this is text; --fix drops the lines", DROP),
    "unsegmented": ("text without spaces between words", "split it into words or characters first"),
    "odd-script": ("lines in another script", "probably another language; --fix drops them", DROP),
    "empty-side": ("pairs with an empty side", "--fix drops them", DROP),
    "long-pair": ("pairs with a very long side", "--fix drops them; --max-words sets the limit", DROP),
    "length-ratio": (
        "pairs of very different lengths",
        "check them: some may be free translations; --fix drops only the most different ones",
        DROP,
    ),
    "misaligned": (
        "pairs that look misaligned",
        "check them: some may be free translations; --fix drops only those that are most likely wrong",
        DROP,
    ),
    "wrong-language": ("lines in the language of the other side", "--fix drops the pairs", DROP),
    "untranslated": ("pairs with the same words on both sides", "--fix drops them", DROP),
    "overlap": (
        "training lines that are also in dev",
        "dev scores would be too good; --fix drops them from train",
        DROP,
    ),
    "unknown-words": ("many unknown words in dev", "use the same language, case and tokenisation as in train"),
    "dev-differs": ("dev and train are written differently", "prepare both in the same way"),
}
NOTES: KindTable = {
    "odd-space": ("unusual spaces", "words are split at spaces and TABs only; --fix replaces them by spaces", REWRITE),
    "not-nfc": ("text not in Unicode normal form C", "--fix normalises it", REWRITE),
    "bom": ("byte order mark", "ignored here, but not by all programs; --fix removes it", REWRITE),
    "crlf": ("lines end in CR LF", "ignored here; --fix ends lines in LF", REWRITE),
    "spaces": ("extra spaces", "ignored here; --fix leaves one space between words", REWRITE),
    "empty": ("empty lines", "training uses them as sentences without words; --fix drops them", DROP),
    "long-line": ("very long lines", "put one sentence per line, or raise --max-words"),
    "duplicate": ("repeated lines", "--fix keeps the first of each; --keep-duplicates keeps all", DROP),
    "sorted": ("lines sorted by length", "shuffle before taking dev lines, test lines or a sample"),
    "placeholder": ("a literal <unk>", "it counts as an unknown word whose spelling has probability 1"),
    "markup": ("markup or escaped characters", "remove or unescape it unless it should be learned"),
    "mixed-style": ("two conventions for the same thing", "use one of them in all texts"),
    "odd-language": (
        "lines with unusual spelling",
        "check whether they are in another language, and remove those that are",
    ),
    "duplicate-pair": ("repeated pairs", "--fix keeps the first of each; --keep-duplicates keeps all", DROP),
    "overlap-source": ("dev sources that are also training sources", "dev scores may be too good"),
    "overlap-near": (
        "dev lines that are nearly the same as training lines",
        "dev scores may be too good; dragoman split divides a text without such lines",
    ),
}
WITHOUT_VALUE_KINDS = frozenset(("no-field", "not-json"))  # rows without the column or field that is read
FINDING_KINDS = {
    kind: FindingKind(severity, *texts)
    for severity, kinds in zip(SEVERITIES, (ERRORS, WARNINGS, NOTES), strict=True)
    for kind, texts in kinds.items()
}


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
    side: str = ""  # column or field of a file with both sides
    is_kept: bool = False  # by `--fix`, although it drops other lines with findings of this kind

    @property
    def info(self) -> FindingKind:
        return FINDING_KINDS[self.kind]

    @property
    def fix(self) -> str:
        """What `--fix` does."""
        return LEAVE if self.is_kept else self.info.fix

    @property
    def document(self) -> str:
        """The file, and which side of it: `pairs.tsv column 2`"""
        return f"{self.file} {self.side}".rstrip()

    @property
    def location(self) -> str:
        """`file:line:column`"""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)

    @property
    def description(self) -> str:
        """The message, with the column or field that it is about."""
        return f"{self.side}: {self.message}" if self.side else self.message

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "kind": self.kind,
            "severity": self.info.severity,
            "file": self.file,
            "line": self.line,
            "last_line": self.last_line,
            "column": self.column,
            "what": self.description,
            "advice": self.info.remedy,
            "fix": self.fix,
        }


@dataclass(frozen=True)
class CheckResult:
    """Findings, and remarks about checks that were not possible."""

    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()


def group_by_kind(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Group findings by kind, in the order of `FINDING_KINDS`."""
    groups: dict[str, list[Finding]] = {kind: [] for kind in FINDING_KINDS}
    for finding in findings:
        groups[finding.kind].append(finding)
    return {kind: group for kind, group in groups.items() if group}
