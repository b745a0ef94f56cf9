"""The n-gram language model and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, State
from dragoman.core.settings import Settings, validate
from dragoman.data.corpus import Corpus
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import START, UNK, Vocab
from dragoman.io.digests import MAX_COPIED_SIZE
from dragoman.io.storage import CONFIG_FILE
from dragoman.models.base import SavedModel
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.counting import NgramCounts, count_ngrams
from dragoman.ngram.entropy import prune_by_entropy
from dragoman.ngram.estimate import SmoothingTask
from dragoman.ngram.heldout import InterpolationCoefficients
from dragoman.ngram.quantization import quantize
from dragoman.ngram.scoring import NgramScorer, NgramTrace
from dragoman.ngram.smoothing import FITTED_SMOOTHINGS, SMOOTHINGS, STUPID_BACKOFF_FACTOR
from dragoman.ngram.table import NgramTable, check_sums, keep_nodes, validate_layout, validate_table
from dragoman.ngram.trie import ROOT, Trie, Words, keep_with_contexts, word_type

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

IMPORTED: Final = "imported"  # the smoothing of a model that was read from an ARPA file
MAX_CHECKED_SIZE = 1 << 30  # bytes; the contents of larger tables are checked when more than scoring needs them
MAX_GAP = 100
HELDOUT_EVERY = 10  # without held-out text, every tenth training sentence is used to fit coefficients

Smoothing = Literal[
    "maximum-likelihood",
    "whole-prefix",
    "interpolated",
    "interpolated-fitted",
    "interpolated-bucketed",
    "witten-bell",
    "katz",
    "absolute-discounting",
    "kneser-ney",
    "modified-kneser-ney",
    "stupid-backoff",
    "imported",
]


class NgramConfig(Settings, use_attribute_docstrings=False):
    """How an n-gram model is trained."""

    order: Annotated[int, Field(ge=1)] = 5
    """n: a word is predicted from the n - 1 words before it."""
    smoothing: Smoothing = "modified-kneser-ney"
    """The smoothing method, one of `dragoman.ngram.smoothing.SMOOTHINGS`."""
    coefficients: tuple[float, ...] = ()
    """alpha_1, alpha_2, ... of the smoothing `interpolated`."""
    prune: tuple[int, ...] = ()
    """Drop n-grams that occur this often or less, for orders 1, 2, ...; the last threshold is used for higher orders."""
    entropy_prune: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Drop n-grams whose removal raises the perplexity by less than this share."""
    quantise: bool = False
    """Store probabilities in 8 bits."""
    gap: Annotated[int, Field(ge=0, le=MAX_GAP)] = 0
    """Words skipped between the context and the predicted word (a skip n-gram)."""
    interpolate_unigrams: bool = True
    """Interpolate unigrams with a uniform distribution; otherwise their remaining mass goes to `<unk>`."""

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        prune, coefficients = (",".join(map(str, numbers)) for numbers in (self.prune, self.coefficients))
        if self.prune and (self.prune[0] != 0 or list(self.prune) != sorted(self.prune)):
            raise ValueError(f"prune {prune}: thresholds must start at 0 (all words stay) and never decrease")
        if len(self.prune) > self.order:
            raise ValueError(f"prune {prune}: {len(self.prune)} thresholds, but order {self.order}")
        if not all(0 < alpha < 1 for alpha in self.coefficients):
            raise ValueError(f"coefficients {coefficients}: each must be between 0 and 1")
        if self.coefficients and self.smoothing != "interpolated":
            raise ValueError(f"coefficients {coefficients}: only for interpolated, not for {self.smoothing}")
        if self.coefficients and len(self.coefficients) != self.order:
            needed = f"order {self.order} needs {self.order} (alpha_1, alpha_2, ...)"
            raise ValueError(f"{len(self.coefficients)} coefficients given, but {needed}")
        if self.smoothing == "whole-prefix" and (self.gap or self.prune or self.entropy_prune):
            raise ValueError("whole-prefix takes neither a gap nor pruning")
        return self


