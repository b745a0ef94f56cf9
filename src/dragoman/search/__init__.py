"""Finding sentences, over any scorer: by drawing them, or by looking for the best."""

from dragoman.search.beam import beam_search, greedy, search_all
from dragoman.search.diagnosis import Diagnosis, diagnose, forced
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.lattice import Lattice, Node
from dragoman.search.length import LENGTHS, LengthHandling, LengthPrior, NoHandling, PerWord, WordPenalty
from dragoman.search.prefix import Begun
from dragoman.search.sampling import narrowed, sample, sample_given, samples, samples_given

__all__ = [
    "LENGTHS",
    "Begun",
    "Diagnosis",
    "Hypothesis",
    "Lattice",
    "LengthHandling",
    "LengthPrior",
    "NoHandling",
    "Node",
    "PerWord",
    "WordPenalty",
    "beam_search",
    "diagnose",
    "forced",
    "greedy",
    "narrowed",
    "sample",
    "sample_given",
    "samples",
    "samples_given",
    "search_all",
]
