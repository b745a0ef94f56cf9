"""What `translate.py` measures: our translator, one by shortlists, a plain one, and the matrix products alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

import plain_translator as plain
from dragoman import ParallelCorpus, TrainingConfig
from dragoman.align.aligner import Aligner
from dragoman.combine.shortlist import Shortlist, ShortlistScorer
from dragoman.data.batches import Batch
from dragoman.models.translator import Translator
from dragoman.models.translator_config import TranslatorConfig
from dragoman.search.beam import beam_search
from dragoman.training.batch_order import SENTENCES
from dragoman.training.fit import training_mode
from dragoman.training.loop import TrainingTask, TrainState, training_steps
from dragoman.training.objectives import negative_log_likelihood, stateless
from plain_translator import PlainTranslator, Shape

ROWS = 64  # sentences a batch
CONFIG = TrainingConfig(batch_size=ROWS, batch_by="sentences", pool=50, learning_rate=0.001, clip=1.0, max_epochs=1000)

Translations = Sequence[Sequence[int]]


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
            yield batch.target.num_tokens

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
        found = beam_search(self.model, Batch.empty(len(batch), batch.source), size)
        return [best[0].ids for best in found]


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
        self.model.load_state_dict(as_ours(model))

    def training(self) -> Iterator[int]:
        task = TrainingTask(self.pairs, None, stateless(negative_log_likelihood), CONFIG, perf_counter, SENTENCES)
        with training_mode(self.model, "cpu"):
            yield from (moment.predictions for moment in training_steps(TrainState.create(self.model, CONFIG), task))


class Listed(Searching):
    """Our search by shortlists."""

    def __init__(self, model: Translator, pairs: ParallelCorpus):
        lexicon = Aligner.train(pairs).forward.lexicon
        shortlist = Shortlist.from_lexicon(lexicon, model.source_vocab, model.vocab)
        self.model = ShortlistScorer(model, shortlist)


def as_ours(model: PlainTranslator) -> dict[str, Tensor]:
    """The plain model's parameters by our names. We have the backward encoder's vectors first, torch the forward's."""
    theirs = model.state_dict()

    def turned(W: Tensor) -> Tensor:
        return torch.cat([W[:, W.shape[1] // 2 :], W[:, : W.shape[1] // 2]], dim=1)

    words = model.target_embedding.embedding_dim
    states = model.query.in_features
    found = {
        "source_embedding.weight": theirs["source_embedding.weight"],
        "embedding.weight": theirs["target_embedding.weight"],
    }
    for direction, suffix in (("left_to_right", ""), ("right_to_left", "_reverse")):
        layer = f"encoder.layers.0.{direction}"
        found[f"{layer}.input.weight"] = theirs[f"encoder.weight_ih_l0{suffix}"]
        found[f"{layer}.recurrent.weight"] = theirs[f"encoder.weight_hh_l0{suffix}"]
        found[f"{layer}.input.bias"] = theirs[f"encoder.bias_ih_l0{suffix}"] + theirs[f"encoder.bias_hh_l0{suffix}"]
    for letter in "hc":
        found[f"bridge.layers.0.{letter}.weight"] = turned(theirs[f"bridge_{letter}.weight"])
        found[f"bridge.layers.0.{letter}.bias"] = theirs[f"bridge_{letter}.bias"]
    read, combine = theirs["decoder.weight_ih"], theirs["combine.weight"]
    return found | {
        "decoder.layers.0.input.weight": read[:, :words],
        "decoder.context_input.weight": turned(read[:, words:]),
        "decoder.layers.0.recurrent.weight": theirs["decoder.weight_hh"],
        "decoder.layers.0.input.bias": theirs["decoder.bias_ih"] + theirs["decoder.bias_hh"],
        "decoder.attention.score.query_input.weight": theirs["query.weight"],
        "decoder.attention.score.key_input.weight": turned(theirs["key.weight"]),
        "decoder.attention.score.output": theirs["energy.weight"][0],
        "readout.weight": torch.cat([combine[:, :states], turned(combine[:, states:])], dim=1),
        "readout.bias": theirs["combine.bias"],
        "output.weight.weight": theirs["output.weight"],
        "output.bias": theirs["output.bias"],
    }


def endless(pairs: ParallelCorpus) -> Iterator[ParallelCorpus]:
    """The batches of epoch after epoch, those of our own training loop."""
    epoch = 0
    while True:
        batches: Any = SENTENCES.epoch_batches(pairs, CONFIG, epoch)
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
