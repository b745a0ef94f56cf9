"""The output layers that settings ask for, and the word classes of a class-factored softmax."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Generator, nn

from dragoman.core.errors import DataError
from dragoman.data.brown import brown_clusters
from dragoman.data.corpus import Corpus
from dragoman.models.base import SavedModel
from dragoman.models.network_config import NetworkConfig
from dragoman.nn.init import empty_linear, reset_linear
from dragoman.nn.output import ClassFactoredSoftmax, FullSoftmax, OutputLayer
from dragoman.nn.word_classes import WordClasses, frequency_classes

CLASSES = "output.class_of"  # the word classes in the state of a model


def create_projection(hidden_size: int, settings: NetworkConfig, dtype: torch.dtype) -> nn.Linear | None:
    """Return the layer that brings a hidden vector to the length of the embedding, if a tied output needs one."""
    if not settings.tied or hidden_size == settings.embedding:
        return None
    return empty_linear(hidden_size, settings.embedding, dtype=dtype)


def create_output(
    words: int,
    hidden_size: int,
    settings: NetworkConfig,
    classes: WordClasses | None,
    dtype: torch.dtype,
    direct_size: int = 0,
) -> FullSoftmax | ClassFactoredSoftmax:
    """Return the output layer of a network whose last hidden layer has this length."""
    size = settings.embedding if settings.tied else hidden_size
    if classes is None:
        return FullSoftmax(words, size, tied=settings.tied, direct_size=direct_size, dtype=dtype)
    return ClassFactoredSoftmax(classes, size, tied=settings.tied, direct_size=direct_size, dtype=dtype)


def reset_output(projection: nn.Linear | None, output: OutputLayer, generator: Generator) -> None:
    """Draw initial parameters of projection and output layer."""
    if projection is not None:
        reset_linear(projection, generator)
    output.reset_parameters(generator)


def softmax_classes(corpus: Corpus, settings: NetworkConfig) -> WordClasses | None:
    """Return the word classes of the softmax, or None for a full softmax."""
    number = settings.softmax_classes or max(1, round(math.sqrt(len(corpus.vocab))))
    match settings.softmax:
        case "frequency":
            counts = np.bincount(corpus.ids_with_boundaries(starts=0), minlength=len(corpus.vocab))
            return frequency_classes(counts, number)
        case "brown":
            return WordClasses.from_numbers(brown_clusters(corpus, number).class_of)
        case _:
            return None


def saved_classes(saved: SavedModel, settings: NetworkConfig) -> WordClasses | None:
    """Return the word classes in a model directory, or None for a full softmax."""
    if settings.softmax == "full":
        return None
    class_of = saved.arrays[CLASSES]
    if class_of.shape != (len(saved.vocab),):
        raise DataError(f"{saved.path}: classes and vocabulary do not fit; the model directory is broken")
    return WordClasses.from_numbers(np.array(class_of))
