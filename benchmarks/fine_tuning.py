"""Fine-tune a translator on another kind of text: what it learns there, and what it forgets.

    python benchmarks/fine_tuning.py train --name tatoeba --data DATA/tatoeba_de_en -o MODELS --updates 4500
    python benchmarks/fine_tuning.py train --name multi30k --data DATA/multi30k/raw -o MODELS --updates 1500
    python benchmarks/fine_tuning.py tune --old tatoeba DATA/tatoeba_de_en --new multi30k DATA/multi30k/raw -o MODELS
    python benchmarks/fine_tuning.py tune --old multi30k DATA/multi30k/raw --new tatoeba DATA/tatoeba_de_en -o MODELS

The first two commands train one translator on each corpus with `dragoman train translator`, the others continue each on
the other corpus, in different ways; with --model, another translator that is trained already. The corpora have train, dev
(or val) and test files in both languages. BLEU is that of the test sets, for raw text (sacreBLEU's tokenisation 13a,
with capitals) and beam size 5; the best parameters are selected by the dev loss of the new corpus. Training is limited
by updates, so that the results do not depend on how busy the machine is. Run the same command again to resume it:
finished models are not trained again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import dragoman
from dragoman.data.pair_files import read_pairs
from dragoman.data.tokenizer import LinePairs
from dragoman.models.translator_training import encode_pairs
from dragoman.report.tables import format_table
from dragoman.training.config import TRANSLATOR, for_fine_tuning
from texts_and_results import processor

SIZES = ["--units", "subword:4000", "--embedding", "128", "--hidden", "192", "--readout", "128"]
DEV_NAMES, TEST_NAMES = ("dev", "val"), ("test", "test_2016_flickr")
WAYS: dict[str, dict[str, Any]] = {
    "the old vocabulary": {"extend": False},
    "the old vocabulary, replay 0.3": {"extend": False, "replay": True},
    "extended vocabulary": {},
    "extended vocabulary, replay 0.3": {"replay": True},
    "extended vocabulary, frozen encoder": {"freeze": ("encoder",)},
}


def read(directory: Path, names: tuple[str, ...]) -> LinePairs:
    """Read a German-English text by one of its usual names."""
    name = next(name for name in names if (directory / f"{name}.de").exists())
    return read_pairs(f"{directory / name}.de", f"{directory / name}.en")


def train(name: str, data: Path, output: Path, updates: int, check_every: int, seed: int) -> None:
    """Train a translator with the command line."""
    dev = next(dev for dev in DEV_NAMES if (data / f"{dev}.de").exists())
    texts = ["--src", data / "train.de", "--tgt", data / "train.en"]
    texts += ["--dev-src", data / f"{dev}.de", "--dev-tgt", data / f"{dev}.en"]
    limits = ["--max-updates", updates, "--check-every", check_every, "--threads", 1, "--seed", seed]
    command = ["dragoman", "train", "translator", *texts, *SIZES, *limits, "-o", output / name]
    subprocess.run([str(word) for word in command], check=True)


def bleu(model: dragoman.Translator, test: LinePairs) -> float:
    texts = [translation.text for translation in model.translate_text(test.source)]
    return dragoman.bleu(texts, test.target, tokenised=False)


def tune(base: Path, new: Path, old: Path, output: Path, way: dict[str, Any], updates: int, seed: int) -> float:
    """Train a translator further in one way, unless that was done before. Return the minutes."""
    train, dev = read(new, ("train",)), read(new, DEV_NAMES)
    is_extended = way.get("extend", True)
    model = dragoman.load(base).for_text(train.source, train.target, keep_tokenised=not is_extended)
    if is_extended:
        model = model.extend_vocabulary(train.source, train.target)
    old_text = encode_pairs(read(old, ("train",)), model) if way.get("replay") else None
    config = for_fine_tuning(TRANSLATOR, ())
    result = dragoman.fit(
        model,
        encode_pairs(train, model),
        encode_pairs(dev, model),
        config,
        output=output,
        replay=old_text,
        freeze=way.get("freeze", ()),
        max_updates=updates,
        seed=seed,
        threads=1,
        callback=lambda event: print(end="." if event.progress.update % 100 == 0 else "", file=sys.stderr, flush=True),
    )
    return result.progress.seconds / 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("--name", required=True)
    training.add_argument("--data", type=Path, required=True)
    training.add_argument("--updates", type=int, required=True)
    training.add_argument("--check-every", type=int, default=1500)
    tuning = commands.add_parser("tune")
    tuning.add_argument("--old", nargs=2, required=True, metavar=("NAME", "DIR"))
    tuning.add_argument("--new", nargs=2, required=True, metavar=("NAME", "DIR"))
    tuning.add_argument("--model", type=Path, help="the translator to start from (default OUTPUT/NAME of --old)")
    tuning.add_argument("--updates", type=int, default=400)
    tuning.add_argument("--only", nargs="*", default=list(WAYS), choices=list(WAYS))
    for command in (training, tuning):
        command.add_argument("-o", "--output", type=Path, required=True)
        command.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.command == "train":
        train(options.name, options.data, options.output, options.updates, options.check_every, options.seed)
        return
    old, new = Path(options.old[1]), Path(options.new[1])
    base = options.model or options.output / options.old[0]
    tests = [read(new, TEST_NAMES), read(old, TEST_NAMES)]
    rows = [["before", *(bleu(dragoman.load(base), test) for test in tests), None]]
    for name in options.only:
        output = options.output / f"{options.old[0]}-{options.new[0]}-{name.replace(', ', '-').replace(' ', '-')}"
        minutes = tune(base, new, old, output, WAYS[name], options.updates, options.seed)
        rows.append([name, *(bleu(dragoman.load(output), test) for test in tests), minutes])
        print(name, *rows[-1][1:], file=sys.stderr, flush=True)
    print(f"{options.old[0]} to {options.new[0]}, {options.updates} updates, seed {options.seed}, {processor()}")
    print(format_table(["", f"BLEU {options.new[0]}", f"BLEU {options.old[0]}", "minutes"], rows))


if __name__ == "__main__":
    main()
