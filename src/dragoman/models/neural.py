"""The base classes of models that are torch modules: likelihood of texts, output layers, saving and loading."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry
from dragoman.core.settings import Settings, validate
from dragoman.core.types import Arrays
from dragoman.data.brown import brown_clusters
from dragoman.data.corpus import Corpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import Vocab
from dragoman.data.vocabulary_extension import extend_tokenizer
from dragoman.data.word_vectors import WordVectors, vectors_for
from dragoman.io.storage import ARRAYS_FILE, CONFIG_FILE, VOCAB_FILE
from dragoman.models.base import Config, Model, SavedModel
from dragoman.models.configs import NetworkConfig
from dragoman.models.extension import check_lines, extend_output, extend_unknown_words
from dragoman.models.language_model import LanguageModel
from dragoman.nn.layers import DTYPES, empty_embedding, empty_linear, log_unigram, reset_linear, uniform_
from dragoman.nn.output import ClassFactoredSoftmax, FullSoftmax, OutputLayer, WordClasses, frequency_classes

S = TypeVar("S", bound=Settings)

TOKENS_PER_BATCH = 4096  # while the likelihood of a text is computed
MAX_PARAMETER = 1e6  # larger values of a network would overflow
CLASSES = "output.class_of"  # the word classes in the state of a model


class LanguageModelOutput(NamedTuple):
    """The output of a language model for a batch."""

    log_probs: Tensor  # (tokens,) log P of every token
    carry: Carry = None  # state for the next segment of a stream

    @property
    def losses(self) -> Tensor:
        """Training loss of every token.  # (tokens,)"""
        return -self.log_probs


class NeuralModel(nn.Module, Model):
    """A model that is a torch module.

    `state_dict()` is what is saved. A created or loaded model is in evaluation mode. Scorer methods never use dropout
    and never compute gradients. A custom training loop is the usual one:

        model.train()
        optimizer = torch.optim.Adam(model.parameters())
        for batch in batches:  # selections of a Corpus or ParallelCorpus
            optimizer.zero_grad()
            loss = -model(batch).log_probs.sum() / batch.sizes.sum()
            loss.backward()
            optimizer.step()
        model.eval()
    """

    settings: Settings
    training_metadata: Config  # how it was trained: settings of training and fingerprints of its texts
    supports_label_smoothing: ClassVar[bool] = False
    has_auxiliary_loss: bool = False  # whether `losses` has more terms than -log P

    def __init__(self, settings: Settings, training_metadata: Config | None = None):
        super().__init__()
        self.settings = settings
        self.training_metadata = dict(training_metadata or {})

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def regularized_parameters(self) -> dict[str, nn.Parameter]:
        """Return the parameters that L1 and L2 regularization applies to: all matrices."""
        return {name: parameter for name, parameter in self.named_parameters() if parameter.dim() > 1}

    @contextmanager
    def evaluation_mode(self) -> Iterator[None]:
        """Compute without dropout and without gradients."""
        training = self.training
        if training:
            self.eval()
        try:
            with torch.no_grad(), torch.autocast(self.device.type, enabled=False):
                yield
        finally:
            if training:
                self.train()

    def shape(self) -> Config:
        """Return the sizes that describe the model in its `repr`."""
        return {}

    def __repr__(self) -> str:
        shape = "".join(f"{name}={value}, " for name, value in self.shape().items())
        return f"{type(self).__name__}({shape}parameters={self.num_parameters:,}, vocabulary={len(self.vocab):,})"

    def sizes(self) -> dict[str, int]:
        """Return the numbers of words and parameters, for the model card."""
        return {"words": self.vocab.num_known, "parameters": self.num_parameters}

    def config(self) -> Config:
        return {"model": self.settings.model_dump(mode="json"), **self.training_metadata}

    def arrays(self) -> Arrays:
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.state_dict().items()}

    def arrays_by_file(self, parameters: Arrays) -> Mapping[str, Arrays]:
        """Return the arrays of each file, with these values of the parameters."""
        return {ARRAYS_FILE: {**self.arrays(), **parameters}}

    def configs(self) -> Mapping[str, Config]:
        """Return the contents of each configuration file."""
        return {CONFIG_FILE: self.full_config()}

    def file_names(self) -> Sequence[str]:
        """Return the names of the files in the model's directory."""
        return [CONFIG_FILE, VOCAB_FILE, ARRAYS_FILE, *self.files()]

    @abstractmethod
    def with_settings(self, settings: Settings) -> Self:
        """Return a copy with other settings that need no other parameters, such as dropout."""

    def check_shapes(self, arrays: Arrays, source: str) -> None:
        """Raise an error if arrays do not have the shapes of the parameters and buffers."""
        for name, tensor in self.state_dict().items():
            if name not in arrays or arrays[name].shape != tuple(tensor.shape):
                raise DataError(f"{source}: {name} does not fit the settings; the model directory is broken")

    def load_arrays(self, arrays: Arrays, source: str) -> Self:
        """Copy values into the parameters and buffers, and set evaluation mode."""
        self.check_shapes(arrays, source)
        with torch.no_grad():
            for name, tensor in self.state_dict().items():
                if not np.isfinite(arrays[name]).all():
                    raise DataError(f"{source}: {name} has values that are not finite; the model directory is broken")
                if tensor.is_floating_point() and not (np.abs(arrays[name]) <= MAX_PARAMETER).all():
                    problem = f"{name} has values above {MAX_PARAMETER:g}, with which nothing can be computed"
                    raise DataError(f"{source}: {problem}; the model directory is broken")
                tensor.copy_(torch.from_numpy(np.array(arrays[name])))
        return self.eval()


