"""dragoman train translator"""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dragoman.cli.fine_tuning import FromOptions, ReplayPairOptions
from dragoman.cli.main import seconds_since_start
from dragoman.cli.messages import info, status, suggest_command, warn, warn_if_mostly_unknown
from dragoman.cli.option_groups import GivenSettings, option, with_option_groups
from dragoman.cli.options import Force, Output, prepare_training_output
from dragoman.cli.processes import connect_processes
from dragoman.cli.progress import fit_with_progress
from dragoman.cli.translator_options import TextOptions, TokenizerOptions
from dragoman.core.errors import DataError
from dragoman.models.configs import TranslatorConfig, size_preset
from dragoman.training.config import TRANSLATOR, TrainingConfig

if TYPE_CHECKING:
    from dragoman.cli.progress import TrainingTexts
    from dragoman.data.tokenizer import LinePairs
    from dragoman.models.planning import StoredRun
    from dragoman.models.translator import Translator
    from dragoman.models.translator_training import TrainingSetup
    from dragoman.training.fit import FitResult
    from dragoman.training.pace import TimeReserve

CHOSEN_BY_SIZE = {
    **size_preset(0).model,
    **size_preset(0).training,
}  # the preset of the smallest texts has all settings


@partial(
    with_option_groups,
    default_texts={
        **dict.fromkeys(CHOSEN_BY_SIZE, "by the text and the time"),
        "minutes": "until the dev loss stops improving",
    },
)
def train_translator(
    texts: TextOptions,
    output: Output,
    tokenizers: TokenizerOptions,
    start: FromOptions,
    replay: ReplayPairOptions,
    given: GivenSettings,
    model_config: TranslatorConfig,
    training_config: TrainingConfig = TRANSLATOR,
    shortlist: Annotated[
        str,
        option(
            "--shortlist auto|none",
            "auto: make a shortlist for the search, and keep it if the dev text is translated no worse and clearly "
            "faster with it. none: search over all words.",
        ),
    ] = "auto",
    force: Force = False,
) -> None:
    """Train a translator: an encoder-decoder with attention.

    Two texts or --pairs, -o and --minutes are all you need. The speed of this machine is measured, and the model and
    its settings are chosen so that training is done after these minutes. Without --minutes, training ends when the dev
    loss stops improving. If it is interrupted, run the same command again to resume it.

    The text needs no preparation: it is split into words, subwords or characters as it fits, and translations have
    capitals, punctuation and spaces. Words with their pronunciations, or other pairs of words, are text as well.

    \b
    Example:
      dragoman train translator --src train.de --tgt train.en --dev-src dev.de --dev-tgt dev.en -o de-en --minutes 20
      dragoman train translator --pairs memory.tmx --src-lang de --tgt-lang en -o de-en --minutes 20
      dragoman train translator --pairs words.tsv -o pronunciation --minutes 5
      dragoman train translator --src train.de --tgt train.en --attention none --encoder reverse -o plain
      dragoman train translator --from de-en --src new.de --tgt new.en --dev-src new-dev.de --dev-tgt new-dev.en -o new
    """
    from dragoman.evaluation.task_scores import token_kind
    from dragoman.models.planning import StoredRun
    from dragoman.models.translator_training import describe_data
    from dragoman.training.agreement import replaces_run

    if shortlist not in ("auto", "none"):
        raise DataError(f"--shortlist {shortlist}: choose auto or none")
    start.check_output(output)
    processes = connect_processes(training_config.device)
    force = replaces_run(processes, output, force=force)
    processes.from_main(lambda: prepare_training_output(output, force=force))
    stored = None if force else StoredRun.read(output)
    setup, base = _set_up(texts, tokenizers, start, (model_config, training_config, given), stored)
    units_were_chosen = tokenizers.chooses_units and base is None
    for message in (
        *setup.messages,
        *describe_data(setup, units_were_chosen=units_were_chosen, is_continued=bool(base)),
    ):
        info(message)
    data, old_dev = _encode_texts(setup, texts, replay)
    shortlist_seconds = _shortlist_seconds(shortlist, setup)
    reserve = _reserve_for_dev(data, base, shortlist_seconds)
    result = fit_with_progress(
        setup.translator,
        data,
        setup.training,
        output,
        given["training"],
        force=force,
        token_name=token_kind(setup.translator.target),
        elapsed_seconds=seconds_since_start(),
        reserve=reserve,
    )
    if not processes.is_main:
        return
    minutes = setup.training.minutes
    share = 1.0 if minutes is None else reserve.share_within(60 * minutes, result.prediction_seconds)
    options = {
        "is_pair_file": texts.pair_file.pairs is not None,
        "with_shortlist": shortlist_seconds is not None,
        "is_resumed": stored is not None,
    }
    _report(result, output, setup, old_dev, base, share, **options)


