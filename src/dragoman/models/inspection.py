"""Looking inside a recurrent model: what its cells do, which words a prediction hangs on, how far gradients reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from dragoman.core.errors import DataError
from dragoman.data.batches import Batch
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import split_by_size
from dragoman.data.vocabulary import END, START
from dragoman.models.recurrent import TOKENS_PER_BATCH, LayerStates, RecurrentModel
from dragoman.nn.cells import CELLS, CellState

MIN_STD = 1e-12  # a cell that moves less than this does not move
POSITION = "position"  # what cells can follow besides words: how far a sentence is


# -- cells ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Activations:
    """What one layer's cells hold after each word of some sentences."""

    words: tuple[tuple[str, ...], ...]  # of each sentence, those read: not its end
    values: tuple[NDArray[np.float64], ...]  # of each sentence: (words, H)
    part: str  # of the state: h, or c
    layer: int

    def of_cell(self, cell: int) -> list[NDArray[np.float64]]:
        """One cell over each sentence."""
        return [values[:, cell] for values in self.values]


def activations(model: RecurrentModel, corpus: Corpus, part: str = "h", layer: int | None = None) -> Activations:
    """What the cells of a layer (the last) hold after each word. What the model carries over, it carries."""
    corpus.require_vocab(model.vocab)
    number, place = _layer(model, layer), _part(model, part)
    values: list[NDArray[np.float64]] = [np.zeros((0, model.settings.hidden))] * len(corpus)
    carry = None
    for run in _runs(model, corpus):
        batch = Batch.from_sentences([corpus[sentence] for sentence in run])
        state, held = model.start(batch, carry), []
        with torch.no_grad():
            for words in batch.ids.T:
                state = model.advance(state, words)
                held.append(state.rows[1][number - 1][place])
        carry = model.finish(state)  # of a run of one sentence, where it is more than None
        every = torch.stack(held, dim=1).double().cpu().numpy()  # (rows, longest, H)
        for row, sentence in enumerate(run):
            values[sentence] = every[row, : len(corpus[sentence])]
    return Activations(tuple(map(_words, corpus.sentences_as_text())), tuple(values), part, number)


def _runs(model: RecurrentModel, corpus: Corpus) -> Iterator[NDArray[np.int64]]:
    """Sentences to read side by side: those of like length, or one at a time where each begins as the last ended."""
    if model.carries:
        return (np.array([sentence]) for sentence in range(len(corpus)))
    return split_by_size(np.argsort(corpus.sizes, kind="stable"), corpus.sizes, TOKENS_PER_BATCH)


def _words(text: str) -> tuple[str, ...]:
    """The words of a sentence that has one space between them: other white space is part of a word."""
    return tuple(text.split(" ")) if text else ()


def correlated_cells(activations: Activations, feature: str, limit: int) -> list[tuple[int, float]]:
    """The cells that follow something best: how far the sentence is, or whether a word has been read in it.

    Each with its correlation, the strongest first.
    """
    followed = np.concatenate([np.zeros(0), *(_followed(words, feature) for words in activations.words)])
    if not len(followed) or followed.std() == 0:
        why = "all sentences are as long as one word" if feature == POSITION else "it is never read, or always"
        raise DataError(f"no cell can follow {feature!r} in this text: {why}; give more text, or follow something else")
    cells = range(activations.values[0].shape[1])
    correlations = np.array([_correlation(np.concatenate(activations.of_cell(cell)), followed) for cell in cells])
    best = np.argsort(-np.abs(correlations), kind="stable")[:limit]
    return [(int(cell), float(correlations[cell])) for cell in best]


def _correlation(held: NDArray[np.float64], followed: NDArray[np.float64]) -> float:
    """Pearson's; 0 for a cell that never moves."""
    moves = float(held.std())
    return (
        float((held @ (followed - followed.mean())) / (len(held) * moves * followed.std())) if moves > MIN_STD else 0.0
    )


def _followed(words: Sequence[str], what: str) -> NDArray[np.float64]:
    """What a cell may follow, after each word of a sentence."""
    if what == POSITION:
        return np.arange(len(words), dtype=np.float64)
    return np.maximum.accumulate(np.array([word == what for word in words], np.float64))


def _layer(model: RecurrentModel, layer: int | None) -> int:
    number = model.settings.layers if layer is None else layer
    if not 1 <= number <= model.settings.layers:
        known = f"layers 1 to {model.settings.layers}" if model.settings.layers > 1 else "one layer, 1"
        raise DataError(f"layer {number}: the model has {known}; name one of these")
    return number


def _part(model: RecurrentModel, part: str) -> int:
    parts = CELLS[model.settings.cell].state
    if part not in parts:
        raise DataError(f"part {part!r}: the state of a cell {model.settings.cell} has {' and '.join(parts)}")
    return parts.index(part)


