"""Speed of translators: target tokens a second in training, sentences a second in decoding, all in one run.

    python benchmarks/translate.py --data DIR --output translate.json

DIR holds train.de, train.en, val.de, val.en (Multi30k, tokenised). The model is the one by which JoeyNMT's speed was
measured: words seen at least twice, embeddings of 256, a bidirectional LSTM of 256 each way, a decoder LSTM of 512 that
reads [word; context], perceptron attention of 512, a tanh layer of 512 and the softmax over all words; 64 sentences a
batch, Adam, gradients clipped at 1, dropout 0.2. In turns, so that a busy machine slows all down alike:

- ours: the step of the training loop on a `Translator`, and its search.
- shortlist: our search where, for each sentence, words of its shortlist alone are looked at (`dragoman.shortlist`), by
  a lexicon learned from the training text before anything is timed.
- plain: the same model as one would write it oneself (`plain_translator.py`).
- limit: the matrix products alone that all of them need (class `Limit` says which).

Before decoding is measured, the plain model is trained for `--train-minutes` (or read from `--weights`), and ours takes
over its parameters: both find the same sentences, and what is compared is the work. BLEU is on val.en, words as they
are; by it one sees what a shortlist costs.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import plain_translator as plain
from dragoman import ParallelCorpus, TrainingConfig
from dragoman.align.aligner import Aligner
from dragoman.evaluation.translation import judge
from dragoman.models.translator import Translator
from dragoman.models.translator_config import TranslatorConfig
from dragoman.report.tables import table
from dragoman.search.beam import beam_search
from dragoman.shortlist import Shortlist, Shortlisted
from dragoman.text.batches import Batch
from dragoman.training.fit import learning
from dragoman.training.loop import Learner, Task, learn
from dragoman.training.objectives import negative_log_likelihood, stateless
from dragoman.training.order import SENTENCES
from plain_translator import PlainTranslator, Shape
from ptb_cache import processor

ROWS = 64  # sentences a batch
BEAM = 5
CONFIG = TrainingConfig(batch_size=ROWS, batch_by="sentences", pool=50, learning_rate=0.001, clip=1.0, max_epochs=1000)

Translations = Sequence[Sequence[int]]


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


class System(Protocol):
    """What can be measured."""

    def greedy(self, batch: ParallelCorpus) -> Translations:
        """Translations of a batch of source sentences; the target is not looked at."""
        ...

    def beam(self, batch: ParallelCorpus, size: int) -> Translations: ...


@runtime_checkable
class Learning(System, Protocol):
    """What can be measured as it learns, too."""

    def training(self) -> Iterator[int]:
        """Steps of training, each told by the target tokens it learned from."""
        ...


class Plain:
    """What one would write oneself."""

    def __init__(self, pairs: ParallelCorpus, shape: Shape):
        self.pairs = pairs
        self.model = PlainTranslator(shape)

    def training(self) -> Iterator[int]:
        self.model.train()
        optimizer = torch.optim.Adam(self.model.parameters(), CONFIG.learning_rate)
        for batch in endless(self.pairs):
            plain.train_step(self.model, optimizer, batch, clip=1.0)
            yield batch.target.tokens

    def greedy(self, batch: ParallelCorpus) -> Translations:
        return plain.greedy(self.model.eval(), batch.source)

    def beam(self, batch: ParallelCorpus, size: int) -> Translations:
        return plain.beam(self.model.eval(), batch.source, size)


class Searching:
    """Our search over a scorer."""

    model: Any

    def greedy(self, batch: ParallelCorpus) -> Translations:
        return self.beam(batch, 1)

    def beam(self, batch: ParallelCorpus, size: int) -> Translations:
        found = beam_search(self.model, Batch.to_generate(len(batch), batch.source), size)
        return [best[0].words for best in found]


class Ours(Searching):
    """A `Translator`: the step of the training loop, and the search."""

    def __init__(self, pairs: ParallelCorpus, shape: Shape):
        settings = TranslatorConfig(
            embedding=shape.embedding,
            hidden=shape.decoder,
            encoder_hidden=shape.encoder,
            attention="mlp",
            attention_hidden=shape.attention,
            readout=shape.output,
            dropout=shape.dropout,
            embedding_dropout=shape.dropout,
        )
        self.pairs = pairs
        self.model = Translator.create(pairs, settings=settings)

    def take_over(self, model: PlainTranslator) -> None:
        """The parameters of the plain model."""
        parameters, given = self.model.parameters(), as_ours(model)
        assert parameters.keys() == given.keys(), "the same model"
        for name, tensor in given.items():
            parameters[name].copy_(tensor)

    def training(self) -> Iterator[int]:
        task = Task(self.pairs, None, stateless(negative_log_likelihood), CONFIG, perf_counter, SENTENCES)
        with learning(self.model, "cpu"):
            yield from (moment.items for moment in learn(Learner.beginner(self.model, CONFIG), task))


class Listed(Searching):
    """Our search by shortlists."""

    def __init__(self, model: Translator, pairs: ParallelCorpus):
        lexicon = Aligner.learn(pairs).forward.lexicon
        shortlist = Shortlist.from_lexicon(lexicon, model.source_vocab, model.vocab)
        self.model = Shortlisted(model, shortlist)


def as_ours(model: PlainTranslator) -> dict[str, Tensor]:
    """The plain model's parameters by our names. We have the backward encoder's vectors first, torch the forward's."""
    theirs = model.state_dict()

    def turned(W: Tensor) -> Tensor:
        return torch.cat([W[:, W.shape[1] // 2 :], W[:, : W.shape[1] // 2]], dim=1)

    words = model.target_embedding.embedding_dim
    states = model.query.in_features
    found = {"M_f": theirs["source_embedding.weight"], "M": theirs["target_embedding.weight"]}
    for way, suffix in (("forward", ""), ("backward", "_reverse")):
        for letter, name in (("x", "ih"), ("h", "hh")):
            found[f"encoder.{way}.W_{letter}1"] = theirs[f"encoder.weight_{name}_l0{suffix}"]
        found[f"encoder.{way}.b1"] = theirs[f"encoder.bias_ih_l0{suffix}"] + theirs[f"encoder.bias_hh_l0{suffix}"]
    for letter in "hc":
        found[f"bridge.W_{letter}1"] = turned(theirs[f"bridge_{letter}.weight"])
        found[f"bridge.b_{letter}1"] = theirs[f"bridge_{letter}.bias"]
    read = theirs["decoder.weight_ih"]
    found |= {"decoder.W_x1": read[:, :words], "decoder.W_c": turned(read[:, words:])}
    found |= {
        "decoder.W_h1": theirs["decoder.weight_hh"],
        "decoder.b1": theirs["decoder.bias_ih"] + theirs["decoder.bias_hh"],
    }
    found |= {"attention.W_e": theirs["query.weight"], "attention.W_f": turned(theirs["key.weight"])}
    found["attention.w_a2"] = theirs["energy.weight"][0]
    combine = theirs["combine.weight"]
    found["readout.W"] = torch.cat([combine[:, :states], turned(combine[:, states:])], dim=1)
    return found | {"readout.b": theirs["combine.bias"], "W_hs": theirs["output.weight"], "b_s": theirs["output.bias"]}


def endless(pairs: ParallelCorpus) -> Iterator[ParallelCorpus]:
    """The batches of epoch after epoch, those of our own training loop."""
    epoch = 0
    while True:
        batches: Any = SENTENCES.epoch(pairs, CONFIG, epoch)
        yield from batches
        epoch += 1


# -- the limit -----------------------------------------------------------------------------------------------------


def still_there(sizes: np.ndarray) -> list[int]:
    """How many of the sentences have a word at each place.  # (longest,)"""
    return [int((sizes > place).sum()) for place in range(int(sizes.max()))]


class Limit:
    """The products of matrices alone, with the shapes they have, no padding, and no step that needs no product.

    Forth, of B sentences with F source and E target words in all (`</s>` counted), b of them still there at a step:
    - encoder, each way: words (F, 256) x (256, 1024), and at each step states (b, 256) x (256, 1024);
    - bridge (B, 512) x (512, 512), of h and of c; keys (F, 512) x (512, 512);
    - decoder: words (E, 256) x (256, 2048); at each step [context; state] (b, 1024) x (1024, 2048), query (b, 512) x
      (512, 512), scores (S, 512) x (512,) and context (1, S) x (S, 512) of each of the b sentences;
    - tanh layer (E, 1024) x (1024, 512), softmax (E, 512) x (512, words).
    Back: as many again by the same shapes for the inputs, step by step where they are step by step forth; and for the
    matrices, one product each over all words, as for the source's vectors by way of the contexts. What attention does
    at a step counts the same back as forth. What is multiplied lies in one place that all share, so that more of it is
    found in the processor's cache than a real model could: if anything, the limit is too high.
    """

    def __init__(self, pairs: ParallelCorpus, shape: Shape, like: System):
        self.pairs, self.shape, self.like = pairs, shape, like
        self.found: dict[tuple[int, int], Translations] = {}  # by that system, of a batch with a beam
        vectors = 2 * shape.encoder
        gates, ways = 4 * shape.decoder, 4 * shape.encoder
        self.encode_x, self.encode_h = torch.randn(ways, shape.embedding), torch.randn(ways, shape.encoder)
        self.bridge = torch.randn(shape.decoder, vectors)
        self.key = torch.randn(shape.attention, vectors)
        self.decode_x, self.decode_h = torch.randn(gates, shape.embedding), torch.randn(gates, vectors + shape.decoder)
        self.query = torch.randn(shape.attention, shape.decoder)
        self.energy = torch.randn(shape.attention)
        self.combine = torch.randn(shape.output, shape.decoder + vectors)
        self.output = torch.randn(shape.target_words, shape.output)
        self.numbers = torch.randn(1)  # what is multiplied: as many as were ever needed at once

    def _any(self, *sizes: int) -> Tensor:
        """Some matrix of this size; not an empty one, for what happens to be in memory may be slow to multiply."""
        needed = math.prod(sizes)
        if needed > len(self.numbers):
            self.numbers = torch.randn(needed)
        return self.numbers[:needed].view(sizes)

    # -- training --------------------------------------------------------------------------------------------------

    def training(self) -> Iterator[int]:
        for batch in endless(self.pairs):
            source, target = batch.source.sizes, batch.target.sizes
            self._encode(source, back=True)
            self._decode_known(target, int(source.max()))
            yield int(target.sum())

    def _encode(self, sizes: np.ndarray, *, back: bool = False) -> None:
        words = int(sizes.sum())
        for _ in ("forwards", "backwards"):
            self._product(words, self.encode_x, back)
            for rows in still_there(sizes):
                self._product(rows, self.encode_h, back, gathered=True)
            if back:
                self._gradient(words, self.encode_h)
        for _ in ("h", "c"):
            self._product(len(sizes), self.bridge, back)
        self._product(words, self.key, back)

    def _decode_known(self, sizes: np.ndarray, longest: int) -> None:
        """Forth and back through target sentences that are given."""
        words, steps = int(sizes.sum()), len(still_there(sizes))
        self._product(words, self.decode_x, back=True)
        for rows in still_there(sizes):
            self._product(rows, self.decode_h, back=True, gathered=True)
            self._product(rows, self.query, back=True, gathered=True)
            self._attend(rows, 1, longest)
            self._attend(rows, 1, longest)  # back: the gradients of scores and of alpha have the same products
        self._gradient(words, self.decode_h)
        self._gradient(words, self.query)
        alphas, contexts = self._any(len(sizes), longest, steps), self._any(len(sizes), steps, self.key.shape[1])
        torch.bmm(alphas, contexts)  # (B, S, 2 * encoder) the gradient of the source's vectors
        self._product(words, self.combine, back=True)
        self._product(words, self.output, back=True)

    def _product(self, rows: int, W: Tensor, back: bool = False, *, gathered: bool = False) -> None:
        """W x of so many rows; back, also the gradient of x and, unless it is gathered elsewhere, that of W."""
        self._any(rows, W.shape[1]) @ W.t()  # (rows, outputs)
        if back:
            self._any(rows, W.shape[0]) @ W  # (rows, inputs)
            if not gathered:
                self._gradient(rows, W)

    def _gradient(self, rows: int, W: Tensor) -> None:
        self._any(rows, W.shape[0]).t() @ self._any(rows, W.shape[1])  # (outputs, inputs)

    def _attend(self, sentences: int, rows: int, longest: int) -> None:
        """Scores and contexts of so many hypotheses of each sentence."""
        self._any(sentences * rows * longest, self.shape.attention) @ self.energy  # (sentences * rows * S,)
        vectors = self._any(sentences, longest, self.key.shape[1])
        torch.bmm(self._any(sentences, rows, longest), vectors)  # (sentences, rows, 2 * encoder)

    # -- decoding --------------------------------------------------------------------------------------------------

    def greedy(self, batch: ParallelCorpus) -> Translations:
        return self.beam(batch, 1)

    def beam(self, batch: ParallelCorpus, size: int) -> Translations:
        """As many steps as another system needed, whose translations these are: the first time, it is asked."""
        if (id(batch), size) not in self.found:
            self.found[id(batch), size] = self.like.greedy(batch) if size == 1 else self.like.beam(batch, size)
        found = self.found[id(batch), size]
        source, target = batch.source.sizes, np.array([len(words) + 1 for words in found])
        self._encode(source)
        for sentences in still_there(target):
            rows = size * sentences
            for W in (self.decode_x, self.decode_h, self.query, self.combine, self.output):
                self._product(rows, W)
            self._attend(sentences, size, int(source.max()))
        return found


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
    return judge(texts, references, tokenised=True).bleu


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
    spelled = test.target.vocab.words
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
    return table(headers, rows)


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
    return table(["ratio", "training", "greedy", f"beam {BEAM}"], rows)


def told_shares(speeds: dict[str, Speed]) -> str:
    """How near all come to the limit of the machine that they ran on: this can be compared between machines.

    There, the limit of a beam was not measured: it is taken to be as many times that of greedy search as here.
    """
    limit = speeds["limit"]
    limit_there = replace(LIMIT_THERE, beam=(LIMIT_THERE.greedy or 0.0) * limit.beam / limit.greedy)
    here = [[name, "here", *_shares(speed, limit)] for name, speed in speeds.items() if name != "limit"]
    there = [[name, "there", *_shares(speed, limit_there)] for name, speed in PUBLISHED.items()]
    return table(["share of the limit", "measured", "training", "greedy", f"beam {BEAM}"], here + there)


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
