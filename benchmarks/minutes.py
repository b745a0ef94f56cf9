"""Quality of `dragoman train translator --minutes M` on a corpus, and how long it really takes.

    python benchmarks/minutes.py --train DIR/train.de DIR/train.en --dev DIR/dev.de DIR/dev.en \
        --test DIR/test.de DIR/test.en --minutes 3 10 30 -o MODELS [--json FILE] [-- --hidden 256 ...]

Each time is a training command of its own, from start to exit, run by `dragoman train-many` one after the other; finished
ones are not run again. Options after `--` are passed on: they compare a training that is set by hand. The test text is
translated with the default beam. A file of both sides, such as a TSV file of words and phones, is given once. The machine
should do nothing else.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import yaml

from dragoman.core.threads import available_cores
from dragoman.report.tables import format_table
from texts_and_results import options_from_words, processor, train_many, write_json

TEST = "test "  # the beginning of the names of scores of the test text


def text_options(files: list[str], names: tuple[str, str, str]) -> dict[str, str]:
    """Return the options for two files, or for one file of pairs."""
    pairs, source, target = names
    return {pairs: files[0]} if len(files) == 1 else {source: files[0], target: files[1]}


def grid(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the grid of the trainings."""
    options: dict[str, object] = {**text_options(arguments.train, ("pairs", "src", "tgt")), "seed": arguments.seed}
    if arguments.dev:
        options |= text_options(arguments.dev, ("dev-pairs", "dev-src", "dev-tgt"))
    return {
        "command": "train translator",
        "options": {**options, **options_from_words(arguments.options)},
        "grid": {"minutes": arguments.minutes},
        "evaluate": text_options(arguments.test, ("pairs", "src", "ref")),
        "threads": available_cores(),
    }


def describe(run: dict[str, Any]) -> dict[str, str]:
    """Return the cells of a row of the table."""
    config = yaml.safe_load((Path(run["model"]) / "config.yaml").read_text(encoding="utf-8"))
    sizes = f"{config['target']['units']}, {config['model']['embedding']}/{config['model']['hidden']}"
    scores = {name.removeprefix(TEST): f"{value:.2f}" for name, value in run.items() if name.startswith(TEST)}
    row = {"--minutes": run["settings"]["minutes"], "minutes taken": f"{run['minutes']:.2f}", "units, sizes": sizes}
    return {**row, **scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", nargs="+", required=True, help="training files: source and target, or one file")
    parser.add_argument("--dev", nargs="+", default=[], help="dev files; without them, pairs are held out")
    parser.add_argument("--test", nargs="+", required=True, help="test files")
    parser.add_argument("--minutes", nargs="+", type=float, default=[3, 10, 30], help="times to train")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--output", "-o", type=Path, required=True, help="directory of the models")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    parser.add_argument("options", nargs="*", help="options of dragoman train translator, after --")
    arguments = parser.parse_args()
    rows = [describe(run) for run in train_many(grid(arguments), arguments.output)]
    print(format_table(list(rows[0]), [list(row.values()) for row in rows]))
    print(f"\nseed {arguments.seed}; processor: {processor()}")
    write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
