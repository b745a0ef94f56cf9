"""What models with trained parameters have in common: the way to the likelihood of a text, and to disk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.core.errors import DataError
from dragoman.core.settings import Settings, validate
from dragoman.data.corpus import Corpus
from dragoman.io.storage import ARRAYS_FILE, CONFIG_FILE, VOCAB_FILE
from dragoman.models.base import Model, SavedModel
from dragoman.models.language_model import LanguageModel

S = TypeVar("S", bound=Settings)

TOKENS_PER_BATCH = 4096  # while the likelihood of a text is computed


class NeuralModel(Model):
    """A model whose distribution is a differentiable function of its parameters."""

    settings: Settings
    record: Mapping[str, Any] = {}  # how it was trained, once it is: training's settings and its texts

    @abstractmethod
    def parameters(self) -> Mapping[str, Tensor]:
        """All that training changes, by name."""

    def regularized_parameters(self) -> Mapping[str, Tensor]:
        """Matrices are penalised; biases, which are vectors, are not."""
        return {name: tensor for name, tensor in self.parameters().items() if tensor.dim() > 1}

    # -- on disk -----------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        return {"model": self.settings.model_dump(mode="json"), **self.record}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.parameters().items()}

    def tables(self, parameters: Mapping[str, NDArray[Any]]) -> Mapping[str, Mapping[str, NDArray[Any]]]:
        """The arrays with these parameters, by the file that holds them."""
        return {ARRAYS_FILE: {**self.arrays(), **parameters}}

    def configs(self) -> Mapping[str, dict[str, Any]]:
        """What config.yaml says, by the file."""
        return {CONFIG_FILE: self.full_config()}

    def file_names(self) -> Sequence[str]:
        """The files that its directory has."""
        return [CONFIG_FILE, VOCAB_FILE, ARRAYS_FILE, *self.files()]

    def load_arrays(self, arrays: Mapping[str, NDArray[Any]], source: str) -> Self:
        """Give the parameters these values."""
        for name, tensor in self.parameters().items():
            if name not in arrays or arrays[name].shape != tuple(tensor.shape):
                raise DataError(f"{source}: {name} does not fit the settings; the model directory is broken")
            if not np.isfinite(arrays[name]).all():
                raise DataError(f"{source}: {name} holds what is not a number; the model directory is broken")
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(np.array(arrays[name])))
        return self


class NeuralLanguageModel(NeuralModel, LanguageModel):
    """A language model of this sort."""

    @abstractmethod
    def batch_log_probs(self, corpus: Corpus, noise: Generator | None = None) -> Tensor:
        """log P of every token of these sentences; with noise, as in training.  # (tokens,)"""

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        with torch.no_grad():
            parts = [self.batch_log_probs(part).double().cpu().numpy() for part in corpus.chunks(TOKENS_PER_BATCH)]
        return np.concatenate([np.zeros(0), *parts])


def saved_settings(saved: SavedModel, kind: type[S]) -> S:
    """The model's settings as config.yaml has them."""
    return validate(kind, saved.config["model"], f"{saved.path / CONFIG_FILE}", "model")
