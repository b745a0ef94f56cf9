"""The ladder on the user's text, within a time limit: all kinds of models that there is time for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from dragoman.align.aligner import Aligner
from dragoman.align.lexicon import Lexicon
from dragoman.align.unknown_words import UnknownReplacer
from dragoman.combine.ensemble import Ensemble
from dragoman.core.defaults import DEFAULT_BEAM_SIZE, DEFAULT_LENGTH
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.vocabulary import UNK
from dragoman.evaluation.translation_metrics import TranslationScores
from dragoman.evaluation.translator import ReferenceData
from dragoman.experiments import recipes
from dragoman.experiments.corpus_data import CorpusFiles, CorpusNames, CorpusPart, CorpusSplit, split_corpus
from dragoman.experiments.directories import check_settings, claim_directory
from dragoman.experiments.pipeline import RESUME, Experiment, ExperimentReport
from dragoman.experiments.results import (
    AttentionExample,
    Results,
    TranslatorRung,
    choose_example,
    measure_language_model,
    measure_translator,
    search_scores,
)
from dragoman.experiments.time_budget import TimeBudget
from dragoman.experiments.trainer import SILENT, Callbacks, TrainedRung
from dragoman.models.loading import load_language_model, load_trained_translator
from dragoman.models.translator import Translator

MINUTES = 20.0  # for everything, by default
TEXT_DIRECTORY, MODELS_DIRECTORY, ALIGNER_DIRECTORY = "text", "rungs", "aligner"
ALIGNED_PER_MINUTE = 2500  # pairs that are aligned at most, for each minute of the experiment
LEXICON_WORDS, LEXICON_TRANSLATIONS = 10, 3  # that are shown
FREQUENT = 5  # a word with at least so many occurrences is shown with its translations
TIMED_SENTENCES = 48  # translated to measure the speed of the search
MIN_TRANSLATED = 20  # test sentences
TIME_MARGIN = 1.2  # the search is expected to take this much longer than measured
MAX_ATTENTION_WORDS = 40  # of a sentence whose attention is shown
NOT_REPLACED = "not replaced"  # unknown words, in reports
OTHER_SEARCHES = ((2, "norm"), (10, "norm"), (5, "none"), (10, "none"), (5, "prior"))  # beam and length handling


@dataclass(frozen=True)
class LexiconExample:
    """A source word and its most probable translations."""

    word: str
    count: int
    translations: tuple[tuple[str, float], ...]  # with probabilities


@dataclass(frozen=True)
class LexiconSummary:
    pairs: int  # that it was estimated from
    examples: list[LexiconExample]
    certain_share: float  # of the frequent words: those with a translation more probable than all others together


@dataclass(frozen=True)
class SearchVariant:
    """Scores of one way to search."""

    beam: int
    length: str  # length handling
    scores: TranslationScores

    def as_dict(self) -> dict[str, object]:
        return {"beam": self.beam, "length": self.length, **self.scores.as_dict()}


@dataclass
class CorpusResults(Results):
    lexicon: LexiconSummary | None = None
    units: tuple[str, str] = ("", "")  # of source and target
    translated: CorpusPart = field(default_factory=lambda: CorpusPart([], []))  # test sentences
    searches: list[SearchVariant] = field(default_factory=list)
    bleu_by_replacement: dict[str, float] = field(default_factory=dict)  # how unknown words are replaced

    @property
    def scores_by_search(self) -> dict[tuple[int, str], TranslationScores]:
        """Scores by beam size and length handling."""
        return {(variant.beam, variant.length): variant.scores for variant in self.searches}


def run_corpus_ladder(
    output: Path, files: CorpusFiles, *, minutes: float = MINUTES, seed: int = 1, callbacks: Callbacks = SILENT
) -> ExperimentReport:
    """Train and compare models on the user's text, or continue a run that was stopped.

    Args:
        output: directory of texts, models and reports.
        files: the user's texts.
        minutes: for everything together.
        seed: random seed of the held-out lines and of all models.
    """
    start = perf_counter()
    files.check()
    parts = files.read()
    split = split_corpus(*parts, seed, minutes)
    claim_directory(output, "ladder", RESUME)
    checksums = {
        f"{name} text": None if part is None else part.checksum
        for name, part in zip(("training", "dev", "test"), parts, strict=True)
    }
    check_settings(output, {"minutes": minutes, "seed": seed, **checksums}, files.language_notes)
    return CorpusExperiment(
        output=output,
        models=output / MODELS_DIRECTORY,
        seed=seed,
        budget=TimeBudget(output, minutes, recipes.time_weights(split.is_parallel, minutes), start=start),
        callbacks=callbacks,
        split=split,
        names=files.names,
    ).run()


@dataclass(frozen=True, kw_only=True)
class CorpusExperiment(Experiment[CorpusSplit, CorpusResults]):
    """All kinds of models on the user's text."""

    budget: TimeBudget
    split: CorpusSplit
    names: CorpusNames

    def prepare(self) -> CorpusSplit:
        self.split.write(self.output / TEXT_DIRECTORY)
        lines = ", ".join(f"{name} {len(part):,}" for name, part in self.split.parts.items())
        self.callbacks.info(f"{self.output}: lines: {lines}; {self.budget.minutes:g} minutes for everything")
        return self.split

    def measure(self, split: CorpusSplit) -> CorpusResults:
        results = CorpusResults()
        train, dev, test = split.target_words
        language_models = self.trainer(recipes.CORPUS_LANGUAGE_MODELS, train, dev, load_language_model)
        for rung in language_models.train_all(recipes.CORPUS_LANGUAGE_MODELS):
            results.language_models.append(measure_language_model(rung, test, callbacks=self.callbacks))
            self.budget.save()
        if split.is_parallel:
            lexicon, pairs = self._train_lexicon(split)
            translators: dict[str, TrainedRung[Translator]] = {}
            trainer = self.trainer(recipes.CORPUS_TRANSLATORS, split, split, load_trained_translator)
            for translator in trainer.train_all(recipes.translator_names(self.budget.minutes)):
                translators[translator.name] = translator
                self.budget.save()
            results.lexicon = summarize_lexicon(lexicon, pairs)
            self._measure_translators(split.test, translators, lexicon, results)
        self.budget.finish()
        return results

    def _train_lexicon(self, split: CorpusSplit) -> tuple[Lexicon, int]:
        """Estimate word alignments, unless that is done. Return the lexicon and the number of pairs it is from."""
        path = self.output / ALIGNER_DIRECTORY
        part = split.train.spread(max(1, int(ALIGNED_PER_MINUTE * self.budget.minutes)))
        if path.exists():  # it is written atomically
            self.callbacks.info(f"aligner: already trained, in {path}")
        else:
            self.callbacks.info(f"aligner: estimating word alignments from {len(part):,} pairs")
            pairs = ParallelCorpus(Corpus.from_sentences(part.sources), Corpus.from_sentences(part.target))
            with self.callbacks.status("aligning words"):
                Aligner.train(pairs).save(path)
            self.budget.save()
        return Aligner.load(path).forward.lexicon, len(part)

    def _measure_translators(
        self, test: CorpusPart, rungs: Mapping[str, TrainedRung[Translator]], lexicon: Lexicon, results: CorpusResults
    ) -> None:
        """Translate as many test sentences as there is time for, with each translator and in several ways."""
        model = rungs[recipes.ATTENTION].model
        results.units = (model.source.segmenter.spec, model.target.segmenter.spec)
        results.translated = part = self._choose_sentences(test, model, len(rungs))
        references = ReferenceData(part.target, tokenised=model.target.tokenised)
        models: dict[str, tuple[Translator | Ensemble, float]] = {
            name: (rung.model, rung.seconds) for name, rung in rungs.items()
        }
        if recipes.SECOND in rungs:
            members = [rungs[recipes.ATTENTION], rungs[recipes.SECOND]]
            ensemble = Ensemble([member.model for member in members])
            models[recipes.ENSEMBLE] = ensemble, sum(member.seconds for member in members)
        results.translators = [
            measure_translator(name, translator, part.sources, references, seconds, self.callbacks)
            for name, (translator, seconds) in models.items()
        ]
        with_attention = next(rung for rung in results.translators if rung.name == recipes.ATTENTION)
        results.searches = self._compare_searches(with_attention, model, part, references)
        if _has_unknown_words(model):
            results.bleu_by_replacement = _compare_replacements(with_attention, model, part, references, lexicon)
        results.attention = _attention_examples(model, part)

    def _choose_sentences(self, test: CorpusPart, model: Translator, translators: int) -> CorpusPart:
        """Return all test sentences, or as many as there is time for. The speed is measured on a few."""

        def affordable_sentences() -> float:
            sample = test.spread(TIMED_SENTENCES).sources
            model.translate(sample[:2])  # so that compilation is not counted
            start = perf_counter()
            model.translate(sample)
            seconds = (perf_counter() - start) / len(sample)  # of a search with a beam of five
            beam_and_greedy = 1.0 + 0.4  # all costs are relative to the search with a beam of five
            ensemble = 2 * beam_and_greedy if translators > 2 else 0.0
            variants = sum(0.2 + 0.16 * beam for beam, _ in OTHER_SEARCHES)
            searches = translators * beam_and_greedy + ensemble + variants + 2 * _has_unknown_words(model)
            return self.budget.seconds_for(recipes.SEARCHING) / max(1e-9, TIME_MARGIN * seconds * searches)

        number = self.budget.decide_once("translated", affordable_sentences)
        return test.spread(max(MIN_TRANSLATED, number))

    def _compare_searches(
        self, rung: TranslatorRung, model: Translator, part: CorpusPart, references: ReferenceData
    ) -> list[SearchVariant]:
        """Return scores with other beams and length handling, beside the two that are measured already."""
        variants = [
            SearchVariant(1, DEFAULT_LENGTH, rung.greedy),
            SearchVariant(DEFAULT_BEAM_SIZE, DEFAULT_LENGTH, rung.evaluation.scores),
        ]
        for beam, length in OTHER_SEARCHES:
            with self.callbacks.status(f"translating with a beam of {beam}, length {length}"):
                scores = search_scores(model, part.sources, references, beam_size=beam, length=length)
            variants.append(SearchVariant(beam, length, scores))
        return sorted(variants, key=lambda variant: (variant.length != DEFAULT_LENGTH, variant.length, variant.beam))

    def report(self, split: CorpusSplit, results: CorpusResults) -> ExperimentReport:
        from dragoman.experiments.corpus_report import corpus_report  # which imports this module

        return corpus_report(self, split, results)


