"""The steps of a translator, word by word, as search and scoring take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.core.scorer import Carry, State
from dragoman.data.batches import Batch
from dragoman.data.vocabulary import START
from dragoman.nn.activations import tanh
from dragoman.nn.attention import Memory, MLPScore, RowLayout
from dragoman.nn.decoder import CONTEXT, DecoderState
from dragoman.nn.int8 import Int8Tensor
from dragoman.nn.lexicon import LexiconBias
from dragoman.nn.output import FullSoftmax, WordSubset
from dragoman.nn.packed import Matrix, PackedProducts, PackMatrix
from dragoman.nn.products import linear
from dragoman.nn.step_products import STEPWISE_PRODUCTS, StepProducts

if TYPE_CHECKING:
    from dragoman.models.translator import Translator

MAX_TABLE_SIZE = 1 << 25  # numbers of the table of word inputs
TABLE_BLOCK = 16  # rows of the table that are computed at once


class TranslatorScorer:
    """A translator as a scorer.

    With `prepare`, its matrices are prepared for products with few rows, and W_x embed(e_{t-1}) + b of a word is computed
    once. A prepared scorer does not notice later changes of the parameters.
    """

    def __init__(self, model: Translator, prepare: PackMatrix | None = None):
        self.model, self.vocab, self.unknown = model, model.vocab, model.unknown
        self._products: StepProducts = STEPWISE_PRODUCTS
        self._readout: Matrix | None = model.readout
        self._projection: Matrix | None = model.projection
        self._scores: Matrix | None = None  # of all words, before the softmax
        self._word_inputs: Callable[[Tensor], Tensor] | None = None  # (rows,) -> (rows, gates * H)
        if prepare is not None:
            with model.evaluation_mode():
                self._prepare(prepare)

    def _prepare(self, prepare: PackMatrix) -> None:
        model = self.model
        self._products = PackedProducts({name: prepare(W, None) for name, W in step_matrices(model).items()})
        if model.readout is not None:
            self._readout = prepare(model.readout.weight, model.readout.bias)
        if model.projection is not None:
            self._projection = prepare(model.projection.weight, model.projection.bias)
        if isinstance(model.output, FullSoftmax):
            self._scores = prepare(*model.output.weights(model.tied_weight))
        first, embedding = model.decoder.layers[0].input, model.embedding.weight
        is_small = len(embedding) * first.out_features <= MAX_TABLE_SIZE
        is_quantized = isinstance(embedding, Int8Tensor)  # so the table would be larger than the model
        if is_small and not is_quantized and embedding.device.type == "cpu":
            self._word_inputs = WordInputs(model)
        else:
            matrix = prepare(first.weight, first.bias)
            self._word_inputs = lambda words: matrix(model.embedding(words.to(model.device)))

    def start(self, batch: Batch, carry: Carry = None) -> State:
        assert batch.source is not None, "a translator needs a source"
        model = self.model
        with model.evaluation_mode():
            encoded = model.encode(batch.source)
            memory = model.memory(encoded, batch.source)
            sentence = None if memory is None else torch.arange(batch.num_rows)
            state = State(model.initial_state(encoded), memory, sentence)
            return self.advance(state, torch.full((batch.num_rows,), START))

    def advance(self, state: State, words: Tensor) -> State:
        """Return the state after one more word.  # words: (rows,)"""
        decoder, previous = self.model.decoder, state.rows
        with self.model.evaluation_mode():
            if self._word_inputs is not None:
                p = self._word_inputs(words)  # (rows, gates * H)
            else:
                p = decoder.word_inputs(self.model.embedding(words.to(self.model.device)))
            if state.sentence is None:
                return State(previous._replace(layers=decoder.plain_step(p, previous.layers, self._products)))
            memory: Memory = state.memory
            layout = RowLayout.of(state.sentence, len(memory.vectors))
            after = decoder.attention_step(p, previous, memory, layout, self._products)
            return State(after, memory, state.sentence)

    def log_probs(self, state: State) -> Tensor:
        model = self.model
        with model.evaluation_mode():
            x = self._features(state)
            if isinstance(model.output, FullSoftmax):
                log_probs = self._all_scores(x).log_softmax(dim=1).cpu()
            else:
                log_probs = model.output.log_probs(x, model.tied_weight).cpu()
            if model.lexicon is None or state.sentence is None:
                return log_probs
            return model.lexicon.log_probs(log_probs, *self._candidate_boosts(model.lexicon, state))

    def finish(self, state: State) -> Carry:
        return None

    def attention(self, state: State) -> Tensor | None:
        """alpha_t: attention while the next word is predicted.  # (rows, longest source)"""
        rows: DecoderState = state.rows
        return None if state.memory is None else rows.attention.cpu()

    def word_subset(self, state: State, words: Tensor) -> WordSubset:
        """Return the parameters of some words for each sentence of the state.  # words: (sentences, n)"""
        output, lexicon = self.model.output, self.model.lexicon
        assert isinstance(output, FullSoftmax), "words of a class are scored together"
        with self.model.evaluation_mode():
            subset = output.subset(words, self.model.tied_weight)
            if lexicon is None or state.memory is None:
                return subset
            memory: Memory = state.memory
            assert memory.candidates is not None
            return subset._replace(lexicon_probs=lexicon.subset_probs(memory.candidates, words))

    def subset_scores(self, state: State, subset: WordSubset) -> Tensor:
        """Return log P of the words of each row's sentence, up to a constant per row.  # (rows, n)"""
        lexicon = self.model.lexicon
        assert state.sentence is not None, "the words belong to sentences"
        with self.model.evaluation_mode():
            layout, x = RowLayout.of(state.sentence, len(subset.words)), self._features(state)
            if subset.weights is None:
                words = subset.words.index_select(0, state.sentence).to(x.device)  # (rows, n)
                scores = self._all_scores(x).gather(1, words)
            else:
                scores = layout.to_rows(subset.scores(layout.to_grid(x)))
            if lexicon is None or subset.lexicon_probs is None:
                return scores.cpu()
            bias = lexicon.subset_bias(subset.lexicon_probs, layout.to_grid(state.rows.attention))
            return (scores + layout.to_rows(bias)).cpu()

    def _all_scores(self, x: Tensor) -> Tensor:
        """Return the input of the softmax over all words.  # (rows, inputs) -> (rows, |V|)"""
        if self._scores is not None:
            return self._scores(x)
        assert isinstance(self.model.output, FullSoftmax)
        return linear(x, *self.model.output.weights(self.model.tied_weight))

    def _features(self, state: State) -> Tensor:
        """Return the input of the output layer: [h; c], or a tanh layer of it.  # (rows, inputs)"""
        rows: DecoderState = state.rows
        h = rows.layers[-1][0]
        x = h if state.memory is None else torch.cat([h, rows.context], dim=1)
        x = x if self._readout is None else tanh(self._readout(x))
        return x if self._projection is None else self._projection(x)

    def _candidate_boosts(self, lexicon: LexiconBias, state: State) -> tuple[Tensor, Tensor]:
        """Return the lexicon's candidates of each row and their boosts.  # (rows, K) each"""
        rows: DecoderState = state.rows
        memory: Memory = state.memory
        assert memory.candidates is not None and state.sentence is not None
        words, boost = lexicon.row_boosts(memory.candidates, rows.attention, state.sentence)
        return words.cpu(), boost.cpu()


