"""Class-based n-gram models: predict the class of the next word, then the word in its class (Brown et al. 1992)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line
from dragoman.core.scorer import Carry, State
from dragoman.data.corpus import Corpus
from dragoman.data.formats import read_utf8
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import SPECIALS, Vocab
from dragoman.evaluation.likelihood import token_log_probs
from dragoman.models.base import Config, SavedModel
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.model import NgramConfig, NgramModel

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

ROUNDING = 1e-6  # how far the probabilities of the words of a class may be from 1
CLASSES_DIR = "classes"  # the directory of the n-gram model over classes


@dataclass(eq=False, repr=False)
class ClassNgramModel(LanguageModel):
    """P(w | h) = P(class of w | classes of h) P(w | class of w).

    A word without a class is a class by itself, and so are `<s>`, `</s>` and `<unk>`.

    >>> corpus = Corpus.from_sentences(["fly to rome .", "drive to paris .", "fly to oslo ."])
    >>> cities = {"rome": "CITY", "paris": "CITY", "oslo": "CITY"}
    >>> model = ClassNgramModel.train(corpus, cities, order=3, smoothing="witten-bell")
    >>> model.score(["drive to oslo ."]) == model.score(["drive to paris ."])
    True

    Classes can be learned from the text itself:

    >>> from dragoman.data.brown import brown_clusters
    >>> classes = brown_clusters(corpus, classes=4).as_mapping()
    >>> classes["rome"] == classes["paris"] == classes["oslo"]
    True
    >>> model = ClassNgramModel.train(corpus, classes, order=3, smoothing="witten-bell")
    """

    kind: ClassVar[str] = "class-ngram"
    vocab: Vocab
    inner: LanguageModel  # an n-gram model over the names of the classes
    class_of: NDArray[np.int32]  # (|V|,) the class of each word in the inner vocabulary
    log_emission: NDArray[np.float64]  # (|V|,) log P(w | class of w)
    unknown: UnknownWordModel

    @classmethod
    def train(
        cls,
        corpus: Corpus,
        classes: Mapping[str, str],
        config: NgramConfig | None = None,
        *,
        unknown: UnknownWordModel | None = None,
        heldout: Corpus | None = None,
        **settings: object,
    ) -> Self:
        """Replace words by their classes and train an n-gram model. Settings are those of `NgramModel.train`."""
        vocab = corpus.vocab
        unknown = unknown or UniformUnknownWords(vocab.num_known)
        names, class_of = _number_classes(vocab, classes)
        counts = np.bincount(corpus.ids, minlength=len(vocab))
        class_counts = np.bincount(class_of, counts, minlength=len(names)).astype(np.int64)
        inner_vocab = Vocab(names, class_counts)
        # The number of unknown words stays the same.
        inner_size = inner_vocab.num_known + unknown.language_size - vocab.num_known
        inner = NgramModel.train(
            _map_to_classes(corpus, inner_vocab, class_of),
            config,
            unknown=UniformUnknownWords(inner_vocab.num_known, inner_size),
            heldout=None if heldout is None else _map_to_classes(heldout, inner_vocab, class_of),
            **settings,
        )
        # P(w | class of w) by relative counts; if a class has unseen words, all its counts are raised by one.
        smoothed = counts + (np.bincount(class_of, counts == 0) > 0)[class_of]
        emission = smoothed / np.bincount(class_of, smoothed)[class_of]  # (|V|,)
        return cls(vocab, inner, class_of, np.log(emission), unknown)

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages of training."""
        return self.inner.notes if isinstance(self.inner, NgramModel) else ()

    def start(self, batch: Batch, carry: Carry = None) -> State:
        return self.inner.start(batch, carry)

    def log_probs(self, state: State) -> Tensor:
        import torch

        class_log_probs = self.inner.log_probs(state)  # (rows, classes)
        return class_log_probs[:, torch.from_numpy(self.class_of)] + torch.from_numpy(self.log_emission)  # (rows, |V|)

    def advance(self, state: State, words: Tensor) -> State:
        import torch

        return self.inner.advance(state, torch.from_numpy(self.class_of)[words].long())

    def finish(self, state: State) -> Carry:
        return self.inner.finish(state)

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        class_log_probs = token_log_probs(self.inner, _map_to_classes(corpus, self.inner.vocab, self.class_of))
        return class_log_probs + self.log_emission[corpus.ids_with_boundaries(starts=0)]

    def arrays(self) -> Mapping[str, NDArray[np.generic]]:
        return {"class_of": self.class_of, "log_emission": self.log_emission}

    def members(self) -> Mapping[str, LanguageModel]:
        return {CLASSES_DIR: self.inner}

    @classmethod
    def member_names(cls, config: Config) -> Sequence[str]:
        return [CLASSES_DIR]

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        class_of, log_emission = (np.array(saved.arrays[name]) for name in ("class_of", "log_emission"))
        inner = saved.members[CLASSES_DIR]
        _check_classes(class_of, log_emission, len(saved.vocab), len(inner.vocab))
        return cls(saved.vocab, inner, class_of, log_emission, saved.unknown)


