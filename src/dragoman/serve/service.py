"""What a service can do, whoever asks and by whichever protocol: within its limits, one batch after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.align.aligner import Aligner
from dragoman.align.unknown_words import MIN_COVERAGE, UnknownReplacer
from dragoman.core.errors import DragomanError
from dragoman.data.language_id import LanguageGuess, LanguageIdentifier
from dragoman.data.vocabulary import Vocab
from dragoman.io.storage import SOURCE_VOCAB_FILE, VOCAB_FILE
from dragoman.models.translation import BaseTranslator
from dragoman.serve.batch_queue import BatchQueue, IsNeeded, cancellation_check
from dragoman.serve.errors import ApiError, shorten
from dragoman.serve.limits import RequestLimits
from dragoman.serve.registry import LanguagePair, ModelEntry, ModelRegistry
from dragoman.serve.text_pipeline import TextPipeline, TranslatedSentence


class Service:
    """Models, and the desk at which they are asked."""

    def __init__(
        self,
        registry: ModelRegistry,
        limits: RequestLimits,
        aligner: Aligner | None = None,
        log: Callable[[str], None] | None = None,
    ):
        """With an aligner, its lexicon replaces unknown words where it knows what a translator reads. With a log, that
        is told every text that is sent; without one, none is written down anywhere."""
        self.registry, self.limits, self.aligner, self.log = registry, limits, aligner, log
        self.queue = BatchQueue(limits.queue, limits.seconds)
        self._pipelines: dict[str, TextPipeline] = {}
        self._identifier: tuple[tuple[LanguagePair, ...], LanguageIdentifier] | None = None

    # -- translating ---------------------------------------------------------------------------------------------------

    async def translate(
        self, entry: ModelEntry, texts: Sequence[str], n: int, beam: int, **how: Any
    ) -> list[list[TranslatedSentence]]:
        """Each text as sentences with their n best translations. Requests that ask alike are answered together."""
        key = (entry.name, n, beam, *sorted((name, repr(value)) for name, value in how.items()))

        def work(some: list[str], wanted: IsNeeded) -> list[list[TranslatedSentence]]:
            interpreter = self.pipeline(entry)
            parted = [interpreter.split(text) for text in some]
            flat = [one for parts in parted for one in parts]
            in_order = iter(interpreter.translate(flat, n, beam, each_step=cancellation_check(wanted), **how))
            return [[next(in_order) for _ in parts] for parts in parted]

        return list(await self.queue.submit(key, texts, work))

    def pipeline(self, entry: ModelEntry) -> TextPipeline:
        """Of a translator; made by the worker, when it is first asked for."""
        model, known = entry.load(), self._pipelines.get(entry.name)
        if known is None or known.model is not model:
            known = self._pipelines[entry.name] = TextPipeline(model, self._unknowns(model))
        return known

    def _unknowns(self, model: BaseTranslator) -> UnknownReplacer:
        if self.aligner is None:
            return UnknownReplacer()
        lexicon, covered = self.aligner.best_lexicon_for(model.source.vocab)
        return UnknownReplacer(lexicon if covered >= MIN_COVERAGE else None)

    # -- languages -----------------------------------------------------------------------------------------------------

    @property
    def language_identifier(self) -> LanguageIdentifier:
        """An identifier of the languages of all translators; trained again when the translators change."""
        pairs = self.registry.by_languages
        if self._identifier is None or self._identifier[0] != tuple(pairs):
            self._identifier = (tuple(pairs), LanguageIdentifier.from_vocabularies(_vocabularies(pairs)))
        return self._identifier[1]

    def detect(self, text: str) -> list[LanguageGuess]:
        return self.language_identifier.identify(text)

    def translator_for(self, source: str, target: str) -> ModelEntry:
        """The translator between two languages."""
        found = self.registry.by_languages.get(LanguagePair(source, target))
        if found is None:
            there = ", ".join(f"{one.source} to {one.target}" for one in self.registry.by_languages) or "none"
            wanted = f"from {shorten(source)} to {shorten(target)}"
            raise ApiError(f"no translator {wanted}; there are: {there}")
        return found

    # -- limits --------------------------------------------------------------------------------------------------------

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse texts that are too many or too long, and note the others down if that is wanted."""
        limits = self.limits
        if len(texts) > limits.texts:
            raise ApiError(f"{len(texts):,} texts, and a request may have {limits.texts:,}")
        if (size := sum(map(len, texts))) > limits.characters:
            raise ApiError(f"{size:,} characters, and a request may have {limits.characters:,}")
        if any(map(_has_half_characters, texts)):
            raise ApiError("a text holds half a character; send UTF-8")
        if self.log is not None:
            for text in texts:
                self.log(repr(text))

    def check_beam(self, beam: int, n: int = 1) -> None:
        if not 1 <= beam <= self.limits.beam:
            raise ApiError(f"a beam of {beam:,}, and it may be from 1 to {self.limits.beam:,}")
        self.check_alternatives(n - 1)
        if n > self.limits.beam:
            raise ApiError(f"{n:,} translations need a beam as wide, and it may be {self.limits.beam:,}")

    def check_alternatives(self, alternatives: int) -> None:
        if not 0 <= alternatives <= self.limits.alternatives:
            raise ApiError(f"{alternatives:,} alternatives, and there may be from 0 to {self.limits.alternatives:,}")


def _vocabularies(pairs: Mapping[LanguagePair, ModelEntry]) -> dict[str, list[Vocab]]:
    """The vocabularies of each language, from the models that read or write it."""
    vocabs: dict[str, list[Vocab]] = {}
    for languages, entry in pairs.items():
        for language, name in zip(languages, (SOURCE_VOCAB_FILE, VOCAB_FILE), strict=True):
            try:
                vocabs.setdefault(language, []).append(Vocab.read(entry.paths[0] / name))
            except (DragomanError, OSError):
                continue  # the error is reported to whoever uses that translator
    return vocabs


def _has_half_characters(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