N = TypeVar("N", bound=NeuralModel)


class NeuralLanguageModel(NeuralModel, LanguageModel):
    """A language model that is a torch module."""

    @abstractmethod
    def forward(self, batch: Corpus, *, generator: Generator | None = None) -> LanguageModelOutput:
        """Return log P of every token of some sentences, a selection of a `Corpus`.

        The generator is that of dropout in training; without one, torch's default generator is used.
        """

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        with self.evaluation_mode():
            parts = [self(part).log_probs.double().cpu().numpy() for part in corpus.chunks(TOKENS_PER_BATCH)]
        return np.concatenate([np.zeros(0), *parts])


def build_saved(build: Callable[[], N], saved: SavedModel) -> N:
    """Return a new model with the arrays of a model directory.

    It is built without memory first: settings of a damaged directory may need more memory than there is.
    """
    with torch.device("meta"):
        build().check_shapes(saved.arrays, str(saved.path))
    return build().load_arrays(saved.arrays, str(saved.path))


def saved_settings(saved: SavedModel, kind: type[S]) -> S:
    """Return the model's settings from config.yaml."""
    if not isinstance(saved.config["model"], dict):
        raise DataError(f"{saved.path / CONFIG_FILE}: `model` has no settings; train or copy the model again")
    return validate(kind, saved.config["model"], f"{saved.path / CONFIG_FILE}", "model")


def create_output(
    hidden_size: int, words: int, settings: NetworkConfig, classes: WordClasses | None, direct_size: int = 0
) -> tuple[nn.Linear | None, OutputLayer]:
    """Return the output layer of a network whose last hidden layer has this length, and a projection before it.

    The projection brings the hidden vector to the length of the embedding, if a tied output needs it.
    """
    size = settings.embedding if settings.tied else hidden_size
    projection = empty_linear(hidden_size, size) if size != hidden_size else None
    if classes is None:
        return projection, FullSoftmax(words, size, tied=settings.tied, direct_size=direct_size)
    return projection, ClassFactoredSoftmax(classes, size, tied=settings.tied, direct_size=direct_size)


def softmax_classes(corpus: Corpus, settings: NetworkConfig) -> WordClasses | None:
    """Return the word classes of the softmax, or None for a full softmax."""
    number = settings.softmax_classes or max(1, round(math.sqrt(len(corpus.vocab))))
    if settings.softmax == "frequency":
        return frequency_classes(np.bincount(corpus.ids_with_boundaries(starts=0), minlength=len(corpus.vocab)), number)
    return WordClasses.from_numbers(brown_clusters(corpus, number).class_of) if settings.softmax == "brown" else None


