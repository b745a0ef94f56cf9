"""What a trained translator does with the dev text: scores, examples, and whether they are good enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dragoman.combine.shortlist_choice import choose_shortlist
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.tokenizer import LinePairs
from dragoman.evaluation.likelihood import TextLengths
from dragoman.evaluation.task_scores import TargetKind, TaskScores, score_task
from dragoman.evaluation.translator import are_tokenised
from dragoman.io.model_card import CardScore, choose_examples, describe_shortlist, has_scores, write_examples
from dragoman.io.storage import SHORTLIST, read_config
from dragoman.models.stored_shortlist import read_decision, read_shortlist, store_decision
from dragoman.models.translator import Translator
from dragoman.models.translator_training import TrainingSetup, as_training_text, relative_length
from dragoman.models.two_way import TwoWayTranslator
from dragoman.training.fit import FitResult

# At least this BLEU, or percentage of words that are right, is called usable.
MIN_QUALITY = {TargetKind.SENTENCES: 10.0, TargetKind.WORDS: 20.0, TargetKind.PHONES: 20.0}
MIN_SOURCE_EFFECT = 1.15  # ratio of the perplexities with the sources of other lines and with the right ones
FEW_EPOCHS, FEW_PAIRS = 2.0, 5_000
MIN_SENTENCES = 100  # of a dev text to translate, or all if there are fewer; less if they are very long


def model_directories(output: Path, model: Translator | TwoWayTranslator) -> dict[Path, Translator]:
    """Return the translators of a training run by their directories; the first is that from source to target."""
    if isinstance(model, TwoWayTranslator):
        return {output / name: translator for name, translator in model.translators.items()}
    return {output: model}


def task_scores(
    model: Translator, texts: Sequence[str], lines: LinePairs, *, tokenised: bool | None = None
) -> TaskScores:
    """Return the scores of translations of `lines.source`; `headline` has those that fit the model's kind of target.

    Whether BLEU uses words as they are, depends on model and references, or is given by `tokenised`.
    """
    if tokenised is None:
        tokenised = are_tokenised(lines.target, model.target)
    return score_task(texts, lines.target, lines.source, model.target, tokenised=tokenised)


@dataclass(frozen=True)
class DevExample:
    """A sentence of the dev text with its translation."""

    source: str
    translation: str
    reference: str


@dataclass(frozen=True)
class DevResult:
    """What a trained translator does with the dev text."""

    scores: TaskScores
    perplexity: float  # per word, or per phone of pronunciations
    shuffled_perplexity: float | None  # with the sources of other lines; only measured if translations are not usable
    sentences: int  # that were translated
    text_sentences: int  # of the whole text
    examples: list[DevExample]

    def __str__(self) -> str:
        return f"{self.scores.headline_text}, perplexity {self.perplexity:,.2f} per {self.scores.token}"

    def describe_text(self, name: str) -> str:
        """Return the name of the text, and how much of it was translated if that is not all."""
        all_sentences = self.sentences == self.text_sentences
        return name if all_sentences else f"{name} ({self.sentences:,} of {self.text_sentences:,} sentences)"

    def card_scores(self, name: str) -> list[CardScore]:
        """Return the scores for the model card, as those of the text with this name."""
        name = self.describe_text(name)
        scores = [CardScore(name, result.name, result.value, result.description) for result in self.scores.results]
        return [*scores, CardScore(name, f"perplexity per {self.scores.token}", self.perplexity)]

    @property
    def is_usable(self) -> bool:
        """Whether the translations are good enough to be of use."""
        return _quality(self.scores) >= MIN_QUALITY[self.scores.kind]

    @property
    def source_helps(self) -> bool:
        """Whether the target is easier to predict from its source than from that of another line."""
        return self.shuffled_perplexity is None or self.shuffled_perplexity > MIN_SOURCE_EFFECT * self.perplexity


def _quality(scores: TaskScores) -> float:
    """Return BLEU of sentences, and the share of words that are right, in percent, of other targets."""
    return scores.of("BLEU" if scores.kind == TargetKind.SENTENCES else "accuracy").score


def score_on_dev(
    path: Path,
    model: Translator,
    texts: Mapping[str, LinePairs],
    share: float = 1.0,
    known: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, DevResult]:
    """Translate dev texts, given by their names, or a share of each. `known` are translations that there are already.

    Scores of all texts and examples of the first are written to the model directory.
    """
    known = known or {}
    results = {name: score_text(model, lines, share, known=known.get(name)) for name, lines in texts.items()}
    write_examples(path, choose_examples(next(iter(texts.values())).source))
    # The card is last: while it has no scores, the same command does this again.
    model.write_card(path, [score for name, result in results.items() for score in result.card_scores(name)])
    return results


def sample_lines(lines: LinePairs, share: float) -> LinePairs:
    """Return a share of a dev text, but not too little."""
    least = math.ceil(MIN_SENTENCES / relative_length(lines))
    return lines.spread(max(least, round(share * len(lines.source))))


def score_text(
    model: Translator,
    lines: LinePairs,
    share: float = 1.0,
    *,
    tokenised: bool | None = None,
    known: Sequence[str] | None = None,
) -> DevResult:
    """Translate a dev text, or a share of it, unless translations are known. For `tokenised`, see `task_scores`."""
    text_sentences = len(lines.source)
    lines = sample_lines(lines, share)
    texts = known or [translation.text for translation in model.translate_text(lines.source)]
    scores = task_scores(model, texts, lines, tokenised=tokenised)
    read, lengths = as_training_text(lines, model), TextLengths.from_lines(lines.target)
    perplexity = replace(model.likelihood(read.source, read.target), lengths=lengths).perplexity
    stripped = [line.strip() for line in lines.source]
    inputs = map(stripped.index, choose_examples(lines.source))
    examples = [DevExample(stripped[i], texts[i], lines.target[i]) for i in inputs]
    result = DevResult(scores, perplexity, None, len(texts), text_sentences, examples)
    if result.is_usable:
        return result
    shifted = [*read.source[len(texts) // 3 :], *read.source[: len(texts) // 3]]
    shuffled = replace(model.likelihood(shifted, read.target), lengths=lengths).perplexity
    return replace(result, shuffled_perplexity=shuffled)


def add_shortlist(
    path: Path, model: Translator, pairs: ParallelCorpus, dev: LinePairs, share: float
) -> dict[str, list[str]]:
    """Give a translator a shortlist if that is better on the dev text, and store the decision in its directory.

    A decision that was stored before is kept. Return the translations of the dev text, if there are some already.
    """
    config, known = read_config(path), dict[str, list[str]]()
    decision = read_decision(config, path)
    if decision is not None:  # the program was stopped after it
        model.shortlist = read_shortlist(path, config, model.source_vocab, model.vocab)
    else:
        lines = sample_lines(dev, share)
        choice = choose_shortlist(model, pairs, lines.source, lambda texts: task_scores(model, texts, lines))
        decision, known["dev"] = choice.decision, choice.texts
        model.shortlist = choice.shortlist if decision.used else None
        store_decision(path, decision, choice.shortlist)
    model.training_metadata = {**model.training_metadata, SHORTLIST: decision.model_dump(mode="json")}
    return known


class DevReport(NamedTuple):
    """What trained translators do with the dev texts, in lines of text."""

    lines: list[str]
    is_usable: bool  # as far as this is known


def report_on_dev(
    result: FitResult,
    translators: Mapping[Path, Translator],
    setup: TrainingSetup,
    old_dev: LinePairs | None = None,
    base: Translator | None = None,
    share: float = 1.0,
    *,
    chooses_shortlist: bool = False,
) -> DevReport:
    """Translate the dev texts with a translator, or with two of opposite directions, unless that was done before.

    Args:
        result: The result of training.
        translators: Translators by their directories.
        setup: What was trained.
        old_dev: The dev text of the training before.
        base: The translator before training, if it was trained further.
        share: Share of each dev text to translate, the one that there is time for.
        chooses_shortlist: Give the translator a shortlist if that is better on the dev text.
    """
    report, is_usable = list[str](), True
    if result.already_finished and all(map(has_scores, translators)):
        return DevReport(report, is_usable=False)
    forward = {name: lines for name, lines in (("dev", setup.dev), ("old dev", old_dev)) if lines is not None}
    backward = {name: lines.reversed for name, lines in forward.items()}
    for (path, model), texts in zip(translators.items(), (forward, backward), strict=False):
        if "dev" not in texts:
            continue
        if base is not None:
            for name, text in texts.items():
                before = score_text(base, text, share, tokenised=are_tokenised(text.target, model.target))
                report.append(f"before training: {before.describe_text(f'{name} text')}: {before}")
        known = add_shortlist(path, model, setup.pairs, texts["dev"], share) if chooses_shortlist else {}
        scores = score_on_dev(path, model, texts, share, known)
        for name, score in scores.items():
            report.append(f"{path}: {score.describe_text(f'{name} text')}: {score}")
        if SHORTLIST in model.training_metadata:
            report.append(f"{path}: {describe_shortlist(model.training_metadata[SHORTLIST])}")
        for example in scores["dev"].examples:
            report.append(f"  source       {example.source}")
            report.append(f"  translation  {example.translation}")
            report.append(f"  reference    {example.reference}")
        if not scores["dev"].is_usable:
            reason = explain_poor_result(scores["dev"], result, len(setup.pairs), setup.unused_pairs)
            report.append(f"these translations are not usable: {reason}")
            is_usable = False
    return DevReport(report, is_usable)


def explain_poor_result(scores: DevResult, training: FitResult, pairs: int, unused_pairs: int = 0) -> str:
    """Return why the translations are not usable, and what to do.

    Args:
        scores: What the translator does with the dev text.
        training: The result of its training.
        pairs: Number of training pairs.
        unused_pairs: Number of pairs that there was no time to read.
    """
    with_more_text = "start again with --force and more --minutes, which uses more of the text"
    with_more_time = (
        "give it more time, by the same command with a higher limit, which continues it, or with --force as well, which "
        "starts again with a model that is planned for that time"
    )
    epochs = training.epochs
    if epochs < FEW_EPOCHS:
        remedy = f"{with_more_time}, or train on fewer pairs"
        amount = f"{epochs:.1%} of the pairs" if epochs < 1 else f"the pairs {epochs:.1f} times"
        return f"training read only {amount}; {with_more_text if unused_pairs else remedy}"
    if not scores.source_helps:
        return (
            "the source hardly helps to predict the target: the lines of the two sides may not belong together; check "
            "them with dragoman doctor"
        )
    if pairs < FEW_PAIRS:
        remedy = with_more_text if unused_pairs else "add more pairs, even of other subjects"
        if training.was_improving and not unused_pairs:
            remedy = f"{remedy}, and {with_more_time}"
        return f"{pairs:,} pairs are little text to learn a language from; {remedy}"
    remedy = with_more_text if unused_pairs else "train longer with more --minutes"
    return f"check the text with dragoman doctor, and {remedy}"
