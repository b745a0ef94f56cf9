"""dragoman: language models and translators, from counts to attention, that train on the machine you have.

>>> import dragoman
>>> corpus = dragoman.Corpus.from_sentences(["the cat sat", "the dog sat", "the cat ran"])
>>> model = dragoman.NgramModel.train(corpus, order=2, smoothing="witten-bell")
>>> model.next_words("the", k=2)[0].word
'cat'
"""

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than `dragoman --version` may
if TYPE_CHECKING:
    from dragoman.combine.ensemble import Ensemble
    from dragoman.combine.mixture import Mixture
    from dragoman.core.errors import DataError, DragomanError
    from dragoman.data.brown import BrownClustering, brown_clusters
    from dragoman.data.corpus import BidirectionalCorpus, Corpus, ParallelCorpus
    from dragoman.data.tokenizer import Tokenizer
    from dragoman.data.vocabulary import Vocab
    from dragoman.lab.laboratory import laboratory
    from dragoman.models.cache import CacheModel
    from dragoman.models.feedforward import FeedForwardModel
    from dragoman.models.feedforward_config import FeedForwardConfig
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.loading import load
    from dragoman.models.loglinear.config import LogLinearConfig
    from dragoman.models.loglinear.features import atom, feature
    from dragoman.models.loglinear.model import LogLinearModel
    from dragoman.models.recurrent import RecurrentModel
    from dragoman.models.recurrent_config import RecurrentConfig
    from dragoman.models.translator import Translator
    from dragoman.models.translator_config import TranslatorConfig
    from dragoman.models.two_way import TwoWayTranslator
    from dragoman.ngram.arpa import read_arpa, write_arpa
    from dragoman.ngram.class_model import ClassNgramModel
    from dragoman.ngram.model import NgramConfig, NgramModel
    from dragoman.training.config import TrainingConfig
    from dragoman.training.fit import fit

__version__ = "0.1.0"

# Where each public name lives. Imported when first used, so that the command line answers at once.
_HOMES = {
    "BidirectionalCorpus": "dragoman.data.corpus",
    "CacheModel": "dragoman.models.cache",
    "ClassNgramModel": "dragoman.ngram.class_model",
    "BrownClustering": "dragoman.data.brown",
    "Corpus": "dragoman.data.corpus",
    "DataError": "dragoman.core.errors",
    "DragomanError": "dragoman.core.errors",
    "Ensemble": "dragoman.combine.ensemble",
    "FeedForwardConfig": "dragoman.models.feedforward_config",
    "FeedForwardModel": "dragoman.models.feedforward",
    "LanguageModel": "dragoman.models.language_model",
    "LogLinearConfig": "dragoman.models.loglinear.config",
    "LogLinearModel": "dragoman.models.loglinear.model",
    "Mixture": "dragoman.combine.mixture",
    "NgramConfig": "dragoman.ngram.model",
    "NgramModel": "dragoman.ngram.model",
    "ParallelCorpus": "dragoman.data.corpus",
    "RecurrentConfig": "dragoman.models.recurrent_config",
    "RecurrentModel": "dragoman.models.recurrent",
    "Tokenizer": "dragoman.data.tokenizer",
    "TrainingConfig": "dragoman.training.config",
    "Translator": "dragoman.models.translator",
    "TranslatorConfig": "dragoman.models.translator_config",
    "TwoWayTranslator": "dragoman.models.two_way",
    "Vocab": "dragoman.data.vocabulary",
    "brown_clusters": "dragoman.data.brown",
    "atom": "dragoman.models.loglinear.features",
    "feature": "dragoman.models.loglinear.features",
    "fit": "dragoman.training.fit",
    "laboratory": "dragoman.lab.laboratory",
    "load": "dragoman.models.loading",
    "read_arpa": "dragoman.ngram.arpa",
    "write_arpa": "dragoman.ngram.arpa",
}

__all__ = [
    "BidirectionalCorpus",
    "BrownClustering",
    "CacheModel",
    "ClassNgramModel",
    "Corpus",
    "DataError",
    "DragomanError",
    "Ensemble",
    "FeedForwardConfig",
    "FeedForwardModel",
    "LanguageModel",
    "LogLinearConfig",
    "LogLinearModel",
    "Mixture",
    "NgramConfig",
    "NgramModel",
    "ParallelCorpus",
    "RecurrentConfig",
    "RecurrentModel",
    "Tokenizer",
    "TrainingConfig",
    "Translator",
    "TranslatorConfig",
    "TwoWayTranslator",
    "Vocab",
    "atom",
    "brown_clusters",
    "feature",
    "fit",
    "laboratory",
    "load",
    "read_arpa",
    "write_arpa",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
