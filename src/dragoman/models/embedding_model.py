"""Neural language models: an embedding, a body and an output layer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
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
from dragoman.models.output_layers import (
    create_output,
    create_projection,
    reset_output,
    saved_classes,
    softmax_classes,
)
from dragoman.nn.init import PRECISIONS, empty_embedding, log_unigram, uniform_
from dragoman.nn.output import OutputLayer
from dragoman.nn.word_classes import WordClasses


class EmbeddingLanguageModel(NeuralLanguageModel):
    """A language model from word vectors to a softmax. Subclasses define the body between them."""

    config_class: ClassVar[type[NetworkConfig]]
    settings: NetworkConfig
    supports_label_smoothing: ClassVar[bool] = True
    output: OutputLayer

    def __init__(
        self,
        vocab: Vocab,
        unknown: UnknownWordModel,
        settings: NetworkConfig,
        classes: WordClasses | None = None,
        training_metadata: Mapping[str, Any] | None = None,
    ):
        """Create a model without initial parameters; see `create`."""
        super().__init__(settings, training_metadata)
        self.vocab, self.unknown = vocab, unknown
        self.classes = classes  # of the softmax, if it has classes
        dtype = PRECISIONS[settings.precision]
        self.embedding = empty_embedding(len(vocab), settings.embedding, dtype=dtype)  # M
        hidden_size, direct_size = self._create_body(dtype)
        self.projection = create_projection(hidden_size, settings, dtype)
        self.output = create_output(len(vocab), hidden_size, settings, classes, dtype, direct_size)

    @abstractmethod
    def _create_body(self, dtype: torch.dtype) -> tuple[int, int]:
        """Create the body. Return the length of its output, and of word vectors connected directly to the output."""

    @abstractmethod
    def _reset_body(self, generator: Generator) -> None:
        """Draw initial parameters of the body."""

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
        """Create an untrained model of the words of a text. Other arguments are settings.

        Args:
            corpus: Text whose vocabulary and word frequencies are used.
            settings: Settings of the model.
            unknown: Model of unknown words; by default all are equally probable.
            seed: Random seed of the initial parameters.
            vectors: Initial vectors of words; other words have random ones.
        """
        settings = validate(settings or cls.config_class, others, "settings")
        unknown = unknown or UniformUnknownWords(corpus.vocab.num_known)
        model = cls(corpus.vocab, unknown, settings, softmax_classes(corpus, settings))
        model.reset_parameters(Generator().manual_seed(seed))
        model.output.start_as_unigram(log_unigram(corpus, model.embedding.weight.dtype))
        if vectors is not None:
            _set_vectors(model.embedding.weight, corpus.vocab, vectors)
        return model.eval()

    def reset_parameters(self, generator: Generator) -> None:
        """Draw initial parameters."""
        uniform_(self.embedding.weight, self.settings.embedding_reach, generator)
        self._reset_body(generator)
        reset_output(self.projection, self.output, generator)

    @property
    def tied_weight(self) -> Tensor | None:
        """The matrix of a tied output layer."""
        return self.embedding.weight if self.settings.tied else None

    def word_vectors(self) -> WordVectors:
        """Return the vectors of all words, including `<s>`, `</s>` and `<unk>`."""
        return WordVectors(self.vocab.tokens, self.embedding.weight.detach().cpu().numpy())

    def _project(self, h: Tensor) -> Tensor:
        """# (rows, hidden) -> (rows, length of the output layer's input)"""
        return h if self.projection is None else self.projection(h)

    def _target_log_probs(self, x: Tensor, words: NDArray[np.integer], label_smoothing: float) -> Tensor:
        """Return log p of one word per row.  # x: (rows, inputs), words: (rows,) -> (rows,)"""
        targets = torch.from_numpy(words).long().to(x.device)
        return self.output.target_log_probs(x, targets, label_smoothing, self.tied_weight)

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        settings = saved_settings(saved, cls.config_class)
        training_metadata = {key: value for key, value in saved.config.items() if key != "model"}
        model = cls(saved.vocab, saved.unknown, settings, saved_classes(saved, settings), training_metadata)
        return model.load_arrays(saved.arrays, str(saved.path))


def _set_vectors(weight: Tensor, vocab: Vocab, vectors: WordVectors) -> None:
    """Set the vectors of words that are among those given."""
    if vectors.dimension != weight.shape[1]:
        sizes = f"the word vectors have {vectors.dimension} numbers, the embedding {weight.shape[1]}"
        raise DataError(f"{sizes}; use the same size")
    given = vectors_for(vocab, vectors)
    with torch.no_grad():
        weight[torch.from_numpy(given.present)] = torch.from_numpy(given.matrix[given.present]).to(weight)
