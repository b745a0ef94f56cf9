"""The lexicon inside a translator: learned from its training pairs, in its own units, before the first step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.align.em import train_directional_model
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.vocabulary import Vocab
from dragoman.nn.lexicon_softmax import LexiconTable

MODEL = "hmm"
MOST = 20  # translations kept of each source word
LEAST = 0.01  # and each at least so probable


def learned_table(pairs: ParallelCorpus, dtype: torch.dtype) -> LexiconTable:
    """P(e | f) by an alignment model, the likeliest translations of each word."""
    lexicon = train_directional_model(pairs, MODEL).lexicon
    kept = lexicon.top_entries(MOST, LEAST)
    owner, target = np.divmod(lexicon.keys[kept], len(pairs.target.vocab))
    starts = np.searchsorted(owner, np.arange(len(pairs.source.vocab) + 1))
    return LexiconTable(
        torch.from_numpy(starts), torch.from_numpy(target), torch.from_numpy(lexicon.probs[kept]).to(dtype)
    )


def table_arrays(table: LexiconTable) -> dict[str, NDArray[Any]]:
    return {name: part.numpy() for name, part in table._asdict().items()}


def table_text(table: LexiconTable, source: Vocab, target: Vocab) -> str:
    """For people: source TAB target TAB P(target | source), the likeliest translation of each source word first."""
    owner = np.repeat(np.arange(len(source)), table.starts.diff().numpy())  # (entries,)
    probs = table.probs.double().numpy()
    order = np.lexsort((-probs, owner))
    entries = zip(owner[order].tolist(), table.words.numpy()[order].tolist(), probs[order].tolist(), strict=True)
    return "".join(f"{source.tokens[one]}\t{target.tokens[other]}\t{prob:.6f}\n" for one, other, prob in entries)


def table_from(arrays: Mapping[str, NDArray[Any]], sources: int, words: int) -> LexiconTable:
    """From what is on disk, looked over."""
    table = LexiconTable(*(torch.from_numpy(np.array(arrays[name])) for name in LexiconTable._fields))
    starts, entries = table.starts, len(table.words)
    if len(starts) != sources + 1 or int(starts[0]) != 0 or int(starts[-1]) != entries or len(table.probs) != entries:
        raise ValueError("the lexicon does not fit its vocabularies")
    if bool((starts.diff() < 0).any()) or (
        entries and not 0 <= int(table.words.min()) <= int(table.words.max()) < words
    ):
        raise ValueError("the lexicon has words that there are not")
    return table
