"""The type of the inputs of matrix products in training.

In bfloat16, the inputs of matrix products are rounded to 8 significant bits (`torch.autocast`). Each product is added up
in float32, and its result is rounded to bfloat16 as well. Everything else is computed in float32: parameters and the
optimizer, softmax and normalisation, the states of cells, and the contexts of attention. Evaluation and search always use
the type of the parameters.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from time import perf_counter
from typing import Literal, NamedTuple

import torch
from torch import nn

from dragoman.core.errors import DataError
from dragoman.core.processor import cpu_capabilities
from dragoman.nn.products import linear
from dragoman.training.protocols import LikelihoodModel

Precision = Literal["float32", "bfloat16"]

MIN_PARAMETERS = 1_000_000  # smaller models are not faster in bfloat16: converting the inputs takes as long
MEASURED_PRODUCT = 64, 512, 2048  # rows, inputs, outputs: the decoder of a translator with 512 units, in training
MEASURED_ROUNDS = 8
MIN_SPEEDUP = 1.2  # of the product, without converting the inputs


class PrecisionChoice(NamedTuple):
    """A precision, and in a few words why it was chosen; an empty reason if it was given or nothing else is possible."""

    precision: Precision
    reason: str = ""


@cache
def has_fast_bfloat16(device: str) -> bool:
    """Return whether a device multiplies matrices of bfloat16 clearly faster than those of float32.

    A processor needs AVX512_BF16 or AMX for this, but some processors with AVX512_BF16 are slower in bfloat16. So the
    speed is measured as well, once per process.
    """
    if device.startswith("cuda"):
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = cpu_capabilities()
    has_instructions = any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))
    return has_instructions and bfloat16_speedup() >= MIN_SPEEDUP


@cache
def bfloat16_speedup() -> float:
    """Return how many times as fast as in float32 a matrix product of a typical size is in bfloat16. Takes 20 ms."""
    rows, inputs, outputs = MEASURED_PRODUCT
    x, W = torch.ones(rows, inputs), torch.ones(outputs, inputs)
    operands = {dtype: (x.to(dtype), W.to(dtype)) for dtype in (torch.float32, torch.bfloat16)}
    seconds = dict.fromkeys(operands, math.inf)
    for _ in range(MEASURED_ROUNDS):  # in turns, so that other work on the machine slows down both
        for dtype, (inputs_of_dtype, W_of_dtype) in operands.items():
            start = perf_counter()
            linear(inputs_of_dtype, W_of_dtype)
            seconds[dtype] = min(seconds[dtype], perf_counter() - start)
    return seconds[torch.float32] / seconds[torch.bfloat16]


def choose_precision(precision: str, model: nn.Module, device: str) -> Precision:
    """Return the precision of a training run: as given, or for `auto` the one that is faster."""
    return precision_choice(precision, model, device).precision


def precision_choice(precision: str, model: nn.Module, device: str) -> PrecisionChoice:
    """Return the precision of a training run, see `choose_precision`, and the reason."""
    parameters = list(model.parameters())
    is_float32 = all(parameter.dtype == torch.float32 for parameter in parameters)
    if precision == "bfloat16":
        if not is_float32:
            raise DataError("precision bfloat16: the parameters of the model are not float32; use --precision float32")
        if not has_fast_bfloat16(device):
            warnings.warn("bfloat16 is not faster than float32 on this processor; use float32", stacklevel=2)
        return PrecisionChoice("bfloat16")
    # Of other modules, it is not known which parts may be rounded.
    if precision == "float32" or not is_float32 or not isinstance(model, LikelihoodModel):
        return PrecisionChoice("float32")
    if not any(isinstance(module, nn.Linear) for module in model.modules()):
        return PrecisionChoice("float32")
    if sum(parameter.numel() for parameter in parameters) < MIN_PARAMETERS:
        return PrecisionChoice("float32", "the model is small")
    if not has_fast_bfloat16(device):
        return PrecisionChoice("float32", "bfloat16 is not faster on this processor")
    is_measured = not device.startswith("cuda")
    speedup = f"products {bfloat16_speedup():.1f} times as fast on this processor" if is_measured else ""
    return PrecisionChoice("bfloat16", speedup)


def product_precision(precision: str, device: torch.device) -> torch.autocast:
    """Return a context in which matrix products have this precision; `auto` is float32 here."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
