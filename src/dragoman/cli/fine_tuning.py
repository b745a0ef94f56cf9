"""Options of training that starts from a trained model, and of old text that is replayed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.messages import info, warn
from dragoman.cli.option_groups import OptionGroup, option
from dragoman.core.errors import DataError

if TYPE_CHECKING:
    from dragoman.cli.options import PairFileOptions
    from dragoman.core.settings import Settings
    from dragoman.data.tokenizer import LinePairs
    from dragoman.models.fine_tuning import N
    from dragoman.models.neural import EmbeddingLanguageModel
    from dragoman.models.translator import Translator
    from dragoman.training.config import TrainingConfig


@dataclass(frozen=True)
class FromOptions(OptionGroup):
    """A trained model to start from."""

    panel = "Fine-tuning"

    from_model: Annotated[
        Path | None,
        option(
            "--from DIR",
            "Start from the parameters of this model, with its vocabulary and architecture. Learning rate and warm-up "
            "are a quarter of the usual ones unless they are given.",
        ),
    ] = None
    extend_vocabulary: Annotated[
        bool,
        option(
            "--extend-vocabulary",
            "Add the words or characters of the new text that the model of --from lacks; to subwords, new ones for what "
            "it cannot write or splits badly.",
        ),
    ] = False

    def check_output(self, output: Path) -> None:
        """Raise an error if the model of --from would be overwritten."""
        if self.from_model is not None and self.from_model.resolve() == output.resolve():
            remedy = "give a new directory; to train it longer on the same text, repeat its command with more --minutes"
            raise DataError(f"-o {output}: this is the model of --from; {remedy}")

    def load(self, model_class: type[N], settings: Settings, given: Collection[str]) -> N | None:
        """Load the model of --from, if there is one. `given` are the names of the settings that replace its own."""
        from dragoman.models.fine_tuning import load_for_training

        if self.from_model is not None:
            return load_for_training(self.from_model, model_class, settings, given)
        if self.extend_vocabulary:
            raise DataError("--extend-vocabulary extends the vocabulary of a trained model; name it with --from DIR")
        return None

    def extend_translator(self, model: Translator, lines: LinePairs, min_count: int | None) -> Translator:
        """Add new tokens of the texts to a translator, if requested."""
        if not self.extend_vocabulary:
            return model
        written = model.for_text(lines.source, lines.target)  # new tokens may have capitals and punctuation
        extended = written.extend_vocabulary(lines.source, lines.target, min_count=min_count)
        sizes = len(extended.source_vocab) - len(model.source_vocab), len(extended.vocab) - len(model.vocab)
        info("vocabularies extended by {:,} and {:,} tokens".format(*sizes))
        return extended

    def extend_language_model(
        self, model: EmbeddingLanguageModel, lines: list[str], min_count: int
    ) -> EmbeddingLanguageModel:
        """Add new tokens of the text to a language model, if requested."""
        from dragoman.data.segmenters import token_name

        if not self.extend_vocabulary:
            return model
        extended = model.extend_vocabulary(lines, min_count=min_count)
        tokens = f"{token_name(model.vocab.segmenter)}s"
        info(f"vocabulary extended by {len(extended.vocab) - len(model.vocab):,} {tokens}")
        return extended


@dataclass(frozen=True)
class ReplayTextOptions(OptionGroup):
    """Old text of a language model."""

    panel = "Fine-tuning"

    replay: Annotated[
        str | None,
        option("--replay FILE", "Old text, against forgetting: a sample of it is --replay-share of every epoch."),
    ] = None
    replay_dev_text: Annotated[
        str | None,
        option("--replay-dev-text FILE", "Old held-out text: its perplexity is shown beside that of --dev-text."),
    ] = None

    def check(self, training: TrainingConfig) -> None:
        warn_of_unused_share(self.replay, training, "--replay FILE")


@dataclass(frozen=True)
class ReplayPairOptions(OptionGroup):
    """Old sentence pairs of a translator."""

    panel = "Fine-tuning"

    replay_src: Annotated[
        str | None,
        option(
            "--replay-src FILE",
            "Old source text, against forgetting: a sample of the old pairs is --replay-share of every epoch.",
        ),
    ] = None
    replay_tgt: Annotated[str | None, option("--replay-tgt FILE", "Translation of --replay-src.")] = None
    replay_pairs: Annotated[str | None, option("--replay-pairs FILE", "Old sentence pairs, as --pairs.")] = None
    replay_dev_src: Annotated[
        str | None,
        option("--replay-dev-src FILE", "Old held-out source text: its scores are shown beside those of --dev-src."),
    ] = None
    replay_dev_tgt: Annotated[str | None, option("--replay-dev-tgt FILE", "Translation of --replay-dev-src.")] = None

    replay_dev_pairs: Annotated[str | None, option("--replay-dev-pairs FILE", "Old held-out pairs, as --pairs.")] = None

    def read(
        self, training: TrainingConfig, pair_file: PairFileOptions, fields: tuple[str | None, str | None]
    ) -> tuple[LinePairs | None, LinePairs | None]:
        """Return the old training pairs and the old dev pairs; files are read as those of --pairs, --src and --tgt."""
        warn_of_unused_share(self.replay_src or self.replay_pairs, training, "--replay-src and --replay-tgt")
        old = (self.replay_pairs, self.replay_src, self.replay_tgt)
        old_dev = (self.replay_dev_pairs, self.replay_dev_src, self.replay_dev_tgt)
        texts: list[LinePairs | None] = []
        for name, (pairs, src, tgt) in (("replay", old), ("replay-dev", old_dev)):
            if (src is None) != (tgt is None):
                raise DataError(f"--{name}-src and --{name}-tgt must be given together")
            if pairs is None and src is None:
                texts.append(None)
                continue
            reader = replace(pair_file, pairs=pairs, rejected=None)
            texts.append(reader.read(src, tgt, *fields, f"--{name}-src, --{name}-tgt"))
        return texts[0], texts[1]


def warn_of_unused_share(old_text: str | None, training: TrainingConfig, names: str) -> None:
    """Warn if there is a share of old text, and no old text."""
    if old_text is None and training.replay_share != type(training)().replay_share:
        warn(f"--replay-share has no effect without an old text; give it with {names}")