def step_matrices(model: Translator) -> dict[str, Tensor]:
    """Return the matrices of a step of the decoder by the names of their products."""
    decoder, matrices = model.decoder, dict[str, Tensor]()
    for number, layer in enumerate(decoder.layers, 1):
        matrices |= layer.recurrent_matrices(f"state {number}")
        if number > 1:
            matrices[f"input {number}"] = layer.input.weight
    if decoder.context_input is not None:
        matrices[CONTEXT] = decoder.context_input.weight
    if decoder.attention is not None and isinstance(decoder.attention.score, MLPScore):
        matrices["query"] = decoder.attention.score.query_input.weight
    return matrices


class WordInputs:
    """W_x embed(e) + b of words, computed when they are first needed, in blocks of words.

    A word is always computed together with the same others, so that earlier searches change nothing.
    """

    def __init__(self, model: Translator):
        embedding, decoder = model.embedding.weight, model.decoder
        self._embedding, self._compute = embedding, decoder.word_inputs
        with torch.inference_mode(mode=False):  # otherwise it could be filled in this mode only
            self._table = embedding.new_empty(len(embedding), decoder.layers[0].input.out_features)
        self._is_computed = np.zeros(-(-len(embedding) // TABLE_BLOCK), bool)

    def __call__(self, words: Tensor) -> Tensor:
        """# (rows,) -> (rows, gates * H)"""
        blocks = words.numpy() // TABLE_BLOCK
        if not self._is_computed[blocks].all():
            for block in np.unique(blocks[~self._is_computed[blocks]]).tolist():
                rows = slice(block * TABLE_BLOCK, (block + 1) * TABLE_BLOCK)
                self._table[rows] = self._compute(self._embedding[rows])
                self._is_computed[block] = True  # last: another thread may compute the same, and never reads too early
        return self._table.index_select(0, words)


class _Prepared(NamedTuple):
    """A prepared scorer, and what identifies the parameters that it was prepared from."""

    scorer: TranslatorScorer
    versions: list[tuple[object, ...]]
    sample: Tensor


class ScorerCache:
    """Keeps the prepared scorer of a translator until its parameters change.

    Some changes leave a parameter's version as it is: those of its `.data`, and of fused optimizers. So a value from each
    row of each matrix is compared as well.
    """

    def __init__(self) -> None:
        self._prepared: _Prepared | None = None

    def get(self, model: Translator, prepare: PackMatrix) -> TranslatorScorer:
        modules = (model.embedding, model.decoder, model.readout, model.projection, model.output)
        parameters = [part.detach() for module in modules if module is not None for part in module.parameters()]
        versions: list[tuple[object, ...]] = [
            (part.data_ptr(), part._version, part.dtype, part.device, part.shape) for part in parameters
        ]
        sample = torch.cat([_sample(part) for part in parameters])
        prepared = self._prepared
        if prepared is None or prepared.versions != versions or not torch.equal(prepared.sample, sample):
            prepared = _Prepared(TranslatorScorer(model, prepare), versions, sample)
            self._prepared = prepared  # a single assignment: other threads see all of the old one or of the new one
        return prepared.scorer

    def __reduce__(self) -> tuple[type[ScorerCache], tuple[()]]:
        return ScorerCache, ()


def _sample(parameter: Tensor) -> Tensor:
    """Return all values of a vector, and at least one of each row of a matrix, from all columns in turn."""
    return parameter.flatten()[:: max(1, parameter.shape[-1] - 1) if parameter.dim() > 1 else 1]
