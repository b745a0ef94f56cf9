"""Experiments on the lab's text, whose true probabilities and alignments are known: used by the demo and the ladder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.corpus import Corpus
from dragoman.data.tokenizer import TREE
from dragoman.data.vocabulary import END, SPECIALS
from dragoman.evaluation.alignment import read_gold_alignments
from dragoman.evaluation.floor import TrueLogProbs
from dragoman.evaluation.lab_reference import lab_true_log_probs
from dragoman.evaluation.translator import ReferenceData, attention_over_source_words, read_log_probs
from dragoman.experiments.pipeline import Experiment
from dragoman.experiments.recipes import MAX_LAB_PAIRS
from dragoman.experiments.results import (
    AttentionExample,
    Results,
    TranslatorRung,
    choose_example,
    measure_language_model,
    measure_translator,
)
from dragoman.experiments.trainer import Recipe
from dragoman.lab.corpus_files import write_lab_corpus
from dragoman.lab.lab import german_english_lab
from dragoman.lab.minimal_pairs import sample_minimal_pairs
from dragoman.models.language_model import LanguageModel
from dragoman.models.loading import load_language_model, load_trained_translator
from dragoman.models.translator import Translator

LAB_DIRECTORY = "lab"


@dataclass(frozen=True)
class LabPairs:
    """German and English, line by line, and the trees of the German."""

    german: Sequence[str]
    trees: Sequence[str]
    english: Sequence[str]

    @classmethod
    def read(cls, directory: Path, part: str) -> LabPairs:
        paths = (directory / f"{part}.{extension}" for extension in ("de", "de.trees", "en"))
        return cls(*(path.read_text(encoding="utf-8").splitlines() for path in paths))

    def first(self, pairs: int) -> LabPairs:
        """Return at most this many pairs from the start."""
        return LabPairs(self.german[:pairs], self.trees[:pairs], self.english[:pairs])

    def sources(self, format: str) -> Sequence[str]:
        """Return the German in the format that a translator reads."""
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

    @classmethod
    def read(cls, directory: Path) -> LabData:
        train = Corpus.read(directory / "train.en")
        dev, test = (Corpus.read(directory / f"{part}.en", train.vocab) for part in ("dev", "test"))
        train_pairs, dev_pairs, test_pairs = (LabPairs.read(directory, part) for part in ("train", "dev", "test"))
        gold = read_gold_alignments(directory / "test.align")
        return cls(
            english=(train, dev, test),
            true_log_probs=lab_true_log_probs("en", test),
            train=train_pairs,
            dev=dev_pairs,
            test=test_pairs,
            references=ReferenceData(test_pairs.english, read_log_probs(directory / "test.logprob"), gold),
            example=choose_example(test_pairs.german, gold),
        )


@dataclass(frozen=True, kw_only=True)
class LabExperiment(Experiment[LabData, Results]):
    """Language models and translators on the lab's text."""

    sizes: Mapping[str, int]  # sentence pairs of train, dev and test text
    language_models: Mapping[str, Recipe[LanguageModel]]
    translators: Mapping[str, Recipe[Translator]]
    names: Sequence[str]  # of the models to train, from both
    minimal_pairs: int = 0  # per phenomenon and class of distance

    @property
    def data_directory(self) -> Path:
        return self.output / LAB_DIRECTORY

    def prepare(self) -> LabData:
        directory = self.data_directory
        with self.callbacks.status("sampling sentences from the grammar of the lab"):
            if self.start_again or not directory.exists():  # it is written atomically
                write_lab_corpus(german_english_lab(), directory, self.sizes, self.seed, replace=True)
            data = LabData.read(directory)
        train = data.english[0]
        size = f"{train.num_words:,} English words, {train.vocab.num_known - 1:,} distinct"
        self.callbacks.info(f"{self.output}: {train.num_sentences:,} sentence pairs to train on, {size}")
        return data

    def measure(self, data: LabData) -> Results:
        results = Results()
        train, dev, test = data.english
        pairs = sample_minimal_pairs("en", self.minimal_pairs, self.seed) if self.minimal_pairs else []
        language_models = self.trainer(self.language_models, train, dev, load_language_model)
        for rung in language_models.train_all(self.names):
            results.language_models.append(
                measure_language_model(rung, test, data.true_log_probs, pairs, self.callbacks)
            )
        translators = self.trainer(self.translators, data.train.first(MAX_LAB_PAIRS), data.dev, load_trained_translator)
        for translator in translators.train_all(self.names):
            model = translator.model
            lines = data.test.sources(model.source.format)
            measured = measure_translator(
                translator.name, model, lines, data.references, translator.seconds, self.callbacks
            )
            results.translators.append(measured)
            if measured.evaluation.alignment is not None:
                results.attention.append(_attention_example(measured, model, data, lines[data.example]))
        return results


def _attention_example(rung: TranslatorRung, model: Translator, data: LabData, line: str) -> AttentionExample:
    """Return the attention with which a translator translated the example sentence."""
    german, translation = data.test.german[data.example], rung.evaluation.translations[data.example]
    assert translation.attention is not None, "a short sentence, by a translator with attention"
    matrix = attention_over_source_words(translation.attention, model.source, line)
    return AttentionExample(
        name=rung.name,
        source=german,
        reference=data.test.english[data.example],
        translation=translation.text,
        target_words=(*translation.tokens, SPECIALS[END])[: len(matrix)],
        source_words=(*german.split(), SPECIALS[END]),
        matrix=matrix,
    )
