"""dragoman train feed-forward"""

from __future__ import annotations

from dragoman.cli.gradient_training import TrainingOptions
from dragoman.cli.network_training import InitialVectors, train_network
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.settings_options import CommandSettings, with_settings


@with_settings(
    model="dragoman.models.feedforward_config:FeedForwardConfig", training="dragoman.training.presets:FEED_FORWARD"
)
@with_option_groups
def train_feedforward(job: TrainingOptions, settings: CommandSettings, word_vectors: InitialVectors = None) -> None:
    """Train a feed-forward neural network.

    The words before the next one become vectors, these a hidden layer, and that the probabilities of all words. Words
    that behave alike get similar vectors, so what was learned of one serves the others.

    Training that is stopped (Ctrl-C) or killed goes on where it was when the same command is run again.

    \b
    Example:
      dragoman train feed-forward --text train.txt --dev-text dev.txt --order 5 -o ff5
    """
    train_network("dragoman.models.feedforward:FeedForwardModel", job, settings, word_vectors)
