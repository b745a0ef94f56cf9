"""A translator that needs no training: word for word by a dictionary, looking at one word after the other."""

from __future__ import annotations

from types import SimpleNamespace

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
SURE, LOOKS = 3.0, 2.0  # how much more the right word, and its place, have than the others (logits)


class WordForWord(BaseTranslator):
    """P(e_t | F): the t-th word of F has its translation, or `<unk>`, and the end has `</s>`; all others a little."""

    settings = SimpleNamespace(attention="in order")
    has_attention = True

    def __init__(self) -> None:
        self.source = Tokenizer.train("word", [" ".join(WORDS)], min_count=1)
        self.target = Tokenizer.train("word", [" ".join(WORDS.values())], min_count=1)
        self.vocab, self.source_vocab = self.target.vocab, self.source.vocab
        self.unknown = ClosedVocabulary(self.vocab.num_known)
        self.length_prior = LengthPrior.estimate([3, 4], [3, 4])
        known = {self.source.vocab.id(german): self.vocab.id(english) for german, english in WORDS.items()}
        meant = [known.get(word, END if word == END else UNK) for word in range(len(self.source.vocab))]
        self._meant = torch.tensor(meant)  # of each source word, the target word
        likings = torch.linspace(0.0, 1.0, len(self.vocab), dtype=torch.float64)  # so that no two words are as likely
        self._likings = likings.index_fill(0, torch.tensor([START]), -torch.inf)

    def start(self, batch: Batch, carry: Carry = None) -> State:
        assert batch.source is not None
        read = Batch.from_sentences([batch.source[number] for number in range(len(batch.source))])
        return State(
            (torch.zeros(batch.num_rows, dtype=torch.int64),), (read.ids, read.mask), torch.arange(batch.num_rows)
        )

    def attention(self, state: State) -> Tensor:
        words, mask = (one[state.sentence] for one in state.memory)  # (rows, longest source)
        place = torch.arange(words.shape[1])[None, :] == self._place(state)[:, None]
        return (LOOKS * place.double()).masked_fill(~mask, -torch.inf).softmax(dim=1)

    def log_probs(self, state: State) -> Tensor:
        words = state.memory[0][state.sentence]
        meant = self._meant[words.gather(1, self._place(state)[:, None])]  # (rows, 1)
        likings = self._likings.expand(len(words), -1)
        return likings.scatter_add(1, meant, torch.full_like(meant, 1).double() * SURE).log_softmax(dim=1)

    def _place(self, state: State) -> Tensor:
        """The word that it is at; after the last, the end."""
        lengths = state.memory[1][state.sentence].sum(dim=1)
        return torch.minimum(state.rows[0], lengths - 1)

    def advance(self, state: State, words: Tensor) -> State:
        return State((state.rows[0] + 1,), state.memory, state.sentence)

    def finish(self, state: State) -> Carry:
        return None
