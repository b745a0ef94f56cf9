"""Loops compiled by numba."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cached_property
from threading import RLock
from types import CodeType, FunctionType
from typing import Generic, TypeVar

import numpy as np

R = TypeVar("R")
CONSTANTS = (bool, int, float, str, tuple, np.generic)  # types of constants that kernels read
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

    @cached_property
    def digest(self) -> str:
        """Tells apart versions of the function, of the kernels that it calls and of the constants that it reads."""
        code, names = self._code(), self.function.__globals__
        parts = [
            code.co_code.hex(),
            repr([c for c in code.co_consts if not isinstance(c, CodeType)]),
            repr(code.co_names),
        ]
        for name in code.co_names:
            value = names.get(name)
            if isinstance(value, Kernel):
                parts.append(value.digest)
            elif isinstance(value, CONSTANTS):
                parts.append(repr(value))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def _with_compiled_globals(self) -> FunctionType:
        """Return the function with the dispatchers of the kernels that it calls, which numba looks up as globals.

        numba compiles again only what is in a file that has changed, but kernels call others from other files. So the
        name, by which machine code is found in the cache, has the digest.
        """
        function, code = self.function, self._code()
        names = function.__globals__
        called = {name: names[name].compile() for name in code.co_names if isinstance(names.get(name), Kernel)}
        copy = FunctionType(code, {**names, **called}, function.__name__, function.__defaults__, function.__closure__)
        copy.__qualname__ = f"{function.__qualname__}_{self.digest}"
        return copy

    def _code(self) -> CodeType:
        assert isinstance(self.function, FunctionType)
        return self.function.__code__


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
