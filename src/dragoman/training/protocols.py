"""What training needs of data and models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor, nn

    from dragoman.core.scorer import Carry
    from dragoman.core.settings import Settings
    from dragoman.core.types import Arrays
    from dragoman.data.unknown_words import UnknownWordModel
    from dragoman.data.vocabulary import Vocab


class Examples(Protocol):
    """Training data: a text, sentence pairs, points on a plane. See also `PaddedExamples`."""

    def __len__(self) -> int: ...
    @property
    def sizes(self) -> NDArray[np.int64]: ...  # (examples,) predictions: for a sentence, its words and its end
    def select(self, indices: NDArray[np.integer], /) -> Self: ...  # these examples, in this order


ExamplesT = TypeVar("ExamplesT", bound=Examples)


@runtime_checkable
class PaddedExamples(Protocol):
    """Examples that are padded on a side that is not predicted, such as sentence pairs."""

    @property
    def weights(self) -> NDArray[np.int64]: ...  # (examples,) the size of each example in a batch
    @property
    def sort_keys(self) -> NDArray[np.int64]: ...  # (examples,) near each other for similar lengths


class LossOutput(Protocol):
    """The output of a model in training."""

    @property
    def log_probs(self) -> Tensor: ...  # (predictions,) log P
    @property
    def losses(self) -> Tensor: ...  # (predictions,) training loss


class CarryOutput(LossOutput, Protocol):
    """The output of a model that carries its state."""

    @property
    def carry(self) -> Carry: ...


@runtime_checkable
class LikelihoodModel(Protocol):
    """A language model or translator: a torch module whose forward method returns a `LossOutput`.

    `model(batch, generator=None, label_smoothing=0.0)`; a model that carries its state reads segments of a stream,
    takes the state after the segment before as `carry`, and returns a `CarryOutput`.
    """

    vocab: Vocab
    unknown: UnknownWordModel
    supports_label_smoothing: bool
    has_auxiliary_loss: bool  # whether losses have more terms than -log P

    @property
    def carries(self) -> bool: ...
    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...
    def __call__(self, batch: Examples, **options: object) -> LossOutput: ...


@runtime_checkable
class TranslationModel(LikelihoodModel, Protocol):
    """A translator."""

    source_vocab: Vocab


@runtime_checkable
class RegularizedModel(Protocol):
    """A module that chooses the parameters of L1 and L2 regularization; for others these are all matrices."""

    def regularized_parameters(self) -> Mapping[str, nn.Parameter]: ...


@runtime_checkable
class StorableModel(Protocol):
    """A model that can be saved in a training directory."""

    settings: Settings
    training_metadata: Mapping[str, object]  # how it was trained, for config.yaml

    def arrays(self) -> Arrays: ...
    def arrays_by_file(self, parameters: Arrays) -> Mapping[str, Arrays]: ...  # with these values of the parameters
    def configs(self) -> Mapping[str, Mapping[str, object]]: ...  # the contents of each configuration file
    def file_names(self) -> Sequence[str]: ...  # of the files in the model's directory
    def write_into(self, directory: Path) -> None: ...
