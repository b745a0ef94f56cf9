"""An unknown-word model that spells words with a character n-gram model."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.types import Json
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import offsets_of
from dragoman.data.unknown_words import (
    DEFAULT_LANGUAGE_SIZE,
    ClosedVocabulary,
    DistinctWords,
    UniformUnknownWords,
    UnknownWordModel,
)
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab
from dragoman.evaluation.likelihood import token_log_probs, unknown_log_probs
from dragoman.models.language_model import LanguageModel
from dragoman.models.loading import SPELLING_DIR
from dragoman.ngram.model import NgramModel

MAX_SPELLING = 40  # characters of a sampled word
ATTEMPTS, MAX_ATTEMPTS = 8, 1_000  # spellings that are sampled at a time, and at most, until one is not a known word
UNKNOWN_WORD_MODELS = ("none", "uniform", "characters")
NUM_CODE_POINTS = 0x110000 - 0x800 - 3  # that can be in a word: not surrogates, space, TAB and line break


@dataclass(frozen=True)
class SpellingModel:
    """P(spelling | unknown) = P(its characters, then the end) / P(not a word of the vocabulary).

    Characters that the model has never seen are all equally likely code points of Unicode.

    >>> corpus = Corpus.from_sentences(["lower slower slowest", "newer newest"])
    >>> near, far = SpellingModel.train(corpus, order=3).log_probs(["lowest", "zzzzzz"])
    >>> near > far
    True
    """

    vocab: Vocab
    characters: LanguageModel  # each spelling is a sentence of characters
    log_outside: float  # log of the probability that the character model gives to all spellings outside V

    @classmethod
    def train(cls, corpus: DistinctWords, order: int = 6) -> SpellingModel:
        """Train on the distinct words of a text, including those outside the vocabulary.

        Each word is used once, because an unknown word resembles a type more than a token. Using only rare words
        would resemble unknown words even more, but they are too few: each unknown word then costs one or two bits more.
        """
        spellings = [*corpus.spellings, *corpus.vocab.tokens[len(SPECIALS) :]]
        code_points, counts = np.unique(_code_points(spellings), return_counts=True)
        vocab = Vocab([*SPECIALS, *(chr(point) for point in code_points)], [0] * len(SPECIALS) + counts.tolist())
        unknown = UniformUnknownWords(vocab.num_known, NUM_CODE_POINTS + 1)  # </s> counts like one more character
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an alphabet is often too small for its own discounts, which is harmless
            characters = NgramModel.train(_as_characters(spellings, vocab), order=order, unknown=unknown)
        return cls.from_character_model(corpus.vocab, characters)

    @classmethod
    def from_character_model(cls, vocab: Vocab, characters: LanguageModel) -> SpellingModel:
        """Exclude the words of the vocabulary, the empty string and `<unk>` from the spellings."""
        if vocab.num_known >= DEFAULT_LANGUAGE_SIZE:
            raise DataError(
                f"the vocabulary has {vocab.num_known} words, but a language is assumed to have {DEFAULT_LANGUAGE_SIZE}"
            )
        inside = ["", SPECIALS[UNK], *vocab.tokens[len(SPECIALS) :]]
        covered = math.fsum(np.exp(_log_probs(characters, inside)).tolist())
        if not covered < 1.0:  # smoothing leaves mass for every other spelling
            raise DataError("the model of spellings gives no probability to unknown words; train it again")
        return cls(vocab, characters, math.log1p(-covered))

    @property
    def language_size(self) -> int:
        return DEFAULT_LANGUAGE_SIZE

    def log_probs(self, spellings: Iterable[str]) -> list[float]:
        words = list(spellings)
        outside = _log_probs(self.characters, words) - self.log_outside
        known = np.array([not word or word == SPECIALS[UNK] or self.vocab.id(word) != UNK for word in words], bool)
        return np.where(known, -np.inf, outside).tolist()

    @property
    def spells(self) -> bool:
        return True

    def sample(self, generator: np.random.Generator) -> str | None:
        """Sample the spelling of an unknown word: characters until the end, again if the vocabulary has the word."""
        from dragoman.search.sampling import iter_samples

        seed, tokens = int(generator.integers(1 << 31)), self.characters.vocab.tokens
        for sample in iter_samples(self.characters, MAX_ATTEMPTS, seed, max_words=MAX_SPELLING, batch_size=ATTEMPTS):
            word = "".join(tokens[token] for token in sample.ids)
            if word and UNK not in sample.ids and word != SPECIALS[UNK] and self.vocab.id(word) == UNK:
                return word
        return None

    def config(self) -> dict[str, Json]:
        """The checksum distinguishes spelling models: the members of a mixture must share one."""
        tables = b"".join(np.ascontiguousarray(array).tobytes() for array in self.characters.arrays().values())
        return {"kind": "characters", "checksum": zlib.crc32(tables)}

    def members(self) -> Mapping[str, LanguageModel]:
        return {SPELLING_DIR: self.characters}


def create_unknown_word_model(
    name: str, corpus: DistinctWords, language_size: int = DEFAULT_LANGUAGE_SIZE
) -> UnknownWordModel:
    """Create the unknown-word model of this name for the vocabulary of a training text."""
    match name:
        case "none":
            return ClosedVocabulary(corpus.vocab.num_known)
        case "uniform":
            return UniformUnknownWords(corpus.vocab.num_known, language_size)
        case "characters":
            return SpellingModel.train(corpus)
    raise DataError(f"unknown-word model {name!r} does not exist; choose {', '.join(UNKNOWN_WORD_MODELS)}")


def _code_points(spellings: Sequence[str]) -> NDArray[np.uint32]:
    return np.frombuffer("".join(spellings).encode("utf-32-le", "surrogatepass"), np.uint32)


def _as_characters(spellings: Sequence[str], vocab: Vocab) -> Corpus:
    """Return spellings as sentences of characters."""
    alphabet, character_index = np.unique(_code_points(spellings), return_inverse=True)
    letters = [chr(point) for point in alphabet]
    ids = vocab.ids(letters)[character_index]
    unknown = np.flatnonzero(ids == UNK)
    offsets = offsets_of(np.fromiter((len(word) for word in spellings), np.int64, len(spellings)))
    return Corpus(vocab, ids, offsets, unknown, character_index[unknown].astype(np.int32), tuple(letters))


def _log_probs(characters: LanguageModel, spellings: Sequence[str]) -> NDArray[np.float64]:
    """Return log P of each string of characters and its end.  # (spellings,)"""
    if not spellings:
        return np.zeros(0)
    text = _as_characters(spellings, characters.vocab)
    tokens = token_log_probs(characters, text)
    tokens[text.unknown_token_positions] += unknown_log_probs(characters, text)
    return np.add.reduceat(tokens, text.token_offsets[:-1])
