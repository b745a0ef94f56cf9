"""Word alignment with models of both directions, and the lexicon that they learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.align.decoding import most_probable_sources
from dragoman.align.em import ITERATIONS, POSITION_MODELS, SCHEDULES, EMProgress, run_em
from dragoman.align.expectation import LexiconTables
from dragoman.align.lexicon import UNSEEN_PROB, Lexicon, reversed_keys
from dragoman.align.pair_grid import NULL, PairGrid
from dragoman.align.positions import FloatArray, PositionModel
from dragoman.align.symmetrization import GROW_DIAG_FINAL_AND, symmetrize
from dragoman.core.errors import DataError
from dragoman.core.threads import parallel_map
from dragoman.data.alignments import WordAlignments
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.vocabulary import UNK, Vocab
from dragoman.io import storage
from dragoman.io.model_card import render_card

FORMAT = 2
DIRECTIONS = ("forward", "backward")
MIN_LEXICON_PROB = 0.01  # entries of the lexicon file have at least this probability in one direction


@dataclass(frozen=True, eq=False)
class DirectionalModel:
    """P(E | F), summed over all alignments: a position model and a lexicon."""

    model: str
    lexicon: Lexicon
    positions: PositionModel

    def config(self) -> dict[str, object]:
        return {"model": self.model, **self.positions.config()}

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        return {"keys": self.lexicon.keys, "probs": self.lexicon.probs, **self.positions.arrays()}

    def null_probs(self, occurs: NDArray[np.bool_]) -> FloatArray:
        """Return P(e | NULL) of the words that occur; it is undefined for others.  # (|V_e|,)"""
        words, probs = np.flatnonzero(occurs), np.empty(len(occurs))
        probs[words] = self.lexicon.probs_for(NULL * len(occurs) + words, UNSEEN_PROB)
        return probs


