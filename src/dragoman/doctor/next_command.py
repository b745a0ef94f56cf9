"""The command to run after the doctor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dragoman.data.held_out import default_size
from dragoman.doctor.examination import DoctorInput, DoctorReport
from dragoman.doctor.findings import LEAVE, group_by_kind
from dragoman.doctor.fix import drops_everything
from dragoman.training.config import SUGGESTED_MINUTES

IGNORED_KINDS = frozenset(("bom", "crlf", "spaces"))  # training reads these lines as if they were fixed
SUBSTANTIAL_SHARE = 0.01  # of the lines, with findings that are only notes

Words = list[str | Path]


def next_command(report: DoctorReport, files: DoctorInput, written: dict[str, Path]) -> Words:
    """Return a command that exchanges files, cleans, divides or trains; nothing if none of them would work.

    A text is cleaned if that changes something substantial, divided if there is no dev text, and then trained on.

    Args:
        written: the cleaned copy of each file, if there is one.
    """
    kinds = {finding.kind for finding in report.findings}
    if drops_everything(report) or "same-text" in kinds:
        return []
    if exchanged := _exchange_files(files, kinds):
        return ["doctor", *_file_options(exchanged, {})]
    is_stdin = "-" in (*files.train, *files.dev)
    options = _file_options(files, written)
    if not written and not is_stdin and _needs_fix(report):
        return ["doctor", *options, "--fix", "-o", "cleaned"]
    is_sound = not report.remaining("error", is_fixed=bool(written))
    if (is_stdin and not written) or not is_sound or not report.files[len(files.train) - 1].tokens:
        return []
    if not files.dev and default_size(report.files[0].lines) > 0:
        return ["split", *options, "-o", "data"]
    if len(files.train) == 2:
        return ["train", "translator", *options, "-o", "model", "--minutes", str(SUGGESTED_MINUTES)]
    return ["train", "ngram", *options, "-o", "model"]


def _needs_fix(report: DoctorReport) -> bool:
    """Whether `--fix` would change errors, warnings or many lines."""
    lines = sum(file.lines for file in report.files)
    for kind, findings in group_by_kind(report.findings).items():
        fixed = sum(finding.fix != LEAVE for finding in findings)
        is_note = findings[0].info.severity == "note"
        if fixed and kind not in IGNORED_KINDS and (not is_note or fixed >= SUBSTANTIAL_SHARE * lines):
            return report.can_pair
    return False


def _exchange_files(files: DoctorInput, kinds: set[str]) -> DoctorInput | None:
    """Return the files in the right order if source and target of train or dev are exchanged, otherwise None."""
    if "swapped-names" in kinds and files.train[0] != files.train[1]:
        return replace(files, train=files.train[::-1], fields=files.fields[::-1])
    if "swapped-dev" in kinds and files.dev[0] != files.dev[1]:
        return replace(files, dev=files.dev[::-1])
    return None


def _file_options(files: DoctorInput, written: dict[str, Path]) -> Words:
    """Return the options that give these files, or their cleaned copies."""
    names = ("src", "tgt") if len(files.train) == 2 else ("text",)
    given: list[tuple[str, str | Path | None]] = []
    for prefix, paths in (("", files.train), ("dev-", files.dev)):
        copies = [_written_as(path, name, written) for name, path in zip(names, paths, strict=False)]
        if len(copies) == 2 and copies[0] == copies[1] and files.fields == (None, None):
            given.append((f"{prefix}pairs", copies[0]))
        else:
            given += [(f"{prefix}{name}", copy) for name, copy in zip(names, copies, strict=False)]
    if len(names) == 2:
        given += zip(("src-field", "tgt-field"), files.fields, strict=True)
        given += zip(("src-lang", "tgt-lang"), files.languages, strict=True)
    else:
        given.append(("field", files.fields[0]))
    return [word for name, value in given if value is not None for word in (f"--{name}", value)]


def _written_as(file: str, side: str, written: dict[str, Path]) -> str | Path:
    """Return the cleaned copy of a file, or of one side of a file with both; the file if there is none."""
    return written.get(file) or written.get(f"{file}.{side}") or file
