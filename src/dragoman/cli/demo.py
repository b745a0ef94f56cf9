"""dragoman demo"""

from __future__ import annotations

import warnings
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.messages import say, suggest
from dragoman.errors import DataError

if TYPE_CHECKING:
    from dragoman.ngram.model import NgramModel
    from dragoman.text.corpus import Corpus

TRAIN, DEV, TEST = 4000, 500, 500  # sentences
MARK = "ABOUT-THESE-FILES.txt"  # by which a demo knows the directory of an earlier one
ABOUT = "dragoman demo wrote these files, and writes them anew when it runs again: keep nothing of your own here.\n"
# From counts as they are to modified Kneser-Ney: name in the table, settings.
LADDER: dict[str, dict[str, Any]] = {
    "whole prefix": {"smoothing": "whole-prefix"},
    "maximum likelihood, 3-gram": {"smoothing": "maximum-likelihood", "order": 3},
    "interpolated, 2-gram": {"smoothing": "interpolated", "order": 2},
    "interpolated, 4-gram": {"smoothing": "interpolated", "order": 4},
    "  coefficients fitted": {"smoothing": "interpolated-fitted", "order": 4},
    "  fitted by context count": {"smoothing": "interpolated-bucketed", "order": 4},
    "Witten-Bell": {"smoothing": "witten-bell", "order": 4},
    "stupid back-off, renormalised": {"smoothing": "stupid-backoff", "order": 4},
    "Katz back-off": {"smoothing": "katz", "order": 4},
    "absolute discounting": {"smoothing": "absolute-discounting", "order": 4},
    "Kneser-Ney": {"smoothing": "kneser-ney", "order": 4},
    "modified Kneser-Ney": {"smoothing": "modified-kneser-ney", "order": 4},
}


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the texts and the best model go.")
    ] = Path("runs/demo"),
    seed: Annotated[int, typer.Option("--seed", help="Of the text and of the samples.")] = 1,
) -> None:
    """Compare all n-gram models on a toy text made here.

    From maximum likelihood to modified Kneser-Ney.

    \b
    Example:
      dragoman demo
    """
    from dragoman.report.tables import table

    _claim(output)
    train, dev, test = _texts(output, seed)
    say(f"{output}: {train.sentences:,} sentences to train on, {train.words:,} words, {train.vocab.known - 1:,} types")
    rows = []
    for name, settings in LADDER.items():
        model, seconds = _train(train, dev, settings)
        rows.append(_row(name, model, test, seconds))
    headers = ["model", "perplexity", "by class", "unknown words", "n-grams", "seconds"]
    print(table(headers, rows))
    _explain()
    model.save(output / "model", replace=True)
    print("\nThree sentences drawn from the last model:")
    for sentence in model.sample(3, seed=seed):
        print(f"  {sentence}")
    say("")
    suggest("next", output / "model", "the farmer")
    suggest("evaluate", output / "model", "--text", output / "test.txt")


def _claim(output: Path) -> None:
    """Take a directory that is new, empty or an earlier demo's; leave all others alone."""
    from dragoman.storage import new_file

    if output.exists() and not output.is_dir():
        raise DataError(f"{output}: is a file; give the demo a directory of its own with -o")
    if output.is_dir() and any(output.iterdir()) and not (output / MARK).is_file():
        raise DataError(f"{output}: holds files that are not a demo's; give it a directory of its own with -o")
    with new_file(output / MARK) as path:
        path.write_text(ABOUT, encoding="utf-8")


def _texts(output: Path, seed: int) -> tuple[Corpus, Corpus, Corpus]:
    """Write the three texts, and read them as anybody's would be read."""
    from dragoman.lab.village import village_text
    from dragoman.storage import new_file
    from dragoman.text.corpus import Corpus

    lines = village_text(TRAIN + DEV + TEST, seed)
    parts = {"train": lines[:TRAIN], "dev": lines[TRAIN : TRAIN + DEV], "test": lines[TRAIN + DEV :]}
    for name, part in parts.items():
        with new_file(output / f"{name}.txt") as path:
            path.write_text("".join(f"{line}\n" for line in part), encoding="utf-8")
    train = Corpus.read(output / "train.txt")
    return train, Corpus.read(output / "dev.txt", train.vocab), Corpus.read(output / "test.txt", train.vocab)


def _train(train: Corpus, dev: Corpus, settings: dict[str, Any]) -> tuple[NgramModel, float]:
    from dragoman.ngram.model import NgramModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a toy text has too few counts for some discounts; it says so below
        NgramModel.train(train, heldout=dev, **settings)  # once to compile, so that the time is the method's own
        began = perf_counter()
        return NgramModel.train(train, heldout=dev, **settings), perf_counter() - began


def _row(name: str, model: NgramModel, test: Corpus, seconds: float) -> list[object]:
    from dragoman.evaluation.likelihood import likelihood

    result = likelihood(model, test)
    name += " *" if model.notes else ""
    size = model.table.trie.nodes - 1
    return [name, result.perplexity, result.perplexity_class, result.unknown_words, size, f"{seconds:.3f}"]


def _explain() -> None:
    print(
        "\nPerplexity: out of how many words, on average, does the model pick the next one? Infinite: some word of\n"
        "the test text has probability 0. An unknown word is paid for in full, as one of 10,000,000; by class, it\n"
        "only costs being unknown.\n"
        "* too few counts for this method's own discounts at some order; fixed ones were used there."
    )
