"""What a person asks of any translator: lines of text in, lines of text out."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.alignments import append_end, attention_to_words
from dragoman.data.segmenters import TextLengths
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.vocabulary import END, SPECIALS, UNK
from dragoman.data.words import split_words

if TYPE_CHECKING:
    from dragoman.align.unknown_words import Replacement, UnknownReplacer
    from dragoman.core.scorer import Scorer
    from dragoman.data.batches import Batch
    from dragoman.models.language_model import LanguageModel
    from dragoman.search.diagnosis import ErrorKind
    from dragoman.search.hypothesis import Hypothesis
    from dragoman.search.length import LengthHandling, LengthPrior

PAIRS_PER_BATCH = 64  # while they are read word by word
MAX_TOKENS = 250  # of a line that is translated in one piece
DEFAULT_LENGTH = "norm"  # the length handling, if none is asked for
SENTENCE_END_MARKS = (".", "!", "?", "。", "！", "？", "।")  # after which a line is best cut


@dataclass(frozen=True)
class Translation:
    """A translation of a line."""

    text: str
    tokens: tuple[str, ...]  # its units
    log_prob: float  # log P(E | F)
    score: float  # what the search maximised
    source_tokens: tuple[str, ...]  # the units of the line
    finished: bool = True  # False: cut off at the longest length allowed
    attention: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    # (words and `</s>`, source and `</s>`): where each word was looked for; none without attention, or if the line was
    # translated in pieces
    replacements: tuple[Replacement, ...] = ()  # what the text has in the place of unknown words

    @property
    def tokens_with_end(self) -> tuple[str, ...]:
        """The rows of the attention: words, and `</s>` unless it was cut off."""
        return (*self.tokens, SPECIALS[END]) if self.finished else self.tokens


EMPTY_TRANSLATION = Translation("", (), 0.0, 0.0, ())  # of a blank line


class BaseTranslator(ABC):
    """A scorer of P(E | F) that knows how text becomes numbers on both sides."""

    source: Tokenizer
    target: Tokenizer
    length_prior: LengthPrior  # P(|E| given |F|) of the training text

    def translate(self, lines: str | Iterable[str], beam_size: int = 5, **how: Any) -> list[Translation]:
        """The best translation that is found of each line. How: see `n_best`."""
        return [best[0] for best in self.n_best(lines, 1, beam_size, **how)]

    def n_best(
        self,
        lines: str | Iterable[str],
        n: int = 1,
        beam_size: int = 5,
        *,
        length: str | LengthHandling = DEFAULT_LENGTH,
        max_tokens: int = MAX_TOKENS,
        unknown_replacer: UnknownReplacer | None = None,
        prefix: str | Sequence[str] = (),
        **how: Any,
    ) -> list[list[Translation]]:
        """The n best translations of each line, best first. A blank line has a blank one.

        `length` is a handling of `dragoman.search.length`, or its name. A line of more than `most_units` units is
        translated in pieces, each by its best translation. With `unknowns`, unknown words are replaced in the text.
        With a `prefix`, a text or units, they begin so. The rest is for `dragoman.search.search_all`.
        """
        from dragoman.search import PrefixConstrainedScorer, beam_search_corpus
        from dragoman.search.length import default_max_words

        if max_tokens < 1:
            raise DataError(f"pieces of {max_tokens} units at most: allow one or more")
        listed = [lines] if isinstance(lines, str) else list(lines)
        cut = list(self._pieces(listed, max_tokens))
        pieces = [piece for line in cut for piece in line]
        read = self._read(pieces)
        handling = self.length_handling(length)
        if unknown_replacer is not None:
            self.check_unknown_replacement()
        scorer = self._scorer
        if prefix:
            begun = self._beginning(prefix, cut)
            scorer = PrefixConstrainedScorer(scorer, begun)
            how.setdefault("max_words", lambda source_words: default_max_words(source_words) + len(begun))
        found = (
            beam_search_corpus(scorer, read, n_best=n, beam_size=max(n, beam_size), length=handling, **how)
            if pieces
            else []
        )
        told = (
            [self._replaced(self._told(hypothesis, units), unknown_replacer) for hypothesis in best]
            for best, units in zip(found, self._units(pieces), strict=True)
        )
        return [self._joined(line, told) for line in cut]

    def sample(self, lines: str | Iterable[str], n: int = 1, seed: int = 0, **how: Any) -> list[list[Translation]]:
        """n translations of each line drawn from P(E | F), blank ones of a blank line.

        How: see `dragoman.search.samples_given`. A line's samples depend on the seed and its number.
        """
        from dragoman.search import sample_translations

        listed = [lines] if isinstance(lines, str) else list(lines)
        drawn = sample_translations(self._scorer, self._read(listed), n, seed, **how)
        each = zip(listed, drawn, self._units(listed), strict=True)
        return [
            [self._told(one, own) if line.strip() else EMPTY_TRANSLATION for one in some] for line, some, own in each
        ]

    def force_decode(self, lines: Iterable[str], translations: Iterable[str]) -> list[Translation]:
        """Given translations as hypotheses (forced decoding): their log P(E | F), unknown words by their class."""
        from dragoman.search import force_decode

        told: list[Translation] = []
        for some, batch in self._batches(list(lines), list(translations)):
            found = force_decode(self._scorer, batch)
            for one, source, words in zip(found, self._units(some.sources), some.units, strict=True):
                told.append(self._told(one, source, words))
        return told

    def diagnose(
        self,
        lines: Sequence[str],
        references: Sequence[str],
        translations: Sequence[Translation],
        length: str | LengthHandling = DEFAULT_LENGTH,
        coverage: float = 0.0,
    ) -> list[ErrorKind | None]:
        """Whose fault it is that a translation is not the reference: see `dragoman.search.diagnosis`.

        Found: by a search with this length handling and coverage penalty. None for blank lines and for those that were
        translated in pieces, as there was no one search for them.
        """
        from dragoman.search import diagnose

        _check_pairs(lines, translations)
        errors: list[ErrorKind | None] = [None] * len(lines)
        whole = [place for place, line in enumerate(lines) if line.strip() and not self.is_too_long(line)]
        chosen = [[texts[place] for place in whole] for texts in (lines, references)]
        places = iter(whole)
        for some, batch in self._batches(*chosen):
            own = [next(places) for _ in some.sources]
            hypotheses = [self._hypothesis(translations[place]) for place in own]
            handling = self.length_handling(length)
            judged = diagnose(self._scorer, batch, hypotheses, length=handling, coverage=coverage)
            for place, one in zip(own, judged, strict=True):
                errors[place] = one.error
        return errors

    def _batches(self, sources: Sequence[str], targets: Sequence[str]) -> Iterator[tuple[_Pairs, Batch]]:
        """Some given pairs at a time."""
        from dragoman.data.batches import Batch

        _check_pairs(sources, targets)
        for first in range(0, len(sources), PAIRS_PER_BATCH):
            one, other = (texts[first : first + PAIRS_PER_BATCH] for texts in (sources, targets))
            yield (
                _Pairs(one, self.target.segmenter.segment_all(other)),
                Batch.from_sentences(self.target.encode(other), self._read(one)),
            )

    def _hypothesis(self, told: Translation) -> Hypothesis:
        """A translation as numbers again."""
        from dragoman.search.hypothesis import Hypothesis

        words = tuple(self.target.vocab.ids(told.tokens).tolist())
        return Hypothesis(words, told.log_prob, told.score, told.finished)

    def condition_on(self, lines: str | Iterable[str]) -> LanguageModel:
        """What it says of translations of a line, as a language model: next words, samples, scores.

        Given several lines, what it scores are as many translations, line by line.
        """
        from dragoman.models.source_conditioned import SourceConditionedLM

        return SourceConditionedLM(
            self._scorer, self._read([lines] if isinstance(lines, str) else list(lines)), self.target
        )

    def length_handling(self, length: str | LengthHandling) -> LengthHandling:
        """By its name; `penalty:0.5` has its number with it."""
        from dragoman.search.length import LENGTH_HANDLINGS, LengthPrior, WordPenalty

        if not isinstance(length, str):
            return length
        name, colon, number = length.partition(":")
        if name not in LENGTH_HANDLINGS or (colon and (name != WordPenalty.name or not number)):
            raise DataError(
                f"length handling {length!r}: there are {', '.join(LENGTH_HANDLINGS)}, and penalty:X with a number"
            )
        if name == LengthPrior.name:
            return self.length_prior
        try:
            return WordPenalty(float(number)) if number else LENGTH_HANDLINGS[name]()
        except ValueError:
            raise DataError(f"length handling {length!r}: give a number, such as penalty:0.5") from None

    @property
    def has_attention(self) -> bool:
        """Whether translations come with attention weights."""
        return False

    @property
    def without_shortlist(self) -> Any:
        """The same without shortlists: that by which given translations are priced."""
        return self

    # -- lines as numbers, and back ------------------------------------------------------------------------------------

    @property
    def _scorer(self) -> Scorer:
        return self  # type: ignore[return-value]  # whoever translates is a scorer

    def _read(self, lines: Sequence[str]) -> Any:
        return self.source.encode(lines)

    def _units(self, lines: Sequence[str]) -> list[list[str]]:
        """The source's units, or of trees, the words under each node, as they are attended to."""
        if self.source.format == TREE:
            trees = self.source.encode(lines)
            return [trees.phrases(number) for number in range(len(trees))]
        return self.source.segmenter.segment_all(lines)

    def _told(self, found: Hypothesis, source: Sequence[str], words: Sequence[str] | None = None) -> Translation:
        """A hypothesis as text."""
        units = tuple(words if words is not None else self.target.tokens_of(found.ids))
        attention = None if found.attention is None else found.attention.double().numpy()
        return Translation(
            self.target.join(units), units, found.log_prob, found.score, tuple(source), found.finished, attention
        )

    def check_unknown_replacement(self) -> None:
        """Refuse to replace unknown words where there are none, or where none was looked at."""
        if self.target.segmenter.kind != "word":
            told = f"unknown words are replaced where words are predicted, not {self.target.segmenter.spec}"
            raise DataError(f"{told}; train with --units word")
        if self.source.segmenter.kind != "word":
            raise DataError(
                f"unknown words are replaced by words of the source, and it is read as {self.source.segmenter.spec}"
            )

    def _replaced(self, told: Translation, unknowns: UnknownReplacer | None) -> Translation:
        """The text with its unknown words replaced."""
        if unknowns is None:
            return told
        if told.attention is None:
            raise DataError("unknown words are replaced by what was looked at, and this translator has no attention")
        strange = [self.source.vocab.id(word) == UNK for word in told.source_tokens]
        found = unknowns.replacements(told.tokens, told.source_tokens, told.attention, strange)
        words = list(told.tokens)
        for one in found:
            words[one.place] = one.word
        return replace(told, text=self.target.join(words), replacements=found)

    def is_too_long(self, line: str, max_tokens: int = MAX_TOKENS) -> bool:
        """Whether a line has more units than are translated in one piece. Trees are never cut."""
        if (
            self.source.format == TREE or 2 * len(line) <= max_tokens or not line.strip()
        ):  # no character is over two units
            return False
        return len(self.source.segmenter.segment(line)) > max_tokens

    def _pieces(self, lines: Sequence[str], most: int) -> Iterator[list[str]]:
        """Each line in pieces of no more units than this; none if it is blank."""
        for line in lines:
            if not line.strip():
                yield []
            elif not self.is_too_long(line, most):
                yield [line]
            else:
                pieces = (piece.strip(" ") for piece in self._cut(line, most))  # characters keep the spaces around
                yield [piece for piece in pieces if piece.strip()]

    def _cut(self, line: str, most: int) -> list[str]:
        """A line cut between words: where a sentence ends, if one does, and at the latest after so many units."""
        units = self.source.segmenter
        tokens = units.segment(line)
        words = units.word_indices(tokens)
        begins = [0, *(at for at in range(1, len(tokens)) if words[at] != words[at - 1]), len(tokens)]
        cuts = [0]
        while cuts[-1] < len(tokens):
            within = [at for at in begins if cuts[-1] < at <= cuts[-1] + most] or [min(cuts[-1] + most, len(tokens))]
            closed = [at for at in within if tokens[at - 1].endswith(SENTENCE_END_MARKS)]
            last = within[-1] if within[-1] == len(tokens) else (closed or within)[-1]
            cuts.append(last)
        return [units.join(tokens[first:last]) for first, last in pairwise(cuts)]

    def _beginning(self, prefix: str | Sequence[str], cut: Sequence[Sequence[str]]) -> list[int]:
        """The numbers of the words that translations begin with.  # cut: lines in pieces"""
        if any(len(pieces) > 1 for pieces in cut):
            raise DataError("a line is too long to be translated in one piece, so nobody knows which would begin so")
        units = self.target.segmenter.segment(prefix) if isinstance(prefix, str) else prefix
        found: list[int] = self.target.vocab.ids(units).tolist()
        strange = [unit for unit, number in zip(units, found, strict=True) if number == UNK and unit != SPECIALS[UNK]]
        if strange:
            raise DataError(f"the translator has no unit {strange[0][:50]!r} to begin with")
        return found

    def _joined(self, pieces: list[str], told: Iterator[list[Translation]]) -> list[Translation]:
        """The translations of a line from those of its pieces."""
        if not pieces:
            return [EMPTY_TRANSLATION]
        if len(pieces) == 1:
            return next(told)
        best = [next(told)[0] for _ in pieces]
        before = accumulate((len(part.tokens) for part in best), initial=0)
        replaced = (
            replace(one, place=one.place + at)
            for part, at in zip(best, before, strict=False)
            for one in part.replacements
        )
        return [
            Translation(
                " ".join(part.text for part in best if part.text),
                tuple(word for part in best for word in part.tokens),
                sum(part.log_prob for part in best),
                sum(part.score for part in best),
                tuple(word for part in best for word in part.source_tokens),
                all(part.finished for part in best),
                replacements=tuple(replaced),
            )
        ]

    # -- words for units -----------------------------------------------------------------------------------------------

    def word_attention(self, translation: Translation) -> WordAttention | None:
        """The attention between words (what is between spaces), whatever the units."""
        if translation.attention is None or self.source.format == TREE:
            return None
        source, target = (
            self.source.segmenter.word_indices(translation.source_tokens),
            self.target.segmenter.word_indices(translation.tokens),
        )
        rows = append_end(target) if translation.finished else target
        matrix = attention_to_words(translation.attention, rows, append_end(source))
        return WordAttention(
            _words(translation.text, target), _words(self.source.join(translation.source_tokens), source), matrix
        )

    def likelihood(self, lines: Sequence[str], references: Sequence[str]) -> PairLikelihood:
        """What given translations cost."""
        from dragoman.evaluation.log_probs import pair_log_probs, unknown_log_probs

        target = self.target.encode(references)
        known = float(pair_log_probs(self._scorer, self._read(lines), target).sum())
        unknown = float(unknown_log_probs(self._scorer, target).sum())
        return PairLikelihood(known, unknown, len(target.unknown_positions), TextLengths.from_lines(references))


