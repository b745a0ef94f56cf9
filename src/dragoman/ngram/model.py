"""The n-gram language model: counts, smoothed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, State
from dragoman.data.corpus import Corpus
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import START, UNK, Vocab
from dragoman.io.storage import CONFIG_FILE
from dragoman.models.base import SavedModel
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.counting import NgramCounts, count_ngrams
from dragoman.ngram.heldout import InterpolationCoefficients
from dragoman.ngram.pruning import prune_by_entropy
from dragoman.ngram.quantization import quantise
from dragoman.ngram.smoothing import FITTED_SMOOTHINGS, SMOOTHINGS, STUPID_BACKOFF_FACTOR, HeldoutText, SmoothingTask
from dragoman.ngram.table import NgramTable, NgramTrace, keep_nodes
from dragoman.ngram.trie import ROOT, Trie
from dragoman.ngram.validation import validate_table

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

IMPORTED = "imported"  # the smoothing of a model that was read from an ARPA file, whatever it was there
MAX_GAP = 100
HELDOUT_EVERY = 10  # without held-out text, every tenth training sentence serves to fit coefficients


@dataclass(frozen=True)
class NgramConfig:
    """How an n-gram model is made."""

    order: int = 5  # n: a word is predicted from the n - 1 before it
    smoothing: str = "modified-kneser-ney"  # one of SMOOTHINGS, or "imported"
    coefficients: tuple[float, ...] = ()  # alpha_1, alpha_2, ... of `interpolated`
    prune: tuple[int, ...] = ()  # drop n-grams seen this often or less: for order 1, 2, ...; the last goes on
    entropy_prune: float = 0.0  # drop n-grams whose loss raises the perplexity by less than this share
    quantise: bool = False  # keep probabilities in 8 bits
    gap: int = 0  # words between the context and the word it predicts (a skip n-gram)
    interpolate_unigrams: bool = True  # False: what the unigrams leave over goes to `<unk>` alone

    def __post_init__(self) -> None:
        if self.order < 1:
            raise DataError(f"order {self.order}: an n-gram has at least one word")
        if self.smoothing not in (*SMOOTHINGS, IMPORTED):
            raise DataError(f"no smoothing {self.smoothing!r}; there are {', '.join(SMOOTHINGS)}")
        if self.prune and (self.prune[0] != 0 or list(self.prune) != sorted(self.prune)):
            raise DataError(
                f"prune {_comma_separated(self.prune)}: thresholds start at 0 (all words stay) and never fall"
            )
        if len(self.prune) > self.order:
            raise DataError(
                f"prune {_comma_separated(self.prune)}: {len(self.prune)} thresholds, but order {self.order}"
            )
        if not all(0 < alpha < 1 for alpha in self.coefficients):
            raise DataError(f"coefficients {_comma_separated(self.coefficients)}: each must lie between 0 and 1")
        if self.coefficients and self.smoothing != "interpolated":
            raise DataError(
                f"coefficients {_comma_separated(self.coefficients)}: for interpolated only, not {self.smoothing}"
            )
        if self.coefficients and len(self.coefficients) != self.order:
            given, n = len(self.coefficients), self.order
            raise DataError(f"{given} coefficients given, but order {n} needs {n} (alpha_1, alpha_2, ...)")
        if not 0 <= self.gap <= MAX_GAP:
            raise DataError(f"gap {self.gap}: from 0 to {MAX_GAP} words can be skipped")
        if not 0 <= self.entropy_prune < 1:
            raise DataError(f"entropy pruning {self.entropy_prune}: give a share between 0 and 1, such as 1e-8")
        if self.smoothing == "whole-prefix" and (self.gap or self.prune or self.entropy_prune):
            raise DataError("whole-prefix takes neither a gap nor pruning")


def _comma_separated(numbers: tuple[float, ...]) -> str:
    """As on the command line: 0,0,1."""
    return ",".join(map(str, numbers))


class NgramModel(LanguageModel):
    """P(e_t | e_{t-n+1} ... e_{t-1}).

    >>> from dragoman.data import Corpus
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
        self.notes = notes  # what training had to say, such as discounts that could not be computed
        self.coefficients = coefficients  # the interpolation coefficients that training found; not kept on disk

    @classmethod
    def train(
        cls,
        corpus: Corpus,
        config: NgramConfig | None = None,
        *,
        unknown: UnknownWordModel | None = None,
        heldout: Corpus | None = None,
        **settings: Any,
    ) -> Self:
        """Count and smooth. Settings are those of `NgramConfig`: train(corpus, order=3, smoothing="katz")."""
        _check_names(settings, "NgramModel.train")
        config = replace(config or NgramConfig(), **settings)
        if config.smoothing == IMPORTED:
            raise DataError(f"{IMPORTED} models are read from ARPA files, not trained; say a smoothing")
        if corpus.num_words == 0:
            raise DataError("the training text has no words")
        unknown = unknown or UniformUnknownWords(corpus.vocab.num_known)
        counts = _count(corpus, config)
        keep = _count_threshold_mask(counts, config.prune)
        order0 = zerogram(corpus.vocab, unknown, config.interpolate_unigrams)
        held = _heldout_text(corpus, counts, heldout, config) if config.smoothing in FITTED_SMOOTHINGS else None
        task = SmoothingTask(counts, order0, config.coefficients, held, keep)
        table = NgramTable.from_estimate(counts.trie, SMOOTHINGS[config.smoothing](task))
        fitted = task.fitted_coefficients[0] if task.fitted_coefficients else None
        return cls(corpus.vocab, _shrink(table, keep, config), unknown, config, tuple(task.notes), fitted)

    # -- the scorer ------------------------------------------------------------------------------------------------

    def start(self, batch: Batch, carry: Carry = None) -> State:
        import torch

        context = START + 1 if self.table.trie.contexts > 1 else ROOT
        waiting = torch.full((batch.num_rows, self.settings.gap), START)  # words the context has not reached yet
        return State((torch.full((batch.num_rows,), context), waiting))

    def log_probs(self, state: State) -> Tensor:
        import torch

        context, _ = state.rows
        return torch.from_numpy(self.table.distributions(context.numpy()))  # (rows, |V|)

    def advance(self, state: State, words: Tensor) -> State:
        import torch

        context, waiting = state.rows
        queue = torch.cat([waiting, words[:, None]], dim=1)  # (rows, gap + 1)
        following = self.table.advance(context.numpy(), queue[:, 0].numpy())
        return State((torch.from_numpy(following), queue[:, 1:]))

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        return self.trace(corpus).log_prob

    def trace(self, corpus: Corpus) -> NgramTrace:
        """Every token's log-probability, and which n-gram of the table answered."""
        corpus.require_vocab(self.vocab)
        return self.table.trace(corpus, self.settings.gap)

    def raw_token_scores(self, corpus: Corpus) -> NDArray[np.float64]:
        """The scores of stupid back-off before they are made to sum to one."""
        if self.table.log_normaliser is None:
            raise DataError("raw scores are what stupid-backoff has, unless pruned by entropy or quantised")
        trace = self.trace(corpus)
        place = np.arange(corpus.num_tokens) - np.repeat(corpus.token_offsets[:-1], np.diff(corpus.token_offsets))
        asked = np.minimum(place + 1, self.settings.order - 1)  # words of context, `<s>` among them
        given_up = asked - (np.searchsorted(self.table.trie.levels, trace.context, side="right") - 1)  # never seen
        return trace.log_prob + self.table.log_normaliser[trace.context] + given_up * np.log(STUPID_BACKOFF_FACTOR)

    def matched_orders(self, corpus: Corpus) -> dict[int, int]:
        """How many tokens were answered by n-grams of each order."""
        trace = self.trace(corpus)
        tally = np.bincount(trace.matched_orders(self.table.trie), minlength=self.table.trie.order + 1)
        return {order: int(tally[order]) for order in range(1, len(tally))}

    # -- on disk -----------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        settings = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.settings).items()}
        return {**settings, "levels": list(self.table.trie.levels)}

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        table, trie = self.table, self.table.trie
        arrays = {
            "word": trie.word,
            "begin": trie.begin,
            "suffix": trie.suffix,
            "log_prob": table.log_prob,
            "log_backoff": table.log_backoff,
            "codebook": table.codebook,
        }
        return arrays if table.log_normaliser is None else {**arrays, "log_normaliser": table.log_normaliser}

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        settings, arrays = dict(saved.config), saved.arrays
        levels = tuple(settings.pop("levels"))
        _check_names(settings, saved.path / CONFIG_FILE)
        for name in ("coefficients", "prune"):
            settings[name] = tuple(settings[name])
        trie = Trie(levels, arrays["word"], arrays["begin"], arrays["suffix"])
        table = NgramTable(
            trie, arrays["log_prob"], arrays["log_backoff"], arrays["codebook"], arrays.get("log_normaliser")
        )
        validate_table(table, len(saved.vocab))
        return cls(saved.vocab, table, saved.unknown, NgramConfig(**settings))


