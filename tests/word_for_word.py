"""Translators without training: they translate token by token with a dictionary, and attend to one token at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.core.scorer import Carry, State
from dragoman.data.batches import Batch
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.data.vocabulary import END, START, UNK
from dragoman.models.translation import BaseTranslator
from dragoman.search.length import LengthPrior

WORDS = {
    "der": "the",
    "hund": "dog",
    "vogel": "bird",
    "schläft": "sleeps",
    "singt": "sings",
    ".": ".",
}
WORD_LOGIT, ATTENTION_LOGIT = 3.0, 2.0  # advantage of the correct word and of its position


class WordForWord(BaseTranslator):
    """P(e_t | F): mostly the translation of the t-th source word, or `<unk>`; after the last word `</s>`."""

    def __init__(self, words: dict[str, str] = WORDS, units: str = "word", word_logit: float = WORD_LOGIT) -> None:
        separator = " " if units == "word" else ""
        self.source = Tokenizer.train(units, [separator.join(words)], min_count=1)
        self.target = Tokenizer.train(units, [separator.join(words.values())], min_count=1)
        self.word_logit = word_logit
        self.vocab, self.source_vocab = self.target.vocab, self.source.vocab
        self.unknown = ClosedVocabulary(self.vocab.num_known)
        self.length_prior = LengthPrior.estimate([3, 4], [3, 4])
        tokens = {german.replace(" ", "▁"): english.replace(" ", "▁") for german, english in words.items()}
        dictionary = {self.source.vocab.id(german): self.vocab.id(english) for german, english in tokens.items()}
        targets = [dictionary.get(token, END if token == END else UNK) for token in range(len(self.source.vocab))]
        self._translations = torch.tensor(targets)  # (source vocabulary,)
        logits = torch.linspace(0.0, 1.0, len(self.vocab), dtype=torch.float64)  # different, to avoid ties
        self._logits = logits.index_fill(0, torch.tensor([START]), -torch.inf)

    @property
    def has_attention(self) -> bool:
        return True

    def start(self, batch: Batch, carry: Carry = None) -> State:
        assert batch.source is not None
        source = Batch.from_sentences([batch.source[number] for number in range(len(batch.source))])
        position = torch.zeros(batch.num_rows, dtype=torch.int64)
        return State((position,), (source.ids, source.mask), torch.arange(batch.num_rows))

    def attention(self, state: State) -> Tensor:
        ids, mask = (part[state.sentence] for part in state.memory)  # (rows, longest source)
        is_current = torch.arange(ids.shape[1])[None, :] == self._position(state)[:, None]
        return (ATTENTION_LOGIT * is_current.double()).masked_fill(~mask, -torch.inf).softmax(dim=1)

    def log_probs(self, state: State) -> Tensor:
        ids = state.memory[0][state.sentence]
        translation = self._translations[ids.gather(1, self._position(state)[:, None])]  # (rows, 1)
        logits = self._logits.expand(len(ids), -1)
        return logits.scatter_add(
            1, translation, torch.full_like(translation, 1).double() * self.word_logit
        ).log_softmax(1)

    def _position(self, state: State) -> Tensor:
        """The current source position, at most that of `</s>`."""
        lengths = state.memory[1][state.sentence].sum(dim=1)
        return torch.minimum(state.rows[0], lengths - 1)

    def advance(self, state: State, words: Tensor) -> State:
        return State((state.rows[0] + 1,), state.memory, state.sentence)

    def finish(self, state: State) -> Carry:
        return None
