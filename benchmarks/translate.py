"""Speed of translators: target tokens a second in training, sentences a second in decoding, all in one run.

    python benchmarks/translate.py --data DIR --output translate.json

DIR holds train.de, train.en, val.de, val.en (Multi30k, tokenised). The model is the one by which JoeyNMT's speed was
measured: words seen at least twice, embeddings of 256, a bidirectional LSTM of 256 each way, a decoder LSTM of 512 that
reads [word; context], perceptron attention of 512, a tanh layer of 512 and the softmax over all words; 64 sentences a
batch, Adam, gradients clipped at 1, dropout 0.2. In turns, so that a busy machine slows all down alike:

- ours: the step of the training loop on a `Translator`, and its search.
- shortlist: our search over the words of each sentence's shortlist only (`dragoman.combine.shortlist`), by
  a lexicon learned from the training text before anything is timed.
- plain: the same model as one would write it oneself (`plain_translator.py`).
- limit: the matrix products alone that all of them need (`Limit` of `translate_systems.py` says which).

Before decoding is measured, the plain model is trained for `--train-minutes` (or read from `--weights`), and ours takes
over its parameters: both find the same sentences, and what is compared is the work. BLEU is on val.en, words as they
are; by it one sees what a shortlist costs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import plain_translator as plain
from dragoman import ParallelCorpus
from dragoman.evaluation.translation_metrics import score_translations
from dragoman.report.tables import format_table
from plain_translator import Shape
from ptb_cache import processor
from translate_systems import ROWS, Learning, Limit, Listed, Ours, Plain, System, Translations

BEAM = 5


@dataclass(frozen=True)
class Published:
    """Speeds measured on another machine than this may be: target tokens/s, and sentences/s."""

    training: float
    greedy: float | None = None
    beam: float | None = None


# All of them there, on two cores, the same model on the same text.
PUBLISHED = {
    "JoeyNMT 2.3": Published(training=(1050 + 1280) / 2, greedy=206, beam=80),
    "Eole 0.6.4": Published(training=2370),
    "a plain loop": Published(training=3500),
}
LIMIT_THERE = Published(training=5500, greedy=1200)  # the matrix products alone


# -- measuring -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Speed:
    """The median of the rounds."""

    training: float | None  # target tokens a second
    greedy: float  # sentences a second
    beam: float
    greedy_bleu: float
    beam_bleu: float
    greedy_words: float  # words of a translation, on average: short ones are found faster
    beam_words: float
    greedy_same: float  # share of the translations that are those of the plain model
    beam_same: float


def in_turns(ways: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """What each way tells, several times and in turns; the median."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
        progress(f"round {number + 1}: " + ", ".join(f"{name} {told[-1]:,.0f}" for name, told in found.items()))
    return {name: statistics.median(told) for name, told in found.items()}


def tokens_a_second(steps: Iterator[int], batches: int) -> float:
    began = perf_counter()
    tokens = sum(next(steps) for _ in range(batches))
    return tokens / (perf_counter() - began)


def training_speeds(systems: dict[str, System], batches: int, rounds: int) -> dict[str, float]:
    """All systems learn from the same batches, in the same order."""
    runs = {name: system.training() for name, system in systems.items() if isinstance(system, Learning)}
    for run in runs.values():
        next(run), next(run)
    return in_turns({name: partial(tokens_a_second, run, batches) for name, run in runs.items()}, rounds)


Translate = Callable[[ParallelCorpus], Translations]


def sentences_a_second(translate: Translate, batches: Sequence[ParallelCorpus]) -> float:
    began = perf_counter()
    for batch in batches:
        translate(batch)
    return sum(map(len, batches)) / (perf_counter() - began)


def all_found(translate: Translate, batches: Sequence[ParallelCorpus]) -> list[tuple[int, ...]]:
    return [tuple(words) for batch in batches for words in translate(batch)]


def bleu(found: Translations, references: list[str], spelled: Sequence[str]) -> float:
    texts = [" ".join(spelled[word] for word in words) for words in found]
    return score_translations(texts, references, tokenised=True).bleu


def mean_words(found: Translations) -> float:
    return statistics.mean(map(len, found))


def share_of_same(one: Translations, other: Translations) -> float:
    return statistics.mean(mine == yours for mine, yours in zip(one, other, strict=True))


def decoding_speeds(ways: Mapping[str, Translate], batches: Sequence[ParallelCorpus], rounds: int) -> dict[str, float]:
    return in_turns({name: partial(sentences_a_second, way, batches) for name, way in ways.items()}, rounds)


def measure(systems: dict[str, System], test: ParallelCorpus, batches: int, rounds: int) -> dict[str, Speed]:
    """Decoding comes first: training would change the models."""
    groups = [test.select(numbers) for numbers in plain.by_length(test.source, ROWS)]
    greedy: dict[str, Translate] = {name: system.greedy for name, system in systems.items()}
    beam: dict[str, Translate] = {name: partial(system.beam, size=BEAM) for name, system in systems.items()}
    found = {name: [all_found(ways[name], groups) for ways in (greedy, beam)] for name in systems}
    references = [words for group in groups for words in group.target.sentences_as_text()]
    spelled = test.target.vocab.tokens
    bleus = {name: [bleu(one, references, spelled) for one in two] for name, two in found.items()}
    words = {name: map(mean_words, two) for name, two in found.items()}
    same = {name: map(share_of_same, two, found["plain"]) for name, two in found.items()}
    by_greedy, by_beam = (decoding_speeds(ways, groups, rounds) for ways in (greedy, beam))
    trained = training_speeds(systems, batches, rounds)
    return {
        name: Speed(trained.get(name), by_greedy[name], by_beam[name], *bleus[name], *words[name], *same[name])
        for name in systems
    }


