"""The systems that `translate.py` measures: our translator, one with shortlists, a plain one, and the matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

import plain_translator
from dragoman import ParallelCorpus, TrainingConfig, Translator
from dragoman.align.aligner import Aligner
from dragoman.combine.shortlist import Shortlist, ShortlistScorer
from dragoman.core.scorer import Scorer
from dragoman.data.batches import Batch
from dragoman.models.configs import TranslatorConfig
from dragoman.search.beam import beam_search
from dragoman.training.batch_order import SENTENCES
from dragoman.training.fit import on_device
from dragoman.training.loop import TrainingTask, TrainState, training_steps
from dragoman.training.objectives import negative_log_likelihood, stateless_objective
from fastest_products import multiply
from plain_translator import PlainTranslator, Sizes

BATCH_SIZE = 64  # sentences
CONFIG = TrainingConfig(
    batch_size=BATCH_SIZE, batch_by="sentences", pool=50, learning_rate=0.001, clip=1.0, max_epochs=1000
)

Translations = Sequence[Sequence[int]]  # token ids


class System(Protocol):
    """A system that translates. Only the source of a batch is used."""

    def greedy(self, batch: ParallelCorpus) -> Translations: ...

    def beam(self, batch: ParallelCorpus, beam_size: int) -> Translations: ...


@runtime_checkable
class TrainableSystem(System, Protocol):
    """A system that can also be trained."""

    def training(self) -> Iterator[int]:
        """Train, and yield the number of target tokens of each step."""
        ...


class PlainSystem:
    """The translator in plain PyTorch."""

    def __init__(self, pairs: ParallelCorpus, sizes: Sizes):
        self.pairs = pairs
        self.model = PlainTranslator(sizes)

    def training(self) -> Iterator[int]:
        self.model.train()
        optimizer = torch.optim.Adam(self.model.parameters(), CONFIG.learning_rate)
        for batch in training_batches(self.pairs):
            plain_translator.train_step(self.model, optimizer, batch, clip=1.0)
            yield batch.target.num_tokens

    def greedy(self, batch: ParallelCorpus) -> Translations:
        return plain_translator.greedy_search(self.model.eval(), batch.source)

    def beam(self, batch: ParallelCorpus, beam_size: int) -> Translations:
        return plain_translator.beam_search(self.model.eval(), batch.source, beam_size)


class ShortlistSystem:
    """Our search with shortlists."""

    def __init__(self, model: Translator, pairs: ParallelCorpus):
        lexicon = Aligner.train(pairs).forward.lexicon
        shortlist = Shortlist.from_lexicon(lexicon, model.source_vocab, model.vocab)
        self.listed = ShortlistScorer(model, shortlist)

    def greedy(self, batch: ParallelCorpus) -> Translations:
        return self.beam(batch, 1)

    def beam(self, batch: ParallelCorpus, beam_size: int) -> Translations:
        return search(self.listed.search_scorer(), batch, beam_size)


class OurSystem:
    """A `Translator` with the steps of the training loop, and beam search."""

    def __init__(self, pairs: ParallelCorpus, sizes: Sizes, precision: str | None = None):
        """`precision` is that of training; None: of code that has no such setting."""
        self.config = CONFIG if precision is None else CONFIG.model_copy(update={"precision": precision})
        settings = TranslatorConfig(
            embedding=sizes.embedding,
            hidden=sizes.decoder,
            encoder_hidden=sizes.encoder,
            attention="mlp",
            attention_hidden=sizes.attention,
            readout=sizes.output,
            dropout=sizes.dropout,
            embedding_dropout=sizes.dropout,
        )
        self.pairs = pairs
        self.model = Translator.create(pairs, settings=settings)

    def copy_parameters(self, model: PlainTranslator) -> None:
        """Copy the parameters of the plain model."""
        self.model.load_state_dict(convert_parameters(model))

    def training(self) -> Iterator[int]:
        task = TrainingTask(
            self.pairs,
            int(self.pairs.sizes.sum()),
            None,
            stateless_objective(self.model, negative_log_likelihood),
            self.config,
            perf_counter,
            SENTENCES,
        )
        with on_device(self.model, "cpu"):
            state = TrainState.create(self.model, self.config)
            yield from (report.predictions for report in training_steps(state, task))

    def greedy(self, batch: ParallelCorpus) -> Translations:
        return self.beam(batch, 1)

    def beam(self, batch: ParallelCorpus, beam_size: int) -> Translations:
        return search(self.model, batch, beam_size)


def search(scorer: Scorer, batch: ParallelCorpus, beam_size: int) -> Translations:
    n_best = beam_search(scorer, Batch.empty(len(batch), batch.source), beam_size)
    return [hypotheses[0].ids for hypotheses in n_best]


def convert_parameters(model: PlainTranslator) -> dict[str, Tensor]:
    """Return the parameters of the plain model by the names of our modules.

    The two directions of the encoder are concatenated in a different order: ours has the backward direction first.
    """
    plain = model.state_dict()

    def swap_directions(W: Tensor) -> Tensor:
        return torch.cat([W[:, W.shape[1] // 2 :], W[:, : W.shape[1] // 2]], dim=1)

    embedding_size = model.target_embedding.embedding_dim
    hidden_size = model.query.in_features
    parameters = {
        "source_embedding.weight": plain["source_embedding.weight"],
        "embedding.weight": plain["target_embedding.weight"],
    }
    for direction, suffix in (("left_to_right", ""), ("right_to_left", "_reverse")):
        layer = f"encoder.layers.0.{direction}"
        bias = plain[f"encoder.bias_ih_l0{suffix}"] + plain[f"encoder.bias_hh_l0{suffix}"]
        parameters[f"{layer}.input.weight"] = plain[f"encoder.weight_ih_l0{suffix}"]
        parameters[f"{layer}.recurrent.weight"] = plain[f"encoder.weight_hh_l0{suffix}"]
        parameters[f"{layer}.input.bias"] = bias
    for name in "hc":
        parameters[f"bridge.layers.0.{name}.weight"] = swap_directions(plain[f"bridge_{name}.weight"])
        parameters[f"bridge.layers.0.{name}.bias"] = plain[f"bridge_{name}.bias"]
    decoder_input, combine = plain["decoder.weight_ih"], plain["combine.weight"]
    readout = torch.cat([combine[:, :hidden_size], swap_directions(combine[:, hidden_size:])], dim=1)
    return parameters | {
        "decoder.layers.0.input.weight": decoder_input[:, :embedding_size],
        "decoder.context_input.weight": swap_directions(decoder_input[:, embedding_size:]),
        "decoder.layers.0.recurrent.weight": plain["decoder.weight_hh"],
        "decoder.layers.0.input.bias": plain["decoder.bias_ih"] + plain["decoder.bias_hh"],
        "decoder.attention.score.query_input.weight": plain["query.weight"],
        "decoder.attention.score.key_input.weight": swap_directions(plain["key.weight"]),
        "decoder.attention.score.output": plain["energy.weight"][0],
        "readout.weight": readout,
        "readout.bias": plain["combine.bias"],
        "output.weight.weight": plain["output.weight"],
        "output.bias": plain["output.bias"],
    }


def training_batches(pairs: ParallelCorpus) -> Iterator[ParallelCorpus]:
    """Yield the batches of our training loop, epoch after epoch, without end."""
    epoch = 0
    while True:
        batches: Any = SENTENCES.epoch_batches(pairs, CONFIG, epoch)
        yield from batches
        epoch += 1


# -- the limit -----------------------------------------------------------------------------------------------------


def active_sentences(sizes: np.ndarray) -> list[int]:
    """Return the number of sentences that have a word at each position.  # (longest,)"""
    return [int((sizes > position).sum()) for position in range(int(sizes.max()))]


