"""What a translator is made of: the encoder that its settings ask for, and its parameters before training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from dragoman.core.errors import DataError
from dragoman.models.softmax_model import output_parameters
from dragoman.models.translator_config import TranslatorConfig
from dragoman.nn.attention import SCORES
from dragoman.nn.attention_priors import Coverage, Fertility, Local, Markov, Position, Prior
from dragoman.nn.cells import CELLS
from dragoman.nn.class_softmax import WordClasses
from dragoman.nn.encoders import BACKWARD, FORWARD, ConvolutionalEncoder, Encoder, RecurrentEncoder, TreeEncoder
from dragoman.nn.init import PRECISIONS, glorot, uniform
from dragoman.nn.recurrent import first_layer

DIRECTIONS = {"forward": (FORWARD,), "reverse": (BACKWARD,), "bidirectional": (BACKWARD, FORWARD)}
M_SOURCE = "M_f"  # the vectors of source words
PRIORS: dict[str, Callable[[Any], Prior]] = {
    "position": Position,
    "markov": Markov,
    "fertility": Fertility,
    "coverage": Coverage,
    "local": Local,
}


def encoder_of(settings: TranslatorConfig) -> Encoder:
    """The encoder that the settings ask for."""
    if settings.reads_trees:
        return TreeEncoder(settings.encoder, settings.embedding, settings.encoder_size)
    if settings.encoder == "convolutional":
        pooled = (settings.pooling, settings.k_max)
        return ConvolutionalEncoder(settings.filters, settings.filter_width, *pooled, settings.embedding)
    return RecurrentEncoder(
        DIRECTIONS[settings.encoder],
        settings.cell,
        settings.encoder_layers,
        settings.embedding,
        settings.encoder_size,
    )


def priors_of(settings: TranslatorConfig) -> dict[str, Prior]:
    """The priors on attention that the settings ask for."""
    return {name: PRIORS[name](strength) for name, strength in settings.priors.items()}


def first_parameters(
    source_words: int, words: int, settings: TranslatorConfig, chance: Generator, classes: WordClasses | None
) -> dict[str, Tensor]:
    """Random matrices and zero biases of the sizes that the settings ask for."""
    dtype, encoder = PRECISIONS[settings.precision], encoder_of(settings)
    D = encoder.sizes().vectors if settings.attention != "none" else 0
    reach, shape = settings.embedding_reach, settings.embedding
    parts = {
        "": {
            M_SOURCE: uniform((source_words, shape), reach, chance, dtype),
            "M": uniform((words, shape), reach, chance, dtype),
        },
        "encoder.": encoder.first(chance, dtype),
        "bridge.": _first_bridge(settings, encoder, chance, dtype),
        "decoder.": _first_decoder(settings, D, chance, dtype),
        "attention.": _first_attention(settings, D, chance, dtype),
        **{
            f"prior.{name}.": prior.first(settings.hidden, D, chance, dtype)
            for name, prior in priors_of(settings).items()
        },
    }
    first = {prefix + name: tensor for prefix, part in parts.items() for name, tensor in part.items()}
    last = settings.hidden + D
    if settings.readout:
        first["readout.W"] = glorot(settings.readout, last, chance, dtype)
        first["readout.b"] = torch.zeros(settings.readout, dtype=dtype)
        last = settings.readout
    return first | output_parameters(words, last, settings, chance, classes)


def _first_bridge(
    settings: TranslatorConfig, encoder: Encoder, chance: Generator, dtype: torch.dtype
) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    ends, layers = encoder.sizes().ends, encoder.sizes().layers
    if settings.bridge == "copy":
        if ends != settings.hidden or layers < settings.layers:
            sizes = f"{layers} of {ends} in the encoder, {settings.layers} of {settings.hidden} in the decoder"
            raise DataError(f"bridge copy needs as many layers in both, and states of one length ({sizes})")
        return {}
    for layer in range(1, settings.layers + 1):
        for name in CELLS[settings.cell].state:
            found[f"W_{name}{layer}"] = glorot(settings.hidden, ends, chance, dtype)
            found[f"b_{name}{layer}"] = torch.zeros(settings.hidden, dtype=dtype)
    return found


def _first_decoder(settings: TranslatorConfig, D: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    H = settings.hidden
    for number in range(1, settings.layers + 1):
        inputs = settings.embedding if number == 1 else H
        layer = first_layer(settings.cell, inputs, H, chance, dtype)
        found |= {f"{name}{number}": tensor for name, tensor in layer._asdict().items()}
    if D:
        found["W_c"] = uniform((len(found["b1"]), D), H**-0.5, chance, dtype)
    return found


def _first_attention(settings: TranslatorConfig, D: int, chance: Generator, dtype: torch.dtype) -> dict[str, Tensor]:
    if not D:
        return {}
    hidden = settings.attention_hidden or settings.hidden
    return SCORES[settings.attention].first(settings.hidden, D, hidden, chance, dtype)
