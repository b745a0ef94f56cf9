"""Parameters for the new tokens of an extended vocabulary.

Where a network reads a new token, its vector is the mean of those of the old tokens that it was read as. Where a network
predicts a new token, it takes a share of the probability of `<unk>`, which was that of all tokens outside the
vocabulary: the share of the token among the unknown ones of the new text. So the probabilities of all old tokens
remain what they were, and a sentence without new tokens has the same probability as before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.core.errors import DataError
from dragoman.core.types import Arrays
from dragoman.data.unknown_words import UnknownWordModel
from dragoman.data.vocabulary import UNK, Vocab
from dragoman.data.vocabulary_extension import NewTokens
from dragoman.models.loading import load_unknown_model

OUTPUT = "output."
WITHIN = "output.within."  # of a class-factored softmax
LEXICON_STARTS = "lexicon.starts"


def extend_input(arrays: Arrays, name: str, new: NewTokens) -> Arrays:
    """Add the vectors of new tokens to an embedding: the mean of the old tokens in their place."""
    old = arrays[name]  # (|V|, L_m)
    rows = [old[parts].mean(axis=0, keepdims=True) for parts in new.parts]
    return {**arrays, name: np.concatenate([old, *rows]).astype(old.dtype)}


def extend_output(arrays: Arrays, new: NewTokens, *, tied: bool) -> Arrays:
    """Add new tokens to the output layer, each with a share of the probability of `<unk>`.

    A tied output layer has no matrix: its rows, those of the embedding, are also what the network reads. New tokens of
    a class-factored softmax join the class of `<unk>`.
    """
    copies = ["weight.weight", "direct.weight", "class_of"]
    names = [prefix + name for prefix in (OUTPUT, WITHIN) for name in copies]
    extended = dict(arrays)
    for name in [*names, *(["embedding.weight"] if tied else [])]:
        if name in arrays:
            extended[name] = np.concatenate([arrays[name], np.repeat(arrays[name][[UNK]], len(new.parts), axis=0)])
    bias = next(prefix + "bias" for prefix in (WITHIN, OUTPUT) if prefix + "bias" in arrays)
    shares, rest = new.shares()
    new_biases = arrays[bias][UNK] + np.log(shares)
    extended[bias] = np.concatenate([arrays[bias], new_biases]).astype(arrays[bias].dtype)
    extended[bias][UNK] += np.log(rest)
    return extended if tied else extend_input(extended, "embedding.weight", new)


def extend_lexicon_source(arrays: Arrays, new: NewTokens) -> Arrays:
    """Add new source words to a lexicon; it has no translations of them."""
    if LEXICON_STARTS not in arrays:
        return arrays
    starts = arrays[LEXICON_STARTS]
    return {**arrays, LEXICON_STARTS: np.concatenate([starts, np.repeat(starts[-1:], len(new.parts))])}


def extend_unknown_words(unknown: UnknownWordModel, vocab: Vocab) -> UnknownWordModel:
    """Return an unknown-word model without the words of an extended vocabulary."""
    return load_unknown_model(unknown.config(), vocab, unknown.members())


def check_lines(lines: Sequence[str]) -> None:
    if isinstance(lines, str) or not any(line.strip() for line in lines):
        raise DataError("the vocabulary is extended by a text: give a list of lines with words")
