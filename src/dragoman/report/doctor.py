"""The report of `dragoman doctor` as text, and what its fix did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from dragoman.doctor.examination import DoctorReport
from dragoman.doctor.findings import SEVERITIES, Finding, group_by_kind
from dragoman.doctor.fix import FixResult
from dragoman.report.tables import format_table


def doctor_text(report: DoctorReport, max_places: int) -> str:
    """Return statistics and findings, with at most `max_places` places of each kind of finding."""
    findings = group_by_kind(report.findings)
    counts = ", ".join(
        f"{count:,} {severity}{'s' if count != 1 else ''}"
        for severity in SEVERITIES
        if (count := report.count(severity)) or findings
    )
    sections = [
        _statistics(report),
        _dev_table(report) if report.dev else "",
        _cost_table(report) if report.costs else "",
        _translator_cost_table(report) if report.translator_costs else "",
        *("\n".join(_finding_lines(kind, of_kind, max_places)) for kind, of_kind in findings.items()),
        "\n".join(report.remarks),
        counts or "no problems",
    ]
    return "\n\n".join(filter(None, sections))


def _statistics(report: DoctorReport) -> str:
    headers = ["file", "lines", "words", "types", "once", "characters", "words/line", "median", "95%", "longest"]
    rows = [
        [f.file, f.lines, f.tokens, f.types, f.once, f.characters, f.mean, f.median, f.percentile_95, f.longest]
        for f in report.files
    ]
    table, pairs = format_table(headers, rows), report.pairs
    if not pairs:
        return table
    untranslated = sum(finding.kind == "untranslated" and finding.part == "train" for finding in report.findings)
    counts = {
        "the same on both sides": pairs.identical,
        "untranslated": untranslated,
        "repeated": pairs.repeated,
        "with another translation of an earlier source": pairs.other_target,
    }
    listed = "".join(f"; {count:,} {name}" for name, count in counts.items() if count)
    ratios = f"{pairs.word_ratio:.2f} target words per source word, {pairs.character_ratio:.2f} by characters"
    return f"{table}\n\n{pairs.pairs:,} pairs; {ratios}{listed}"


def _dev_table(report: DoctorReport) -> str:
    rows: list[list[object]] = []
    for dev in report.dev:
        unknown = (f"{100 * share:.2f}%" for share in (dev.unknown_tokens, dev.unknown_types))
        rows.append([dev.file, dev.lines, dev.in_train, dev.source_in_train, dev.nearly_in_train, *unknown])
    headers = ["dev", "lines", "in train", "source in train", "nearly in train", "unknown words", "unknown types"]
    return format_table(headers, rows)


def _cost_table(report: DoctorReport) -> str:
    rows: list[list[object]] = []
    for cost in report.costs:
        memory, disk = f"{cost.memory / 1e6:,.0f}", f"{cost.disk / 1e6:,.1f}"
        time = f"{cost.seconds:.1f} seconds" if cost.seconds < 60 else f"{cost.seconds / 60:.1f} minutes"
        rows.append([cost.file, cost.ngrams, memory, disk, time, cost.basis])
    headers = ["training the default n-gram model", "n-grams", "MB memory", "MB disk", "time", "basis"]
    return format_table(headers, rows)


def _translator_cost_table(report: DoctorReport) -> str:
    rows: list[list[object]] = [[f"{cost.minutes:g}", cost.plan] for cost in report.translator_costs]
    return format_table(["--minutes", "translator that is trained in this time"], rows)


def _finding_lines(kind: str, findings: Sequence[Finding], max_places: int) -> Iterator[str]:
    info = findings[0].info
    yield f"{info.severity}: {info.title} ({len(findings):,}) [{kind}]"
    for finding in findings[:max_places]:
        yield f"  {finding.location}: {finding.description}"
    if len(findings) > max_places:
        yield f"  and {len(findings) - max_places:,} more" + ("" if max_places else " (--show N shows some)")
    yield f"  -> {info.remedy}"


def fix_as_dict(fixed: FixResult) -> dict[str, object]:
    """Return plain values: the lines that were dropped, rewritten and kept."""
    return {
        "dropped": [{**line.finding.as_dict(), "texts": list(line.texts)} for line in fixed.dropped],
        "mended": [asdict(rewritten) for rewritten in fixed.rewritten],
        "kept": {document.name: len(document) for document in fixed.documents.documents},
    }


def fix_text(fixed: FixResult) -> str:
    """Return a line about the lines that were kept, dropped and fixed."""
    unit = "pairs" if len(fixed.documents.train) == 2 else "lines"
    places = sum(rewritten.lines or 0 for rewritten in fixed.rewritten)
    files = "".join(f", {change.kind} of {change.file}" for change in fixed.rewritten if change.lines is None)
    return (
        f"{len(fixed.documents.train[0]):,} {unit} kept, {len(fixed.dropped):,} dropped (dropped.tsv), "
        f"{places:,} place{'s' if places != 1 else ''} fixed{files}"
    )
