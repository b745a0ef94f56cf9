"""Experiments on the lab's text, whose true probabilities and alignments are known: used by the demo and the ladder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.experiments.recipes import MAX_LAB_PAIRS
from dragoman.experiments.results import (
    AttentionExample,
    LanguageModelRung,
    TranslatorRung,
    choose_example,
    measure_language_model,
    measure_translator,
)
from dragoman.experiments.trainer import SILENT, Callbacks, ModelTrainer, Recipe, TrainedRung, TrainingContext

if TYPE_CHECKING:
    from dragoman.data.corpus import Corpus
    from dragoman.evaluation.floor import TrueLogProbs
    from dragoman.evaluation.translator import ReferenceData
    from dragoman.experiments.pipeline import ExperimentReport
    from dragoman.models.language_model import LanguageModel
    from dragoman.models.translator import Translator

LAB_DIRECTORY = "lab"


# -- data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabPairs:
    """German and English, line by line, and the trees of the German."""

    german: Sequence[str]
    trees: Sequence[str]
    english: Sequence[str]

    def first(self, pairs: int) -> LabPairs:
        """Return at most this many pairs from the start."""
        return LabPairs(self.german[:pairs], self.trees[:pairs], self.english[:pairs])

    def sources(self, format: str) -> Sequence[str]:
        """Return the German in the format that a translator reads."""
        from dragoman.data.tokenizer import TREE

        return self.trees if format == TREE else self.german


@dataclass(frozen=True)
class LabData:
    """The lab's corpus."""

    english: tuple[Corpus, Corpus, Corpus]  # train, dev and test text of language models
    true_log_probs: TrueLogProbs  # of the English test text
    train: LabPairs
    dev: LabPairs
    test: LabPairs
    references: ReferenceData  # of the test pairs
    example: int  # number of a test pair to show attention on


def write_lab_data(directory: Path, sizes: Mapping[str, int], seed: int) -> None:
    """Sample the corpus and write it, replacing an older one."""
    from dragoman.lab.corpus_files import write_lab_corpus
    from dragoman.lab.lab import german_english_lab

    write_lab_corpus(german_english_lab(), directory, sizes, seed, replace=True)


def read_lab_data(directory: Path) -> LabData:
    """Read the corpus that `write_lab_data` has written."""
    from dragoman.data.corpus import Corpus
    from dragoman.evaluation.alignment import read_gold_alignments
    from dragoman.evaluation.lab_reference import lab_true_log_probs
    from dragoman.evaluation.translator import ReferenceData, read_log_probs

    vocab = (train := Corpus.read(directory / "train.en")).vocab
    dev, test = (Corpus.read(directory / f"{part}.en", vocab) for part in ("dev", "test"))
    train_pairs, dev_pairs, test_pairs = (_read_pairs(directory, part) for part in ("train", "dev", "test"))
    gold = read_gold_alignments(directory / "test.align")
    return LabData(
        english=(train, dev, test),
        true_log_probs=lab_true_log_probs("en", test),
        train=train_pairs,
        dev=dev_pairs,
        test=test_pairs,
        references=ReferenceData(test_pairs.english, read_log_probs(directory / "test.logprob"), gold),
        example=choose_example(test_pairs.german, gold),
    )


def _read_pairs(directory: Path, part: str) -> LabPairs:
    paths = (directory / f"{part}.{extension}" for extension in ("de", "de.trees", "en"))
    return LabPairs(*(path.read_text(encoding="utf-8").splitlines() for path in paths))


# -- experiment ------------------------------------------------------------------------------------------------------


@dataclass
class LabResults:
    language_models: list[LanguageModelRung] = field(default_factory=list)
    translators: list[TranslatorRung] = field(default_factory=list)
    attention: list[AttentionExample] = field(default_factory=list)  # of translators that have it


