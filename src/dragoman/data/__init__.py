"""Words in, numbers out: vocabulary, corpus, formats."""

from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.vocabulary import END, SPECIALS, START, UNK, Vocab

__all__ = ["END", "SPECIALS", "START", "UNK", "Corpus", "ParallelCorpus", "Vocab"]