class MatrixProducts:
    """Only the matrix products of the model, in their real sizes, without padding: a limit of the speed.

    Forward, for B sentences with F source and E target tokens in total (including `</s>`), of which b sentences are
    active at a step:
    - encoder, each direction: words (F, 256) x (256, 1024), and at each step states (b, 256) x (256, 1024);
    - bridge (B, 512) x (512, 512), for h and for c; keys (F, 512) x (512, 512);
    - decoder: words (E, 256) x (256, 2048); at each step [context; state] (b, 1024) x (1024, 2048), query (b, 512) x
      (512, 512), and for each of the b sentences scores (S, 512) x (512,) and context (1, S) x (S, 512);
    - tanh layer (E, 1024) x (1024, 512), softmax (E, 512) x (512, words).
    Backward: products of the same sizes for the gradients of the inputs, step by step where the forward products are
    step by step; and one product over all words for the gradient of each matrix and for that of the source vectors. The
    products of attention at a step count equally for the backward pass. All operands share one buffer, so more of them
    are in the processor's cache than in a real model: if anything, the limit is too high.
    """

    def __init__(
        self,
        pairs: ParallelCorpus,
        sizes: Sizes,
        reference: System | None = None,
        dtype: torch.dtype = torch.float32,
        prepare: Callable[[Tensor], Callable[[Tensor], Tensor]] | None = None,
    ):
        """Create the matrices.

        Args:
            reference: The system whose translations determine the number of steps in decoding.
            dtype: Of the operands.
            prepare: Prepares a matrix for the products of decoding.
        """
        self.dtype, self.prepare = dtype, prepare
        self.prepared: dict[int, Callable[[Tensor], Tensor]] = {}  # by the address of the matrix
        self.pairs, self.sizes, self.reference = pairs, sizes, reference
        self.translations: dict[tuple[int, int], Translations] = {}  # of the reference, by batch and beam size
        vectors = 2 * sizes.encoder
        decoder_gates, encoder_gates = 4 * sizes.decoder, 4 * sizes.encoder
        self.encoder_input = torch.randn(encoder_gates, sizes.embedding)
        self.encoder_recurrent = torch.randn(encoder_gates, sizes.encoder)
        self.bridge = torch.randn(sizes.decoder, vectors)
        self.key = torch.randn(sizes.attention, vectors)
        self.decoder_input = torch.randn(decoder_gates, sizes.embedding)
        self.decoder_recurrent = torch.randn(decoder_gates, vectors + sizes.decoder)
        self.query = torch.randn(sizes.attention, sizes.decoder)
        self.energy = torch.randn(sizes.attention)
        self.combine = torch.randn(sizes.output, sizes.decoder + vectors)
        self.output = torch.randn(sizes.target_words, sizes.output)
        for name, value in list(vars(self).items()):
            if isinstance(value, Tensor):
                setattr(self, name, value.to(dtype))
        self.buffer = torch.randn(1).to(dtype)  # of all operands; it grows when needed

    def _operand(self, *shape: int) -> Tensor:
        """Return a random matrix. Uninitialised memory could contain numbers that are slow to multiply."""
        size = math.prod(shape)
        if size > len(self.buffer):
            self.buffer = torch.randn(size).to(self.dtype)
        return self.buffer[:size].view(shape)

    # -- training --------------------------------------------------------------------------------------------------

    def training(self) -> Iterator[int]:
        for batch in training_batches(self.pairs):
            source, target = batch.source.sizes, batch.target.sizes
            self._encode(source, backward=True)
            self._decode_given(target, int(source.max()))
            yield int(target.sum())

    def _encode(self, sizes: np.ndarray, *, backward: bool = False) -> None:
        words = int(sizes.sum())
        for _ in ("left to right", "right to left"):
            self._multiply(words, self.encoder_input, backward)
            for rows in active_sentences(sizes):
                self._multiply(rows, self.encoder_recurrent, backward, with_gradient=False)
            if backward:
                self._multiply_gradient(words, self.encoder_recurrent)
        for _ in ("h", "c"):
            self._multiply(len(sizes), self.bridge, backward)
        self._multiply(words, self.key, backward)

    def _decode_given(self, sizes: np.ndarray, longest: int) -> None:
        """Forward and backward pass for given target sentences."""
        words, steps = int(sizes.sum()), len(active_sentences(sizes))
        self._multiply(words, self.decoder_input, backward=True)
        for rows in active_sentences(sizes):
            self._multiply(rows, self.decoder_recurrent, backward=True, with_gradient=False)
            self._multiply(rows, self.query, backward=True, with_gradient=False)
            self._attend(rows, 1, longest)
            self._attend(rows, 1, longest)  # backward: the gradients of scores and alpha have the same sizes
        self._multiply_gradient(words, self.decoder_recurrent)
        self._multiply_gradient(words, self.query)
        alphas = self._operand(len(sizes), longest, steps)
        contexts = self._operand(len(sizes), steps, self.key.shape[1])
        torch.bmm(alphas, contexts)  # (B, S, 2 * encoder) gradient of the source vectors
        self._multiply(words, self.combine, backward=True)
        self._multiply(words, self.output, backward=True)

    def _multiply(self, rows: int, W: Tensor, backward: bool = False, *, with_gradient: bool = True) -> None:
        """Compute W x for some rows; backward, also the gradient of x and, unless computed elsewhere, that of W."""
        x = self._operand(rows, W.shape[1])
        if self.prepare is None or backward:
            multiply(x, W.t())  # (rows, outputs)
        else:
            if W.data_ptr() not in self.prepared:
                self.prepared[W.data_ptr()] = self.prepare(W)
            self.prepared[W.data_ptr()](x)
        if backward:
            multiply(self._operand(rows, W.shape[0]), W)  # (rows, inputs)
            if with_gradient:
                self._multiply_gradient(rows, W)

    def _multiply_gradient(self, rows: int, W: Tensor) -> None:
        multiply(self._operand(rows, W.shape[0]).t(), self._operand(rows, W.shape[1]))  # (outputs, inputs)

    def _attend(self, sentences: int, rows: int, longest: int) -> None:
        """Compute scores and contexts for some hypotheses (rows) of each sentence."""
        self._operand(sentences * rows * longest, self.sizes.attention) @ self.energy  # (sentences * rows * S,)
        vectors = self._operand(sentences, longest, self.key.shape[1])
        torch.bmm(self._operand(sentences, rows, longest), vectors)  # (sentences, rows, 2 * encoder)

    # -- decoding --------------------------------------------------------------------------------------------------

    def greedy(self, batch: ParallelCorpus) -> Translations:
        return self.beam(batch, 1)

    def beam(self, batch: ParallelCorpus, beam_size: int) -> Translations:
        """Return the translations of the reference, computed on the first call, after the same number of steps."""
        key = (id(batch), beam_size)
        if key not in self.translations:
            reference = self.reference
            assert reference is not None
            self.translations[key] = reference.greedy(batch) if beam_size == 1 else reference.beam(batch, beam_size)
        translations = self.translations[key]
        source, target = batch.source.sizes, np.array([len(ids) + 1 for ids in translations])
        self._encode(source)
        for sentences in active_sentences(target):
            for W in (self.decoder_input, self.decoder_recurrent, self.query, self.combine, self.output):
                self._multiply(beam_size * sentences, W)
            self._attend(sentences, beam_size, int(source.max()))
        return translations