class NgramModel(LanguageModel):
    """P(e_t | e_{t-n+1} ... e_{t-1}).

    >>> from dragoman import Corpus
    >>> corpus = Corpus.from_sentences(["i am from utah .", "i am here .", "you are from here ."])
    >>> model = NgramModel.train(corpus, order=2, smoothing="witten-bell")
    >>> [round(score, 2) for score in model.score(["i am from here ."])]
    [-4.3]
    >>> model.next_words("i", k=2)[0].word
    'am'
    >>> model.sample(2, seed=1) == model.sample(2, seed=1)
    True
    """

    kind: ClassVar[str] = "ngram"

    def __init__(
        self,
        vocab: Vocab,
        table: NgramTable,
        unknown: UnknownWordModel,
        config: NgramConfig,
        notes: tuple[str, ...] = (),
        coefficients: InterpolationCoefficients | None = None,
    ):
        self.vocab = vocab
        self.table = table
        self.unknown = unknown
        self.settings = config
        self.notes = notes  # messages of training, such as discounts that could not be computed
        self.coefficients = coefficients  # fitted interpolation coefficients; not saved

    @classmethod
    def train(
        cls,
        corpus: Corpus,
        config: NgramConfig | None = None,
        *,
        unknown: UnknownWordModel | None = None,
        heldout: Corpus | None = None,
        **settings: object,
    ) -> Self:
        """Count n-grams and smooth the counts.

        Args:
            corpus: the training text.
            config: the settings; None uses the defaults.
            unknown: the unknown-word model; None: all unknown words are equally likely.
            heldout: text to fit interpolation coefficients on.
            settings: single settings of `NgramConfig`, such as order=3 or smoothing="katz".
        """
        config = validate(config or NgramConfig(), settings, "NgramModel.train")
        if config.smoothing == IMPORTED:
            raise DataError(f"{IMPORTED} models are read from ARPA files, not trained; give a smoothing method")
        if corpus.num_words == 0:
            raise DataError("the training text has no words")
        unknown = unknown or UniformUnknownWords(corpus.vocab.num_known)
        counts, is_fitted = _count(corpus, config), config.smoothing in FITTED_SMOOTHINGS
        keep = _count_threshold_mask(counts, config.prune)
        distribution = zerogram(corpus.vocab, unknown, config.interpolate_unigrams)
        heldout_text = _heldout_text(corpus, counts, heldout, config) if is_fitted else None
        task = SmoothingTask(counts, distribution, config.coefficients, heldout_text, keep)
        estimate = SMOOTHINGS[config.smoothing](task)
        table = NgramTable.from_estimate(counts.trie, estimate)
        if keep is not None:
            table = keep_nodes(table, keep)
        if config.entropy_prune:
            table = prune_by_entropy(table, config.entropy_prune)
        if config.quantise:
            table = quantize(table)
        return cls(corpus.vocab, table, unknown, config, tuple(task.notes), estimate.coefficients)

    def start(self, batch: Batch, carry: Carry = None) -> State:
        import torch

        context = START + 1 if self.table.trie.contexts > 1 else ROOT
        skipped = torch.full((batch.num_rows, self.settings.gap), START)  # words not yet part of the context
        return State((torch.full((batch.num_rows,), context), skipped))

    def log_probs(self, state: State) -> Tensor:
        import torch

        context, _ = state.rows
        return torch.from_numpy(self.table.distributions(context.numpy()))  # (rows, |V|)

    def advance(self, state: State, words: Tensor) -> State:
        import torch

        context, skipped = state.rows
        queue = torch.cat([skipped, words[:, None]], dim=1)  # (rows, gap + 1)
        following = self.table.advance(context.numpy(), queue[:, 0].numpy())
        return State((torch.from_numpy(following), queue[:, 1:]))

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        return self._trace(corpus, with_nodes=False).log_prob

    def trace(self, corpus: Corpus) -> NgramTrace:
        """Return the log-probability of every token and the n-gram that gave it."""
        return self._trace(corpus, with_nodes=True)

    def _trace(self, corpus: Corpus, *, with_nodes: bool) -> NgramTrace:
        corpus.require_vocab(self.vocab)
        return self._scorer.trace(corpus, self.settings.gap, with_nodes=with_nodes)

    @cached_property
    def _scorer(self) -> NgramScorer:
        return NgramScorer(self.table)

    def raw_token_scores(self, corpus: Corpus) -> NDArray[np.float64]:
        """Return the scores of stupid back-off before normalisation."""
        if self.table.log_normalizer is None:
            raise DataError("only stupid-backoff models that are not quantised or pruned by entropy have raw scores")
        trace = self.trace(corpus)
        position = np.arange(corpus.num_tokens) - np.repeat(corpus.token_offsets[:-1], np.diff(corpus.token_offsets))
        context_words = np.minimum(position + 1, self.settings.order - 1)  # including `<s>`
        known_words = np.searchsorted(self.table.trie.levels, trace.context, side="right") - 1
        penalty = (context_words - known_words) * np.log(STUPID_BACKOFF_FACTOR)
        return trace.log_prob + self.table.log_normalizer[trace.context] + penalty

    def matched_orders(self, corpus: Corpus) -> dict[int, int]:
        """Return how many tokens were scored by n-grams of each order."""
        levels = np.array(self.table.trie.levels)
        matched_orders = np.searchsorted(levels, self.trace(corpus).matched, side="right") - 1
        tally = np.bincount(matched_orders, minlength=self.table.trie.order + 1)
        return dict(enumerate(tally[1:].tolist(), 1))

    def config(self) -> dict[str, object]:
        return {**self.settings.model_dump(mode="json"), "levels": list(self.table.trie.levels)}

    def arrays(self) -> Mapping[str, NDArray[np.generic]]:
        table = self.table
        arrays = {name: array for name, array in table.arrays()._asdict().items() if name != "levels"}
        return arrays if table.log_normalizer is None else {**arrays, "log_normaliser": table.log_normalizer}

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        settings, arrays = dict(saved.config), saved.arrays
        levels = tuple(settings.pop("levels"))
        config = validate(NgramConfig, settings, str(saved.path / CONFIG_FILE))
        trie = Trie(levels, _narrow(arrays["word"], len(saved.vocab)), arrays["begin"])
        values = arrays["log_prob"], arrays["log_backoff"], arrays["codebook"], arrays.get("log_normaliser")
        table = NgramTable(trie, *values)
        size = sum(array.nbytes for array in arrays.values())
        if size > MAX_CHECKED_SIZE:  # reading all of it could take minutes
            validate_layout(table, len(saved.vocab))
            table = replace(table, trie=replace(trie, check=partial(_check_contents, table, saved)))
            return cls(saved.vocab, table, saved.unknown, config)
        validate_table(table, len(saved.vocab))
        if config.smoothing != IMPORTED and size <= MAX_COPIED_SIZE:
            check_sums(table)
        return cls(saved.vocab, table, saved.unknown, config)


