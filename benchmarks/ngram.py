"""Speed of training n-gram models, compared with KenLM in the same run. For scoring, see ngram_scoring.py.

    python benchmarks/ngram.py                          # generated Zipf-distributed text
    python benchmarks/ngram.py --data DIR               # also DIR/ptb/train.txt and DIR/wikitext2/train.txt
    python benchmarks/ngram.py --text FILE ...          # also other texts
    python benchmarks/ngram.py --lmplz build/bin/lmplz  # also KenLM's trainer (cmake target lmplz)
    python benchmarks/ngram.py --before SRC             # only to a model, compared with another version

Training is timed from text to a saved model and from text to an ARPA file, inside a process with compiled kernels
loaded, and as a whole command including start-up. Every measurement runs in its own process, so that its peak memory is
known. Rounds are interleaved. The tables show the best of --repeat rounds; all rounds of the whole command
and of lmplz, and the ratio of their CPU times, are in the JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from dragoman.report.tables import format_table

ORDER = 5
ZIPF_TYPES = 200_000
LMPLZ_MEMORY = "1G"  # its default, 80 % of the machine, costs it seconds on a small text


@dataclass(frozen=True)
class Cost:
    """The resources used by a job."""

    seconds: float
    gigabytes: float  # peak resident memory
    cpu_seconds: float = 0.0  # user and system time of all threads; only of whole commands


# -- jobs, each run in its own process --------------------------------------------------------------------------


def job_train(text: str, output: str, to: str) -> float:
    """Return the seconds from text to a saved model (or an ARPA file), without imports and loading of kernels."""
    import warnings

    from dragoman.data.corpus import Corpus
    from dragoman.data.unknown_words import ClosedVocabulary
    from dragoman.ngram.arpa import write_arpa
    from dragoman.ngram.model import NgramModel

    warnings.simplefilter("ignore")
    warm_up = NgramModel.train(Corpus.from_sentences(["a b a", "b a b b", "a"]), order=ORDER)  # loads the kernels
    write_arpa(warm_up, Path(output) / "warm-up.arpa")
    start = time.perf_counter()
    corpus = Corpus.read(text)
    model = NgramModel.train(corpus, order=ORDER, unknown=ClosedVocabulary(corpus.vocab.num_known))
    if to == "arpa":
        write_arpa(model, Path(output) / "model.arpa")
    else:
        model.save(Path(output) / "model")
    return time.perf_counter() - start


def job_zipf(path: str, tokens: str, seed: str) -> float:
    """Write sentences of 1 to 39 words sampled by Zipf's law."""
    generator, size = np.random.default_rng(int(seed)), int(tokens)
    weights = 1 / np.arange(1, ZIPF_TYPES + 1)
    words = generator.choice(ZIPF_TYPES, size, p=weights / weights.sum())
    ends = np.cumsum(generator.integers(1, 40, size // 10))
    with Path(path).open("w") as file:
        for sentence in np.split(words, ends[ends < size]):
            file.write(" ".join(f"w{word}" for word in sentence.tolist()) + "\n")
    return 0.0


# A process starts with the peak memory of the one that started it, so this one must stay small.
JOBS = {"train": job_train, "zipf": job_zipf}


# -- measurements ----------------------------------------------------------------------------------------------------


def run_job(name: str, *arguments: str, source: str | None = None) -> tuple[float, float]:
    """Return the result of a job and its peak memory in GB, with the code in `source` if that is given."""
    command = [sys.executable, __file__, "--job", name, *arguments]
    environment = os.environ if source is None else {**os.environ, "PYTHONPATH": source}
    output = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
    return output["result"], output["gigabytes"]


def run_command(command: list[str], text: Path | None = None, output: Path | None = None) -> Cost:
    """Return the wall-clock time, CPU time and peak memory of a command."""
    with (text or Path(os.devnull)).open("rb") as source, (output or Path(os.devnull)).open("wb") as sink:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdin=source, stdout=sink, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return Cost(seconds, usage.ru_maxrss / 1e6, usage.ru_utime + usage.ru_stime)


def fastest(costs: list[Cost]) -> Cost:
    return min(costs, key=lambda cost: cost.seconds)


def measure_training(text: Path, scratch: Path, lmplz: str | None, repeat: int) -> dict[str, list[Cost]]:
    """Run all methods of training on one text in interleaved rounds, so that other load affects them equally."""
    costs: dict[str, list[Cost]] = {}
    for _ in range(repeat):
        for to in ("model", "arpa"):
            with tempfile.TemporaryDirectory(dir=scratch) as directory:
                costs.setdefault(f"to {to}", []).append(Cost(*run_job("train", str(text), directory, to)))
        with tempfile.TemporaryDirectory(dir=scratch) as directory:
            command = [sys.executable, "-m", "dragoman.cli.main", "train", "ngram", "--text", str(text)]
            command += ["--order", str(ORDER), "--unknown", "none", "-o", f"{directory}/model"]
            costs.setdefault("command", []).append(run_command(command))
        if lmplz:
            arpa = scratch / "lmplz.arpa"
            command = [lmplz, "-o", str(ORDER), "--discount_fallback", "-S", LMPLZ_MEMORY, "-T", str(scratch)]
            costs.setdefault("lmplz", []).append(run_command(command, text, arpa))
            arpa.unlink()
    return costs


def versions_table(texts: dict[str, Path], scratch: Path, before: str, repeat: int) -> list[dict[str, object]]:
    """Compare another version with this one, in interleaved rounds: medians, and the ratios of the rounds."""
    results = []
    for name, text in texts.items():
        costs: dict[str | None, list[Cost]] = {before: [], None: []}
        for _ in range(repeat):
            for source, rounds in costs.items():
                with tempfile.TemporaryDirectory(dir=scratch) as directory:
                    rounds.append(Cost(*run_job("train", str(text), directory, "model", source=source)))
        ratios = [ours.seconds / theirs.seconds for theirs, ours in zip(costs[before], costs[None], strict=True)]
        row: dict[str, object] = {"text": name}
        for label, source in (("before", before), ("now", None)):
            row[f"{label} s"] = f"{statistics.median(cost.seconds for cost in costs[source]):.2f}"
            row[f"{label} GB"] = f"{statistics.median(cost.gigabytes for cost in costs[source]):.3f}"
        row |= {
            "now / before s": f"{statistics.median(ratios):.2f}",
            "spread": f"{min(ratios):.2f} to {max(ratios):.2f}",
        }
        results.append(row)
    print(format_table(list(results[0]), [list(row.values()) for row in results]))
    return results


def zipf_text(path: Path, tokens: int, seed: int = 1) -> Path:
    run_job("zipf", str(path), str(tokens), str(seed))
    return path


def training_table(texts: dict[str, Path], scratch: Path, lmplz: str | None, repeat: int) -> list[dict[str, object]]:
    results, rows = [], []
    for name, text in texts.items():
        rounds = measure_training(text, scratch, lmplz, repeat)
        costs = {method: fastest(several) for method, several in rounds.items()}
        tokens = sum(line.count(b" ") + 2 for line in text.open("rb"))
        results.append({"text": name, "tokens": tokens, **{method: asdict(cost) for method, cost in costs.items()}})
        results[-1]["rounds"] = {
            method: [asdict(cost) for cost in rounds[method]] for method in ("command", "lmplz") if method in rounds
        }
        rows.append(training_row(name, tokens, costs) | spreads(rounds))
    print(format_table(list(rows[0]), [list(row.values()) for row in rows]))
    return results


def training_row(name: str, tokens: int, costs: dict[str, Cost]) -> dict[str, object]:
    ours = {method: cost for method, cost in costs.items() if method != "lmplz"}
    row: dict[str, object] = {"text": name, "tokens": tokens}
    row |= {f"{method} s": f"{cost.seconds:.2f}" for method, cost in costs.items()}
    row["model s/M tokens"] = f"{costs['to model'].seconds / tokens * 1e6:.2f}"
    if "lmplz" in costs:
        row["command / lmplz CPU"] = f"{costs['command'].cpu_seconds / costs['lmplz'].cpu_seconds:.2f}"
        row |= {f"{method} / lmplz": f"{cost.seconds / costs['lmplz'].seconds:.2f}" for method, cost in ours.items()}
    return row | {
        f"{method} GB": f"{costs[method].gigabytes:.2f}" for method in ("to model", "lmplz") if method in costs
    }


def spreads(rounds: dict[str, list[Cost]]) -> dict[str, object]:
    """Return the median and the spread of the seconds to a model and, round by round, of the ratio to lmplz."""
    columns = {"to model, median (spread)": [cost.seconds for cost in rounds["to model"]]}
    if "lmplz" in rounds:
        pairs = zip(rounds["to model"], rounds["lmplz"], strict=True)
        columns["/ lmplz, median (spread)"] = [ours.seconds / theirs.seconds for ours, theirs in pairs]
    return {
        name: f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
        for name, values in columns.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory with ptb/ and wikitext2/")
    parser.add_argument("--lmplz", default=shutil.which("lmplz"), help="KenLM's trainer")
    parser.add_argument("--before", help="the directory `src` of another version")
    parser.add_argument("--text", type=Path, nargs="*", default=[], help="further texts to train on")
    parser.add_argument("--zipf", type=float, nargs="*", default=[1.25, 5, 20], help="million tokens of Zipf text")
    parser.add_argument("--repeat", type=int, default=3, help="number of rounds")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/out/ngram.json"), help="file for all results")
    parser.add_argument("--job", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        result = JOBS[arguments.job[0]](*arguments.job[1:])
        print(json.dumps({"result": result, "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}))
        return
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        texts = {f"Zipf {size:g}M": zipf_text(scratch / f"zipf{size}", int(size * 1e6)) for size in arguments.zipf}
        if arguments.data:
            texts |= {"PTB": arguments.data / "ptb/train.txt", "WikiText-2": arguments.data / "wikitext2/train.txt"}
        texts |= {text.name: text for text in arguments.text}
        renamed = {name: _without_unk(text, scratch) for name, text in texts.items()}
        machine = {"machine": platform.machine(), "cores": os.cpu_count(), "order": ORDER, "repeat": arguments.repeat}
        if arguments.before:
            table = versions_table(renamed, scratch, arguments.before, arguments.repeat)
        else:
            table = training_table(renamed, scratch, arguments.lmplz, arguments.repeat)
        results = {**machine, "training": table}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(results, indent=2) + "\n")


def _without_unk(text: Path, scratch: Path) -> Path:
    """Return a copy in which `<unk>` is an ordinary word, because lmplz does not accept it."""
    copy = scratch / f"{text.parent.name}-{text.name}.renamed"
    with text.open("rb") as lines, copy.open("wb") as renamed:
        renamed.writelines(line.replace(b"<unk>", b"UNKNOWN") for line in lines)
    return copy


if __name__ == "__main__":
    main()
