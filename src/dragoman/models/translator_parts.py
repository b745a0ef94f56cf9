"""The parts of a translator that its settings ask for: encoder, bridge, decoder, losses on attention, lexicon.

The lexicon is learned from the training pairs, in the translator's own tokens, before training.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.core.errors import DataError
from dragoman.core.types import Arrays
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.vocabulary import Vocab
from dragoman.models.configs import TranslatorConfig
from dragoman.nn.attention import SCORES, Attention, Memory, fertility_loss, supervision_loss
from dragoman.nn.attention_priors import PRIORS
from dragoman.nn.decoder import Bridge, Decoder
from dragoman.nn.encoders import (
    LEFT_TO_RIGHT,
    RIGHT_TO_LEFT,
    ConvolutionalEncoder,
    Encoder,
    RecurrentEncoder,
    TreeEncoder,
)
from dragoman.nn.lexicon import Candidates, LexiconTable

DIRECTIONS = {"forward": (LEFT_TO_RIGHT,), "reverse": (RIGHT_TO_LEFT,), "bidirectional": (RIGHT_TO_LEFT, LEFT_TO_RIGHT)}
ALIGNMENT_MODEL = "hmm"  # from which the lexicon is learned
MAX_TRANSLATIONS = 20  # per source word
MIN_PROB = 0.01  # of a translation


class TranslatorOutput(NamedTuple):
    """The output of a translator for a batch."""

    log_probs: Tensor  # (tokens,) log P of every token of the targets
    attention: Tensor | None = None  # (steps, pairs, longest source); undefined where padded
    auxiliary_loss: Tensor | None = None  # (tokens,) losses on attention, in training

    @property
    def losses(self) -> Tensor:
        """Training loss of every token.  # (tokens,)"""
        return -self.log_probs if self.auxiliary_loss is None else self.auxiliary_loss - self.log_probs


class TargetTokens(NamedTuple):
    """The tokens whose log-probabilities are computed, and what they depend on."""

    words: Tensor  # (tokens,)
    flat_indices: Tensor  # (tokens,) in the flat (steps * pairs)
    label_smoothing: float
    attention: Tensor | None = None  # (steps, pairs, longest source)
    candidates: Candidates | None = None  # of the lexicon


def create_encoder(settings: TranslatorConfig) -> Encoder:
    """Return the encoder that the settings ask for."""
    word_size, size, rates = settings.embedding, settings.encoder_size, (settings.embedding_dropout, settings.dropout)
    if settings.reads_trees:
        return TreeEncoder(settings.encoder, word_size, size, *rates)
    if settings.encoder == "convolutional":
        filters = (settings.filters, settings.filter_width, settings.pooling, settings.k_max)
        return ConvolutionalEncoder(*filters, word_size, *rates)
    directions, layers = DIRECTIONS[settings.encoder], settings.encoder_layers
    return RecurrentEncoder(directions, settings.cell, layers, word_size, size, *rates)


def create_bridge(settings: TranslatorConfig, encoder: Encoder) -> Bridge:
    """Return the bridge from encoder to decoder."""
    copy = settings.bridge == "copy"
    if copy and (encoder.state_size != settings.hidden or encoder.num_layers < settings.layers):
        layers = f"{encoder.num_layers} of {encoder.state_size} in the encoder"
        sizes = f"{layers}, {settings.layers} of {settings.hidden} in the decoder"
        raise DataError(f"bridge copy needs as many layers in both, with states of the same length ({sizes})")
    return Bridge(settings.cell, settings.layers, encoder.state_size, settings.hidden, copy=copy)


def create_decoder(settings: TranslatorConfig, context_size: int) -> Decoder:
    """Return the decoder; without attention the context size is 0."""
    hidden, attention = settings.hidden, None
    if settings.attention != "none":
        score = SCORES[settings.attention](hidden, context_size, settings.attention_hidden or hidden)
        priors = {name: PRIORS[name](value, hidden, context_size) for name, value in settings.priors.items()}
        attention = Attention(score, priors, hard=settings.hard)
    sizes = (settings.layers, settings.embedding, hidden)
    return Decoder(settings.cell, *sizes, attention, context_size, dropout=settings.dropout)


