"""What both APIs share: models, limits, batched translation and language detection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from dragoman.align.aligner import Aligner
from dragoman.align.unknown_words import MIN_COVERAGE, UnknownReplacer
from dragoman.core.errors import DragomanError, shorten
from dragoman.data.language_id import LanguageGuess, LanguageIdentifier
from dragoman.data.vocabulary import Vocab
from dragoman.io.storage import SOURCE_VOCAB_FILE, VOCAB_FILE
from dragoman.models.text_pipeline import TextPipeline, TranslatedSentence, TranslationOptions, default_replacer
from dragoman.models.translation import BaseTranslator
from dragoman.serve import RequestLimits
from dragoman.serve.access import AccessControl, current_client
from dragoman.serve.batch_queue import BatchQueue, CheckNeeded
from dragoman.serve.errors import ApiError
from dragoman.serve.registry import LanguagePair, ModelEntry, ModelRegistry


class TranslatedText(NamedTuple):
    """The sentences of a text, and the translator that translated them: meanwhile there may be a newer one."""

    model: BaseTranslator
    sentences: list[TranslatedSentence]


class Service:
    """Models, and the queue of requests for them."""

    def __init__(
        self,
        registry: ModelRegistry,
        limits: RequestLimits,
        aligner: Aligner | None = None,
        log_text: Callable[[str], None] | None = None,
        access: AccessControl | None = None,
    ):
        """
        Args:
            aligner: its lexicon replaces unknown words of translators whose source words it knows.
            log_text: called with every text of a request; None: texts are never logged.
            access: checks API keys and limits per minute; None: without keys.
        """
        self.registry, self.limits, self.aligner, self.log_text = registry, limits, aligner, log_text
        self.access = access or AccessControl(limits)
        self.queue = BatchQueue(limits.queue, limits.seconds)
        self._pipelines: dict[str, TextPipeline] = {}
        self._identifier: tuple[set[LanguagePair], LanguageIdentifier] | None = None  # and the languages it is for

    async def translate(
        self, entry: ModelEntry, texts: Sequence[str], options: TranslationOptions
    ) -> list[TranslatedText]:
        """Return the sentences of each text with their n best translations.

        Requests with the same model and options that wait at the same time are translated in one batch.
        """

        def translate_batch(batch: list[str], check_needed: CheckNeeded) -> list[TranslatedText]:
            pipeline = self.pipeline(entry)
            sentences = pipeline.translate_texts(batch, **options._asdict(), on_step=check_needed)
            return [TranslatedText(pipeline.model, text) for text in sentences]

        return await self.queue.submit((entry.name, options), texts, translate_batch)

    def pipeline(self, entry: ModelEntry) -> TextPipeline:
        """Return the text pipeline of a translator. Only the worker of the queue calls this: it may load the model."""
        model, pipeline = entry.load_translator(), self._pipelines.get(entry.name)
        if pipeline is None or pipeline.model is not model:
            lexicon = None
            if self.aligner is not None:
                best, coverage = self.aligner.best_lexicon_for(model.source.vocab)
                lexicon = best if coverage >= MIN_COVERAGE else None
            pipeline = self._pipelines[entry.name] = TextPipeline(
                model, default_replacer(model, UnknownReplacer(lexicon))
            )
        return pipeline

    def detect(self, text: str) -> list[LanguageGuess]:
        """Return the possible languages of a text, among those of the translators, most probable first."""
        translators = self.registry.by_languages
        if self._identifier is None or self._identifier[0] != set(translators):
            vocabs: dict[str, list[Vocab]] = {}
            for languages, entry in translators.items():
                for language, file in zip(languages, (SOURCE_VOCAB_FILE, VOCAB_FILE), strict=True):
                    with suppress(DragomanError, OSError):  # requests for this translator report the error
                        vocabs.setdefault(language, []).append(Vocab.read(entry.paths[0] / file))
            self._identifier = (set(translators), LanguageIdentifier.from_vocabularies(vocabs))
        return self._identifier[1].identify(text)

    def translator_for(self, source: str, target: str) -> ModelEntry:
        """Return the translator between two languages; raise `ApiError` if there is none."""
        translators = self.registry.by_languages
        entry = translators.get(LanguagePair(source, target))
        if entry is None:
            available = ", ".join(f"{pair.source} to {pair.target}" for pair in translators) or "none"
            raise ApiError(f"no translator from {shorten(source)} to {shorten(target)}; available: {available}")
        return entry

    def check_texts(self, texts: Sequence[str]) -> None:
        """Raise `ApiError` if texts exceed the limits; log them if that is enabled."""
        limits = self.limits
        if len(texts) > limits.texts:
            raise ApiError(f"{len(texts):,} texts; a request may have at most {limits.texts:,}")
        if (characters := sum(map(len, texts))) > limits.characters:
            raise ApiError(f"{characters:,} characters; a request may have at most {limits.characters:,}")
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            raise ApiError("a text contains an unpaired surrogate; send valid Unicode") from None
        self.access.count_characters(characters)
        if self.log_text is not None:
            name = current_client().key_name
            for text in texts:
                self.log_text(f"{f'{name}: ' if name else ''}{text!r}")

    def check_beam(self, beam: int, n: int = 1) -> None:
        if not 1 <= beam <= self.limits.beam:
            raise ApiError(f"beam size {beam:,}; it may be from 1 to {self.limits.beam:,}")
        self.check_alternatives(n - 1)
        if n > self.limits.beam:
            raise ApiError(f"{n:,} translations need a beam of that size; it may be at most {self.limits.beam:,}")

    def check_alternatives(self, alternatives: int) -> None:
        if not 0 <= alternatives <= self.limits.alternatives:
            raise ApiError(f"{alternatives:,} alternatives; there may be from 0 to {self.limits.alternatives:,}")
