"""dragoman train feed-forward, dragoman train recurrent"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.gradient_training import GradientTrainingData, GradientTrainingOptions, train_with_gradients
from dragoman.cli.main import seconds_since_start
from dragoman.cli.messages import info, status
from dragoman.cli.option_groups import GivenSettings, option, with_option_groups
from dragoman.core.errors import DataError
from dragoman.models.configs import FeedForwardConfig, RecurrentConfig
from dragoman.training.config import FEED_FORWARD, RECURRENT, TrainingConfig

if TYPE_CHECKING:
    from dragoman.models.configs import NetworkConfig
    from dragoman.models.neural import EmbeddingLanguageModel

InitialVectors = Annotated[
    str | None,
    option("--word-vectors FILE", "Initial word vectors, in the text format of word2vec.", panel="Data"),
]


@with_option_groups
def train_feedforward(
    options: GradientTrainingOptions,
    given: GivenSettings,
    model_config: FeedForwardConfig,
    word_vectors: InitialVectors = None,
    training_config: TrainingConfig = FEED_FORWARD,
) -> None:
    """Train a feed-forward neural network.

    The vectors of the previous words are the input of hidden layers, whose output gives the probabilities of all
    words. Similar words get similar vectors, so that the model generalises from one to the other.

    If training is interrupted, run the same command again to resume it.

    \b
    Example:
      dragoman train feed-forward --text train.txt --dev-text dev.txt --order 5 -o ff5
      dragoman train feed-forward --from ff5 --text new.txt --dev-text new-dev.txt -o ff5-new
    """
    from dragoman.models.feedforward import FeedForwardModel

    _train(FeedForwardModel, options, given, model_config, training_config, word_vectors)


@with_option_groups
def train_recurrent(
    options: GradientTrainingOptions,
    given: GivenSettings,
    model_config: RecurrentConfig,
    word_vectors: InitialVectors = None,
    training_config: TrainingConfig = RECURRENT,
) -> None:
    """Train a recurrent neural network: RNN, LSTM or GRU.

    The network reads one word after the other into a hidden state and predicts the next word from it, so that words
    far back can have an influence. With --carries, the state at the end of a sentence is the first state of the next.

    If training is interrupted, run the same command again to resume it.

    \b
    Example:
      dragoman train recurrent --text train.txt --dev-text dev.txt --hidden 400 --dropout 0.3 -o lstm
      dragoman train recurrent --from lstm --text new.txt --dev-text new-dev.txt --replay train.txt -o lstm-new
    """
    from dragoman.models.recurrent import RecurrentModel

    _train(RecurrentModel, options, given, model_config, training_config, word_vectors)


def _train(
    network: type[EmbeddingLanguageModel],
    options: GradientTrainingOptions,
    given: GivenSettings,
    model_config: NetworkConfig,
    training_config: TrainingConfig,
    word_vectors: str | None,
) -> None:
    from dragoman.data.word_vectors import read_word_vectors

    options = options.connected(training_config)
    base, training_config = options.start_training(network, model_config, training_config, given)
    if base is not None and word_vectors is not None:
        raise DataError("--from has word vectors already; remove --word-vectors")
    data = options.read_texts(base, training_config)
    if base is None and not options.choose:
        model_config, training_config = _choose_settings(network, options, data, model_config, training_config, given)

    def create() -> EmbeddingLanguageModel:
        if base is not None:
            return deepcopy(base)
        vocab, vectors = data.corpus.vocab, None
        if word_vectors is not None:
            vectors = read_word_vectors(word_vectors, set(vocab.tokens))
            info(f"{word_vectors}: has {len(vectors):,} of {len(vocab):,} words (including <s>, </s> and <unk>)")
        return network.create(
            data.corpus, model_config, unknown=data.unknown, seed=training_config.seed, vectors=vectors
        )

    train_with_gradients(options, data, create, training_config, given["training"])


def _choose_settings(
    network: type[EmbeddingLanguageModel],
    options: GradientTrainingOptions,
    data: GradientTrainingData,
    model_config: NetworkConfig,
    training_config: TrainingConfig,
    given: GivenSettings,
) -> tuple[NetworkConfig, TrainingConfig]:
    """Choose settings that are not given: those of a run to resume, or by the time."""
    from dragoman.models.planning import StoredRun, plan_language_model

    stored = None if options.force else StoredRun.read(options.output)
    if stored is not None:
        return stored.apply(model_config, training_config, given)
    minutes = training_config.minutes
    is_limited = bool(given["training"] & {"max_epochs", "max_updates"})
    if minutes is None and (is_limited or data.dev is None):
        return model_config, training_config
    settings = model_config, training_config, given, minutes, seconds_since_start
    info("measuring how fast a model is trained here")
    with status("measuring the speed of training"):
        plan = plan_language_model(network, data.corpus, data.dev, *settings)
    info(f"plan: {plan.describe()}")
    if minutes is None:
        info(f"training ends when the dev loss stops improving, after at most {plan.training.minutes:g} minutes")
    return plan.model, plan.training
