"""dragoman train feed-forward"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.configured import Configured, configured
from dragoman.cli.fitting import Choose, Job, train_by_gradients
from dragoman.cli.messages import say
from dragoman.cli.training import Material, UnknownChoice, VocabChoice

if TYPE_CHECKING:
    from dragoman.models.feedforward import FeedForwardModel
    from dragoman.text.vocab import Vocab
    from dragoman.text.word_vectors import WordVectors


@configured(
    model="dragoman.models.feedforward_config:FeedForwardConfig", training="dragoman.training.recommended:FEED_FORWARD"
)
def train_feedforward(
    text: options.Text,
    output: options.Output,
    settings: Configured,
    dev_text: options.DevText = None,
    field: options.Field = None,
    word_vectors: Annotated[
        str | None,
        typer.Option(
            "--word-vectors",
            metavar="FILE",
            help="Start with these vectors of words, in the text format of word2vec.",
            show_default=False,
        ),
    ] = None,
    choose: Choose = None,
    vocab: options.VocabOf = None,
    min_count: options.MinCount = 1,
    max_size: options.MaxSize = None,
    replace_singletons: options.ReplaceSingletons = False,
    unknown: options.Unknown = None,
    unknown_total: options.UnknownTotal = None,
    force: options.Force = False,
) -> None:
    """Train a feed-forward neural network.

    The words before the next one become vectors, these a hidden layer, and that the probabilities of all words. Words
    that behave alike get similar vectors, so what was learned of one serves the others.

    Training that is stopped (Ctrl-C) or killed goes on where it was when the same command is run again.

    \b
    Example:
      dragoman train feed-forward --text train.txt --dev-text dev.txt --order 5 -o ff5
    """

    def create(material: Material) -> FeedForwardModel:
        from dragoman.models.feedforward import FeedForwardModel

        return FeedForwardModel.create(
            material.corpus,
            settings.model,
            unknown=material.unknown,
            seed=settings.training.seed,
            vectors=_vectors(word_vectors, material.corpus.vocab),
        )

    words = VocabChoice(vocab, min_count, max_size, replace_singletons)
    job = Job(text, dev_text, field, words, UnknownChoice(unknown, unknown_total), output, force, choose)
    train_by_gradients(job, create, settings.training)


def _vectors(path: str | None, vocab: Vocab) -> WordVectors | None:
    """The vectors of the model's words that a file has."""
    from dragoman.text.word_vectors import read_word_vectors

    if path is None:
        return None
    vectors = read_word_vectors(path, set(vocab.words))
    say(f"{path}: has {len(vectors):,} of {len(vocab):,} words (<s>, </s> and <unk> among them)")
    return vectors
