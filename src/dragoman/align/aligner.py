"""Both directions together: which words of two texts belong to each other, and what each word is translated to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dragoman.align.em import (
    DIRICHLET_PRIOR,
    ITERATIONS,
    POSITION_MODELS,
    DirectionalModel,
    EMProgress,
    train_directional_model,
)
from dragoman.align.lexicon import Lexicon, reversed_keys
from dragoman.align.pair_grid import PairGrid
from dragoman.align.symmetrization import GROW_DIAG_FINAL_AND, symmetrize
from dragoman.core.errors import DataError
from dragoman.data.alignments import WordAlignments
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.vocabulary import UNK, Vocab
from dragoman.io.model_card import render_card
from dragoman.io.storage import (
    ALIGNER_DIRECTORY,
    ALIGNER_KIND,
    ARRAYS_FILE,
    CARD_FILE,
    CONFIG_FILE,
    LEXICON_FILE,
    SOURCE_VOCAB_FILE,
    VOCAB_FILE,
    atomic_directory,
    map_arrays,
    write_arrays,
)

FORMAT = 1
SCHEDULES = {"ibm1": ("ibm1",), "ibm2": ("ibm1", "ibm2"), "hmm": ("ibm1", "hmm")}  # what comes before each model
DIRECTIONS = ("forward", "backward")
MIN_LEXICON_PROB = 0.01  # entries of the readable lexicon have this probability or more, in one direction at least


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

    forward: DirectionalModel
    backward: DirectionalModel

    def best_lexicon_for(self, source: Vocab) -> tuple[Lexicon, float]:
        """The lexicon, of whichever direction, that knows most words of a text, and how many: their share, each as
        often as it came."""
        ways = (self.forward.lexicon, self.backward.lexicon)
        found = [(way, _coverage(way.source, source)) for way in ways]
        return max(found, key=lambda one: one[1])

    @classmethod
    def train(
        cls,
        pairs: ParallelCorpus,
        model: str = "hmm",
        iterations: int = ITERATIONS,
        *,
        prior: float = DIRICHLET_PRIOR,
        report: Callable[[str, EMProgress], None] = lambda direction, progress: None,
    ) -> Aligner:
        """By EM, from sentence pairs alone."""
        if model not in SCHEDULES:
            raise DataError(f"alignment model {model!r}: there are {', '.join(SCHEDULES)}")
        if iterations < 1:
            raise DataError(f"{iterations} iterations: give one or more, usually {ITERATIONS}")
        if not pairs.source.num_words or not pairs.target.num_words:
            raise DataError("no words to align; both texts need some")
        cells = PairGrid.from_pairs(pairs)
        directions = (
            train_directional_model(
                own, SCHEDULES[model], iterations, prior=prior, report=_report_direction(report, name)
            )
            for name, own in zip(DIRECTIONS, (cells, cells.reversed), strict=True)
        )
        return cls(*directions)

    def align(self, pairs: ParallelCorpus, symmetrization: str = GROW_DIAG_FINAL_AND) -> WordAlignments:
        """The links of each pair of a text, which need not be the one that was learned from."""
        cells = PairGrid.from_pairs(pairs)
        return symmetrize(cells, self.forward.align(cells), self.backward.align(cells.reversed), symmetrization)

    # -- on disk -------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, replace: bool = False, data: Mapping[str, Any] | None = None) -> None:
        """Write a directory, whole or not at all. lexicon.tsv and the card are for people; the rest is read back.

        # data: what it learned from, as `text.described` tells it, for the card
        """
        with atomic_directory(Path(path), replace=replace, kind=ALIGNER_DIRECTORY) as directory:
            config = {
                "kind": ALIGNER_KIND,
                "format": FORMAT,
                **{name: own.config() for name, own in self._directions()},
            }
            (directory / CONFIG_FILE).write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
            (directory / CARD_FILE).write_text(
                render_card({"data": data or {}, **config}, self._sizes()), encoding="utf-8"
            )
            for name, vocab in (
                (SOURCE_VOCAB_FILE, self.forward.lexicon.source),
                (VOCAB_FILE, self.forward.lexicon.target),
            ):
                (directory / name).write_text(vocab.to_text(), encoding="utf-8", newline="\n")
            arrays = {
                f"{name}.{part}": getattr(own.lexicon, part)
                for name, own in self._directions()
                for part in LEXICON_ARRAYS
            }
            write_arrays(directory / ARRAYS_FILE, arrays)
            with (directory / LEXICON_FILE).open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in self.lexicon_lines())

    def _sizes(self) -> dict[str, int]:
        source, target = self.forward.lexicon.source, self.forward.lexicon.target
        numbers = sum(int(getattr(own.lexicon, part).size) for _, own in self._directions() for part in LEXICON_ARRAYS)
        return {"source words": source.num_known, "words": target.num_known, "parameters": numbers}

    @classmethod
    def load(cls, path: str | Path) -> Aligner:
        directory = Path(path)
        config = _read_config(directory)
        try:
            source, target = Vocab.read(directory / SOURCE_VOCAB_FILE), Vocab.read(directory / VOCAB_FILE)
            arrays = map_arrays(directory / ARRAYS_FILE)
            sides = ((source, target), (target, source))
            return cls(
                *(_direction(name, config[name], arrays, *own) for name, own in zip(DIRECTIONS, sides, strict=True))
            )
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise DataError(f"{directory}: broken aligner ({problem}); run dragoman align -o again") from error

    def lexicon_lines(self, min_prob: float = MIN_LEXICON_PROB) -> Iterator[str]:
        """source TAB target TAB P(target | source) TAB P(source | target), by source word, the likeliest first."""
        forward, backward = self.forward.lexicon, self.backward.lexicon
        told = np.union1d(forward.keys_above(min_prob), reversed_keys(backward.keys_above(min_prob), backward))
        source, target = np.divmod(told, len(forward.target))  # (entries,) each
        one, other = forward.probs_for(told), backward.probs_for(reversed_keys(told, forward))
        order = np.lexsort((target, -one, source))
        words = (
            np.array(forward.source.tokens, object)[source[order]],
            np.array(forward.target.tokens, object)[target[order]],
        )
        for row in zip(*words, one[order].tolist(), other[order].tolist(), strict=True):
            yield "{}\t{}\t{:.6f}\t{:.6f}".format(*row)

    def _directions(self) -> list[tuple[str, DirectionalModel]]:
        return list(zip(DIRECTIONS, (self.forward, self.backward), strict=True))


LEXICON_ARRAYS = ("keys", "probs")


def _report_direction(report: Callable[[str, EMProgress], None], name: str) -> Callable[[EMProgress], None]:
    return lambda progress: report(name, progress)


def _direction(name: str, config: Any, arrays: Any, source: Vocab, target: Vocab) -> DirectionalModel:
    settings = dict(config)
    model = settings.pop("model")
    lexicon = Lexicon(source, target, *(np.asarray(arrays[f"{name}.{part}"]) for part in LEXICON_ARRAYS))
    if len(lexicon.keys) != len(lexicon.probs) or (np.diff(lexicon.keys) <= 0).any():
        raise ValueError(f"{name}: entries are not in order")
    if len(lexicon.keys) and not 0 <= lexicon.keys[0] <= lexicon.keys[-1] < len(source) * len(target):
        raise ValueError(f"{name}: entries of words that there are not")
    return DirectionalModel(model, lexicon, POSITION_MODELS[model](**settings))


def _read_config(directory: Path) -> dict[str, Any]:
    try:
        config = yaml.safe_load((directory / CONFIG_FILE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DataError(
            f"{directory}: there is no aligner; name the directory of one, made with dragoman align -o DIR"
        ) from error
    if not isinstance(config, dict) or config.get("kind") != ALIGNER_KIND:
        raise DataError(f"{directory}: is no aligner; make one with dragoman align -o DIR")
    if config.get("format") != FORMAT:
        raise DataError(f"{directory}: written in another format; run dragoman align -o again")
    return config


def _coverage(known: Vocab, text: Vocab) -> float:
    """The share of a text's words that are known."""
    times = text.counts[UNK + 1 :]
    there = np.array([known.id(word) != UNK for word in text.tokens[UNK + 1 :]], bool)
    return float(times[there].sum() / times.sum()) if times.any() else 1.0
