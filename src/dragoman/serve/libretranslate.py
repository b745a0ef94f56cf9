"""The LibreTranslate API: /translate, /languages, /detect, /health, /frontend/settings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Literal, TypeVar

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field, ValidationError

from dragoman.core.defaults import DEFAULT_BEAM_SIZE
from dragoman.data.html_documents import parse_html
from dragoman.data.inline_markup import plain_text
from dragoman.data.languages import LANGUAGE_NAMES
from dragoman.models.document_translation import SegmentTranslation
from dragoman.models.text_pipeline import TranslationOptions, join_sentences
from dragoman.serve.errors import ERROR_RESPONSES, UNAVAILABLE, ApiError, invalid_request
from dragoman.serve.registry import ModelEntry
from dragoman.serve.request_fields import JSON, MULTIPART, URL_ENCODED, read_fields
from dragoman.serve.service import Service

AUTO = "auto"

RequestModel = TypeVar("RequestModel", bound=BaseModel)


class TranslateRequest(BaseModel):
    """A text or several texts to translate."""

    q: str | list[str] = Field(
        description="one text or a list of texts", examples=["Ein Hund bellt.", ["Ein Hund.", "Ja!"]]
    )
    source: str = Field(default=AUTO, description="language code of the text, or auto", examples=["de", AUTO])
    target: str = Field(description="language code of the translation", examples=["en"])
    format: Literal["text", "html"] = Field(default="text", description="html: tags are not translated")
    alternatives: int = Field(
        default=0, json_schema_extra={"minimum": 0}, description="number of alternative translations"
    )
    api_key: str | None = Field(default=None, description="needed if keyRequired is true in /frontend/settings")


class DetectRequest(BaseModel):
    """A text whose language is unknown."""

    q: str | list[str] = Field(description="one text, or several of the same language", examples=["Ein Hund bellt."])
    api_key: str | None = Field(default=None, description="needed if keyRequired is true in /frontend/settings")


class DetectedLanguage(BaseModel):
    """A possible language of a text."""

    language: str = Field(description="language code", examples=["de"])
    confidence: float = Field(description="from 0 to 100", examples=[98.2])


class TranslateResponse(BaseModel):
    """A translation; for a list of texts, each field is a list."""

    model_config = {
        "json_schema_extra": {
            "examples": [
                {"translatedText": "A dog barks."},
                {
                    "translatedText": ["A dog.", "Yes!"],
                    "alternatives": [["The dog."], ["Yeah!"]],
                    "detectedLanguage": [{"language": "de", "confidence": 98.2}] * 2,
                },
            ]
        }
    }

    translatedText: str | list[str]  # noqa: N815  (the protocol's spelling)
    alternatives: list[str] | list[list[str]] | None = Field(
        default=None, description="alternative translations, best first, if the request asks for them"
    )
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = Field(  # noqa: N815
        default=None, description="present if the source was auto"
    )


class LanguageInfo(BaseModel):
    """A language and the languages it can be translated to."""

    code: str = Field(examples=["de"])
    name: str = Field(description="English name", examples=["German"])
    targets: list[str] = Field(description="language codes, including its own", examples=[["de", "en"]])


class LanguageName(BaseModel):
    code: str
    name: str


class DefaultLanguages(BaseModel):
    source: LanguageName
    target: LanguageName | None = Field(description="null if no translator has known languages")


class FrontendSettings(BaseModel):
    """Settings for web pages that use the LibreTranslate API."""

    apiKeys: bool = Field(description="whether API keys are used")  # noqa: N815
    charLimit: int = Field(description="maximum number of characters per request")  # noqa: N815
    filesTranslation: bool  # noqa: N815
    frontendTimeout: int = Field(description="milliseconds to wait after the last key before a request")  # noqa: N815
    keyRequired: bool = Field(description="whether /translate, /detect and /v1 need an API key")  # noqa: N815
    language: DefaultLanguages
    suggestions: bool
    supportedFilesFormat: list[str]  # noqa: N815


class HealthResponse(BaseModel):
    status: Literal["ok"] = "ok"


def create_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["LibreTranslate"], responses=ERROR_RESPONSES)

    needs_access = [Depends(service.access.dependency())]

    @router.post(
        "/translate",
        openapi_extra=_request_body(TranslateRequest),
        response_model_exclude_none=True,
        dependencies=needs_access,
    )
    async def translate(request: Request) -> TranslateResponse:
        """Translate one text or several."""
        return await _translate(service, await _read_request(request, TranslateRequest))

    @router.post("/detect", openapi_extra=_request_body(DetectRequest), dependencies=needs_access)
    async def detect(request: Request) -> list[DetectedLanguage]:
        """Detect the language of a text, among the languages of the translators; most probable first."""
        body = await _read_request(request, DetectRequest)
        texts = [body.q] if isinstance(body.q, str) else body.q
        service.check_texts(texts)
        guesses = await asyncio.to_thread(service.detect, " ".join(texts))
        return [DetectedLanguage(language=guess.language, confidence=guess.confidence) for guess in guesses]

    @router.get("/languages")
    def languages() -> list[LanguageInfo]:
        """List the languages and their targets. Every language can be translated to itself, without change."""
        pairs = list(service.registry.by_languages)
        targets = {code: [code] for pair in pairs for code in pair}
        for pair in pairs:
            targets[pair.source].append(pair.target)
        return [LanguageInfo(code=code, name=LANGUAGE_NAMES[code], targets=targets[code]) for code in sorted(targets)]

    router.post("/languages", summary="Languages, for clients that use POST")(languages)

    @router.get("/health")
    def health() -> HealthResponse:
        """Check whether the service works."""
        if not service.queue.is_alive:
            raise ApiError("the worker thread has stopped; restart the service", UNAVAILABLE)
        return HealthResponse()

    @router.get("/frontend/settings")
    def settings() -> FrontendSettings:
        """Settings for web pages that use this API."""
        first = next(iter(service.registry.by_languages), None)
        target = None if first is None else LanguageName(code=first.target, name=LANGUAGE_NAMES[first.target])
        return FrontendSettings(
            apiKeys=service.access.key_required,
            charLimit=service.limits.characters,
            filesTranslation=False,
            frontendTimeout=500,
            keyRequired=service.access.key_required,
            language=DefaultLanguages(source=LanguageName(code=AUTO, name="Auto Detect"), target=target),
            suggestions=False,
            supportedFilesFormat=[],
        )

    return router


async def _translate(service: Service, request: TranslateRequest) -> TranslateResponse:
    texts = [request.q] if isinstance(request.q, str) else request.q
    service.check_texts(texts)
    service.check_beam(1, 1 + request.alternatives)
    if not texts:
        return TranslateResponse(translatedText=[])
    detected = [await _detect(service, text, request) for text in texts] if request.source == AUTO else []
    sources = [guess.language for guess in detected] or [request.source] * len(texts)
    n_best: dict[int, list[str]] = {}
    for source in dict.fromkeys(sources):
        indices = [index for index, language in enumerate(sources) if language == source]
        translated = await _translate_from(service, source, request, [texts[index] for index in indices])
        n_best.update(zip(indices, translated, strict=True))
    translations = [n_best[index][0] for index in range(len(texts))]
    alternatives = [n_best[index][1:] for index in range(len(texts))]
    single = isinstance(request.q, str)
    return TranslateResponse(
        translatedText=translations[0] if single else translations,
        alternatives=None if not request.alternatives else alternatives[0] if single else alternatives,
        detectedLanguage=None if not detected else detected[0] if single else detected,
    )


async def _detect(service: Service, text: str, request: TranslateRequest) -> DetectedLanguage:
    """Detect the language of a text; without letters to go by, take the source of some translator to the target."""
    plain = text
    if request.format == "html":
        plain = " ".join(plain_text(segment.parts, show=False).text for segment in parse_html(text).segments)
    if guesses := await asyncio.to_thread(service.detect, plain):
        return DetectedLanguage(language=guesses[0].language, confidence=guesses[0].confidence)
    sources = (pair.source for pair in service.registry.by_languages if pair.target == request.target)
    return DetectedLanguage(language=next(sources, request.target), confidence=0.0)


async def _translate_from(
    service: Service, source: str, request: TranslateRequest, texts: Sequence[str]
) -> list[list[str]]:
    """Return different translations of each text of one language, best first. A text in the target language stays."""
    if source == request.target and any(source in pair for pair in service.registry.by_languages):
        return [[text] for text in texts]
    entry = service.translator_for(source, request.target)
    n = 1 + request.alternatives
    options = TranslationOptions(n, min(max(DEFAULT_BEAM_SIZE, n), service.limits.beam))
    if request.format == "html":
        return await _translate_html(service, entry, texts, options)
    translated = await service.translate(entry, texts, options)
    return [list(dict.fromkeys(join_sentences(text.sentences, rank) for rank in range(n))) for text in translated]


async def _translate_html(
    service: Service, entry: ModelEntry, texts: Sequence[str], options: TranslationOptions
) -> list[list[str]]:
    """Return different translations of each HTML text, best first."""
    documents = await asyncio.to_thread(lambda: [parse_html(text) for text in texts])
    job = SegmentTranslation([segment for document in documents for segment in document.segments], options.n)
    while job.texts:
        translated = await service.translate(entry, job.texts, options)
        await asyncio.to_thread(job.add, [text.sentences for text in translated])
    by_rank = [iter(results) for results in job.results]
    n_best = []
    for document in documents:
        written = (document.render(list(islice(results, len(document.segments)))).text for results in by_rank)
        n_best.append(list(dict.fromkeys(written)))
    return n_best


async def _read_request(request: Request, model: type[RequestModel]) -> RequestModel:
    """Parse a request. A null means that a field is missing."""
    fields = await read_fields(request)
    try:
        known = {name: value for name, value in fields.items() if name in model.model_fields and value is not None}
        return model.model_validate(known)
    except ValidationError as error:
        raise ApiError(invalid_request(error.errors()[0])) from None


def _request_body(model: type[BaseModel]) -> dict[str, object]:
    """Describe a request of JSON or a form for OpenAPI. Fields that may be missing may be null in JSON.

    A form has no null, and no empty list.
    """
    in_json, in_form = model.model_json_schema(), model.model_json_schema()
    for name, description in in_json["properties"].items():
        if name not in in_json["required"] and "anyOf" not in description:
            in_json["properties"][name] = {"anyOf": [description, {"type": "null"}]}
    for description in in_form["properties"].values():
        if "anyOf" in description:
            description["anyOf"] = [kind for kind in description["anyOf"] if kind["type"] != "null"]
        for kind in description.get("anyOf", ()):
            kind.update({"minItems": 1} if kind["type"] == "array" else {})
    schemas = {JSON: in_json, URL_ENCODED: in_form, MULTIPART: in_form}
    content = {media_type: {"schema": schema} for media_type, schema in schemas.items()}
    return {"requestBody": {"required": True, "content": content}}
