"""The service's own interface: what is inside the models, under /v1."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from dragoman.evaluation.surprisal import surprisals
from dragoman.models.segmented_line import MAX_TOKENS
from dragoman.models.translation import DEFAULT_LENGTH, Translation
from dragoman.search.lattice import Lattice
from dragoman.serve.batch_queue import cancellation_check
from dragoman.serve.errors import ApiError
from dragoman.serve.openapi import ERROR_RESPONSES
from dragoman.serve.registry import ModelEntry
from dragoman.serve.schemas import (
    LatticeNodeInfo,
    LatticeResponse,
    LimitsInfo,
    ModelInfo,
    ModelNextWords,
    ModelsResponse,
    NextWordInfo,
    NextWordsResponse,
    ReplacedWordInfo,
    SamplesResponse,
    ScoresResponse,
    SentenceInfo,
    SentenceScores,
    TextInfo,
    TranslationInfo,
    TranslationsResponse,
)
from dragoman.serve.service import Service
from dragoman.serve.text_pipeline import TextPipeline, TranslatedSentence, join_sentences

MAX_ATTENTION_VALUES = 1_000_000  # of attention in one answer


class StrictRequest(BaseModel):
    """Unknown names and other types are refused rather than guessed at."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


MODEL = Field(description="its name, as /v1/models tells it", examples=["de-en"])
SENTENCE = Field(description="one sentence, as it is printed", examples=["Ein Hund bellt."])
BEAM = Field(default=5, description="hypotheses that the search keeps: from 1 to the limit")
SOME: dict[str, Any] = {"minItems": 1}
LENGTHS = Field(default=DEFAULT_LENGTH, description="none, norm, prior or penalty:X", examples=["norm", "penalty:0.5"])


class V1TranslateRequest(StrictRequest):
    """Texts to translate, each of one or more sentences."""

    model: str = MODEL
    texts: list[str] = Field(description="as they are printed", examples=[["Ein Hund bellt. Eine Katze schläft."]])
    beam: int = BEAM
    n: int = Field(default=1, ge=1, description="how many translations of each sentence")
    length: str = LENGTHS
    coverage: float = Field(default=0.0, ge=0, description="strength of the coverage penalty")
    prefix: list[str] = Field(default=[], description="units that the translation of a single sentence begins with")


class AttentionRequest(StrictRequest):
    """A sentence, and a translation of it that somebody has."""

    model: str = MODEL
    source: str = SENTENCE
    target: str = Field(description="its translation, as it is printed", examples=["A dog barks."])


class LatticeRequest(StrictRequest):
    """A sentence whose search is to be seen."""

    model: str = MODEL
    text: str = SENTENCE
    beam: int = BEAM
    length: str = LENGTHS
    pruned: int = Field(default=5, ge=0, le=20, description="of those that were pruned, how many of each step")


class ScoreRequest(StrictRequest):
    """A text to be paid for, word by word."""

    models: list[str] = Field(
        description="names of language models", json_schema_extra=SOME, examples=[["kn5", "lstm"]]
    )
    text: str = Field(description="words with spaces between, one sentence a line", examples=["a dog barks ."])


class NextWordsRequest(StrictRequest):
    """The beginning of a sentence."""

    models: list[str] = Field(
        description="names of language models or translators", json_schema_extra=SOME, examples=[["kn5", "de-en"]]
    )
    prefix: str | list[str] = Field(
        default="", description="a text, or of a translator its units", examples=["a dog", ["a", "dog"]]
    )
    source: str = Field(default="", description="of a translator: the sentence to translate")
    k: int = Field(default=10, ge=1, le=100, description="how many words")


class SampleRequest(StrictRequest):
    """How to draw sentences."""

    model: str = MODEL
    n: int = Field(default=5, ge=1, description="how many; one more than the alternatives that are allowed, at most")
    seed: int = Field(default=1, ge=0, lt=2**63, description="the same seed draws the same sentences")
    prefix: str = Field(default="", description="words that they begin with", examples=["the"])
    source: str = Field(default="", description="of a translator: the sentence to translate")
    temperature: float = Field(default=1.0, gt=0, le=100, description="below 1: likelier words; above: stranger ones")
    top_k: int | None = Field(default=None, ge=1, le=2**31, description="draw among so many words alone")
    top_p: float = Field(default=1.0, gt=0, le=1, description="draw among words of so much probability alone")
    max_words: int = Field(default=60, ge=1, le=200, description="after which a sentence is cut off")