def _check_contents(table: NgramTable, saved: SavedModel) -> None:
    try:
        validate_table(table, len(saved.vocab))
    except ValueError as error:
        raise DataError(f"{saved.path}: broken model directory ({error}); train or copy it again") from error


def _narrow(word: NDArray[np.int32], vocab_size: int) -> Words:
    """Return the words of a trie in as few bits as training uses; earlier versions wrote 32."""
    narrow = word_type(vocab_size)
    if word.dtype != np.int32 or narrow == np.int32 or not (word.min() >= 0 and word.max() < vocab_size):
        return word  # which validation refuses if it is wrong
    return word.astype(narrow)


def zerogram(vocab: Vocab, unknown: UnknownWordModel, interpolate: bool = True) -> NDArray[np.float64]:
    """Return the distribution below the unigrams: uniform over all words of the language, or only `<unk>`.

    The shares of all words outside the vocabulary add up in `<unk>` (eq. ngramlm:unkinterpolation).
    """
    share = 1.0 / unknown.language_size if interpolate else 0.0
    distribution = np.full(len(vocab), share)
    distribution[UNK] = 1.0 - vocab.num_known * share
    distribution[START] = 0.0
    return distribution


def _heldout_text(
    corpus: Corpus, counts: NgramCounts, heldout: Corpus | None, config: NgramConfig
) -> tuple[Corpus, NgramCounts]:
    """Return the given held-out text or, without one, every tenth training sentence with the counts of the others."""
    if heldout is not None:
        heldout.require_vocab(corpus.vocab)
        return heldout, counts
    index = np.arange(len(corpus))
    is_heldout = index % HELDOUT_EVERY == HELDOUT_EVERY - 1
    if not is_heldout.any():
        raise DataError(f"to fit coefficients give --dev-text, or at least {HELDOUT_EVERY} training sentences")
    return corpus.select(index[is_heldout]), _count(corpus.select(index[~is_heldout]), config)


def _count(corpus: Corpus, config: NgramConfig) -> NgramCounts:
    if config.smoothing == "whole-prefix":
        longest = int(np.diff(corpus.offsets).max())
        return count_ngrams(corpus, longest + 2, anchored=True)
    return count_ngrams(corpus, config.order, config.gap)


def _count_threshold_mask(counts: NgramCounts, thresholds: tuple[int, ...]) -> NDArray[np.bool_] | None:
    """Return which n-grams occur more often than the threshold of their order; their contexts are kept as well."""
    if not thresholds:
        return None
    keep = np.ones(counts.trie.nodes, bool)
    for order in range(2, counts.trie.order + 1):
        keep[counts.trie.span(order)] = counts.of_order(order) > thresholds[min(order, len(thresholds)) - 1]
    return keep_with_contexts(counts.trie, keep)
