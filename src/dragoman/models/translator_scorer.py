"""The steps of a translator, word by word, as search and scoring take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from dragoman.nn.step_products import STEPWISE_PRODUCTS, StepProducts

if TYPE_CHECKING:
    from dragoman.models.translator import Translator

MAX_TABLE_SIZE = 1 << 26  # numbers of the table of word inputs


class TranslatorScorer:
    """A translator as a scorer.

    With `prepare`, its matrices are prepared for products with few rows, and W_x embed(e_{t-1}) + b of every word is
    computed once. A prepared scorer does not notice later changes of the parameters.
    """

    def __init__(self, model: Translator, prepare: PackMatrix | None = None):
        self.model, self.vocab, self.unknown = model, model.vocab, model.unknown
        self._products: StepProducts = STEPWISE_PRODUCTS
        self._readout: Matrix | None = model.readout
        self._projection: Matrix | None = model.projection
        self._scores: Matrix | None = None  # of all words, before the softmax
        self._word_inputs: Tensor | None = None  # (|V|, gates * H)
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
        first = model.decoder.layers[0].input
        is_small = len(model.vocab) * first.out_features <= MAX_TABLE_SIZE
        is_quantized = isinstance(model.embedding.weight, Int8Tensor)  # so the table would be larger than the model
        if is_small and not is_quantized:
            self._word_inputs = model.decoder.word_inputs(model.embedding.weight)

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
            words = words.to(self.model.device)
            if self._word_inputs is not None:
                p = self._word_inputs.index_select(0, words)  # (rows, gates * H)
            else:
                p = decoder.word_inputs(self.model.embedding(words))
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

    def prepare_for_search(self) -> TranslatorScorer:
        return self

    def word_subset(self, words: Tensor) -> WordSubset:
        """Return the parameters of some words for each sentence.  # words: (sentences, n)"""
        output = self.model.output
        assert isinstance(output, FullSoftmax), "words of a class are scored together"
        with self.model.evaluation_mode():
            return output.subset(words, self.model.tied_weight)

    def subset_scores(self, state: State, subset: WordSubset) -> Tensor:
        """Return log P of the words of each row's sentence, up to a constant per row.  # (rows, n)"""
        lexicon = self.model.lexicon
        assert state.sentence is not None, "the words belong to sentences"
        with self.model.evaluation_mode():
            words, x = subset.words.index_select(0, state.sentence), self._features(state)
            if subset.weights is None:
                scores = self._all_scores(x).cpu().gather(1, words)
            else:
                layout = RowLayout.of(state.sentence, len(subset.words))
                scores = layout.to_rows(subset.scores(layout.to_grid(x))).cpu()
            if lexicon is None or state.memory is None:
                return scores
            return lexicon.subset_scores(scores, words, *self._candidate_boosts(lexicon, state))

    def _all_scores(self, x: Tensor) -> Tensor:
        """Return the input of the softmax over all words.  # (rows, inputs) -> (rows, |V|)"""
        if self._scores is not None:
            return self._scores(x)
        assert isinstance(self.model.output, FullSoftmax)
        return torch.nn.functional.linear(x, *self.model.output.weights(self.model.tied_weight))

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


class PreparedScorer:
    """The scorer of a translator for search, prepared when it is first needed, and again after changes of parameters."""

    def __init__(self) -> None:
        self._scorer: TranslatorScorer | None = None
        self._parameters: list[tuple[Tensor, int]] = []  # with their versions, when the scorer was prepared

    def get(self, model: Translator, prepare: PackMatrix) -> TranslatorScorer:
        parameters: list[tuple[Tensor, int]] = [(parameter, parameter._version) for parameter in model.parameters()]
        scorer = self._scorer
        is_current = len(parameters) == len(self._parameters) and all(
            part is old and version == old_version
            for (part, version), (old, old_version) in zip(parameters, self._parameters, strict=True)
        )
        if scorer is None or not is_current:
            scorer = TranslatorScorer(model, prepare)
            self._scorer, self._parameters = scorer, parameters
        return scorer

    def __deepcopy__(self, memo: dict[int, Any]) -> PreparedScorer:
        return PreparedScorer()

    def __reduce__(self) -> tuple[type[PreparedScorer], tuple[()]]:
        return PreparedScorer, ()
