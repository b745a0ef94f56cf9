"""The type of the inputs of matrix products in training.

In bfloat16, the inputs of matrix products are rounded to 8 significant bits and the products are added up in float32
(`torch.autocast`). Everything else stays in float32: parameters and the optimizer, softmax and normalisation, the states
of cells, and the contexts of attention. Evaluation and search always use the type of the parameters.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import torch
from torch import nn

from dragoman.core.errors import DataError

Precision = Literal["float32", "bfloat16"]

MIN_PARAMETERS = 1_000_000  # smaller models are not faster in bfloat16: converting the inputs takes as long


@cache
def has_fast_bfloat16(device: str) -> bool:
    """Return whether a device multiplies matrices of bfloat16 faster than those of float32."""
    if device.startswith("cuda"):
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))


def choose_precision(precision: str, model: nn.Module, device: str) -> Precision:
    """Return the precision of a training run: as given, or for `auto` the one that is faster."""
    parameters = list(model.parameters())
    is_float32 = all(parameter.dtype == torch.float32 for parameter in parameters)
    if precision == "bfloat16":
        if not is_float32:
            raise DataError("precision bfloat16: the parameters of the model are not float32; use --precision float32")
        return "bfloat16"
    if precision == "float32" or not is_float32 or not has_fast_bfloat16(device):
        return "float32"
    has_products = any(isinstance(module, nn.Linear) for module in model.modules())
    is_large = sum(parameter.numel() for parameter in parameters) >= MIN_PARAMETERS
    return "bfloat16" if has_products and is_large else "float32"


def product_precision(precision: str, device: torch.device) -> torch.autocast:
    """Return a context in which matrix products have this precision; `auto` is float32 here."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