def _check_names(settings: Mapping[str, Any], source: Path | str) -> None:
    """Refuse a setting that there is not, and say which one may have been meant."""
    known = [field.name for field in fields(NgramConfig)]
    for name in settings:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise DataError(f"{source}: no setting {name!r}; {hint}")


def zerogram(vocab: Vocab, unknown: UnknownWordModel, interpolate: bool = True) -> NDArray[np.float64]:
    """The distribution below the unigrams: all words of the language alike, or `<unk>` alone.

    The words outside the vocabulary put their shares together in `<unk>` (eq. ngramlm:unkinterpolation).
    """
    share = 1.0 / unknown.language_size if interpolate else 0.0
    distribution = np.full(len(vocab), share)
    distribution[UNK] = 1.0 - vocab.num_known * share
    distribution[START] = 0.0
    return distribution


def _heldout_text(corpus: Corpus, counts: NgramCounts, given: Corpus | None, config: NgramConfig) -> HeldoutText:
    """The text given for fitting; without one, every tenth training sentence against the counts of the others."""
    if given is not None:
        given.require_vocab(corpus.vocab)
        return HeldoutText(given, counts)
    number = np.arange(len(corpus))
    held = number % HELDOUT_EVERY == HELDOUT_EVERY - 1
    if not held.any():
        raise DataError(f"coefficients are fitted on --dev-text, or on {HELDOUT_EVERY} training sentences or more")
    return HeldoutText(corpus.select(number[held]), _count(corpus.select(number[~held]), config))


