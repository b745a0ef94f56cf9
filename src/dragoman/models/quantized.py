"""Models with 8-bit weights: files of a quarter of the size, less memory, and faster products.

Each row of a matrix has its own scale. The inputs of products are rounded to 8 bits as well, each row with its own
scale, so a product does not depend on the other sentences of a batch (see `dragoman.nn.int8`). What stays in floating
point, such as attention, differs in the last bit between batches of other shapes, in every model. Where that changes
how an input is rounded, log P(E | F) changes by about 0.01.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch

from dragoman.core.errors import DataError
from dragoman.core.types import Arrays
from dragoman.io.model_card import read_examples, read_scores, write_examples
from dragoman.io.storage import new_directory
from dragoman.models.base import Config, Model, SavedModel
from dragoman.models.neural import NeuralModel
from dragoman.nn.int8 import Int8Tensor, dequantize_rows, has_int8_products, quantize_parameters, quantize_rows

SCALE = ".scale"  # suffix of the names of the scales of a matrix
# The class for each kind of model that can be quantized; imported when needed.
QUANTIZED_CLASSES = {
    "translator": "dragoman.models.quantized_translator:QuantizedTranslator",
    "recurrent": "dragoman.models.quantized_language_model:QuantizedRecurrentModel",
    "feed-forward": "dragoman.models.quantized_language_model:QuantizedFeedForwardModel",
}
SLOW = "8-bit weights are slower than float32 on this processor, which has no AVX512_VNNI, AVX_VNNI or AMX"


class QuantizedModel(Model):
    """A neural model whose matrices are rounded to 8 bits. It cannot be trained."""

    original: ClassVar[type[NeuralModel]]  # the class of models that it is made from
    model: NeuralModel  # whose matrices are `Int8Tensor`s

    def __init__(self, model: NeuralModel):
        """Wrap a model whose matrices are rounded already; see `quantize`."""
        self.model = model
        self.vocab, self.unknown = model.vocab, model.unknown
        self.settings, self.training_metadata = model.settings, model.training_metadata

    @classmethod
    def quantize(cls, model: NeuralModel) -> Self:
        """Return a model with rounded matrices. The given one is not changed."""
        copy = model.with_settings(model.settings)
        matrices = {name: parameter for name, parameter in copy.named_parameters() if parameter.dim() == 2}
        quantize_parameters(copy, {name: quantize_rows(matrix.detach()) for name, matrix in matrices.items()})
        return cls(copy)

    def __reduce__(self) -> tuple[type[Self], tuple[NeuralModel]]:
        return type(self), (self.model,)

    def config(self) -> Config:
        return self.model.config()

    def arrays(self) -> Arrays:
        arrays = dict(self.model.arrays())
        for name, tensor in self.model.state_dict().items():
            if isinstance(tensor, Int8Tensor):
                arrays[name], arrays[name + SCALE] = tensor.quantized.numpy(), tensor.scale.numpy()
        return arrays

    def files(self) -> Mapping[str, bytes]:
        return self.model.files()

    def array_files(self) -> Mapping[str, Arrays]:
        return self.model.array_files()

    def sizes(self) -> dict[str, int]:
        return self.model.sizes()

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        warn_if_slow(saved.path, "use the model that it was made from")
        model = cls.original.from_saved(replace(saved, arrays=dequantize_arrays(saved.arrays)))
        names = [name for name, _ in model.named_parameters() if name + SCALE in saved.arrays]
        pairs = {name: (torch.tensor(saved.arrays[name]), torch.tensor(saved.arrays[name + SCALE])) for name in names}
        quantize_parameters(model, pairs)
        return cls(model)


def quantize_model(model: Model, path: Path | str) -> QuantizedModel:
    """Return a model with 8-bit weights. The path is for the error if it has no matrices to round."""
    if isinstance(model, QuantizedModel):
        return model
    check_is_quantizable(model.kind, path)
    module, _, name = QUANTIZED_CLASSES[model.kind].partition(":")
    quantized: QuantizedModel = getattr(import_module(module), name).quantize(model)
    return quantized


def quantize_directory(path: Path, output: Path, *, replace: bool = False) -> QuantizedModel:
    """Write a model with 8-bit weights. It keeps the examples, and in its card the scores of the original."""
    from dragoman.models.loading import load

    model = load(path)
    if isinstance(model, QuantizedModel):
        raise DataError(f"{path}: its weights have 8 bits already")
    quantized = quantize_model(model, path)
    scores = [score._replace(text=f"{score.text}, before rounding to 8 bits") for score in read_scores(path)]
    with new_directory(output, replace=replace) as directory:
        quantized.write_into(directory)
        if examples := read_examples(path):
            write_examples(directory, examples)
        quantized.write_card(directory, scores)
    return quantized


def check_is_trainable(model: Model, path: Path | str) -> None:
    """Raise an error if the weights of a model are rounded, so that it has no gradients."""
    if isinstance(model, QuantizedModel):
        remedy = "use the model that it was made from"
        raise DataError(f"{path}: has 8-bit weights and cannot be trained or inspected; {remedy}")


def check_is_quantizable(kind: str, path: Path | str) -> None:
    """Raise an error if models of this kind have no matrices to round."""
    if kind not in QUANTIZED_CLASSES:
        problem = f"is a model of kind {kind}"
        raise DataError(f"{path}: {problem}; only translators, recurrent and feed-forward models can be quantized")


def warn_if_slow(path: Path | str, remedy: str) -> None:
    """Warn if the processor has no fast products of 8-bit numbers."""
    if not has_int8_products():
        warnings.warn(f"{path}: {SLOW}; {remedy}", stacklevel=2)


def dequantize_arrays(arrays: Arrays) -> Arrays:
    """Return the arrays in floating point."""
    result = {name: array for name, array in arrays.items() if not name.endswith(SCALE)}
    for name, scale in arrays.items():
        if not name.endswith(SCALE):
            continue
        name = name.removesuffix(SCALE)
        matrix = result.get(name)
        fits = matrix is not None and matrix.dtype == np.int8 and scale.dtype == np.float32
        if matrix is None or not fits or matrix.ndim != 2 or scale.shape != matrix.shape[:1]:
            raise DataError(f"{name}: its scales do not fit; the model directory is broken")
        result[name] = dequantize_rows(torch.tensor(matrix), torch.tensor(scale)).numpy()
    if name := next((name for name, array in result.items() if array.dtype == np.int8), ""):
        raise DataError(f"{name}: has no scales; the model directory is broken")
    return result
