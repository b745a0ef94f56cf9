"""All speed benchmarks in small, in under ten minutes on two cores: for a first look at a new machine.

    python benchmarks/quick.py --data multi30k/tok [--only training scoring alignment service models]

DIR has train.de, train.en, val.de and val.en. Each part is the command that it prints, and its seconds follow. The other
systems (lmplz and kenlm for n-grams, eflomal for alignment) take part if they are installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import torch

from dragoman.report.tables import format_table
from texts_and_results import processor

HERE = Path(__file__).parent
ALIGNED_PAIRS = 3_000
CLIENTS, SERVICE_SECONDS, SERVICE_ROUNDS = 8, 8, 3
PARTS = ("training", "scoring", "alignment", "service", "models")


def processor_flags() -> str:
    """Return the names of the vector instructions of this processor."""
    capabilities = torch.cpu.get_capabilities().items()
    return " ".join(sorted(name for name, has in capabilities if has is True)) or "none that torch knows"


def run(*command: str | Path) -> bool:
    """Run a command, print it and its seconds, and return whether it succeeded."""
    print("$ python", *command, flush=True)
    start = perf_counter()
    status = subprocess.run([sys.executable, *command]).returncode
    print(f"{perf_counter() - start:.0f} seconds{'' if status == 0 else ', failed'}\n", flush=True)
    return status == 0


def first_lines(source: Path, target: Path, number: int) -> None:
    """Copy the first lines of a file."""
    with source.open(encoding="utf-8") as lines, target.open("w", encoding="utf-8", newline="\n") as copy:
        copy.writelines(line for line, _ in zip(lines, range(number), strict=False))


def run_service_rounds(model: Path, text: Path, scratch: Path) -> bool:
    """Load the service in some rounds and print how many times the sentences of one client several clients get."""
    load = ["--text", text, "--clients", str(CLIENTS), "--seconds", str(SERVICE_SECONDS)]
    files = [scratch / f"service-{number}.json" for number in range(SERVICE_ROUNDS)]
    succeeded = [run(HERE / "serve.py", f"de-en={model}", *load, "--json", file) for file in files]
    if not all(file.exists() for file in files):
        return False
    rounds = [[row["sentences_per_second"] for row in json.loads(file.read_text())] for file in files]
    rows = [["sentences/s, 1 client", *spread([one for one, _ in rounds])]]
    rows.append([f"sentences/s, {CLIENTS} clients", *spread([several for _, several in rounds])])
    rows.append([f"{CLIENTS} clients / 1 client", *spread([several / one for one, several in rounds])])
    print(format_table(["service", "median", "smallest", "largest"], rows) + "\n", flush=True)
    return all(succeeded)


def spread(values: Sequence[float]) -> list[str]:
    """Return the median, the smallest and the largest value."""
    return [f"{value:.2f}" for value in (median(values), min(values), max(values))]


def run_part(part: str, data: Path, scratch: Path) -> bool:
    """Run one part; return whether it succeeded."""
    if part == "training":
        texts = ["--text", data / "train.de", "--zipf", "0.5", "--repeat", "3", "--json", scratch / "ngram.json"]
        return run(HERE / "ngram.py", *texts)
    if part == "scoring":
        return run(HERE / "ngram_scoring.py", "--text", data / "train.de", data / "val.de", "--rounds", "3")
    if part == "alignment":
        for language in ("de", "en"):
            first_lines(data / f"train.{language}", scratch / f"train.{language}", ALIGNED_PAIRS)
        systems = ["hmm", *(["eflomal"] if importlib.util.find_spec("eflomal") else [])]
        return run(HERE / "align.py", "--data", scratch, "--repeat", "3", "--systems", *systems)
    if part == "service":
        files = ["--src", data / "train.de", "--tgt", data / "train.en", "--dev-src", data / "val.de"]
        files += ["--dev-tgt", data / "val.en", "-o", scratch / "de-en"]
        sizes = ["--embedding", "64", "--hidden", "64", "--minutes", "0.5", "--seed", "1"]
        is_trained = run("-m", "dragoman.cli.main", "train", "translator", *files, *sizes)
        return is_trained and run_service_rounds(scratch / "de-en", data / "val.de", scratch)
    tasks = ["train translator", "train lstm 2x200", "latency 5", "search 5"]
    return run(HERE / "speed.py", "--data", data, "--quick", "--train-seconds", "30", "--tasks", *tasks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.de, train.en, val.de and val.en")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    options = parser.parse_args()
    missing = [name for name in ("train.de", "train.en", "val.de", "val.en") if not (options.data / name).is_file()]
    if missing:
        parser.error(f"{options.data}: has no {', '.join(missing)}; give the directory of Multi30k, tokenised")
    print(f"{processor()}\nflags: {processor_flags()}\n", flush=True)
    start = perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        failed = [part for part in options.only if not run_part(part, options.data.resolve(), Path(directory))]
    print(f"all parts: {perf_counter() - start:.0f} seconds")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
