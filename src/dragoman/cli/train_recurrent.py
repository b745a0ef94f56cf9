"""dragoman train recurrent"""

from __future__ import annotations

from dragoman.cli.gradient_training import InitialVectors, TrainingOptions, train_network
from dragoman.cli.option_groups import with_option_groups
from dragoman.models.configs import RecurrentConfig
from dragoman.training.config import RECURRENT, TrainingConfig


@with_option_groups
def train_recurrent(
    options: TrainingOptions,
    model: RecurrentConfig,
    word_vectors: InitialVectors = None,
    training: TrainingConfig = RECURRENT,
) -> None:
    """Train a recurrent neural network: RNN, LSTM or GRU.

    The network reads one word after the other into a hidden state and predicts the next word from it, so that words
    far back can have an influence. With --carries the state is kept from one sentence to the next.

    If training is interrupted, run the same command again to resume it.

    \b
    Example:
      dragoman train recurrent --text train.txt --dev-text dev.txt --hidden 400 --dropout 0.3 -o lstm
    """
    from dragoman.models.recurrent import RecurrentModel

    train_network(RecurrentModel, options, model, training, word_vectors)
