"""The encoder, bridge and decoder of a translator, from its settings."""

from __future__ import annotations

from typing import Any

import torch

from dragoman.core.errors import DataError
from dragoman.models.translator_config import TranslatorConfig
from dragoman.nn.attention import SCORES, Attention
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

DIRECTIONS = {
    "forward": (LEFT_TO_RIGHT,),
    "reverse": (RIGHT_TO_LEFT,),
    "bidirectional": (RIGHT_TO_LEFT, LEFT_TO_RIGHT),
}


def create_encoder(
    settings: TranslatorConfig, dtype: torch.dtype
) -> RecurrentEncoder | ConvolutionalEncoder | TreeEncoder:
    """Return the encoder that the settings ask for."""
    rates: Any = {"embedding_dropout": settings.embedding_dropout, "dropout": settings.dropout}
    if settings.reads_trees:
        return TreeEncoder(settings.encoder, settings.embedding, settings.encoder_size, **rates, dtype=dtype)
    if settings.encoder == "convolutional":
        filters = (settings.filters, settings.filter_width, settings.pooling, settings.k_max)
        return ConvolutionalEncoder(*filters, settings.embedding, **rates, dtype=dtype)
    sizes = (settings.encoder_layers, settings.embedding, settings.encoder_size)
    return RecurrentEncoder(DIRECTIONS[settings.encoder], settings.cell, *sizes, **rates, dtype=dtype)


def create_bridge(settings: TranslatorConfig, encoder: Encoder, dtype: torch.dtype) -> Bridge:
    """Return the bridge from encoder to decoder."""
    copy = settings.bridge == "copy"
    if copy and (encoder.state_size != settings.hidden or encoder.num_layers < settings.layers):
        layers = f"{encoder.num_layers} of {encoder.state_size} in the encoder"
        sizes = f"{layers}, {settings.layers} of {settings.hidden} in the decoder"
        raise DataError(f"bridge copy needs as many layers in both, with states of the same length ({sizes})")
    sizes_of_states = (encoder.state_size, settings.hidden)
    return Bridge(settings.cell, settings.layers, *sizes_of_states, copy=copy, dtype=dtype)


def create_decoder(settings: TranslatorConfig, context_size: int, dtype: torch.dtype) -> Decoder:
    """Return the decoder; without attention the context size is 0."""
    attention = None
    if settings.attention != "none":
        hidden_size = settings.attention_hidden or settings.hidden
        score = SCORES[settings.attention](settings.hidden, context_size, hidden_size, dtype=dtype)
        priors = {
            name: PRIORS[name](value, settings.hidden, context_size, dtype=dtype)
            for name, value in settings.priors.items()
        }
        attention = Attention(score, priors, hard=settings.hard)
    return Decoder(
        *(settings.cell, settings.layers, settings.embedding, settings.hidden),
        *(attention, context_size),
        dropout=settings.dropout,
        dtype=dtype,
    )
