"""Training n-gram models with counts on disk, compared with KenLM's lmplz in the same run.

    python benchmarks/ngram_disk.py --lmplz build/bin/lmplz --prose prose.txt --tokens 20 100 300 --scratch DIR
    python benchmarks/ngram_disk.py --queries MODEL --text FILE     # queries per second with a cold and a warm cache

`prose.txt` is real text, for example from `documentation_text.py`. A text of more tokens than it has is filled up with
words drawn by Zipf's law from 200,000, nearly all of whose longer n-grams are new. Each program runs as a whole command,
from text to a model on disk; lmplz writes its ARPA file to /dev/null, which spares it the disk.

Peak memory is that of the process. Temporary files are measured twice a second. --order 5 with modified Kneser-Ney.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from dragoman.report.tables import format_table

ORDER = 5
ZIPF_TYPES, CHUNK_TOKENS = 200_000, 2_000_000
POLL_SECONDS = 0.5
MILLION = 1_000_000


@dataclass(frozen=True)
class Cost:
    """The resources used by a command."""

    seconds: float
    cpu_seconds: float
    gigabytes: float  # peak resident memory
    temporary_gigabytes: float  # peak size of the directory for temporary files


# -- texts -------------------------------------------------------------------------------------------------------------


def zipf_lines(seed: int) -> Iterator[tuple[str, int]]:
    """Yield parts of a text of Zipf-distributed words, without end, with their numbers of tokens."""
    generator = np.random.default_rng(seed)
    weights = np.cumsum(1 / np.arange(1, ZIPF_TYPES + 1))
    names = np.array([f"w{number}" for number in range(ZIPF_TYPES)], object)
    while True:
        words = names[np.searchsorted(weights, generator.random(CHUNK_TOKENS) * weights[-1])]
        ends = np.cumsum(generator.integers(1, 40, CHUNK_TOKENS // 15))
        ends = ends[ends < CHUNK_TOKENS]
        lines = [" ".join(words[a:b]) for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]
        yield "\n".join(lines) + "\n", int(ends[-1]) + len(lines)


def write_text(path: Path, prose: Path | None, tokens: int, seed: int = 1) -> tuple[int, int]:
    """Write a text of about this many tokens. Return how many are prose, and how many there are."""
    written = 0
    with path.open("w", encoding="utf-8") as file:
        if prose is not None:
            with prose.open(encoding="utf-8") as lines:
                for line in lines:
                    if written >= tokens:
                        break
                    file.write(line)
                    written += line.count(" ") + 2
        from_prose = written
        for part, size in zipf_lines(seed):
            if written >= tokens:
                break
            file.write(part)
            written += size
    return from_prose, written


# -- measurements ------------------------------------------------------------------------------------------------------


def directory_bytes(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                total += (Path(folder) / name).stat().st_blocks * 512
    return total


def open_temporary_bytes(process: int, directory: Path) -> int:
    """Return the size of files in a directory that are open but have no name any more, as those of lmplz."""
    total = 0
    with suppress(OSError):
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                target = str(descriptor.readlink())
                if target.startswith(str(directory)) and target.endswith("(deleted)"):
                    total += descriptor.stat().st_blocks * 512
    return total


def run(command: list[str], scratch: Path, text: Path | None = None) -> Cost:
    """Run a command, and return what it took."""
    peak, ended = [0], threading.Event()
    with (text or Path(os.devnull)).open("rb") as source:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def watch() -> None:
            while not ended.wait(POLL_SECONDS):
                size = directory_bytes(scratch) + open_temporary_bytes(process.pid, scratch)
                peak[0] = max(peak[0], size)

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        ended.set()
        watcher.join()
    if status:
        raise SystemExit(f"{' '.join(command)} failed with status {status}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6, peak[0] / 1e9)


def measure(text: Path, work: Path, lmplz: str | None, memory: str) -> dict[str, Cost]:
    """Train on a text with both programs, one after the other."""
    scratch, model = work / "temporary", work / "model"
    scratch.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "dragoman.cli.main", "train", "ngram", "--text", str(text), "--order", str(ORDER)]
    command += ["--units", "word", "--unknown", "none", "--memory", memory, "--tmp", str(scratch), "--force"]
    costs = {"dragoman": run([*command, "-o", str(model)], scratch)}
    if lmplz:
        command = [lmplz, "-o", str(ORDER), "--discount_fallback", "-S", memory, "-T", f"{scratch}/"]
        costs["lmplz"] = run([*command, "--text", str(text), "--arpa", os.devnull], scratch)
    return costs


def table_row(name: str, tokens: int, prose: int, model: Path, costs: dict[str, Cost]) -> dict[str, object]:
    import yaml

    levels = yaml.safe_load((model / "config.yaml").read_text())["levels"]
    size = (model / "model.safetensors").stat().st_size
    row: dict[str, object] = {"tokens": f"{tokens / MILLION:.0f}M", "of them prose": f"{prose / MILLION:.0f}M"}
    row["n-grams"] = f"{levels[-1] / MILLION:,.0f}M"
    for program, cost in costs.items():
        row |= {
            f"{program} s": f"{cost.seconds:.0f}",
            f"{program} CPU s": f"{cost.cpu_seconds:.0f}",
            f"{program} GB": f"{cost.gigabytes:.2f}",
            f"{program} temporary GB": f"{cost.temporary_gigabytes:.1f}",
        }
    row["s/M tokens"] = f"{costs['dragoman'].seconds / tokens * MILLION:.2f}"
    row["CPU s/M tokens"] = f"{costs['dragoman'].cpu_seconds / tokens * MILLION:.2f}"
    if "lmplz" in costs:
        row["dragoman / lmplz s"] = f"{costs['dragoman'].seconds / costs['lmplz'].seconds:.2f}"
        row["CPU"] = f"{costs['dragoman'].cpu_seconds / costs['lmplz'].cpu_seconds:.2f}"
    row["model bytes/n-gram"] = f"{size / levels[-1]:.1f}"
    row["temporary bytes/token"] = f"{costs['dragoman'].temporary_gigabytes * 1e9 / tokens:.0f}"
    return row


# -- queries -----------------------------------------------------------------------------------------------------------


def measure_queries(model_path: Path, text: Path) -> None:
    """Print the queries per second of a mapped model, after its file was dropped from the page cache and again."""
    from dragoman.models.loading import load

    file = model_path / "model.safetensors"
    lines = text.read_text(encoding="utf-8").splitlines()
    rows = []
    for state in ("cold", "warm"):
        if state == "cold":
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
                os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        start = time.perf_counter()
        model = load(model_path)
        loaded = time.perf_counter()
        model.score(lines[:1])
        first = time.perf_counter()
        if state == "cold":
            with file.open("rb") as handle:
                os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        begin = time.perf_counter()
        model.score(lines)
        seconds = time.perf_counter() - begin
        tokens = sum(len(line.split()) + 1 for line in lines)
        rows.append(
            [state, f"{loaded - start:.2f}", f"{first - loaded:.2f}", f"{tokens:,}", f"{tokens / seconds:,.0f}"]
        )
        del model
    print(format_table(["page cache", "load s", "first line s", "tokens", "tokens/s"], rows))
    peak = [
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(("VmHWM", "RssAnon"))
    ]
    print(f"{file.stat().st_size / 1e9:.2f} GB of table; {'; '.join(' '.join(line.split()) for line in peak)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lmplz", help="KenLM's trainer")
    parser.add_argument("--prose", type=Path, help="real text, one sentence per line")
    parser.add_argument("--tokens", type=float, nargs="*", default=[20], help="millions of tokens")
    parser.add_argument("--memory", default="2G", help="budget of both programs")
    parser.add_argument(
        "--scratch", type=Path, default=Path("benchmarks/out/ngram-disk"), help="directory for all files"
    )
    parser.add_argument("--queries", type=Path, metavar="MODEL", help="measure queries instead")
    parser.add_argument("--text", type=Path, help="text of the queries")
    parser.add_argument(
        "--json", type=Path, default=Path("benchmarks/out/ngram_disk.json"), help="file for all results"
    )
    arguments = parser.parse_args()
    if arguments.queries:
        measure_queries(arguments.queries, arguments.text)
        return
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    results, rows = [], []
    for millions in arguments.tokens:
        text = arguments.scratch / f"text-{millions:g}M"
        prose, tokens = write_text(text, arguments.prose, int(millions * MILLION))
        costs = measure(text, arguments.scratch, arguments.lmplz, arguments.memory)
        rows.append(table_row(text.name, tokens, prose, arguments.scratch / "model", costs))
        results.append({"tokens": tokens, "prose": prose, **{name: asdict(cost) for name, cost in costs.items()}})
        text.unlink()
        print(format_table(list(rows[0]), [list(row.values()) for row in rows]), flush=True)
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "order": ORDER, "memory": arguments.memory}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({**machine, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
