"""Quality of `dragoman train translator --minutes M` on a corpus, and how long it really takes.

    python benchmarks/minutes.py --train DIR/train.de DIR/train.en --dev DIR/dev.de DIR/dev.en \
        --test DIR/test.de DIR/test.en --minutes 3 10 30 -o MODELS [--json FILE] [-- --hidden 256 ...]

Each time is a command of its own, from start to exit, with a new model directory below MODELS. Options after `--` are
passed on to it: they compare a training that is set by hand. The test text is translated with the default beam. A file
of both sides, such as a TSV file of words and phones, is given once. The machine should do nothing else.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import yaml

from dragoman.report.tables import format_table
from texts_and_results import processor, write_json

COMMAND = [sys.executable, "-c", "import sys; from dragoman.cli.main import main; sys.exit(main())"]


def text_options(files: list[str], names: tuple[str, str, str]) -> list[str]:
    """Return the options for two files, or for one file of pairs."""
    pairs, source, target = names
    return [pairs, files[0]] if len(files) == 1 else [source, files[0], target, files[1]]


def train(arguments: argparse.Namespace, minutes: float, model: Path) -> float:
    """Train for some minutes and return the minutes that the command took."""
    texts = text_options(arguments.train, ("--pairs", "--src", "--tgt"))
    if arguments.dev:
        texts += text_options(arguments.dev, ("--dev-pairs", "--dev-src", "--dev-tgt"))
    options = ["--minutes", f"{minutes:g}", "--seed", str(arguments.seed), "-o", str(model), *arguments.options]
    start = perf_counter()
    subprocess.run([*COMMAND, "train", "translator", *texts, *options], check=True)
    return (perf_counter() - start) / 60


def evaluate(arguments: argparse.Namespace, model: Path) -> dict[str, float]:
    """Return the scores of the test text by their names, the most important first."""
    texts = text_options(arguments.test, ("--pairs", "--src", "--ref"))
    command = [*COMMAND, "evaluate", str(model), *texts, "--json"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    metrics = result["metrics"]
    return {name: metrics[name]["value"] for name in metrics}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", nargs="+", required=True, help="training files: source and target, or one file")
    parser.add_argument("--dev", nargs="+", default=[], help="dev files; without them, pairs are held out")
    parser.add_argument("--test", nargs="+", required=True, help="test files")
    parser.add_argument("--minutes", nargs="+", type=float, default=[3, 10, 30], help="times to train")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--output", "-o", type=Path, required=True, help="directory of the models, which is replaced")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    parser.add_argument("options", nargs="*", help="options of dragoman train translator, after --")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for minutes in arguments.minutes:
        model = arguments.output / f"{minutes:g}"
        shutil.rmtree(model, ignore_errors=True)
        taken = train(arguments, minutes, model)
        config = yaml.safe_load((model / "config.yaml").read_text(encoding="utf-8"))
        sizes = f"{config['target']['units']}, {config['model']['embedding']}/{config['model']['hidden']}"
        scores = {name: round(value, 2) for name, value in evaluate(arguments, model).items()}
        rows.append({"--minutes": f"{minutes:g}", "minutes taken": f"{taken:.2f}", "units, sizes": sizes, **scores})
        print(format_table(list(rows[0]), [list(row.values()) for row in rows]), flush=True)
    print(f"\nseed {arguments.seed}; processor: {processor()}")
    write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
