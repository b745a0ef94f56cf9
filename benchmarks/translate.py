"""Speed of translators: target tokens per second in training, sentences per second in search.

    python benchmarks/translate.py --data DIR --output translate.json

DIR has train.de, train.en, val.de and val.en (Multi30k, tokenised). The model is the one for which JoeyNMT's speed was
measured: words that occur at least twice, embeddings of 256, a bidirectional LSTM of 256 per direction, a decoder LSTM
of 512 that reads [word; context], MLP attention of 512, a tanh layer of 512 and a softmax over all words; 64 sentences
per batch, Adam, gradients clipped at 1, dropout 0.2. Rounds are interleaved, so that other load on the machine slows
all systems down equally:

- ours: the steps of the training loop with a `Translator`, and its search.
- shortlist: our search with only the words of each sentence's shortlist (`dragoman.combine.shortlist`), from a lexicon
  that is learned from the training text beforehand.
- plain: the same model in plain PyTorch (`plain_translator.py`).
- limit: only the matrix products that all systems need (`MatrixProducts` in `translate_systems.py`).

Before search is measured, the plain model is trained for `--train-minutes` (or loaded from `--weights`), and its
parameters are copied to ours: both find the same translations, so the speeds are comparable. BLEU is on val.en without
tokenisation; it shows the loss due to shortlists.
"""

from __future__ import annotations

import argparse
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

from dragoman import ParallelCorpus
from dragoman.evaluation.translation_metrics import score_translations
from dragoman.report.tables import format_table
from plain_translator import Sizes, batches_by_length
from texts_and_results import processor, write_json
from translate_systems import (
    BATCH_SIZE,
    MatrixProducts,
    OurSystem,
    PlainSystem,
    ShortlistSystem,
    System,
    TrainableSystem,
    Translations,
)

BEAM_SIZE = 5
TASKS = ("training", "greedy", "beam")
LIMIT = "limit"


@dataclass(frozen=True)
class PublishedSpeed:
    """A speed on another machine: target tokens per second in training, sentences per second in search."""

    training: float
    greedy: float | None = None
    beam: float | None = None


# The same model on the same text, on two cores of another machine.
PUBLISHED = {
    "JoeyNMT 2.3": PublishedSpeed(training=(1050 + 1280) / 2, greedy=206, beam=80),
    "Eole 0.6.4": PublishedSpeed(training=2370),
    "a plain loop": PublishedSpeed(training=3500),
}
LIMIT_OF_OTHER_MACHINE = PublishedSpeed(training=5500, greedy=1200)  # only the matrix products


# -- measurements --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Speed:
    """Median speeds over rounds, and the translations' quality."""

    training: float | None  # target tokens per second
    greedy: float  # sentences per second
    beam: float
    greedy_bleu: float
    beam_bleu: float
    greedy_words: float  # mean length of the translations; short ones take less time
    beam_words: float
    greedy_same: float  # share of the translations that equal those of the plain model
    beam_same: float


Translate = Callable[[ParallelCorpus], Translations]


