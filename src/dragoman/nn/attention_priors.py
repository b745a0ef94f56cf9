"""Priors on attention (tutorial, section "Intuitive Priors on Attention"; Cohn et al. 2016).

Each prior is a term added to the scores a_t before their softmax, so priors can be combined.

- `PositionPrior`: near the diagonal, -strength |j/|F| - t/|E||, where |E| is the expected length of the translation.
- `MarkovPrior`: after the words attended to last, strength log(sum_k alpha_{t-1,k} jump(j - k)).
- `FertilityPrior`: less where a word has been translated, -strength coverage_j / phi_j, where
  phi_j = 3 sigmoid(u . h_j + b) is the expected number of its translations.
- `CoveragePrior`: a learned function of coverage (Tu et al. 2016), v . tanh(U h_j + u coverage_j).
- `LocalPrior`: around a position predicted by the decoder (Luong et al. 2015), -(j - p_t)^2 / (2 sigma^2),
  p_t = |F| sigmoid(v . tanh(W h_t)).

The coverage of a source word is the attention it has had so far, sum_{t' < t} alpha_{t'}. Strengths are learned,
starting from those of the settings.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import conv1d

from dragoman.nn.activations import tanh
from dragoman.nn.layers import empty_linear, glorot_, uniform_

MAX_JUMP = 3  # longer jumps, in both directions, have the probability MIN_JUMP_PROB
MIN_JUMP_PROB = 1e-3  # so that no jump is impossible
MAX_LOG = 30.0  # of strengths and ratios
MIN_FERTILITY = 1e-6  # so that there is no division by 0
MAX_FERTILITY = 3.0  # target words per source word


class AttentionHistory(NamedTuple):
    """What a hypothesis has attended to so far."""

    t: Tensor  # (rows,) number of target words
    coverage: Tensor  # (rows, longest) sum of all alpha before


class PriorInput(NamedTuple):
    """All that a prior may depend on."""

    h: Tensor  # (rows, H) the decoder's state
    alpha: Tensor  # (rows, longest) attention of the word before; 0 before the first
    history: AttentionHistory
    sizes: Tensor  # (rows,) positions of the source, including `</s>`
    features: Tensor | None  # (rows, longest, ...) the prior's features of the source

    def positions(self) -> Tensor:
        """0, 1, 2, ...  # (longest,)"""
        return torch.arange(self.alpha.shape[1], dtype=self.alpha.dtype, device=self.alpha.device)


class AttentionPrior(nn.Module):
    """A term added to attention scores, from the decoder's state and the source vectors."""

    def __init__(self, value: float, query_size: int, vector_size: int):
        super().__init__()
        self.value = value  # initial strength, or size, from the settings

    @abstractmethod
    def reset_parameters(self, generator: Generator) -> None:
        """Draw initial parameters."""

    def check_strength(self) -> None:
        """Raise ValueError if a logarithm among the parameters is so large that attention would not be a number."""
        for name, parameter in self.named_parameters():
            if name.startswith("log_") and not abs(float(parameter.detach())) <= MAX_LOG:
                raise ValueError(f"an attention prior with a {name} of {float(parameter.detach()):g}")

    def features(self, vectors: Tensor) -> Tensor | None:
        """Return the prior's features of source words, or None.  # (sentences, longest, D) -> (..., longest, ...)"""
        return None

    @abstractmethod
    def forward(self, given: PriorInput) -> Tensor:
        """Return the term added to a_t.  # (rows, longest)"""


def _scalar() -> nn.Parameter:
    return nn.Parameter(torch.zeros(()))


class PositionPrior(AttentionPrior):
    """Attention near the diagonal."""

    def __init__(self, value: float, query_size: int, vector_size: int):
        super().__init__(value, query_size, vector_size)
        self.log_strength = _scalar()
        self.log_ratio = _scalar()  # log of |E| / |F|

    def reset_parameters(self, generator: Generator) -> None:
        nn.init.constant_(self.log_strength, math.log(self.value))
        nn.init.zeros_(self.log_ratio)

    def forward(self, given: PriorInput) -> Tensor:
        diagonal = (given.history.t + 0.5) / (self.log_ratio.exp() * given.sizes)  # (rows,)
        relative_positions = (given.positions() + 0.5) / given.sizes[:, None]  # (rows, longest)
        return -self.log_strength.exp() * (relative_positions - diagonal[:, None]).abs()


