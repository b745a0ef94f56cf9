"""Loops compiled by numba."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import RLock
from types import FunctionType
from typing import Generic, TypeVar

R = TypeVar("R")
_lock = RLock()


class Kernel(Generic[R]):
    """A function that numba compiles when it is first called.

    Importing a module with kernels does not import numba, which takes longer than training a small n-gram model.
    """

    def __init__(self, function: Callable[..., R], *, inline: bool = False):
        self.function, self.inline = function, inline
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self._compiled: Callable[..., R] | None = None

    def __call__(self, *args: object) -> R:
        return (self._compiled or self.compile())(*args)

    def compile(self) -> Callable[..., R]:
        """Return numba's dispatcher. It releases the GIL, and its machine code is cached on disk if possible."""
        from numba import njit

        with _lock:
            if self._compiled is None:
                function = self._with_compiled_globals()
                try:
                    self._compiled = njit(cache=True, nogil=True, forceinline=self.inline)(function)
                except RuntimeError:  # neither the package nor a home directory is writable: compile in each process
                    self._compiled = njit(nogil=True, forceinline=self.inline)(function)
            return self._compiled

    def _with_compiled_globals(self) -> FunctionType:
        """Return the function with the dispatchers of the kernels that it calls, which numba looks up as globals."""
        function = self.function
        assert isinstance(function, FunctionType)
        code, names = function.__code__, function.__globals__
        called = {name: names[name].compile() for name in code.co_names if isinstance(names.get(name), Kernel)}
        if not called:
            return function
        copy = FunctionType(code, {**names, **called}, function.__name__, function.__defaults__, function.__closure__)
        copy.__qualname__ = function.__qualname__
        return copy


def compiler_is_loaded() -> bool:
    """Return whether numba has been imported, so that calling a kernel costs little."""
    return "numba" in sys.modules


def kernel(function: Callable[..., R]) -> Kernel[R]:
    """Compile a loop over arrays with numba, at its first call."""
    return Kernel(function)


def inline_kernel(function: Callable[..., R]) -> Kernel[R]:
    """Compile a short function that other kernels call in their loops into them.

    A call with arrays counts their references, which takes longer than a look-up in a table.
    """
    return Kernel(function, inline=True)
