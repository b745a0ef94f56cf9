"""Both directions together: which words of two texts belong to each other, and what each word is translated to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dragoman.align.em import ITERATIONS, KINDS, PRIOR, Direction, Progress, learn
from dragoman.align.lexicon import Lexicon, turned_keys
from dragoman.align.pair_grid import Cells
from dragoman.align.symmetrization import GROWN, symmetrised
from dragoman.core.errors import DataError
from dragoman.data.alignments import Links
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.vocabulary import UNK, Vocab
from dragoman.io.model_card import card
from dragoman.io.storage import (
    ALIGNER,
    ALIGNER_KIND,
    ARRAYS,
    CARD,
    CONFIG,
    LEXICON,
    SOURCE_VOCAB,
    VOCAB,
    map_arrays,
    new_directory,
    write_arrays,
)

FORMAT = 1
SCHEDULES = {"ibm1": ("ibm1",), "ibm2": ("ibm1", "ibm2"), "hmm": ("ibm1", "hmm")}  # what comes before each model
NAMES = ("forward", "backward")
TOLD = 0.01  # entries of the readable lexicon have this probability or more, in one direction at least


@dataclass(frozen=True, eq=False)
class Aligner:
    """Forward: P(E | F), each target word comes from a source word; backward: P(F | E), the other way round.

    >>> from dragoman.data.corpus import Corpus
    >>> german = Corpus.from_sentences(["das haus", "das buch", "ein buch", "haus"])
    >>> english = Corpus.from_sentences(["the house", "the book", "a book", "house"])
    >>> aligner = Aligner.learn(ParallelCorpus(german, english), "ibm1")
    >>> aligner.align(ParallelCorpus(german, english))[2], aligner.forward.lexicon.translations("buch", 1)[0].word
    ([(0, 0), (1, 1)], 'book')
    """

    forward: Direction
    backward: Direction

    def lexicon_for(self, source: Vocab) -> tuple[Lexicon, float]:
        """The lexicon, of whichever direction, that knows most words of a text, and how many: their share, each as
        often as it came."""
        ways = (self.forward.lexicon, self.backward.lexicon)
        found = [(way, _covered(way.source, source)) for way in ways]
        return max(found, key=lambda one: one[1])

    @classmethod
    def learn(
        cls,
        pairs: ParallelCorpus,
        model: str = "hmm",
        iterations: int = ITERATIONS,
        *,
        prior: float = PRIOR,
        report: Callable[[str, Progress], None] = lambda direction, progress: None,
    ) -> Aligner:
        """By EM, from sentence pairs alone."""
        if model not in SCHEDULES:
            raise DataError(f"alignment model {model!r}: there are {', '.join(SCHEDULES)}")
        if iterations < 1:
            raise DataError(f"{iterations} iterations: give one or more, usually {ITERATIONS}")
        if not pairs.source.words or not pairs.target.words:
            raise DataError("no words to align; both texts need some")
        cells = Cells.of(pairs)
        directions = (
            learn(own, SCHEDULES[model], iterations, prior=prior, report=_told_by(report, name))
            for name, own in zip(NAMES, (cells, cells.turned), strict=True)
        )
        return cls(*directions)

    def align(self, pairs: ParallelCorpus, way: str = GROWN) -> Links:
        """The links of each pair of a text, which need not be the one that was learned from."""
        cells = Cells.of(pairs)
        return symmetrised(cells, self.forward.aligned(cells), self.backward.aligned(cells.turned), way)

    # -- on disk -------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, replace: bool = False, data: Mapping[str, Any] | None = None) -> None:
        """Write a directory, whole or not at all. lexicon.tsv and the card are for people; the rest is read back.

        # data: what it learned from, as `text.described` tells it, for the card
        """
        with new_directory(Path(path), replace=replace, contents=ALIGNER) as directory:
            config = {"kind": ALIGNER_KIND, "format": FORMAT, **{name: own.config() for name, own in self._named()}}
            (directory / CONFIG).write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
            (directory / CARD).write_text(card({"data": data or {}, **config}, self._sizes()), encoding="utf-8")
            for name, vocab in ((SOURCE_VOCAB, self.forward.lexicon.source), (VOCAB, self.forward.lexicon.target)):
                (directory / name).write_text(vocab.to_text(), encoding="utf-8", newline="\n")
            arrays = {f"{name}.{part}": getattr(own.lexicon, part) for name, own in self._named() for part in PARTS}
            write_arrays(directory / ARRAYS, arrays)
            with (directory / LEXICON).open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in self.lexicon_lines())

    def _sizes(self) -> dict[str, int]:
        source, target = self.forward.lexicon.source, self.forward.lexicon.target
        numbers = sum(int(getattr(own.lexicon, part).size) for _, own in self._named() for part in PARTS)
        return {"source words": source.known, "words": target.known, "numbers": numbers}

    @classmethod
    def load(cls, path: str | Path) -> Aligner:
        directory = Path(path)
        config = _read_config(directory)
        try:
            source, target = Vocab.read(directory / SOURCE_VOCAB), Vocab.read(directory / VOCAB)
            arrays = map_arrays(directory / ARRAYS)
            sides = ((source, target), (target, source))
            return cls(*(_direction(name, config[name], arrays, *own) for name, own in zip(NAMES, sides, strict=True)))
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise DataError(f"{directory}: broken aligner ({problem}); run dragoman align -o again") from error

    def lexicon_lines(self, least: float = TOLD) -> Iterator[str]:
        """source TAB target TAB P(target | source) TAB P(source | target), by source word, the likeliest first."""
        forward, backward = self.forward.lexicon, self.backward.lexicon
        told = np.union1d(forward.keys_of(least), turned_keys(backward.keys_of(least), backward))
        source, target = np.divmod(told, len(forward.target))  # (entries,) each
        one, other = forward.probs_of(told), backward.probs_of(turned_keys(told, forward))
        order = np.lexsort((target, -one, source))
        words = (
            np.array(forward.source.words, object)[source[order]],
            np.array(forward.target.words, object)[target[order]],
        )
        for row in zip(*words, one[order].tolist(), other[order].tolist(), strict=True):
            yield "{}\t{}\t{:.6f}\t{:.6f}".format(*row)

    def _named(self) -> list[tuple[str, Direction]]:
        return list(zip(NAMES, (self.forward, self.backward), strict=True))


PARTS = ("keys", "probs")


def _told_by(report: Callable[[str, Progress], None], name: str) -> Callable[[Progress], None]:
    return lambda progress: report(name, progress)


def _direction(name: str, config: Any, arrays: Any, source: Vocab, target: Vocab) -> Direction:
    settings = dict(config)
    model = settings.pop("model")
    lexicon = Lexicon(source, target, *(np.asarray(arrays[f"{name}.{part}"]) for part in PARTS))
    if len(lexicon.keys) != len(lexicon.probs) or (np.diff(lexicon.keys) <= 0).any():
        raise ValueError(f"{name}: entries are not in order")
    if len(lexicon.keys) and not 0 <= lexicon.keys[0] <= lexicon.keys[-1] < len(source) * len(target):
        raise ValueError(f"{name}: entries of words that there are not")
    return Direction(model, lexicon, KINDS[model](**settings))


def _read_config(directory: Path) -> dict[str, Any]:
    try:
        config = yaml.safe_load((directory / CONFIG).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DataError(
            f"{directory}: there is no aligner; name the directory of one, made with dragoman align -o DIR"
        ) from error
    if not isinstance(config, dict) or config.get("kind") != ALIGNER_KIND:
        raise DataError(f"{directory}: is no aligner; make one with dragoman align -o DIR")
    if config.get("format") != FORMAT:
        raise DataError(f"{directory}: written in another format; run dragoman align -o again")
    return config


def _covered(known: Vocab, text: Vocab) -> float:
    """The share of a text's words that are known."""
    times = text.counts[UNK + 1 :]
    there = np.array([known.id(word) != UNK for word in text.words[UNK + 1 :]], bool)
    return float(times[there].sum() / times.sum()) if times.any() else 1.0
