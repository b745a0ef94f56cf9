"""Settings of neural networks, in a module that does not import torch."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple, Self

from pydantic import AliasChoices, Field, PositiveInt, model_validator

from dragoman.core.settings import Settings
from dragoman.training.config import TrainingConfig

TREE_ENCODERS = ("recursive", "tree-lstm")  # encoders that read trees
PRIORS = ("position", "markov", "fertility", "coverage", "local")  # on attention
ORDER_PRIORS = ("position", "markov", "local")  # attention priors that depend on the order of words
MIN_LOCAL = 0.01  # words; attention to less is to no word at all
RECURRENT_ENCODERS = ("forward", "reverse", "bidirectional")
# Settings that apply to some encoders only.
ENCODERS_WITH_SETTING = {
    "encoder_layers": RECURRENT_ENCODERS,
    "encoder_hidden": (*RECURRENT_ENCODERS, *TREE_ENCODERS),
    **dict.fromkeys(("filters", "filter_width", "pooling", "k_max"), ("convolutional",)),
}


class NetworkConfig(Settings):
    """Settings of embedding and output layer."""

    embedding: int = Field(default=200, ge=1)
    """Embedding size."""
    embedding_reach: float = Field(default=0.1, gt=0)
    """Initial embeddings are random numbers between -X and X."""
    tied: bool = False
    """Use the embedding as output weights; the last hidden layer is projected to its size."""
    softmax: Literal["full", "frequency", "brown"] = "full"
    """Softmax over all words (full), or over classes and the words of a class, which trains faster: classes by
    frequency, or Brown classes."""
    softmax_classes: int | None = Field(default=None, ge=1)
    """Number of classes of the softmax. Default: the square root of the vocabulary size."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate of hidden layers."""
    embedding_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate of embeddings."""
    dtype: Literal["float32", "float64"] = Field(default="float32", validation_alias=AliasChoices("dtype", "precision"))
    """Type of the parameters; float64 needs twice the time and memory."""

    @model_validator(mode="after")
    def _check_softmax(self) -> Self:
        if self.softmax_classes is not None and self.softmax == "full":
            raise ValueError("softmax_classes is for the softmax frequency or brown; set softmax, or leave it out")
        return self


class FeedForwardConfig(NetworkConfig):
    """Settings of a feed-forward language model."""

    order: int = Field(default=5, ge=2, le=100)
    """Order n: a word is predicted from the n - 1 words before it."""
    hidden: tuple[PositiveInt, ...] = (400,)
    """Sizes of the hidden layers."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Activation function of hidden layers."""
    direct: bool = False
    """Also connect the embeddings directly with the output layer."""


class RecurrentConfig(NetworkConfig):
    """Settings of a recurrent language model."""

    cell: Literal["rnn", "lstm-without-forget-gate", "lstm", "gru"] = "lstm"
    """Recurrent cell: rnn is an Elman network, lstm has a forget gate, gru resets h before its matrix (torch: after)."""
    layers: int = Field(default=1, ge=1, le=100)
    """Number of recurrent layers."""
    hidden: int = Field(default=200, ge=1)
    """Hidden size of each layer."""
    residual: bool = False
    """Add the input of each layer to its output; --embedding and --hidden must be equal."""
    first_state: Literal["zero", "learned"] = "zero"
    """Initial state of a sentence, or with --carries of a text: zero or learned."""
    carries: bool = False
    """Start each sentence from the state after the one before. Training then reads the text as a stream with truncated
    back-propagation, as published results on the Penn Treebank do."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout rate of each layer's output."""
    variational: bool = False
    """Variational dropout: drop the same elements at every step of a sentence or segment."""
    weight_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate of the recurrent weights."""

    @model_validator(mode="after")
    def _check_residual(self) -> Self:
        if self.residual and self.embedding != self.hidden:
            sizes = f"embedding {self.embedding}, hidden {self.hidden}"
            raise ValueError(f"residual connections need layers of the same size ({sizes})")
        return self


class TranslatorConfig(NetworkConfig):
    """Settings of a translator."""

    encoder: Literal["forward", "reverse", "bidirectional", "convolutional", "recursive", "tree-lstm"] = "bidirectional"
    """Encoder: recurrent from left to right (forward), from right to left (reverse) or both (bidirectional),
    convolutional, or over trees (recursive, tree-lstm: for --src-format tree)."""
    attention: Literal["none", "dot", "bilinear", "mlp"] = "mlp"
    """Attention score; none: an encoder-decoder without attention."""
    cell: Literal["rnn", "lstm-without-forget-gate", "lstm", "gru"] = "lstm"
    """Recurrent cell of decoder and encoder: rnn is an Elman network, lstm has a forget gate, gru resets h
    before its matrix (torch: after)."""
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
    """Weight of the fertility loss: the squared difference of expected and actual attention per word. Needs --fertility."""
    supervision: float = Field(default=0.0, ge=0)
    """Weight of the supervision loss: attention should follow a word alignment; 0: none."""
    symmetry: float = Field(default=0.0, ge=0)
    """Weight of the agreement with the attention of a translator in the other direction, which is trained as well; 0:
    none. Writes two translators, forward and backward."""
    lexicon: bool = False
    """Add a lexicon bias to the softmax: translations of the attended words, from an alignment model of the training
    pairs. For small corpora."""
    lexicon_floor: float = Field(default=0.001, ge=1e-9)
    """Number added to lexicon probabilities; the smaller, the stronger the lexicon bias."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout rate of the outputs of layers."""

    @model_validator(mode="after")
    def _check_local(self) -> Self:
        if 0 < self.local < MIN_LOCAL:
            raise ValueError(f"local {self.local} is narrower than {MIN_LOCAL} words; widen it, or use 0 for none")
        return self

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


