"""The command to run after the doctor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dragoman.doctor.examination import DoctorInput, DoctorReport
from dragoman.doctor.fix import drops_everything
from dragoman.doctor.training_cost import SUGGESTED_MINUTES

Words = list[str | Path]


def next_command(report: DoctorReport, files: DoctorInput, written: dict[str, Path]) -> Words:
    """Return a command that exchanges files, cleans the text or trains; nothing if none of them would work.

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
    if not written and report.fixable and not is_stdin:
        return ["doctor", *options, "--fix", "-o", "cleaned"]
    is_sound = not report.remaining("error", is_fixed=bool(written))
    if (written or not is_stdin) and is_sound and report.files[len(files.train) - 1].tokens > 0:
        if len(files.train) == 2:
            return ["train", "translator", *options, "-o", "model", "--minutes", str(SUGGESTED_MINUTES)]
        return ["train", "ngram", *options, "-o", "model"]
    return []


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