def create_router(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["dragoman"], responses=ERROR_RESPONSES)
    _add_translators(router, service)
    _add_language_models(router, service)

    @router.get("/models", summary="List the models")
    def models() -> ModelsResponse:
        """What there is, and the limits."""
        service.registry.refresh()
        listed = [ModelInfo(**entry.describe()) for entry in service.registry]
        return ModelsResponse(models=listed, limits=LimitsInfo(**asdict(service.limits)))

    return router


def _add_translators(router: APIRouter, service: Service) -> None:
    @router.post("/translate", summary="Translate, and see how")
    async def translate(asked: V1TranslateRequest) -> TranslationsResponse:
        """n-best lists with scores, attention and replaced words, sentence by sentence."""
        entry = service.registry.get(asked.model, is_translator=True)
        service.check_texts([*asked.texts, " ".join(asked.prefix)] if asked.prefix else asked.texts)
        service.check_beam(asked.beam, asked.n)
        how = _how(asked)
        if asked.prefix:
            await service.queue.run(lambda: _check_prefix(service.pipeline(entry), asked))
        told = await service.translate(entry, asked.texts, asked.n, asked.beam, **how)
        return await asyncio.to_thread(lambda: TranslationsResponse(texts=_texts(told)))

    @router.post("/attention", summary="Explain a given translation")
    async def attention(asked: AttentionRequest) -> TranslationInfo:
        """What a given translation costs, and where each of its words is looked for."""
        entry = service.registry.get(asked.model, is_translator=True)
        service.check_texts([asked.source, asked.target])

        def work() -> TranslationInfo:
            interpreter = service.pipeline(entry)
            line, written = _one_piece(interpreter, asked.source), interpreter.tokenize_target(asked.target)
            _check_length(interpreter.model.target.segmenter.segment(written), "translation")
            [told] = interpreter.model.force_decode([line], [written])
            return _told(told, interpreter.detokenize_translation(told, asked.source))

        return await service.queue.run(work)

    @router.post("/lattice", summary="See what a beam search did")
    async def lattice(asked: LatticeRequest) -> LatticeResponse:
        """Every hypothesis that the search kept, and the best of those it pruned."""
        entry = service.registry.get(asked.model, is_translator=True)
        service.check_texts([asked.text])
        service.check_beam(asked.beam)
        return await service.queue.run_cancellable(
            lambda wanted: _searched(service.pipeline(entry), asked, cancellation_check(wanted))
        )


def _add_language_models(router: APIRouter, service: Service) -> None:
    @router.post("/score", summary="Score a text, word by word")
    async def score(asked: ScoreRequest) -> ScoresResponse:
        """What each word costs by several language models, in bits."""
        entries = [service.registry.get(name, is_translator=False) for name in _some(asked.models)]
        service.check_texts([asked.text])

        def work() -> ScoresResponse:
            found = surprisals({entry.name: entry.load() for entry in entries}, asked.text.split("\n"))
            rows = (list(map(_finite, row)) for one in found.sentences for row in one.bits.T.tolist())
            lines = [
                SentenceScores(words=list(one.words), bits=[next(rows) for _ in found.models])
                for one in found.sentences
            ]
            return ScoresResponse(models=list(found.models), sentences=lines)

        return await service.queue.run(work)

    @router.post("/next", summary="What comes next")
    async def next_words(asked: NextWordsRequest) -> NextWordsResponse:
        """The likeliest next words after a prefix, by several models."""
        entries = [service.registry.get(name) for name in _some(asked.models)]
        service.check_texts([asked.prefix if isinstance(asked.prefix, str) else " ".join(asked.prefix), asked.source])

        def work() -> NextWordsResponse:
            found = []
            for entry in entries:
                words = _speaker(service, entry, asked.source, asked.prefix).next_words(asked.prefix, asked.k)
                found.append(ModelNextWords(model=entry.name, words=[NextWordInfo(**one._asdict()) for one in words]))
            return NextWordsResponse(models=found)

        return await service.queue.run(work)

    @router.post("/sample", summary="Draw sentences")
    async def sample(asked: SampleRequest) -> SamplesResponse:
        """Sentences drawn from a language model, or translations drawn from a translator."""
        entry = service.registry.get(asked.model)
        service.check_texts([asked.prefix, asked.source])
        service.check_alternatives(asked.n - 1)
        how = asked.model_dump(include={"prefix", "temperature", "top_k", "top_p", "max_words"})

        def work() -> SamplesResponse:
            drawn = _speaker(service, entry, asked.source, asked.prefix).sample(asked.n, asked.seed, **how)
            if entry.is_translator:
                drawn = [service.pipeline(entry).detokenize(one, asked.source) for one in drawn]
            return SamplesResponse(samples=drawn)

        return await service.queue.run(work)


