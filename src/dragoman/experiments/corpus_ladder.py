"""The ladder on one's own text, within a time: models are made, measured, and the tutorial's story told with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dragoman.experiments.callbacks import SILENT, Callbacks
from dragoman.experiments.corpus_models import (
    ATTENTION,
    CORPUS_LANGUAGE_MODELS,
    CORPUS_TRANSLATORS,
    ENSEMBLE,
    NAMES,
    SEARCHING,
    SECOND,
    time_weights,
    translator_names,
)
from dragoman.experiments.corpus_split import CorpusPart, CorpusSplit, write_split
from dragoman.experiments.time_budget import TimeBudget
from dragoman.experiments.trainer import ModelTrainer, TrainedRung, TrainingContext, megabytes
from dragoman.experiments.translators import measure_trained_translator, measure_translator_rung

if TYPE_CHECKING:
    from dragoman.align.aligner import Aligner
    from dragoman.align.lexicon import Lexicon
    from dragoman.data.corpus import ParallelCorpus
    from dragoman.evaluation.translator import ReferenceData
    from dragoman.models.translator import Translator
    from dragoman.report.corpus_translation import AttentionExample, LexiconExample, SearchVariant
    from dragoman.report.ladder import LanguageModelRung
    from dragoman.report.translators import TranslatorRung

TEXT, RUNGS_PLACE, ALIGNER = "text", "rungs", "aligner"  # directories
ALIGNED_A_MINUTE = 2500  # pairs that are aligned, at most, for each minute that there is
ENTRIES, ALTERNATIVES = 10, 3  # of the lexicon that are shown: words, and translations of each
SEEN_OFTEN = 5  # times, from which on a word's translations are worth showing
PROBED = 48  # sentences, by which the speed of the search is found
FEWEST_TRANSLATED = 20  # test sentences
CAREFUL = 1.2  # how much longer than it looks the search is taken to last
WIDEST = 40  # words of a sentence whose attention is shown, at most
OTHER_SEARCHES = ((2, "norm"), (10, "norm"), (5, "none"), (10, "none"), (5, "prior"))  # beam and length handling


@dataclass
class CorpusResults:
    """All that was found out, as far as it is known."""

    text: CorpusSplit
    rungs: list[LanguageModelRung] = field(default_factory=list)
    aligned: int = 0  # pairs that the lexicon is from
    entries: list[LexiconExample] = field(default_factory=list)
    certain_share: float = (
        0.0  # share of the words seen often whose likeliest translation is more probable than all others
    )
    units: tuple[str, str] = ("", "")
    translated: CorpusPart = field(default_factory=lambda: CorpusPart([], []))  # test sentences
    translators: list[TranslatorRung] = field(default_factory=list)
    searches: list[SearchVariant] = field(default_factory=list)
    bleu_by_replacement: dict[str, float] = field(default_factory=dict)  # BLEU by how unknown words were replaced
    attention_example: AttentionExample | None = None


@dataclass(frozen=True)
class CorpusExperiment:
    """Where a ladder is made, of what, and within which time."""

    output: Path
    text: CorpusSplit
    seed: int
    budget: TimeBudget
    voice: Callbacks

    def workshop(self, train: Any, dev: Any, recipes: Any, load: Callable[[Path], Any]) -> ModelTrainer[Any, Any]:
        place = self.output / RUNGS_PLACE
        ground = TrainingContext(train, dev, self.seed, None, place, self.voice)
        return ModelTrainer(place, ground, recipes, load, self.budget)


def run_corpus_ladder(
    output: Path,
    text: CorpusSplit,
    *,
    seed: int,
    minutes: float,
    callbacks: Callbacks = SILENT,
    began: float | None = None,
) -> tuple[CorpusResults, TimeBudget]:
    """Make and measure all rungs that there is time for.  # began: by `perf_counter`, if not now"""
    budget = TimeBudget(output, minutes, time_weights(text.is_parallel, minutes), began=began)
    climber = CorpusExperiment(output, text, seed, budget, callbacks)
    write_split(text, output / TEXT)
    found = CorpusResults(text)
    for rung in _language_models(climber):
        found.rungs.append(rung)
        budget.save()
    if text.is_parallel:
        _align(climber, found)
        _translate(climber, found)
    budget.finish()
    return found, budget


# -- language models -------------------------------------------------------------------------------------------------


