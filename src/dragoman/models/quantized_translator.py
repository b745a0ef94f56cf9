"""Translators with 8-bit weights: files of a quarter of the size, and faster search.

Each row of a matrix has its own scale. In search, the inputs of products are rounded to 8 bits as well, each row with
its own scale (see `dragoman.nn.packed`). The encoder computes with the rounded matrices in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, Scorer, State
from dragoman.core.types import Arrays
from dragoman.data.batches import Batch
from dragoman.models.base import Config, Model, SavedModel
from dragoman.models.translation import BaseTranslator
from dragoman.models.translator import Translator
from dragoman.models.translator_scorer import TranslatorScorer
from dragoman.nn.output import WordSubset
from dragoman.nn.packed import Int8Matrix, dequantize_rows, quantize_rows

SCALE = ".scale"  # suffix of the names of the scales of a matrix


class QuantizedTranslator(Model, BaseTranslator):
    """P(E | F) by a translator whose matrices are rounded to 8 bits.

    >>> german, english = ["ein hund", "ein vogel"] * 2, ["a dog", "a bird"] * 2
    >>> from dragoman import ParallelCorpus, Tokenizer
    >>> source, target = Tokenizer.train("word", german), Tokenizer.train("word", english)
    >>> pairs = ParallelCorpus(source.encode(german), target.encode(english))
    >>> model = Translator.create(pairs, source, target, embedding=4, hidden=4)
    >>> quantized = QuantizedTranslator.quantize(model)
    >>> translation = quantized.translate("ein hund")[0].text
    """

    kind: ClassVar[str] = "quantized-translator"

    def __init__(self, model: Translator):
        """Wrap a translator whose matrices are rounded already; see `quantize`."""
        self.model = model
        self.source, self.target, self.unknown = model.source, model.target, model.unknown
        self.source_vocab, self.vocab = model.source_vocab, model.vocab
        self.length_prior, self.settings, self.classes = model.length_prior, model.settings, model.classes
        self.training_metadata, self.shortlist = model.training_metadata, model.shortlist
        self._scorer = TranslatorScorer(model, Int8Matrix)

    @classmethod
    def quantize(cls, model: Translator) -> Self:
        """Return a translator with rounded matrices. The given one is not changed."""
        arrays = quantize_arrays(model.arrays(), matrix_names(model))
        rounded = model.with_settings(model.settings).load_arrays(dequantize_arrays(arrays), "the model")
        rounded.shortlist = model.shortlist
        return cls(rounded)

    def __reduce__(self) -> tuple[type[Self], tuple[Translator]]:
        return type(self), (self.model,)

    @property
    def has_attention(self) -> bool:
        return self.model.has_attention

    @property
    def has_shortlist(self) -> bool:
        return self.shortlist is not None

    @property
    def without_shortlist(self) -> Self:
        """A translator with the same parameters that searches over all words."""
        if self.shortlist is None:
            return self
        model = object.__new__(type(self))
        model.__dict__.update(self.__dict__)
        model.model, model.shortlist = self.model.without_shortlist, None
        return model

    def start(self, batch: Batch, carry: Carry = None) -> State:
        return self._scorer.start(batch, carry)

    def advance(self, state: State, words: Tensor) -> State:
        return self._scorer.advance(state, words)

    def log_probs(self, state: State) -> Tensor:
        return self._scorer.log_probs(state)

    def attention(self, state: State) -> Tensor | None:
        return self._scorer.attention(state)

    def prepare_for_search(self) -> TranslatorScorer:
        return self._scorer

    def search_scorer(self) -> Scorer:
        from dragoman.combine.shortlist import ShortlistScorer  # which is for translators

        return self._scorer if self.shortlist is None else ShortlistScorer(self, self.shortlist)

    def word_subset(self, words: Tensor) -> WordSubset:
        return self._scorer.word_subset(words)

    def subset_scores(self, state: State, subset: WordSubset) -> Tensor:
        return self._scorer.subset_scores(state, subset)

    # -- saving and loading --------------------------------------------------------------------------------------------

    def config(self) -> Config:
        return self.model.config()

    def arrays(self) -> Arrays:
        return quantize_arrays(self.model.arrays(), matrix_names(self.model))

    def files(self) -> Mapping[str, bytes]:
        return self.model.files()

    def array_files(self) -> Mapping[str, Arrays]:
        return self.model.array_files()

    def sizes(self) -> dict[str, int]:
        return self.model.sizes()

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        return cls(Translator.from_saved(replace(saved, arrays=dequantize_arrays(saved.arrays))))


def matrix_names(model: Translator) -> list[str]:
    """Return the names of the matrices among the parameters."""
    return [name for name, parameter in model.named_parameters() if parameter.dim() == 2]


def quantize_arrays(arrays: Arrays, names: list[str]) -> Arrays:
    """Return arrays in which these matrices have 8 bits, and scales beside them."""
    quantized = dict(arrays)
    for name in names:
        matrix, scale = quantize_rows(torch.from_numpy(np.array(arrays[name])))
        quantized[name], quantized[name + SCALE] = matrix.numpy(), scale.numpy()
    return quantized


def dequantize_arrays(arrays: Arrays) -> Arrays:
    """Return the arrays that `quantize_arrays` has rounded."""
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
