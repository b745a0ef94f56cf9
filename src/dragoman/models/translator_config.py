"""The settings of a translator; apart from it, as telling them must not wait for torch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from pydantic import Field

from dragoman.models.network_config import NetworkConfig

TREE_ENCODERS = ("recursive", "tree-lstm")  # encoders that read trees
PRIORS = ("position", "markov", "fertility", "coverage", "local")  # on attention
ORDER_PRIORS = ("position", "markov", "local")  # those that go by the order of what is attended to


class TranslatorConfig(NetworkConfig):
    """The shape of a translator."""

    encoder: Literal["forward", "reverse", "bidirectional", "convolutional", "recursive", "tree-lstm"] = "bidirectional"
    """How the source is read: word by word from the left, from the right or both; by filters; or along a tree
    (recursive, tree-lstm: for --src-format tree)."""
    attention: Literal["none", "dot", "bilinear", "mlp"] = "mlp"
    """How the words of the source are weighed for each word of the translation; none: a plain encoder-decoder."""
    cell: Literal["rnn", "lstm-without-forget-gate", "lstm", "gru"] = "lstm"
    """The recurrence of decoder and encoder: rnn is Elman's, lstm has a forget gate, gru is the tutorial's."""
    layers: int = Field(default=1, ge=1, le=100)
    """Recurrent layers of the decoder."""
    hidden: int = Field(default=256, ge=1)
    """Length of the hidden state of each layer of the decoder."""
    encoder_layers: int = Field(default=1, ge=1, le=100)
    """Layers of an encoder that reads word by word."""
    encoder_hidden: int | None = Field(default=None, ge=1)
    """Length of the encoder's hidden state, of each direction if it has two. Default: that its vectors are as long as
    the decoder's."""
    attention_hidden: int | None = Field(default=None, ge=1)
    """Hidden units of mlp attention. Default: as many as the decoder has."""
    bridge: Literal["copy", "tanh"] = "tanh"
    """How the decoder begins: with the encoder's last state as it is, which must be as long; or with
    tanh(W h + b) of it."""
    readout: int = Field(default=0, ge=0)
    """Length of a tanh layer between state and context and the softmax; 0: none."""
    filters: int = Field(default=256, ge=1)
    """Filters of the convolutional encoder."""
    filter_width: int = Field(default=3, ge=1)
    """Words that such a filter sees."""
    pooling: Literal["average", "max", "k-max"] = "max"
    """How what filters found becomes the decoder's first state."""
    k_max: int = Field(default=3, ge=1)
    """How many of a filter's largest values k-max pooling takes."""
    hard: bool = False
    """Whether attention looks at one word instead of all by their weights; learned by drawing one, with a baseline."""
    position: float = Field(default=0.0, ge=0)
    """How strongly attention is drawn to the diagonal, to begin with: it is learned; 0: not at all."""
    markov: float = Field(default=0.0, ge=0)
    """How strongly it is drawn to the words after those looked at last; 0: not at all."""
    fertility: float = Field(default=0.0, ge=0)
    """How strongly it is drawn away from words that have become as many as they are expected to; 0: not at all."""
    coverage: int = Field(default=0, ge=0)
    """Hidden units by which attention learns from how much each word was looked at so far; 0: it does not."""
    local: float = Field(default=0.0, ge=0)
    """Words in a window that the decoder predicts, outside of which attention fades; 0: there is none."""
    fertility_penalty: float = Field(default=0.0, ge=0)
    """How much it costs in training if a word becomes more or fewer than expected; with fertility."""
    supervision: float = Field(default=0.0, ge=0)
    """How much it costs in training to look elsewhere than the pairs' alignment says; 0: there is none."""
    symmetry: float = Field(default=0.0, ge=0)
    """How much it is worth in training that this attention and that of a translator back, trained beside it, agree;
    0: there is none. Writes two translators, forward and backward."""
    lexicon: bool = False
    """Whether words that an alignment model finds in the training pairs as translations of the source words looked at
    are given a boost in the softmax; for small corpora."""
    lexicon_floor: float = Field(default=0.001, gt=0)
    """What is added to such a word's probability before it is taken for a factor: the smaller, the larger the boost."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Share of the outputs of layers that is left out at random in training."""

    @property
    def reads_trees(self) -> bool:
        return self.encoder in TREE_ENCODERS

    @property
    def priors(self) -> dict[str, float]:
        """The priors on attention that are asked for, with their strengths or sizes."""
        return {name: getattr(self, name) for name in PRIORS if getattr(self, name)}

    @property
    def encoder_size(self) -> int:
        """Length of the encoder's hidden state, of each direction."""
        if self.encoder_hidden is not None:
            return self.encoder_hidden
        return max(1, self.hidden // 2) if self.encoder == "bidirectional" else self.hidden


RECURRENT_ENCODERS = ("forward", "reverse", "bidirectional")
# Settings that mean something for some encoders, or with some attention, alone.
ENCODERS_WITH_SETTING = {
    "encoder_layers": RECURRENT_ENCODERS,
    "encoder_hidden": (*RECURRENT_ENCODERS, *TREE_ENCODERS),
    **dict.fromkeys(("filters", "filter_width", "pooling", "k_max"), ("convolutional",)),
}


def inapplicable_setting(settings: TranslatorConfig, given: Collection[str]) -> str:
    """Of what was given, the first setting that means nothing beside the others, with the reason; else nothing."""
    for name, encoders in ENCODERS_WITH_SETTING.items():
        if name in given and settings.encoder not in encoders:
            return f"{name} is for the encoder {' or '.join(encoders)}, not for {settings.encoder}"
    if "attention_hidden" in given and settings.attention != "mlp":
        return f"attention_hidden is for mlp attention, not for {settings.attention}"
    if settings.priors and settings.attention == "none":
        return f"{next(iter(settings.priors))} is for attention, and there is none"
    if settings.reads_trees and (wrong := [name for name in settings.priors if name in ORDER_PRIORS]):
        return f"{wrong[0]} goes by the order of words, and what is attended to is a tree"
    if settings.hard and settings.attention == "none":
        return "hard is for attention, and there is none"
    if settings.fertility_penalty and not settings.fertility:
        return "fertility_penalty is for fertility, and there is none"
    if settings.supervision and (settings.attention == "none" or settings.reads_trees):
        return "supervision is for attention to words"
    if settings.symmetry and (settings.attention == "none" or settings.reads_trees):
        return "symmetry is for attention to words"
    if settings.lexicon and (settings.attention == "none" or settings.reads_trees or settings.softmax != "full"):
        return "lexicon is for attention to words, and a full softmax"
    if "lexicon_floor" in given and not settings.lexicon:
        return "lexicon_floor is for a lexicon (--lexicon)"
    if "k_max" in given and settings.pooling != "k-max":
        return f"k_max is for k-max pooling, not for {settings.pooling}"
    return ""


def size_preset(pairs: int) -> dict[str, Any]:
    """Settings that suit so many training pairs: the fewer there are, the smaller the network, and the more is left
    out at random."""
    common = {"tied": True}
    if pairs < 3_000:
        return common | {"embedding": 96, "hidden": 128, "readout": 96, "dropout": 0.4, "embedding_dropout": 0.2}
    if pairs < 20_000:
        return common | {"embedding": 192, "hidden": 256, "readout": 192, "dropout": 0.4, "embedding_dropout": 0.2}
    if pairs < 100_000:
        return common | {"embedding": 256, "hidden": 384, "readout": 256, "dropout": 0.3, "embedding_dropout": 0.2}
    return common | {"embedding": 256, "hidden": 512, "readout": 256, "dropout": 0.2, "embedding_dropout": 0.1}
