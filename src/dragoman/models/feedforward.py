"""Feed-forward neural language models (tutorial, section "Neural-network Language Models"; Bengio et al. 2003)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.errors import DataError
from dragoman.language_model import Saved
from dragoman.layers import class_softmax, softmax
from dragoman.layers.class_softmax import WordClasses, class_log_probs, frequency_classes
from dragoman.layers.dropout import dropout
from dragoman.layers.initial import PRECISIONS, glorot, log_unigram, uniform
from dragoman.layers.perceptron import ACTIVATIONS, affine, hidden
from dragoman.layers.softmax import never_start
from dragoman.models.feedforward_config import FeedForwardConfig
from dragoman.models.neural import NeuralModel, settings_of
from dragoman.scorer import Carry, State
from dragoman.settings import validated
from dragoman.text.batches import Batch
from dragoman.text.brown import brown_clusters
from dragoman.text.corpus import Corpus
from dragoman.text.unknown import Uniform, UnknownWords
from dragoman.text.vocab import START, Vocab
from dragoman.text.windows import context_windows
from dragoman.text.word_vectors import WordVectors, vectors_for

CLASS_OF = "class_of"  # the table of the softmax's classes on disk


class FeedForwardModel(NeuralModel):
    """m = concat(M_{e_{t-n+1}}, ..., M_{e_{t-1}}), h = tanh(W_mh m + b_h), p = softmax(W_hs h + b_s) (eq. nnlm:nnlm).

    >>> from dragoman import Corpus, fit
    >>> corpus = Corpus.from_sentences(["cows eat hay", "farmers grow hay", "farmers eat meat"] * 20)
    >>> model = FeedForwardModel.create(corpus, order=3, embedding=8, hidden=(16,))
    >>> fitted = fit(model, corpus, max_epochs=20, learning_rate=0.02)
    >>> model.next_words("farmers eat")[0].word
    'meat'
    """

    kind: ClassVar[str] = "feed-forward"
    settings: FeedForwardConfig

    def __init__(
        self,
        vocab: Vocab,
        unknown: UnknownWords,
        settings: FeedForwardConfig,
        parameters: Mapping[str, Tensor],
        classes: WordClasses | None = None,
        record: Mapping[str, Any] | None = None,
    ):
        self.vocab, self.unknown, self.settings = vocab, unknown, settings
        self._parameters = dict(parameters)
        self.classes = classes  # of the softmax, if it has them
        self.record = dict(record or {})

    @classmethod
    def create(
        cls,
        corpus: Corpus,
        settings: FeedForwardConfig | None = None,
        *,
        unknown: UnknownWords | None = None,
        seed: int = 1,
        vectors: WordVectors | None = None,
        **others: Any,
    ) -> Self:
        """An untrained model of a text's words. Other settings are those of `FeedForwardConfig`.

        Words that are among the `vectors` given start with theirs.
        """
        settings = validated(settings or FeedForwardConfig, others, "settings")
        classes = _classes(corpus, settings)
        first = _first_parameters(len(corpus.vocab), settings, Generator().manual_seed(seed), classes)
        first["b_s"] = log_unigram(corpus, PRECISIONS[settings.precision])
        if classes is not None:
            first["b_c"] = class_log_probs(first["b_s"], classes)
        if vectors is not None:
            _take_vectors(first["M"], corpus.vocab, vectors)
        return cls(corpus.vocab, unknown or Uniform(corpus.vocab.known), settings, first, classes)

    def parameters(self) -> Mapping[str, Tensor]:
        return self._parameters

    def word_vectors(self) -> WordVectors:
        """M: the vector that stands for each word, `<s>`, `</s>` and `<unk>` among them."""
        return WordVectors(self.vocab.words, self._parameters["M"].detach().cpu().numpy())

    # -- the network -------------------------------------------------------------------------------------------------

    def _hidden(self, contexts: Tensor, noise: Generator | None) -> Tensor:
        """What the output layer sees of a context.  # (rows, n - 1) -> (rows, outputs)"""
        settings, parameters = self.settings, self._parameters
        m = parameters["M"][contexts].flatten(1)  # (rows, (n - 1) L_m)
        m = dropout(m, settings.embedding_dropout, noise)
        h = m
        for layer in range(1, len(settings.hidden) + 1):
            W, b = parameters[f"W_{layer}"], parameters[f"b_{layer}"]
            h = hidden(h, W, b, ACTIVATIONS[settings.activation])  # (rows, hidden)
            h = dropout(h, settings.dropout, noise)
        if "W_out" in parameters:
            h = affine(h, parameters["W_out"], parameters["b_out"])  # (rows, L_m)
        return torch.cat([h, m], dim=1) if settings.direct else h

    def _output(self) -> tuple[Tensor, Tensor]:
        """W_hs and b_s; with direct connections, beside each other what the hidden layer and the words' vectors get."""
        parameters = self._parameters
        W = parameters["M"] if self.settings.tied else parameters["W_hs"]  # (|V|, hidden)
        if self.settings.direct:
            W = torch.cat([W, parameters["W_ms"]], dim=1)
        return W, never_start(parameters["b_s"])

    def _by_class(self, classes: WordClasses) -> class_softmax.Output:
        """The same, and the scores of classes that come before those of their words."""
        return class_softmax.Output(*self._output(), self._parameters["W_c"], self._parameters["b_c"], classes)

    def batch_log_probs(self, corpus: Corpus, noise: Generator | None = None) -> Tensor:
        device = self._parameters["M"].device
        contexts = torch.from_numpy(context_windows(corpus, self.settings.order - 1)).long().to(device)
        targets = torch.from_numpy(corpus.framed(starts=0)).long().to(device)
        h = self._hidden(contexts, noise)
        if self.classes is None:
            return softmax.target_log_probs(h, *self._output(), targets)
        return class_softmax.target_log_probs(h, self._by_class(self.classes), targets)

    # -- the scorer ------------------------------------------------------------------------------------------------

    def start(self, batch: Batch, carry: Carry = None) -> State:
        return State(torch.full((batch.rows, self.settings.order - 1), START))

    def log_probs(self, state: State) -> Tensor:
        contexts: Tensor = state.rows  # (rows, n - 1)
        device = self._parameters["M"].device
        h = self._hidden(contexts.to(device), None)
        if self.classes is None:
            return softmax.word_log_probs(h, *self._output()).cpu()
        return class_softmax.word_log_probs(h, self._by_class(self.classes)).cpu()

    def advance(self, state: State, words: Tensor) -> State:
        return State(torch.cat([state.rows[:, 1:], words[:, None]], dim=1))

    # -- on disk -----------------------------------------------------------------------------------------------------

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        classes = {} if self.classes is None else {CLASS_OF: self.classes.class_of.numpy()}
        return {**super().arrays(), **classes}

    @classmethod
    def from_saved(cls, saved: Saved) -> Self:
        settings = settings_of(saved, FeedForwardConfig)
        classes = _saved_classes(saved) if settings.softmax != "full" else None
        first = _first_parameters(len(saved.vocab), settings, Generator(), classes)
        record = {key: value for key, value in saved.config.items() if key != "model"}
        model = cls(saved.vocab, saved.unknown, settings, first, classes, record)
        return model.take(saved.arrays, str(saved.path))


