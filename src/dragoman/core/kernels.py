"""Loops compiled by numba."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from types import FunctionType
from typing import Any

_lock = RLock()


class Kernel:
    """A function that numba compiles when it is first called.

    Importing a module with kernels does not import numba, which takes longer than training a small n-gram model.
    """

    def __init__(self, function: FunctionType):
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        return (self._compiled or self.compile())(*args)

    def compile(self) -> Callable[..., Any]:
        """Return numba's dispatcher. It releases the GIL, and its machine code is cached on disk if possible."""
        with _lock:
            if self._compiled is None:
                function = self._with_compiled_globals()
                try:
                    self._compiled = njit(cache=True, nogil=True)(function)
                except RuntimeError:  # neither the package nor a home directory is writable: compile in each process
                    self._compiled = njit(nogil=True)(function)
            return self._compiled

    def _with_compiled_globals(self) -> FunctionType:
        """Return the function with the dispatchers of the kernels that it calls, which numba looks up as globals."""
        function, code = self.function, self.function.__code__
        names = function.__globals__
        called = {name: names[name].compile() for name in code.co_names if isinstance(names.get(name), Kernel)}
        if not called:
            return function
        copy = FunctionType(code, {**names, **called}, function.__name__, function.__defaults__, function.__closure__)
        copy.__qualname__ = function.__qualname__
        return copy


def njit(**options: Any) -> Callable[[FunctionType], Callable[..., Any]]:
    """numba's decorator, imported when it is needed."""
    from numba import njit as decorator

    decorate: Callable[[FunctionType], Callable[..., Any]] = decorator(**options)
    return decorate


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a loop over arrays with numba, at its first call."""
    assert isinstance(function, FunctionType)
    return Kernel(function)