class MarkovPrior(AttentionPrior):
    """Attention to the words after those attended to last."""

    def __init__(self, value: float, query_size: int, vector_size: int):
        super().__init__(value, query_size, vector_size)
        self.log_strength = _scalar()
        self.jumps = nn.Parameter(torch.zeros(2 * MAX_JUMP + 1))  # from -MAX_JUMP to MAX_JUMP

    def reset_parameters(self, generator: Generator) -> None:
        """At first, a step to the next word is most probable."""
        nn.init.constant_(self.log_strength, math.log(self.value))
        with torch.no_grad():
            self.jumps.copy_(-(torch.arange(-MAX_JUMP, MAX_JUMP + 1) - 1).abs())

    def forward(self, given: PriorInput) -> Tensor:
        """Before the first word, attention is taken to be at the position before the first source word."""
        first = (given.history.t == 0).to(given.alpha)[:, None]
        previous = torch.cat([first, given.alpha], dim=1)[:, None]  # (rows, 1, 1 + longest)
        kernel = self.jumps.softmax(dim=0).flip(0)[None, None]
        expected = conv1d(previous, kernel, padding=MAX_JUMP)[:, 0, 1:]  # (rows, longest)
        return self.log_strength.exp() * (expected + MIN_JUMP_PROB).log()


class FertilityPrior(AttentionPrior):
    """Less attention to words that have had their share."""

    def __init__(self, value: float, query_size: int, vector_size: int):
        super().__init__(value, query_size, vector_size)
        self.log_strength = _scalar()
        self.u = nn.Parameter(torch.zeros(vector_size))
        self.b = _scalar()

    def reset_parameters(self, generator: Generator) -> None:
        """At first, every word is expected to have about one translation."""
        nn.init.constant_(self.log_strength, math.log(self.value))
        uniform_(self.u, 0.1 / math.sqrt(len(self.u)), generator)
        nn.init.constant_(self.b, math.log(1 / (MAX_FERTILITY - 1)))

    def features(self, vectors: Tensor) -> Tensor | None:
        """phi.  # (sentences, longest)"""
        return (MAX_FERTILITY * (vectors @ self.u + self.b).sigmoid()).clamp(min=MIN_FERTILITY)

    def forward(self, given: PriorInput) -> Tensor:
        assert given.features is not None
        return -self.log_strength.exp() * given.history.coverage / given.features


class CoveragePrior(AttentionPrior):
    """A learned function of coverage. Its value is the number of hidden units."""

    def __init__(self, value: float, query_size: int, vector_size: int):
        super().__init__(value, query_size, vector_size)
        hidden_size = int(value)
        self.vector_input = empty_linear(vector_size, hidden_size, bias=False)  # U
        self.u = nn.Parameter(torch.zeros(hidden_size))
        self.v = nn.Parameter(torch.zeros(hidden_size))

    def reset_parameters(self, generator: Generator) -> None:
        glorot_(self.vector_input.weight, generator)
        uniform_(self.u, 1.0, generator)
        uniform_(self.v, 1 / math.sqrt(len(self.v)), generator)

    def features(self, vectors: Tensor) -> Tensor | None:
        return self.vector_input(vectors)  # (sentences, longest, hidden)

    def forward(self, given: PriorInput) -> Tensor:
        assert given.features is not None
        return tanh(given.features + given.history.coverage[..., None] * self.u) @ self.v


class LocalPrior(AttentionPrior):
    """Attention around a position that the decoder predicts. Its value is the width of the window in words."""

    def __init__(self, value: float, query_size: int, vector_size: int):
        super().__init__(value, query_size, vector_size)
        self.state_input = empty_linear(query_size, query_size, bias=False)  # W
        self.v = nn.Parameter(torch.zeros(query_size))

    def reset_parameters(self, generator: Generator) -> None:
        glorot_(self.state_input.weight, generator)
        uniform_(self.v, 1 / math.sqrt(len(self.v)), generator)

    def forward(self, given: PriorInput) -> Tensor:
        p = given.sizes * (self.state_input(given.h).tanh() @ self.v).sigmoid()  # (rows,)
        distance = given.positions() + 0.5 - p[:, None]  # (rows, longest)
        return -2 * (distance / self.value) ** 2  # sigma is half of the width


PRIORS: dict[str, type[AttentionPrior]] = {
    "position": PositionPrior,
    "markov": MarkovPrior,
    "fertility": FertilityPrior,
    "coverage": CoveragePrior,
    "local": LocalPrior,
}
