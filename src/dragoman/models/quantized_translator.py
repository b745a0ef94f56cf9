"""Translators with 8-bit weights.

The recurrences of an encoder of LSTMs or Elman cells compute with the rounded matrices in floating point, by torch's
kernels, which are faster than single steps. The matrices exist in floating point only meanwhile.
"""

from __future__ import annotations

from typing import ClassVar, Self

from torch import Tensor

from dragoman.align.shortlist import Shortlist
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
        self.source, self.target = model.source, model.target
        self.source_vocab, self.length_prior, self.classes = model.source_vocab, model.length_prior, model.classes
        self._scorer = TranslatorScorer(model, Int8Matrix)

    @classmethod
    def quantize(cls, model: NeuralModel) -> Self:
        assert isinstance(model, Translator)
        quantized = super().quantize(model)
        quantized.shortlist = model.shortlist
        return quantized

    @property
    def has_attention(self) -> bool:
        return self.model.has_attention

    @property
    def has_shortlist(self) -> bool:
        return self.shortlist is not None

    @property
    def shortlist(self) -> Shortlist | None:
        """What searches are restricted to; it is saved."""
        return self.model.shortlist

    @shortlist.setter
    def shortlist(self, shortlist: Shortlist | None) -> None:
        self.model.shortlist = shortlist

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

    def search_scorer(self, *, use_shortlist: bool = True) -> Scorer:
        from dragoman.combine.shortlist import ShortlistScorer  # which is for translators

        if self.shortlist is None or not use_shortlist:
            return self._scorer
        return ShortlistScorer(self, self.shortlist, self._scorer)

    def word_subset(self, state: State, words: Tensor) -> WordSubset:
        return self._scorer.word_subset(state, words)

    def subset_scores(self, state: State, subset: WordSubset) -> Tensor:
        return self._scorer.subset_scores(state, subset)