def _language_models(climber: CorpusExperiment) -> Iterator[LanguageModelRung]:
    from dragoman.evaluation.floor import evaluate_language_model
    from dragoman.models.loading import load_language_model
    from dragoman.report.ladder import LanguageModelRung

    train, dev, test = climber.text.words
    for made in climber.workshop(train, dev, CORPUS_LANGUAGE_MODELS, load_language_model).train_all(NAMES):
        with climber.voice.status(f"measuring {made.name}"):
            result = evaluate_language_model(made.model, test)
        climber.voice.info(f"{made.name}: perplexity {result.likelihood.perplexity:,.2f}")
        yield LanguageModelRung(made.name, result, {}, made.seconds, megabytes(made.path))


# -- word alignment --------------------------------------------------------------------------------------------------


def _align(climber: CorpusExperiment, found: CorpusResults) -> None:
    """Which words belong together, and what the lexicon that comes of it says of some."""
    pairs = _word_pairs(climber)
    aligner = _aligner(climber, pairs)
    climber.budget.save()
    lexicon = aligner.forward.lexicon
    shown = _words_to_show(lexicon)
    found.aligned = len(pairs)
    found.entries = [_entry(lexicon, word) for word in shown]
    found.certain_share = _certain(lexicon)


def _word_pairs(climber: CorpusExperiment) -> ParallelCorpus:
    from dragoman.data.corpus import Corpus, ParallelCorpus

    some = climber.text.train.spread(max(1, int(ALIGNED_A_MINUTE * climber.budget.minutes)))
    return ParallelCorpus(Corpus.from_sentences(some.sources), Corpus.from_sentences(some.target))


def _aligner(climber: CorpusExperiment, pairs: ParallelCorpus) -> Aligner:
    from dragoman.align.aligner import Aligner

    path = climber.output / ALIGNER
    if path.exists():  # it is written whole
        climber.voice.info(f"{ALIGNER}: finished already, in {path}")
        return Aligner.load(path)
    climber.voice.info(f"{ALIGNER}: learning which words belong together from {len(pairs):,} pairs")
    with climber.voice.status("aligning words"):
        aligner = Aligner.train(pairs)
    aligner.save(path)
    return aligner


def _words_to_show(lexicon: Lexicon) -> list[str]:
    """Words from the most frequent ones to rarer ones, each about twice as rare as the one before."""
    from dragoman.data.vocabulary import UNK

    vocab = lexicon.source
    often = [
        (int(count), word)
        for word, count in zip(vocab.tokens[UNK + 1 :], vocab.counts[UNK + 1 :].tolist(), strict=True)
        if count >= SEEN_OFTEN and any(sign.isalpha() for sign in word)
    ]
    ranked = [word for _, word in sorted(often, key=lambda one: -one[0])]
    places = sorted({min(len(ranked) - 1, 2**power - 1) for power in range(2, 2 + ENTRIES)} if ranked else set())
    return [ranked[place] for place in places]


def _entry(lexicon: Lexicon, word: str) -> LexiconExample:
    from dragoman.report.corpus_translation import LexiconExample

    times = int(lexicon.source.counts[lexicon.source.id(word)])
    return LexiconExample(word, times, tuple((one.word, one.prob) for one in lexicon.translations(word, ALTERNATIVES)))


def _certain(lexicon: Lexicon) -> float:
    """The share of the words seen often that have one translation more probable than all others together."""
    from dragoman.data.vocabulary import UNK

    vocab = lexicon.source
    often = [word for word in vocab.tokens[UNK + 1 :] if vocab.counts[vocab.id(word)] >= SEEN_OFTEN]
    best = [lexicon.translations(word, 1) for word in often]
    return sum(bool(one) and one[0].prob > 0.5 for one in best) / len(often) if often else 0.0


# -- translators -----------------------------------------------------------------------------------------------------


def _translate(climber: CorpusExperiment, found: CorpusResults) -> None:
    """Train translators, then translate as many test sentences as there is time for."""
    from dragoman.evaluation.translator import ReferenceData

    made = {one.name: one for one in _translators(climber)}
    attention: Translator = made[ATTENTION].model
    found.units = (attention.source.segmenter.spec, attention.target.segmenter.spec)
    found.translated = some = _to_translate(climber, attention, len(made))
    answers = ReferenceData(some.target, tokenised=attention.target.tokenised)
    for one in made.values():
        found.translators.append(measure_trained_translator(one, some.sources, answers, climber.voice))
    if SECOND in made:
        found.translators.append(_ensemble(climber, [made[ATTENTION], made[SECOND]], some, answers))
    found.searches = _searches(climber, found, attention, answers)
    found.bleu_by_replacement = _replaced(climber, found, attention, answers)
    found.attention_example = _looked_at(attention, some)


def _translators(climber: CorpusExperiment) -> Iterator[TrainedRung[Translator]]:
    from dragoman.models.loading import load_translator

    text = climber.text
    for made in climber.workshop(text, text, CORPUS_TRANSLATORS, load_translator).train_all(
        translator_names(climber.budget.minutes)
    ):
        climber.budget.save()
        yield made


