"""What neural language models have in common: words as vectors on the way in, and a softmax on the way out."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.errors import DataError
from dragoman.language_model import Saved
from dragoman.layers import class_softmax, softmax
from dragoman.layers.class_softmax import WordClasses, class_log_probs, frequency_classes
from dragoman.layers.initial import PRECISIONS, glorot, log_unigram, uniform
from dragoman.layers.perceptron import affine
from dragoman.layers.softmax import never_start
from dragoman.models.network_config import NetworkConfig
from dragoman.models.neural import NeuralModel, settings_of
from dragoman.settings import validated
from dragoman.text.brown import brown_clusters
from dragoman.text.corpus import Corpus
from dragoman.text.unknown import Uniform, UnknownWords
from dragoman.text.vocab import Vocab
from dragoman.text.word_vectors import WordVectors, vectors_for

CLASS_OF = "class_of"  # the table of the softmax's classes on disk


class Network(NeuralModel):
    """A language model from word vectors M to a softmax; what is between them is the model's own."""

    config_class: ClassVar[type[NetworkConfig]]
    settings: NetworkConfig
    smooths_labels: ClassVar[bool] = True

    def __init__(
        self,
        vocab: Vocab,
        unknown: UnknownWords,
        settings: NetworkConfig,
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
        settings: NetworkConfig | None = None,
        *,
        unknown: UnknownWords | None = None,
        seed: int = 1,
        vectors: WordVectors | None = None,
        **others: Any,
    ) -> Self:
        """An untrained model of a text's words; other settings are those of its configuration.

        Words that are among the `vectors` given start with theirs.
        """
        settings = validated(settings or cls.config_class, others, "settings")
        classes = _classes(corpus, settings)
        first = cls._first_parameters(len(corpus.vocab), settings, Generator().manual_seed(seed), classes)
        first["b_s"] = log_unigram(corpus, PRECISIONS[settings.precision])
        if classes is not None:
            first["b_c"] = class_log_probs(first["b_s"], classes)
        if vectors is not None:
            _take_vectors(first["M"], corpus.vocab, vectors)
        return cls(corpus.vocab, unknown or Uniform(corpus.vocab.known), settings, first, classes)

    @classmethod
    def _first_parameters(
        cls, words: int, settings: Any, chance: Generator, classes: WordClasses | None
    ) -> dict[str, Tensor]:
        """Random matrices and zero biases of the sizes that the settings ask for."""
        dtype = PRECISIONS[settings.precision]
        first = {"M": uniform((words, settings.embedding), settings.embedding_reach, chance, dtype)}
        inner, last = cls._inner_parameters(settings, chance, dtype)
        outputs = settings.embedding if settings.tied else last
        first |= inner
        if settings.tied and last != settings.embedding:
            first["W_out"] = glorot(settings.embedding, last, chance, dtype)
            first["b_out"] = torch.zeros(settings.embedding, dtype=dtype)
        if not settings.tied:
            first["W_hs"] = glorot(words, last, chance, dtype)
        past = cls._past_hidden(settings)
        if past:
            first["W_ms"] = torch.zeros((words, past), dtype=dtype)
        first["b_s"] = torch.zeros(words, dtype=dtype)
        if classes is not None:
            first["W_c"] = torch.zeros((len(classes), outputs + past), dtype=dtype)
            first["b_c"] = torch.zeros(len(classes), dtype=dtype)
        return first

    @classmethod
    @abstractmethod
    def _inner_parameters(cls, settings: Any, chance: Generator, dtype: torch.dtype) -> tuple[dict[str, Tensor], int]:
        """The parameters between word vectors and output, and how long what comes out of there is."""

    @classmethod
    def _past_hidden(cls, settings: Any) -> int:
        """Numbers that reach the output past the hidden layers."""
        return 0

    def parameters(self) -> Mapping[str, Tensor]:
        return self._parameters

    def first_parameters(self, chance: Generator) -> dict[str, Tensor]:
        """Parameters of this model's sizes as they are before training."""
        return self._first_parameters(len(self.vocab), self.settings, chance, self.classes)

    @property
    def device(self) -> torch.device:
        return self._parameters["M"].device

    def word_vectors(self) -> WordVectors:
        """M: the vector that stands for each word, `<s>`, `</s>` and `<unk>` among them."""
        return WordVectors(self.vocab.words, self._parameters["M"].detach().cpu().numpy())

    # -- the output layer --------------------------------------------------------------------------------------------

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

    # -- on disk -----------------------------------------------------------------------------------------------------

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        classes = {} if self.classes is None else {CLASS_OF: self.classes.class_of.numpy()}
        return {**super().arrays(), **classes}

    @classmethod
    def from_saved(cls, saved: Saved) -> Self:
        settings = settings_of(saved, cls.config_class)
        classes = _saved_classes(saved) if settings.softmax != "full" else None
        first = cls._first_parameters(len(saved.vocab), settings, Generator(), classes)
        record = {key: value for key, value in saved.config.items() if key != "model"}
        model = cls(saved.vocab, saved.unknown, settings, first, classes, record)
        return model.take(saved.arrays, str(saved.path))


def _classes(corpus: Corpus, settings: NetworkConfig) -> WordClasses | None:
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
