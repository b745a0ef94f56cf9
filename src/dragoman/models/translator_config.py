"""Settings of translators, in a module that does not import torch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from pydantic import Field

from dragoman.models.network_config import NetworkConfig

TREE_ENCODERS = ("recursive", "tree-lstm")  # encoders that read trees
PRIORS = ("position", "markov", "fertility", "coverage", "local")  # on attention
ORDER_PRIORS = ("position", "markov", "local")  # attention priors that depend on the order of words


class TranslatorConfig(NetworkConfig):
    """Settings of a translator."""

    encoder: Literal["forward", "reverse", "bidirectional", "convolutional", "recursive", "tree-lstm"] = "bidirectional"
    """Encoder: recurrent from left to right (forward), from right to left (reverse) or both (bidirectional),
    convolutional, or over trees (recursive, tree-lstm: for --src-format tree)."""
    attention: Literal["none", "dot", "bilinear", "mlp"] = "mlp"
    """Attention score; none: an encoder-decoder without attention."""
    cell: Literal["rnn", "lstm-without-forget-gate", "lstm", "gru"] = "lstm"
    """Recurrent cell of decoder and encoder: rnn is an Elman network, lstm has a forget gate, gru has the tutorial's
    equations."""
    layers: int = Field(default=1, ge=1, le=100)
    """Number of recurrent layers of the decoder."""
    hidden: int = Field(default=256, ge=1)
    """Hidden size of each layer of the decoder."""
    encoder_layers: int = Field(default=1, ge=1, le=100)
    """Number of layers of a recurrent encoder."""
    encoder_hidden: int | None = Field(default=None, ge=1)
    """Hidden size of the encoder, per direction. Default: the decoder's, or half of it for two directions."""
    attention_hidden: int | None = Field(default=None, ge=1)
    """Hidden units of mlp attention. Default: the hidden size of the decoder."""
    bridge: Literal["copy", "tanh"] = "tanh"
    """Initial state of the decoder: the final state h of the encoder, which must have the same size (copy), or
    tanh(W h + b)."""
    readout: int = Field(default=0, ge=0)
    """Size of a tanh layer before the softmax; 0: none."""
    filters: int = Field(default=256, ge=1)
    """Number of filters of the convolutional encoder."""
    filter_width: int = Field(default=3, ge=1)
    """Width of a filter in words."""
    pooling: Literal["average", "max", "k-max"] = "max"
    """Pooling of the convolutional encoder, for the initial state of the decoder."""
    k_max: int = Field(default=3, ge=1)
    """Number of values per filter of k-max pooling."""
    hard: bool = False
    """Hard attention: use one source word at a time, sampled in training."""
    position: float = Field(default=0.0, ge=0)
    """Initial strength of the position prior: attention near the diagonal; 0: none. Strengths are learned."""
    markov: float = Field(default=0.0, ge=0)
    """Initial strength of the Markov prior: attention after the words attended to last; 0: none."""
    fertility: float = Field(default=0.0, ge=0)
    """Initial strength of the fertility prior: less attention to words that have been translated; 0: none."""
    coverage: int = Field(default=0, ge=0)
    """Hidden units of the coverage prior, which learns from the attention so far; 0: none."""
    local: float = Field(default=0.0, ge=0)
    """Width in words of local attention around a position that the decoder predicts; 0: none."""
    fertility_penalty: float = Field(default=0.0, ge=0)
    """Weight of the fertility loss: the squared difference of expected and actual attention per word. Needs fertility."""
    supervision: float = Field(default=0.0, ge=0)
    """Weight of the supervision loss: attention should follow a word alignment; 0: none."""
    symmetry: float = Field(default=0.0, ge=0)
    """Weight of the agreement with the attention of a translator in the other direction, which is trained as well; 0:
    none. Writes two translators, forward and backward."""
    lexicon: bool = False
    """Add a lexicon bias to the softmax: translations of the attended words, from an alignment model of the training
    pairs. For small corpora."""
    lexicon_floor: float = Field(default=0.001, gt=0)
    """Number added to lexicon probabilities; the smaller, the stronger the lexicon bias."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout rate of the outputs of layers."""

    @property
    def reads_trees(self) -> bool:
        return self.encoder in TREE_ENCODERS

    @property
    def priors(self) -> dict[str, float]:
        """The attention priors in use, with their strengths or sizes."""
        return {name: getattr(self, name) for name in PRIORS if getattr(self, name)}

    @property
    def encoder_size(self) -> int:
        """Hidden size of the encoder, per direction."""
        if self.encoder_hidden is not None:
            return self.encoder_hidden
        return max(1, self.hidden // 2) if self.encoder == "bidirectional" else self.hidden


RECURRENT_ENCODERS = ("forward", "reverse", "bidirectional")
# Settings that apply to some encoders only.
ENCODERS_WITH_SETTING = {
    "encoder_layers": RECURRENT_ENCODERS,
    "encoder_hidden": (*RECURRENT_ENCODERS, *TREE_ENCODERS),
    **dict.fromkeys(("filters", "filter_width", "pooling", "k_max"), ("convolutional",)),
}


def inapplicable_setting(settings: TranslatorConfig, given: Collection[str]) -> tuple[str, str] | None:
    """Return the first setting that cannot be used with the others and the reason, or None."""
    for name, encoders in ENCODERS_WITH_SETTING.items():
        if name in given and settings.encoder not in encoders:
            return name, f"requires the encoder {' or '.join(encoders)}, not {settings.encoder}"
    if "attention_hidden" in given and settings.attention != "mlp":
        return "attention_hidden", f"requires mlp attention, not {settings.attention}"
    has_attention = settings.attention != "none"
    if settings.priors and not has_attention:
        return next(iter(settings.priors)), "requires attention"
    if settings.reads_trees and (wrong := [name for name in settings.priors if name in ORDER_PRIORS]):
        return wrong[0], "depends on word order and cannot be used with a tree encoder"
    if settings.hard and not has_attention:
        return "hard", "requires attention"
    if settings.fertility_penalty and not settings.fertility:
        return "fertility_penalty", "requires fertility"
    attends_to_words = has_attention and not settings.reads_trees
    if settings.supervision and not attends_to_words:
        return "supervision", "requires attention over words"
    if settings.symmetry and not attends_to_words:
        return "symmetry", "requires attention over words"
    if settings.lexicon and not (attends_to_words and settings.softmax == "full"):
        return "lexicon", "requires attention over words and a full softmax"
    if "lexicon_floor" in given and not settings.lexicon:
        return "lexicon_floor", "requires a lexicon (--lexicon)"
    if "k_max" in given and settings.pooling != "k-max":
        return "k_max", f"requires k-max pooling, not {settings.pooling}"
    return None


def size_preset(pairs: int) -> dict[str, Any]:
    """Return settings for this many training pairs: smaller networks and more dropout for fewer pairs."""
    common = {"tied": True}
    if pairs < 3_000:
        return common | {"embedding": 96, "hidden": 128, "readout": 96, "dropout": 0.4, "embedding_dropout": 0.2}
    if pairs < 20_000:
        return common | {"embedding": 192, "hidden": 256, "readout": 192, "dropout": 0.4, "embedding_dropout": 0.2}
    if pairs < 100_000:
        return common | {"embedding": 256, "hidden": 384, "readout": 256, "dropout": 0.3, "embedding_dropout": 0.2}
    return common | {"embedding": 256, "hidden": 512, "readout": 256, "dropout": 0.2, "embedding_dropout": 0.1}
