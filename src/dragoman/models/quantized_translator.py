"""Translators with 8-bit weights.

The recurrences of an encoder of LSTMs or Elman cells compute with the rounded matrices in floating point, by torch's
kernels, which are faster than single steps. The matrices exist in floating point only meanwhile.
"""

from __future__ import annotations

from typing import ClassVar, Self

from torch import Tensor

from dragoman.core.scorer import Carry, Scorer, State
from dragoman.data.batches import Batch
from dragoman.models.neural import NeuralModel
from dragoman.models.quantized import QuantizedModel
from dragoman.models.translation import BaseTranslator
from dragoman.models.translator import Translator
from dragoman.models.translator_scorer import TranslatorScorer
from dragoman.nn.int8 import Int8Matrix
from dragoman.nn.output import WordSubset


class QuantizedTranslator(QuantizedModel, BaseTranslator):
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

    original: ClassVar[type[NeuralModel]] = Translator
    model: Translator

    def __init__(self, model: NeuralModel):
        """Wrap a translator whose matrices are rounded already; see `quantize`."""
        assert isinstance(model, Translator)
        super().__init__(model)
        self.source, self.target, self.shortlist = model.source, model.target, model.shortlist
        self.source_vocab, self.length_prior, self.classes = model.source_vocab, model.length_prior, model.classes
        self._scorer = TranslatorScorer(model, Int8Matrix)

    @classmethod
    def quantize(cls, model: NeuralModel) -> Self:
        assert isinstance(model, Translator)
        quantized = super().quantize(model)
        quantized.model.shortlist = quantized.shortlist = model.shortlist
        return quantized

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
