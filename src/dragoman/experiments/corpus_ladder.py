"""The ladder on one's own text, within a time: models are made, measured, and the tutorial's story told with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dragoman.experiments.callbacks import SILENT, Voice
from dragoman.experiments.corpus_models import (
    ATTENTION,
    ENSEMBLE,
    NAMES,
    OWN_RUNGS,
    OWN_TRANSLATORS,
    SEARCHING,
    SECOND,
    translator_names,
    weights,
)
from dragoman.experiments.corpus_split import OwnText, Part, write_text
from dragoman.experiments.time_budget import Budget
from dragoman.experiments.trainer import Ground, Made, Workshop, megabytes
from dragoman.experiments.translators import measured_rung, measured_translator

if TYPE_CHECKING:
    from dragoman.align.aligner import Aligner
    from dragoman.align.lexicon import Lexicon
    from dragoman.data.corpus import ParallelCorpus
    from dragoman.evaluation.translator import Answers
    from dragoman.models.translator import Translator
    from dragoman.report.corpus_translation import Entry, Looked, Searched
    from dragoman.report.ladder import Rung
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
class Found:
    """All that was found out, as far as it is known."""

    text: OwnText
    rungs: list[Rung] = field(default_factory=list)
    aligned: int = 0  # pairs that the lexicon is from
    entries: list[Entry] = field(default_factory=list)
    certain: float = 0.0  # share of the words seen often whose likeliest translation is more probable than all others
    units: tuple[str, str] = ("", "")
    translated: Part = field(default_factory=lambda: Part([], []))  # test sentences
    translators: list[TranslatorRung] = field(default_factory=list)
    searches: list[Searched] = field(default_factory=list)
    replaced: dict[str, float] = field(default_factory=dict)  # BLEU by how unknown words were replaced
    looked: Looked | None = None


@dataclass(frozen=True)
class Climber:
    """Where a ladder is made, of what, and within which time."""

    output: Path
    text: OwnText
    seed: int
    budget: Budget
    voice: Voice

    def workshop(self, train: Any, dev: Any, recipes: Any, load: Callable[[Path], Any]) -> Workshop[Any, Any]:
        place = self.output / RUNGS_PLACE
        ground = Ground(train, dev, self.seed, None, place, self.voice)
        return Workshop(place, ground, recipes, load, self.budget)


def climb_own(
    output: Path,
    text: OwnText,
    *,
    seed: int,
    minutes: float,
    voice: Voice = SILENT,
    began: float | None = None,
) -> tuple[Found, Budget]:
    """Make and measure all rungs that there is time for.  # began: by `perf_counter`, if not now"""
    budget = Budget(output, minutes, weights(text.translated, minutes), began=began)
    climber = Climber(output, text, seed, budget, voice)
    write_text(text, output / TEXT)
    found = Found(text)
    for rung in _language_models(climber):
        found.rungs.append(rung)
        budget.note()
    if text.translated:
        _align(climber, found)
        _translate(climber, found)
    budget.finish()
    return found, budget


# -- language models -------------------------------------------------------------------------------------------------


def _language_models(climber: Climber) -> Iterator[Rung]:
    from dragoman.evaluation.floor import measured
    from dragoman.models.loading import load_language_model
    from dragoman.report.ladder import Rung

    train, dev, test = climber.text.words
    for made in climber.workshop(train, dev, OWN_RUNGS, load_language_model).rungs(NAMES):
        with climber.voice.working(f"measuring {made.name}"):
            result = measured(made.model, test)
        climber.voice.say(f"{made.name}: perplexity {result.likelihood.perplexity:,.2f}")
        yield Rung(made.name, result, {}, made.seconds, megabytes(made.path))


# -- word alignment --------------------------------------------------------------------------------------------------


def _align(climber: Climber, found: Found) -> None:
    """Which words belong together, and what the lexicon that comes of it says of some."""
    pairs = _word_pairs(climber)
    aligner = _aligner(climber, pairs)
    climber.budget.note()
    lexicon = aligner.forward.lexicon
    shown = _words_to_show(lexicon)
    found.aligned = len(pairs)
    found.entries = [_entry(lexicon, word) for word in shown]
    found.certain = _certain(lexicon)


def _word_pairs(climber: Climber) -> ParallelCorpus:
    from dragoman.data.corpus import Corpus, ParallelCorpus

    some = climber.text.train.spread(max(1, int(ALIGNED_A_MINUTE * climber.budget.minutes)))
    return ParallelCorpus(Corpus.from_sentences(some.sources), Corpus.from_sentences(some.target))


def _aligner(climber: Climber, pairs: ParallelCorpus) -> Aligner:
    from dragoman.align.aligner import Aligner

    path = climber.output / ALIGNER
    if path.exists():  # it is written whole
        climber.voice.say(f"{ALIGNER}: finished already, in {path}")
        return Aligner.load(path)
    climber.voice.say(f"{ALIGNER}: learning which words belong together from {len(pairs):,} pairs")
    with climber.voice.working("aligning words"):
        aligner = Aligner.learn(pairs)
    aligner.save(path)
    return aligner


def _words_to_show(lexicon: Lexicon) -> list[str]:
    """Words from the most frequent ones to rarer ones, each about twice as rare as the one before."""
    from dragoman.data.vocabulary import UNK

    vocab = lexicon.source
    often = [
        (int(count), word)
        for word, count in zip(vocab.words[UNK + 1 :], vocab.counts[UNK + 1 :].tolist(), strict=True)
        if count >= SEEN_OFTEN and any(sign.isalpha() for sign in word)
    ]
    ranked = [word for _, word in sorted(often, key=lambda one: -one[0])]
    places = sorted({min(len(ranked) - 1, 2**power - 1) for power in range(2, 2 + ENTRIES)} if ranked else set())
    return [ranked[place] for place in places]


