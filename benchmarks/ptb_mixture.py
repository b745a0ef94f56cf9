"""Mixtures on the Penn Treebank whose weights depend on the context, beside those whose weights do not.

    python benchmarks/ptb_mixture.py --data DIR --output DIR [--also DIR ...] [--buckets KIND ...] [--json FILE]

--data holds train.txt, valid.txt and test.txt, one sentence a line, with `<unk>` as a word of the text; the vocabulary
is closed, and `</s>` is predicted like a word (82,430 test tokens). The 5-gram (modified Kneser-Ney), the cache and the
class 5-gram (200 Brown classes) are kept in --output: what is missing is trained. Further members, such as networks,
are model directories of the same vocabulary (trained with --vocab and the directory kn5). Weights are fitted on
valid.txt. Nothing here is random.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dragoman
from dragoman import CacheModel, Corpus, NgramModel
from dragoman.combine.buckets import NO_BUCKETS, make_bucketing
from dragoman.combine.mixture import fit_bucket_weights, fit_mixture_weights, mix_log_probs
from dragoman.data.brown import brown_clusters
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.evaluation.log_probs import token_log_probs
from dragoman.models.language_model import LanguageModel, require_same_vocab
from dragoman.ngram.class_model import ClassNgramModel
from dragoman.report.tables import format_table
from ptb_cache import processor

CLASSES = 200
KINDS = (
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


@dataclass(frozen=True)
class Texts:
    valid: Corpus
    test: Corpus


@dataclass(frozen=True)
class Member:
    """A model and what it says of both texts, asked once."""

    name: str
    model: LanguageModel
    valid: NDArray[np.float64]  # (tokens,)
    test: NDArray[np.float64]
    seconds: float  # to score both


@dataclass(frozen=True)
class Row:
    models: str
    buckets: str  # empty for a model alone
    number: int | None  # of buckets
    weights: tuple[float, ...]  # of all contexts
    valid: float  # perplexity
    test: float
    seconds: float  # of a mixture: finding the buckets of both texts, and fitting, without scoring by the members


# -- members ----------------------------------------------------------------------------------------------------------


def train_ngram(corpus: Corpus) -> LanguageModel:
    return NgramModel.train(corpus, order=5, unknown=ClosedVocabulary(corpus.vocab.num_known))


def train_cache(corpus: Corpus) -> LanguageModel:
    return CacheModel.train(corpus, unknown=ClosedVocabulary(corpus.vocab.num_known))


def train_classes(corpus: Corpus) -> LanguageModel:
    classes = brown_clusters(corpus, CLASSES).as_mapping()
    return ClassNgramModel.train(corpus, classes, order=5, unknown=ClosedVocabulary(corpus.vocab.num_known))


TRAINED: dict[str, Callable[[Corpus], LanguageModel]] = {
    "kn5": train_ngram,
    "class5": train_classes,
    "cache": train_cache,
}


def members_in(place: Path, data: Path, also: Sequence[Path]) -> dict[str, LanguageModel]:
    """The models by their names; those that are missing are trained."""
    missing = [name for name in TRAINED if not (place / name).exists()]
    if missing:
        lender = None if "kn5" in missing else dragoman.load(place / "kn5").vocab
        corpus = Corpus.read(data / "train.txt", lender)
        for name in missing:
            TRAINED[name](corpus).save(place / name)
    paths = [*(place / name for name in TRAINED), *also]
    models = [dragoman.load(path) for path in paths]
    require_same_vocab(models, list(map(str, paths)))
    return {path.name: model for path, model in zip(paths, models, strict=True)}


def asked(name: str, model: LanguageModel, texts: Texts) -> Member:
    began = time.perf_counter()
    valid, test = (token_log_probs(model, text) for text in (texts.valid, texts.test))
    return Member(name, model, valid, test, time.perf_counter() - began)


# -- mixtures ---------------------------------------------------------------------------------------------------------


def mixed(members: Sequence[Member], texts: Texts, kind: str) -> Row:
    """What `dragoman mix` does, with the members asked before."""
    valid, test = (np.stack([getattr(member, name) for member in members]) for name in ("valid", "test"))
    began = time.perf_counter()
    where = make_bucketing(kind, [member.model for member in members])
    buckets = {name: where.buckets_of_corpus(getattr(texts, name)) for name in ("valid", "test")}
    weights = fit_mixture_weights(valid)
    rows = (
        weights[None] if kind == NO_BUCKETS else fit_bucket_weights(valid, buckets["valid"], len(where.labels), weights)
    )
    figures = (
        perplexity(mix_log_probs(said, rows, buckets[name])) for name, said in (("valid", valid), ("test", test))
    )
    names = " + ".join(member.name for member in members)
    return Row(names, kind, len(where.labels), tuple(weights.tolist()), *figures, time.perf_counter() - began)


def perplexity(log_probs: NDArray[np.float64]) -> float:
    return float(np.exp(-log_probs.mean()))


def measure(data: Path, place: Path, also: Sequence[Path], kinds: Sequence[str]) -> list[Row]:
    models = members_in(place, data, also)
    vocab = models["kn5"].vocab
    texts = Texts(*(Corpus.read(data / f"{name}.txt", vocab) for name in ("valid", "test")))
    members = {name: asked(name, model, texts) for name, model in models.items()}
    rows = [Row(m.name, "", None, (), perplexity(m.valid), perplexity(m.test), m.seconds) for m in members.values()]
    without_cache = [name for name in members if name != "cache"]
    for names in (["kn5", "cache"], without_cache, list(members)):
        needed = [kind for kind in kinds if "recent" not in kind or "cache" in names]
        rows += [mixed([members[name] for name in names], texts, kind) for kind in needed]
    return rows


def print_table(rows: list[Row]) -> None:
    cells = [[row.models, row.buckets, row.number, row.valid, row.test, f"{row.seconds:.1f}"] for row in rows]
    print(format_table(["models", "buckets", "number", "valid", "test", "seconds"], cells))
    print(f"\nprocessor: {processor()}")


def main() -> None:
    warnings.simplefilter("ignore", UserWarning)  # classes have too few counts for some discounts; fixed ones serve
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.txt, valid.txt and test.txt")
    parser.add_argument("--output", type=Path, required=True, help="where kn5, class5 and cache are, or are trained")
    parser.add_argument("--also", type=Path, nargs="*", default=[], metavar="DIR", help="further models to mix in")
    parser.add_argument("--buckets", nargs="*", default=list(KINDS), metavar="KIND", help="which (default: nine)")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    rows = measure(options.data, options.output, options.also, options.buckets)
    print_table(rows)
    if options.json:
        report = {"processor": processor(), "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
