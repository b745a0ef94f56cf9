"""The protocol of LibreTranslate, as its clients speak it: /translate, /languages, /detect, /health, /spec."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from email.parser import BytesParser
from email.policy import compat32
from email.utils import collapse_rfc2231_value
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, ValidationError

from dragoman.serve.errors import UNAVAILABLE, ApiError
from dragoman.serve.language_names import LANGUAGE_NAMES
from dragoman.serve.markup import MarkedUpText, parse_markup
from dragoman.serve.openapi import ERROR_RESPONSES
from dragoman.serve.service import Service
from dragoman.serve.text_pipeline import TranslatedSentence, join_sentences

RequestModel = TypeVar("RequestModel", bound=BaseModel)

AUTO = "auto"
BEAM = 5
ENCODED = "application/x-www-form-urlencoded"
FORMS = (ENCODED, "multipart/form-data")
LONGEST_HEADER = 1_000  # characters


class TranslateRequest(BaseModel):
    """What is to be translated."""

    q: str | list[str] = Field(description="a text, or several", examples=["Ein Hund bellt.", ["Ein Hund.", "Ja!"]])
    source: str = Field(default=AUTO, description="code of its language, or auto", examples=["de", AUTO])
    target: str = Field(description="code of the language to translate to", examples=["en"])
    format: Literal["text", "html"] = Field(default="text", description="html: tags stay as they are")
    alternatives: int = Field(default=0, description="how many other translations to tell")
    api_key: str | None = Field(default=None, description="not needed")


class DetectRequest(BaseModel):
    """A text whose language is not known."""

    q: str | list[str] = Field(description="the text, or several of one language", examples=["Ein Hund bellt."])
    api_key: str | None = Field(default=None, description="not needed")


class DetectedLanguage(BaseModel):
    """A language that a text may be in."""

    language: str = Field(description="its code", examples=["de"])
    confidence: float = Field(description="from 0 to 100", examples=[98.2])


class TranslateResponse(BaseModel):
    """A text and what is known of it, or, if several texts were sent, lists of these."""

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

    translatedText: str | list[str]  # noqa: N815  (as the protocol spells it)
    alternatives: list[str] | list[list[str]] | None = Field(
        default=None, description="other translations, the better first, if some were asked for"
    )
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = Field(  # noqa: N815
        default=None, description="if the source was auto"
    )


class LanguageInfo(BaseModel):
    """A language, and what it can be translated to."""

    code: str = Field(examples=["de"])
    name: str = Field(description="in English", examples=["German"])
    targets: list[str] = Field(description="codes; its own is among them", examples=[["de", "en"]])


class LanguageName(BaseModel):
    code: str
    name: str


class DefaultLanguages(BaseModel):
    source: LanguageName
    target: LanguageName | None = Field(description="null if there is no translator whose languages are known")


class FrontendSettings(BaseModel):
    """What a page that speaks this protocol has to know."""

    apiKeys: bool = Field(description="whether keys are looked at: they are not")  # noqa: N815
    charLimit: int = Field(description="characters of a request")  # noqa: N815
    filesTranslation: bool  # noqa: N815
    frontendTimeout: int = Field(description="milliseconds after the last key until a page should ask")  # noqa: N815
    keyRequired: bool  # noqa: N815
    language: DefaultLanguages
    suggestions: bool
    supportedFilesFormat: list[str]  # noqa: N815


class HealthResponse(BaseModel):
    status: Literal["ok"] = "ok"


def create_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["LibreTranslate"], responses=ERROR_RESPONSES)

    @router.post("/translate", openapi_extra=_body(TranslateRequest), response_model_exclude_none=True)
    async def translate(request: Request) -> TranslateResponse:
        """Translate a text, or several."""
        return await _translated(service, await _read(request, TranslateRequest))

    @router.post("/detect", openapi_extra=_body(DetectRequest))
    async def detect(request: Request) -> list[DetectedLanguage]:
        """Which language a text is in, of those that there are translators for; the likeliest first."""
        asked = await _read(request, DetectRequest)
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        service.check_texts(texts)
        found = await asyncio.to_thread(service.detect, " ".join(texts))
        return [DetectedLanguage(**guess._asdict()) for guess in found]

    @router.get("/languages")
    def languages() -> list[LanguageInfo]:
        """What can be translated to what. Every language can be left as it is."""
        targets = {code: [code] for pair in service.registry.by_languages for code in pair}
        for pair in service.registry.by_languages:
            targets[pair.source].append(pair.target)
        return [
            LanguageInfo(code=code, name=LANGUAGE_NAMES[code], targets=own) for code, own in sorted(targets.items())
        ]

    router.post("/languages", summary="The same, as some clients ask")(languages)

    @router.get("/health")
    def health() -> HealthResponse:
        """Whether requests are answered."""
        if not service.queue.is_alive:
            raise ApiError("nobody answers requests any more; start the service again", UNAVAILABLE)
        return HealthResponse()

    @router.get("/frontend/settings")
    def settings() -> FrontendSettings:
        """What a page that speaks this protocol has to know."""
        first = next(iter(service.registry.by_languages), None)
        target = None if first is None else LanguageName(code=first.target, name=LANGUAGE_NAMES[first.target])
        return FrontendSettings(
            apiKeys=False,
            charLimit=service.limits.characters,
            filesTranslation=False,
            frontendTimeout=500,
            keyRequired=False,
            language=DefaultLanguages(source=LanguageName(code=AUTO, name="Auto Detect"), target=target),
            suggestions=False,
            supportedFilesFormat=[],
        )

    return router


async def _translated(service: Service, asked: TranslateRequest) -> TranslateResponse:
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    service.check_texts(texts)
    service.check_beam(1, 1 + asked.alternatives)
    if not texts:
        return TranslateResponse(translatedText=[])
    plain = [_without_markup(text) if asked.format == "html" else text for text in texts]
    guesses = [await asyncio.to_thread(service.detect, text) for text in plain] if asked.source == AUTO else []
    sources = [own[0].language if own else _any_source(service, asked.target) for own in guesses]
    found = [_TextTranslations()] * len(texts)
    for source in dict.fromkeys(sources or [asked.source]):
        own = [place for place in range(len(texts)) if not sources or sources[place] == source]
        answers = await _between(service, source, asked, [texts[place] for place in own])
        for place, answer in zip(own, answers, strict=True):
            found[place] = answer
    detected = [
        DetectedLanguage(**own[0]._asdict()) if own else DetectedLanguage(language=one, confidence=0.0)
        for own, one in zip(guesses, sources, strict=True)
    ]
    one = isinstance(asked.q, str)
    told, others = [answer.text for answer in found], [answer.others for answer in found]
    return TranslateResponse(
        translatedText=told[0] if one else told,
        alternatives=None if not asked.alternatives else others[0] if one else others,
        detectedLanguage=None if not sources else detected[0] if one else detected,
    )


class _TextTranslations(BaseModel):
    text: str = ""
    others: list[str] = Field(default_factory=list)


async def _between(
    service: Service, source: str, asked: TranslateRequest, texts: Sequence[str]
) -> list[_TextTranslations]:
    """Texts of one language."""
    if source == asked.target and any(source in pair for pair in service.registry.by_languages):
        return [_TextTranslations(text=text) for text in texts]
    entry = service.translator_for(source, asked.target)
    n = 1 + asked.alternatives
    marked = [parse_markup(text) if asked.format == "html" else MarkedUpText([text], [0]) for text in texts]
    beam = min(max(BEAM, n), service.limits.beam)
    flat = [text for one in marked for text in one.texts]
    told = iter(await service.translate(entry, flat, n, beam) if flat else [])
    return [_answer(one, [next(told) for _ in one.text_indices], n, plain=asked.format == "text") for one in marked]


def _answer(
    marked: MarkedUpText, parts: Sequence[Sequence[TranslatedSentence]], n: int, *, plain: bool
) -> _TextTranslations:
    """The best translation of a text and the others, each of them once."""
    choices = [[join_sentences(one, choice) for one in parts] for choice in range(n)]
    texts = ["".join(own) if plain else marked.replace_texts(own) for own in choices]
    best, *others = dict.fromkeys(texts)
    return _TextTranslations(text=best, others=others)


def _without_markup(text: str) -> str:
    """What a text says, to tell its language by."""
    return " ".join(parse_markup(text).texts)


def _any_source(service: Service, target: str) -> str:
    """Where a text tells nothing of its language: that of some translator to the target."""
    return next((pair.source for pair in service.registry.by_languages if pair.target == target), target)


async def _read(request: Request, kind: type[RequestModel]) -> RequestModel:
    """A request as JSON, as a form or in the address, whichever way it was sent."""
    body, content = await request.body(), request.headers.get("content-type", "")
    try:
        given = _form(body, content) if _media_type(content) in FORMS else json.loads(body or b"{}")
        if not isinstance(given, dict):
            raise ValueError
        given = {**_fields(_pairs(request.url.query)), **given}
        json.dumps(given, ensure_ascii=False).encode()  # no half characters anywhere
    except (ValueError, UnicodeDecodeError, RecursionError):
        raise ApiError("Invalid request: neither JSON nor a form") from None
    for name, field in kind.model_fields.items():
        if field.is_required() and name not in given:
            raise ApiError(f"Invalid request: missing {name} parameter")
    try:
        known = {name: value for name, value in given.items() if name in kind.model_fields and value is not None}
        return kind.model_validate(known)
    except ValidationError as error:
        first = error.errors()[0]
        raise ApiError(f"Invalid request: {first['loc'][0]}: {first['msg']}") from None


def _media_type(content: str) -> str:
    return content.partition(";")[0].strip().lower()


def _form(body: bytes, content: str) -> dict[str, Any]:
    if _media_type(content) == ENCODED:
        return _fields(_pairs(body.decode()))
    message: Any = BytesParser(policy=compat32).parsebytes(b"content-type: " + content.encode() + b"\r\n\r\n" + body)
    parts = message.get_payload() if message.is_multipart() else []
    return _fields([(_field_name(part), _payload(part)) for part in parts])


def _pairs(encoded: str) -> list[tuple[str, str]]:
    return parse_qsl(encoded, keep_blank_values=True, max_num_fields=1000, errors="strict")


def _fields(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Of pairs, those of one name as a list."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        found[name] = (
            [*(found[name] if isinstance(found[name], list) else [found[name]]), value] if name in found else value
        )
    return found


def _field_name(part: Any) -> str:
    """What a part is called, by a header that is not so long that reading it takes long."""
    if len(str(part.get("content-disposition", ""))) > LONGEST_HEADER:
        raise ValueError("a header of a part is too long")
    return str(collapse_rfc2231_value(part.get_param("name", header="content-disposition")))


def _payload(part: Any) -> str:
    payload = part.get_payload(decode=True)
    if payload is None:
        raise ValueError("a part of parts")
    return bytes(payload).decode()


def _body(kind: type[BaseModel]) -> dict[str, Any]:
    """A request that may be JSON or a form, for OpenAPI."""
    schema = {"schema": kind.model_json_schema()}
    kinds = ("application/json", *FORMS)
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, schema)}}