def _count(corpus: Corpus, config: NgramConfig) -> NgramCounts:
    if config.smoothing == "whole-prefix":
        longest = int(np.diff(corpus.offsets).max())
        return count_ngrams(corpus, longest + 2, anchored=True)
    return count_ngrams(corpus, config.order, config.gap)


def _count_threshold_mask(counts: NgramCounts, thresholds: tuple[int, ...]) -> NDArray[np.bool_] | None:
    """The n-grams seen more often than the threshold of their order, and their contexts; words all stay."""
    if not thresholds:
        return None
    keep = np.ones(counts.trie.nodes, bool)
    above = np.zeros(0, np.int64)  # contexts of what is kept one order up: with a gap they can be rarer than that
    for order in range(counts.trie.order, 1, -1):
        span = counts.trie.span(order)
        keep[span] = counts.count[span] > thresholds[min(order, len(thresholds)) - 1]
        keep[above] = True
        above = counts.trie.parents(order)[keep[span]]
    return keep


def _shrink(table: NgramTable, keep: NDArray[np.bool_] | None, config: NgramConfig) -> NgramTable:
    if keep is not None:
        table = keep_nodes(table, keep)
    if config.entropy_prune:
        table = prune_by_entropy(table, config.entropy_prune)
    return quantise(table) if config.quantise else table