def attention_loss(
    attention: Tensor, batch: ParallelCorpus, memory: Memory, settings: TranslatorConfig
) -> Tensor | None:
    """Return the weighted sum of the losses on attention, or None without any.

    # attention: (steps, pairs, longest) -> (steps, pairs)
    """
    losses = []
    if settings.supervision:
        if batch.alignments is None:
            remedy = "give one, or create one with dragoman align"
            raise DataError(f"supervision: the sentence pairs have no word alignment; {remedy}")
        losses.append(settings.supervision * supervision_loss(attention, batch.alignments))
    if settings.fertility_penalty:
        phi = memory.prior_features[list(settings.priors).index("fertility")]
        assert phi is not None
        source_tokens, target_tokens = (
            torch.from_numpy(side.sizes).to(attention.device) for side in (batch.source, batch.target)
        )
        mask = torch.arange(len(attention), device=attention.device)[:, None] < target_tokens  # (steps, pairs)
        loss = fertility_loss(attention, mask.to(attention), phi, source_tokens - 1)
        losses.append(settings.fertility_penalty * loss)
    return sum(losses[1:], losses[0]) if losses else None


def learn_lexicon(pairs: ParallelCorpus) -> LexiconTable:
    """Estimate P(e | f) with an alignment model and return the most probable translations of each word."""
    from dragoman.align.aligner import Aligner  # takes long to import, and translating does not need it

    lexicon = Aligner.train(pairs, ALIGNMENT_MODEL).forward.lexicon
    entries = lexicon.top_entries(MAX_TRANSLATIONS, MIN_PROB)
    source, target = np.divmod(lexicon.keys[entries], len(pairs.target.vocab))
    starts = np.searchsorted(source, np.arange(len(pairs.source.vocab) + 1))
    return LexiconTable(*(torch.from_numpy(column) for column in (starts, target, lexicon.probs[entries])))


def lexicon_text(table: LexiconTable, source: Vocab, target: Vocab) -> str:
    """Return lines of source TAB target TAB P(target | source), the most probable translation of a word first."""
    source_ids = np.repeat(np.arange(len(source)), table.starts.diff().cpu().numpy())  # (entries,)
    probs = table.probs.double().cpu().numpy()
    order = np.lexsort((-probs, source_ids))
    columns = (source_ids, table.words.cpu().numpy(), probs)
    entries = zip(*(column[order].tolist() for column in columns), strict=True)
    return "".join(f"{source.tokens[f]}\t{target.tokens[e]}\t{prob:.6f}\n" for f, e, prob in entries)


def saved_lexicon(arrays: Arrays, source_size: int, target_size: int) -> LexiconTable:
    """Return the lexicon in the arrays of a model directory, after checking it."""
    table = LexiconTable(*(torch.from_numpy(np.array(arrays[f"lexicon.{name}"])) for name in LexiconTable._fields))
    starts, entries = table.starts, len(table.words)
    dtypes = [tensor.dtype for tensor in table]
    if dtypes[:2] != [torch.int64, torch.int64] or not table.probs.is_floating_point() or table.probs.dim() != 1:
        raise ValueError("the lexicon has arrays of a wrong type")
    if not bool(((table.probs >= 0) & (table.probs <= 1 + 1e-6)).all()):
        raise ValueError("the lexicon has probabilities that are not between 0 and 1")
    fits = len(starts) == source_size + 1 and int(starts[0]) == 0 and int(starts[-1]) == entries == len(table.probs)
    if not fits or bool((starts.diff() < 0).any()):
        raise ValueError("the lexicon does not fit its vocabularies")
    if entries and not 0 <= int(table.words.min()) <= int(table.words.max()) < target_size:
        raise ValueError("the lexicon has words outside the vocabulary")
    return table


def check_source_format(settings: TranslatorConfig, source: Tokenizer) -> None:
    """Require trees for encoders that read trees, and text for the others."""
    if settings.reads_trees and source.format != TREE:
        remedy = "give trees with --src-format tree, or choose another --encoder"
        raise DataError(f"encoder {settings.encoder} reads bracketed trees, and the source is plain text; {remedy}")
    if source.format == TREE and not settings.reads_trees:
        raise DataError(
            f"encoder {settings.encoder} reads plain text; for trees choose --encoder tree-lstm or recursive"
        )


def gather_tokens(part: Tensor, flat_indices: Tensor) -> Tensor:
    """# (steps, pairs, ...) -> (tokens, ...)"""
    return part.flatten(0, 1).index_select(0, flat_indices)
