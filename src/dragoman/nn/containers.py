"""torch's containers with typed elements."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import TYPE_CHECKING, Generic, TypeVar

from torch import nn

M = TypeVar("M", bound=nn.Module)


class TypedModuleList(nn.ModuleList, Generic[M]):
    """A `torch.nn.ModuleList` of modules of one type."""

    def __init__(self, modules: Iterable[M]):
        super().__init__(modules)

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[M]: ...
        def __getitem__(self, index: int) -> M: ...  # type: ignore[override]


class TypedModuleDict(nn.ModuleDict, Generic[M]):
    """A `torch.nn.ModuleDict` of modules of one type."""

    def __init__(self, modules: Mapping[str, M]):
        super().__init__(dict(modules))

    if TYPE_CHECKING:

        def __getitem__(self, key: str) -> M: ...
        def items(self) -> ItemsView[str, M]: ...
        def values(self) -> ValuesView[M]: ...