class _Pairs(NamedTuple):
    """Some pairs of text: the sources, and the units of their translations."""

    sources: Sequence[str]
    units: list[list[str]]


def _check_pairs(lines: Sequence[str], translations: Sequence[Any]) -> None:
    if len(lines) != len(translations):
        raise DataError(f"{len(lines)} lines but {len(translations)} translations")


@dataclass(frozen=True)
class PairLikelihood:
    """What translations cost, given what they translate. Perplexities do not depend on the units."""

    log_likelihood: float  # natural log; an unknown unit costs its class
    log_likelihood_unknown: float  # which unknown ones they were
    unknown: int  # unknown units
    lengths: TextLengths  # of the translations

    @property
    def perplexity(self) -> float:
        """A word or sentence end, unknown units paid for in full."""
        return self.lengths.perplexity(self.log_likelihood + self.log_likelihood_unknown)

    @property
    def perplexity_class(self) -> float:
        """The same, but an unknown unit costs its class alone."""
        return self.lengths.perplexity(self.log_likelihood)

    @property
    def perplexity_characters(self) -> float:
        """A character, unknown units paid for in full."""
        return self.lengths.perplexity_characters(self.log_likelihood + self.log_likelihood_unknown)


@dataclass(frozen=True)
class WordAttention:
    """Attention between the words of a translation and those of its source, `</s>` the last on both sides."""

    target: tuple[str, ...]
    source: tuple[str, ...]
    matrix: NDArray[np.float64]  # (target and `</s>`, source and `</s>`)


def _words(text: str, numbers: Sequence[int]) -> tuple[str, ...]:
    """The words of a text; as many as its units belong to."""
    wanted = max(numbers, default=-1) + 1
    words = split_words(text) or [""] * wanted  # units that are all spaces belong to a word without letters
    assert len(words) == wanted, "units of words that are not there"
    return tuple(words)
