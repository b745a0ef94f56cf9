"""dragoman train log-linear"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.configured import Configured, configured
from dragoman.cli.fitting import Choose, Job, train_by_gradients
from dragoman.cli.messages import say, suggest
from dragoman.cli.training import Material, UnknownChoice, VocabChoice

if TYPE_CHECKING:
    from dragoman.models.loglinear.model import LogLinearModel


@configured(
    model="dragoman.models.loglinear.config:LogLinearConfig", training="dragoman.training.recommended:LOG_LINEAR"
)
def train_loglinear(
    text: options.Text,
    output: options.Output,
    settings: Configured,
    dev_text: options.DevText = None,
    field: options.Field = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            metavar="FILE",
            help="Classes of words for features such as class1: `word TAB class` a line, or what dragoman cluster "
            "writes; brown:N finds N classes in the text. Default: brown:100, where features ask for classes.",
            show_default=False,
        ),
    ] = None,
    features_from: Annotated[
        Path | None,
        typer.Option(
            "--features-from", metavar="FILE.py", help="Python that defines features of your own.", show_default=False
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
    """

    def create(material: Material) -> LogLinearModel:
        from dragoman.models.loglinear.features import read_features
        from dragoman.models.loglinear.model import LogLinearModel

        if features_from is not None:
            read_features(features_from)
        given = _classes(classes, material, settings.model.features)
        model = LogLinearModel.create(material.corpus, settings.model, unknown=material.unknown, classes=given)
        for note in model.notes:
            say(note)
        return model

    words = VocabChoice(vocab, min_count, max_size, replace_singletons)
    job = Job(text, dev_text, field, words, UnknownChoice(unknown, unknown_total), output, force, choose)
    train_by_gradients(job, create, settings.training)
    suggest("explain", output, "the")


def _classes(given: str | None, material: Material, features: tuple[str, ...]) -> dict[str, str] | None:
    """The classes of words, if features ask for them."""
    from dragoman.cli.cluster import clustered, wanted_classes
    from dragoman.ngram.classes import read_classes

    if given is None and not any("class" in feature for feature in features):
        return None
    given = given or "brown:100"
    wanted = wanted_classes(given)
    if wanted is None:
        return read_classes(given)
    return dict(clustered(material.corpus, wanted).as_mapping())
