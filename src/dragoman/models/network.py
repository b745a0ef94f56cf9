"""What neural language models have in common: words as vectors on the way in, and a softmax on the way out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Generator, Tensor

from dragoman.core.errors import DataError
from dragoman.core.settings import validate
from dragoman.data.corpus import Corpus
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import Vocab
from dragoman.data.word_vectors import WordVectors, vectors_for
from dragoman.models.base import SavedModel
from dragoman.models.network_config import NetworkConfig
from dragoman.models.neural import NeuralLanguageModel, saved_settings
from dragoman.models.softmax_model import (
    SoftmaxModel,
    begin_as_unigram,
    output_parameters,
    saved_classes,
    softmax_classes,
)
from dragoman.nn.class_softmax import WordClasses
from dragoman.nn.init import PRECISIONS, uniform


class EmbeddingLanguageModel(SoftmaxModel, NeuralLanguageModel):
    """A language model from word vectors M to a softmax; what is between them is the model's own."""

    config_class: ClassVar[type[NetworkConfig]]
    settings: NetworkConfig
    supports_label_smoothing: ClassVar[bool] = True

    def __init__(
        self,
        vocab: Vocab,
        unknown: UnknownWordModel,
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
        unknown: UnknownWordModel | None = None,
        seed: int = 1,
        vectors: WordVectors | None = None,
        **others: Any,
    ) -> Self:
        """An untrained model of a text's words; other settings are those of its configuration.

        Words that are among the `vectors` given start with theirs.
        """
        settings = validate(settings or cls.config_class, others, "settings")
        classes = softmax_classes(corpus, settings)
        first = cls._first_parameters(len(corpus.vocab), settings, Generator().manual_seed(seed), classes)
        begin_as_unigram(first, corpus, classes)
        if vectors is not None:
            _take_vectors(first["M"], corpus.vocab, vectors)
        return cls(corpus.vocab, unknown or UniformUnknownWords(corpus.vocab.num_known), settings, first, classes)

    @classmethod
    def _first_parameters(
        cls, words: int, settings: Any, chance: Generator, classes: WordClasses | None
    ) -> dict[str, Tensor]:
        """Random matrices and zero biases of the sizes that the settings ask for."""
        dtype = PRECISIONS[settings.precision]
        first = {"M": uniform((words, settings.embedding), settings.embedding_reach, chance, dtype)}
        inner, last = cls._inner_parameters(settings, chance, dtype)
        return first | inner | output_parameters(words, last, settings, chance, classes, cls._past_hidden(settings))

    @classmethod
    @abstractmethod
    def _inner_parameters(cls, settings: Any, chance: Generator, dtype: torch.dtype) -> tuple[dict[str, Tensor], int]:
        """The parameters between word vectors and output, and how long what comes out of there is."""

    @classmethod
    def _past_hidden(cls, settings: Any) -> int:
        """Numbers that reach the output past the hidden layers."""
        return 0

    def first_parameters(self, chance: Generator) -> dict[str, Tensor]:
        """Parameters of this model's sizes as they are before training."""
        return self._first_parameters(len(self.vocab), self.settings, chance, self.classes)

    def word_vectors(self) -> WordVectors:
        """M: the vector that stands for each word, `<s>`, `</s>` and `<unk>` among them."""
        return WordVectors(self.vocab.tokens, self._parameters["M"].detach().cpu().numpy())

    # -- on disk -----------------------------------------------------------------------------------------------------

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        settings = saved_settings(saved, cls.config_class)
        classes = saved_classes(saved, settings)
        first = cls._first_parameters(len(saved.vocab), settings, Generator(), classes)
        record = {key: value for key, value in saved.config.items() if key != "model"}
        model = cls(saved.vocab, saved.unknown, settings, first, classes, record)
        return model.load_arrays(saved.arrays, str(saved.path))


def _take_vectors(M: Tensor, vocab: Vocab, vectors: WordVectors) -> None:
    """Words that have a vector start with it."""
    if vectors.dimension != M.shape[1]:
        raise DataError(
            f"the word vectors have {vectors.dimension} numbers, embeddings {M.shape[1]}; make them the same"
        )
    given = vectors_for(vocab, vectors)
    M[torch.from_numpy(given.present)] = torch.from_numpy(given.matrix[given.present]).to(M)
