"""What the verbs that train neural networks have in common."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.gradient_training import TrainingOptions, train_with_gradients
from dragoman.cli.messages import info
from dragoman.cli.settings_options import CommandSettings
from dragoman.cli.training import TrainingData

if TYPE_CHECKING:
    from dragoman.data.vocabulary import Vocab
    from dragoman.data.word_vectors import WordVectors
    from dragoman.models.embedding_model import EmbeddingLanguageModel

InitialVectors = Annotated[
    str | None,
    typer.Option(
        "--word-vectors",
        metavar="FILE",
        help="Start with these vectors of words, in the text format of word2vec.",
        show_default=False,
    ),
]


def train_network(home: str, job: TrainingOptions, settings: CommandSettings, word_vectors: str | None) -> None:
    """Train a network of the class that lives at `module:Class`."""

    def create(material: TrainingData) -> EmbeddingLanguageModel:
        module, name = home.split(":")
        network: type[EmbeddingLanguageModel] = getattr(import_module(module), name)
        return network.create(
            material.corpus,
            settings.model,
            unknown=material.unknown,
            seed=settings.training.seed,
            vectors=_vectors(word_vectors, material.corpus.vocab),
        )

    train_with_gradients(job, create, settings.training)


def _vectors(path: str | None, vocab: Vocab) -> WordVectors | None:
    """The vectors of the model's words that a file has."""
    from dragoman.data.word_vectors import read_word_vectors

    if path is None:
        return None
    vectors = read_word_vectors(path, set(vocab.tokens))
    info(f"{path}: has {len(vectors):,} of {len(vocab):,} words (<s>, </s> and <unk> among them)")
    return vectors
