"""What can be trained by following gradients, whichever model it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # counting models do without torch
    from torch import Generator, Tensor

    from dragoman.data.batches import Segment
    from dragoman.data.corpus import Corpus


class Examples(Protocol):
    """What is learned from: a text, pairs of sentences, points on a plane.

    Some say two things more. Their `weights`, if they take up more of a batch than is predicted of them, as a pair with
    a long source does, and their `sort_keys`, by which those that go well together are near each other. Where they say
    neither, both are their sizes.
    """

    def __len__(self) -> int: ...

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many predictions each example asks for: of a sentence, its words and its end.  # (examples,)"""
        ...

    def select(self, examples: NDArray[np.integer]) -> Self:
        """These examples, in this order."""
        ...


class Trainable(Protocol):
    """Anything with parameters. Training turns their gradients on, and off again."""

    def parameters(self) -> Mapping[str, Tensor]: ...

    def regularized_parameters(self) -> Mapping[str, Tensor]:
        """The parameters that L1 and L2 penalties fall on: usually all but the biases."""
        ...


class TrainableScorer(Trainable, Protocol):
    """A language model with gradients: its batched path is what it is trained by."""

    def batch_log_probs(self, corpus: Corpus, noise: Generator | None = None) -> Tensor:
        """log P of every token given those before it in its sentence; with noise, as in training.  # (tokens,)"""
        ...


class SmoothingScorer(TrainableScorer, Protocol):
    """One whose labels can be smoothed."""

    def batch_log_probs(self, corpus: Corpus, noise: Generator | None = None, smoothing: float = 0.0) -> Tensor:
        """The same; with smoothing, (1 - smoothing) log P + smoothing times the mean of the log P of all words."""
        ...


class StreamingScorer(Trainable, Protocol):
    """A language model that carries its state from sentence to sentence, and is trained so."""

    def segment_log_probs(
        self, segment: Segment, carry: Any, noise: Generator | None = None, smoothing: float = 0.0
    ) -> tuple[Tensor, Any]:
        """log P of every token of a segment, and what to carry over to the next; None comes before the first."""
        ...


class StorableModel(Trainable, Protocol):
    """What a training directory can hold: a model that knows how to write itself."""

    settings: Any  # its shape: a `dragoman.core.settings.Settings`
    record: Mapping[str, Any]  # how it was trained, for config.yaml

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Its tables, the parameters among them by their names."""
        ...

    def tables(self, parameters: Mapping[str, NDArray[Any]]) -> Mapping[str, Mapping[str, NDArray[Any]]]:
        """Its arrays with these parameters, by the file that holds them."""
        ...

    def configs(self) -> Mapping[str, dict[str, Any]]:
        """What config.yaml says, by the file; its own, and if there are models inside, theirs."""
        ...

    def file_names(self) -> Sequence[str]:
        """The files that a directory of it has."""
        ...

    def write_into(self, directory: Path) -> None: ...
