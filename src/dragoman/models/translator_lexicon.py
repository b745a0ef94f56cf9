"""The lexicon of a translator: learned from its training pairs, in its own tokens, before training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.align.em import train_directional_model
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.vocabulary import Vocab
from dragoman.nn.lexicon import LexiconTable

ALIGNMENT_MODEL = "hmm"
MAX_TRANSLATIONS = 20  # per source word
MIN_PROB = 0.01  # of a translation


def learn_lexicon(pairs: ParallelCorpus, dtype: torch.dtype) -> LexiconTable:
    """Estimate P(e | f) with an alignment model and return the most probable translations of each word."""
    lexicon = train_directional_model(pairs, ALIGNMENT_MODEL).lexicon
    entries = lexicon.top_entries(MAX_TRANSLATIONS, MIN_PROB)
    source, target = np.divmod(lexicon.keys[entries], len(pairs.target.vocab))
    starts = np.searchsorted(source, np.arange(len(pairs.source.vocab) + 1))
    probs = torch.from_numpy(lexicon.probs[entries]).to(dtype)
    return LexiconTable(torch.from_numpy(starts), torch.from_numpy(target), probs)


def lexicon_text(table: LexiconTable, source: Vocab, target: Vocab) -> str:
    """Return lines of source TAB target TAB P(target | source), the most probable translation of a word first."""
    source_ids = np.repeat(np.arange(len(source)), table.starts.diff().cpu().numpy())  # (entries,)
    probs = table.probs.double().cpu().numpy()
    order = np.lexsort((-probs, source_ids))
    columns = (source_ids, table.words.cpu().numpy(), probs)
    entries = zip(*(column[order].tolist() for column in columns), strict=True)
    return "".join(f"{source.tokens[f]}\t{target.tokens[e]}\t{prob:.6f}\n" for f, e, prob in entries)


def saved_lexicon(arrays: Mapping[str, NDArray[Any]], source_size: int, target_size: int) -> LexiconTable:
    """Return the lexicon in the arrays of a model directory, after checking it."""
    table = LexiconTable(*(torch.from_numpy(np.array(arrays[f"lexicon.{name}"])) for name in LexiconTable._fields))
    starts, entries = table.starts, len(table.words)
    fits = len(starts) == source_size + 1 and int(starts[0]) == 0 and int(starts[-1]) == entries == len(table.probs)
    if not fits or bool((starts.diff() < 0).any()):
        raise ValueError("the lexicon does not fit its vocabularies")
    if entries and not 0 <= int(table.words.min()) <= int(table.words.max()) < target_size:
        raise ValueError("the lexicon has words outside the vocabulary")
    return table
