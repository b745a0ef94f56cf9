"""dragoman train log-linear"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.gradient_training import TrainingOptions, train_with_gradients
from dragoman.cli.messages import info, suggest_command
from dragoman.cli.option_groups import with_option_groups
from dragoman.cli.training import TrainingData
from dragoman.core.errors import DataError
from dragoman.models.loglinear.config import LogLinearConfig
from dragoman.training.config import TrainingConfig
from dragoman.training.presets import LOG_LINEAR

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.models.loglinear.model import LogLinearModel

CLASSES = 100  # that are found in the text, where features ask for classes and none are given

Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="FILE",
        help="Classes of words for features such as class1: `word TAB class` a line, or what dragoman cluster writes; "
        "brown:N finds N classes in the text. Default: brown:100, or less in a text of few words, where features ask "
        "for classes.",
        show_default=False,
    ),
]
FeaturesFrom = Annotated[
    Path | None,
    typer.Option(
        "--features-from", metavar="FILE.py", help="Python that defines features of your own.", show_default=False
    ),
]


@with_option_groups
def train_loglinear(
    job: TrainingOptions,
    model: LogLinearConfig,
    classes: Classes = None,
    features_from: FeaturesFrom = None,
    training: TrainingConfig = LOG_LINEAR,
) -> None:
    """Train a log-linear (maximum entropy) model.

    Features of the words before push next words up and down; the softmax makes probabilities of the sums. Features are
    what you can think of: the last word (word1), the one before (word2), both together (word1+word2), the class or the
    ending of a word (class1, suffix1), all words of the sentence so far (bag), or your own in a few lines of Python.

    Training that is stopped (Ctrl-C) or killed goes on where it was when the same command is run again.

    \b
    Example:
      dragoman train log-linear --text train.txt --dev-text dev.txt -o maxent
      dragoman train log-linear --text train.txt --dev-text dev.txt -o more --features 5-gram,word1+word3,suffix1,bag
      dragoman explain maxent "farmers eat"

    \b
    Features of your own, in own.py:
      import dragoman
      @dragoman.atom("capital")        # of a word: then capital1 and capital1+word2 are features
      def capital(word):
          return "yes" if word[0].isupper() else None
      @dragoman.feature("question")    # of all words before
      def question(words):
          return ["question"] if words and words[0] in ("who", "what") else []

    Then: --features-from own.py --features 5-gram,capital1,question; other verbs find own.py by the environment
    variable DRAGOMAN_FEATURES.
    """

    def create(material: TrainingData) -> LogLinearModel:
        from dragoman.models.loglinear.model import LogLinearModel

        given = _classes(classes, material.corpus) if has_classes else None
        created = LogLinearModel.create(material.corpus, model, unknown=material.unknown, classes=given)
        for note in created.notes:
            info(note)
        return created

    has_classes = _ask_for_classes(model.features, features_from)
    if classes is not None and not has_classes:
        remedy = "add one that does to --features, such as class1, or leave --classes out"
        raise DataError(f"--classes {classes}: none of the features looks at classes; {remedy}")
    train_with_gradients(job, create, training)
    if features_from is not None:
        info(f"to use this model, tell where its features are: export DRAGOMAN_FEATURES={features_from}")
    suggest_command("explain", job.output, "the")


def _ask_for_classes(features: tuple[str, ...], file: Path | None) -> bool:
    """Whether any feature looks at the classes of words, once those that the user defined are known."""
    from dragoman.models.loglinear.features import atoms_of, parse, read_environment_features, read_features

    read_environment_features()
    if file is not None:
        read_features(file)
    return any(atom.table == "class" for atom in atoms_of(parse(features)))


def _classes(given: str | None, corpus: Corpus) -> dict[str, str]:
    """The classes of words: from a file, or found in the text."""
    from dragoman.cli.cluster import cluster_with_progress, parse_class_count
    from dragoman.ngram.class_model import read_classes

    if given is None:
        wanted = _usual_classes(corpus)
        if wanted < 2:
            return {}  # of two or three words, each is a class of its own
    elif (number := parse_class_count(given)) is None:
        return read_classes(given)
    else:
        wanted = number
    return dict(cluster_with_progress(corpus, wanted).as_mapping())


def _usual_classes(corpus: Corpus) -> int:
    """How many classes to find if nobody says: fewer where the text has few words, that there be something to merge."""
    from dragoman.data.vocabulary import SPECIALS

    words = sum(word >= len(SPECIALS) for word in set(corpus.ids.tolist()))
    return min(CLASSES, words // 2)