# -- telling -------------------------------------------------------------------------------------------------------


def told(speeds: dict[str, Speed]) -> str:
    headers = ["system", "training, tokens/s"]
    headers += [
        header for way in ("greedy", f"beam {BEAM}") for header in (f"{way}, sentences/s", "BLEU", "words", "as plain")
    ]
    rows = [
        [
            *(name, None if speed.training is None else f"{speed.training:,.0f}"),
            *(
                f"{speed.greedy:,.0f}",
                f"{speed.greedy_bleu:.2f}",
                f"{speed.greedy_words:.1f}",
                f"{speed.greedy_same:.0%}",
            ),
            *(f"{speed.beam:,.0f}", f"{speed.beam_bleu:.2f}", f"{speed.beam_words:.1f}", f"{speed.beam_same:.0%}"),
        ]
        for name, speed in speeds.items()
    ]
    return format_table(headers, rows)


WHAT = ("training", "greedy", "beam")


def ratios(speeds: dict[str, Speed]) -> dict[str, dict[str, float]]:
    """Each system that was measured against the others, and against what was published of other software."""
    others: dict[str, Speed | Published] = {**speeds, **PUBLISHED}
    return {
        f"{one} / {other}": {
            what: own / figure
            for what in WHAT
            if (own := getattr(speeds[one], what)) and (figure := getattr(others[other], what))
        }
        for one in speeds
        for other in others
        if one not in (other, "limit")
    }


def told_ratios(found: dict[str, dict[str, float]]) -> str:
    rows = [
        [name, *(f"{ratio[what]:.2f}" if what in ratio else None for what in WHAT)] for name, ratio in found.items()
    ]
    return format_table(["ratio", "training", "greedy", f"beam {BEAM}"], rows)


def told_shares(speeds: dict[str, Speed]) -> str:
    """How near all come to the limit of the machine that they ran on: this can be compared between machines.

    There, the limit of a beam was not measured: it is taken to be as many times that of greedy search as here.
    """
    limit = speeds["limit"]
    limit_there = replace(LIMIT_THERE, beam=(LIMIT_THERE.greedy or 0.0) * limit.beam / limit.greedy)
    here = [[name, "here", *_shares(speed, limit)] for name, speed in speeds.items() if name != "limit"]
    there = [[name, "there", *_shares(speed, limit_there)] for name, speed in PUBLISHED.items()]
    return format_table(["share of the limit", "measured", "training", "greedy", f"beam {BEAM}"], here + there)


def _shares(speed: Speed | Published, limit: Speed | Published) -> list[str | None]:
    figures = [(getattr(speed, what), getattr(limit, what)) for what in WHAT]
    return [f"{ours / most:.0%}" if ours and most else None for ours, most in figures]


def progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# -- the command ---------------------------------------------------------------------------------------------------


def prepare(system: Plain, weights: Path | None, minutes: float) -> None:
    """Give the plain model parameters with which sentences come to an end: saved ones, or those of a short training."""
    if weights is not None and weights.exists():
        system.model.load_state_dict(load_file(weights))
        return
    began = perf_counter()
    for _ in system.training():
        if perf_counter() - began > 60 * minutes:
            break
    if weights is not None:
        save_file(system.model.state_dict(), weights)


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory with train.de, train.en, val.de, val.en")
    parser.add_argument("--output", type=Path, help="JSON to write")
    parser.add_argument("--weights", type=Path, help="safetensors of the plain model: read, or written if not there")
    parser.add_argument("--train-minutes", type=float, default=3.0, help="to train the plain model before it decodes")
    parser.add_argument("--batches", type=int, default=20, help="to train on, of each system and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1014, help="to translate")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = options_of(arguments)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    pairs = ParallelCorpus.read(options.data / "train.de", options.data / "train.en", min_count=2)
    vocabs = pairs.source.vocab, pairs.target.vocab
    test = ParallelCorpus.read(options.data / "val.de", options.data / "val.en", *vocabs)
    test = test.select(np.arange(min(options.sentences, len(test))))
    shape = Shape(*map(len, vocabs))
    mine = Plain(pairs, shape)
    prepare(mine, options.weights, options.train_minutes)
    ours = Ours(pairs, shape)
    ours.take_over(mine.model)
    progress("learning a lexicon for the shortlists")
    systems: dict[str, System] = {
        "ours": ours,
        "shortlist": Listed(ours.model, pairs),
        "plain": mine,
        "limit": Limit(pairs, shape, like=mine),
    }
    speeds = measure(systems, test, options.batches, options.rounds)
    parameters = sum(tensor.numel() for tensor in mine.model.parameters())
    print(f"{shape}\n{parameters:,} parameters, {options.threads} threads, {processor()}\n")
    print(f"{told(speeds)}\n\n{told_ratios(ratios(speeds))}\n\n{told_shares(speeds)}")
    if options.output:
        report: dict[str, Any] = {
            "speeds": {name: asdict(speed) for name, speed in speeds.items()},
            "ratios": ratios(speeds),
        }
        report |= {"published": {name: asdict(it) for name, it in PUBLISHED.items()}, "shape": asdict(shape)}
        report["limit of that machine"] = asdict(LIMIT_THERE)
        report |= {"parameters": parameters, "threads": options.threads, "processor": processor()}
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
