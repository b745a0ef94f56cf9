"""The text-level methods of all language models; each model adds its distribution.

A translator with a fixed source is a language model as well: P(E | F) for this F.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, Scorer, State, select_rows
from dragoman.data.corpus import Corpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.unknown_words import UnknownWordModel
from dragoman.evaluation.likelihood import pair_log_probs, token_log_probs, unknown_log_probs
from dragoman.models.base import Model, SavedModel

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch
    from dragoman.search.sampling import SamplingKwargs

MAX_SAMPLE_WORDS = 200


class NextWord(NamedTuple):
    word: str
    prob: float


class WordScore(NamedTuple):
    """log P(word | words before) = log_prob + log_prob_unknown; the second term is 0 for known words."""

    word: str
    log_prob: float
    log_prob_unknown: float = 0.0


class LanguageModel(Model):
    """A model of sentences P(E)."""

    def score(self, sentences: str | Iterable[str]) -> list[float]:
        """Return log P(E) of each sentence (natural logs), the spelling of unknown words included.

        The sentences are one text: a model with a carry, such as a cache, has read the earlier ones.
        """
        return self.sentence_log_probs(self._encode(sentences)).tolist()

    def score_words(self, sentences: str | Iterable[str]) -> list[list[WordScore]]:
        """Return the log-probability of each word of each sentence, `</s>` included."""
        return self.score_corpus_words(self._encode(sentences))

    def sentence_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        """Return log P(E) of each sentence of a corpus.  # (sentences,)"""
        if not len(corpus):
            return np.zeros(0)
        log_probs = token_log_probs(self, corpus).copy()
        log_probs[corpus.unknown_token_positions] += unknown_log_probs(self, corpus)
        return np.add.reduceat(log_probs, corpus.token_offsets[:-1])

    def score_corpus_words(self, corpus: Corpus) -> list[list[WordScore]]:
        """Return the log-probability of each word of a corpus, `</s>` included."""
        log_probs = token_log_probs(self, corpus)
        unknown = np.zeros(corpus.num_tokens)
        unknown[corpus.unknown_token_positions] = unknown_log_probs(self, corpus)
        words = np.array(self.vocab.tokens, object)[corpus.ids_with_boundaries(starts=0)]
        words[corpus.unknown_token_positions] = corpus.unknown_words
        flat = [WordScore(*row) for row in zip(words, log_probs.tolist(), unknown.tolist(), strict=True)]
        offsets = corpus.token_offsets.tolist()
        return [flat[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]

    def _encode(self, sentences: str | Iterable[str]) -> Corpus:
        return Corpus.from_sentences([sentences] if isinstance(sentences, str) else sentences, self.vocab)

    def _join(self, words: Sequence[str]) -> str:
        return " ".join(words)

    def next_words(self, prefix: str | Sequence[str] = "", k: int | None = 10) -> list[NextWord]:
        """Return the k most probable next words after a prefix, `</s>` and `<unk>` included; all for k=None.

        The prefix is a text or a list of tokens.
        """
        import torch

        from dragoman.data.batches import Batch

        state = self.start(Batch.empty(1))
        ids = self._encode(prefix).ids if isinstance(prefix, str) else self.vocab.ids(prefix)
        for token in ids.tolist():
            state = self.advance(state, torch.tensor([token]))
        probs = self.log_probs(state)[0].exp()
        best = torch.argsort(probs, descending=True, stable=True)[:k].tolist()
        return [NextWord(self.vocab.tokens[token], float(probs[token])) for token in best]

    def sample(
        self,
        n: int = 1,
        seed: int = 0,
        *,
        prefix: str = "",
        max_words: int = MAX_SAMPLE_WORDS,
        **options: Unpack[SamplingKwargs],
    ) -> list[str]:
        """Sample n sentences; the same seed gives the same sentences. For the options, see `iter_samples`."""
        return list(self.iter_samples(n, seed, prefix=prefix, max_words=max_words, **options))

    def iter_samples(
        self,
        n: int = 1,
        seed: int = 0,
        *,
        prefix: str = "",
        max_words: int = MAX_SAMPLE_WORDS,
        **options: Unpack[SamplingKwargs],
    ) -> Iterator[str]:
        """Yield sampled sentences that begin with the prefix.

        A `temperature` below 1 favours probable words, above 1 rare ones. `top_k` keeps the k most probable words,
        `top_p` the fewest words with this probability mass.
        """
        from dragoman.search.sampling import iter_samples

        start = self._encode(prefix)
        (start_text,) = start.sentences_as_text()  # with the spelling of unknown words
        for hypothesis in iter_samples(self, n, seed, prefix=start.ids.tolist(), max_words=max_words, **options):
            words = [self.vocab.tokens[token] for token in hypothesis.ids[start.num_words :]]
            yield self._join([*start_text.split(" "), *words] if start_text else words)


class SourceConditionedLM(LanguageModel):
    """A translator for fixed source sentences, with the methods of a language model.

    With one source sentence, all lines are translations of it. With several, line i translates sentence i. It cannot
    be saved.
    """

    kind: ClassVar[str] = "conditioned"

    def __init__(self, scorer: Scorer, source: Corpus, target: Tokenizer):
        self.scorer, self.source, self.target = scorer, source, target
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

    def _source_indices(self, lines: int) -> NDArray[np.int64]:
        """Return the source sentence of each line.  # (lines,)"""
        if len(self.source) == 1:
            return np.zeros(lines, np.int64)
        if len(self.source) != lines:
            raise DataError(f"{len(self.source):,} sources but {lines:,} translations; give one for each")
        return np.arange(lines)

    def _encode(self, sentences: str | Iterable[str]) -> Corpus:
        return self.target.encode([sentences] if isinstance(sentences, str) else sentences)

    def _join(self, words: Sequence[str]) -> str:
        return self.target.join(words)

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        raise DataError(f"{saved.path}: a translator with a fixed source cannot be saved or loaded")


def check_compatible(models: Sequence[LanguageModel], names: Sequence[str] | None = None) -> None:
    """Raise an error if models have different vocabularies or unknown-word models, and so cannot be mixed."""
    names = names or [f"model {number}" for number in range(1, len(models) + 1)]
    first, first_name = models[0], names[0]
    for model, name in zip(models[1:], names[1:], strict=True):
        remedy = f"train {name} with --vocab and the directory of {first_name}"
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
