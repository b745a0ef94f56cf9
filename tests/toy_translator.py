"""A translator so small that all of its translations can be enumerated, with random parameters and attention."""

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
    """P(e_t | F, e_{t-1}, t): depends on the attended source words and on the previous word."""

    def __init__(self, words: str = "a b c", seed: int = 1, expected_length: float = 2.5):
        """`</s>` becomes probable after about `expected_length` words."""
        self.vocab, self.source_vocab = Vocab([*SPECIALS, *words.split()]), SOURCE_VOCAB
        self.unknown = ClosedVocabulary(self.vocab.num_known)
        generator = torch.Generator().manual_seed(seed)

        def random(*shape: int) -> Tensor:
            return 1.5 * torch.randn(shape, generator=generator, dtype=torch.float64)

        size = len(self.vocab)
        self._source_logits, self._bigram_logits = random(len(SOURCE_VOCAB), size), random(size, size)
        self._attention_logits, self._position_logits = random(size, len(SOURCE_VOCAB)), random(8, 8)
        self._impossible = torch.zeros(size, dtype=torch.float64)
        self._impossible[[START, UNK]] = -math.inf
        self._expected_length = expected_length

    def start(self, batch: Batch, carry: Carry = None) -> State:
        assert batch.source is not None
        source = Batch.from_sentences([batch.source[number] for number in range(len(batch.source))])  # with `</s>`
        rows = torch.full((batch.num_rows,), START), torch.zeros(batch.num_rows, dtype=torch.int64)
        return State(rows, (source.ids, source.mask), torch.arange(batch.num_rows))

    def attention(self, state: State) -> Tensor:
        (last, t), (ids, mask) = state.rows, state.memory
        ids, mask = ids[state.sentence], mask[state.sentence]  # (rows, longest source) each
        positions = self._position_logits[t[:, None] % 8, torch.arange(ids.shape[1]) % 8]
        return (self._attention_logits[last[:, None], ids] + positions).masked_fill(~mask, -math.inf).softmax(dim=1)

    def log_probs(self, state: State) -> Tensor:
        ids = state.memory[0][state.sentence]
        logits = (self.attention(state)[:, :, None] * self._source_logits[ids]).sum(dim=1)  # (rows, |V|)
        logits[:, END] += state.rows[1] - self._expected_length
        return (logits + self._bigram_logits[state.rows[0]] + self._impossible).log_softmax(dim=1)

    def advance(self, state: State, words: Tensor) -> State:
        return State((words, state.rows[1] + 1), state.memory, state.sentence)

    def finish(self, state: State) -> Carry:
        return None