# -- saliency ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Saliency:
    """How much each prediction of a sentence hangs on each word read before it (Li et al. 2016)."""

    read: tuple[str, ...]  # `<s>` (or the `</s>` before) and the words but the last
    predicted: tuple[str, ...]  # the words, and `</s>`
    norms: NDArray[np.float64]  # (predicted, read): |d log P / d vector of the word|; 0 for words not yet read


def saliency(model: RecurrentModel, sentence: str) -> Saliency:
    """The norm of the gradient of each word's log P by the vectors of the words before it."""
    corpus = Corpus.from_sentences([sentence], model.vocab)
    ids = corpus.ids_with_boundaries(starts=0)  # the words and `</s>`
    read = np.concatenate([[END if model.carries else START], ids[:-1]])
    m = model.embed(read[:, None]).detach().requires_grad_(True)  # (steps, 1, L_m)
    with torch.enable_grad():
        h, _ = model.hidden(m, model.initial_states(1))
        log_probs = [model.target_log_probs(h[at], ids[at : at + 1])[0] for at in range(len(ids))]
        rows = [torch.autograd.grad(one, m, retain_graph=True)[0][:, 0].norm(dim=1) for one in log_probs]
    words = (*_words(corpus.sentences_as_text()[0]), model.vocab.tokens[END])
    return Saliency((model.vocab.tokens[read[0]], *words[:-1]), words, torch.stack(rows).double().cpu().numpy())


# -- the vanishing gradient -------------------------------------------------------------------------------------------


def gradient_by_distance(model: RecurrentModel, corpus: Corpus, words: int = 20) -> NDArray[np.float64]:
    """|dl / d state d words earlier| for d = 0, 1, ...: the mean over sentences of the gradient that the loss of the
    word after the first `words` sends back to the states on the way there (tutorial, "The Vanishing Gradient").

    The state is all that a step hands on to the next: h, with c where there is one, of all layers. Sentences that are
    shorter have no say.  # (words,)
    """
    corpus.require_vocab(model.vocab)
    long_enough = np.flatnonzero(np.diff(corpus.offsets) > words)
    if not len(long_enough):
        raise DataError(f"no sentence has more than {words} words; ask for fewer, or give another text")
    ids = np.stack([corpus[number][: words + 1] for number in long_enough.tolist()])  # (rows, words + 1)
    at_once = max(1, TOKENS_PER_BATCH // (words + 1))
    norms = [_gradient_norms(model, ids[first : first + at_once]) for first in range(0, len(ids), at_once)]
    return np.concatenate(norms, axis=1).mean(axis=1)[::-1][:words]


def _gradient_norms(model: RecurrentModel, ids: NDArray[np.int32]) -> NDArray[np.float64]:
    """|dl / d state| after each word read, l being the loss of the last word.  # (rows, steps) -> (steps, rows)"""
    first = np.full((len(ids), 1), END if model.carries else START, ids.dtype)
    read = np.concatenate([first, ids[:, :-1]], axis=1).T  # (steps, rows)
    with torch.enable_grad():
        states, x = _unrolled(model, model.embed(read).detach())
        loss = -model.target_log_probs(x, ids[:, -1]).sum()
        parts = [part for state in states for part in state]
        gradients = torch.autograd.grad(loss, parts, allow_unused=True, materialize_grads=True)
    size = len(states[0])
    by_step = [torch.cat(gradients[at : at + size], dim=1) for at in range(0, len(gradients), size)]
    return torch.stack([gradient.double().norm(dim=1) for gradient in by_step]).cpu().numpy()


def _unrolled(model: RecurrentModel, m: Tensor) -> tuple[list[CellState], Tensor]:
    """What each step hands on, all layers' states side by side, and what comes out of the last step.

    # m: (steps, rows, L_m) -> steps times (rows, H) for each part of the state; (rows, H)
    """
    residual = model.settings.residual
    states: LayerStates = tuple(
        tuple(part.detach().clone().requires_grad_(True) for part in state)
        for state in model.initial_states(m.shape[1])
    )
    found = []
    for x in m:
        _, after = model.step(x, states)
        # Views, so that h and c are two parts of one state: the gradient by c is not to hold what c did to this h.
        states = tuple(tuple(part.view_as(part) for part in state) for state in after)
        found.append(tuple(part for state in states for part in state))
    h = [state[0] for state in states]
    return found, torch.stack([m[-1], *h]).sum(dim=0) if residual else h[-1]


def untrained_copy(model: RecurrentModel, seed: int | None = None) -> RecurrentModel:
    """A model like this one before it learned anything: from the seed that its training began with, or another."""
    if seed is None:
        seed = int(model.record.get("training", {}).get("seed", 1))
    first = model.first_parameters(Generator().manual_seed(seed))
    return RecurrentModel(model.vocab, model.unknown, model.settings, first, model.classes)