def inapplicable_setting(settings: TranslatorConfig, given: Collection[str]) -> tuple[str, str] | None:
    """Return the first setting that cannot be used with the others and the reason, or None."""
    for name, encoders in ENCODERS_WITH_SETTING.items():
        if name in given and settings.encoder not in encoders:
            return name, f"requires the encoder {' or '.join(encoders)}, not {settings.encoder}"
    attention, priors = settings.attention, settings.priors
    has_attention = attention != "none"
    attends_to_words = has_attention and not settings.reads_trees
    order_priors = [name for name in priors if name in ORDER_PRIORS] if settings.reads_trees else []
    lexicon_fits = attends_to_words and settings.softmax == "full"
    has_unused_size = "attention_hidden" in given and attention != "mlp"
    rules: list[tuple[str, object, str]] = [  # a setting, whether it cannot be used, and the reason
        ("attention_hidden", has_unused_size, f"requires mlp attention, not {attention}"),
        *((name, not has_attention, "requires attention") for name in priors),
        *((name, True, "depends on word order and cannot be used with a tree encoder") for name in order_priors),
        ("hard", settings.hard and not has_attention, "requires attention"),
        ("fertility_penalty", settings.fertility_penalty and not settings.fertility, "requires fertility"),
        ("supervision", settings.supervision and not attends_to_words, "requires attention over words"),
        ("symmetry", settings.symmetry and not attends_to_words, "requires attention over words"),
        ("lexicon", settings.lexicon and not lexicon_fits, "requires attention over words and a full softmax"),
        ("lexicon_floor", "lexicon_floor" in given and not settings.lexicon, "requires a lexicon (--lexicon)"),
        ("k_max", "k_max" in given and settings.pooling != "k-max", f"requires k-max pooling, not {settings.pooling}"),
    ]
    return next(((name, reason) for name, wrong, reason in rules if wrong), None)


class SizePreset(NamedTuple):
    """Settings of a translator and its training that depend on the number of training pairs."""

    model: dict[str, float]
    training: dict[str, int]


# For fewer than this many training pairs: fewer pairs need smaller networks, more dropout and more epochs.
SIZE_PRESETS: dict[float, SizePreset] = {
    3_000: SizePreset(
        {"tied": True, "embedding": 96, "hidden": 128, "readout": 96, "dropout": 0.4, "embedding_dropout": 0.2},
        {"max_epochs": 30, "batch_size": 200, "warmup": 50},
    ),
    20_000: SizePreset(
        {"tied": True, "embedding": 192, "hidden": 256, "readout": 192, "dropout": 0.4, "embedding_dropout": 0.2},
        {"max_epochs": 12, "batch_size": 400},
    ),
    100_000: SizePreset(
        {"tied": True, "embedding": 256, "hidden": 384, "readout": 256, "dropout": 0.3, "embedding_dropout": 0.2},
        {"max_epochs": 10},
    ),
    math.inf: SizePreset(
        {"tied": True, "embedding": 256, "hidden": 512, "readout": 256, "dropout": 0.2, "embedding_dropout": 0.1},
        {"max_epochs": 10, "batch_size": 1500},
    ),
}


def size_preset(pairs: int) -> SizePreset:
    """Return settings for this many training pairs."""
    return next(preset for limit, preset in SIZE_PRESETS.items() if pairs < limit)


def with_size_preset(
    pairs: int, model: TranslatorConfig, training: TrainingConfig, given: Mapping[str, Collection[str]]
) -> tuple[TranslatorConfig, TrainingConfig]:
    """Return settings in which those that are not `given`, by section, are chosen by the number of training pairs."""
    preset = size_preset(pairs)
    sizes = {name: value for name, value in preset.model.items() if name not in given["model"]}
    limits = {name: value for name, value in preset.training.items() if name not in given["training"]}
    return model.model_copy(update=sizes), training.model_copy(update=limits)
