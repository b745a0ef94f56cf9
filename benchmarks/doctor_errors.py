"""Errors of whole texts that the doctor reports: in corpora with one known error each, and in the originals.

    python benchmarks/doctor_errors.py SOURCE TARGET [SOURCE TARGET ...] [--sizes 200 2000 20000] [--json FILE]

Each corpus is two files, or columns of one TSV file: FILE:1 FILE:2, or FILE:1,3 for two columns as one text. A tenth of
N lines (at most 500) is dev. The errors: one side shuffled, also of dev only; one target line deleted at 30 %, and the
last source line as well, so that the counts are equal, or not; sides exchanged in the last 40 %, and in dev; dev taken
from train, also with the words of the target in another order, or with one letter of each source changed (of short
ones: the case). `yes`: this error is reported and no other; for a deleted line, how far the reported line is from it. If
N is less than the size of the corpus, --places texts of N lines are tried.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np

from dragoman.doctor.arrangement import DoctorDocuments
from dragoman.doctor.documents import Document, FileLayout
from dragoman.doctor.examination import check_documents
from dragoman.doctor.findings import Finding
from dragoman.doctor.text_checks import DoctorLimits
from dragoman.report.tables import format_table
from texts_and_results import write_json

DELETED_AT, EXCHANGED_FROM = 0.3, 0.6
MIN_LONG_LINE = 40  # characters
Texts = list[list[str]]  # source and target
EXPECTED = {  # the kind of error, and its part
    "original": None,
    "shuffled": ("unpaired", "train"),
    "dev shuffled": ("unpaired", "dev"),
    "line deleted": ("line-shift", "train"),
    "line counts": ("line-counts", "train"),
    "exchanged": ("swapped-lines", "train"),
    "dev exchanged": ("swapped-dev", "dev"),
    "dev in train": ("dev-in-train", "dev"),
    "other target": ("dev-in-train", "dev"),
    "near source": ("dev-in-train", "dev"),
}


def read_lines(name: str) -> list[str]:
    path, _, columns = name.partition(":")
    lines = Path(path).read_text(encoding="utf-8").split("\n")[:-1]
    if not columns:
        return lines
    return [" ".join(line.split("\t")[int(column) - 1] for column in columns.split(",")) for line in lines]


def with_error(case: str, train: Texts, dev: Texts, generator: np.random.Generator) -> tuple[Texts, Texts]:
    """Return copies of train and dev with one error."""
    size, dev_size = len(train[0]), len(dev[0])
    if case == "shuffled":
        return [train[0], [train[1][line] for line in generator.permutation(size)]], dev
    if case == "dev shuffled":
        return train, [dev[0], [dev[1][line] for line in generator.permutation(dev_size)]]
    if case in ("line deleted", "line counts"):
        place = int(DELETED_AT * size)
        source = train[0][:-1] if case == "line deleted" else train[0]
        return [source, train[1][:place] + train[1][place + 1 :]], dev
    if case == "exchanged":
        first = int(EXCHANGED_FROM * size)
        return [train[0][:first] + train[1][first:], train[1][:first] + train[0][first:]], dev
    if case == "dev exchanged":
        return train, [dev[1], dev[0]]
    if EXPECTED[case] == ("dev-in-train", "dev"):
        lines = generator.permutation(size)[:dev_size].tolist()
        source, target = ([side[line] for line in lines] for side in train)
        if case == "other target":
            target = [" ".join(reversed(line.split(" "))) if " " in line else line[::-1] for line in target]
        elif case == "near source":
            source = [_with_small_change(line, generator) for line in source]
        return train, [source, target]
    return train, dev


def _with_small_change(line: str, generator: np.random.Generator) -> str:
    """Replace a letter of a long line; of a short one, where that makes another word, change the case and add a mark."""
    if len(line) < MIN_LONG_LINE:
        return f"{line.swapcase()}!"
    place = int(generator.integers(len(line)))
    return f"{line[:place]}x{line[place + 1 :]}"


def find_errors(train: Texts, dev: Texts) -> list[Finding]:
    """Return the errors that the doctor reports."""
    documents = DoctorDocuments(*(
        tuple(
            Document(f"{part}.{name}", part, lines, np.arange(len(lines)), FileLayout(name, "text", "", lines))
            for name, lines in zip(("source", "target"), sides, strict=True)
        )
        for part, sides in (("train", train), ("dev", dev))
    ))  # fmt: skip
    findings = check_documents(documents, DoctorLimits()).findings
    return [finding for finding in findings if finding.info.severity == "error"]


def outcome(case: str, errors: list[Finding], size: int) -> str:
    """Describe what is reported: `yes` for the expected error only; for the original, `none` is right."""
    kinds = Counter((error.kind, error.part) for error in errors)
    if not errors:
        return "none"
    if list(kinds) != [EXPECTED[case]]:
        return " ".join(kind for kind, _ in kinds)[:40]
    line = errors[0].line
    if case in ("line deleted", "line counts"):
        return "no line" if line is None else f"{line - 1 - int(DELETED_AT * size):+d}"
    return "yes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="source and target of each corpus")
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 2000, 20_000], help="lines of each corpus")
    parser.add_argument("--places", type=int, default=1, help="texts of each size in a larger corpus")
    parser.add_argument("--cases", nargs="+", choices=EXPECTED, default=list(EXPECTED), help="errors to try")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    start, rows = time.perf_counter(), []
    for source, target in zip(arguments.files[::2], arguments.files[1::2], strict=True):
        texts = [read_lines(source), read_lines(target)]
        for size in sorted({min(size, len(texts[0])) for size in arguments.sizes}):
            last = len(texts[0]) - size
            for first in sorted({last * place // max(1, arguments.places - 1) for place in range(arguments.places)}):
                middle = first + size - min(500, size // 10)
                train, dev = (
                    [side[low:high] for side in texts] for low, high in ((first, middle), (middle, first + size))
                )
                row: list[object] = ["/".join(Path(source).parts[-2:]), size, first + 1]
                for case in arguments.cases:
                    generator = np.random.default_rng(arguments.seed)
                    errors = find_errors(*with_error(case, train, dev, generator))
                    row.append(outcome(case, errors, len(train[0])))
                rows.append(row)
                print(*row, sep=" | ", flush=True)
    print("\n" + format_table(["corpus", "pairs", "from line", *arguments.cases], rows))
    print(f"\n{time.perf_counter() - start:.0f} seconds")
    write_json(arguments.json, {"cases": arguments.cases, "rows": rows})


if __name__ == "__main__":
    main()