def _to_translate(climber: CorpusExperiment, model: Translator, translators: int) -> CorpusPart:
    """Test sentences: all, or as many as there is time for by the speed of a few."""
    test = climber.text.test

    def sentences() -> float:
        few = test.spread(PROBED).sources
        model.translate(few[:2])  # what happens only once is not to be counted
        began = perf_counter()
        model.translate(few)
        each = (perf_counter() - began) / len(few)
        return climber.budget.seconds_for(SEARCHING) / max(
            1e-9, CAREFUL * each * _cost(translators, _writes_words(model))
        )

    number = climber.budget.decide_once("translated", sentences)
    return test.spread(max(FEWEST_TRANSLATED, number))


def _writes_words(model: Translator) -> bool:
    """Whether there are unknown words to be replaced, and words to replace them by."""
    return model.source.segmenter.kind == model.target.segmenter.kind == "word"


def _cost(translators: int, words: bool) -> float:
    """Of all searches for a sentence, where that with a beam of five costs one: each translator's, an ensemble's, which
    are two translators', others of one, and those that replace unknown words."""
    alone = 1.0 + 0.4
    searches = sum(0.2 + 0.16 * beam for beam, _ in OTHER_SEARCHES)
    return translators * alone + (2 * alone if translators > 2 else 0) + searches + 2 * words


def _ensemble(
    climber: CorpusExperiment, made: Sequence[TrainedRung[Translator]], some: CorpusPart, answers: ReferenceData
) -> TranslatorRung:
    from dragoman.combine.ensemble import Ensemble

    together = Ensemble([one.model for one in made])
    with climber.voice.status("measuring the ensemble"):
        seconds = sum(one.seconds for one in made)
        return measure_translator_rung(ENSEMBLE, together, some.sources, answers, seconds)


def _searches(
    climber: CorpusExperiment, found: CorpusResults, model: Translator, answers: ReferenceData
) -> list[SearchVariant]:
    """The same translator by other searches, beside the two that it was measured by."""
    from dragoman.evaluation.translation_metrics import score_translations
    from dragoman.evaluation.translator import DEFAULT_BEAM, DEFAULT_LENGTH
    from dragoman.report.corpus_translation import SearchVariant

    own = next(rung for rung in found.translators if rung.name == ATTENTION)
    searches = [
        SearchVariant(1, DEFAULT_LENGTH, own.greedy),
        SearchVariant(DEFAULT_BEAM, DEFAULT_LENGTH, own.measured.scores),
    ]
    for beam, length in OTHER_SEARCHES:
        with climber.voice.status(f"translating with a beam of {beam}, length {length}"):
            told = model.translate(found.translated.sources, beam, length=length)
        judged = score_translations([one.text for one in told], answers.references, tokenised=answers.tokenised)
        searches.append(SearchVariant(beam, length, judged))
    return sorted(searches, key=lambda one: (one.length != DEFAULT_LENGTH, one.length, one.beam))


def _replaced(
    climber: CorpusExperiment, found: CorpusResults, model: Translator, answers: ReferenceData
) -> dict[str, float]:
    """BLEU with unknown words left alone, copied, and translated by the lexicon; nothing where there are none."""
    from dragoman.align.aligner import Aligner
    from dragoman.align.unknown_words import UnknownReplacer
    from dragoman.evaluation.translation_metrics import score_translations

    if not _writes_words(model):
        return {}
    lexicon = Aligner.load(climber.output / ALIGNER).forward.lexicon
    own = next(rung for rung in found.translators if rung.name == ATTENTION)
    bleu = {"left alone": own.measured.scores.bleu}
    for name, rules in (
        ("copied from the source", UnknownReplacer()),
        ("by the lexicon, else copied", UnknownReplacer(lexicon)),
    ):
        told = model.translate(found.translated.sources, unknown_replacer=rules)
        texts = [one.text for one in told]
        bleu[name] = score_translations(texts, answers.references, tokenised=answers.tokenised).bleu
    return bleu


def _looked_at(model: Translator, some: CorpusPart) -> AttentionExample | None:
    """A sentence that is not long, if there is one, and where attention looked as it was translated."""
    from dragoman.report.corpus_translation import AttentionExample
    from dragoman.report.translators import choose_example

    number = choose_example(some.sources, None)
    told = model.translate([some.sources[number]])[0]
    words = model.attention_matrix(told)
    if words is None or len(words.source) > WIDEST:
        return None
    return AttentionExample(
        some.sources[number], some.target[number], told.text, words.target, words.source, words.matrix
    )
