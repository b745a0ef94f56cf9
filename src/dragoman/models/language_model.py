"""The text-level methods of all language models; each model adds its distribution.

A translator with a fixed source is a language model as well: P(E | F) for this F.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, Scorer, State, select_rows
from dragoman.data.corpus import Corpus
from dragoman.data.segmenters import token_name
from dragoman.data.text_parts import TextParts, common_parts, token_parts
from dragoman.data.unknown_words import UnknownWordModel
from dragoman.data.vocabulary import SPECIALS, UNK
from dragoman.evaluation.likelihood import pair_log_probs, token_log_probs, unknown_log_probs
from dragoman.models.base import Config, Model, SavedModel

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch
    from dragoman.search.next_words import Continuation
    from dragoman.search.sampling import SamplingKwargs

MAX_SAMPLE_WORDS = 200


TOKENS_PER_WORD = 10  # of a word, at most, when sentences are sampled token by token


class NextWord(NamedTuple):
    word: str
    prob: float


class WordScore(NamedTuple):
    """log P(word | words before) = log_prob + log_prob_unknown; the second term is 0 for known words.

    If the model's tokens are pieces of words, both are sums over the pieces.
    """

    word: str
    log_prob: float
    log_prob_unknown: float = 0.0


class LanguageModel(Model):
    """A model of sentences P(E)."""

    def files(self) -> Mapping[str, bytes]:
        return self.vocab.segmenter.files()

    def full_config(self) -> Config:
        segmenter = self.vocab.segmenter
        return {**super().full_config(), **({} if segmenter.kind == "word" else {"units": segmenter.spec})}

    def sizes(self) -> dict[str, int]:
        tokens = f"{token_name(self.vocab.segmenter)}s"
        return {tokens if name == "words" else name: size for name, size in super().sizes().items()}

    def score(self, sentences: str | Iterable[str]) -> list[float]:
        """Return log P(E) of each sentence (natural logs), the spelling of unknown words included.

        They are plain text, split as the training text was. They are one text: a model with a carry, such as a cache,
        has read the earlier ones.
        """
        return self.sentence_log_probs(self._encode(sentences)).tolist()

    def score_words(self, sentences: str | Iterable[str]) -> list[list[WordScore]]:
        """Return the log-probability of each word of each sentence, `</s>` included.

        In a script without spaces between words, return those of the model's tokens.
        """
        return self.score_corpus_words(self._encode(sentences))

    def sentence_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        """Return log P(E) of each sentence of a corpus.  # (sentences,)"""
        if not len(corpus):
            return np.zeros(0)
        log_probs = token_log_probs(self, corpus)
        if corpus.spellings:
            log_probs = log_probs.copy()
            log_probs[corpus.unknown_token_positions] += unknown_log_probs(self, corpus)
        return np.add.reduceat(log_probs, corpus.token_offsets[:-1])

    def score_corpus_words(self, corpus: Corpus) -> list[list[WordScore]]:
        """Return the log-probability of each word of a corpus, `</s>` included."""
        return self._score_parts(corpus, common_parts([corpus]))

    def score_corpus_tokens(self, corpus: Corpus) -> list[list[WordScore]]:
        """Return the log-probability of each token of a corpus, `</s>` included."""
        return self._score_parts(corpus, token_parts([corpus]))

    def _score_parts(self, corpus: Corpus, parts: TextParts) -> list[list[WordScore]]:
        log_probs = token_log_probs(self, corpus)
        unknown = np.zeros(corpus.num_tokens)
        unknown[corpus.unknown_token_positions] = unknown_log_probs(self, corpus)
        columns = parts.words, parts.sums(log_probs).tolist(), parts.sums(unknown).tolist()
        flat = [WordScore(*row) for row in zip(*columns, strict=True)]
        return [flat[first:last] for first, last in pairwise(parts.offsets.tolist())]

    def _encode(self, sentences: str | Iterable[str]) -> Corpus:
        return Corpus.from_sentences([sentences] if isinstance(sentences, str) else sentences, self.vocab)

    def _join(self, tokens: Sequence[str]) -> str:
        return self.vocab.segmenter.join(tokens)

    def next_words(
        self, prefix: str | Sequence[str] = "", k: int | None = 10, *, show_unknown: bool = True
    ) -> list[NextWord]:
        """Return the k most probable next words after a prefix, `</s>` included; all for k=None.

        Pieces and characters are completed to words. A word that begins with `…` continues the last word of the
        prefix. The prefix is a text or a list of tokens. Without `show_unknown`, `<unk>` is left out; the probabilities
        of the others are the same.
        """
        from dragoman.search.next_words import describe

        if self.vocab.segmenter.kind == "word" or k is None:
            return self.next_tokens(prefix, k, show_unknown=show_unknown)
        text, options = prefix if isinstance(prefix, str) else self._join(prefix), {"show_unknown": show_unknown}
        return [NextWord(describe(word.text, text), word.prob) for word in self.continuations(prefix, k, **options)]

    def next_tokens(
        self, prefix: str | Sequence[str] = "", k: int | None = 10, *, show_unknown: bool = True
    ) -> list[NextWord]:
        """Return the k most probable next tokens after a prefix and their exact probabilities; all for k=None.

        For `show_unknown`, see `next_words`.
        """
        import torch

        from dragoman.data.vocabulary import UNK

        probs = self.log_probs(self._state_after(prefix))[0].exp()
        best = torch.argsort(probs, descending=True, stable=True)
        best = best if show_unknown else best[best != UNK]
        return [NextWord(self.vocab.tokens[token], float(probs[token])) for token in best[:k].tolist()]

    def continuations(
        self, prefix: str | Sequence[str] = "", k: int = 10, *, show_unknown: bool = True
    ) -> list[Continuation]:
        """Return the k most probable next words as texts to append to the prefix, with a space before new words.

        For `show_unknown`, see `next_words`.
        """
        from dragoman.search.next_words import Continuation, next_words

        if self.vocab.segmenter.kind == "word":
            words = self.next_tokens(prefix, k, show_unknown=show_unknown)
            return [Continuation(f" {word}", prob, (word,)) for word, prob in words]
        return next_words(self, self._state_after(prefix), k, show_unknown=show_unknown)

    def _state_after(self, prefix: str | Sequence[str]) -> State:
        import torch

        from dragoman.data.batches import Batch

        state = self.start(Batch.empty(1))
        ids = self._encode(prefix).ids if isinstance(prefix, str) else self.vocab.ids(prefix)
        for token in ids.tolist():
            state = self.advance(state, torch.tensor([token]))
        return state

    def sample(
        self,
        n: int = 1,
        seed: int = 0,
        *,
        prefix: str = "",
        max_words: int = MAX_SAMPLE_WORDS,
        show_unknown: bool = False,
        **options: Unpack[SamplingKwargs],
    ) -> list[str]:
        """Sample n sentences; the same seed gives the same sentences. For the options, see `iter_samples`."""
        return list(
            self.iter_samples(n, seed, prefix=prefix, max_words=max_words, show_unknown=show_unknown, **options)
        )

    def iter_samples(
        self,
        n: int = 1,
        seed: int = 0,
        *,
        prefix: str = "",
        max_words: int = MAX_SAMPLE_WORDS,
        show_unknown: bool = False,
        **options: Unpack[SamplingKwargs],
    ) -> Iterator[str]:
        """Yield sampled sentences that begin with the prefix, as text.

        A `temperature` below 1 favours probable words, above 1 rare ones. `top_k` keeps the k most probable tokens,
        `top_p` the fewest tokens with this probability mass. An unknown word is spelled by the model of unknown words
        if that is a model of characters; otherwise another word is sampled. With `show_unknown` it is `<unk>`.
        """
        from dragoman.search.sampling import iter_samples

        start = self._encode(prefix)
        [start_tokens] = start.tokenized_sentences()  # with the spelling of unknown words
        has_words = self.vocab.segmenter.kind == "word"
        options = {"redraw_unknown": not (show_unknown or self.unknown.spells), **options}
        limit = max_words if has_words else max_words * TOKENS_PER_WORD
        samples = iter_samples(self, n, seed, prefix=start.ids.tolist(), max_words=limit, **options)
        for number, sample in enumerate(samples):
            tokens = start_tokens + [self.vocab.tokens[token] for token in sample.ids[start.num_words :]]
            for place in (i for i, token in enumerate(sample.ids) if token == UNK and i >= start.num_words):
                if not show_unknown:
                    tokens[place] = self.unknown.sample(np.random.default_rng([seed, number, place])) or SPECIALS[UNK]
            text = self._join(tokens)
            yield text if has_words else " ".join(text.split(" ")[:max_words])


