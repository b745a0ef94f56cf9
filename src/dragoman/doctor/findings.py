"""What the doctor can find: every kind once, with how bad it is, what to do about it and what `--fix` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

SEVERITIES = ("error", "warning", "note")  # training would fail or be wrong; it may suffer; good to know
MEND, DROP, LEAVE = "mend", "drop", "leave"  # what `--fix` does with a line: rewrite it, leave it out, nothing


@dataclass(frozen=True)
class Kind:
    """One sort of trouble."""

    severity: str
    title: str  # what it is, as the heading of a list of places
    advice: str
    fix: str = LEAVE


KINDS = {
    # -- letters and bytes
    "utf-16": Kind("error", "not UTF-8 but UTF-16 or UTF-32", "convert it: --fix does, or iconv -t UTF-8", MEND),
    "undecodable": Kind(
        "error", "bytes that are no text", "find out the encoding and convert the file; --fix drops such lines", DROP
    ),
    "not-utf8": Kind(
        "error", "not UTF-8: Windows-1252 (Latin-1) bytes", "--fix rewrites them; or iconv -f CP1252 -t UTF-8", MEND
    ),
    "cr-lines": Kind("error", "lines end in CR alone", "training would see one line; --fix ends them in LF", MEND),
    "nul": Kind("error", "NUL characters", "training refuses them; --fix removes them", MEND),
    "no-field": Kind("error", "rows without the field", "mend the file; --fix drops such rows", DROP),
    "not-json": Kind("error", "rows that cannot be read as JSON", "mend the file; --fix drops such rows", DROP),
    "reserved": Kind("error", "reserved words <s> or </s>", "training refuses them; --fix removes the words", MEND),
    "mojibake": Kind("warning", "UTF-8 that was decoded twice", "--fix decodes it back", MEND),
    "replacement": Kind(
        "warning", "U+FFFD, where a letter was lost", "get the text from its source again; --fix drops such lines", DROP
    ),
    "control": Kind("warning", "control characters", "--fix removes them", MEND),
    "separator": Kind(
        "warning", "unusual line separators in a line", "dragoman does not split there; --fix makes them spaces", MEND
    ),
    "invisible": Kind(
        "warning", "invisible characters (zero width, bidi)", "equal words differ by them; --fix removes them", MEND
    ),
    "odd-space": Kind(
        "note", "unusual spaces", "dragoman splits at space and TAB alone; --fix makes them plain spaces", MEND
    ),
    "not-nfc": Kind("note", "not in Unicode normal form C", "--fix composes the letters", MEND),
    "mixed-forms": Kind("warning", "words written in two Unicode normal forms", "--fix makes all NFC", MEND),
    "bom": Kind("note", "byte order mark", "harmless here, troublesome elsewhere; --fix removes it", MEND),
    "crlf": Kind("note", "lines end in CR LF", "harmless here; --fix ends them in LF", MEND),
    "spaces": Kind("note", "untidy spaces", "harmless here; --fix leaves one space between words", MEND),
    # -- lines
    "empty": Kind("note", "empty lines", "each is learned as a sentence without words; --fix drops them", DROP),
    "long-line": Kind("note", "overlong lines", "one sentence a line? split paragraphs, or raise --max-words"),
    "long-word": Kind("warning", "absurdly long words", "is it text? --fix drops such lines", DROP),
    "unsegmented": Kind("warning", "words hardly separated", "put spaces between words (or characters) first"),
    "duplicate": Kind(
        "note", "lines that came before", "--fix keeps the first of each; --keep-duplicates keeps all", DROP
    ),
    "sorted": Kind("note", "lines sorted by length", "shuffle before cutting off dev or test lines, or a sample"),
    "placeholder": Kind(
        "note", "a literal <unk>", "it is the class of unknown words itself: its identity will cost nothing"
    ),
    "markup": Kind("note", "markup or escaped characters", "unescape or remove it if it is not meant to be learned"),
    "mixed-style": Kind("note", "two ways of writing the same", "use one of them, in training and test text alike"),
    "odd-script": Kind("warning", "lines in another script", "another language? --fix drops them", DROP),
    "odd-language": Kind(
        "note", "lines spelled unlike the rest", "another language, or no sentence? look, then remove what is wrong"
    ),
    # -- pairs
    "line-counts": Kind("error", "files of different line counts", "line i of one must translate line i of the other"),
    "same-text": Kind(
        "error", "the two sides are the same text", "was one file given twice, or was most of it never translated?"
    ),
    "empty-side": Kind("warning", "pairs with an empty side", "--fix drops them", DROP),
    "long-pair": Kind("warning", "pairs with an overlong side", "--fix drops them; --max-words sets the limit", DROP),
    "length-ratio": Kind("warning", "pairs of very different lengths", "look at them; --fix drops them", DROP),
    "duplicate-pair": Kind(
        "note", "pairs that came before", "--fix keeps the first of each; --keep-duplicates keeps all", DROP
    ),
    "shifted": Kind("error", "runs of lines out of step", "find the missing or extra line; --fix drops the run", DROP),
    "misaligned": Kind("warning", "pairs that look misaligned", "look at them; --fix drops them", DROP),
    "nearly-misaligned": Kind("warning", "pairs that are nearly misaligned", "--fix drops them with others", DROP),
    "swapped": Kind("error", "pairs with the two languages exchanged", "swap them back; --fix drops them", DROP),
    "wrong-language": Kind("warning", "lines in the other side's language", "--fix drops the pairs", DROP),
    "untranslated": Kind("warning", "pairs with the same words on both sides", "--fix drops them", DROP),
    # -- dev against train
    "overlap": Kind(
        "warning", "training lines that are in dev too", "figures on dev will flatter; --fix takes them out of train",
        DROP,
    ),
    "overlap-source": Kind("note", "dev sources that are training sources", "figures on dev may flatter"),
    "unknown-words": Kind("warning", "many dev words are unknown", "same language, case, tokenisation as in train?"),
    "dev-differs": Kind("warning", "dev is written unlike train", "prepare both the same way"),
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One place where something was found. Lines and columns count from 1; a whole file has no line."""

    kind: str
    file: str
    line: int | None
    what: str
    column: int | None = None
    last_line: int | None = None  # of a run
    part: str = "train"  # or "dev"
    index: int | None = None  # of the line among those that were read, counted from 0

    @property
    def about(self) -> Kind:
        return KINDS[self.kind]

    @property
    def place(self) -> str:
        """`file:line`, as compilers say it."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)

    def as_dict(self) -> dict[str, Any]:
        about = self.about
        return {
            "kind": self.kind,
            "severity": about.severity,
            "file": self.file,
            "line": self.line,
            "last_line": self.last_line,
            "column": self.column,
            "what": self.what,
            "advice": about.advice,
            "fix": about.fix,
        }


def grouped(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Findings by kind, the worst kinds first, otherwise in the order of `KINDS`."""
    by_kind: dict[str, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    order = sorted(KINDS, key=lambda kind: SEVERITIES.index(KINDS[kind].severity))
    return {kind: by_kind[kind] for kind in order if kind in by_kind}
