"""Search and sampling over any scorer."""

from dragoman.search.beam import beam_search, beam_search_corpus, greedy_search
from dragoman.search.diagnosis import SearchDiagnosis, diagnose, force_decode
from dragoman.search.hypothesis import Hypothesis
from dragoman.search.lattice import Lattice, LatticeNode
from dragoman.search.length import (
    LENGTH_HANDLINGS,
    LengthHandling,
    LengthNormalization,
    LengthPrior,
    NoLengthHandling,
    WordPenalty,
)
from dragoman.search.prefix import PrefixConstrainedScorer
from dragoman.search.sampling import (
    iter_sample_translations,
    iter_samples,
    sample,
    sample_translations,
    warp_log_probs,
)

__all__ = [
    "LENGTH_HANDLINGS",
    "Hypothesis",
    "Lattice",
    "LatticeNode",
    "LengthHandling",
    "LengthNormalization",
    "LengthPrior",
    "NoLengthHandling",
    "PrefixConstrainedScorer",
    "SearchDiagnosis",
    "WordPenalty",
    "beam_search",
    "beam_search_corpus",
    "diagnose",
    "force_decode",
    "greedy_search",
    "iter_sample_translations",
    "iter_samples",
    "sample",
    "sample_translations",
    "warp_log_probs",
]
