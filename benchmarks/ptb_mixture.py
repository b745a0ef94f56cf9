"""Mixtures on the Penn Treebank, with weights that depend on the context and with constant weights.

    python benchmarks/ptb_mixture.py --data DIR --output DIR [--also DIR ...] [--buckets KIND ...] [--json FILE]

--data has train.txt, valid.txt and test.txt, one sentence per line, with `<unk>` as a word of the text; the vocabulary
is closed, and `</s>` is predicted like a word (82,430 test tokens). The 5-gram model (modified Kneser-Ney), the cache
and the class 5-gram model (200 Brown classes) are stored in --output; missing ones are trained. Further members, such
as neural models, are model directories with the same vocabulary (trained with --vocab and the directory kn5). The
weights are fitted on valid.txt. Nothing is random.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dragoman
from dragoman import CacheModel, ClassNgramModel, Corpus, NgramModel
from dragoman.combine.buckets import NO_BUCKETS, make_bucketing
from dragoman.combine.mixture import fit_bucket_weights, fit_mixture_weights, mix_log_probs
from dragoman.data.brown import brown_clusters
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.models.language_model import LanguageModel, check_compatible
from dragoman.report.tables import format_table
from texts_and_results import processor, write_json

CLASSES = 200
BUCKETINGS = (
    NO_BUCKETS,
    "position",
    "order",
    "frequency",
    "recent",
    "entropy",
    "order+recent",
    "entropy+recent",
    "entropy+recent+frequency",
)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Member:
    """A model and its log-probabilities of both texts."""

    name: str
    model: LanguageModel
    valid: Floats  # (tokens,)
    test: Floats
    seconds: float  # for scoring both texts

    @classmethod
    def score(cls, name: str, model: LanguageModel, valid: Corpus, test: Corpus) -> Member:
        start = time.perf_counter()
        log_probs = token_log_probs(model, valid), token_log_probs(model, test)
        return cls(name, model, *log_probs, time.perf_counter() - start)


@dataclass(frozen=True)
class Row:
    models: str
    buckets: str  # empty for a single model
    number: int | None  # of buckets
    weights: tuple[float, ...]  # constant weights
    valid: float  # perplexity
    test: float
    seconds: float  # of a mixture: for computing buckets and fitting, without the scoring by the members


# -- members ----------------------------------------------------------------------------------------------------------


def train_ngram(corpus: Corpus) -> LanguageModel:
    return NgramModel.train(corpus, order=5, unknown=ClosedVocabulary(corpus.vocab.num_known))


def train_cache(corpus: Corpus) -> LanguageModel:
    return CacheModel.train(corpus, unknown=ClosedVocabulary(corpus.vocab.num_known))


def train_class_ngram(corpus: Corpus) -> LanguageModel:
    classes = brown_clusters(corpus, CLASSES).as_mapping()
    return ClassNgramModel.train(corpus, classes, order=5, unknown=ClosedVocabulary(corpus.vocab.num_known))


TRAIN_FUNCTIONS: dict[str, Callable[[Corpus], LanguageModel]] = {
    "kn5": train_ngram,
    "class5": train_class_ngram,
    "cache": train_cache,
}


def load_models(directory: Path, data: Path, further: Sequence[Path]) -> dict[str, LanguageModel]:
    """Return the models by name; missing ones are trained."""
    missing = [name for name in TRAIN_FUNCTIONS if not (directory / name).exists()]
    if missing:
        vocab = None if "kn5" in missing else dragoman.load(directory / "kn5").vocab
        corpus = Corpus.read(data / "train.txt", vocab)
        for name in missing:
            TRAIN_FUNCTIONS[name](corpus).save(directory / name)
    paths = [*(directory / name for name in TRAIN_FUNCTIONS), *further]
    models = [dragoman.load(path) for path in paths]
    check_compatible(models, list(map(str, paths)))
    return {path.name: model for path, model in zip(paths, models, strict=True)}


# -- mixtures ---------------------------------------------------------------------------------------------------------


def fit_mixture(members: Sequence[Member], valid: Corpus, test: Corpus, kind: str) -> Row:
    """Fit a mixture as `dragoman mix` does, from the log-probabilities of the members."""
    valid_log_probs = np.stack([member.valid for member in members])  # (members, tokens)
    test_log_probs = np.stack([member.test for member in members])
    start = time.perf_counter()
    bucketing = make_bucketing(kind, [member.model for member in members])
    valid_buckets, test_buckets = (bucketing.buckets_of_corpus(text) for text in (valid, test))
    weights = fit_mixture_weights(valid_log_probs)
    bucket_weights = weights[None]  # (buckets, members)
    if kind != NO_BUCKETS:
        bucket_weights = fit_bucket_weights(valid_log_probs, valid_buckets, len(bucketing.labels), weights)
    perplexities = (
        perplexity(mix_log_probs(valid_log_probs, bucket_weights, valid_buckets)),
        perplexity(mix_log_probs(test_log_probs, bucket_weights, test_buckets)),
    )
    names = " + ".join(member.name for member in members)
    seconds = time.perf_counter() - start
    return Row(names, kind, len(bucketing.labels), tuple(weights.tolist()), *perplexities, seconds)


def perplexity(log_probs: Floats) -> float:
    return float(np.exp(-log_probs.mean()))


def measure(data: Path, directory: Path, further: Sequence[Path], kinds: Sequence[str]) -> list[Row]:
    models = load_models(directory, data, further)
    vocab = models["kn5"].vocab
    valid, test = (Corpus.read(data / f"{name}.txt", vocab) for name in ("valid", "test"))
    members = {name: Member.score(name, model, valid, test) for name, model in models.items()}
    rows = [Row(m.name, "", None, (), perplexity(m.valid), perplexity(m.test), m.seconds) for m in members.values()]
    without_cache = [name for name in members if name != "cache"]
    for names in (["kn5", "cache"], without_cache, list(members)):
        applicable = [kind for kind in kinds if "recent" not in kind or "cache" in names]
        rows += [fit_mixture([members[name] for name in names], valid, test, kind) for kind in applicable]
    return rows


def print_table(rows: list[Row]) -> None:
    cells = [[row.models, row.buckets, row.number, row.valid, row.test, f"{row.seconds:.1f}"] for row in rows]
    print(format_table(["models", "buckets", "number", "valid", "test", "seconds"], cells))
    print(f"\nprocessor: {processor()}")


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)  # some discounts of class n-grams are replaced by fixed ones
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--output", type=Path, required=True, help="directory of kn5, class5 and cache")
    parser.add_argument("--also", type=Path, nargs="*", default=[], metavar="DIR", help="further models to mix")
    parser.add_argument(
        "--buckets", nargs="*", default=list(BUCKETINGS), metavar="KIND", help="kinds of buckets (default: nine kinds)"
    )
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    rows = measure(arguments.data, arguments.output, arguments.also, arguments.buckets)
    print_table(rows)
    write_json(arguments.json, {"processor": processor(), "rows": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
