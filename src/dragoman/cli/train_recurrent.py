"""dragoman train recurrent"""

from __future__ import annotations

from dragoman.cli.gradient_training import TrainingOptions
from dragoman.cli.network_training import InitialVectors, train_network
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.settings_options import CommandSettings, with_settings


@with_settings(model="dragoman.models.recurrent_config:RecurrentConfig", training="dragoman.training.presets:RECURRENT")
@with_option_groups
def train_recurrent(job: TrainingOptions, settings: CommandSettings, word_vectors: InitialVectors = None) -> None:
    """Train a recurrent neural network: an RNN, an LSTM or a GRU.

    Words are read one by one into a hidden state, from which the next is predicted: nothing limits how far back the
    words are that matter. With --carries the state goes on from sentence to sentence.

    Training that is stopped (Ctrl-C) or killed goes on where it was when the same command is run again.

    \b
    Example:
      dragoman train recurrent --text train.txt --dev-text dev.txt --hidden 400 --dropout 0.3 -o lstm
    """
    train_network("dragoman.models.recurrent:RecurrentModel", job, settings, word_vectors)