def _entry(lexicon: Lexicon, word: str) -> Entry:
    from dragoman.report.corpus_translation import Entry

    times = int(lexicon.source.counts[lexicon.source.id(word)])
    return Entry(word, times, tuple((one.word, one.prob) for one in lexicon.translations(word, ALTERNATIVES)))


def _certain(lexicon: Lexicon) -> float:
    """The share of the words seen often that have one translation more probable than all others together."""
    from dragoman.data.vocabulary import UNK

    vocab = lexicon.source
    often = [word for word in vocab.words[UNK + 1 :] if vocab.counts[vocab.id(word)] >= SEEN_OFTEN]
    best = [lexicon.translations(word, 1) for word in often]
    return sum(bool(one) and one[0].prob > 0.5 for one in best) / len(often) if often else 0.0


# -- translators -----------------------------------------------------------------------------------------------------


def _translate(climber: Climber, found: Found) -> None:
    """Train translators, then translate as many test sentences as there is time for."""
    from dragoman.evaluation.translator import Answers

    made = {one.name: one for one in _translators(climber)}
    attention: Translator = made[ATTENTION].model
    found.units = (attention.source.units.spec, attention.target.units.spec)
    found.translated = some = _to_translate(climber, attention, len(made))
    answers = Answers(some.target, tokenised=attention.target.tokenised)
    for one in made.values():
        found.translators.append(measured_translator(one, some.sources, answers, climber.voice))
    if SECOND in made:
        found.translators.append(_ensemble(climber, [made[ATTENTION], made[SECOND]], some, answers))
    found.searches = _searches(climber, found, attention, answers)
    found.replaced = _replaced(climber, found, attention, answers)
    found.looked = _looked_at(attention, some)


def _translators(climber: Climber) -> Iterator[Made[Translator]]:
    from dragoman.models.loading import load_translator

    text = climber.text
    for made in climber.workshop(text, text, OWN_TRANSLATORS, load_translator).rungs(
        translator_names(climber.budget.minutes)
    ):
        climber.budget.note()
        yield made


def _to_translate(climber: Climber, model: Translator, translators: int) -> Part:
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

    number = climber.budget.decided("translated", sentences)
    return test.spread(max(FEWEST_TRANSLATED, number))


def _writes_words(model: Translator) -> bool:
    """Whether there are unknown words to be replaced, and words to replace them by."""
    return model.source.units.kind == model.target.units.kind == "word"


def _cost(translators: int, words: bool) -> float:
    """Of all searches for a sentence, where that with a beam of five costs one: each translator's, an ensemble's, which
    are two translators', others of one, and those that replace unknown words."""
    alone = 1.0 + 0.4
    searches = sum(0.2 + 0.16 * beam for beam, _ in OTHER_SEARCHES)
    return translators * alone + (2 * alone if translators > 2 else 0) + searches + 2 * words


def _ensemble(climber: Climber, made: Sequence[Made[Translator]], some: Part, answers: Answers) -> TranslatorRung:
    from dragoman.combine.ensemble import Ensemble

    together = Ensemble([one.model for one in made])
    with climber.voice.working("measuring the ensemble"):
        seconds = sum(one.seconds for one in made)
        return measured_rung(ENSEMBLE, together, some.sources, answers, seconds)


def _searches(climber: Climber, found: Found, model: Translator, answers: Answers) -> list[Searched]:
    """The same translator by other searches, beside the two that it was measured by."""
    from dragoman.evaluation.translation_metrics import judge
    from dragoman.evaluation.translator import BEAM, LENGTH
    from dragoman.report.corpus_translation import Searched

    own = next(rung for rung in found.translators if rung.name == ATTENTION)
    searches = [Searched(1, LENGTH, own.greedy), Searched(BEAM, LENGTH, own.measured.judged)]
    for beam, length in OTHER_SEARCHES:
        with climber.voice.working(f"translating with a beam of {beam}, length {length}"):
            told = model.translate(found.translated.sources, beam, length=length)
        judged = judge([one.text for one in told], answers.references, tokenised=answers.tokenised)
        searches.append(Searched(beam, length, judged))
    return sorted(searches, key=lambda one: (one.length != LENGTH, one.length, one.beam))


def _replaced(climber: Climber, found: Found, model: Translator, answers: Answers) -> dict[str, float]:
    """BLEU with unknown words left alone, copied, and translated by the lexicon; nothing where there are none."""
    from dragoman.align.aligner import Aligner
    from dragoman.align.unknown_words import Unknowns
    from dragoman.evaluation.translation_metrics import judge

    if not _writes_words(model):
        return {}
    lexicon = Aligner.load(climber.output / ALIGNER).forward.lexicon
    own = next(rung for rung in found.translators if rung.name == ATTENTION)
    bleu = {"left alone": own.measured.judged.bleu}
    for name, rules in (("copied from the source", Unknowns()), ("by the lexicon, else copied", Unknowns(lexicon))):
        told = model.translate(found.translated.sources, unknowns=rules)
        texts = [one.text for one in told]
        bleu[name] = judge(texts, answers.references, tokenised=answers.tokenised).bleu
    return bleu


def _looked_at(model: Translator, some: Part) -> Looked | None:
    """A sentence that is not long, if there is one, and where attention looked as it was translated."""
    from dragoman.report.corpus_translation import Looked
    from dragoman.report.translators import example_of

    number = example_of(some.sources, None)
    told = model.translate([some.sources[number]])[0]
    words = model.words_attended(told)
    if words is None or len(words.source) > WIDEST:
        return None
    return Looked(some.sources[number], some.target[number], told.text, words.target, words.source, words.matrix)