def _set_up(
    texts: TextOptions,
    tokenizers: TokenizerOptions,
    start: FromOptions,
    settings: tuple[TranslatorConfig, TrainingConfig, GivenSettings],
    stored: StoredRun | None,
) -> tuple[TrainingSetup, Translator | None]:
    """Read the texts and create a translator, or load the one of --from. Return also the latter, before any changes."""
    from dragoman.models.copying import knows_placeholders
    from dragoman.models.translator import Translator
    from dragoman.models.translator_training import (
        check_translator_data,
        is_planned,
        set_up_fine_tuning,
        set_up_training,
        with_placeholders,
    )

    model_config, training_config, given = settings
    with status("reading"):
        base = start.load(Translator, model_config, given["model"])
        lines, dev = texts.with_languages(base).read()
        check_translator_data(lines, base.settings if base else model_config, given["model"])
    if stored is None and is_planned(training_config, given):
        info("preparing the texts, and measuring how fast a translator is trained here")
    if base is not None:
        tokenizers.check_unused(start)
        base = base.for_text(
            lines.source,
            lines.target,
            keep_tokenised=True,
            source_language=lines.languages.source,
            target_language=lines.languages.target,
        )
        new_text = with_placeholders(lines) if texts.placeholders else lines
        translator = start.extend_translator(deepcopy(base), new_text, tokenizers.min_count)
        if texts.placeholders and not knows_placeholders(translator.source):
            raise DataError("--placeholders: the translator of --from does not know them; add --extend-vocabulary")
        with status("preparing the texts and choosing settings"):
            tuning = training_config, given, stored, seconds_since_start
            return set_up_fine_tuning(translator, lines, dev, *tuning, placeholders=texts.placeholders), base
    with status("preparing the texts and choosing settings"):
        data = tokenizers.encode, lines, dev
        start_up = lines.languages, stored, seconds_since_start
        placeholders = tokenizers.check_placeholders(texts.placeholders)
        return set_up_training(*data, *settings, *start_up, placeholders=placeholders), None


def _encode_texts(
    setup: TrainingSetup, texts: TextOptions, replay: ReplayPairOptions
) -> tuple[TrainingTexts, LinePairs | None]:
    """Encode the dev text and the old texts, and align the training texts. Return also the lines of the old dev text."""
    from dragoman.models.input_checks import pair_warnings
    from dragoman.models.translator_training import add_alignments, encode_pairs

    with status("reading"):
        old_lines, old_dev_lines = replay.read(setup.training, texts.pair_file, (texts.src_field, texts.tgt_field))
        dev = None
        if setup.dev is not None:
            dev = encode_pairs(setup.dev, setup.translator)
            warn_if_mostly_unknown(dev.source, setup.dev.name)
            warn_if_mostly_unknown(dev.target, texts.dev_tgt or texts.dev_pairs or setup.dev.name)
            names = texts.dev_src or setup.dev.name, texts.dev_tgt or setup.dev.name
            languages = setup.translator.source, setup.translator.target
            for message in pair_warnings(*languages, (setup.dev.source, setup.dev.target), names):
                warn(message)
        old_dev = None if old_dev_lines is None else encode_pairs(old_dev_lines, setup.translator)
    with status("aligning the training pairs"):
        pairs, old = add_alignments(setup.pairs, setup.translator, setup.lines, texts.alignments), None
        if old_lines is not None:
            old = add_alignments(encode_pairs(old_lines, setup.translator), setup.translator, old_lines, None)
    return (pairs, dev, old, old_dev), old_dev_lines


def _shortlist_seconds(shortlist: str, setup: TrainingSetup) -> float | None:
    """Return how long an aligner for a shortlist takes; None if there will be no shortlist."""
    from dragoman.combine.shortlist_choice import (
        alignment_seconds,
        describe_missing_shortlist,
        has_time_for_shortlist,
        may_use_shortlist,
        num_learned_pairs,
    )

    if shortlist == "none":
        return None
    if not may_use_shortlist(setup.translator, setup.dev):
        if reason := describe_missing_shortlist(setup.translator, setup.dev):
            info(f"no shortlist is made, because {reason}")
        return None
    if not has_time_for_shortlist(setup.pairs, setup.training.minutes):
        info("no shortlist is made, because an aligner takes too much of the time")
        return None
    if (number := num_learned_pairs(setup.pairs)) < len(setup.pairs):
        info(f"at the end, a shortlist is learned from {number:,} of {len(setup.pairs):,} pairs")
    return alignment_seconds(setup.pairs)


def _reserve_for_dev(data: TrainingTexts, base: Translator | None, shortlist_seconds: float | None) -> TimeReserve:
    """Return the time for translating the dev texts: after training, and before it with the model of --from.

    If there may be a shortlist, the dev text is translated with and without it.
    """
    from dragoman.models.planning import reserve_for_search

    _, dev, _, old_dev = data
    predictions = sum(int(text.sizes.sum()) for text in (dev, old_dev) if text is not None)
    again = 0 if dev is None or shortlist_seconds is None else int(dev.sizes.sum())
    return reserve_for_search(predictions if base is None else 2 * predictions, again, shortlist_seconds or 0.0)


def _report(
    result: FitResult,
    output: Path,
    setup: TrainingSetup,
    old_dev: LinePairs | None,
    base: Translator | None,
    share: float,
    *,
    is_pair_file: bool,
    with_shortlist: bool,
    is_resumed: bool,
) -> None:
    """Print what the translator does with a share of the dev texts, and what to do next."""
    from dragoman.models.dev_report import model_directories, report_on_dev

    translators = model_directories(output, setup.translator)
    with_aligner = "learning a shortlist, and " if with_shortlist else ""
    with status(f"{with_aligner}translating the dev text"):
        report = report_on_dev(result, translators, setup, old_dev, base, share, chooses_shortlist=with_shortlist)
    for line in report.lines:
        info(line)
    path = next(iter(translators))
    info(f"{path}: {seconds_since_start():,.1f} seconds in {'this process' if is_resumed else 'total'}")
    if report.is_usable:
        suggest_command("translate", path)
        files = ("--pairs", "FILE") if is_pair_file else ("--src", "FILE", "--ref", "FILE")
        suggest_command("evaluate", path, *files)
