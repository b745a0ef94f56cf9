"""Inspection of recurrent models: activations of cells, saliency of words, and gradients over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator

from dragoman.core.errors import DataError
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import split_by_size
from dragoman.data.segmenters import SPACE_MARK
from dragoman.data.vocabulary import END, START
from dragoman.models.neural import TOKENS_PER_BATCH
from dragoman.models.recurrent import RecurrentModel
from dragoman.nn.cells import CELLS, CellState
from dragoman.nn.recurrent import LayerStates

MIN_STD = 1e-12  # the correlation of a cell that varies less is 0
POSITION = "position"  # the feature "position in the sentence"


@dataclass(frozen=True, eq=False)
class Activations:
    """Values of the cells of one layer after each word of some sentences."""

    words: tuple[tuple[str, ...], ...]  # words of each sentence, without its end
    values: tuple[NDArray[np.float64], ...]  # of each sentence: (words, H)
    part: str  # of the state: h, or c
    layer: int

    def of_cell(self, cell: int) -> list[NDArray[np.float64]]:
        """Return the values of one cell for each sentence."""
        return [values[:, cell] for values in self.values]


def activations(model: RecurrentModel, corpus: Corpus, part: str = "h", layer: int | None = None) -> Activations:
    """Return the values of the cells of a layer (default: the last) after each word."""
    corpus.require_vocab(model.vocab)
    settings = model.settings
    number = settings.layers if layer is None else layer
    if not 1 <= number <= settings.layers:
        known = f"layers 1 to {settings.layers}" if settings.layers > 1 else "one layer, 1"
        raise DataError(f"layer {number}: the model has {known}; choose one of these")
    parts = CELLS[settings.cell].state
    if part not in parts:
        raise DataError(f"part {part!r}: the state of a cell {settings.cell} has {' and '.join(parts)}")
    place = parts.index(part)
    groups: Iterable[NDArray[np.int64]] = np.arange(len(corpus))[:, None]  # single sentences share their state
    if not model.carries:  # sentences of similar length
        groups = split_by_size(np.argsort(corpus.sizes, kind="stable"), corpus.sizes, TOKENS_PER_BATCH)
    values: list[NDArray[np.float64]] = [np.zeros((0, settings.hidden))] * len(corpus)
    carry = None
    for sentences in groups:
        batch = Batch.from_sentences([corpus[sentence] for sentence in sentences])
        state, steps = model.start(batch, carry), []
        for words in batch.ids.T:
            state = model.advance(state, words)
            steps.append(state.rows[1][number - 1][place])
        carry = model.finish(state)  # groups of a model that carries its state have one sentence
        of_group = torch.stack(steps, dim=1).double().cpu().numpy()  # (rows, longest, H)
        for row, sentence in enumerate(sentences):
            values[sentence] = of_group[row, : len(corpus[sentence])]
    return Activations(tuple(map(tuple, corpus.tokenized_sentences())), tuple(values), part, number)


def is_word(token: str, word: str) -> bool:
    """Return whether a token is a word, or the piece that is a whole word."""
    return token in (word, SPACE_MARK + word)


def correlated_cells(activations: Activations, feature: str, limit: int) -> list[tuple[int, float]]:
    """Return the cells with the highest absolute correlation with a feature, and their correlations.

    The feature is `position` (the position in the sentence) or a word: whether it has been read.
    """
    features = [
        np.arange(len(words))
        if feature == POSITION
        else np.maximum.accumulate(np.array([is_word(word, feature) for word in words], np.float64))
        for words in activations.words
    ]
    values = np.concatenate([np.zeros(0), *features])  # of the feature after each word
    if not len(values) or values.std() == 0:
        why = "all sentences have one word" if feature == POSITION else "it is never read, or always"
        raise DataError(f"no cell can correlate with {feature!r} in this text: {why}; use more text, or another word")
    cells = np.concatenate(activations.values)  # (words, H)
    stds = cells.std(axis=0)
    covariances = cells.T @ (values - values.mean()) / len(cells)
    zeros = np.zeros(len(stds))
    correlations = np.divide(covariances, stds * values.std(), out=zeros, where=stds > MIN_STD)  # Pearson's
    best = np.argsort(-np.abs(correlations), kind="stable")[:limit]
    return [(int(cell), float(correlations[cell])) for cell in best]


@dataclass(frozen=True, eq=False)
class Saliency:
    """How much each prediction in a sentence depends on each word before it (Li et al. 2016)."""

    read: tuple[str, ...]  # `<s>` (or the `</s>` before) and all words except the last
    predicted: tuple[str, ...]  # the words, and `</s>`
    norms: NDArray[np.float64]  # (predicted, read): |d log P / d vector of the word|; 0 for words not read yet


def saliency(model: RecurrentModel, sentence: str) -> Saliency:
    """Return the norm of the gradient of each word's log P with respect to the vectors of the words before it."""
    corpus = Corpus.from_sentences([sentence], model.vocab)
    ids = corpus.ids_with_boundaries(starts=0)  # the words and `</s>`
    read = np.concatenate([[END if model.carries else START], ids[:-1]])
    m = model.embed(read[:, None]).detach().requires_grad_(True)  # (steps, 1, L_m)
    with torch.enable_grad():
        h, _ = model.rnn(m, model.rnn.initial_states(1))
        log_probs = [model.target_log_probs(h[step], ids[step : step + 1])[0] for step in range(len(ids))]
        gradients = [torch.autograd.grad(log_prob, m, retain_graph=True)[0][:, 0] for log_prob in log_probs]
    norms = torch.stack([gradient.norm(dim=1) for gradient in gradients])
    words = (*corpus.tokenized_sentences()[0], model.vocab.tokens[END])
    return Saliency((model.vocab.tokens[read[0]], *words[:-1]), words, norms.double().cpu().numpy())


