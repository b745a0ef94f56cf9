"""Translation of text: the text-level methods of all translators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from dragoman.core.defaults import DEFAULT_BEAM_SIZE, DEFAULT_LENGTH, MAX_TOKENS
from dragoman.core.errors import DataError
from dragoman.data.alignments import append_end, attention_to_words
from dragoman.data.copied_items import PLACEHOLDER
from dragoman.data.corpus import Corpus
from dragoman.data.long_numbers import restore_numbers
from dragoman.data.tokenizer import TREE, Tokenizer
from dragoman.data.trees import Treebank
from dragoman.data.vocabulary import SPECIALS, UNK
from dragoman.evaluation.likelihood import PairLikelihood, TextLengths
from dragoman.models.base import BaseScorer
from dragoman.models.copying import MIN_LETTER_SHARE, CopiedItem, insert_items, prepare_lines
from dragoman.models.source_lines import SegmentedLine, Tokens, split_tokens
from dragoman.models.translation_results import (
    EMPTY_TRANSLATION,
    END_TOKEN,
    AttentionMatrix,
    Translation,
    join_translations,
    words_of_tokens,
)

if TYPE_CHECKING:
    from dragoman.align.unknown_words import UnknownReplacer
    from dragoman.core.scorer import Scorer
    from dragoman.data.batches import Batch
    from dragoman.models.language_model import LanguageModel
    from dragoman.search.diagnosis import ErrorKind
    from dragoman.search.hypothesis import Hypothesis, Lattice
    from dragoman.search.length import LengthHandling, LengthPrior, MaxWords
    from dragoman.search.repetition import RepetitionLimits
    from dragoman.search.sampling import SamplingKwargs

# What users of translators import from here.
__all__ = [
    "EMPTY_TRANSLATION",
    "AttentionMatrix",
    "BaseTranslator",
    "SearchKwargs",
    "SegmentedLine",
    "TranslateKwargs",
    "Translation",
]

PAIRS_PER_BATCH = 64  # in forced decoding


class _Source(NamedTuple):
    """Source sentences as ids, with their tokens; for trees, the words under each node."""

    corpus: Corpus
    tokens: list[Tokens]


class SearchKwargs(TypedDict, total=False):
    """Keyword arguments of `BaseTranslator.n_best` and of evaluation."""

    length: str | LengthHandling
    coverage: float
    allow_repetition: bool
    verbatim: bool
    unknown_replacer: UnknownReplacer | None
    use_shortlist: bool


class TranslateKwargs(SearchKwargs, total=False):
    """Keyword arguments of `BaseTranslator.translate` and `n_best`. See `n_best` for what they mean."""

    max_tokens: int
    max_words: MaxWords
    prefix: str | Sequence[str]
    lattice: Lattice | None
    on_step: Callable[[], None] | None


# -- translators -------------------------------------------------------------------------------------------------------


class BaseTranslator(BaseScorer):
    """A scorer of P(E | F) with a tokenizer for each language. This class has the methods for text."""

    source: Tokenizer
    target: Tokenizer
    length_prior: LengthPrior  # P(|E| given |F|) of the training text

    @property
    def has_attention(self) -> bool:
        """Whether translations have attention weights."""
        return False

    @property
    def has_shortlist(self) -> bool:
        """Whether searches consider only the words of each sentence's shortlist."""
        return False

    def search_scorer(self, *, use_shortlist: bool = True) -> Scorer:
        """Return the scorer for one search: as fast as possible, and restricted to shortlists if there are some."""
        return self

    # -- translating ---------------------------------------------------------------------------------------------------

    def translate(
        self,
        lines: str | Iterable[str | SegmentedLine],
        beam_size: int = DEFAULT_BEAM_SIZE,
        **options: Unpack[TranslateKwargs],
    ) -> list[Translation]:
        """Return the best translation of each line. For the options, see `n_best`."""
        return [best[0] for best in self.n_best(lines, 1, beam_size, **options)]

    def translate_text(
        self,
        lines: str | Iterable[str],
        beam_size: int = DEFAULT_BEAM_SIZE,
        *,
        split_sentences: bool = True,
        **search: Unpack[SearchKwargs],
    ) -> list[Translation]:
        """Return the best translation of each line of a text, as `dragoman translate` writes it.

        A line may have several sentences: they are translated one by one, and their translations are joined. Plain text
        is tokenised for a translator of tokenised text, and its translation is plain text. For the options of the
        search, see `n_best`.
        """
        from dragoman.models.line_translation import translate_lines

        texts = [lines] if isinstance(lines, str) else list(lines)
        return translate_lines(self, texts, beam_size, split_sentences=split_sentences, **search)

    def read_pairs(self, lines: Sequence[str], references: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return lines and translations as they would be in the training text: plain text tokenised, if that was."""
        from dragoman.models.text_pipeline import TextPipeline

        return TextPipeline(self).read_pairs(lines, references)

    def n_best(
        self,
        lines: str | Iterable[str | SegmentedLine],
        n: int = 1,
        beam_size: int = DEFAULT_BEAM_SIZE,
        *,
        length: str | LengthHandling = DEFAULT_LENGTH,
        coverage: float = 0.0,
        allow_repetition: bool = False,
        verbatim: bool = False,
        max_tokens: int = MAX_TOKENS,
        max_words: MaxWords = None,
        prefix: str | Sequence[str] = (),
        unknown_replacer: UnknownReplacer | None = None,
        use_shortlist: bool = True,
        lattice: Lattice | None = None,
        on_step: Callable[[], None] | None = None,
    ) -> list[list[Translation]]:
        """Return the n best translations of each line, best first. The translation of a blank line is blank.

        Args:
            lines: one text, several texts, or the result of `segment`.
            beam_size: at least n hypotheses are kept.
            length: a length handling of `dragoman.search.length`, or its name.
            coverage: the strength of the coverage penalty.
            allow_repetition: do not block runaway repetition, see `dragoman.search.repetition`.
            verbatim: read lines exactly as they are, see `segment`.
            max_tokens: lines with more tokens are split, and the best translations of their parts are joined.
            max_words: the maximum length of translations, see `dragoman.search.length.word_limits`.
            prefix: a text or tokens that all translations begin with. The search is then over all words.
            unknown_replacer: replaces unknown words in the text.
            use_shortlist: without it, the search is over all words, also if the translator has a shortlist.
            lattice, on_step: see `dragoman.search.beam.beam_search`.
        """
        from dragoman.search.beam import beam_search_corpus

        segmented = self.segment(lines, max_tokens, verbatim=verbatim)
        if unknown_replacer is not None:
            self.check_unknown_replacement()
        source = self._encode_lines([chunk for line in segmented for chunk in line.searched_chunks])
        scorer = self.search_scorer(use_shortlist=use_shortlist and not prefix)
        if prefix:
            scorer, max_words = self._constrain_to_prefix(scorer, prefix, segmented, max_words)
        if not allow_repetition:
            scorer = self._block_repetition(scorer)
        hypotheses = beam_search_corpus(
            scorer,
            source.corpus,
            n_best=n,
            beam_size=max(n, beam_size),
            max_words=max_words,
            length=self.length_handling(length),
            coverage=coverage,
            always_finish=not allow_repetition,
            lattice=lattice,
            on_step=on_step,
        )
        of_chunks = (
            [self._replace_unknown(self._to_translation(hypothesis, tokens), unknown_replacer) for hypothesis in best]
            for best, tokens in zip(hypotheses, source.tokens, strict=True)
        )
        return [self._complete(line, list(islice(of_chunks, len(line.searched_chunks)))) for line in segmented]

    def sample(
        self,
        lines: str | Iterable[str | SegmentedLine],
        n: int = 1,
        seed: int = 0,
        *,
        max_words: MaxWords = None,
        allow_repetition: bool = True,
        verbatim: bool = False,
        **options: Unpack[SamplingKwargs],
    ) -> list[list[Translation]]:
        """Sample n translations of each line from P(E | F). Samples of a blank line are blank.

        Without `allow_repetition`, samples are those of P(E | F) without runaway repetition.

        The samples of a line depend on the seed and the number of the line. For the options (`temperature`, `top_k`,
        `top_p`, `batch_size`), see `dragoman.search.sampling.sample_translations`.
        """
        from dragoman.search.sampling import sample_translations

        whole_lines = self.segment(lines, sys.maxsize, verbatim=verbatim)
        source = self._encode_lines([line if line.chunks else line.text for line in whole_lines])
        scorer = self if allow_repetition else self._block_repetition(self)
        samples = sample_translations(scorer, source.corpus, n, seed, max_words=max_words, **options)
        translations = (
            [self._to_translation(hypothesis, tokens) for hypothesis in drawn]
            for drawn, tokens in zip(samples, source.tokens, strict=True)
        )
        return [
            self._complete(line, [drawn] if line.chunks else [[EMPTY_TRANSLATION] * n])
            for line, drawn in zip(whole_lines, translations, strict=True)
        ]

    def segment(
        self, lines: str | Iterable[str | SegmentedLine], max_tokens: int = MAX_TOKENS, *, verbatim: bool = False
    ) -> list[SegmentedLine]:
        """Return source lines as tokens, in chunks of at most `max_tokens`; see `n_best`. Trees are never split.

        Unless they are read `verbatim`, what should be copied is taken out of the lines, unknown characters are replaced
        by known ones where possible, and odd capitals are changed. See `dragoman.models.copying`.
        """
        if max_tokens < 1:
            raise DataError(f"max_tokens must be >= 1 (got {max_tokens})")
        lines, segmenter = [lines] if isinstance(lines, str) else list(lines), self.source.segmenter
        texts = [line for line in lines if isinstance(line, str) and line.strip()]
        segmented: Iterator[SegmentedLine]
        if self.source.format == TREE:
            segmented = (SegmentedLine(text, ((),)) for text in texts)
        elif verbatim:
            all_tokens = segmenter.segment_all(texts)
            segmented = (
                SegmentedLine(text, split_tokens(segmenter, tokens, max_tokens))
                for text, tokens in zip(texts, all_tokens, strict=True)
            )
        else:
            prepared = zip(texts, prepare_lines(texts, self.source), strict=True)
            segmented = (SegmentedLine.from_prepared(text, line, segmenter, max_tokens) for text, line in prepared)
        return [
            line if isinstance(line, SegmentedLine) else next(segmented) if line.strip() else SegmentedLine(line, ())
            for line in lines
        ]

    def is_too_long(self, line: str, max_tokens: int = MAX_TOKENS) -> bool:
        """Return whether a line has more tokens than are translated at once. Trees are never too long."""
        return self.segment(line, max_tokens)[0].is_split

    def length_handling(self, length: str | LengthHandling) -> LengthHandling:
        """Return a length handling by its name; `penalty:0.5` includes its value."""
        from dragoman.search.length import length_handling_by_name

        return length_handling_by_name(length, self.length_prior) if isinstance(length, str) else length

    # -- given translations --------------------------------------------------------------------------------------------

    def score(self, sources: Iterable[str], targets: Iterable[str]) -> list[float]:
        """Return log P(E | F) of each given translation (natural logs), the spelling of unknown words included."""
        sources, targets = list(sources), list(targets)
        _check_pairs(sources, targets)
        if not sources:
            return []
        target, log_probs, unknown_log_probs = self._pair_log_probs(sources, targets)
        log_probs = log_probs.copy()
        log_probs[target.unknown_token_positions] += unknown_log_probs
        sums: list[float] = np.add.reduceat(log_probs, target.token_offsets[:-1]).tolist()
        return sums

    def likelihood(self, lines: Sequence[str], references: Sequence[str]) -> PairLikelihood:
        """Return the likelihood of given translations."""
        target, log_probs, unknown_log_probs = self._pair_log_probs(lines, references)
        lengths = TextLengths.from_lines(references)
        sums = float(log_probs.sum()), float(unknown_log_probs.sum())
        return PairLikelihood(*sums, len(target.unknown_positions), lengths)

    def _pair_log_probs(
        self, lines: Sequence[str], references: Sequence[str]
    ) -> tuple[Corpus, NDArray[np.float64], NDArray[np.float64]]:
        """Return given translations as ids, log P of their tokens, and log P of the spellings of unknown ones."""
        from dragoman.evaluation.likelihood import pair_log_probs, unknown_log_probs

        target = self.target.encode(references)
        log_probs = pair_log_probs(self, self._encode_lines(lines).corpus, target)
        return target, log_probs, unknown_log_probs(self, target)

    def force_decode(self, sources: Iterable[str], targets: Iterable[str]) -> list[Translation]:
        """Return given translations with their log P(E | F) and attention; unknown words are scored as `<unk>`."""
        from dragoman.search.diagnosis import force_decode

        return [
            self._to_translation(hypothesis, source_tokens, target_tokens)
            for batch, source, target in self._encode_pairs(list(sources), list(targets))
            for hypothesis, source_tokens, target_tokens in zip(force_decode(self, batch), source, target, strict=True)
        ]

    def diagnose(
        self,
        lines: Sequence[str],
        references: Sequence[str],
        translations: Sequence[Translation],
        length: str | LengthHandling = DEFAULT_LENGTH,
        coverage: float = 0.0,
    ) -> list[ErrorKind | None]:
        """Return for each translation whether it differs from the reference by a search error or a model error.

        See `dragoman.search.diagnosis`. `length` and `coverage` are those of the search. The result is None for blank
        lines and for lines of several sentences or chunks, because there was no single search for them.
        """
        from dragoman.search.diagnosis import diagnose
        from dragoman.search.hypothesis import Hypothesis

        _check_pairs(lines, translations)
        handling = self.length_handling(length)
        indices = [index for index, best in enumerate(translations) if best.source_tokens and not best.is_joined]
        hypotheses = (
            Hypothesis(tuple(self.target.vocab.ids(best.tokens).tolist()), best.log_prob, best.score, best.finished)
            for best in (translations[index] for index in indices)
        )
        sources = [SegmentedLine(lines[index], (translations[index].source_tokens,)) for index in indices]
        diagnoses = (
            diagnosis.error
            for batch, *_ in self._encode_pairs(sources, [references[index] for index in indices])
            for diagnosis in diagnose(
                self, batch, list(islice(hypotheses, batch.num_rows)), length=handling, coverage=coverage
            )
        )
        errors = dict(zip(indices, diagnoses, strict=True))
        return [errors.get(index) for index in range(len(lines))]

    def condition_on(self, lines: str | Iterable[str]) -> LanguageModel:
        """Return the translator for fixed source lines as a language model: next words, samples, scores.

        With several lines, it scores one translation for each.
        """
        from dragoman.models.language_model import SourceConditionedLM

        texts = [lines] if isinstance(lines, str) else list(lines)
        return SourceConditionedLM(self, self._encode_lines(texts).corpus)

    # -- attention -----------------------------------------------------------------------------------------------------

    def attention_matrix(self, translation: Translation, *, tokens: bool = False) -> AttentionMatrix | None:
        """Return the attention between words or, with `tokens`, between tokens; None if there is none.

        For trees, it is the attention from tokens to nodes.
        """
        if translation.attention is None:
            return None
        if self.source.format == TREE or tokens:
            end = () if self.source.format == TREE else (END_TOKEN,)
            labels = (*translation.source_tokens, *end)
            return AttentionMatrix(translation.tokens_with_end, labels, translation.attention)
        source = self.source.segmenter.word_indices(translation.source_tokens)
        target = self.target.segmenter.word_indices(translation.tokens)
        rows = append_end(target) if translation.finished else target
        matrix = attention_to_words(translation.attention, rows, append_end(source))
        target_words = words_of_tokens(self.target.join(translation.words), target)
        source_words = words_of_tokens(self.source.join(translation.source_tokens), source)
        if translation.finished:
            target_words = (*target_words, END_TOKEN)
        return AttentionMatrix(target_words, (*source_words, END_TOKEN), matrix)

    # -- unknown words -------------------------------------------------------------------------------------------------

    def check_unknown_replacement(self) -> None:
        """Raise an error if unknown words cannot be replaced, because a segmenter has no words."""
        problems = {
            "unknown words can be replaced in words only, and it predicts": self.target.segmenter,
            "unknown words are replaced by source words, and it reads": self.source.segmenter,
        }
        for problem, segmenter in problems.items():
            if segmenter.kind != "word":
                raise DataError(f"{problem} {segmenter.spec}; train with --units word")

    def _replace_unknown(self, translation: Translation, replacer: UnknownReplacer | None) -> Translation:
        if replacer is None:
            return translation
        if translation.attention is None:
            raise DataError("unknown words are replaced by attention, and this translator has none")
        is_unknown = [self.source.vocab.id(word) == UNK for word in translation.source_tokens]
        replacements = replacer.replacements(
            translation.tokens, translation.source_tokens, translation.attention, is_unknown
        )
        replaced = replace(translation, replacements=replacements)
        return replace(replaced, text=self.target.join(replaced.words))

    # -- copying -------------------------------------------------------------------------------------------------------

    def _complete(self, line: SegmentedLine, of_chunks: Sequence[Sequence[Translation]]) -> list[Translation]:
        """Return the translations of a line from those of its chunks, with what is copied from the line."""
        if line.is_copied:
            return [replace(EMPTY_TRANSLATION, text=line.text.strip())] * max(map(len, of_chunks), default=1)
        copied = [
            [self._copy_items(translation, items) for translation in best]
            for best, items in zip(of_chunks, line.items_of_chunks or [[]], strict=False)
        ] or [[EMPTY_TRANSLATION]]
        translations = copied[0] if len(copied) == 1 else [join_translations([best[0] for best in copied])]
        if line.is_verbatim or self.source.letter_share < MIN_LETTER_SHARE:
            return translations
        return [replace(item, text=restore_numbers(line.text, item.text)) for item in translations]

    def _copy_items(self, translation: Translation, items: Sequence[CopiedItem]) -> Translation:
        """Return a translation with the items of its source line."""
        if not items and PLACEHOLDER not in translation.text:
            return translation
        text = insert_items(translation.words, items, translation.source_tokens, translation.attention, self.target)
        return replace(translation, text=text)

    # -- text to ids and back ------------------------------------------------------------------------------------------

    def _encode_lines(self, lines: Sequence[str | SegmentedLine]) -> _Source:
        """Encode whole lines, also blank and long ones."""
        if self.source.format == TREE:
            trees = Treebank.from_lines([_text(line) for line in lines], self.source.vocab)
            return _Source(trees, [tuple(trees.phrases(number)) for number in range(len(trees))])
        segmented = iter(self.source.segmenter.segment_all([line for line in lines if isinstance(line, str)]))
        tokens = [line.tokens if isinstance(line, SegmentedLine) else tuple(next(segmented)) for line in lines]
        return _Source(Corpus.from_sentences(tokens, self.source.vocab), tokens)

    def _encode_pairs(
        self, sources: Sequence[str | SegmentedLine], targets: Sequence[str]
    ) -> Iterator[tuple[Batch, list[Tokens], list[list[str]]]]:
        """Encode sentence pairs, some at a time: their ids, and the tokens of sources and targets."""
        from dragoman.data.batches import Batch

        _check_pairs(sources, targets)
        for first in range(0, len(sources), PAIRS_PER_BATCH):
            source = self._encode_lines(sources[first : first + PAIRS_PER_BATCH])
            tokens = self.target.segmenter.segment_all(targets[first : first + PAIRS_PER_BATCH])
            target = Corpus.from_sentences(tokens, self.target.vocab)
            yield Batch.from_sentences(target, source.corpus), source.tokens, tokens

    def _constrain_to_prefix(
        self, scorer: Scorer, prefix: str | Sequence[str], lines: Sequence[SegmentedLine], max_words: MaxWords
    ) -> tuple[Scorer, MaxWords]:
        """Return a scorer of translations that begin with the prefix, and their maximum length."""
        from dragoman.search.length import default_max_words
        from dragoman.search.scorers import PrefixConstrainedScorer

        if any(line.is_split for line in lines):
            raise DataError("a line is too long to be translated at once, so a prefix cannot be used; split the line")
        tokens = self.target.segmenter.segment(prefix) if isinstance(prefix, str) else prefix
        ids: list[int] = self.target.vocab.ids(tokens).tolist()
        for token, number in zip(tokens, ids, strict=True):
            if number == UNK and token != SPECIALS[UNK]:
                raise DataError(f"the translator has no token {token[:50]!r} for the prefix")
        constrained = PrefixConstrainedScorer(scorer, ids)
        return constrained, (lambda sizes: default_max_words(sizes) + len(ids)) if max_words is None else max_words

    @cached_property
    def _repetition_limits(self) -> RepetitionLimits:
        from dragoman.search.repetition import RepetitionLimits

        are_words, is_text = self.target.segmenter.kind == "word", self.target.letter_share >= MIN_LETTER_SHARE
        tokens, usual = self.target.vocab.tokens, self.target.repetitions
        return RepetitionLimits.of(tokens, usual, are_words=are_words, limits_digits=is_text)

    def _block_repetition(self, scorer: Scorer) -> Scorer:
        from dragoman.search.repetition import block_repetition

        return block_repetition(scorer, self._repetition_limits)

    def _to_translation(
        self, hypothesis: Hypothesis, source_tokens: Sequence[str], tokens: Sequence[str] | None = None
    ) -> Translation:
        """Return a hypothesis as text; `tokens` are given if they include unknown words."""
        tokens = tuple(self.target.tokens_of(hypothesis.ids) if tokens is None else tokens)
        attention = None if hypothesis.attention is None else hypothesis.attention.double().numpy()
        scores = (hypothesis.log_prob, hypothesis.score)
        return Translation(
            self.target.join(tokens), tokens, *scores, tuple(source_tokens), hypothesis.finished, attention
        )


def _text(line: str | SegmentedLine) -> str:
    return line if isinstance(line, str) else line.text


def _check_pairs(lines: Sequence[str | SegmentedLine], translations: Sequence[str] | Sequence[Translation]) -> None:
    if len(lines) != len(translations):
        raise DataError(f"{len(lines)} lines but {len(translations)} translations")
