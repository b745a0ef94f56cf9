"""What `dragoman train translator` decides before training, and what it reports afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.main import seconds_since_start
from dragoman.cli.messages import info, status, suggest_command
from dragoman.data.held_out import default_size, hold_out
from dragoman.io.model_card import has_scores
from dragoman.models.configs import TranslatorConfig, with_size_preset
from dragoman.models.planning import EncodedPairs, StoredRun, TranslatorPlanner
from dragoman.models.translator_training import explain_poor_result, score_on_dev, score_text
from dragoman.training.config import TrainingConfig, for_fine_tuning

if TYPE_CHECKING:
    from dragoman.cli.option_groups import GivenSettings
    from dragoman.cli.train_translator import TokenizerOptions
    from dragoman.data.tokenizer import LinePairs
    from dragoman.models.translator import Translator
    from dragoman.training.fit import FitResult

MIN_PAIRS_TO_HOLD_OUT = 200
MAX_HELD_OUT = 1_000


@dataclass(frozen=True)
class TrainingSetup:
    """Data and settings of a training run."""

    lines: LinePairs
    dev: LinePairs | None
    data: EncodedPairs
    model: TranslatorConfig
    training: TrainingConfig


def choose_settings(
    tokenizers: TokenizerOptions,
    lines: LinePairs,
    dev_lines: LinePairs | None,
    model_config: TranslatorConfig,
    training_config: TrainingConfig,
    given: GivenSettings,
    output: Path,
    *,
    force: bool,
) -> TrainingSetup:
    """Choose the settings that are not given: those of a run to resume, by a plan, or by the size of the text."""
    stored = None if force else StoredRun.read(output)
    is_limited = bool(given["training"] & {"max_epochs", "max_updates"})
    if dev_lines is None and (not is_limited if stored is None else stored.has_dev):
        lines, dev_lines = _hold_out_dev(lines)
    if stored is not None:
        if stored.units is not None and tokenizers.units == "auto" and tokenizers.vocab_from is None:
            source, target = stored.units
            tokenizers = replace(tokenizers, units=source, tgt_units=tokenizers.tgt_units or target)
        settings = stored.apply(model_config, training_config, given)
        return TrainingSetup(lines, dev_lines, tokenizers.encode(lines), *settings)
    if is_limited:
        data = tokenizers.encode(lines)
        return TrainingSetup(
            lines, dev_lines, data, *with_size_preset(len(data.pairs), model_config, training_config, given)
        )
    planner = TranslatorPlanner(partial(tokenizers.encode, lines), dev_lines, model_config, training_config, given)
    with status("measuring the speed of training"):
        plan = planner.plan(training_config.minutes, seconds_since_start)
    info(f"plan: {plan.describe()}")
    if training_config.minutes is None:
        info(f"training ends when the dev loss stops improving, after at most {plan.training.minutes:g} minutes")
    return TrainingSetup(lines, dev_lines, plan.data, plan.model, plan.training)


def _hold_out_dev(lines: LinePairs) -> tuple[LinePairs, LinePairs | None]:
    """Take some of the training pairs as dev text, unless there are very few."""
    if len(lines.source) < MIN_PAIRS_TO_HOLD_OUT:
        return lines, None
    with status("holding out a dev text"):
        train, dev = hold_out([lines.source, lines.target], min(MAX_HELD_OUT, default_size(len(lines.source))))
    info(
        f"no dev text: {len(dev):,} of the pairs are held out for it; another one is given with --dev-src and --dev-tgt"
    )
    return lines.select(train), replace(lines.select(dev), name="the held-out pairs")


def settings_for_fine_tuning(
    lines: LinePairs,
    dev_lines: LinePairs | None,
    data: EncodedPairs,
    model_config: TranslatorConfig,
    training_config: TrainingConfig,
    given: GivenSettings,
) -> TrainingSetup:
    """Choose settings to train a translator further: the time, if it is given, is the only limit."""
    model_config, training = with_size_preset(len(data.pairs), model_config, training_config, given)
    if training.minutes is not None and "max_epochs" not in given["training"]:
        training = training.model_copy(update={"max_epochs": None})
    return TrainingSetup(lines, dev_lines, data, model_config, for_fine_tuning(training, given["training"]))


def report_translator(
    result: FitResult,
    trained: Mapping[Path, Translator],
    dev: LinePairs | None,
    old_dev: LinePairs | None,
    base: Translator | None,
    share: float,
    pairs: int,
) -> None:
    """Print what a translator, or two of opposite directions, do with the dev texts, and what to do next.

    Args:
        result: The result of training.
        trained: Translators by their directories.
        dev: The dev text.
        old_dev: The dev text of the training before.
        base: The translator before training, if it was trained further.
        share: Share of the dev text to translate.
        pairs: Number of training pairs.
    """
    usable = True
    is_scored = result.already_finished and all(map(has_scores, trained))
    for (path, model), lines in zip(trained.items(), (dev, dev and dev.reversed), strict=False):
        if lines is None or is_scored:
            continue
        texts = {"dev": lines} if old_dev is None else {"dev": lines, "old dev": old_dev}
        with status("translating the dev text"):
            before = {name: score_text(base, text, share) for name, text in texts.items()} if base is not None else {}
            scores = score_on_dev(path, model, texts, share)
        for name, score in before.items():
            info(f"before training: {name} text: {score}")
        for name, score in scores.items():
            part = f" ({score.sentences:,} of {len(texts[name].source):,} sentences)" if share < 1 else ""
            info(f"{path}: {name} text{part}: {score}")
        for example in scores["dev"].examples:
            info(f"  source       {example.source}")
            info(f"  translation  {example.translation}")
            info(f"  reference    {example.reference}")
        if not scores["dev"].is_usable:
            info(f"these translations are not usable: {explain_poor_result(scores['dev'], pairs, result.epochs)}")
            usable = False
    path = next(iter(trained))
    info(f"{path}: {seconds_since_start():,.1f} seconds in total")
    if usable:
        suggest_command("translate", path)
        suggest_command("evaluate", path, "--src", "FILE", "--ref", "FILE")
