"""Where words come from, apart from what they are: P(a_j | position), the part in which alignment models differ.

- `Anywhere`: all words of the source and the empty word alike (IBM Model 1, Brown et al. 1993).
- `Diagonal`: the nearer to the diagonal, the likelier: exp(-tension |i/|F| - j/|E||) (Model 2 as Dyer et al. 2013 have
  it).
- `Jumps`: from the word that the target word before came from, by how far it is (the hidden Markov model of Vogel et
  al. 1996; the empty word remembers where it was left, as in Och and Ney 2003).

Each fills the cells of a text with posteriors, given the lexicon's P(e | f) for each cell, and notes what is needed to
be fitted to them: the two steps of EM.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.align.pair_grid import PairGrid
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map

Array = NDArray[np.float64]
MAX_JUMP = 40  # jumps farther than this are all alike
NULL_SHARE = 0.08  # of target words that come from the empty word
MAX_TENSION = 40.0


@dataclass(frozen=True, eq=False)
class Expectation:
    """What the model thinks of a text, given its parameters."""

    posteriors: Array  # (cells,) each row of a pair sums to 1
    log_likelihood: float  # of the target, given the source
    statistics: Any  # what the position model is fitted by


class PositionModel(Protocol):
    """One of them."""

    def expect(self, cells: PairGrid, entry: NDArray[np.int32], t: Array) -> Expectation:
        """The posteriors of a text.  # entry: (cells,) the lexicon's entry of each cell, t: (entries,) its P(e | f)"""
        ...

    def fit(self, cells: PairGrid, noted: Any) -> Self:
        """With the parameters by which the text is most probable."""
        ...

    def config(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class UniformPositions:
    """Model 1: P(a_j = i) = 1 / (|F| + 1)."""

    def expect(self, cells: PairGrid, entry: NDArray[np.int32], t: Array) -> Expectation:
        return _mixed(cells, entry, t, 0.0, -1.0)

    def fit(self, cells: PairGrid, noted: Any) -> UniformPositions:
        return self

    def config(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True)
class DiagonalPositions:
    """P(a_j = i) is proportional to exp(-tension |i/|F| - j/|E||); the empty word has a share of its own."""

    tension: float = 4.0
    null: float = NULL_SHARE

    def __post_init__(self) -> None:
        if not (0 <= self.tension <= MAX_TENSION and 0 < self.null < 1):
            raise ValueError(f"a tension of {self.tension} and a share of {self.null} for the empty word")

    def expect(self, cells: PairGrid, entry: NDArray[np.int32], t: Array) -> Expectation:
        return _mixed(cells, entry, t, self.tension, self.null)

    def fit(self, cells: PairGrid, noted: Any) -> DiagonalPositions:
        """The tension at which distances are, on average, as far as they were expected: by Newton's method."""
        aligned, distance = noted
        if not aligned:
            return self
        sizes = np.stack([np.diff(cells.source.offsets), np.diff(cells.target.offsets)], axis=1)  # (pairs, 2)
        shapes, times = np.unique(sizes[(sizes > 0).all(axis=1)], axis=0, return_counts=True)
        tension = self.tension
        for _ in range(8):
            total, mean, variance = _distances(shapes, times.astype(np.float64), tension)
            # so many words come from some word, as a share of all
            step = (mean / total - distance / aligned) / max(variance / total, 1e-9)
            tension = float(np.clip(tension + np.clip(step, -2.0, 2.0), 0.0, MAX_TENSION))
        return replace(self, tension=tension)

    def config(self) -> dict[str, Any]:
        return {"tension": self.tension, "null": self.null}


@dataclass(frozen=True, eq=False)
class JumpPositions:
    """P(a_j = i | a_{j-1} = k) is proportional to jumps[i - k]; with the share `null` no word is chosen at all."""

    jumps: Array  # (2 * REACH + 1,) from -REACH to REACH
    null: float = NULL_SHARE

    def __post_init__(self) -> None:
        """What is read from a file goes to kernels, which look up jumps without asking how many there are."""
        fine = self.jumps.shape == (2 * MAX_JUMP + 1,) and bool(
            np.isfinite(self.jumps).all() and (self.jumps > 0).all()
        )
        if not fine or not 0 < self.null < 1:
            raise ValueError(
                f"{2 * MAX_JUMP + 1} jumps above 0, and a share of the empty word between 0 and 1, are wanted"
            )

    @classmethod
    def initial(cls, null: float = NULL_SHARE) -> JumpPositions:
        """Steps to the next word likeliest, before anything was seen."""
        away = np.abs(np.arange(-MAX_JUMP, MAX_JUMP + 1) - 1)
        return cls(1.0 / (1.0 + away) ** 1.5, null)

    def expect(self, cells: PairGrid, entry: NDArray[np.int32], t: Array) -> Expectation:
        found = np.empty(cells.offsets[-1])

        def work(part: tuple[int, int]) -> tuple[float, Array]:
            counts = np.zeros_like(self.jumps)
            return _jump(*part, *cells.offset_arrays, entry, t, self.jumps, self.null, found, counts), counts

        done = parallel_map(work, cells.chunks)
        return Expectation(found, sum(one for one, _ in done), sum((counts for _, counts in done), np.zeros(1)))

    def fit(self, cells: PairGrid, noted: Any) -> JumpPositions:
        """Relative frequencies, as is usual, though what a jump is normalised by depends on the sentence's length."""
        return replace(self, jumps=(noted + 1e-3) / (noted + 1e-3).sum())

    def config(self) -> dict[str, Any]:
        return {"jumps": self.jumps.tolist(), "null": self.null}


def _mixed(cells: PairGrid, entry: NDArray[np.int32], t: Array, tension: float, null: float) -> Expectation:
    """Models in which each target word comes from where it comes from by itself."""
    found = np.empty(cells.offsets[-1])
    done = parallel_map(lambda part: _mix(*part, *cells.offset_arrays, entry, t, tension, null, found), cells.chunks)
    likelihood, aligned, distance = (sum(column) for column in zip(*done, strict=True)) if done else (0.0, 0.0, 0.0)
    return Expectation(found, float(likelihood), (aligned, distance))


# -- kernels -----------------------------------------------------------------------------------------------------------


@kernel
def _mix(first, last, source_at, target_at, cell_at, entry, t, tension, null, found):  # type: ignore[no-untyped-def]
    """Posteriors, row by row; log-likelihood, the words that come from some word, and how far off the diagonal."""
    likelihood = aligned = distance = 0.0
    for pair in range(first, last):
        n_f = source_at[pair + 1] - source_at[pair]
        n_e = target_at[pair + 1] - target_at[pair]
        if n_f == 0:
            for j in range(n_e):
                found[cell_at[pair] + j] = 1.0
                likelihood += np.log(t[entry[cell_at[pair] + j]])
            continue
        none = 1.0 / (n_f + 1) if null < 0 else null
        for j in range(n_e):
            row = cell_at[pair] + j * (n_f + 1)
            norm = 0.0
            for i in range(n_f):
                weight = np.exp(-tension * abs((i + 0.5) / n_f - (j + 0.5) / n_e))
                found[row + 1 + i] = weight
                norm += weight
            total = none * t[entry[row]]
            found[row] = total
            for i in range(n_f):
                p = (1.0 - none) * found[row + 1 + i] / norm * t[entry[row + 1 + i]]
                found[row + 1 + i] = p
                total += p
            likelihood += np.log(total)
            found[row] /= total
            for i in range(n_f):
                found[row + 1 + i] /= total
                aligned += found[row + 1 + i]
                distance += found[row + 1 + i] * abs((i + 0.5) / n_f - (j + 0.5) / n_e)
    return likelihood, aligned, distance


@kernel
def _distances(shapes, times, tension):  # type: ignore[no-untyped-def]
    """Of sentences of these shapes so many times: target words, and the sums of mean and variance of the distance."""
    total = mean = variance = 0.0
    for shape in range(len(shapes)):
        n_f, n_e = shapes[shape]
        for j in range(n_e):
            norm = one = two = 0.0
            for i in range(n_f):
                d = abs((i + 0.5) / n_f - (j + 0.5) / n_e)
                weight = np.exp(-tension * d)
                norm += weight
                one += weight * d
                two += weight * d * d
            total += times[shape]
            mean += times[shape] * one / norm
            variance += times[shape] * (two / norm - (one / norm) ** 2)
    return total, mean, variance


@kernel
def _moves(n_f, jumps, null, moves):  # type: ignore[no-untyped-def]
    """P(a_j = i | a_{j-1} = k), row k; the last row is where sentences begin, as if before the first word."""
    for k in range(n_f + 1):
        before = k if k < n_f else -1
        norm = 0.0
        for i in range(n_f):
            norm += jumps[min(max(i - before, -MAX_JUMP), MAX_JUMP) + MAX_JUMP]
        for i in range(n_f):
            moves[k, i] = (1.0 - null) * jumps[min(max(i - before, -MAX_JUMP), MAX_JUMP) + MAX_JUMP] / norm


@kernel
def _forward(at, n_f, n_e, entry, t, moves, null, word, rest, scale):  # type: ignore[no-untyped-def]
    """P(a_j, e_1 ... e_j), scaled to sum to 1 for each j; the log-likelihood of the sentence."""
    likelihood = 0.0
    for j in range(n_e):
        row = at + j * (n_f + 1)
        total = 0.0
        for i in range(n_f):
            if j == 0:
                arrived = moves[n_f, i]
                stayed = null / n_f
            else:
                arrived = 0.0
                for k in range(n_f):
                    arrived += (word[j - 1, k] + rest[j - 1, k]) * moves[k, i]
                stayed = null * (word[j - 1, i] + rest[j - 1, i])
            word[j, i] = arrived * t[entry[row + 1 + i]]
            rest[j, i] = stayed * t[entry[row]]
            total += word[j, i] + rest[j, i]
        scale[j] = total
        likelihood += np.log(total)
        for i in range(n_f):
            word[j, i] /= total
            rest[j, i] /= total
    return likelihood


@kernel
def _backward(at, n_f, n_e, entry, t, moves, null, word, rest, scale, back, found, counts):  # type: ignore[no-untyped-def]
    """P(e_{j+1} ... | a_j), scaled alike; with it the posteriors, and what is expected of jumps."""
    for i in range(n_f):
        back[n_e - 1, i] = 1.0
    for j in range(n_e - 1, -1, -1):
        row = at + j * (n_f + 1)
        none = 0.0
        for i in range(n_f):
            found[row + 1 + i] = word[j, i] * back[j, i]
            none += rest[j, i] * back[j, i]
            if j == 0:
                counts[min(i + 1, MAX_JUMP) + MAX_JUMP] += found[row + 1 + i]
        found[row] = none
        if j == 0:
            break
        for k in range(n_f):
            onward = null * t[entry[row]] * back[j, k]
            for i in range(n_f):
                step = moves[k, i] * t[entry[row + 1 + i]] * back[j, i]
                onward += step
                seen = (word[j - 1, k] + rest[j - 1, k]) * step / scale[j]
                counts[min(max(i - k, -MAX_JUMP), MAX_JUMP) + MAX_JUMP] += seen
            back[j - 1, k] = onward / scale[j]


@kernel
def _jump(first, last, source_at, target_at, cell_at, entry, t, jumps, null, found, counts):  # type: ignore[no-untyped-def]
    """Forward and backward over each target sentence; what is expected of jumps is added to `counts`."""
    most_i = most_j = 1
    for pair in range(first, last):
        most_i = max(most_i, source_at[pair + 1] - source_at[pair])
        most_j = max(most_j, target_at[pair + 1] - target_at[pair])
    moves = np.empty((most_i + 1, most_i))
    word = np.empty((most_j, most_i))  # forward: at word i
    rest = np.empty((most_j, most_i))  # forward: at the empty word, i the last word before
    back = np.empty((most_j, most_i))
    scale = np.empty(most_j)
    likelihood = 0.0
    for pair in range(first, last):
        n_f = source_at[pair + 1] - source_at[pair]
        n_e = target_at[pair + 1] - target_at[pair]
        at = cell_at[pair]
        if n_f == 0:
            for j in range(n_e):
                found[at + j] = 1.0
                likelihood += np.log(t[entry[at + j]])
            continue
        if n_e == 0:
            continue
        _moves(n_f, jumps, null, moves)
        likelihood += _forward(at, n_f, n_e, entry, t, moves, null, word, rest, scale)
        _backward(at, n_f, n_e, entry, t, moves, null, word, rest, scale, back, found, counts)
    return likelihood
