"""The API under /v1: models and runs, n-best lists, attention, lattices, surprisal, next words and samples."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse

from dragoman.core.defaults import MAX_TOKENS
from dragoman.evaluation.surprisal import surprisals
from dragoman.io.storage import METRICS_FILE, REPORT_FILE
from dragoman.models.language_model import LanguageModel
from dragoman.models.translation import Translation
from dragoman.search.lattice import Lattice
from dragoman.serve.batch_queue import cancellation_check
from dragoman.serve.errors import ERROR_RESPONSES, NOT_FOUND, ApiError
from dragoman.serve.registry import ModelEntry, ModelRegistry
from dragoman.serve.schemas import (
    AttentionRequest,
    LatticeNodeInfo,
    LatticeRequest,
    LatticeResponse,
    MetricsResponse,
    ModelNextWords,
    ModelsResponse,
    NextWordInfo,
    NextWordsRequest,
    NextWordsResponse,
    ReplacedWordInfo,
    RunInfo,
    RunsResponse,
    SampleRequest,
    SamplesResponse,
    ScoreRequest,
    ScoresResponse,
    SentenceInfo,
    SentenceScores,
    TextInfo,
    TranslationInfo,
    TranslationsResponse,
    V1TranslateRequest,
)
from dragoman.serve.service import Service
from dragoman.serve.text_pipeline import TextPipeline, TranslatedSentence, join_sentences

MAX_ATTENTION_WEIGHTS = 1_000_000  # in one response
MAX_METRICS = 1_000  # entries of each kind in one response
# Reports are shown inside the page and nowhere else. They contain their styles; nothing in them runs or is fetched.
REPORT_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox allow-same-origin"
    ),
    "x-frame-options": "SAMEORIGIN",
}


def create_router(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["dragoman"], responses=ERROR_RESPONSES)
    _add_translator_routes(router, service)
    _add_language_model_routes(router, service)
    _add_run_routes(router, service)
    return router


# -- routes for translators --------------------------------------------------------------------------------------------


def _add_translator_routes(router: APIRouter, service: Service) -> None:
    @router.post("/translate", summary="Translate with scores and attention")
    async def translate(body: V1TranslateRequest) -> TranslationsResponse:
        """Return n-best lists with scores, attention and replaced words, sentence by sentence."""
        entry = service.registry.get(body.model, is_translator=True)
        service.check_texts([*body.texts, " ".join(body.prefix)] if body.prefix else body.texts)
        service.check_beam(body.beam, body.n)
        if body.prefix:
            await service.queue.run(lambda: _check_prefix(service.pipeline(entry), body))
        texts = await service.translate(
            entry,
            body.texts,
            body.n,
            body.beam,
            length=body.length,
            coverage=body.coverage,
            prefix=tuple(body.prefix),
        )
        return await asyncio.to_thread(lambda: TranslationsResponse(texts=_describe_texts(texts)))

    @router.post("/attention", summary="Score a given translation")
    async def attention(body: AttentionRequest) -> TranslationInfo:
        """Return the log-probability of a given translation and its attention (forced decoding)."""
        entry = service.registry.get(body.model, is_translator=True)
        service.check_texts([body.source, body.target])

        def force_decode() -> TranslationInfo:
            pipeline = service.pipeline(entry)
            source, target = _tokenize_sentence(pipeline, body.source), pipeline.tokenize_target(body.target)
            _check_length(pipeline.model.target.segmenter.segment(target), "translation")
            [translation] = pipeline.model.force_decode([source], [target])
            return _describe_translation(translation, pipeline.detokenize_translation(translation, body.source))

        return await service.queue.run(force_decode)

    @router.post("/lattice", summary="Record a beam search")
    async def lattice(body: LatticeRequest) -> LatticeResponse:
        """Return all hypotheses that a beam search kept or finished, and the best of those it pruned."""
        entry = service.registry.get(body.model, is_translator=True)
        service.check_texts([body.text])
        service.check_beam(body.beam)
        return await service.queue.run_cancellable(
            lambda is_needed: _record_search(service.pipeline(entry), body, cancellation_check(is_needed))
        )


def _check_prefix(pipeline: TextPipeline, body: V1TranslateRequest) -> None:
    if len(body.texts) != 1 or len(pipeline.split(body.texts[0])) != 1:
        raise ApiError("a prefix needs a single sentence")
    _check_length(body.prefix, "prefix")


def _record_search(pipeline: TextPipeline, body: LatticeRequest, on_step: Callable[[], None]) -> LatticeResponse:
    lattice, source, model = Lattice(body.pruned), _tokenize_sentence(pipeline, body.text), pipeline.model
    [[best]] = model.n_best([source], 1, body.beam, length=body.length, lattice=lattice, on_step=on_step)
    tokens = model.target.vocab.tokens
    nodes = [
        LatticeNodeInfo(
            id=node.id,
            parent=node.parent,
            word="" if node.parent is None else tokens[node.token],
            log_prob=_finite(node.log_prob),
            score=_finite(node.score),
            fate=node.fate,
        )
        for node in lattice.nodes
    ]
    translation = _describe_translation(best, pipeline.detokenize_translation(best, body.text))
    return LatticeResponse(source=source, translation=translation, nodes=nodes)


def _describe_texts(texts: Sequence[Sequence[TranslatedSentence]]) -> list[TextInfo]:
    """Return the response for texts; only the first translations have attention if there is too much of it."""
    translations = [translation for text in texts for sentence in text for translation in sentence.translations]
    sizes = accumulate(0 if item.attention is None else item.attention.size for item in translations)
    with_attention = {
        id(translation) for translation, size in zip(translations, sizes, strict=True) if size <= MAX_ATTENTION_WEIGHTS
    }

    def describe(sentence: TranslatedSentence) -> SentenceInfo:
        described = [
            _describe_translation(translation, text, attention=id(translation) in with_attention)
            for translation, text in zip(sentence.translations, sentence.detokenized, strict=True)
        ]
        return SentenceInfo(source=sentence.text, gap=sentence.gap, read=sentence.tokenized, translations=described)

    return [TextInfo(text=join_sentences(text), sentences=[describe(sentence) for sentence in text]) for text in texts]


def _describe_translation(translation: Translation, text: str, *, attention: bool = True) -> TranslationInfo:
    weights = translation.attention if attention else None
    return TranslationInfo(
        text=text,
        units=list(translation.tokens),
        source_units=list(translation.source_tokens),
        log_prob=_finite(translation.log_prob),
        score=_finite(translation.score),
        finished=translation.finished,
        attention=None if weights is None else weights.round(5).tolist(),
        replaced=[ReplacedWordInfo(**replacement.as_dict()) for replacement in translation.replacements],
    )


# -- routes for language models ----------------------------------------------------------------------------------------


def _add_language_model_routes(router: APIRouter, service: Service) -> None:
    @router.post("/score", summary="Score a text word by word")
    async def score(body: ScoreRequest) -> ScoresResponse:
        """Return the surprisal of each word by several language models, in bits."""
        entries = [service.registry.get(name, is_translator=False) for name in _unique_names(body.models)]
        service.check_texts([body.text])

        def compute() -> ScoresResponse:
            models = {entry.name: entry.load_language_model() for entry in entries}
            table = surprisals(models, body.text.split("\n"))
            sentences = [
                SentenceScores(words=list(words), bits=[[_finite(bits) for bits in row] for row in values.T.tolist()])
                for words, values in table.sentences
            ]
            return ScoresResponse(models=list(table.models), sentences=sentences)

        return await service.queue.run(compute)

    @router.post("/next", summary="Predict the next word")
    async def next_words(body: NextWordsRequest) -> NextWordsResponse:
        """Return the most probable next words after a prefix, by several models."""
        entries = [service.registry.get(name) for name in _unique_names(body.models)]
        service.check_texts([body.prefix if isinstance(body.prefix, str) else " ".join(body.prefix), body.source])

        def predict(entry: ModelEntry) -> ModelNextWords:
            model = _language_model(service, entry, body.source, body.prefix)
            words = [NextWordInfo(word=word, prob=prob) for word, prob in model.next_words(body.prefix, body.k)]
            return ModelNextWords(model=entry.name, words=words)

        return await service.queue.run(lambda: NextWordsResponse(models=[predict(entry) for entry in entries]))

    @router.post("/sample", summary="Sample sentences")
    async def sample(body: SampleRequest) -> SamplesResponse:
        """Return sentences sampled from a language model, or translations sampled from a translator."""
        entry = service.registry.get(body.model)
        service.check_texts([body.prefix, body.source])
        service.check_alternatives(body.n - 1)
        options = body.model_dump(include={"prefix", "temperature", "top_k", "top_p", "max_words"})

        def draw() -> SamplesResponse:
            samples = _language_model(service, entry, body.source, body.prefix).sample(body.n, body.seed, **options)
            if entry.is_translator:
                samples = [service.pipeline(entry).detokenize(sample, body.source) for sample in samples]
            return SamplesResponse(samples=samples)

        return await service.queue.run(draw)


def _unique_names(names: Sequence[str]) -> list[str]:
    if not names:
        raise ApiError("name at least one model")
    return list(dict.fromkeys(names))


def _language_model(service: Service, entry: ModelEntry, source: str, prefix: str | list[str]) -> LanguageModel:
    """Return a language model, or a translator as a language model of translations of the source."""
    if not entry.is_translator:
        return entry.load_language_model()
    if not source.strip():
        raise ApiError(f"{entry.name} is a translator; give a source")
    pipeline = service.pipeline(entry)
    tokens = pipeline.model.target.segmenter.segment(prefix) if isinstance(prefix, str) else prefix
    _check_length(tokens, "prefix")
    return pipeline.model.condition_on(_tokenize_sentence(pipeline, source))


# -- routes for models, metrics and reports ----------------------------------------------------------------------------


def _add_run_routes(router: APIRouter, service: Service) -> None:
    registry = service.registry

    @router.get("/models", summary="List the models")
    def models() -> ModelsResponse:
        """Return the models and the limits."""
        registry.refresh()
        return ModelsResponse(models=[entry.describe() for entry in registry], limits=service.limits)

    @router.get("/metrics/{name:path}", summary="Training metrics of a model")
    def metrics(name: str) -> MetricsResponse:
        """Return the training metrics of a model or run, also while it is being trained."""
        path = _training_directory(registry, name) / METRICS_FILE
        age = max(0.0, time.time() - path.stat().st_mtime) if path.is_file() else None
        return MetricsResponse(model=name, metrics=read_metrics(path), seconds_ago=age)

    @router.get("/runs", summary="List the served directories")
    def runs() -> RunsResponse:
        """Return the served directories, and which of them have a report."""
        return RunsResponse(
            runs=[RunInfo(name=run.name, report=run.report is not None) for run in registry.runs.values()]
        )

    @router.get("/reports/{name:path}", response_class=HTMLResponse, summary="Report of a run")
    def report(name: str) -> FileResponse:
        """Return the report of a demo, ladder or other run as an HTML page."""
        path = registry.get_run(name).report
        if path is None:
            raise ApiError(f"{name} has no {REPORT_FILE}; dragoman demo and dragoman ladder write it", NOT_FOUND)
        return FileResponse(path, media_type="text/html; charset=utf-8", headers=REPORT_HEADERS)


def _training_directory(registry: ModelRegistry, name: str) -> Path:
    """Return the directory of a model, or of a run that trains several models together."""
    if name in registry.runs and name not in registry.entries:
        return registry.runs[name].path
    return registry.get(name).paths[0]


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a metrics file, thinned out if there are many; an incomplete last line is skipped."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    entries = [entry for line in lines if isinstance(entry := _parse_json(line), dict)]
    evaluations = _thin_out([index for index, entry in enumerate(entries) if "dev_loss" in entry])
    others = _thin_out([index for index, entry in enumerate(entries) if "dev_loss" not in entry])
    return [entries[index] for index in sorted([*evaluations, *others])]


def _parse_json(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _thin_out(indices: list[int]) -> list[int]:
    """Return about `MAX_METRICS` evenly spaced indices, including the last one."""
    return indices[:: -(1 + len(indices) // MAX_METRICS)]


# -- sentences and numbers ---------------------------------------------------------------------------------------------


def _check_length(tokens: Sequence[str], what: str) -> None:
    """Raise `ApiError` for sequences that would take too long token by token."""
    if len(tokens) > MAX_TOKENS:
        raise ApiError(f"the {what} has more than {MAX_TOKENS:,} tokens; send a shorter one")


def _tokenize_sentence(pipeline: TextPipeline, sentence: str) -> str:
    """Return a sentence as the translator reads it; raise `ApiError` if it is blank or too long for one search."""
    line = pipeline.tokenize(sentence)
    if not line.strip():
        raise ApiError("the sentence is blank")
    if pipeline.model.is_too_long(line):
        raise ApiError(f"the sentence has more than {MAX_TOKENS:,} tokens; send a shorter one")
    return line


def _finite(value: float) -> float | None:
    """Return None for infinite values, which JSON does not have."""
    return value if math.isfinite(value) else None
