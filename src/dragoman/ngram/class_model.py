"""Class-based n-grams: predict the class of the next word, then the word within its class (Brown et al. 1992)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError, error_at_line
from dragoman.core.scorer import Carry, State
from dragoman.data.corpus import Corpus
from dragoman.data.formats import read_utf8
from dragoman.data.unknown_words import UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import SPECIALS, Vocab
from dragoman.evaluation.log_probs import token_log_probs
from dragoman.models.base import SavedModel
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.model import NgramConfig, NgramModel

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

CLASSES_DIR = "classes"  # the directory of the n-gram model over classes


class ClassNgramModel(LanguageModel):
    """P(w | h) = P(class of w | classes of h) P(w | class of w).

    A word without a class is a class of its own, and so are `<s>`, `</s>` and `<unk>`.

    >>> corpus = Corpus.from_sentences(["fly to rome .", "drive to paris .", "fly to oslo ."])
    >>> cities = {"rome": "CITY", "paris": "CITY", "oslo": "CITY"}
    >>> model = ClassModel.train(corpus, cities, order=3, smoothing="witten-bell")
    >>> model.score(["drive to oslo ."]) == model.score(["drive to paris ."])
    True

    Classes can be found in the text itself:

    >>> from dragoman.data.brown import brown_clusters
    >>> found = brown_clusters(corpus, classes=4).as_mapping()
    >>> found["rome"] == found["paris"] == found["oslo"]
    True
    >>> model = ClassModel.train(corpus, found, order=3, smoothing="witten-bell")
    """

    kind: ClassVar[str] = "class-ngram"

    def __init__(
        self,
        vocab: Vocab,
        inner: LanguageModel,
        class_of: NDArray[np.int32],
        log_emission: NDArray[np.float64],
        unknown: UnknownWordModel,
    ):
        self.vocab = vocab
        self.inner = inner  # over the names of the classes
        self.class_of = class_of  # (|V|,) each word's class in the inner vocabulary
        self.log_emission = log_emission  # (|V|,) log P(w | class of w)
        self.unknown = unknown

    @classmethod
    def train(
        cls,
        corpus: Corpus,
        classes: Mapping[str, str],
        config: NgramConfig | None = None,
        *,
        unknown: UnknownWordModel | None = None,
        heldout: Corpus | None = None,
        **settings: Any,
    ) -> Self:
        """Replace words by their classes, then train an n-gram model. Settings are those of `NgramConfig`."""
        vocab = corpus.vocab
        unknown = unknown or UniformUnknownWords(vocab.num_known)
        names, class_of = _number_classes(vocab, classes)
        counts = np.bincount(corpus.ids, minlength=len(vocab))
        class_counts = np.bincount(class_of, counts, minlength=len(names)).astype(np.int64)
        inner_vocab = Vocab(names, class_counts)
        # As many unknown words as before stand beside the classes.
        inner_unknown = UniformUnknownWords(
            inner_vocab.num_known, inner_vocab.num_known + unknown.language_size - vocab.num_known
        )
        inner = NgramModel.train(
            _map_to_classes(corpus, inner_vocab, class_of),
            config,
            unknown=inner_unknown,
            heldout=None if heldout is None else _map_to_classes(heldout, inner_vocab, class_of),
            **settings,
        )
        return cls(vocab, inner, class_of, np.log(_emission_probs(counts, class_of)), unknown)

    @property
    def notes(self) -> tuple[str, ...]:
        """What training had to say."""
        return self.inner.notes if isinstance(self.inner, NgramModel) else ()

    # -- the scorer ------------------------------------------------------------------------------------------------

    def start(self, batch: Batch, carry: Carry = None) -> State:
        return self.inner.start(batch, carry)

    def log_probs(self, state: State) -> Tensor:
        import torch

        of_classes = self.inner.log_probs(state)  # (rows, classes)
        return of_classes[:, torch.from_numpy(self.class_of)] + torch.from_numpy(self.log_emission)  # (rows, |V|)

    def advance(self, state: State, words: Tensor) -> State:
        import torch

        return self.inner.advance(state, torch.from_numpy(self.class_of)[words].long())

    def finish(self, state: State) -> Carry:
        return self.inner.finish(state)

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        of_classes = token_log_probs(self.inner, _map_to_classes(corpus, self.inner.vocab, self.class_of))
        return of_classes + self.log_emission[corpus.ids_with_boundaries(starts=0)]

    # -- on disk -----------------------------------------------------------------------------------------------------

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {"class_of": self.class_of, "log_emission": self.log_emission}

    def members(self) -> Mapping[str, LanguageModel]:
        return {CLASSES_DIR: self.inner}

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        class_of, log_emission = (np.array(saved.arrays[name]) for name in ("class_of", "log_emission"))
        inner = saved.members[CLASSES_DIR]
        if not len(class_of) == len(log_emission) == len(saved.vocab) or class_of.max() >= len(inner.vocab):
            raise DataError(f"{saved.path}: classes and vocabulary do not fit together; the model directory is broken")
        return cls(saved.vocab, inner, class_of, log_emission, saved.unknown)


def read_classes(path: str | Path) -> dict[str, str]:
    """The class of each word, from lines `word TAB class`, or `bits TAB word TAB count` as Brown clustering writes."""
    classes: dict[str, str] = {}
    first_line: dict[str, int] = {}
    for number, word, name in _entries(str(path)):
        if word in classes:
            raise error_at_line(
                str(path), number, f"{word!r} has a class on line {first_line[word]} already; remove one of the two"
            )
        classes[word], first_line[word] = name, number
    return classes


def _entries(path: str) -> Iterator[tuple[int, str, str]]:
    """Line number, word and class; all lines have as many fields as the first."""
    width = 0
    for number, line in enumerate(read_utf8(path).decode().removesuffix("\n").split("\n"), 1):
        fields = line.removesuffix("\r").split("\t")
        width = width or len(fields)
        if len(fields) != width or width not in (2, 3) or not all(fields):
            expected = "`bits TAB word TAB count`" if width == 3 else "`word TAB class`"
            raise error_at_line(path, number, f"expected {expected}, found {line!r}")
        word, name = fields if width == 2 else (fields[1], fields[0])
        yield number, word, name


def _number_classes(vocab: Vocab, classes: Mapping[str, str]) -> tuple[list[str], NDArray[np.int32]]:
    """The names of the inner vocabulary, and each word's number in it.

    Names say whether they are a class or a word on its own, so a class can be called like a word.
    """
    words = vocab.tokens[len(SPECIALS) :]
    for name in set(classes.values()):
        if not name or set(name) & set(" \t\n"):
            raise DataError(f"class {name!r}: the name of a class is one word, without spaces, TABs or line breaks")
    names = [f"class:{classes[word]}" if word in classes else f"word:{word}" for word in words]
    number = {name: place for place, name in enumerate(dict.fromkeys([*SPECIALS, *names]))}
    return list(number), np.array([number[name] for name in (*SPECIALS, *names)], np.int32)


def _emission_probs(counts: NDArray[np.int64], class_of: NDArray[np.int32]) -> NDArray[np.float64]:
    """P(w | class of w): the word's share of its class; with an unseen word in it, each counts one more.  # (|V|,)"""
    lacking = np.bincount(class_of, counts == 0) > 0
    smoothed = counts + lacking[class_of]
    return smoothed / np.bincount(class_of, smoothed)[class_of]


def _map_to_classes(corpus: Corpus, classes: Vocab, class_of: NDArray[np.int32]) -> Corpus:
    """The text with each word replaced by its class; which unknown word it was is no matter of classes."""
    nothing = np.zeros(0, np.int64)
    return Corpus(classes, class_of[corpus.ids], corpus.offsets, nothing, nothing.astype(np.int32), ())
