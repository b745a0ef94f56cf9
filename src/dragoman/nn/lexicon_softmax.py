"""A lexicon's say in the softmax (tutorial, section "Conclusion"; Arthur et al. 2016).

Attention tells which source word is being translated, and the lexicon what that is usually translated to:

    p_lex(e | F, t) = sum_j alpha_{t,j} L(e | f_j),    p_t = softmax(s_t + log(p_lex + floor))

so that a rare word need not be learned by the network. Divided by the floor, the bias is log(1 + p_lex / floor): 0 but
for the few words that the lexicon has for words of the source, its candidates. So with P the softmax without it,

    P'(e) = P(e) (1 + boost_e) / (1 + sum_c P(c) boost_c),    boost_c = p_lex(c) / floor

and just the candidates have to be looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.data.vocabulary import START
from dragoman.nn import softmax


class LexiconTable(NamedTuple):
    """L(e | f): for each source word the target words that it may be translated to."""

    starts: Tensor  # (|V_f| + 1,) where the entries of each source word begin
    words: Tensor  # (entries,) target words
    probs: Tensor  # (entries,)


class Candidates(NamedTuple):
    """What the lexicon has for the words of some sentences."""

    words: Tensor  # (sentences, K) target words; `<s>`, which never comes, where padded
    table: Tensor  # (sentences, longest, K) L(candidate | f_j), 0 where there is none


def candidates(lexicon: LexiconTable, source: Tensor, words: int) -> Candidates:
    """The candidates of some sentences, once for each.  # source: (sentences, longest), words: |V_e|"""
    sentences, longest = source.shape
    flat = source.flatten()
    sizes = lexicon.starts[flat + 1] - lexicon.starts[flat]  # (sentences * longest,)
    place = torch.repeat_interleave(torch.arange(len(flat)), sizes)  # (entries met,) where each is met
    within = torch.arange(len(place)) - torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
    entry = lexicon.starts[flat[place]] + within
    keys, own = torch.unique(place // longest * words + lexicon.words[entry], return_inverse=True)
    sentence = keys // words  # (candidates,)
    number = torch.arange(len(keys)) - torch.searchsorted(sentence, torch.arange(sentences))[sentence]
    K = int(number.max()) + 1 if len(keys) else 1
    found = torch.full((sentences, K), START)
    found[sentence, number] = keys % words
    table = lexicon.probs.new_zeros(sentences, longest, K)
    table[place // longest, place % longest, number[own]] = lexicon.probs[entry]
    return Candidates(found, table)


def boosts(lexical: Candidates, alpha: Tensor, floor: float) -> Tensor:
    """p_lex / floor of each candidate.  # alpha: (sentences, rows of each, longest) -> (sentences, rows of each, K)"""
    return torch.bmm(alpha, lexical.table.to(alpha)) / floor


def word_log_probs(log_probs: Tensor, words: Tensor, boost: Tensor) -> Tensor:
    """log P' of all words, given log P.  # log_probs: (rows, |V|), words and boost: (rows, K)"""
    norm = (log_probs.gather(1, words).exp() * boost).sum(dim=1, keepdim=True).log1p()  # (rows, 1)
    return log_probs.scatter_add(1, words, boost.log1p()) - norm


def word_scores(scores: Tensor, some: Tensor, words: Tensor, boost: Tensor, all_words: int) -> Tensor:
    """The scores of some words with their boosts.  # scores: (rows, n), some: (n,), words and boost: (rows, K)"""
    n = len(some)
    column = torch.full((all_words,), n)  # those that are not asked for share a column that is dropped
    column[some] = torch.arange(n)
    bias = scores.new_zeros(len(scores), n + 1).scatter_add_(1, column[words], boost.log1p())
    return scores + bias[:, :n]


class Looked(NamedTuple):
    """What the lexicon says in each row of a text: candidates and how much each is boosted."""

    words: Tensor  # (rows, K)
    boost: Tensor  # (rows, K)
    scores: Tensor  # (rows, K) s_c of the network


def target_log_probs(
    h: Tensor, W: Tensor, b: Tensor, targets: Tensor, looked: Looked, smoothing: float = 0.0
) -> Tensor:
    """log P' of one word in each row, smoothed if that is asked for: see `softmax.target_log_probs`.  # (rows,)"""
    picked, log_z = softmax.target_scores(h, W, b, targets)
    of_candidates = (looked.scores - log_z[:, None]).exp()  # (rows, K) P(c)
    norm = (of_candidates * looked.boost).sum(dim=1).log1p()  # (rows,)
    own = (looked.boost * (looked.words == targets[:, None])).sum(dim=1)  # (rows,) boost of the word that comes
    found = picked + own.log1p() - norm
    if not smoothing:
        return found
    biases = looked.boost.log1p().sum(dim=1) / b.isfinite().sum()  # (rows,) their mean over all words
    return (1 - smoothing) * found + smoothing * (softmax.mean_log_prob(h, W, b, log_z) + biases - norm)


def look(
    lexical: Candidates, alphas: Tensor, h: Tensor, places: Tensor, output: tuple[Tensor, Tensor], floor: float
) -> Looked:
    """What the lexicon says of each token of some sentences, whose words are all known.

    # alphas: (steps, sentences, longest); h: (tokens, outputs), what the softmax reads; places: (tokens,) of each token
    # among sentences * steps, sentences first
    """
    steps, sentences, _ = alphas.shape
    W, b = output
    grid = h.new_zeros(sentences * steps, h.shape[1]).index_copy(0, places, h).view(sentences, steps, -1)
    scores = torch.baddbmm(b[lexical.words][:, None], grid, W[lexical.words].transpose(1, 2))  # (sentences, steps, K)
    boost = boosts(lexical, alphas.transpose(0, 1), floor)
    of_tokens = (part.flatten(0, 1).index_select(0, places) for part in (boost, scores))  # (tokens, K) each
    return Looked(lexical.words[places // steps], *of_tokens)
