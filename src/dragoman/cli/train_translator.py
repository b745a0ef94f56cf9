"""dragoman train translator"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli import options
from dragoman.cli.messages import info, status, suggest_command, warn_if_mostly_unknown
from dragoman.cli.option_groups import GivenSettings, OptionGroup, with_option_groups
from dragoman.cli.pair_options import (
    DevSrc,
    DevTgt,
    LinePairs,
    Src,
    SrcField,
    Tgt,
    TgtField,
    TokenizerOptions,
    encode_pairs,
    read_pairs,
)
from dragoman.cli.progress import training_progress
from dragoman.core.errors import DataError
from dragoman.models.translator_config import TranslatorConfig
from dragoman.training.config import TrainingConfig
from dragoman.training.presets import TRANSLATOR

if TYPE_CHECKING:
    from dragoman.data.corpus import ParallelCorpus
    from dragoman.models.translator import Translator
    from dragoman.models.two_way import TwoWayTranslator


@dataclass(frozen=True, kw_only=True)
class TranslatorTrainingOptions(OptionGroup):
    """The texts of a training, and where its model goes."""

    panel = "Data"

    src: Src
    tgt: Tgt
    output: options.Output
    dev_src: DevSrc = None
    dev_tgt: DevTgt = None
    src_field: SrcField = None
    tgt_field: TgtField = None
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            metavar="FILE",
            help="With --supervision: which words of the pairs belong together, 0-0 1-2 ... a line. Without, that is "
            "found in the pairs (see dragoman align).",
            show_default=False,
        ),
    ] = None
    force: options.Force = False


UNITS = {"word": "word", "char": "character"}  # what is predicted; any other kind of unit is a piece of a word
MANY_UNKNOWN = 0.03  # share of a training text
BY_SIZE = "by the number of training pairs"
CHOSEN = ("embedding", "hidden", "readout", "tied", "dropout", "embedding_dropout", "max_epochs", "batch_size")


@with_option_groups(default_texts=dict.fromkeys(CHOSEN, BY_SIZE))
def train_translator(
    job: TranslatorTrainingOptions,
    sides: TokenizerOptions,
    given: GivenSettings,
    model: TranslatorConfig,
    training: TrainingConfig = TRANSLATOR,
) -> None:
    """Train a translator: an encoder-decoder with attention.

    Sizes that are not given are chosen by the number of training pairs, and told. Raw text is cut into subwords, which
    are learned here and kept with the model: capitals, punctuation and spacing come back in its translations.

    Training that is stopped (Ctrl-C) or killed goes on where it was when the same command is run again.

    \b
    Example:
      dragoman train translator --src train.de --tgt train.en --dev-src dev.de --dev-tgt dev.en -o de-en --minutes 20
      dragoman train translator --src train.de --tgt train.en --attention none --encoder reverse -o plain
    """
    from dragoman.io.model_card import has_scores
    from dragoman.io.storage import CHECKPOINT_FILE, check_output_directory

    began = perf_counter()
    if not (job.output / CHECKPOINT_FILE).is_file():
        check_output_directory(job.output, replace=job.force)
    with status("reading"):
        lines, dev_lines = read_pairs(job.src, job.tgt, job.src_field, job.tgt_field), _dev(job)
        pairs, trained = _created(lines, sides, model, training.seed, given)
        dev = None if dev_lines is None else encode_pairs(dev_lines, trained.source, trained.target)
    if dev is not None and dev_lines is not None:
        warn_if_mostly_unknown(dev.source.as_corpus(), dev_lines.name)
        warn_if_mostly_unknown(dev.target, f"{job.dev_tgt}")
        _doubt_sides(lines, dev_lines)
    _tell_sizes(trained, pairs, chosen=sides.units == "auto" and sides.vocab_from is None)
    pairs = _aligned(job, trained, lines, pairs)
    finished_before = _train(job, trained, pairs, dev, training, given)
    found = _translators(job, trained)
    if dev_lines is not None:
        for (path, translator), own in zip(found, (dev_lines, dev_lines.reversed), strict=False):
            if not (finished_before and has_scores(path)):
                _tell_dev(path, translator, own)
    info(f"{job.output}: {perf_counter() - began:,.1f} seconds in all")
    first, _ = found[0]
    suggest_command("translate", first)
    suggest_command("evaluate", first, "--src", "FILE", "--ref", "FILE")


def _dev(job: TranslatorTrainingOptions) -> LinePairs | None:
    if (job.dev_src is None) != (job.dev_tgt is None):
        raise DataError("--dev-src and --dev-tgt go together: give both, or neither")
    if job.dev_src is None or job.dev_tgt is None:
        return None
    return read_pairs(job.dev_src, job.dev_tgt, job.src_field, job.tgt_field)


def _created(
    lines: LinePairs, sides: TokenizerOptions, settings: TranslatorConfig, seed: int, given: GivenSettings
) -> tuple[ParallelCorpus, Translator | TwoWayTranslator]:
    """The training pairs as numbers, and what is to be trained before its first step."""
    from dragoman.data.corpus import BidirectionalCorpus
    from dragoman.models.translator import Translator
    from dragoman.models.translator_config import inapplicable_setting, size_preset
    from dragoman.models.two_way import TwoWayTranslator

    if wrong := inapplicable_setting(settings, given["model"]):
        name, _, why = wrong.partition(" ")
        raise DataError(f"--{name.replace('_', '-')} {why}; leave it out")
    if not any(line.strip() for line in lines.target):
        raise DataError(f"{lines.name}: there is nothing to learn from: all translations are blank")
    if settings.symmetry and not any(line.strip() for line in lines.source):
        raise DataError(f"{lines.name}: all lines are blank, and with --symmetry they are predicted too")
    source, target = sides.train_tokenizers(lines)
    pairs = encode_pairs(lines, source, target)
    chosen = {name: value for name, value in size_preset(len(pairs)).items() if name not in given["model"]}
    model = settings.model_copy(update=chosen)
    if not model.symmetry:
        return pairs, Translator.create(pairs, source, target, model, seed=seed)
    both = BidirectionalCorpus(pairs.source, pairs.target)
    return both, TwoWayTranslator.create(both, source, target, model, seed=seed)


def _translators(
    job: TranslatorTrainingOptions, trained: Translator | TwoWayTranslator
) -> list[tuple[Path, Translator]]:
    """What there is in the end, and where: the translator that was asked for and, if there is one, the one back."""
    from dragoman.models.two_way import TwoWayTranslator

    if isinstance(trained, TwoWayTranslator):
        return [(job.output / name, one) for name, one in trained.translators.items()]
    return [(job.output, trained)]


def _aligned(
    job: TranslatorTrainingOptions, model: Translator | TwoWayTranslator, lines: LinePairs, pairs: ParallelCorpus
) -> ParallelCorpus:
    """The pairs with which units belong together, if attention is to be taught that: as given, or as found."""
    from dragoman.align.aligner import Aligner

    if not model.settings.supervision:
        if job.alignments is not None:
            raise DataError("--alignments are to teach attention by; say how strongly with --supervision X")
        return pairs
    if job.alignments is None:
        with status("aligning the training pairs"):
            return replace(pairs, alignments=Aligner.train(pairs).align(pairs))
    from dragoman.data.alignments import word_links_to_tokens
    from dragoman.evaluation.alignment import read_gold_alignments

    gold = [sorted(one.sure) for one in read_gold_alignments(job.alignments)]
    if len(gold) != len(pairs):
        raise DataError(
            f"{job.alignments} has {len(gold):,} lines but there are {len(pairs):,} pairs; give one for each"
        )
    cut = zip(
        model.source.segmenter.segment_all(lines.source), model.target.segmenter.segment_all(lines.target), strict=True
    )
    words = ((model.source.segmenter.word_indices(one), model.target.segmenter.word_indices(two)) for one, two in cut)
    return replace(pairs, alignments=word_links_to_tokens(gold, list(words), str(job.alignments)))


def _train(
    job: TranslatorTrainingOptions,
    trained: Translator | TwoWayTranslator,
    pairs: ParallelCorpus,
    dev: ParallelCorpus | None,
    training: TrainingConfig,
    given: GivenSettings,
) -> bool:
    """Train; whether it was finished already."""
    from dragoman.data.corpus import BidirectionalCorpus
    from dragoman.training.fit import fit
    from dragoman.training.presets import translator_preset

    if dev is not None and isinstance(pairs, BidirectionalCorpus):
        dev = BidirectionalCorpus(dev.source, dev.target)
    advised = translator_preset(len(pairs))
    chosen = {name: value for name, value in advised.items() if name not in given["training"]}
    training = training.model_copy(update=chosen)
    with training_progress(UNITS.get(trained.target.segmenter.kind, "piece")) as report:
        fitted = fit(trained, pairs, dev, training, output=job.output, force=job.force, callback=report)
    if fitted.already_finished:
        info(f"{job.output}: finished already, after {fitted.stop_reason}; --force trains anew")
    else:
        info(f"finished after {fitted.stop_reason}")
        if dev is not None and fitted.progress.best_update == fitted.progress.update:
            info("the dev text was understood better to the last: a longer training (--minutes, --max-epochs) may help")
    return fitted.already_finished


def _tell_sizes(model: Translator | TwoWayTranslator, pairs: ParallelCorpus, *, chosen: bool) -> None:
    settings, sides = model.settings, (model.source, model.target)
    units = " and ".join(f"{len(side.vocab):,} ({side.segmenter.spec})" for side in sides)
    read, predicted = (int(side.sizes.sum()) for side in (pairs.source, pairs.target))
    why = "; units were chosen by the text, --units sets them" if chosen else ""
    info(f"{len(pairs):,} pairs, {read:,} and {predicted:,} units; of {units} kinds{why}")
    _tell_blank(pairs)
    _tell_unknown(pairs)
    shape = f"embedding {settings.embedding}, hidden {settings.hidden}, dropout {settings.dropout}"
    both = "two translators, there and back: " if settings.symmetry else ""
    info(
        f"{both}{settings.encoder} encoder, attention {settings.attention}, {settings.cell}; {shape}{_extras(settings)}"
    )


def _extras(settings: TranslatorConfig) -> str:
    """What was asked for besides."""
    strengths = {"symmetry": settings.symmetry, "supervision": settings.supervision, **settings.priors}
    told = [f"{name} {strength:g}" for name, strength in strengths.items() if strength]
    told += [name for name in ("hard", "lexicon") if getattr(settings, name)]
    return f"; {', '.join(told)}" if told else ""


def _tell_blank(pairs: ParallelCorpus) -> None:
    """Pairs that are half empty are learned from as they are; usually they are mistakes."""
    blank = int(((pairs.source.sizes == 1) != (pairs.target.sizes == 1)).sum())
    if blank:
        info(f"{blank:,} of the pairs have a blank side; dragoman doctor finds such pairs, and mends them with --fix")


def _doubt_sides(lines: LinePairs, dev: LinePairs) -> None:
    """Warn of a dev text whose sides are the wrong way round: their words are those of the other side."""
    seen = [{word for line in side for word in line.split()} for side in (lines.source, lines.target)]
    words = [word for line in dev.source for word in line.split()]
    own, other = (sum(word in side for word in words) for side in seen)
    if 2 * own < other:
        info(f"warning: {dev.name}: its words are those of the other side; are --dev-src and --dev-tgt swapped?")


def _tell_unknown(pairs: ParallelCorpus) -> None:
    """How much of the training text is unknown, if much is."""
    from dragoman.data.vocabulary import UNK

    for name, text in (("source", pairs.source.as_corpus()), ("target", pairs.target)):
        share = float((text.ids == UNK).mean()) if text.num_words else 0.0
        if share > MANY_UNKNOWN:
            remedy = "subwords (--units subword:N) leave none, or lower --min-count"
            info(f"{100 * share:.1f}% of the {name}'s units are unknown, being rare; {remedy}")


def _tell_dev(path: Path, model: Translator, dev: LinePairs) -> None:
    """Perplexity and BLEU of the dev text, which its card tells as well."""
    from dragoman.evaluation.translation_metrics import score_translations
    from dragoman.io.model_card import CardScore

    with status("translating the dev text"):
        told = [one.text for one in model.translate(dev.source)]
    judged = score_translations(told, dev.target, tokenised=model.target.tokenised)
    perplexity = model.likelihood(dev.source, dev.target).perplexity
    scores = [
        CardScore("dev", "BLEU", judged.bleu, judged.signature),
        CardScore("dev", "chrF", judged.chrf, judged.chrf_signature),
        CardScore("dev", "perplexity, a word", perplexity),
    ]
    model.write_card(path, scores)
    info(f"{path}: of the dev text BLEU {judged.bleu:.2f}, chrF {judged.chrf:.2f}, perplexity {perplexity:,.2f} a word")
