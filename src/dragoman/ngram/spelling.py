"""Unknown words spelled out by a character n-gram model, and the choice among all unknown-word models."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.data.unknown_words import DEFAULT_LANGUAGE_SIZE, ClosedVocabulary, UniformUnknownWords, UnknownWordModel
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab
from dragoman.evaluation.log_probs import token_log_probs, unknown_log_probs
from dragoman.models.language_model import LanguageModel
from dragoman.ngram.model import NgramModel

SPELLING_DIR = "spelling"  # the directory of the character model
UNKNOWN_WORD_MODELS = ("none", "uniform", "characters")
# The code points that can stand in a word: all but surrogates, space, TAB and line break.
NUM_CODE_POINTS = 0x110000 - 0x800 - 3


@dataclass(frozen=True)
class SpellingModel:
    """P(spelling | it is unknown) = P(its characters, then the end) / P(not a word of the vocabulary).

    A character that the model never saw is one of the remaining code points of Unicode, all alike.

    >>> corpus = Corpus.from_sentences(["lower slower slowest", "newer newest"])
    >>> near, far = SpellingModel.train(corpus, order=3).log_probs(["lowest", "zzzzzz"])
    >>> near > far
    True
    """

    vocab: Vocab
    characters: LanguageModel  # each spelling is a sentence of characters
    log_outside: float  # log of the probability that the character model gives to all spellings outside V

    @classmethod
    def train(cls, corpus: Corpus, order: int = 6) -> SpellingModel:
        """Learn from the words of a training text, those cut from the vocabulary too, each taken once.

        Words once each, because an unknown word looks like a type, not like a token. (Rare words alone would look
        still more like it, but they are too few: with them, each unknown word costs one or two bits more.)
        """
        spellings = [*corpus.spellings, *corpus.vocab.tokens[len(SPECIALS) :]]
        seen, counts = np.unique(_code_points(spellings), return_counts=True)
        vocab = Vocab([*SPECIALS, *(chr(point) for point in seen)], [0] * len(SPECIALS) + counts.tolist())
        unknown = UniformUnknownWords(
            vocab.num_known, NUM_CODE_POINTS + 1
        )  # </s> ends a spelling like one more character
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an alphabet is often too small for discounts of its own, and no harm done
            characters = NgramModel.train(_as_characters(spellings, vocab), order=order, unknown=unknown)
        return cls.from_character_model(corpus.vocab, characters)

    @classmethod
    def from_character_model(cls, vocab: Vocab, characters: LanguageModel) -> SpellingModel:
        """The spellings outside a vocabulary: those of its words, of nothing and of `<unk>` itself are left out."""
        if vocab.num_known >= DEFAULT_LANGUAGE_SIZE:
            raise DataError(
                f"the vocabulary has {vocab.num_known} words, but a language is taken to have {DEFAULT_LANGUAGE_SIZE}"
            )
        inside = ["", SPECIALS[UNK], *vocab.tokens[len(SPECIALS) :]]
        covered = math.fsum(np.exp(_log_probs(characters, inside)).tolist())
        assert covered < 1.0  # smoothing leaves something for every other spelling
        return cls(vocab, characters, math.log1p(-covered))

    @property
    def language_size(self) -> int:
        return DEFAULT_LANGUAGE_SIZE

    def log_probs(self, spellings: Iterable[str]) -> list[float]:
        asked = list(spellings)
        outside = _log_probs(self.characters, asked) - self.log_outside
        known = np.array([not word or word == SPECIALS[UNK] or self.vocab.id(word) != UNK for word in asked], bool)
        return np.where(known, -np.inf, outside).tolist()

    def config(self) -> dict[str, Any]:
        """The checksum tells two spelling models apart; a mixture needs members that share one."""
        tables = b"".join(np.ascontiguousarray(array).tobytes() for array in self.characters.arrays().values())
        return {"kind": "characters", "checksum": zlib.crc32(tables)}

    def members(self) -> Mapping[str, Any]:
        return {SPELLING_DIR: self.characters}


def create_unknown_word_model(choice: str, corpus: Corpus, total: int = DEFAULT_LANGUAGE_SIZE) -> UnknownWordModel:
    """The unknown-word model of that name for the vocabulary of a training text."""
    match choice:
        case "none":
            return ClosedVocabulary(corpus.vocab.num_known)
        case "uniform":
            return UniformUnknownWords(corpus.vocab.num_known, total)
        case "characters":
            return SpellingModel.train(corpus)
        case _:
            raise DataError(f"no unknown-word model {choice!r}; there are {', '.join(UNKNOWN_WORD_MODELS)}")


def _code_points(spellings: Sequence[str]) -> NDArray[np.uint32]:
    return np.frombuffer("".join(spellings).encode("utf-32-le", "surrogatepass"), np.uint32)


def _as_characters(spellings: Sequence[str], characters: Vocab) -> Corpus:
    """Spellings as sentences of characters."""
    alphabet, which = np.unique(_code_points(spellings), return_inverse=True)
    letters = [chr(point) for point in alphabet]
    number = characters.ids(letters)
    unknown_at = np.flatnonzero(number[which] == UNK)
    lengths = np.fromiter((len(word) for word in spellings), np.int64, len(spellings))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Corpus(characters, number[which], offsets, unknown_at, which[unknown_at].astype(np.int32), tuple(letters))


def _log_probs(characters: LanguageModel, spellings: Sequence[str]) -> NDArray[np.float64]:
    """log P of each string of characters and its end.  # (spellings,)"""
    if not spellings:
        return np.zeros(0)
    text = _as_characters(spellings, characters.vocab)
    tokens = token_log_probs(characters, text)
    tokens[text.unknown_token_positions] += unknown_log_probs(characters, text)
    return np.add.reduceat(tokens, text.token_offsets[:-1])