def saved_classes(saved: SavedModel, settings: NetworkConfig) -> WordClasses | None:
    """Return the word classes in a model directory, or None for a full softmax."""
    if settings.softmax == "full":
        return None
    class_of = saved.arrays[CLASSES]
    if class_of.shape != (len(saved.vocab),) or class_of.dtype != np.int64:
        raise DataError(f"{saved.path}: classes and vocabulary do not fit; the model directory is broken")
    return WordClasses.from_numbers(np.array(class_of))


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
        training_metadata: Config | None = None,
    ):
        """Create a model without initial parameters; see `create`."""
        super().__init__(settings, training_metadata)
        self.vocab, self.unknown, self.classes = vocab, unknown, classes
        self.embedding = empty_embedding(len(vocab), settings.embedding)  # M
        hidden_size, direct_size = self._create_body()
        self.projection, self.output = create_output(hidden_size, len(vocab), settings, classes, direct_size)
        self.to(DTYPES[settings.dtype])

    @abstractmethod
    def _create_body(self) -> tuple[int, int]:
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
        **overrides: object,
    ) -> Self:
        """Create an untrained model of the words of a text.

        Args:
            corpus: Text whose vocabulary and word frequencies are used.
            settings: Settings of the model.
            unknown: Model of unknown words; by default all are equally probable.
            seed: Random seed of the initial parameters.
            vectors: Initial vectors of words; other words have random ones.
            **overrides: Single settings.
        """
        settings = validate(settings or cls.config_class, overrides, "settings")
        unknown = unknown or UniformUnknownWords(corpus.vocab.num_known)
        model = cls(corpus.vocab, unknown, settings, softmax_classes(corpus, settings))
        model.reset_parameters(Generator().manual_seed(seed))
        model.output.start_as_unigram(log_unigram(corpus, model.embedding.weight.dtype))
        if vectors is not None:
            model._set_vectors(vectors)
        return model.eval()

    def reset_parameters(self, generator: Generator) -> None:
        """Draw initial parameters."""
        uniform_(self.embedding.weight, self.settings.embedding_reach, generator)
        self._reset_body(generator)
        if self.projection is not None:
            reset_linear(self.projection, generator)
        self.output.reset_parameters(generator)

    def _set_vectors(self, vectors: WordVectors) -> None:
        """Set the vectors of words that are among those given."""
        weight = self.embedding.weight
        if vectors.dimension != weight.shape[1]:
            sizes = f"the word vectors have {vectors.dimension} numbers, the embedding {weight.shape[1]}"
            raise DataError(f"{sizes}; use the same size")
        given = vectors_for(self.vocab, vectors)
        with torch.no_grad():
            weight[torch.from_numpy(given.present)] = torch.from_numpy(given.matrix[given.present]).to(weight)

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

    def with_settings(self, settings: Settings) -> Self:
        """Return a copy with other settings that need no other parameters, such as dropout."""
        assert isinstance(settings, NetworkConfig)
        model = type(self)(self.vocab, self.unknown, settings, self.classes, self.training_metadata)
        return model.load_arrays(self.arrays(), "the model")

    def extend_vocabulary(self, lines: Sequence[str], *, min_count: int | None = None) -> Self:
        """Return a model that also knows the words of a text. Sentences without new words keep their probabilities.

        Args:
            lines: The new text.
            min_count: Words with a lower count in it are not added. Default: 2.
        """
        check_lines(lines)
        tokenizer, new = extend_tokenizer(Tokenizer(self.vocab), lines, min_count=min_count)
        arrays = extend_output(self.arrays(), new, tied=self.settings.tied)
        classes = None if self.classes is None else WordClasses.from_numbers(arrays[CLASSES])
        unknown = extend_unknown_words(self.unknown, tokenizer.vocab)
        model = type(self)(tokenizer.vocab, unknown, self.settings, classes, self.training_metadata)
        return model.load_arrays(arrays, "the model")

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        settings = saved_settings(saved, cls.config_class)
        training_metadata = {key: value for key, value in saved.config.items() if key != "model"}
        classes = saved_classes(saved, settings)
        return build_saved(lambda: cls(saved.vocab, saved.unknown, settings, classes, training_metadata), saved)
