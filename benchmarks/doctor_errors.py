"""Errors of whole texts that the doctor finds: in corpora with one known error each, and in the originals.

    python benchmarks/doctor_errors.py SOURCE TARGET [SOURCE TARGET ...] [--sizes 300 1000 20000] [--json FILE]

Each corpus is two files, or one TSV file given as FILE:1 FILE:2 (columns). Of its first N lines, a tenth (at most 500)
is dev. The errors: one side shuffled, also of dev only; one target line deleted at 30 %, and the last source line, so
that the counts are equal; sides exchanged in the last 40 %, and in dev; dev taken from train. The table shows whether
the expected error is found and nothing else, for a deleted line how far the reported line is from it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from dragoman.doctor.arrangement import DoctorDocuments, arrange
from dragoman.doctor.documents import Document, FileLayout
from dragoman.doctor.findings import Finding
from dragoman.doctor.pair_checks import overlap_findings
from dragoman.report.tables import format_table
from texts_and_results import write_json

DELETED_AT, EXCHANGED_FROM = 0.3, 0.6
Texts = list[list[str]]  # source and target
CASES = ("original", "shuffled", "dev shuffled", "line deleted", "exchanged", "dev exchanged", "dev in train")


def read_lines(name: str) -> list[str]:
    path, _, column = name.partition(":")
    lines = Path(path).read_text(encoding="utf-8").split("\n")[:-1]
    return [line.split("\t")[int(column) - 1] for line in lines] if column else lines


def with_error(case: str, train: Texts, dev: Texts, generator: np.random.Generator) -> tuple[Texts, Texts]:
    """Return copies of train and dev with one error."""
    size, dev_size = len(train[0]), len(dev[0])
    if case == "shuffled":
        return [train[0], [train[1][line] for line in generator.permutation(size)]], dev
    if case == "dev shuffled":
        return train, [dev[0], [dev[1][line] for line in generator.permutation(dev_size)]]
    if case == "line deleted":
        place = int(DELETED_AT * size)
        return [train[0][:-1], train[1][:place] + train[1][place + 1 :]], dev
    if case == "exchanged":
        first = int(EXCHANGED_FROM * size)
        return [train[0][:first] + train[1][first:], train[1][:first] + train[0][first:]], dev
    if case == "dev exchanged":
        return train, [dev[1], dev[0]]
    if case == "dev in train":
        lines = generator.permutation(size)[:dev_size].tolist()
        return train, [[side[line] for line in lines] for side in train]
    return train, dev


def find_errors(train: Texts, dev: Texts) -> list[Finding]:
    """Return the errors of whole texts that the doctor reports."""
    documents = DoctorDocuments(*(
        tuple(
            Document(f"{part}.{name}", part, lines, np.arange(len(lines)), FileLayout(name, "text", "", lines))
            for name, lines in zip(("source", "target"), sides, strict=True)
        )
        for part, sides in (("train", train), ("dev", dev))
    ))  # fmt: skip
    arranged = arrange(documents)
    findings = list(arranged.findings)
    if arranged.documents.train and arranged.documents.dev:
        findings += overlap_findings(arranged.documents.train, arranged.documents.dev)
    return [finding for finding in findings if finding.info.severity == "error"]


def outcome(case: str, errors: list[Finding], size: int) -> str:
    """Describe what was found: `yes` for the expected error only; for the original, `none` is right."""
    expected = {
        "shuffled": ("unpaired", "train"),
        "dev shuffled": ("unpaired", "dev"),
        "line deleted": ("out-of-step", "train"),
        "exchanged": ("swapped-lines", "train"),
        "dev exchanged": ("swapped-dev", "dev"),
        "dev in train": ("dev-in-train", "dev"),
    }
    kinds = [(error.kind, error.part) for error in errors]
    if not errors:
        return "none"
    if kinds != [expected.get(case)]:
        return " ".join(kind for kind, _ in kinds)[:40]
    if case == "line deleted" and errors[0].line is not None:
        return f"{errors[0].line - 1 - int(DELETED_AT * size):+d} lines"
    return "yes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="source and target of each corpus")
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1000, 20_000], help="lines of each corpus")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    start, rows = time.perf_counter(), []
    for source, target in zip(arguments.files[::2], arguments.files[1::2], strict=True):
        texts = [read_lines(source), read_lines(target)]
        for size in sorted({min(size, len(texts[0])) for size in arguments.sizes}):
            dev_size = min(500, size // 10)
            train, dev = (
                [side[low:high] for side in texts] for low, high in ((0, size - dev_size), (size - dev_size, size))
            )
            row: list[object] = ["/".join(Path(source.partition(":")[0]).parts[-2:]), size]
            for case in CASES:
                generator = np.random.default_rng(arguments.seed)
                errors = find_errors(*with_error(case, train, dev, generator))
                row.append(outcome(case, errors, len(train[0])))
            rows.append(row)
            print(*row, flush=True)
    print("\n" + format_table(["corpus", "pairs", *CASES], rows))
    print(f"\n{time.perf_counter() - start:.0f} seconds")
    write_json(arguments.json, {"cases": list(CASES), "rows": rows})


if __name__ == "__main__":
    main()
