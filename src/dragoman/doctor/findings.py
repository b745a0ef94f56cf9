"""What the doctor can find: every kind once, with how bad it is, what to do about it and what `--fix` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SEVERITIES = ("error", "warning", "note")  # training would fail or be wrong; it may suffer; good to know
REWRITE, DROP, LEAVE = "mend", "drop", "leave"  # what `--fix` does with a line: rewrite it, leave it out, nothing


@dataclass(frozen=True)
class FindingKind:
    """One sort of trouble."""

    severity: str
    title: str  # what it is, as the heading of a list of places
    remedy: str
    fix: str = LEAVE


FINDING_KINDS = {
    # -- letters and bytes
    "utf-16": FindingKind("error", "not UTF-8 but UTF-16 or UTF-32", "convert it: --fix does, or iconv -t UTF-8", REWRITE),
    "undecodable": FindingKind(
        "error", "bytes that are no text", "find out the encoding and convert the file; --fix drops such lines", DROP
    ),
    "not-utf8": FindingKind(
        "error", "not UTF-8: Windows-1252 (Latin-1) bytes", "--fix rewrites them; or iconv -f CP1252 -t UTF-8", REWRITE
    ),
    "cr-lines": FindingKind("error", "lines end in CR alone", "training would see one line; --fix ends them in LF", REWRITE),
    "nul": FindingKind("error", "NUL characters", "training refuses them; --fix removes them", REWRITE),
    "no-field": FindingKind("error", "rows without the field", "mend the file; --fix drops such rows", DROP),
    "not-json": FindingKind("error", "rows that cannot be read as JSON", "mend the file; --fix drops such rows", DROP),
    "reserved": FindingKind("error", "reserved words <s> or </s>", "training refuses them; --fix removes the words", REWRITE),
    "mojibake": FindingKind("warning", "UTF-8 that was decoded twice", "--fix decodes it back", REWRITE),
    "replacement": FindingKind(
        "warning", "U+FFFD, where a letter was lost", "get the text from its source again; --fix drops such lines", DROP
    ),
    "control": FindingKind("warning", "control characters", "--fix removes them", REWRITE),
    "separator": FindingKind(
        "warning", "unusual line separators in a line", "dragoman does not split there; --fix makes them spaces", REWRITE
    ),
    "invisible": FindingKind(
        "warning", "invisible characters (zero width, bidi)", "equal words differ by them; --fix removes them", REWRITE
    ),
    "odd-space": FindingKind(
        "note", "unusual spaces", "dragoman splits at space and TAB alone; --fix makes them plain spaces", REWRITE
    ),
    "not-nfc": FindingKind("note", "not in Unicode normal form C", "--fix composes the letters", REWRITE),
    "mixed-forms": FindingKind("warning", "words written in two Unicode normal forms", "--fix makes all NFC", REWRITE),
    "bom": FindingKind("note", "byte order mark", "harmless here, troublesome elsewhere; --fix removes it", REWRITE),
    "crlf": FindingKind("note", "lines end in CR LF", "harmless here; --fix ends them in LF", REWRITE),
    "spaces": FindingKind("note", "untidy spaces", "harmless here; --fix leaves one space between words", REWRITE),
    # -- lines
    "empty": FindingKind("note", "empty lines", "each is learned as a sentence without words; --fix drops them", DROP),
    "long-line": FindingKind("note", "overlong lines", "one sentence a line? split paragraphs, or raise --max-words"),
    "long-word": FindingKind("warning", "absurdly long words", "is it text? --fix drops such lines", DROP),
    "unsegmented": FindingKind("warning", "words hardly separated", "put spaces between words (or characters) first"),
    "duplicate": FindingKind(
        "note", "lines that came before", "--fix keeps the first of each; --keep-duplicates keeps all", DROP
    ),
    "sorted": FindingKind("note", "lines sorted by length", "shuffle before cutting off dev or test lines, or a sample"),
    "placeholder": FindingKind(
        "note", "a literal <unk>", "it is the class of unknown words itself: its identity will cost nothing"
    ),
    "markup": FindingKind("note", "markup or escaped characters", "unescape or remove it if it is not meant to be learned"),
    "mixed-style": FindingKind("note", "two ways of writing the same", "use one of them, in training and test text alike"),
    "odd-script": FindingKind("warning", "lines in another script", "another language? --fix drops them", DROP),
    "odd-language": FindingKind(
        "note", "lines spelled unlike the rest", "another language, or no sentence? look, then remove what is wrong"
    ),
    # -- pairs
    "line-counts": FindingKind("error", "files of different line counts", "line i of one must translate line i of the other"),
    "same-text": FindingKind(
        "error", "the two sides are the same text", "was one file given twice, or was most of it never translated?"
    ),
    "empty-side": FindingKind("warning", "pairs with an empty side", "--fix drops them", DROP),
    "long-pair": FindingKind("warning", "pairs with an overlong side", "--fix drops them; --max-words sets the limit", DROP),
    "length-ratio": FindingKind("warning", "pairs of very different lengths", "look at them; --fix drops them", DROP),
    "duplicate-pair": FindingKind(
        "note", "pairs that came before", "--fix keeps the first of each; --keep-duplicates keeps all", DROP
    ),
    "shifted": FindingKind("error", "runs of lines out of step", "find the missing or extra line; --fix drops the run", DROP),
    "misaligned": FindingKind("warning", "pairs that look misaligned", "look at them; --fix drops them", DROP),
    "nearly-misaligned": FindingKind("warning", "pairs that are nearly misaligned", "--fix drops them with others", DROP),
    "swapped": FindingKind("error", "pairs with the two languages exchanged", "swap them back; --fix drops them", DROP),
    "wrong-language": FindingKind("warning", "lines in the other side's language", "--fix drops the pairs", DROP),
    "untranslated": FindingKind("warning", "pairs with the same words on both sides", "--fix drops them", DROP),
    # -- dev against train
    "overlap": FindingKind(
        "warning", "training lines that are in dev too", "figures on dev will flatter; --fix takes them out of train",
        DROP,
    ),
    "overlap-source": FindingKind("note", "dev sources that are training sources", "figures on dev may flatter"),
    "unknown-words": FindingKind("warning", "many dev words are unknown", "same language, case, tokenisation as in train?"),
    "dev-differs": FindingKind("warning", "dev is written unlike train", "prepare both the same way"),
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One place where something was found. Lines and columns count from 1; a whole file has no line."""

    kind: str
    file: str
    line: int | None
    message: str
    column: int | None = None
    last_line: int | None = None  # of a run
    part: str = "train"  # or "dev"
    index: int | None = None  # of the line among those that were read, counted from 0

    @property
    def info(self) -> FindingKind:
        return FINDING_KINDS[self.kind]

    @property
    def location(self) -> str:
        """`file:line`, as compilers say it."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)

    def as_dict(self) -> dict[str, Any]:
        about = self.info
        return {
            "kind": self.kind,
            "severity": about.severity,
            "file": self.file,
            "line": self.line,
            "last_line": self.last_line,
            "column": self.column,
            "what": self.message,
            "advice": about.remedy,
            "fix": about.fix,
        }


def group_by_kind(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings by kind, the worst kinds first, otherwise in the order of `KINDS`."""
    by_kind: dict[str, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    order = sorted(FINDING_KINDS, key=lambda kind: SEVERITIES.index(FINDING_KINDS[kind].severity))
    return {kind: by_kind[kind] for kind in order if kind in by_kind}
