"""What a person asks of any language model; models add only their distribution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.data.unknown_words import UnknownWordModel
from dragoman.evaluation.log_probs import token_log_probs, unknown_log_probs
from dragoman.models.base import Model


class NextWord(NamedTuple):
    word: str
    prob: float


class WordScore(NamedTuple):
    """log P(word | words before) = log_prob + log_prob_unknown; the second part is 0 for known words."""

    word: str
    log_prob: float
    log_prob_unknown: float = 0.0


class LanguageModel(Model):
    """A scorer of sentences with a friendly face."""

    # -- what people ask ---------------------------------------------------------------------------------------------

    def score(self, sentences: str | Iterable[str]) -> list[float]:
        """log P(E) of each sentence, natural logs, unknown words paid for in full.

        The sentences are one text: a model that carries something over, as a cache does, has read the earlier ones.
        """
        return self.sentence_log_probs(self._encode(sentences)).tolist()

    def score_words(self, sentences: str | Iterable[str]) -> list[list[WordScore]]:
        """What each word of each sentence, and its `</s>`, costs."""
        return self.score_corpus_words(self._encode(sentences))

    def sentence_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        """log P(E) of each sentence of a corpus."""
        if not len(corpus):
            return np.zeros(0)
        costs = token_log_probs(self, corpus).copy()
        costs[corpus.unknown_token_positions] += unknown_log_probs(self, corpus)
        return np.add.reduceat(costs, corpus.token_offsets[:-1])

    def score_corpus_words(self, corpus: Corpus) -> list[list[WordScore]]:
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
        """The k most probable words after a prefix (a text, or words), `</s>` and `<unk>` among them (k=None: all)."""
        import torch

        from dragoman.data.batches import Batch

        state = self.start(Batch.empty(1))
        begun = self._encode(prefix).ids if isinstance(prefix, str) else self.vocab.ids(prefix)
        for word in begun.tolist():
            state = self.advance(state, torch.tensor([word]))
        probs = self.log_probs(state)[0].exp()
        best = torch.argsort(probs, descending=True, stable=True)[:k].tolist()
        return [NextWord(self.vocab.tokens[word], float(probs[word])) for word in best]

    def sample(self, n: int = 1, seed: int = 0, **how: Any) -> list[str]:
        """Draw n sentences; the same ones for the same seed. How: see `samples`."""
        return list(self.iter_samples(n, seed, **how))

    def iter_samples(
        self,
        n: int = 1,
        seed: int = 0,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        prefix: str = "",
        max_words: int = 200,
    ) -> Iterator[str]:
        """Sentences that begin with the prefix, as they are drawn.

        A temperature below 1 draws more of the probable words, one above 1 more of the rare ones. `top_k` draws from
        the k most probable words alone, `top_p` from the fewest words that have this mass together.
        """
        from dragoman.search import iter_samples

        begun = self._encode(prefix)
        (given,) = begun.sentences_as_text()  # as it was spelled: unknown words keep their names
        cuts: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        for drawn in iter_samples(self, n, seed, **cuts, prefix=begun.ids.tolist(), max_words=max_words):
            words = [self.vocab.tokens[word] for word in drawn.ids[begun.num_words :]]
            yield self._join([*given.split(" "), *words] if given else words)


def require_same_vocab(models: Sequence[LanguageModel], names: Sequence[str] | None = None) -> None:
    """Mixtures and ensembles need members that speak of the same words; refuse others with the reason."""
    names = names or [f"model {number}" for number in range(1, len(models) + 1)]
    first, one = models[0], names[0]
    for model, other in zip(models[1:], names[1:], strict=True):
        remedy = f"train {other} with --vocab and the directory of {one}"
        if model.vocab != first.vocab:
            why = first.vocab.describe_difference(model.vocab)
            raise DataError(f"{one} and {other} have different vocabularies ({why}): {remedy}")
        if model.unknown.config() != first.unknown.config():
            why = f"{_describe_unknown_model(first.unknown)}, and {_describe_unknown_model(model.unknown)}"
            raise DataError(f"{one} and {other} pay for unknown words differently ({why}): {remedy}, without --unknown")


def _describe_unknown_model(unknown: UnknownWordModel) -> str:
    """An unknown-word model in the words of --unknown."""
    match unknown.config():
        case {"kind": "uniform"}:
            return f"uniform over {unknown.language_size:,} words"
        case {"kind": "characters", "checksum": checksum}:
            return f"characters, checksum {checksum}"
        case config:
            return str(config["kind"])
