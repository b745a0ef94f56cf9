"""Training a translator on texts: choice of settings, checks and descriptions of the data, alignments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from dragoman.align.aligner import Aligner
from dragoman.core.errors import DataError
from dragoman.data.alignments import word_links_to_tokens
from dragoman.data.copied_items import PLACEHOLDER
from dragoman.data.corpus import BidirectionalCorpus, ParallelCorpus
from dragoman.data.detokenize import looks_tokenised
from dragoman.data.held_out import default_size, hold_out, hold_out_by_equality
from dragoman.data.placeholders import add_placeholders
from dragoman.data.tokenizer import TREE, LinePairs, Tokenizer
from dragoman.data.vocabulary import UNK
from dragoman.evaluation.alignment import read_gold_alignments
from dragoman.evaluation.task_scores import token_kind
from dragoman.models.configs import TranslatorConfig, inapplicable_setting, with_size_preset
from dragoman.models.copying import knows_placeholders
from dragoman.models.planning import EncodedPairs, StoredRun, TranslatorPlanner, plan_fine_tuning
from dragoman.models.translator import Translator
from dragoman.models.two_way import TwoWayTranslator
from dragoman.training.config import TrainingConfig, for_fine_tuning, with_given_limits
from dragoman.training.fine_tuning import frozen
from dragoman.training.planning import DEFAULT_MINUTES

MANY_UNKNOWN = 0.03  # share of unknown tokens in a training text that is reported
MIN_PAIRS_TO_HOLD_OUT = 200
MAX_HELD_OUT = 1_000
MAX_GROUP_SHARE = 0.1  # of the held-out pairs that are near-duplicates of each other
MAX_COMPARED = 300  # characters of a line, to find near-duplicates
PLACEHOLDER_SEED = 1  # not that of training: trainings with different seeds have the same text
MIN_PLACEHOLDER_SHARE, MIN_PLACEHOLDER_PAIRS = 0.01, 100  # of the pairs, for placeholders by default
MAX_PAIRS_PER_MINUTE = 50_000  # more than a small network reads on a fast machine,
ORDINARY_CHARACTERS = 160  # if both sides of a pair have so many, or fewer


@dataclass(frozen=True)
class TrainingSetup:
    """A translator with initial parameters, its data and the settings of its training."""

    translator: Translator | TwoWayTranslator
    pairs: ParallelCorpus
    lines: LinePairs
    dev: LinePairs | None
    training: TrainingConfig
    messages: Sequence[str] = ()  # about what was chosen
    unused_pairs: int = 0  # that there was no time to read when training was planned


class PairEncoder(Protocol):
    """Encodes pairs by tokenizers that are trained on them.

    Args:
        lines: The training pairs.
        max_subwords: Maximum number of subwords.
        units: Kinds of source and target tokens, if the user has not chosen them.
    """

    def __call__(
        self, lines: LinePairs, max_subwords: int | None = None, units: tuple[str, str] | None = None
    ) -> EncodedPairs: ...


def set_up_training(
    encode: PairEncoder,
    lines: LinePairs,
    dev: LinePairs | None,
    model: TranslatorConfig,
    training: TrainingConfig,
    given: Mapping[str, Collection[str]],
    languages: Sequence[str | None] = (None, None),
    stored: StoredRun | None = None,
    elapsed: Callable[[], float] = lambda: 0.0,
    *,
    placeholders: bool | None = None,
) -> TrainingSetup:
    """Create a translator. Settings that are not given are those of a run to resume, or chosen by text and time.

    Args:
        encode: Encodes the training pairs.
        lines: The training pairs.
        dev: The dev text. Without one, some of the training pairs are held out, unless epochs or updates are limited.
        model: Settings of the translator.
        training: Settings of training.
        given: Names of the settings that are given, of the sections model and training.
        languages: Codes of the source and target language, as far as they are known.
        stored: The settings of the run to resume, if there is one.
        elapsed: Returns the seconds of the time limit that are over.
        placeholders: Put placeholders for what is copied into the training pairs, see `add_placeholders`. None: if the
            run to resume has them, or if a run is planned by the time and enough pairs have something to copy.
    """
    training = with_given_limits(training, given["training"])
    is_limited = not is_planned(training, given)
    prepared = _prepare_lines(lines, dev, training, stored, is_planned=not is_limited)
    lines, dev, messages = prepared.lines, prepared.dev, prepared.messages
    if placeholders is None and stored is not None:
        lines = with_placeholders(lines, min_pairs=1) if stored.has_placeholders else lines
    elif placeholders:
        lines = with_placeholders(lines)
    elif placeholders is None and not is_limited:
        min_pairs = max(MIN_PLACEHOLDER_PAIRS, MIN_PLACEHOLDER_SHARE * len(lines.source))
        lines = with_placeholders(lines, min_pairs)
        if changed := sum(PLACEHOLDER in line for line in lines.source):
            messages.append(f"{changed:,} pairs get placeholders for names and items that both sides have in common")
    if stored is not None:
        data = encode(lines, units=stored.units)
        model, training = stored.apply(model, training, given)
    elif is_limited:
        data = encode(lines)
        model, training = with_size_preset(len(data.pairs), model, training, given)
        training = with_given_limits(training, given["training"])
    else:
        plan = TranslatorPlanner(partial(encode, lines), dev, model, training, given).plan(training.minutes, elapsed)
        messages.append(f"plan: {plan.describe()}")
        if training.minutes is None:
            messages.append(_describe_end(plan.training))
        data, model, training = plan.data, plan.model, plan.training
    source, target = (
        replace(tokenizer, language=language or tokenizer.language)
        for tokenizer, language in zip(data[1:], languages, strict=True)
    )
    pairs, translator = create_translator(data.pairs, source, target, model, training.seed)
    return TrainingSetup(translator, pairs, lines, dev, training, messages, prepared.unused)


def is_planned(training: TrainingConfig, given: Mapping[str, Collection[str]]) -> bool:
    """Return whether a new training run is planned by the time: not if only epochs or updates are limited."""
    return training.minutes is not None or not set(given["training"]) & {"max_epochs", "max_updates"}


def _describe_end(training: TrainingConfig) -> str:
    """Return when training will end, if no limit is given."""
    limit = f"after at most {training.minutes:g} minutes"
    if training.max_epochs is None:
        return f"training ends when the dev loss stops improving, {limit}"
    return (
        f"training ends after {training.max_epochs} epochs, or {limit}; with a dev text, when its loss stops improving"
    )


class PreparedLines(NamedTuple):
    """The training and dev pairs, and messages about their choice."""

    lines: LinePairs
    dev: LinePairs | None
    messages: list[str]
    unused: int  # pairs that are not used


def _prepare_lines(
    lines: LinePairs, dev: LinePairs | None, training: TrainingConfig, stored: StoredRun | None, *, is_planned: bool
) -> PreparedLines:
    """Choose the training and dev pairs.

    If training is planned by the time, only pairs that can be read in it are used, and without a dev text some pairs
    are held out. A training run that is resumed has the same pairs as before.
    """
    messages, total = list[str](), len(lines.source)
    number, reason = total, "there is no time to read more"
    if stored is not None:
        number = stored.pairs + (stored.dev_pairs if dev is None else 0)
        reason = "those of this training run; to use more of the text, start again with --force and more --minutes"
    elif is_planned:
        number = _readable_pairs(lines, training.minutes or DEFAULT_MINUTES)
    if number < total:
        messages.append(f"{number:,} of {total:,} pairs are used: {reason}")
        lines = lines.spread(number)
    if dev is None and (is_planned if stored is None else stored.dev_pairs):
        lines, dev = _hold_out_dev(lines)
        if dev is not None:
            remedy = "to use others, give --dev-pairs, or --dev-src and --dev-tgt"
            messages.append(f"no dev text: {len(dev.source):,} pairs are held out; {remedy}")
    return PreparedLines(lines, dev, messages, max(0, total - number))


def _readable_pairs(lines: LinePairs, minutes: float) -> int:
    """Return how many pairs there is time to read."""
    return max(MIN_PAIRS_TO_HOLD_OUT, int(MAX_PAIRS_PER_MINUTE * minutes / relative_length(lines)))


def relative_length(lines: LinePairs) -> float:
    """Return how many times longer than ordinary sentences the pairs are; 1 if they are not."""
    characters = sum(map(len, lines.source)) + sum(map(len, lines.target))
    return max(1.0, characters / (ORDINARY_CHARACTERS * max(1, len(lines.source))))


def _hold_out_dev(lines: LinePairs) -> tuple[LinePairs, LinePairs | None]:
    """Take some of the training pairs as dev text, unless there are very few different ones.

    Near-duplicates are kept together, or only equal pairs if nearly all pairs are alike. Only the beginnings of very
    long lines are compared, because that takes long.
    """
    size = min(MAX_HELD_OUT, default_size(len(lines.source)))
    if len(lines.source) < MIN_PAIRS_TO_HOLD_OUT:
        return lines, None
    beginnings = [[line[:MAX_COMPARED] for line in side] for side in (lines.source, lines.target)]
    train, dev = hold_out(beginnings, size, max_group_share=MAX_GROUP_SHARE)
    if len(dev) < size // 2:
        if len(set(zip(lines.source, lines.target, strict=True))) < MIN_PAIRS_TO_HOLD_OUT:
            return lines, None
        train, dev = hold_out_by_equality([lines.source, lines.target], size)
    if not len(dev):
        return lines, None
    return lines.select(train.tolist()), replace(lines.select(dev.tolist()), name="the held-out pairs")


def with_placeholders(lines: LinePairs, min_pairs: float | None = None) -> LinePairs:
    """Return training pairs with placeholders for what both sides have in common.

    Args:
        lines: The training pairs.
        min_pairs: If fewer pairs would have a placeholder, none has. Without a number, an error is raised if none has.
    """
    source, target = add_placeholders(lines.source, lines.target, PLACEHOLDER_SEED)
    changed = sum(new != old for new, old in zip(source, lines.source, strict=True))
    if min_pairs is None and not changed:
        raise DataError("--placeholders: no pair has a name or an item such as %s on both sides; leave it out")
    return lines if changed < (min_pairs or 1) else replace(lines, source=source, target=target)


def set_up_fine_tuning(
    translator: Translator,
    lines: LinePairs,
    dev: LinePairs | None,
    training: TrainingConfig,
    given: Mapping[str, Collection[str]],
    stored: StoredRun | None = None,
    elapsed: Callable[[], float] = lambda: 0.0,
    *,
    placeholders: bool | None = None,
) -> TrainingSetup:
    """Choose settings to train a translator further, as `set_up_training` does; its sizes are what they are."""
    training = with_given_limits(training, given["training"])
    with frozen(translator, training.freeze):
        pass  # raises an error for wrong names, before anything that takes time
    lines = as_training_text(lines, translator)
    is_limited = not is_planned(training, given)
    prepared = _prepare_lines(lines, dev, training, stored, is_planned=not is_limited)
    lines, dev, messages = prepared.lines, prepared.dev, prepared.messages
    had_placeholders = knows_placeholders(translator.source) if stored is None else stored.has_placeholders
    if placeholders:
        lines = with_placeholders(lines)
    elif placeholders is None and had_placeholders:
        lines = with_placeholders(lines, min_pairs=1)
    pairs = lines.encode(translator.source, translator.target)
    if stored is not None:
        training = stored.apply(translator.settings, training, given)[1]
    elif is_limited:
        training = with_size_preset(len(pairs), translator.settings, training, given)[1]
        training = for_fine_tuning(with_given_limits(training, given["training"]), given["training"])
    else:
        training = for_fine_tuning(training, given["training"])
        plan = plan_fine_tuning(translator, pairs, dev, training, given["training"], elapsed)
        messages.append(f"plan: {plan.describe()}")
        if training.minutes is None:
            messages.append(_describe_end(plan.training))
        training = plan.training
    return TrainingSetup(translator, pairs, lines, dev, training, messages, prepared.unused)


def create_translator(
    pairs: ParallelCorpus,
    source: Tokenizer,
    target: Tokenizer,
    settings: TranslatorConfig,
    seed: int,
) -> tuple[ParallelCorpus, Translator | TwoWayTranslator]:
    """Return the training data and a translator with initial parameters.

    With `symmetry`, two translators are trained together, and the data has both directions.
    """
    if not settings.symmetry:
        return pairs, Translator.create(pairs, source, target, settings, seed=seed)
    both = BidirectionalCorpus(pairs.source, pairs.target)
    return both, TwoWayTranslator.create(both, source, target, settings, seed=seed)


def check_translator_data(lines: LinePairs, settings: TranslatorConfig, given: Collection[str]) -> None:
    """Raise an error if settings contradict each other, or all lines of a text are blank."""
    if problem := inapplicable_setting(settings, given):
        setting, reason = problem
        raise DataError(f"--{setting.replace('_', '-')} {reason}; remove it")
    if not any(line.strip() for line in lines.target):
        raise DataError(f"{lines.name}: all translations are blank; give a text with translations")
    if lines.source == lines.target:
        remedy = "of a .tsv file, choose two columns with --src-field and --tgt-field"
        raise DataError(f"{lines.name}: source and target are the same text; {remedy}")
    if settings.symmetry and not any(line.strip() for line in lines.source):
        raise DataError(f"{lines.name}: all lines are blank, and --symmetry predicts them; give a text with words")


def add_alignments(
    pairs: ParallelCorpus, model: Translator | TwoWayTranslator, lines: LinePairs, path: Path | None
) -> ParallelCorpus:
    """Add the word alignments that supervise attention: from a file, or from an aligner trained on the pairs."""
    if not model.settings.supervision:
        if path is not None:
            raise DataError("--alignments supervise attention; set their weight with --supervision X")
        return pairs
    if path is None:
        return replace(pairs, alignments=Aligner.train(pairs).align(pairs))
    gold = [sorted(alignment.sure) for alignment in read_gold_alignments(path)]
    if len(gold) != lines.text_size:
        raise DataError(
            f"{path} has {len(gold):,} lines and there are {lines.text_size:,} pairs; give one line per pair"
        )
    chosen = [gold[index] for index in lines.indices]
    source, target = (
        map(tokenizer.segmenter.word_indices, tokenizer.segmenter.segment_all(text))
        for tokenizer, text in ((model.source, lines.source), (model.target, lines.target))
    )
    words = list(zip(source, target, strict=True))
    return replace(pairs, alignments=word_links_to_tokens(chosen, words, str(path), lines.indices))


def describe_data(setup: TrainingSetup, *, units_were_chosen: bool, is_continued: bool = False) -> Iterator[str]:
    """Yield lines about the size of the data and the model, and about problems of the data."""
    model, pairs = setup.translator, setup.pairs
    tokenizers = model.source, model.target
    kinds = [f"{tokenizer.vocab.num_known:,} {token_kind(tokenizer)}s" for tokenizer in tokenizers]
    read, predicted = (int(text.sizes.sum()) for text in (pairs.source, pairs.target))
    units = list(dict.fromkeys(tokenizer.segmenter.spec for tokenizer in tokenizers))
    options = " ".join(f"{option} {value}" for option, value in zip(("--units", "--tgt-units"), units, strict=False))
    chosen = f" ({options}, chosen for this text)" if units_were_chosen else ""
    yield f"{len(pairs):,} pairs with {read:,} and {predicted:,} tokens; vocabularies: {' and '.join(kinds)}{chosen}"
    if blank := int(((pairs.source.sizes == 1) != (pairs.target.sizes == 1)).sum()):
        yield f"pairs with one blank side: {blank:,}; dragoman doctor lists them, and removes them with --fix"
    for name, text in (("source", pairs.source), ("target", pairs.target)):
        share = float((text.ids == UNK).mean()) if text.num_words else 0.0
        if share > MANY_UNKNOWN:
            reason, remedy = "because they are rare", "use subwords (--units subword:N), or lower --min-count"
            if is_continued:
                reason, remedy = "to the model that is trained further", "add them with --extend-vocabulary"
            yield f"{100 * share:.1f}% of the {name} tokens are unknown {reason}; {remedy}"
    settings = model.settings
    strengths = {"symmetry": settings.symmetry, "supervision": settings.supervision, **settings.priors}
    extras = [f"{name} {strength:g}" for name, strength in strengths.items() if strength]
    extras += [name for name, is_set in (("hard", settings.hard), ("lexicon", settings.lexicon)) if is_set]
    parts = [
        f"{settings.encoder} encoder, attention {settings.attention}, {settings.cell}",
        f"embedding {settings.embedding}, hidden {settings.hidden}, dropout {settings.dropout}",
        *([", ".join(extras)] if extras else []),
    ]
    yield f"{'two translators, one for each direction: ' if settings.symmetry else ''}{'; '.join(parts)}"


def looks_swapped(lines: LinePairs, dev: LinePairs) -> bool:
    """Return whether the source words of a dev text are mostly those of the training target, and the other way round."""
    known = [{word for line in text for word in line.split()} for text in (lines.source, lines.target)]
    for text, own, other in ((dev.source, *known), (dev.target, *reversed(known))):
        words = [word for line in text for word in line.split()]
        if 2 * sum(word in own for word in words) >= sum(word in other for word in words):
            return False
    return True


def as_training_text(lines: LinePairs, model: Translator | TwoWayTranslator) -> LinePairs:
    """Return plain text as a translator of tokenised text reads and writes it; other text as it is."""
    sides = ((model.source, lines.source), (model.target, lines.target))
    if isinstance(model, TwoWayTranslator) or all(
        looks_tokenised(text) or not side.tokenised or side.format == TREE for side, text in sides
    ):
        return lines
    source, target = model.read_pairs(lines.source, lines.target)
    return replace(lines, source=source, target=target)


def encode_pairs(lines: LinePairs, model: Translator | TwoWayTranslator) -> ParallelCorpus:
    """Return a text as data of a translator, or of two of opposite directions."""
    pairs = as_training_text(lines, model).encode(model.source, model.target)
    return BidirectionalCorpus(pairs.source, pairs.target) if model.settings.symmetry else pairs
