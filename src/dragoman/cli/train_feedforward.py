"""dragoman train feed-forward"""

from __future__ import annotations

from dragoman.cli.gradient_training import InitialVectors, TrainingOptions, train_network
from dragoman.cli.option_groups import with_option_groups
from dragoman.models.configs import FeedForwardConfig
from dragoman.training.config import FEED_FORWARD, TrainingConfig


@with_option_groups
def train_feedforward(
    options: TrainingOptions,
    model: FeedForwardConfig,
    word_vectors: InitialVectors = None,
    training: TrainingConfig = FEED_FORWARD,
) -> None:
    """Train a feed-forward neural network.

    The vectors of the previous words are the input of hidden layers, whose output gives the probabilities of all
    words. Similar words get similar vectors, so that the model generalises from one to the other.

    If training is interrupted, run the same command again to resume it.

    \b
    Example:
      dragoman train feed-forward --text train.txt --dev-text dev.txt --order 5 -o ff5
    """
    from dragoman.models.feedforward import FeedForwardModel

    train_network(FeedForwardModel, options, model, training, word_vectors)
