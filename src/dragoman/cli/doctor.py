"""dragoman doctor"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli import options
from dragoman.cli.messages import info, status, suggest_command
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.doctor.examination import DoctorInput, DoctorReport
    from dragoman.doctor.findings import Finding
    from dragoman.doctor.fix import FixResult
    from dragoman.doctor.single_text import DoctorLimits

SHOWN = 5  # places of each kind


def _file(name: str, meaning: str) -> Any:
    return typer.Option(name, metavar="FILE", help=meaning, show_default=False)


def _field(side: str) -> Any:
    return typer.Option(f"--{side}-field", metavar="NAME", help=f"The same, of the {side} files.", show_default=False)


OutputOfFix = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="With --fix: the directory to write.", show_default=False),
]
Show = Annotated[int, typer.Option("--show", min=0, metavar="N", help="Places to show of each kind.")]
MaxWords = Annotated[int, typer.Option("--max-words", min=1, metavar="N", help="In a line.")]
MaxWordLength = Annotated[int, typer.Option("--max-word-length", min=1, metavar="N", help="Characters of a word.")]
MaxRatio = Annotated[
    float, typer.Option("--max-ratio", min=1, metavar="X", help="By which a translation's length may be unusual.")
]
KeepDuplicates = Annotated[
    bool, typer.Option("--keep-duplicates", help="Repeated lines are wanted: do not report or drop them.")
]


def doctor(
    text: Annotated[str | None, _file("--text", "A text, one sentence a line; - is standard input.")] = None,
    src: Annotated[str | None, _file("--src", "Of pairs: the source.")] = None,
    tgt: Annotated[str | None, _file("--tgt", "Of pairs: its translation.")] = None,
    dev_text: Annotated[str | None, _file("--dev-text", "Held-out text.")] = None,
    dev_src: Annotated[str | None, _file("--dev-src", "Held-out source.")] = None,
    dev_tgt: Annotated[str | None, _file("--dev-tgt", "Its translation.")] = None,
    field: options.Field = None,
    src_field: Annotated[str | None, _field("src")] = None,
    tgt_field: Annotated[str | None, _field("tgt")] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Write a cleaned copy to the directory -o.")] = False,
    output: OutputOfFix = None,
    show: Show = SHOWN,
    show_all: Annotated[bool, typer.Option("--all", help="Show all places.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with every finding.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if there are errors.")] = False,
    max_words: MaxWords = 250,
    max_word_length: MaxWordLength = 60,
    max_ratio: MaxRatio = 2.5,
    keep_duplicates: KeepDuplicates = False,
    no_cost: Annotated[bool, typer.Option("--no-cost", help="Do not estimate what training would cost.")] = False,
) -> None:
    """Check a text or sentence pairs before training.

    Finds encoding trouble, empty, overlong and repeated lines, pairs out of step or in the wrong language, dev lines
    that are in the training text, and says what training would cost.

    \b
    Example:
      dragoman doctor --text train.txt --dev-text dev.txt
      dragoman doctor --src train.de --tgt train.en --fix -o cleaned
    """
    from dragoman.doctor.fix import check_output_directory
    from dragoman.doctor.single_text import DoctorLimits

    if fix is (output is None):
        raise DataError("--fix and -o DIR go together: the cleaned copy is written to a directory of its own")
    if output is not None:
        check_output_directory(output)
    files = _files((text, src, tgt), (dev_text, dev_src, dev_tgt), (field, src_field, tgt_field))
    limits = DoctorLimits(max_words, max_word_length, max_ratio, keep_duplicates)
    report, fixed, places = _examine(files, limits, output, with_cost=not no_cost)
    if as_json:
        print(json.dumps({**report.as_dict(), "fix": _fix_dict(fixed)}, allow_nan=False, ensure_ascii=False))
    else:
        print("\n\n".join(_sections(report, len(report.findings) if show_all else show)))
    if fixed is not None:
        _tell_fix(fixed, output)
    _suggest_next(report, files, places)
    if strict and report.count("error"):
        raise typer.Exit(1)


def _examine(
    files: DoctorInput, limits: DoctorLimits, output: Path | None, *, with_cost: bool
) -> tuple[DoctorReport, FixResult | None, dict[str, Path]]:
    """The report; with a directory to write to, what was cleaned and where it went."""
    from dragoman.doctor.examination import examine_documents, read_documents
    from dragoman.doctor.fix import fix_documents, write_fixed

    with status("looking"):
        material = read_documents(files)
        report = examine_documents(material, limits, with_cost=with_cost)
        if output is None:
            return report, None, {}
        fixed = fix_documents(material, limits)
    return report, fixed, write_fixed(fixed, output)


def _files(
    train: tuple[str | None, ...], dev: tuple[str | None, ...], fields: tuple[str | None, str | None, str | None]
) -> DoctorInput:
    """One text or two, from what was typed."""
    from dragoman.doctor.examination import DoctorInput

    (text, src, tgt), (dev_text, dev_src, dev_tgt), (field, src_field, tgt_field) = train, dev, fields
    if (text is None) is (src is None) or (src is None) is not (tgt is None):
        raise DataError("give either --text FILE, or --src FILE and --tgt FILE")
    if text is not None:
        if dev_src is not None or dev_tgt is not None:
            raise DataError("--dev-src and --dev-tgt go with --src and --tgt; with --text give --dev-text")
        if src_field is not None or tgt_field is not None:
            raise DataError("--src-field and --tgt-field go with --src and --tgt; with --text give --field")
        return DoctorInput((text,), (dev_text,) if dev_text is not None else (), (field, None))
    if dev_text is not None or (dev_src is None) is not (dev_tgt is None):
        raise DataError("with --src and --tgt give both --dev-src and --dev-tgt, or neither")
    pair = tuple(path for path in (src, tgt) if path is not None)
    dev_pair = tuple(path for path in (dev_src, dev_tgt) if path is not None)
    return DoctorInput(pair, dev_pair, (src_field or field, tgt_field or field))


# -- the report -------------------------------------------------------------------------------------------------------


def _sections(report: DoctorReport, show: int) -> Iterator[str]:
    from dragoman.doctor.findings import group_by_kind

    yield _figures(report)
    if report.dev:
        yield _dev(report)
    if report.costs:
        yield _costs(report)
    for kind, found in group_by_kind(report.findings).items():
        yield "\n".join(_kind(kind, found, show))
    if report.remarks:
        yield "\n".join(report.remarks)
    counts = {severity: report.count(severity) for severity in ("error", "warning", "note")}
    told = ", ".join(f"{count:,} {name}{'s' if count != 1 else ''}" for name, count in counts.items())
    yield f"found: {told}" if report.findings else "found: nothing"


def _figures(report: DoctorReport) -> str:
    from dragoman.report.tables import format_table

    headers = ["file", "lines", "words", "types", "once", "characters", "words a line", "median", "95%", "longest"]
    rows = [
        [f.file, f.lines, f.tokens, f.types, f.once, f.characters, f.mean, f.median, f.percentile_95, f.longest]
        for f in report.files
    ]
    lines = [format_table(headers, rows)]
    if report.pairs:
        p = report.pairs
        untranslated = sum(found.kind == "untranslated" and found.part == "train" for found in report.findings)
        lines += [
            "",
            f"{p.pairs:,} pairs; {p.word_ratio:.2f} target words a source word, {p.character_ratio:.2f} characters a "
            f"character; {p.identical:,} with the same on both sides, {untranslated:,} of them untranslated; "
            f"{p.repeated:,} repeated; {p.other_target:,} with a source that came before with another target",
        ]
    return "\n".join(lines)


def _dev(report: DoctorReport) -> str:
    from dragoman.report.tables import format_table

    rows = [
        [
            d.file,
            d.lines,
            d.in_train,
            d.source_in_train,
            f"{100 * d.unknown_tokens:.2f}%",
            f"{100 * d.unknown_types:.2f}%",
        ]
        for d in report.dev
    ]
    return format_table(["dev", "lines", "in train", "source in train", "unknown words", "unknown types"], rows)


def _costs(report: DoctorReport) -> str:
    from dragoman.report.tables import format_table

    rows = [
        [c.file, c.ngrams, f"{c.memory / 1e6:,.0f}", f"{c.disk / 1e6:,.1f}", _duration(c.seconds), c.basis]
        for c in report.costs
    ]
    headers = ["to train the default n-gram model", "n-grams", "MB memory", "MB disk", "time", "basis"]
    return format_table(headers, rows)


def _duration(seconds: float) -> str:
    """In minutes, or in seconds if it is less than one.

    >>> _duration(0.83), _duration(150)
    ('0.8 seconds', '2.5 minutes')
    """
    return f"{seconds:.1f} seconds" if seconds < 60 else f"{seconds / 60:.1f} minutes"


def _kind(kind: str, found: list[Finding], show: int) -> Iterator[str]:
    about = found[0].info
    yield f"{about.severity}: {about.title} ({len(found):,}) [{kind}]"
    for finding in found[:show]:
        yield f"  {finding.location}: {finding.message}"
    if len(found) > show:
        yield f"  and {len(found) - show:,} more" + ("" if show else " (--show N shows some)")
    yield f"  -> {about.remedy}"


# -- after it ---------------------------------------------------------------------------------------------------------


def _fix_dict(fixed: FixResult | None) -> dict[str, object] | None:
    if fixed is None:
        return None
    return {
        "dropped": [{**line.finding.as_dict(), "texts": list(line.texts)} for line in fixed.dropped],
        "mended": [asdict(mended) for mended in fixed.rewritten],
        "kept": {document.name: len(document) for document in fixed.documents.documents},
    }


def _tell_fix(fixed: FixResult, output: Path | None) -> None:
    what = "pairs" if len(fixed.documents.train) == 2 else "lines"
    kept = f"{len(fixed.documents.train[0]):,} training {what} kept"
    places = sum(mended.lines or 0 for mended in fixed.rewritten)
    told = f"{places:,} place{'s' if places != 1 else ''}"
    whole = "".join(f", {mended.kind} of {mended.file}" for mended in fixed.rewritten if mended.lines is None)
    info(f"{output}: {kept}, {len(fixed.dropped):,} dropped (dropped.tsv), {told} mended{whole}")


def _suggest_next(report: DoctorReport, files: DoctorInput, places: dict[str, Path]) -> None:
    """Clean if there is something to clean, else train; nothing where neither would work."""
    from dragoman.doctor.fix import drops_everything

    if drops_everything(report) or _has(report, "same-text"):  # only a person can tell what went wrong there
        return
    names = ("--text",) if len(files.train) == 1 else ("--src", "--tgt")
    dev_names = tuple(name.replace("--", "--dev-") for name in names)
    if not places and _can_clean(report, files):
        given = [*zip(names, files.train, strict=True), *zip(dev_names, files.dev, strict=False)]
        fields = zip(("--field",) if len(names) == 1 else ("--src-field", "--tgt-field"), files.fields, strict=False)
        chosen = [(name, field) for name, field in fields if field is not None]
        suggest_command("doctor", *(word for pair in (*given, *chosen) for word in pair), "--fix", "-o", "cleaned")
        return
    if not _can_train(report, files, places):
        return
    text = files.train[-1]
    dev = ["--dev-text", str(places.get(files.dev[-1], files.dev[-1]))] if files.dev else []
    field = files.fields[len(files.train) - 1]
    suggest_command(
        "train", "ngram", "--text", places.get(text, text), *dev, *options.field_arguments(field), "-o", "model"
    )


def _can_clean(report: DoctorReport, files: DoctorInput) -> bool:
    return report.fixable and not _is_piped(files) and not _has(report, "line-counts")


def _can_train(report: DoctorReport, files: DoctorInput, places: dict[str, Path]) -> bool:
    """Whether there are words, in files, and no errors but those that were just mended."""
    from dragoman.doctor.findings import LEAVE

    wrong = [found for found in report.findings if found.info.severity == "error"]
    if places:
        wrong = [found for found in wrong if found.info.fix == LEAVE]
    words = report.files[len(files.train) - 1].tokens  # of the text that would be trained on
    return not wrong and words > 0 and (bool(places) or not _is_piped(files))


def _has(report: DoctorReport, kind: str) -> bool:
    return any(finding.kind == kind for finding in report.findings)


def _is_piped(files: DoctorInput) -> bool:
    return "-" in (*files.train, *files.dev)
