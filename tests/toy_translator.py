"""A translator small enough to try out all of its translations: drawn at random, with a memory and with attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dragoman import Corpus
from dragoman.core.scorer import Carry, State
from dragoman.data.batches import Batch
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.data.vocabulary import END, SPECIALS, START, UNK, Vocab

SOURCE_VOCAB = Vocab([*SPECIALS, "x", "y", "z"])
SOURCES = ["x y", "", "z", "y x x z", "x", "z y x", "y y"]


def source_of(sentences: list[str] = SOURCES) -> Corpus:
    return Corpus.from_sentences(sentences, SOURCE_VOCAB)


class ToyTranslator:
    """P(e_t | F, e_{t-1}, t): what the source words that it attends to say of the next word, and what the last does."""

    def __init__(self, words: str = "a b c", seed: int = 1, patience: float = 2.5):
        """It wants to end when it has said about as many words as its patience is."""
        self.vocab, self.source_vocab = Vocab([*SPECIALS, *words.split()]), SOURCE_VOCAB
        self.unknown = ClosedVocabulary(self.vocab.num_known)
        chance = torch.Generator().manual_seed(seed)

        def drawn(*shape: int) -> Tensor:
            return 1.5 * torch.randn(shape, generator=chance, dtype=torch.float64)

        size = len(self.vocab)
        self._said, self._follows = drawn(len(SOURCE_VOCAB), size), drawn(size, size)
        self._looks, self._where = drawn(size, len(SOURCE_VOCAB)), drawn(8, 8)
        self._impossible = torch.zeros(size, dtype=torch.float64)
        self._impossible[[START, UNK]] = -math.inf
        self._patience = patience

    def start(self, batch: Batch, carry: Carry = None) -> State:
        assert batch.source is not None
        padded = Batch.from_sentences(
            [batch.source[number] for number in range(len(batch.source))]
        )  # closed by `</s>` as they are
        rows = torch.full((batch.num_rows,), START), torch.zeros(batch.num_rows, dtype=torch.int64)
        return State(rows, (padded.ids, padded.mask), torch.arange(batch.num_rows))

    def attention(self, state: State) -> Tensor:
        (last, t), (words, mask) = state.rows, state.memory
        words, mask = words[state.sentence], mask[state.sentence]  # (rows, longest source) both
        places = self._where[t[:, None] % 8, torch.arange(words.shape[1]) % 8]
        return (self._looks[last[:, None], words] + places).masked_fill(~mask, -math.inf).softmax(dim=1)

    def log_probs(self, state: State) -> Tensor:
        words = state.memory[0][state.sentence]
        read = (self.attention(state)[:, :, None] * self._said[words]).sum(dim=1)  # (rows, |V|)
        read[:, END] += state.rows[1] - self._patience
        return (read + self._follows[state.rows[0]] + self._impossible).log_softmax(dim=1)

    def advance(self, state: State, words: Tensor) -> State:
        return State((words, state.rows[1] + 1), state.memory, state.sentence)

    def finish(self, state: State) -> Carry:
        return None
