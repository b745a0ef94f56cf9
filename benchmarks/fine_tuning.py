"""Fine-tune a translator on another kind of text: what it learns there, and what it forgets.

    python benchmarks/fine_tuning.py MODEL --old DATA/tatoeba_de_en --new DATA/multi30k/raw -o MODELS [--minutes 5]

MODEL was trained on the old corpus. It is trained further on the new one with `dragoman train translator --from`, in
several ways (`--only` chooses some of them), by `dragoman train-many`: finished trainings are not repeated. The corpora
have train, dev (or val) and test files in both languages. BLEU is that of the test texts, as raw text (sacreBLEU's
tokenisation 13a, with capitals), with the default beam.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import dragoman
from dragoman.core.threads import available_cores
from dragoman.data.pair_files import read_pairs
from dragoman.report.tables import format_table
from texts_and_results import options_from_words, processor, train_many

TRAIN, DEV, TEST = ("train",), ("dev", "val"), ("test", "test_2016_flickr")
EXTEND, FREEZE, REPLAY = "--extend-vocabulary", "--freeze encoder", "--replay-src OLD --replay-tgt OLD"
NO_OPTION = "no other option"
WAYS = ("", REPLAY, EXTEND, f"{EXTEND} {REPLAY}", f"{EXTEND} {FREEZE}")


def files(directory: Path, names: tuple[str, ...], languages: tuple[str, str]) -> list[str]:
    """Return the source and the target file of a text with one of the usual names."""
    name = next(name for name in names if (directory / f"{name}.{languages[0]}").exists())
    return [str(directory / f"{name}.{language}") for language in languages]


def grid(options: argparse.Namespace) -> dict[str, object]:
    """Return the grid of the trainings: one for each way."""
    (src, tgt), (dev_src, dev_tgt) = (files(options.new, names, options.languages) for names in (TRAIN, DEV))
    settings = {}
    for way in options.only:
        old = iter(files(options.old, TRAIN, options.languages))
        settings[way or NO_OPTION] = options_from_words([next(old) if word == "OLD" else word for word in way.split()])
    texts = {"src": src, "tgt": tgt, "dev-src": dev_src, "dev-tgt": dev_tgt}
    common = {"from": str(options.model), **texts, "minutes": options.minutes, "seed": options.seed}
    return {"command": "train translator", "options": common, "settings": settings, "threads": available_cores()}


def bleu_of_both_tests(model: Path, options: argparse.Namespace) -> list[float]:
    """Return BLEU of the new and the old test text."""
    translator, scores = dragoman.load(model), []
    for directory in (options.new, options.old):
        test = read_pairs(*files(directory, TEST, options.languages))
        texts = [translation.text for translation in translator.translate_text(test.source)]
        scores.append(dragoman.bleu(texts, test.target, tokenised=False))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a translator that was trained on the old corpus")
    parser.add_argument("--old", type=Path, required=True, help="directory of the old corpus")
    parser.add_argument("--new", type=Path, required=True, help="directory of the new corpus")
    parser.add_argument("--languages", nargs=2, default=("de", "en"), help="endings of the files")
    parser.add_argument("--minutes", type=float, default=5.0, help="time of each training")
    parser.add_argument("--only", nargs="+", default=list(WAYS), choices=WAYS, help="options to compare")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--output", "-o", type=Path, required=True, help="directory of the models")
    options = parser.parse_args()
    rows: list[list[object]] = [["before", *bleu_of_both_tests(options.model, options), None]]
    for run in train_many(grid(options), options.output / options.new.name):
        scores = bleu_of_both_tests(Path(run["model"]), options)
        rows.append([run["settings"]["setting"], *scores, run["minutes"]])
    print(format_table(["", f"BLEU of {options.new.name}", f"BLEU of {options.old.name}", "minutes"], rows))
    print(f"\n--minutes {options.minutes:g}; seed {options.seed}; processor: {processor()}")


if __name__ == "__main__":
    main()