def _how(asked: V1TranslateRequest) -> dict[str, Any]:
    how: dict[str, Any] = {"length": asked.length}
    if asked.coverage:
        how["coverage"] = asked.coverage
    if asked.prefix:
        how["prefix"] = tuple(asked.prefix)
    return how


def _check_prefix(interpreter: TextPipeline, asked: V1TranslateRequest) -> None:
    """A prefix is for one sentence, and not too long."""
    if len(asked.texts) != 1 or len(interpreter.split(asked.texts[0])) != 1:
        raise ApiError("a prefix is for a single sentence")
    _check_length(asked.prefix, "prefix")


def _some(names: Sequence[str]) -> list[str]:
    if not names:
        raise ApiError("name at least one model")
    return list(dict.fromkeys(names))


def _speaker(service: Service, entry: ModelEntry, source: str, prefix: str | list[str]) -> Any:
    """Who says what comes next: a language model, or a translator that was given its source."""
    if not entry.is_translator:
        return entry.load()
    if not source.strip():
        raise ApiError(f"{entry.name} is a translator; give a source")
    interpreter = service.pipeline(entry)
    units = interpreter.model.target.segmenter.segment(prefix) if isinstance(prefix, str) else prefix
    _check_length(units, "prefix")
    return interpreter.model.condition_on(_one_piece(interpreter, source))


def _check_length(units: Sequence[str], what: str) -> None:
    """Refuse what would have to be read unit by unit for too long."""
    if len(units) > MAX_TOKENS:
        raise ApiError(f"the {what} has more than {MAX_TOKENS:,} units; send a shorter one")


def _one_piece(interpreter: TextPipeline, sentence: str) -> str:
    """A sentence as the translator reads it, if it is neither blank nor too long to be read at once."""
    line = interpreter.tokenize(sentence)
    if not line.strip():
        raise ApiError("the sentence is blank; give one")
    if interpreter.model.is_too_long(line):
        raise ApiError(f"the sentence has more than {MAX_TOKENS:,} units; send a shorter one")
    return line


def _texts(told: Sequence[Sequence[TranslatedSentence]]) -> list[TextInfo]:
    """Texts as plain values, with the attention of as many translations as an answer has room for."""
    every = [one for parts in told for sentence in parts for one in sentence.translations]
    sizes = accumulate(0 if one.attention is None else one.attention.size for one in every)
    shown = {id(one) for one, size in zip(every, sizes, strict=True) if size <= MAX_ATTENTION_VALUES}

    def sentence(one: TranslatedSentence) -> SentenceInfo:
        found = [
            _told(own, text, looked=id(own) in shown)
            for own, text in zip(one.translations, one.detokenized, strict=True)
        ]
        return SentenceInfo(source=one.text, gap=one.gap, read=one.tokenized, translations=found)

    return [TextInfo(text=join_sentences(parts), sentences=[sentence(one) for one in parts]) for parts in told]


def _told(told: Translation, text: str, *, looked: bool = True) -> TranslationInfo:
    """A translation as plain values."""
    rows = None if told.attention is None or not looked else told.attention.round(5).tolist()
    return TranslationInfo(
        text=text,
        units=list(told.tokens),
        source_units=list(told.source_tokens),
        log_prob=_finite(told.log_prob),
        score=_finite(told.score),
        finished=told.finished,
        attention=rows,
        replaced=[ReplacedWordInfo(**one.as_dict()) for one in told.replacements],
    )


def _searched(interpreter: TextPipeline, asked: LatticeRequest, on_step: Callable[[], None]) -> LatticeResponse:
    record = Lattice(max_pruned=asked.pruned)
    line, model = _one_piece(interpreter, asked.text), interpreter.model
    [best] = model.n_best([line], 1, asked.beam, length=asked.length, lattice=record, on_step=on_step)
    words = model.target.vocab.tokens
    nodes = [
        LatticeNodeInfo(
            id=node.id,
            parent=node.parent,
            word="" if node.parent is None else words[node.token],
            log_prob=_finite(node.log_prob),
            score=_finite(node.score),
            fate=node.fate,
        )
        for node in record.nodes
    ]
    return LatticeResponse(
        source=line, translation=_told(best[0], interpreter.detokenize_translation(best[0], asked.text)), nodes=nodes
    )


def _finite(value: float) -> float | None:
    """Infinity as null: JSON has none."""
    return value if math.isfinite(value) else None