def _has_unknown_words(model: Translator) -> bool:
    """Return whether the translator reads and writes words, so that unknown words can be replaced."""
    return model.source.segmenter.kind == model.target.segmenter.kind == "word"


def _compare_replacements(
    rung: TranslatorRung, model: Translator, part: CorpusPart, references: ReferenceData, lexicon: Lexicon
) -> dict[str, float]:
    """Return BLEU with unknown words unchanged, copied, and translated by the lexicon."""
    replacers = {"copied from the source": UnknownReplacer(), "by the lexicon, else copied": UnknownReplacer(lexicon)}
    others = {
        name: search_scores(model, part.sources, references, unknown_replacer=replacer).bleu
        for name, replacer in replacers.items()
    }
    return {NOT_REPLACED: rung.bleu, **others}


def _attention_examples(model: Translator, part: CorpusPart) -> list[AttentionExample]:
    """Return the attention of a test sentence, or nothing if it is too long."""
    number = choose_example(part.sources)
    translation = model.translate([part.sources[number]])[0]
    words = model.attention_matrix(translation)
    if words is None or len(words.source) > MAX_ATTENTION_WORDS:
        return []
    sentence = part.sources[number], part.target[number], translation.text
    return [AttentionExample(recipes.ATTENTION, *sentence, words.target, words.source, words.matrix)]


def summarize_lexicon(lexicon: Lexicon, pairs: int) -> LexiconSummary:
    """Return examples of frequent and rarer words, and the share of words with a certain translation."""
    vocab = lexicon.source
    all_counts = zip(vocab.tokens[UNK + 1 :], map(int, vocab.counts[UNK + 1 :].tolist()), strict=True)
    frequent = [(word, count) for word, count in all_counts if count >= FREQUENT]
    counts = dict(sorted(frequent, key=lambda item: -item[1]))
    words = [word for word in counts if any(character.isalpha() for character in word)]
    ranks = sorted({min(len(words) - 1, 2**power - 1) for power in range(2, 2 + LEXICON_WORDS)}) if words else []
    examples = []
    for word in (words[rank] for rank in ranks):
        translations = lexicon.translations(word, LEXICON_TRANSLATIONS)
        examples.append(LexiconExample(word, counts[word], tuple((entry.word, entry.prob) for entry in translations)))
    best = [lexicon.translations(word, 1) for word in counts]
    certain = sum(bool(entries) and entries[0].prob > 0.5 for entries in best)
    return LexiconSummary(pairs, examples, certain / len(counts) if counts else 0.0)
