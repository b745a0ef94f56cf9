"""The API under /v1: models and runs, n-best lists, attention, lattices, surprisal, next words and samples."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from fastapi import APIRouter, Depends
from fastapi.responses import FileResponse

from dragoman.core.defaults import MAX_TOKENS
from dragoman.core.errors import shorten
from dragoman.evaluation.surprisal import surprisals
from dragoman.io.storage import METRICS_FILE, REPORT_FILE
from dragoman.models.input_checks import input_warning
from dragoman.models.language_model import LanguageModel
from dragoman.models.text_pipeline import TextPipeline, TranslatedSentence, TranslationOptions, join_sentences
from dragoman.models.translation import BaseTranslator, Translation
from dragoman.search.hypothesis import Lattice
from dragoman.search.next_words import describe
from dragoman.serve import schemas
from dragoman.serve.errors import ERROR_RESPONSES, NOT_FOUND, ApiError
from dragoman.serve.registry import ModelEntry, token_name_of
from dragoman.serve.service import Service, TranslatedText
from dragoman.serve.word_view import WordView

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
    router = APIRouter(
        prefix="/v1",
        tags=["dragoman"],
        responses=ERROR_RESPONSES,
        dependencies=[Depends(service.access.dependency())],
    )
    _add_translator_routes(router, service)
    _add_language_model_routes(router, service)
    _add_run_routes(router, service)
    return router


def _add_translator_routes(router: APIRouter, service: Service) -> None:
    @router.post("/translate", summary="Translate with scores and attention")
    async def translate(body: schemas.V1TranslateRequest) -> schemas.TranslationsResponse:
        """Return n-best lists with scores, attention and replaced words, sentence by sentence."""
        entry = service.registry.get(body.model, is_translator=True)
        service.check_texts([*body.texts, " ".join(body.prefix)] if body.prefix else body.texts)
        service.check_beam(body.beam, body.n)
        if body.prefix:
            await service.queue.run(lambda: _check_prefix(service.pipeline(entry), body))
        options = TranslationOptions(body.n, body.beam, body.length, body.coverage, tuple(body.prefix))
        texts = await service.translate(entry, body.texts, options)
        return await asyncio.to_thread(lambda: schemas.TranslationsResponse(texts=_describe_texts(texts)))

    @router.post("/attention", summary="Score a given translation")
    async def attention(body: schemas.AttentionRequest) -> schemas.TranslationInfo:
        """Return the log-probability of a given translation and its attention (forced decoding)."""
        entry = service.registry.get(body.model, is_translator=True)
        service.check_texts([body.source, body.target])

        def force_decode() -> schemas.TranslationInfo:
            pipeline = service.pipeline(entry)
            source, target = _tokenize_sentence(pipeline, body.source), pipeline.tokenize_target(body.target)
            _check_length(pipeline.model.target.segmenter.segment(target), "translation")
            [translation] = pipeline.model.force_decode([source], [target])
            text = pipeline.detokenize_translation(translation, body.source)
            return _describe_translation(pipeline.model, translation, text)

        return await service.queue.run(force_decode)

    @router.post("/lattice", summary="Record a beam search")
    async def lattice(body: schemas.LatticeRequest) -> schemas.LatticeResponse:
        """Return all hypotheses that a beam search kept or finished, and the best of those it pruned."""
        entry = service.registry.get(body.model, is_translator=True)
        service.check_texts([body.text])
        service.check_beam(body.beam)
        return await service.queue.run_cancellable(
            lambda check_needed: _record_search(service.pipeline(entry), body, check_needed)
        )


def _check_prefix(pipeline: TextPipeline, body: schemas.V1TranslateRequest) -> None:
    if len(body.texts) != 1 or len(pipeline.split(body.texts[0])) != 1:
        raise ApiError("a prefix needs a single sentence")
    _check_length(body.prefix, "prefix")


def _record_search(
    pipeline: TextPipeline, body: schemas.LatticeRequest, on_step: Callable[[], None]
) -> schemas.LatticeResponse:
    lattice, source, model = Lattice(body.pruned), _tokenize_sentence(pipeline, body.text), pipeline.model
    [[best]] = model.n_best([source], 1, body.beam, length=body.length, lattice=lattice, on_step=on_step)
    tokens = model.target.vocab.tokens
    nodes = [
        schemas.LatticeNodeInfo(
            id=node.id,
            parent=node.parent,
            word="" if node.parent is None else tokens[node.token],
            log_prob=node.log_prob,
            score=node.score,
            fate=node.fate,
        )
        for node in lattice.nodes
    ]
    translation = _describe_translation(model, best, pipeline.detokenize_translation(best, body.text))
    return schemas.LatticeResponse(source=source, translation=translation, nodes=nodes)


def _describe_texts(texts: Sequence[TranslatedText]) -> list[schemas.TextInfo]:
    """Return the response for texts; only the first translations have attention if there is too much of it."""
    sentences = [sentence for text in texts for sentence in text.sentences]
    translations = [translation for sentence in sentences for translation in sentence.translations]
    sizes = accumulate(0 if item.attention is None else item.attention.size for item in translations)
    with_attention = {
        id(translation) for translation, size in zip(translations, sizes, strict=True) if size <= MAX_ATTENTION_WEIGHTS
    }

    def describe(model: BaseTranslator, sentence: TranslatedSentence) -> schemas.SentenceInfo:
        described = [
            _describe_translation(model, translation, text, attention=id(translation) in with_attention)
            for translation, text in zip(sentence.translations, sentence.texts, strict=True)
        ]
        return schemas.SentenceInfo(
            source=sentence.text,
            trailing_space=sentence.trailing_space,
            tokenized=sentence.segmented.text,
            translations=described,
        )

    return [
        schemas.TextInfo(
            text=join_sentences(text.sentences),
            sentences=[describe(text.model, sentence) for sentence in text.sentences],
            warning=input_warning(text.model, text.sentences),
        )
        for text in texts
    ]


def _describe_translation(
    model: BaseTranslator, translation: Translation, text: str, *, attention: bool = True
) -> schemas.TranslationInfo:
    view = WordView.of(model, translation)
    weights, word_weights = (translation.attention, view.attention) if attention else (None, None)
    return schemas.TranslationInfo(
        text=text,
        units=list(translation.tokens),
        source_units=list(translation.source_tokens),
        log_prob=translation.log_prob,
        score=translation.score,
        finished=translation.finished,
        attention=None if weights is None else weights.round(5).tolist(),
        replaced=[schemas.ReplacedWordInfo(**replacement.as_dict()) for replacement in translation.replacements],
        words=[schemas.WordInfo(**word._asdict()) for word in view.words],
        source_words=[schemas.WordInfo(**word._asdict()) for word in view.source_words],
        word_attention=None if word_weights is None else word_weights.round(5).tolist(),
    )


def _add_language_model_routes(router: APIRouter, service: Service) -> None:
    @router.post("/score", summary="Score a text word by word")
    async def score(body: schemas.ScoreRequest) -> schemas.ScoresResponse:
        """Return the surprisal of each word by several language models, in bits."""
        entries = [service.registry.get(name, is_translator=False) for name in _unique_names(body.models)]
        service.check_texts([body.text])

        def compute() -> schemas.ScoresResponse:
            models = {entry.name: entry.load_language_model() for entry in entries}
            table = surprisals(models, body.text.split("\n"))
            sentences = [
                schemas.SentenceScores(words=list(words), bits=bits.T.tolist()) for words, bits in table.sentences
            ]
            return schemas.ScoresResponse(models=list(table.models), sentences=sentences)

        return await service.queue.run(compute)

    @router.post("/next", summary="Predict the next word")
    async def next_words(body: schemas.NextWordsRequest) -> schemas.NextWordsResponse:
        """Return the most probable next words after a prefix, by several models.

        `<unk>`, all unknown words together, is left out; the probabilities of the others are not changed.
        """
        entries = [service.registry.get(name) for name in _unique_names(body.models)]
        service.check_texts([body.prefix if isinstance(body.prefix, str) else " ".join(body.prefix), body.source])

        def predict(entry: ModelEntry) -> schemas.ModelNextWords:
            model = _language_model(service, entry, body.source, body.prefix)
            return schemas.ModelNextWords(model=entry.name, words=_next_words(model, entry, body))

        return await service.queue.run(lambda: schemas.NextWordsResponse(models=[predict(entry) for entry in entries]))

    @router.post("/sample", summary="Sample sentences")
    async def sample(body: schemas.SampleRequest) -> schemas.SamplesResponse:
        """Return sentences sampled from a language model, or translations sampled from a translator."""
        entry = service.registry.get(body.model)
        service.check_texts([body.prefix, body.source])
        service.check_alternatives(body.n - 1)
        options = body.model_dump(include={"prefix", "temperature", "top_k", "top_p", "max_words", "show_unknown"})

        def draw() -> schemas.SamplesResponse:
            samples = _language_model(service, entry, body.source, body.prefix).sample(body.n, body.seed, **options)
            if entry.is_translator:
                samples = [service.pipeline(entry).detokenize(sample, body.source) for sample in samples]
            return schemas.SamplesResponse(samples=samples)

        return await service.queue.run(draw)


def _next_words(model: LanguageModel, entry: ModelEntry, body: schemas.NextWordsRequest) -> list[schemas.NextWordInfo]:
    """Return next words with the text or the tokens that append them to the prefix; of a translator, next tokens."""
    if entry.is_translator and not (body.whole_words and model.vocab.segmenter.kind != "word"):
        words = model.next_tokens(body.prefix, body.k, show_unknown=False)
        return [schemas.NextWordInfo(word=word, prob=prob) for word, prob in words]
    prefix = body.prefix if isinstance(body.prefix, str) else model.vocab.segmenter.join(body.prefix)
    tokens = None if isinstance(body.prefix, str) else body.prefix
    return [
        schemas.NextWordInfo(
            word=describe(word.text, prefix),
            prob=word.prob,
            text=word.text,
            prefix=None if tokens is None else [*tokens, *word.tokens],
        )
        for word in model.continuations(body.prefix, body.k, show_unknown=False)
    ]


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


def _add_run_routes(router: APIRouter, service: Service) -> None:
    registry = service.registry

    @router.get("/models", summary="List the models")
    def models() -> schemas.ModelsResponse:
        """Return the models and the limits."""
        registry.refresh()
        return schemas.ModelsResponse(models=[entry.describe() for entry in registry], limits=service.limits)

    @router.get("/metrics/{name:path}", summary="Training metrics of a model")
    def metrics(name: str) -> schemas.MetricsResponse:
        """Return the training metrics of a model or run, also while it is being trained."""
        is_run = name in registry.runs and name not in registry.entries  # one that trains several models together
        directory = registry.runs[name].path if is_run else registry.get(name).paths[0]
        path, token = directory / METRICS_FILE, token_name_of(directory)
        age = max(0.0, time.time() - path.stat().st_mtime) if path.is_file() else None
        return schemas.MetricsResponse(model=name, metrics=read_metrics(path), seconds_ago=age, token=token)

    @router.get("/runs", summary="List the served directories")
    def runs() -> schemas.RunsResponse:
        """Return the served directories, and which of them have a report."""
        return schemas.RunsResponse(
            runs=[schemas.RunInfo(name=run.name, report=run.report is not None) for run in registry.runs.values()]
        )

    @router.get(
        "/reports/{name:path}",
        response_class=FileResponse,  # with HTMLResponse, FastAPI would describe errors as HTML, too
        responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
        summary="Report of a run",
    )
    def report(name: str) -> FileResponse:
        """Return the report of a demo, ladder or other run as an HTML page."""
        if name not in registry.runs:
            available = ", ".join(registry.runs) or "none"
            raise ApiError(f"there is no run {shorten(name)!r}; available: {available}", NOT_FOUND)
        path = registry.runs[name].report
        if path is None:
            raise ApiError(f"{name} has no {REPORT_FILE}; dragoman demo and dragoman ladder write it", NOT_FOUND)
        return FileResponse(path, media_type="text/html; charset=utf-8", headers=REPORT_HEADERS)


def read_metrics(path: Path) -> list[dict[str, object]]:
    """Return the entries of a metrics file; an incomplete last line is skipped.

    If there are many, about `MAX_METRICS` evaluations and other entries each are kept, evenly spaced, with the last.
    """
    entries: list[dict[str, object]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        with suppress(ValueError):
            entry = json.loads(line)
            entries += [entry] if isinstance(entry, dict) else []
    selected: list[int] = []
    for is_evaluation in (True, False):
        indices = [index for index, entry in enumerate(entries) if ("dev_loss" in entry) == is_evaluation]
        selected += indices[:: -(1 + len(indices) // MAX_METRICS)]
    return [entries[index] for index in sorted(selected)]


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
