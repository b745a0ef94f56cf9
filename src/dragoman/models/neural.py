"""The base class of models that are torch modules: likelihood of texts, and saving and loading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry
from dragoman.core.settings import Settings, validate
from dragoman.data.corpus import Corpus
from dragoman.io.storage import ARRAYS_FILE, CONFIG_FILE, VOCAB_FILE
from dragoman.models.base import Model, SavedModel
from dragoman.models.language_model import LanguageModel

S = TypeVar("S", bound=Settings)

TOKENS_PER_BATCH = 4096  # while the likelihood of a text is computed


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
    and never compute gradients. A training loop of your own is the usual one:

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
    training_metadata: Mapping[str, Any]  # how it was trained: settings of training and fingerprints of its texts
    supports_label_smoothing: ClassVar[bool] = False
    has_auxiliary_loss: bool = False  # whether `losses` has more terms than -log P

    def __init__(self, settings: Settings, training_metadata: Mapping[str, Any] | None = None):
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
        """Return the parameters that L1 and L2 regularization applies to: all except biases."""
        return {name: parameter for name, parameter in self.named_parameters() if parameter.dim() > 1}

    @contextmanager
    def inference_mode(self) -> Iterator[None]:
        """Compute without dropout and without gradients."""
        training = self.training
        if training:
            self.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            if training:
                self.train()

    def shape(self) -> dict[str, Any]:
        """Return the sizes that describe the model in its `repr`."""
        return {}

    def __repr__(self) -> str:
        shape = "".join(f"{name}={value}, " for name, value in self.shape().items())
        return f"{type(self).__name__}({shape}parameters={self.num_parameters:,}, vocabulary={len(self.vocab):,})"

    def sizes(self) -> dict[str, int]:
        """Return the numbers of words and parameters, for the model card."""
        return {"words": self.vocab.num_known, "parameters": self.num_parameters}

    # -- saving and loading --------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        return {"model": self.settings.model_dump(mode="json"), **self.training_metadata}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.state_dict().items()}

    def arrays_by_file(self, parameters: Mapping[str, NDArray[Any]]) -> Mapping[str, Mapping[str, NDArray[Any]]]:
        """Return the arrays of each file, with these values of the parameters."""
        return {ARRAYS_FILE: {**self.arrays(), **parameters}}

    def configs(self) -> Mapping[str, dict[str, Any]]:
        """Return the contents of each configuration file."""
        return {CONFIG_FILE: self.full_config()}

    def file_names(self) -> Sequence[str]:
        """Return the names of the files in the model's directory."""
        return [CONFIG_FILE, VOCAB_FILE, ARRAYS_FILE, *self.files()]

    def load_arrays(self, arrays: Mapping[str, NDArray[Any]], source: str) -> Self:
        """Copy values into the parameters and buffers, and set evaluation mode."""
        with torch.no_grad():
            for name, tensor in self.state_dict().items():
                if name not in arrays or arrays[name].shape != tuple(tensor.shape):
                    raise DataError(f"{source}: {name} does not fit the settings; the model directory is broken")
                if not np.isfinite(arrays[name]).all():
                    raise DataError(f"{source}: {name} has values that are not finite; the model directory is broken")
                tensor.copy_(torch.from_numpy(np.array(arrays[name])))
        return self.eval()


class NeuralLanguageModel(NeuralModel, LanguageModel):
    """A language model that is a torch module."""

    @abstractmethod
    def forward(self, batch: Any, *, generator: Generator | None = None) -> LanguageModelOutput:
        """Return log P of every token of some sentences, a selection of a `Corpus`.

        The generator is that of dropout in training; without one, torch's default generator is used.
        """

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        with self.inference_mode():
            parts = [self(part).log_probs.double().cpu().numpy() for part in corpus.chunks(TOKENS_PER_BATCH)]
        return np.concatenate([np.zeros(0), *parts])


def saved_settings(saved: SavedModel, kind: type[S]) -> S:
    """Return the model's settings from config.yaml."""
    return validate(kind, saved.config["model"], f"{saved.path / CONFIG_FILE}", "model")
