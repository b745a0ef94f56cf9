"""Parameters that training does not change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn

from dragoman.core.errors import DataError


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