def _check_classes(
    class_of: NDArray[np.int32], log_emission: NDArray[np.float64], vocab_size: int, classes: int
) -> None:
    """Raise ValueError if arrays read from a file are not valid: kernels do not check their indices."""
    fits = class_of.dtype == np.int32 and log_emission.dtype == np.float64
    if not fits or class_of.shape != (vocab_size,) or log_emission.shape != (vocab_size,):
        raise ValueError("classes and vocabulary do not match")
    if class_of.min() < 0 or class_of.max() >= classes:
        raise ValueError("a word has a class that does not exist")
    if not np.isfinite(log_emission).all() or (log_emission > ROUNDING).any():
        raise ValueError("a word has no probability in its class")
    if not np.allclose(np.bincount(class_of, np.exp(log_emission), classes), 1.0, atol=ROUNDING):
        raise ValueError("the probabilities of the words of a class do not sum to one")


def read_classes(path: str | Path) -> dict[str, str]:
    """Read the class of each word from lines `word TAB class`, or `bits TAB word TAB count` of Brown clustering."""
    classes: dict[str, str] = {}
    line_of: dict[str, int] = {}
    lines = read_utf8(str(path)).decode().removesuffix("\n").split("\n")
    width = lines[0].count("\t") + 1  # of all lines
    for number, line in enumerate(lines, 1):
        fields = line.removesuffix("\r").split("\t")
        if len(fields) != width or width not in (2, 3) or not all(fields):
            expected = "`bits TAB word TAB count`" if width == 3 else "`word TAB class`"
            raise error_at_line(str(path), number, f"expected {expected}, found {line!r}")
        word, name = fields if width == 2 else (fields[1], fields[0])
        if word in classes:
            problem = f"{word!r} already has a class on line {line_of[word]}; remove one of the two"
            raise error_at_line(str(path), number, problem)
        classes[word], line_of[word] = name, number
    return classes


def _number_classes(vocab: Vocab, classes: Mapping[str, str]) -> tuple[list[str], NDArray[np.int32]]:
    """Return the tokens of the inner vocabulary and the class of each word.

    The prefixes `class:` and `word:` keep a class apart from a word of the same name.
    """
    words = vocab.tokens[len(SPECIALS) :]
    for name in set(classes.values()):
        if not name or set(name) & set(" \t\n"):
            raise DataError(f"class {name!r}: the name of a class is one word without spaces, TABs or line breaks")
    names = [f"class:{classes[word]}" if word in classes else f"word:{word}" for word in words]
    index = {name: i for i, name in enumerate(dict.fromkeys([*SPECIALS, *names]))}
    return list(index), np.array([index[name] for name in (*SPECIALS, *names)], np.int32)


def _map_to_classes(corpus: Corpus, classes: Vocab, class_of: NDArray[np.int32]) -> Corpus:
    """Replace each word by its class; spellings of unknown words are dropped."""
    empty = np.zeros(0, np.int64)
    return Corpus(classes, class_of[corpus.ids], corpus.offsets, empty, empty.astype(np.int32), ())
