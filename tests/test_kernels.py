"""Compiled loops, with and without a cache."""

import numpy as np
import pytest

from dragoman.core.kernels import kernel

STEP = 1


def _double(array):
    return array * 2


@kernel
def _increment(x):
    return x + STEP


@kernel
def _increment_twice(x):
    return _increment(_increment(x))


def test_kernel_computes_what_the_function_does():
    assert kernel(_double)(np.array([1, 2])).tolist() == [2, 4]


def test_kernels_can_call_kernels():
    assert _increment_twice(3) == 5
    assert _increment_twice.function.__globals__["_increment"] is _increment


def test_the_digest_covers_called_kernels_and_constants(monkeypatch):
    """By the digest, machine code is found in the cache."""

    def digests(called):
        monkeypatch.setitem(globals(), "_increment", called)
        return called.digest, kernel(_increment_twice.function).digest

    increment = _increment.function
    before = digests(kernel(increment))
    assert digests(kernel(increment)) == before
    monkeypatch.setitem(globals(), "STEP", 2)
    other_constant = digests(kernel(increment))
    other_function = digests(kernel(_double))
    for place in range(2):
        assert len({before[place], other_constant[place], other_function[place]}) == 3
    assert kernel(increment).compile().__qualname__.endswith(other_constant[0])


def test_kernel_is_compiled_without_cache_if_nothing_can_be_written(monkeypatch):
    """With a read-only package and no home directory, numba refuses to cache."""

    def refuse_to_cache(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr("numba.njit", refuse_to_cache)
    assert kernel(_double).compile()(3) == 6


def test_other_errors_are_raised(monkeypatch):
    def fail(**options):
        raise RuntimeError("something else")

    monkeypatch.setattr("numba.njit", fail)
    with pytest.raises(RuntimeError):
        kernel(_double).compile()
