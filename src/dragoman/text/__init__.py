"""Words in, numbers out: vocabulary, corpus, formats."""

from dragoman.text.corpus import Corpus, ParallelCorpus
from dragoman.text.vocab import END, SPECIALS, START, UNK, Vocab

__all__ = ["END", "SPECIALS", "START", "UNK", "Corpus", "ParallelCorpus", "Vocab"]
