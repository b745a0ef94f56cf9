"""Compiled loops, with and without a cache directory."""

import numpy as np
import pytest

from dragoman.core import kernels


def test_a_kernel_computes_the_function():
    doubled = kernels.kernel(_double)
    assert doubled(np.array([1, 2])).tolist() == [2, 4]


def test_a_kernel_is_compiled_without_cache_if_there_is_no_place_for_it(monkeypatch):
    """As with a read-only package and no home directory: numba then refuses to cache, when it is asked to."""

    def refuse_to_cache(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(kernels, "njit", refuse_to_cache)
    assert kernels.kernel(_double) is _double


def test_other_errors_are_raised(monkeypatch):
    def fail(**options):
        raise RuntimeError("something else")

    monkeypatch.setattr(kernels, "njit", fail)
    with pytest.raises(RuntimeError):
        kernels.kernel(_double)


def _double(array):
    return array * 2
