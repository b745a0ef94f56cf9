"""The output side of neural models: from a hidden vector to the next word's distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.core.errors import DataError
from dragoman.data.brown import brown_clusters
from dragoman.data.corpus import Corpus
from dragoman.models.base import SavedModel
from dragoman.models.network_config import NetworkConfig
from dragoman.models.neural import NeuralModel
from dragoman.nn import class_softmax, softmax
from dragoman.nn.class_softmax import WordClasses, class_log_probs, frequency_classes
from dragoman.nn.init import PRECISIONS, glorot, log_unigram
from dragoman.nn.mlp import affine
from dragoman.nn.softmax import never_start

CLASS_OF = "class_of"  # the table of the softmax's classes on disk


class SoftmaxModel(NeuralModel):
    """A model whose last layer is a softmax over all words, or over classes and then words; M: the words' vectors."""

    settings: NetworkConfig
    classes: WordClasses | None  # of the softmax, if it has them
    _parameters: dict[str, Tensor]

    def parameters(self) -> Mapping[str, Tensor]:
        return self._parameters

    @property
    def device(self) -> torch.device:
        return self._parameters["M"].device

    def _outward(self, h: Tensor) -> Tensor:
        """A hidden layer as long as the words' vectors, where these are the output weights too.  # (rows, outputs)"""
        parameters = self._parameters
        return affine(h, parameters["W_out"], parameters["b_out"]) if "W_out" in parameters else h

    def _output(self) -> tuple[Tensor, Tensor]:
        """W_hs and b_s; with direct connections, beside each other what the hidden layer and the words' vectors get."""
        parameters = self._parameters
        W = parameters["M"] if self.settings.tied else parameters["W_hs"]  # (|V|, hidden)
        if "W_ms" in parameters:
            W = torch.cat([W, parameters["W_ms"]], dim=1)
        return W, never_start(parameters["b_s"])

    def _by_class(self, classes: WordClasses) -> class_softmax.Output:
        """The same, and the scores of classes that come before those of their words."""
        parameters = self._parameters
        return class_softmax.Output(*self._output(), parameters["W_c"], parameters["b_c"], classes.on(self.device))

    def _word_log_probs(self, h: Tensor) -> Tensor:
        """log p of all words.  # (rows, |V|)"""
        if self.classes is None:
            return softmax.word_log_probs(h, *self._output()).cpu()
        return class_softmax.word_log_probs(h, self._by_class(self.classes)).cpu()

    def _target_log_probs(self, h: Tensor, targets: NDArray[np.integer], smoothing: float) -> Tensor:
        """log p of one word in each row, smoothed if that is asked for.  # (rows,)"""
        words = torch.from_numpy(targets).long().to(h.device)
        if self.classes is None:
            return softmax.target_log_probs(h, *self._output(), words, smoothing)
        return class_softmax.target_log_probs(h, self._by_class(self.classes), words, smoothing)

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        classes = {} if self.classes is None else {CLASS_OF: self.classes.class_of.numpy()}
        return {**super().arrays(), **classes}


def output_parameters(
    words: int,
    last: int,
    settings: NetworkConfig,
    chance: Generator,
    classes: WordClasses | None,
    past: int = 0,
) -> dict[str, Tensor]:
    """Random matrices and zero biases of an output layer that reads vectors of length `last`.

    So many numbers (`past`) reach the softmax directly.
    """
    dtype = PRECISIONS[settings.precision]
    first, outputs = {}, settings.embedding if settings.tied else last
    if settings.tied and last != settings.embedding:
        first["W_out"] = glorot(settings.embedding, last, chance, dtype)
        first["b_out"] = torch.zeros(settings.embedding, dtype=dtype)
    if not settings.tied:
        first["W_hs"] = glorot(words, last, chance, dtype)
    if past:
        first["W_ms"] = torch.zeros((words, past), dtype=dtype)
    first["b_s"] = torch.zeros(words, dtype=dtype)
    if classes is not None:
        first["W_c"] = torch.zeros((len(classes), outputs + past), dtype=dtype)
        first["b_c"] = torch.zeros(len(classes), dtype=dtype)
    return first


def begin_as_unigram(first: dict[str, Tensor], corpus: Corpus, classes: WordClasses | None) -> None:
    """Give the biases the frequencies of words, so that training begins with a unigram model."""
    first["b_s"] = log_unigram(corpus, first["b_s"].dtype)
    if classes is not None:
        first["b_c"] = class_log_probs(first["b_s"], classes)


def softmax_classes(corpus: Corpus, settings: NetworkConfig) -> WordClasses | None:
    """The classes of words that the softmax goes by, if it does."""
    wanted = settings.softmax_classes or max(1, round(math.sqrt(len(corpus.vocab))))
    match settings.softmax:
        case "frequency":
            return frequency_classes(
                np.bincount(corpus.ids_with_boundaries(starts=0), minlength=len(corpus.vocab)), wanted
            )
        case "brown":
            return WordClasses.of(brown_clusters(corpus, wanted).class_of)
        case _:
            return None


def saved_classes(saved: SavedModel, settings: NetworkConfig) -> WordClasses | None:
    """The classes that a model directory has, if its softmax goes by any."""
    if settings.softmax == "full":
        return None
    class_of = saved.arrays[CLASS_OF]
    if class_of.shape != (len(saved.vocab),):
        raise DataError(f"{saved.path}: classes and vocabulary do not fit together; the model directory is broken")
    return WordClasses.of(np.array(class_of))