@dataclass(frozen=True)
class LabExperiment:
    """Language models and translators on the lab's text; see `dragoman.experiments.pipeline.Experiment`."""

    output: Path
    models: Path  # directory of the models
    seed: int
    sizes: Mapping[str, int]  # sentence pairs of train, dev and test text
    language_models: Mapping[str, Recipe[LanguageModel]]
    translators: Mapping[str, Recipe[Translator]]
    names: Sequence[str]  # of the models to train, from both
    make_report: Callable[[LabExperiment, LabData, LabResults], ExperimentReport]
    minutes: float | None = None  # time limit of each training by gradient descent
    minimal_pairs: int = 0  # per phenomenon and class of distance
    start_again: bool = False  # sample the text and train the models again
    announce: Callable[[LabExperiment, LabData], None] | None = None  # called before models are trained
    callbacks: Callbacks = SILENT

    @property
    def data_directory(self) -> Path:
        return self.output / LAB_DIRECTORY

    def prepare(self) -> LabData:
        with self.callbacks.status("sampling sentences from the grammar of the lab"):
            if self.start_again or not self.data_directory.exists():  # it is written atomically
                write_lab_data(self.data_directory, self.sizes, self.seed)
            data = read_lab_data(self.data_directory)
        train = data.english[0]
        size = f"{train.num_words:,} English words, {train.vocab.num_known - 1:,} distinct"
        self.callbacks.info(f"{self.output}: {train.num_sentences:,} sentence pairs to train on, {size}")
        if self.announce is not None:
            self.announce(self, data)
        return data

    def train(self, data: LabData) -> Iterator[TrainedRung[Any]]:
        from dragoman.models.loading import load_language_model, load_translator

        train, dev, _ = data.english
        text, pairs = self._context(train, dev), self._context(data.train.first(MAX_LAB_PAIRS), data.dev)
        language_models = ModelTrainer(self.models, text, self.language_models, load_language_model)
        yield from language_models.train_all(name for name in self.names if name in self.language_models)
        translators = ModelTrainer(self.models, pairs, self.translators, load_translator)
        yield from translators.train_all(name for name in self.names if name in self.translators)

    def _context(self, train: Any, dev: Any) -> TrainingContext[Any]:
        return TrainingContext(
            *(train, dev, self.seed, self.models),
            minutes=self.minutes,
            retrain=self.start_again,
            callbacks=self.callbacks,
        )

    def measure(self, data: LabData, rungs: Iterator[TrainedRung[Any]]) -> LabResults:
        from dragoman.lab.minimal_pairs import sample_minimal_pairs

        pairs = sample_minimal_pairs("en", self.minimal_pairs, self.seed) if self.minimal_pairs else []
        results = LabResults()
        for rung in rungs:
            if rung.name in self.language_models:
                test, true_log_probs = data.english[2], data.true_log_probs
                results.language_models.append(
                    measure_language_model(rung, test, true_log_probs, pairs, self.callbacks)
                )
                continue
            lines = data.test.sources(rung.model.source.format)
            measured = measure_translator(rung.name, rung.model, lines, data.references, rung.seconds, self.callbacks)
            results.translators.append(measured)
            if measured.evaluation.alignment is not None:
                results.attention.append(_attention_example(measured, rung.model, data, lines))
        return results

    def report(self, data: LabData, results: LabResults) -> ExperimentReport:
        return self.make_report(self, data, results)


def _attention_example(
    rung: TranslatorRung, model: Translator, data: LabData, lines: Sequence[str]
) -> AttentionExample:
    """Return the attention with which a translator translated the example sentence."""
    from dragoman.data.vocabulary import END, SPECIALS
    from dragoman.evaluation.translator import attention_over_source_words

    number = data.example
    translation = rung.evaluation.translations[number]
    assert translation.attention is not None, "a short sentence, by a translator with attention"
    matrix = attention_over_source_words(translation.attention, model.source, lines[number])
    return AttentionExample(
        name=rung.name,
        source=data.test.german[number],
        reference=data.test.english[number],
        translation=translation.text,
        target_words=(*translation.tokens, SPECIALS[END])[: len(matrix)],
        source_words=(*data.test.german[number].split(), SPECIALS[END]),
        matrix=matrix,
    )
