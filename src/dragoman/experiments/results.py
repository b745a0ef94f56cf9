"""Results of experiments: measured language models and translators, and what is computed from them for reports."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from dragoman.combine.ensemble import Ensemble
from dragoman.core.defaults import DEFAULT_BEAM_SIZE
from dragoman.data.corpus import Corpus
from dragoman.evaluation.alignment import GoldAlignment
from dragoman.evaluation.floor import LanguageModelEvaluation, PointEstimate, TrueLogProbs, evaluate_language_model
from dragoman.evaluation.lab_reference import PhenomenonAccuracies, accuracies_as_dicts, minimal_pair_accuracies
from dragoman.evaluation.minimal_pairs import MinimalPairAccuracy
from dragoman.evaluation.translation_metrics import TranslationScores, score_translations
from dragoman.evaluation.translator import ReferenceData, TranslatorEvaluation, evaluate_translator
from dragoman.experiments.trainer import SILENT, Callbacks, TrainedRung
from dragoman.io.storage import model_megabytes
from dragoman.lab.minimal_pairs import MinimalPair
from dragoman.models.language_model import LanguageModel
from dragoman.models.neural import NeuralModel
from dragoman.models.translation import SearchKwargs
from dragoman.models.translator import Translator

NGRAM_WINDOW = 4  # words that a model of order 5 sees
EXAMPLE_WORDS = range(7, 11)  # words of a sentence whose attention is shown: it fits the width of a terminal
UNIFORM_FACTOR = 2.5  # attention with a maximum below this many times the uniform one is called uniform
MAX_CURVE_LOSS = 20  # larger losses are not shown in learning curves


@dataclass(frozen=True)
class AccuracyColumn:
    """Minimal pairs that are counted together: those of a phenomenon within a range of distances."""

    name: str
    phenomenon: str
    minimum: int = 0  # words between,
    below: float = math.inf  # and fewer than this
    by_group: bool = False  # count groups of four pairs instead of pairs

    def accuracy(self, accuracies: PhenomenonAccuracies) -> tuple[float, int]:
        """Return the accuracy from 0 to 1 (NaN without pairs), and the number of pairs, or of groups."""
        selected = (
            accuracy
            for (phenomenon, distance), accuracy in accuracies.items()
            if phenomenon == self.phenomenon and self.minimum <= distance < self.below
        )
        total = sum(selected, MinimalPairAccuracy())
        return (total.group_accuracy, total.groups) if self.by_group else (total.accuracy, total.pairs)


ACCURACY_COLUMNS = (
    AccuracyColumn("agreement", "agreement"),
    AccuracyColumn("reflexive, near", "reflexive", below=NGRAM_WINDOW),
    AccuracyColumn("reflexive, far", "reflexive", minimum=NGRAM_WINDOW),
    AccuracyColumn("selection, near", "selection", below=NGRAM_WINDOW),
    AccuracyColumn("all four, near", "selection", below=NGRAM_WINDOW, by_group=True),
    AccuracyColumn("all four, far", "selection", minimum=NGRAM_WINDOW, by_group=True),
    AccuracyColumn("topic", "topic"),
    AccuracyColumn("register", "register"),
    AccuracyColumn("article", "article"),
)


@dataclass(frozen=True)
class LanguageModelRung:
    """A measured language model."""

    name: str
    evaluation: LanguageModelEvaluation
    accuracies: PhenomenonAccuracies  # on minimal pairs; empty if there are none
    seconds: float  # of training
    megabytes: float  # on disk

    @property
    def perplexity(self) -> float:
        return self.evaluation.likelihood.perplexity

    @property
    def floor(self) -> PointEstimate | None:
        """Perplexity of the true distribution, if it is known."""
        return None if self.evaluation.floor is None else self.evaluation.floor.perplexity

    @property
    def accuracy_by_column(self) -> dict[str, float]:
        return {column.name: column.accuracy(self.accuracies)[0] for column in ACCURACY_COLUMNS}

    def as_dict(self) -> dict[str, object]:
        about = {"model": self.name, "seconds": round(self.seconds, 3), "megabytes": round(self.megabytes, 3)}
        accuracies = {"contrasts": accuracies_as_dicts(self.accuracies)} if self.accuracies else {}
        return {**about, **self.evaluation.as_dict(), **accuracies}


def measure_language_model(
    rung: TrainedRung[LanguageModel],
    test: Corpus,
    true_log_probs: TrueLogProbs | None = None,
    pairs: Sequence[MinimalPair] = (),
    callbacks: Callbacks = SILENT,
) -> LanguageModelRung:
    """Evaluate a language model on the test text and on minimal pairs."""
    with callbacks.status(f"measuring {rung.name}"):
        evaluation = evaluate_language_model(rung.model, test, true_log_probs)
        accuracies = minimal_pair_accuracies(rung.model, pairs) if pairs else {}
    callbacks.info(f"{rung.name}: perplexity {evaluation.likelihood.perplexity:,.2f}")
    return LanguageModelRung(rung.name, evaluation, accuracies, rung.seconds, model_megabytes(rung.path))


@dataclass(frozen=True)
class TranslatorRung:
    """A measured translator."""

    name: str
    evaluation: TranslatorEvaluation  # with beam search
    greedy: TranslationScores
    seconds: float  # of training
    parameters: int

    @property
    def perplexity(self) -> float:
        return self.evaluation.perplexity

    @property
    def bleu(self) -> float:
        return self.evaluation.scores.bleu

    @property
    def floor(self) -> PointEstimate | None:
        """Perplexity of the true distribution, if it is known."""
        return self.evaluation.floor

    def as_dict(self) -> dict[str, object]:
        about = {"model": self.name, "training_seconds": round(self.seconds, 3), "parameters": self.parameters}
        return {**about, **self.evaluation.as_dict(), "greedy": self.greedy.as_dict()}


def measure_translator(
    name: str,
    model: Translator | Ensemble,
    lines: Sequence[str],
    references: ReferenceData,
    seconds: float,
    callbacks: Callbacks = SILENT,
) -> TranslatorRung:
    """Evaluate a translator on source lines, with beam search and greedy search."""
    with callbacks.status(f"measuring {name}"):
        evaluation = evaluate_translator(model, lines, references)
        greedy = search_scores(model, lines, references, beam_size=1)
    members = model.members if isinstance(model, Ensemble) else (model,)
    parameters = sum(member.num_parameters for member in members if isinstance(member, NeuralModel))
    callbacks.info(f"{name}: perplexity {evaluation.perplexity:,.2f}, {evaluation.task_scores.headline[0]}")
    return TranslatorRung(name, evaluation, greedy, seconds, parameters)


def search_scores(
    model: Translator | Ensemble,
    lines: Sequence[str],
    references: ReferenceData,
    beam_size: int = DEFAULT_BEAM_SIZE,
    **search: Unpack[SearchKwargs],
) -> TranslationScores:
    """Translate lines and score the translations; `search` has further arguments of `translate_text`."""
    texts = [translation.text for translation in model.translate_text(lines, beam_size, **search)]
    return score_translations(texts, references.references, references.tokenised, model.target.language)


@dataclass(frozen=True, eq=False)
class AttentionExample:
    """A sentence, its translation, and the attention of the translator."""

    name: str  # of the translator
    source: str
    reference: str
    translation: str
    target_words: Sequence[str]  # ends with `</s>`
    source_words: Sequence[str]  # ends with `</s>`
    matrix: NDArray[np.float64]  # (target words, source words)

    @property
    def mean_maximum(self) -> float:
        """The attention to the source word with the most of it, on average over target words."""
        return float(self.matrix.max(axis=1).mean())

    @property
    def uniform(self) -> float:
        """The attention to each word if all had the same."""
        return 1 / self.matrix.shape[1]

    @property
    def is_uniform(self) -> bool:
        """Whether the attention hardly differs from the uniform one."""
        return self.mean_maximum < UNIFORM_FACTOR * self.uniform


@dataclass
class Results:
    """What an experiment has measured."""

    language_models: list[LanguageModelRung] = field(default_factory=list)
    translators: list[TranslatorRung] = field(default_factory=list)
    attention: list[AttentionExample] = field(default_factory=list)  # of translators that have it


def choose_example(lines: Sequence[str], gold: Sequence[GoldAlignment] | None = None) -> int:
    """Return the number of a sentence to show attention on: not long, with reordered words if possible.

    >>> from dragoman.evaluation.alignment import GoldAlignment
    >>> links = [frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (6, 6)}), frozenset({(0, 6), (6, 0)})]
    >>> choose_example(["a b", "a b c d e f g", "a b c d e f h"], [GoldAlignment(pairs, pairs) for pairs in links])
    2
    """

    def is_reordered(number: int) -> bool:
        targets = [] if gold is None else [target for _, target in sorted(gold[number].sure)]
        return targets != sorted(targets)

    suitable = [number for number, line in enumerate(lines) if len(line.split()) in EXAMPLE_WORDS]
    return next(iter([*filter(is_reordered, suitable), *suitable, 0]))


def first_of_each_length(lines: Sequence[str], rung: TranslatorRung) -> list[int]:
    """Return the number of the first sentence of each length class."""
    lengths = [len(line.split()) for line in lines]
    minima = [length_class.bucket.minimum for length_class in rung.evaluation.by_length]
    return [
        next(number for number, length in enumerate(lengths) if low <= length < high)
        for low, high in pairwise([*minima, math.inf])
    ]


def read_learning_curve(metrics: Path) -> list[tuple[float, float]]:
    """Return minutes of training and perplexity of the dev text, from the metrics file of a training run."""
    return [
        (record["seconds"] / 60, math.exp(record["dev_loss"]))
        for record in map(json.loads, metrics.read_text(encoding="utf-8").splitlines())
        if record.get("dev_loss", math.inf) < MAX_CURVE_LOSS
    ]
