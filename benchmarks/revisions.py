"""Compare the speed of two revisions of dragoman, in turns, by the same commands.

    git worktree add /tmp/before REVISION
    python benchmarks/revisions.py --before /tmp/before/src --after src --data multi30k/tok --text ptb/train.txt

Each revision runs in separate processes with its `src` first on the path, so only commands and files are compared.
Training is timed by the seconds in metrics.jsonl, without start-up; everything else as a whole command. Rounds alternate
between the revisions; the table has medians and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

COMMAND = "import sys; from dragoman.cli.main import main; sys.exit(main())"
LINES = 4000  # of the training text for networks
SENTENCES = 200  # to translate


class Revision:
    """One source tree and a directory for what it writes."""

    def __init__(self, source: Path, work: Path, threads: int) -> None:
        self.work = work
        self.environment = {**os.environ, "PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": str(threads)}
        work.mkdir(parents=True)

    def run(self, *arguments: object, stdin: Path | None = None) -> float:
        """Run a command and return its seconds."""
        started = perf_counter()
        with Path(stdin or os.devnull).open("rb") as text:
            subprocess.run(
                [sys.executable, "-c", COMMAND, *map(str, arguments)],
                env=self.environment,
                stdin=text,
                check=True,
                capture_output=True,
            )
        return perf_counter() - started

    def train(self, name: str, *arguments: object) -> float:
        """Train a model and return the seconds per update after the first report."""
        self.run("train", *arguments, "-o", self.work / name, "--force", "--report-every", 5)
        lines = [json.loads(line) for line in (self.work / name / "metrics.jsonl").read_text().splitlines()]
        first, last = lines[0], lines[-1]
        return (last["seconds"] - first["seconds"]) / (last["update"] - first["update"])


def workloads(data: Path, text: Path, part: Path, updates: int) -> dict[str, Callable[[Revision], float]]:
    """What is timed, by name; later ones use the models of earlier ones."""
    pairs = ("--src", data / "train.de", "--tgt", data / "train.en")
    limit = ("--max-updates", updates, "--threads", 2)
    return {
        "train ngram, order 5": lambda r: r.run("train", "ngram", "--text", text, "-o", r.work / "kn5", "--force"),
        "evaluate ngram": lambda r: r.run("evaluate", r.work / "kn5", "--text", text),
        "train recurrent, per update": lambda r: r.train("lstm", "recurrent", "--text", part, *limit),
        "train feed-forward, per update": lambda r: r.train("ff", "feed-forward", "--text", part, *limit),
        "train translator, per update": lambda r: r.train("de-en", "translator", *pairs, "--units", "word", *limit),
        "translate, greedy": lambda r: r.run(
            "translate", r.work / "de-en", "--beam-size", 1, stdin=r.work / "source.txt"
        ),
        "translate, beam 5": lambda r: r.run("translate", r.work / "de-en", stdin=r.work / "source.txt"),
        "translate one line": lambda r: r.run("translate", r.work / "de-en", stdin=r.work / "line.txt"),
        "--help": lambda r: r.run("--help"),
        "--version": lambda r: r.run("--version"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="src of the older revision")
    parser.add_argument("--after", type=Path, default=Path("src"), help="src of the newer revision")
    parser.add_argument("--data", type=Path, required=True, help="directory with train.de, train.en, val.de")
    parser.add_argument("--text", type=Path, required=True, help="text for n-grams and language models")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=40, help="of each training")
    parser.add_argument("--only", nargs="*", help="names of workloads")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="revisions-"))
    try:
        compare(options, work)
    finally:
        shutil.rmtree(work)


def compare(options: argparse.Namespace, work: Path) -> None:
    sources = {"before": options.before, "after": options.after}
    revisions = {name: Revision(source, work / name, threads=2) for name, source in sources.items()}
    part = work / "part.txt"
    part.write_text("".join(options.text.open(encoding="utf-8").readlines()[:LINES]), encoding="utf-8")
    lines = (options.data / "val.de").read_text(encoding="utf-8").splitlines()[:SENTENCES]
    for revision in revisions.values():
        (revision.work / "source.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (revision.work / "line.txt").write_text(lines[0] + "\n", encoding="utf-8")
    print(f"{'workload':32}{'before s':>10}{'after s':>10}{'after/before':>14}")
    for name, workload in workloads(options.data, options.text, part, options.updates).items():
        if options.only and name not in options.only:
            continue
        seconds: dict[str, list[float]] = {revision: [] for revision in revisions}
        for revision in revisions.values():
            workload(revision)  # compiles kernels and fills caches
        for _ in range(options.rounds):
            for label, revision in revisions.items():
                seconds[label].append(workload(revision))
        before, after = (statistics.median(seconds[label]) for label in ("before", "after"))
        print(f"{name:32}{before:10.3f}{after:10.3f}{after / before:14.2f}", flush=True)


if __name__ == "__main__":
    main()
