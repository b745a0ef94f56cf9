"""dragoman: language models and translators, from counts to attention, that train on the machine you have."""

from dragoman.errors import DataError, DragomanError
from dragoman.language_model import LanguageModel
from dragoman.loading import load
from dragoman.mixture import Mixture, ensemble
from dragoman.ngram.model import NgramConfig, NgramModel
from dragoman.text import Corpus, ParallelCorpus, Vocab

__version__ = "0.1.0"
__all__ = [
    "Corpus",
    "DataError",
    "DragomanError",
    "LanguageModel",
    "Mixture",
    "NgramConfig",
    "NgramModel",
    "ParallelCorpus",
    "Vocab",
    "ensemble",
    "load",
]
