"""Training a model further: frozen parameters, and replay, a sample of old examples in every epoch against forgetting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import nn

from dragoman.core.errors import DataError
from dragoman.data.concatenation import concatenate, concatenate_pairs
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.training.batch_order import STREAM, DataOrder, EpochBatches
from dragoman.training.config import TrainingConfig
from dragoman.training.protocols import Examples


@contextmanager
def frozen(model: nn.Module, names: Sequence[str]) -> Iterator[None]:
    """Compute no gradients of some parameters, so that optimizers skip them.

    Args:
        model: Any torch module.
        names: Names of modules or parameters, such as `encoder` or `decoder.attention`. Each stands for all
            parameters in it.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    >>> with frozen(model, ["0"]):
    ...     [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    ['1.weight', '1.bias']
    """
    parameters = dict(model.named_parameters())
    selected = set[str]()
    for name in names:
        inside = {path for path in parameters if path == name or path.startswith(f"{name}.")}
        if not inside:
            raise DataError(f"freeze {name!r}: the model has no such part; it has {', '.join(module_names(model))}")
        selected |= inside
    if names and len(selected) == len(parameters):
        raise DataError(f"freeze {','.join(names)}: this is the whole model, nothing is left to train; freeze less")
    changed = [parameters[name] for name in selected if parameters[name].requires_grad]
    for parameter in changed:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in changed:
            parameter.requires_grad_(True)


def module_names(model: nn.Module) -> list[str]:
    """Return the names of the parts of a model that have parameters, as `freeze` takes them.

    >>> module_names(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)))
    ['0', '2']
    """
    return list(dict.fromkeys(name.partition(".")[0] for name, _ in model.named_parameters()))


def with_replay(data: Examples, old: Examples, order: DataOrder) -> tuple[Examples, DataOrder]:
    """Return new and old examples together, and an order in which each epoch has a sample of the old ones."""
    if isinstance(data, Corpus) and isinstance(old, Corpus):
        both: Examples = concatenate(data, old)
    elif isinstance(data, ParallelCorpus) and isinstance(old, ParallelCorpus):
        both = concatenate_pairs(data, old)
    else:
        kinds = f"{type(data).__name__} and {type(old).__name__}"
        raise DataError(f"replay mixes two texts, or two texts of sentence pairs, not {kinds}")

    def epoch_batches(examples: Examples, config: TrainingConfig, epoch: int) -> EpochBatches:
        sizes, share = (len(data), len(old)), config.replay_share
        indices = replay_indices(*sizes, share, config.seed, epoch, contiguous=order is STREAM)
        return order.epoch_batches(examples.select(indices), config, epoch)

    return both, replace(
        order, epoch_batches=epoch_batches, description=f"{order.description}, {{replay_share:.0%}} of them old"
    )


def replayed_examples(new: int, share: float) -> int:
    """Return how many old examples an epoch has beside new ones."""
    return max(1, round(new * share / (1 - share)))


def replay_indices(
    new: int, old: int, share: float, seed: int, epoch: int, *, contiguous: bool = False
) -> NDArray[np.int64]:
    """Return the examples of an epoch: all new ones, and old ones such that these are the given share.

    New examples have the indices 0 to `new` - 1, old ones follow. Old examples are drawn by seed and epoch; if there
    are too few, each is repeated as often as the others, or once more.

    Args:
        contiguous: Draw a part of the old text in its order, for a text that is read as a stream.

    >>> indices = replay_indices(6, 100, 0.25, seed=1, epoch=0)
    >>> indices[:6].tolist(), (indices[6:] >= 6).tolist()
    ([0, 1, 2, 3, 4, 5], [True, True])
    >>> replay_indices(3, 3, 0.7, seed=1, epoch=0, contiguous=True).tolist()
    [0, 1, 2, 5, 3, 4, 5, 3, 4, 5]
    """
    number = replayed_examples(new, share)
    random = np.random.default_rng([seed, epoch, new])
    if contiguous:
        drawn = (int(random.integers(old)) + np.arange(number)) % old
    else:
        drawn = np.concatenate([random.permutation(old) for _ in range(-(-number // old))])[:number]
    return np.concatenate([np.arange(new), new + drawn])