def _classes(corpus: Corpus, settings: FeedForwardConfig) -> WordClasses | None:
    """The classes of words that the softmax goes by, if it does."""
    wanted = settings.softmax_classes or max(1, round(math.sqrt(len(corpus.vocab))))
    match settings.softmax:
        case "frequency":
            return frequency_classes(np.bincount(corpus.framed(starts=0), minlength=len(corpus.vocab)), wanted)
        case "brown":
            return WordClasses.of(brown_clusters(corpus, wanted).class_of)
        case _:
            return None


def _saved_classes(saved: Saved) -> WordClasses:
    class_of = saved.arrays[CLASS_OF]
    if class_of.shape != (len(saved.vocab),):
        raise DataError(f"{saved.path}: classes and vocabulary do not fit together; the model directory is broken")
    return WordClasses.of(np.array(class_of))


def _take_vectors(M: Tensor, vocab: Vocab, vectors: WordVectors) -> None:
    """Words that have a vector start with it."""
    if vectors.dimension != M.shape[1]:
        raise DataError(
            f"the word vectors have {vectors.dimension} numbers, embeddings {M.shape[1]}; make them the same"
        )
    given = vectors_for(vocab, vectors)
    M[torch.from_numpy(given.found)] = torch.from_numpy(given.matrix[given.found]).to(M)


def _first_parameters(
    words: int, settings: FeedForwardConfig, chance: Generator, classes: WordClasses | None
) -> dict[str, Tensor]:
    """Random matrices and zero biases of the sizes that the settings ask for."""
    dtype = PRECISIONS[settings.precision]
    context = settings.embedding * (settings.order - 1)
    parameters = {"M": uniform((words, settings.embedding), settings.embedding_reach, chance, dtype)}
    sizes = [context, *settings.hidden]
    for layer, (inputs, outputs) in enumerate(pairwise(sizes), 1):
        parameters[f"W_{layer}"] = glorot(outputs, inputs, chance, dtype)
        parameters[f"b_{layer}"] = torch.zeros(outputs, dtype=dtype)
    if settings.tied and sizes[-1] != settings.embedding:
        parameters["W_out"] = glorot(settings.embedding, sizes[-1], chance, dtype)
        parameters["b_out"] = torch.zeros(settings.embedding, dtype=dtype)
    if not settings.tied:
        parameters["W_hs"] = glorot(words, sizes[-1], chance, dtype)
    if settings.direct:
        parameters["W_ms"] = torch.zeros((words, context), dtype=dtype)
    parameters["b_s"] = torch.zeros(words, dtype=dtype)
    if classes is not None:
        last = settings.embedding if settings.tied else sizes[-1]
        parameters["W_c"] = torch.zeros((len(classes), last + context * settings.direct), dtype=dtype)
        parameters["b_c"] = torch.zeros(len(classes), dtype=dtype)
    return parameters