def interleaved(measurements: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Repeat measurements in interleaved rounds and return the median of each."""
    values: dict[str, list[float]] = {name: [] for name in measurements}
    for number in range(rounds):
        for name, measure in measurements.items():
            values[name].append(measure())
        latest = ", ".join(f"{name} {measured[-1]:,.0f}" for name, measured in values.items())
        print_progress(f"round {number + 1}: {latest}")
    return {name: statistics.median(measured) for name, measured in values.items()}


def tokens_per_second(steps: Iterator[int], batches: int) -> float:
    start = perf_counter()
    tokens = sum(next(steps) for _ in range(batches))
    return tokens / (perf_counter() - start)


def training_speeds(systems: dict[str, System], batches: int, rounds: int) -> dict[str, float]:
    """Train all systems on the same batches in the same order."""
    training_steps = {
        name: system.training() for name, system in systems.items() if isinstance(system, TrainableSystem)
    }
    for steps in training_steps.values():
        next(steps), next(steps)  # warm up
    return interleaved(
        {name: partial(tokens_per_second, steps, batches) for name, steps in training_steps.items()}, rounds
    )


def sentences_per_second(translate: Translate, batches: Sequence[ParallelCorpus]) -> float:
    start = perf_counter()
    for batch in batches:
        translate(batch)
    return sum(map(len, batches)) / (perf_counter() - start)


def search_speeds(
    searches: Mapping[str, Translate], batches: Sequence[ParallelCorpus], rounds: int
) -> dict[str, float]:
    measurements = {name: partial(sentences_per_second, translate, batches) for name, translate in searches.items()}
    return interleaved(measurements, rounds)


def translate_all(translate: Translate, batches: Sequence[ParallelCorpus]) -> list[tuple[int, ...]]:
    return [tuple(ids) for batch in batches for ids in translate(batch)]


def compute_bleu(translations: Translations, references: list[str], tokens: Sequence[str]) -> float:
    texts = [" ".join(tokens[token] for token in ids) for ids in translations]
    return score_translations(texts, references, tokenised=True).bleu


def mean_length(translations: Translations) -> float:
    return statistics.mean(map(len, translations))


def share_equal(translations: Translations, others: Translations) -> float:
    return statistics.mean(ids == other for ids, other in zip(translations, others, strict=True))


def measure(systems: dict[str, System], test: ParallelCorpus, batches: int, rounds: int) -> dict[str, Speed]:
    """Measure search first, because training changes the models."""
    groups = [test.select(indices) for indices in batches_by_length(test.source, BATCH_SIZE)]
    greedy: dict[str, Translate] = {name: system.greedy for name, system in systems.items()}
    beam: dict[str, Translate] = {name: partial(system.beam, beam_size=BEAM_SIZE) for name, system in systems.items()}
    translations = {name: [translate_all(search[name], groups) for search in (greedy, beam)] for name in systems}
    references = [text for group in groups for text in group.target.sentences_as_text()]
    tokens = test.target.vocab.tokens
    greedy_speeds, beam_speeds = (search_speeds(searches, groups, rounds) for searches in (greedy, beam))
    trained = training_speeds(systems, batches, rounds)
    return {
        name: Speed(
            *(trained.get(name), greedy_speeds[name], beam_speeds[name]),
            *(compute_bleu(part, references, tokens) for part in parts),
            *map(mean_length, parts),
            *map(share_equal, parts, translations["plain"]),
        )
        for name, parts in translations.items()
    }


# -- tables --------------------------------------------------------------------------------------------------------


def format_speeds(speeds: dict[str, Speed]) -> str:
    headers = ["system", "training, tokens/s"]
    for search in ("greedy", f"beam {BEAM_SIZE}"):
        headers += [f"{search}, sentences/s", "BLEU", "words", "same as plain"]
    rows = [
        [
            *(name, None if s.training is None else f"{s.training:,.0f}"),
            *(f"{s.greedy:,.0f}", f"{s.greedy_bleu:.2f}", f"{s.greedy_words:.1f}", f"{s.greedy_same:.0%}"),
            *(f"{s.beam:,.0f}", f"{s.beam_bleu:.2f}", f"{s.beam_words:.1f}", f"{s.beam_same:.0%}"),
        ]
        for name, s in speeds.items()
    ]
    return format_table(headers, rows)


def speed_ratios(speeds: dict[str, Speed]) -> dict[str, dict[str, float]]:
    """Return the speed of each system relative to the others and to published speeds."""
    others: dict[str, Speed | PublishedSpeed] = {**speeds, **PUBLISHED}
    return {
        f"{name} / {other}": {
            task: speed / other_speed
            for task in TASKS
            if (speed := getattr(speeds[name], task)) and (other_speed := getattr(others[other], task))
        }
        for name in speeds
        for other in others
        if name not in (other, LIMIT)
    }


def format_ratios(ratios: dict[str, dict[str, float]]) -> str:
    rows = [
        [name, *(f"{ratio[task]:.2f}" if task in ratio else None for task in TASKS)] for name, ratio in ratios.items()
    ]
    return format_table(["ratio", "training", "greedy", f"beam {BEAM_SIZE}"], rows)


def format_shares_of_limit(speeds: dict[str, Speed]) -> str:
    """Format each speed as a share of the limit of its machine, which is comparable between machines.

    The limit of beam search was not measured on the other machine. Its ratio to that of greedy search is assumed to be
    the same as on this machine.
    """
    limit = speeds[LIMIT]
    other_beam = (LIMIT_OF_OTHER_MACHINE.greedy or 0.0) * limit.beam / limit.greedy
    other_limit = replace(LIMIT_OF_OTHER_MACHINE, beam=other_beam)
    rows = [[name, "this", *_shares(speed, limit)] for name, speed in speeds.items() if name != LIMIT]
    rows += [[name, "other", *_shares(speed, other_limit)] for name, speed in PUBLISHED.items()]
    return format_table(["share of the limit", "machine", "training", "greedy", f"beam {BEAM_SIZE}"], rows)


def _shares(speed: Speed | PublishedSpeed, limit: Speed | PublishedSpeed) -> list[str | None]:
    values = [(getattr(speed, task), getattr(limit, task)) for task in TASKS]
    return [f"{value / maximum:.0%}" if value and maximum else None for value, maximum in values]


def print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# -- the command ---------------------------------------------------------------------------------------------------


def prepare(system: PlainSystem, weights: Path | None, minutes: float) -> None:
    """Load the parameters of the plain model, or train it for a short time, so that its translations end."""
    if weights is not None and weights.exists():
        system.model.load_state_dict(load_file(weights))
        return
    start = perf_counter()
    for _ in system.training():
        if perf_counter() - start > 60 * minutes:
            break
    if weights is not None:
        save_file(system.model.state_dict(), weights)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of train.de, train.en, val.de and val.en")
    parser.add_argument("--output", type=Path, help="also write the results to this JSON file")
    parser.add_argument("--weights", type=Path, help="safetensors file of the plain model; written if it is missing")
    parser.add_argument("--train-minutes", type=float, default=3.0, help="training of the plain model before search")
    parser.add_argument("--batches", type=int, default=20, help="training batches of each system and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1014, help="number of sentences to translate")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    data = arguments.data
    pairs = ParallelCorpus.read(data / "train.de", data / "train.en", min_count=2)
    vocabs = pairs.source.vocab, pairs.target.vocab
    test = ParallelCorpus.read(data / "val.de", data / "val.en", *vocabs)
    test = test.select(np.arange(min(arguments.sentences, len(test))))
    sizes = Sizes(*map(len, vocabs))
    plain = PlainSystem(pairs, sizes)
    prepare(plain, arguments.weights, arguments.train_minutes)
    ours = OurSystem(pairs, sizes)
    ours.copy_parameters(plain.model)
    print_progress("learning a lexicon for the shortlists")
    systems: dict[str, System] = {
        "ours": ours,
        "shortlist": ShortlistSystem(ours.model, pairs),
        "plain": plain,
        LIMIT: MatrixProducts(pairs, sizes, reference=plain),
    }
    speeds = measure(systems, test, arguments.batches, arguments.rounds)
    ratios = speed_ratios(speeds)
    parameters = sum(tensor.numel() for tensor in plain.model.parameters())
    print(f"{sizes}\n{parameters:,} parameters, {arguments.threads} threads, {processor()}\n")
    print(f"{format_speeds(speeds)}\n\n{format_ratios(ratios)}\n\n{format_shares_of_limit(speeds)}")
    report: dict[str, Any] = {
        "speeds": {name: asdict(speed) for name, speed in speeds.items()},
        "ratios": ratios,
        "published": {name: asdict(speed) for name, speed in PUBLISHED.items()},
        "shape": asdict(sizes),
        "limit of that machine": asdict(LIMIT_OF_OTHER_MACHINE),
        "parameters": parameters,
        "threads": arguments.threads,
        "processor": processor(),
    }
    write_json(arguments.output, report)


if __name__ == "__main__":
    main()