@dataclass(frozen=True, eq=False)
class Aligner:
    """Alignment models of both directions.

    In `forward`, P(E | F), each target word comes from a source word; in `backward`, P(F | E), the opposite.

    >>> from dragoman.data.corpus import Corpus
    >>> german = Corpus.from_sentences(["das haus", "das buch", "ein buch", "haus"])
    >>> english = Corpus.from_sentences(["the house", "the book", "a book", "house"])
    >>> aligner = Aligner.train(ParallelCorpus(german, english), "ibm1")
    >>> aligner.align(ParallelCorpus(german, english))[2], aligner.forward.lexicon.translations("buch", 1)[0].word
    ([(0, 0), (1, 1)], 'book')
    """

    forward: DirectionalModel
    backward: DirectionalModel

    @classmethod
    def train(
        cls,
        pairs: ParallelCorpus,
        model: str = "hmm",
        iterations: int = ITERATIONS,
        *,
        prior: float | None = None,
        report: Callable[[str, EMProgress], None] = lambda direction, progress: None,
    ) -> Aligner:
        """Train both directions on sentence pairs by EM. `report` is called after each iteration."""
        if model not in SCHEDULES:
            raise DataError(f"unknown alignment model {model!r}; choose from {', '.join(SCHEDULES)}")
        if iterations < 1:
            raise DataError(f"{iterations} iterations: give at least 1, usually {ITERATIONS}")
        if not pairs.source.num_words or not pairs.target.num_words:
            raise DataError("no words to align; both texts need some")
        grid = PairGrid.from_pairs(pairs)
        em = run_em(grid, SCHEDULES[model], iterations, prior=prior, report=lambda n, step: report(DIRECTIONS[n], step))

        def directional_model(direction: int) -> DirectionalModel:
            texts = (pairs, pairs.reversed)[direction]
            entries = em.entries(direction)
            lexicon = Lexicon(
                texts.source.vocab, texts.target.vocab, entries.keys, entries.values(em.tables, direction)
            )
            return DirectionalModel(model, lexicon, em.positions[direction])

        return cls(*parallel_map(directional_model, range(2)))

    def align(self, pairs: ParallelCorpus, symmetrization: str = GROW_DIAG_FINAL_AND) -> WordAlignments:
        """Align the sentence pairs of a text, which need not be the training text but has the same vocabularies."""
        pairs.source.require_vocab(self.forward.lexicon.source)
        pairs.target.require_vocab(self.forward.lexicon.target)
        grid = PairGrid.from_pairs(pairs)
        positions = self.forward.positions, self.backward.positions
        return symmetrize(grid, *most_probable_sources(grid, self._tables(grid), positions), symmetrization)

    def _tables(self, grid: PairGrid) -> LexiconTables:
        """Look up the probabilities of the word pairs of a text."""
        source, target, _ = grid.word_pairs
        keys = source.astype(np.int64) * grid.target.vocab_size + target
        forward, backward = self.forward.lexicon, self.backward.lexicon
        lookups = ((forward, keys), (backward, reversed_keys(keys, forward)))
        probs = np.stack([lexicon.probs_for(numbers, UNSEEN_PROB) for lexicon, numbers in lookups], axis=1)
        return LexiconTables(
            probs, self.forward.null_probs(grid.target.counts > 0), self.backward.null_probs(grid.source.counts > 0)
        )

    def best_lexicon_for(self, source: Vocab) -> tuple[Lexicon, float]:
        """Return the lexicon, of either direction, that knows most words of a text, and the share that it knows."""
        words, counts = source.tokens[UNK + 1 :], source.counts[UNK + 1 :]

        def coverage(lexicon: Lexicon) -> float:
            is_known = np.array([lexicon.source.id(word) != UNK for word in words], bool)
            return float(counts[is_known].sum() / counts.sum()) if counts.any() else 1.0

        best = max(self.forward.lexicon, self.backward.lexicon, key=coverage)
        return best, coverage(best)

    def lexicon_lines(self, min_prob: float = MIN_LEXICON_PROB) -> Iterator[str]:
        """Yield source TAB target TAB P(target | source) TAB P(source | target), most probable targets first."""
        forward, backward = self.forward.lexicon, self.backward.lexicon
        keys = np.union1d(forward.keys_above(min_prob), reversed_keys(backward.keys_above(min_prob), backward))
        source, target = np.divmod(keys, len(forward.target))  # (entries,) each
        probs, reverse_probs = forward.probs_for(keys), backward.probs_for(reversed_keys(keys, forward))
        order = np.lexsort((target, -probs, source))
        columns = (column[order].tolist() for column in (source, target, probs, reverse_probs))
        for f, e, prob, reverse_prob in zip(*columns, strict=True):
            yield f"{forward.source.tokens[f]}\t{forward.target.tokens[e]}\t{prob:.6f}\t{reverse_prob:.6f}"

    def save(self, path: str | Path, *, replace: bool = False, data: Mapping[str, object] | None = None) -> None:
        """Write a directory atomically. The lexicon file and the card are for people and are not read by `load`.

        `data` is a description of the training text for the card, see `ParallelCorpus.fingerprint`.
        """
        models = dict(zip(DIRECTIONS, (self.forward, self.backward), strict=True))
        arrays: dict[str, NDArray[np.generic]] = {}
        for direction, model in models.items():
            arrays |= {f"{direction}.{name}": array for name, array in model.arrays().items()}
        source, target = self.forward.lexicon.source, self.forward.lexicon.target
        parameters = sum(array.size for array in arrays.values())
        sizes = {"source words": source.num_known, "words": target.num_known, "parameters": parameters}
        config = {
            "kind": storage.ALIGNER_KIND,
            "format": FORMAT,
            **{name: model.config() for name, model in models.items()},
        }
        with storage.new_directory(Path(path), replace=replace, kind=storage.ALIGNER_DIRECTORY) as directory:
            (directory / storage.CARD_FILE).write_text(
                render_card({"data": data or {}, **config}, sizes), encoding="utf-8"
            )
            for name, vocab in ((storage.SOURCE_VOCAB_FILE, source), (storage.VOCAB_FILE, target)):
                (directory / name).write_text(vocab.to_text(), encoding="utf-8", newline="\n")
            storage.write_arrays(directory / storage.ARRAYS_FILE, arrays)
            with (directory / storage.LEXICON_FILE).open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in self.lexicon_lines())
            text = storage.config_text(directory, config)
            (directory / storage.CONFIG_FILE).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Aligner:
        """Read a directory that `save` wrote."""
        directory = Path(path)
        config = _read_config(directory)

        def load_model(direction: str, source: Vocab, target: Vocab) -> DirectionalModel:
            parameters = dict(config[direction])
            model = parameters.pop("model")
            prefix = f"{direction}."
            saved = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            keys, probs = (np.asarray(saved.pop(name)) for name in ("keys", "probs"))
            if keys.shape != (len(probs),) or keys.dtype != np.int64 or (np.diff(keys) <= 0).any():
                raise ValueError(f"{direction}: entries are not sorted")
            if probs.shape != keys.shape or probs.dtype != np.float64 or not ((probs >= 0) & (probs <= 1 + 1e-9)).all():
                raise ValueError(f"{direction}: probabilities are not between 0 and 1")
            if len(keys) and not 0 <= keys[0] <= keys[-1] < len(source) * len(target):
                raise ValueError(f"{direction}: entries are outside the vocabularies")
            positions = POSITION_MODELS[model].from_saved(parameters, saved)
            if any(len(array) != len(source) for array in positions.arrays().values()):
                raise ValueError(f"{direction}: parameters are not those of the source words")
            return DirectionalModel(model, Lexicon(source, target, keys, probs), positions)

        try:
            source, target = (
                Vocab.read(directory / storage.SOURCE_VOCAB_FILE),
                Vocab.read(directory / storage.VOCAB_FILE),
            )
            arrays = storage.map_arrays(directory / storage.ARRAYS_FILE)
            return cls(load_model("forward", source, target), load_model("backward", target, source))
        except storage.READ_ERRORS as error:
            problem = f"{type(error).__name__}: {error}"
            raise DataError(f"{directory}: damaged aligner ({problem}); run dragoman align -o again") from error


def _read_config(directory: Path) -> dict[str, Any]:
    if not (directory / storage.CONFIG_FILE).is_file():
        raise DataError(f"{directory}: no aligner here; create one with dragoman align -o DIR")
    config = storage.read_config(directory)
    if config.get("kind") != storage.ALIGNER_KIND:
        raise DataError(f"{directory}: is not an aligner; create one with dragoman align -o DIR")
    if config.get("format") != FORMAT:
        raise DataError(f"{directory}: written in another format; run dragoman align -o again")
    storage.check_digests(directory, config)
    return config
