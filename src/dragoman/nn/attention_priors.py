"""Priors on attention (tutorial, section "Intuitive Priors on Attention"; Cohn et al. 2016): what is believed of
alignments before looking at the words. Each is added to the scores a_t before their softmax, so they go together.

- `Position`: near the diagonal, -strength |j/|F| - t/|E||, |E| being what |F| is usually translated to.
- `Markov`: at the words after those that the last word came from, strength log(sum_k alpha_{t-1,k} jump(j - k)).
- `Fertility`: no longer where a word has had its share, -strength coverage_j / phi_j, phi_j = 3 sigmoid(u . h_j + b)
  being how many words it is expected to become.
- `Coverage`: whatever can be learned from it (Tu et al. 2016), v . tanh(U h_j + u coverage_j).
- `Local`: around a place that the decoder predicts (Luong et al. 2015), -(j - p_t)^2 / (2 sigma^2),
  p_t = |F| sigmoid(v . tanh(W h_t)).

Coverage is how much a source word was looked at so far: sum_{t' < t} alpha_{t'}. Strengths are learned, beginning with
those of the settings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Generator, Tensor
from torch.nn.functional import conv1d

from dragoman.nn.init import glorot, uniform

REACH = 3  # words that a jump is told apart by, forwards and backwards
LEAST = 1e-3  # of the probability of a jump, so that none is impossible
MOST = 3.0  # words that a word may become, as far as fertility goes

Parameters = Mapping[str, Tensor]


class History(NamedTuple):
    """What the decoder has looked at so far, one row a hypothesis."""

    t: Tensor  # (rows,) words said
    coverage: Tensor  # (rows, longest) sum of all alpha before


class Seen(NamedTuple):
    """All that a prior may go by."""

    h: Tensor  # (rows, H) the decoder's state
    alpha: Tensor  # (rows, longest) of the word before; 0 before the first
    history: History
    sizes: Tensor  # (rows,) places of the source, `</s>` among them
    remembered: Tensor | None  # (rows, longest, ...) what the prior remembers of the source


class Prior(Protocol):
    """One of them."""

    def first(self, query: int, vector: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        """Parameters for states and source vectors of these lengths."""
        ...

    def remember(self, parameters: Parameters, vectors: Tensor) -> Tensor | None:
        """What it needs of the source, once for each sentence.  # (sentences, longest, D) -> (..., longest, ...)"""
        ...

    def bias(self, parameters: Parameters, seen: Seen) -> Tensor:
        """What is added to a_t.  # (rows, longest)"""
        ...


class _Forgetful:
    """Those that need nothing of the source."""

    def remember(self, parameters: Parameters, vectors: Tensor) -> Tensor | None:
        return None


@dataclass(frozen=True)
class Position(_Forgetful):
    strength: float

    def first(self, query: int, vector: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        return {"log_strength": _scalar(math.log(self.strength), dtype), "log_ratio": _scalar(0.0, dtype)}

    def bias(self, parameters: Parameters, seen: Seen) -> Tensor:
        ratio = parameters["log_ratio"].exp()  # |E| / |F|
        aimed = (seen.history.t + 0.5) / (ratio * seen.sizes)  # (rows,)
        there = (_places(seen) + 0.5) / seen.sizes[:, None]  # (rows, longest)
        return -parameters["log_strength"].exp() * (there - aimed[:, None]).abs()


@dataclass(frozen=True)
class Markov(_Forgetful):
    strength: float

    def first(self, query: int, vector: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        """To begin with, a step to the next word is likeliest."""
        jumps = -(torch.arange(-REACH, REACH + 1, dtype=dtype) - 1).abs()
        return {"log_strength": _scalar(math.log(self.strength), dtype), "jumps": jumps}

    def bias(self, parameters: Parameters, seen: Seen) -> Tensor:
        """Before the first word, as if the word before the source's first had been looked at."""
        jump = parameters["jumps"].softmax(dim=0)  # (2 REACH + 1,) from -REACH to REACH
        begins = (seen.history.t == 0).to(seen.alpha)[:, None]
        before = torch.cat([begins, seen.alpha], dim=1)[:, None]  # (rows, 1, 1 + longest)
        arrived = conv1d(before, jump.flip(0)[None, None], padding=REACH)[:, 0, 1:]  # (rows, longest)
        return parameters["log_strength"].exp() * (arrived + LEAST).log()


@dataclass(frozen=True)
class Fertility:
    strength: float

    def first(self, query: int, vector: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        """To begin with, a word is expected to become about one."""
        about_one = _scalar(math.log(1 / (MOST - 1)), dtype)
        u = uniform((vector,), 0.1 / math.sqrt(vector), chance, dtype)
        return {"log_strength": _scalar(math.log(self.strength), dtype), "u": u, "b": about_one}

    def remember(self, parameters: Parameters, vectors: Tensor) -> Tensor | None:
        return MOST * (vectors @ parameters["u"] + parameters["b"]).sigmoid()  # phi (sentences, longest)

    def bias(self, parameters: Parameters, seen: Seen) -> Tensor:
        assert seen.remembered is not None
        return -parameters["log_strength"].exp() * seen.history.coverage / seen.remembered


@dataclass(frozen=True)
class Coverage:
    hidden: int

    def first(self, query: int, vector: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        return {
            "U": glorot(self.hidden, vector, chance, dtype),
            "u": uniform((self.hidden,), 1.0, chance, dtype),
            "v": uniform((self.hidden,), 1 / math.sqrt(self.hidden), chance, dtype),
        }

    def remember(self, parameters: Parameters, vectors: Tensor) -> Tensor | None:
        return vectors @ parameters["U"].t()  # (sentences, longest, hidden)

    def bias(self, parameters: Parameters, seen: Seen) -> Tensor:
        assert seen.remembered is not None
        return torch.tanh(seen.remembered + seen.history.coverage[..., None] * parameters["u"]) @ parameters["v"]


@dataclass(frozen=True)
class Local(_Forgetful):
    width: float

    def first(self, query: int, vector: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        return {"W": glorot(query, query, chance, dtype), "v": uniform((query,), 1 / math.sqrt(query), chance, dtype)}

    def bias(self, parameters: Parameters, seen: Seen) -> Tensor:
        at = seen.sizes * ((seen.h @ parameters["W"].t()).tanh() @ parameters["v"]).sigmoid()  # (rows,) p_t
        off = _places(seen) + 0.5 - at[:, None]  # (rows, longest)
        return -2 * (off / self.width) ** 2  # sigma is half of the width


def _scalar(value: float, dtype: torch.dtype) -> Tensor:
    return torch.tensor(value, dtype=dtype)


def _places(seen: Seen) -> Tensor:
    """0, 1, 2, ...  # (longest,)"""
    return torch.arange(seen.alpha.shape[1], dtype=seen.alpha.dtype, device=seen.alpha.device)
