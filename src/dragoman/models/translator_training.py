"""What training a translator on texts needs: checks and descriptions of the data, alignments, dev scores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dragoman.align.aligner import Aligner
from dragoman.core.errors import DataError
from dragoman.data.alignments import word_links_to_tokens
from dragoman.data.corpus import BidirectionalCorpus, ParallelCorpus
from dragoman.data.tokenizer import LinePairs, Tokenizer
from dragoman.data.vocabulary import UNK
from dragoman.evaluation.alignment import read_gold_alignments
from dragoman.evaluation.task_scores import TaskScores, score_task
from dragoman.io.model_card import CardScore, choose_examples, write_examples
from dragoman.models.configs import TranslatorConfig, inapplicable_setting
from dragoman.models.translator import Translator
from dragoman.models.two_way import TwoWayTranslator

MANY_UNKNOWN = 0.03  # share of unknown tokens in a training text that is reported


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
    if len(gold) != len(pairs):
        raise DataError(f"{path} has {len(gold):,} lines and there are {len(pairs):,} pairs; give one line per pair")
    source, target = (
        map(tokenizer.segmenter.word_indices, tokenizer.segmenter.segment_all(text))
        for tokenizer, text in ((model.source, lines.source), (model.target, lines.target))
    )
    return replace(pairs, alignments=word_links_to_tokens(gold, list(zip(source, target, strict=True)), str(path)))


def describe_data(
    model: Translator | TwoWayTranslator, pairs: ParallelCorpus, *, units_were_chosen: bool
) -> Iterator[str]:
    """Yield lines about the size of the data and the model, and about problems of the data."""
    tokenizers = model.source, model.target
    kinds = " and ".join(f"{len(tokenizer.vocab):,} ({tokenizer.segmenter.spec})" for tokenizer in tokenizers)
    read, predicted = (int(text.sizes.sum()) for text in (pairs.source, pairs.target))
    reason = "; --units was chosen for this text" if units_were_chosen else ""
    yield f"{len(pairs):,} pairs, {read:,} and {predicted:,} tokens; vocabularies of {kinds}{reason}"
    if blank := int(((pairs.source.sizes == 1) != (pairs.target.sizes == 1)).sum()):
        yield f"pairs with one blank side: {blank:,}; dragoman doctor lists them, and removes them with --fix"
    for name, text in (("source", pairs.source), ("target", pairs.target)):
        share = float((text.ids == UNK).mean()) if text.num_words else 0.0
        if share > MANY_UNKNOWN:
            remedy = "use subwords (--units subword:N), or lower --min-count"
            yield f"{100 * share:.1f}% of the {name} tokens are unknown because they are rare; {remedy}"
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


def model_directories(output: Path, model: Translator | TwoWayTranslator) -> dict[Path, Translator]:
    """Return the translators of a training run by their directories; the first is that from source to target."""
    if isinstance(model, TwoWayTranslator):
        return {output / name: translator for name, translator in model.translators.items()}
    return {output: model}


def looks_swapped(lines: LinePairs, dev: LinePairs) -> bool:
    """Return whether the source words of a dev text are mostly those of the training target."""
    source, target = ({word for line in text for word in line.split()} for text in (lines.source, lines.target))
    words = [word for line in dev.source for word in line.split()]
    return 2 * sum(word in source for word in words) < sum(word in target for word in words)


def task_scores(model: Translator, texts: Sequence[str], lines: LinePairs) -> TaskScores:
    """Return the scores of translations of `lines.source`; `headline` has those that fit the model's kind of target."""
    return score_task(texts, lines.target, lines.source, model.target, tokenised=model.target.tokenised)


def encode_pairs(lines: LinePairs, model: Translator | TwoWayTranslator) -> ParallelCorpus:
    """Return a text as data of a translator, or of two of opposite directions."""
    pairs = lines.encode(model.source, model.target)
    return BidirectionalCorpus(pairs.source, pairs.target) if model.settings.symmetry else pairs


class DevScores(NamedTuple):
    """Scores of a dev text."""

    card_scores: list[CardScore]
    text: str  # a line about them


def score_on_dev(path: Path, model: Translator, texts: Mapping[str, LinePairs]) -> list[str]:
    """Translate dev texts, given by their names, and return lines about the scores.

    Scores of all texts and examples of the first are written to the model directory.
    """
    scores = [score_text(model, name, lines) for name, lines in texts.items()]
    model.write_card(path, [card_score for score in scores for card_score in score.card_scores])
    write_examples(path, choose_examples(next(iter(texts.values())).source))
    return [f"{path}: {score.text}" for score in scores]


def score_text(model: Translator, name: str, lines: LinePairs) -> DevScores:
    """Translate a text and return its scores."""
    scores = task_scores(model, [translation.text for translation in model.translate(lines.source)], lines)
    perplexity = model.likelihood(lines.source, lines.target).perplexity
    card_scores = [CardScore(name, result.name, result.value, result.description) for result in scores.results]
    line = f"{name} text: {scores.headline_text}, perplexity {perplexity:,.2f} per word"
    return DevScores([*card_scores, CardScore(name, "perplexity per word", perplexity)], line)
