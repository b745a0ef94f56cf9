"""dragoman: language models and translators, from n-grams to attention, that train on one machine.

>>> import dragoman
>>> corpus = dragoman.Corpus.from_sentences(["the cat sat", "the dog sat", "the cat ran"])
>>> model = dragoman.NgramModel.train(corpus, order=2, smoothing="witten-bell")
>>> model.next_words("the", k=2)[0].word
'cat'

The names here cover ordinary use. They are imported on first use, so that `import dragoman` is fast. Everything else is
in the packages, such as `dragoman.search` and `dragoman.combine`. "The tutorial" is Neubig (2017), arXiv:1703.01619, whose
equations docs/tutorial.md lists with their code.
"""

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than `dragoman --version` may
if TYPE_CHECKING:
    from dragoman.align.aligner import Aligner
    from dragoman.combine.ensemble import Ensemble
    from dragoman.combine.mixture import Mixture
    from dragoman.core.errors import DataError, DragomanError
    from dragoman.data.corpus import Corpus, ParallelCorpus
    from dragoman.data.tokenizer import Tokenizer
    from dragoman.data.vocabulary import Vocab
    from dragoman.models.cache import CacheModel
    from dragoman.models.evaluate import bleu, evaluate
    from dragoman.models.feedforward import FeedForwardModel
    from dragoman.models.loading import load
    from dragoman.models.loglinear.features import atom, feature
    from dragoman.models.loglinear.model import LogLinearModel
    from dragoman.models.recurrent import RecurrentModel
    from dragoman.models.translator import Translator
    from dragoman.ngram.arpa import read_arpa, write_arpa
    from dragoman.ngram.class_model import ClassNgramModel
    from dragoman.ngram.model import NgramModel
    from dragoman.search.beam import beam_search
    from dragoman.search.sampling import sample
    from dragoman.training.config import TrainingConfig
    from dragoman.training.fit import fit

__version__ = "0.1.0"

_MODULES = {
    "Aligner": "dragoman.align.aligner",
    "CacheModel": "dragoman.models.cache",
    "ClassNgramModel": "dragoman.ngram.class_model",
    "Corpus": "dragoman.data.corpus",
    "DataError": "dragoman.core.errors",
    "DragomanError": "dragoman.core.errors",
    "Ensemble": "dragoman.combine.ensemble",
    "FeedForwardModel": "dragoman.models.feedforward",
    "LogLinearModel": "dragoman.models.loglinear.model",
    "Mixture": "dragoman.combine.mixture",
    "NgramModel": "dragoman.ngram.model",
    "ParallelCorpus": "dragoman.data.corpus",
    "RecurrentModel": "dragoman.models.recurrent",
    "Tokenizer": "dragoman.data.tokenizer",
    "TrainingConfig": "dragoman.training.config",
    "Translator": "dragoman.models.translator",
    "Vocab": "dragoman.data.vocabulary",
    "atom": "dragoman.models.loglinear.features",
    "beam_search": "dragoman.search.beam",
    "bleu": "dragoman.models.evaluate",
    "evaluate": "dragoman.models.evaluate",
    "feature": "dragoman.models.loglinear.features",
    "fit": "dragoman.training.fit",
    "load": "dragoman.models.loading",
    "read_arpa": "dragoman.ngram.arpa",
    "sample": "dragoman.search.sampling",
    "write_arpa": "dragoman.ngram.arpa",
}

__all__ = [
    "Aligner",
    "CacheModel",
    "ClassNgramModel",
    "Corpus",
    "DataError",
    "DragomanError",
    "Ensemble",
    "FeedForwardModel",
    "LogLinearModel",
    "Mixture",
    "NgramModel",
    "ParallelCorpus",
    "RecurrentModel",
    "Tokenizer",
    "TrainingConfig",
    "Translator",
    "Vocab",
    "atom",
    "beam_search",
    "bleu",
    "evaluate",
    "feature",
    "fit",
    "load",
    "read_arpa",
    "sample",
    "write_arpa",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
