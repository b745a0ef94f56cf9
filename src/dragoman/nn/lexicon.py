"""A lexicon as a bias of the softmax (tutorial, section "Conclusion"; Arthur et al. 2016).

Attention shows which source word is being translated, and the lexicon its usual translations:

    p_lex(e | F, t) = sum_j alpha_{t,j} L(e | f_j),    p_t = softmax(s_t + log(p_lex + floor))

so that the network need not learn the translations of rare words. Divided by the floor, the bias is
log(1 + p_lex / floor): 0 except for the translations of the source words, the candidates. With P the softmax without
the bias,

    P'(e) = P(e) (1 + boost_e) / (1 + sum_c P(c) boost_c),    boost_c = p_lex(c) / floor

so only the candidates need to be computed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.data.vocabulary import START
from dragoman.nn.attention import RowLayout
from dragoman.nn.output import FullSoftmax, mean_log_prob, target_scores


class LexiconTable(NamedTuple):
    """L(e | f): for each source word its translations."""

    starts: Tensor  # (|V_f| + 1,) first entry of each source word
    words: Tensor  # (entries,) target words
    probs: Tensor  # (entries,)


class Candidates(NamedTuple):
    """Translations in the lexicon of the words of some sentences."""

    words: Tensor  # (sentences, K) target words in ascending order; `<s>`, which is impossible, in padding
    probs: Tensor  # (sentences, longest, K) L(candidate | f_j)


class LexiconBias(nn.Module):
    """The lexicon's bias on a full softmax of |V_e| words. It has no parameters; the table is a buffer.

    The smaller the floor, which is added to p_lex, the stronger the bias.
    """

    def __init__(self, table: LexiconTable, vocab_size: int, floor: float):
        super().__init__()
        self.vocab_size, self.floor = vocab_size, floor
        self.starts, self.words, self.probs = (nn.Buffer(tensor) for tensor in table)

    @property
    def table(self) -> LexiconTable:
        return LexiconTable(self.starts, self.words, self.probs)

    def candidates(self, source: Tensor) -> Candidates:
        """Return the candidates of some sentences.  # source: (sentences, longest) ids"""
        sentences, longest = source.shape
        ids = source.flatten().to(self.starts.device)
        sizes = self.starts[ids + 1] - self.starts[ids]  # (sentences * longest,)
        device = ids.device
        place = torch.repeat_interleave(torch.arange(len(ids), device=device), sizes)  # (entries,)
        first = torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
        entry = self.starts[ids[place]] + torch.arange(len(place), device=device) - first
        keys, column = torch.unique(place // longest * self.vocab_size + self.words[entry], return_inverse=True)
        sentence = keys // self.vocab_size  # (candidates,)
        starts = torch.searchsorted(sentence, torch.arange(sentences, device=device))
        number = torch.arange(len(keys), device=device) - starts[sentence]
        K = int(number.max()) + 1 if len(keys) else 1
        words = torch.full((sentences, K), START, device=device)
        words[sentence, number] = keys % self.vocab_size
        probs = self.probs.new_zeros(sentences, longest, K)
        probs[place // longest, place % longest, number[column]] = self.probs[entry]
        return Candidates(words, probs)

    def boosts(self, candidates: Candidates, attention: Tensor) -> Tensor:
        """p_lex / floor of each candidate.  # attention: (sentences, width, longest) -> (sentences, width, K)"""
        return torch.bmm(attention, candidates.probs.to(attention)) / self.floor

    def row_boosts(self, candidates: Candidates, attention: Tensor, sentence: Tensor) -> tuple[Tensor, Tensor]:
        """Return the candidates of each row and their boosts.  # attention: (rows, longest) -> (rows, K) each"""
        layout = RowLayout.of(sentence, len(candidates.words))
        boost = layout.to_rows(self.boosts(candidates, layout.to_grid(attention)))
        return candidates.words.index_select(0, sentence.to(candidates.words.device)), boost

    def log_probs(self, log_probs: Tensor, words: Tensor, boost: Tensor) -> Tensor:
        """Return log P' of all words, given log P.  # log_probs: (rows, |V|), words and boost: (rows, K)"""
        norm = (log_probs.gather(1, words).exp() * boost).sum(dim=1, keepdim=True).log1p()  # (rows, 1)
        return log_probs.scatter_add(1, words, boost.log1p()) - norm

    def subset_probs(self, candidates: Candidates, words: Tensor) -> Tensor:
        """Return L(word | f_j) of some words of each sentence.  # (sentences, n) -> (sentences, longest, n)"""
        known = torch.where(candidates.words == START, self.vocab_size, candidates.words)  # (sentences, K) ascending
        words = words.to(known.device)
        place = torch.searchsorted(known, words).clamp(max=known.shape[1] - 1)  # (sentences, n)
        is_candidate = (known.gather(1, place) == words).unsqueeze(1)  # (sentences, 1, n)
        longest = candidates.probs.shape[1]
        return candidates.probs.gather(2, place.unsqueeze(1).expand(-1, longest, -1)) * is_candidate

    def subset_bias(self, probs: Tensor, attention: Tensor) -> Tensor:
        """Return the bias of some words of each sentence, up to a constant per row.

        # probs: (sentences, longest, n) of `subset_probs`, attention: (sentences, width, longest)
        """
        return (torch.bmm(attention, probs.to(attention)) / self.floor).log1p()  # (sentences, width, n)

    def target_log_probs(
        self,
        output: FullSoftmax,
        x: Tensor,
        targets: Tensor,
        candidates: Candidates,
        attention: Tensor,
        flat_indices: Tensor,
        label_smoothing: float = 0.0,
        tied: Tensor | None = None,
    ) -> Tensor:
        """Return log P' of the tokens of some sentences.  # (tokens,)

        # x: (tokens, inputs) of the output layer; attention: (steps, pairs, longest); flat_indices: (tokens,) in the flat
        # (steps * pairs)
        """
        W, b = output.weights(tied)
        log_probs, log_z = target_scores(x, W, b, targets)
        steps, sentences, _ = attention.shape
        indices = flat_indices % sentences * steps + flat_indices // sentences  # sentences first
        grid = x.new_zeros(sentences * steps, x.shape[1]).index_copy(0, indices, x).view(sentences, steps, -1)
        words = candidates.words
        scores = torch.baddbmm(b[words][:, None], grid, W[words].transpose(1, 2))  # (sentences, steps, K)
        boost = self.boosts(candidates, attention.transpose(0, 1))
        boost, scores = (part.flatten(0, 1).index_select(0, indices) for part in (boost, scores))  # (tokens, K) each
        norm = ((scores - log_z[:, None]).exp() * boost).sum(dim=1).log1p()  # (tokens,)
        target_boost = (boost * (words[indices // steps] == targets[:, None])).sum(dim=1)  # (tokens,)
        result = log_probs + target_boost.log1p() - norm
        if not label_smoothing:
            return result
        mean_bias = boost.log1p().sum(dim=1) / b.isfinite().sum()  # (tokens,) over all words
        mean = mean_log_prob(x, W, b, log_z) + mean_bias - norm
        return (1 - label_smoothing) * result + label_smoothing * mean