class SourceConditionedLM(LanguageModel):
    """A translator for fixed source sentences, with the methods of a language model.

    With one source sentence, all lines are translations of it. With several, line i translates sentence i. It cannot
    be saved.
    """

    kind: ClassVar[str] = "conditioned"

    def __init__(self, scorer: Scorer, source: Corpus):
        self.scorer, self.source = scorer, source
        self.vocab, self.unknown = scorer.vocab, scorer.unknown

    def start(self, batch: Batch, carry: Carry = None) -> State:
        """Encode each source sentence once; all rows of a single sentence share its memory."""
        import torch

        from dragoman.data.batches import Batch

        state = self.scorer.start(Batch.empty(len(self.source), self.source))
        return select_rows(state, torch.from_numpy(self._source_indices(batch.num_rows)))

    def log_probs(self, state: State) -> Tensor:
        return self.scorer.log_probs(state)

    def advance(self, state: State, words: Tensor) -> State:
        return self.scorer.advance(state, words)

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        return pair_log_probs(self.scorer, self.source.select(self._source_indices(len(corpus))), corpus)

    def next_words(
        self, prefix: str | Sequence[str] = "", k: int | None = 10, *, show_unknown: bool = True
    ) -> list[NextWord]:
        """Return the k most probable next tokens of the translation, see `next_tokens`."""
        return self.next_tokens(prefix, k, show_unknown=show_unknown)

    def _source_indices(self, lines: int) -> NDArray[np.int64]:
        """Return the source sentence of each line.  # (lines,)"""
        if len(self.source) == 1:
            return np.zeros(lines, np.int64)
        if len(self.source) != lines:
            raise DataError(f"{len(self.source):,} sources but {lines:,} translations; give one for each")
        return np.arange(lines)

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        raise DataError(f"{saved.path}: a translator with a fixed source cannot be saved or loaded")


