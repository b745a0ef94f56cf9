"""dragoman train log-linear"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.gradient_training import GradientTrainingOptions, train_with_gradients
from dragoman.cli.messages import info, suggest_command
from dragoman.cli.option_groups import GivenSettings, option, with_option_groups
from dragoman.core.errors import DataError
from dragoman.models.loglinear.config import LogLinearConfig
from dragoman.training.config import LOG_LINEAR, TrainingConfig

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus

DEFAULT_CLASSES = 100
HELP = """Train a log-linear (maximum entropy) model.

The score of a next word is the sum of the weights of features of the words before it, and the softmax of the scores
gives probabilities. Features are the last word (word1), the one before (word2), both (word1+word2), the class or suffix
of a word (class1, suffix1), all words of the sentence so far (bag), or custom Python functions.

If training is interrupted, run the same command again to resume it.

\b
Example:
  dragoman train log-linear --text train.txt --dev-text dev.txt -o maxent
  dragoman train log-linear --text train.txt --dev-text dev.txt -o more --features 5-gram,word1+word3,suffix1,bag
  dragoman train log-linear --from maxent --text new.txt --dev-text new-dev.txt -o maxent-new
  dragoman explain maxent "farmers eat"

\b
Custom features, in features.py:
  import dragoman
  @dragoman.atom("capital")        # of a word: capital1 and capital1+word2 are then features
  def capital(word):
      return "yes" if word[0].isupper() else None
  @dragoman.feature("question")    # of all words before
  def question(words):
      return ["question"] if words and words[0] in ("who", "what") else []

Then: --features-from features.py --features 5-gram,capital1,question. For other commands, set the
environment variable DRAGOMAN_FEATURES to features.py.
"""


@with_option_groups
def train_loglinear(
    options: GradientTrainingOptions,
    given: GivenSettings,
    model_config: LogLinearConfig,
    classes: Annotated[
        str | None,
        option(
            "--classes FILE",
            "Word classes for features such as class1: lines `word TAB class`, or from dragoman cluster; brown:N finds "
            "N classes in the text. Default: brown:100, or fewer for a text of few words, if features use classes.",
            panel="Data",
        ),
    ] = None,
    features_from: Annotated[
        Path | None, option("--features-from FILE.py", "Python file that defines your own features.", panel="Model")
    ] = None,
    training_config: TrainingConfig = LOG_LINEAR,
) -> None:
    from dragoman.models.loglinear import features
    from dragoman.models.loglinear.model import LogLinearModel

    features.load_environment_features()
    if features_from is not None:
        features.load_feature_file(features_from)
    atoms = features.distinct_atoms(features.parse_features(model_config.features))
    has_classes = any(atom.table == "class" for atom in atoms)
    if classes is not None and not has_classes:
        remedy = "add such a feature to --features, for example class1, or remove --classes"
        raise DataError(f"--classes {classes}: no feature uses classes; {remedy}")

    options = options.connected(training_config)
    base, training_config = options.start_training(LogLinearModel, model_config, training_config, given)
    if base is not None and classes is not None:
        raise DataError("--from has word classes already, if it needs them; remove --classes")
    data = options.read_texts(base, training_config)

    def create() -> LogLinearModel:
        if base is not None:
            return deepcopy(base)
        word_classes = _word_classes(classes, data.corpus) if has_classes else None
        created = LogLinearModel.create(data.corpus, model_config, unknown=data.unknown, classes=word_classes)
        for note in created.notes:
            info(note)
        return created

    train_with_gradients(options, data, create, training_config, given["training"])
    if features_from is not None:
        info(f"to use this model, set the file of its features: export DRAGOMAN_FEATURES={features_from}")
    suggest_command("explain", options.output, "the")


train_loglinear.__doc__ = HELP


def _word_classes(choice: str | None, corpus: Corpus) -> dict[str, str]:
    """Read word classes from a file, or find them in the text."""
    from dragoman.cli.cluster import cluster_with_progress, parse_class_count
    from dragoman.data.vocabulary import SPECIALS
    from dragoman.ngram.class_model import read_classes

    if choice is None:
        num_words = sum(word >= len(SPECIALS) for word in set(corpus.ids.tolist()))
        number = min(DEFAULT_CLASSES, num_words // 2)
        if number < 2:
            return {}
    elif (given := parse_class_count(choice)) is not None:
        number = given
    else:
        return read_classes(choice)
    return dict(cluster_with_progress(corpus, number).as_mapping())