def gradient_by_distance(model: RecurrentModel, corpus: Corpus, words: int = 20) -> NDArray[np.float64]:
    """Return |dl / d state d words earlier| for d = 0, 1, ... (tutorial, "The Vanishing Gradient").

    The loss is that of the word after the first `words`, averaged over the sentences that are long enough. The state
    is everything that a step passes on: h, with c where there is one, of all layers.  # (words,)
    """
    corpus.require_vocab(model.vocab)
    long_enough = np.flatnonzero(np.diff(corpus.offsets) > words)
    if not len(long_enough):
        raise DataError(f"no sentence has more than {words} words; use fewer words, or another text")
    ids = np.stack([corpus[number][: words + 1] for number in long_enough.tolist()])  # (rows, words + 1)
    rows = max(1, TOKENS_PER_BATCH // (words + 1))
    norms = [_gradient_norms(model, ids[first : first + rows]) for first in range(0, len(ids), rows)]
    return np.concatenate(norms, axis=1).mean(axis=1)[::-1][:words]


def _gradient_norms(model: RecurrentModel, ids: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return |dl / d state| after each word, where l is the loss of the last word.  # (rows, steps) -> (steps, rows)"""
    start = np.full((len(ids), 1), END if model.carries else START, ids.dtype)
    read = np.concatenate([start, ids[:, :-1]], axis=1).T  # (steps, rows)
    with torch.enable_grad():
        m = model.embed(read).detach()  # (steps, rows, L_m)
        states: LayerStates = tuple(
            tuple(part.detach().clone().requires_grad_(True) for part in state)
            for state in model.rnn.initial_states(m.shape[1])
        )
        steps: list[CellState] = []  # the parts of the states of all layers after each step, (rows, H) each
        for x in m:
            _, after = model.rnn.step(x, states)
            # Views make h and c separate parts of the state: the gradient of c must not include its effect on this h.
            states = tuple(tuple(part.view_as(part) for part in state) for state in after)
            steps.append(tuple(part for state in states for part in state))
        h = [state[0] for state in states]
        output = torch.stack([m[-1], *h]).sum(dim=0) if model.settings.residual else h[-1]
        loss = -model.target_log_probs(output, ids[:, -1]).sum()
        parts = [part for step in steps for part in step]
        gradients = torch.autograd.grad(loss, parts, allow_unused=True, materialize_grads=True)
    size = len(steps[0])
    by_step = [torch.cat(gradients[first : first + size], dim=1) for first in range(0, len(gradients), size)]
    return torch.stack([gradient.double().norm(dim=1) for gradient in by_step]).cpu().numpy()


def untrained_copy(model: RecurrentModel, seed: int | None = None) -> RecurrentModel:
    """Return a model of the same shape with random parameters, by default from the seed of its training."""
    if seed is None:
        seed = int(model.training_metadata.get("training", {}).get("seed", 1))
    copy = RecurrentModel(model.vocab, model.unknown, model.settings, model.classes)
    copy.reset_parameters(Generator().manual_seed(seed))
    return copy.eval()