def check_compatible(models: Sequence[LanguageModel], names: Sequence[str] | None = None) -> None:
    """Raise an error if models have different vocabularies or unknown-word models, and so cannot be mixed."""
    names = names or [f"model {number}" for number in range(1, len(models) + 1)]
    first, first_name = models[0], names[0]
    for model, name in zip(models[1:], names[1:], strict=True):
        remedy = f"train {name} with --vocab and the directory of {first_name}"
        units, other_units = first.vocab.segmenter, model.vocab.segmenter
        if units != other_units:
            reason = f"{units.spec} and {other_units.spec}"
            reason = f"{units.spec}, learned from different texts" if units.spec == other_units.spec else reason
            raise DataError(f"{first_name} and {name} have different units ({reason}): {remedy}")
        if model.vocab != first.vocab:
            reason = first.vocab.describe_difference(model.vocab)
            raise DataError(f"{first_name} and {name} have different vocabularies ({reason}): {remedy}")
        if model.unknown.config() != first.unknown.config():
            reason = f"{_describe_unknown_model(first.unknown)}, and {_describe_unknown_model(model.unknown)}"
            problem = f"{first_name} and {name} have different unknown-word models ({reason})"
            raise DataError(f"{problem}: {remedy}, without --unknown")


def _describe_unknown_model(unknown: UnknownWordModel) -> str:
    match unknown.config():
        case {"kind": "uniform"}:
            return f"uniform over {unknown.language_size:,} words"
        case {"kind": "characters", "checksum": checksum}:
            return f"characters, checksum {checksum}"
        case config:
            return str(config["kind"])
