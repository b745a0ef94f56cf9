"""The service's own interface: what is inside the models, under /v1."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from dragoman.evaluation.surprisal import surprisals
from dragoman.search.lattice import Lattice
from dragoman.serve.interpreter import Interpreter, Sentence, whole
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service
from dragoman.serve.shelf import Entry
from dragoman.storage import METRICS
from dragoman.text.vocab import SPECIALS, UNK
from dragoman.translating import LENGTH, MOST_UNITS, Translated

MOST_NOTED = 1_000  # entries of a training that are told


class Asked(BaseModel):
    """Unknown names are refused rather than ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class TranslateAsked(Asked):
    model: str
    texts: list[str]
    beam: int = 5
    n: int = Field(default=1, ge=1, description="how many translations of each sentence")
    length: str = Field(default=LENGTH, description="none, norm, prior or penalty:X")
    coverage: float = Field(default=0.0, ge=0, description="strength of the coverage penalty")
    prefix: list[str] = Field(default=[], description="units that the translation of a single sentence begins with")


class GivenAsked(Asked):
    model: str
    source: str
    target: str


class LatticeAsked(Asked):
    model: str
    text: str = Field(description="one sentence")
    beam: int = 5
    length: str = LENGTH
    pruned: int = Field(default=5, ge=0, le=20, description="of those that were pruned, how many of each step")


class ScoreAsked(Asked):
    models: list[str]
    text: str = Field(description="words with spaces between, one sentence a line")


class NextAsked(Asked):
    models: list[str]
    prefix: str | list[str] = Field(default="", description="a text, or of a translator its units")
    source: str = Field(default="", description="of a translator: the sentence to translate")
    k: int = Field(default=10, ge=1, le=100)


class SampleAsked(Asked):
    model: str
    n: int = Field(default=5, ge=1)
    seed: int = Field(default=1, ge=0, lt=2**63)
    prefix: str = ""
    source: str = ""
    temperature: float = Field(default=1.0, gt=0, le=100)
    top_k: int | None = Field(default=None, ge=1)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_words: int = Field(default=60, ge=1, le=200)


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["dragoman"])

    @router.get("/models")
    def models() -> dict[str, Any]:
        """What there is, and the limits."""
        return {"models": [entry.described() for entry in service.shelf], "limits": asdict(service.limits)}

    @router.get("/metrics/{name:path}")
    def metrics(name: str) -> dict[str, Any]:
        """How the training of a model goes, or went: what it noted down, an entry for every look."""
        return {"model": name, "metrics": noted(service.shelf.find(name).paths[0] / METRICS)}

    @router.post("/translate")
    async def translate(asked: TranslateAsked) -> dict[str, Any]:
        """n-best lists with scores, attention and replaced words, sentence by sentence."""
        entry = service.shelf.find(asked.model, translates=True)
        service.admit([*asked.texts, " ".join(asked.prefix)] if asked.prefix else asked.texts)
        service.check_beam(asked.beam, asked.n)
        how = _how(asked)
        if asked.prefix:
            await service.desk.do(lambda: _check_prefix(service.interpreter(entry), asked))
        told = await service.translate(entry, asked.texts, asked.n, asked.beam, **how)
        return {"texts": await asyncio.to_thread(lambda: [_text(parts) for parts in told])}

    @router.post("/attention")
    async def attention(asked: GivenAsked) -> dict[str, Any]:
        """What a given translation costs, and where each of its words is looked for."""
        entry = service.shelf.find(asked.model, translates=True)
        service.admit([asked.source, asked.target])

        def work() -> dict[str, Any]:
            interpreter = service.interpreter(entry)
            line, written = _one_piece(interpreter, asked.source), interpreter.written(asked.target)
            if len(interpreter.model.target.units.cut(written)) > MOST_UNITS:
                raise Refusal(f"the translation has more than {MOST_UNITS:,} units; send a shorter one")
            [told] = interpreter.model.score([line], [written])
            return _told(told, told.text)

        return dict(await service.desk.do(work))

    @router.post("/lattice")
    async def lattice(asked: LatticeAsked) -> dict[str, Any]:
        """What a beam search did: every hypothesis that it kept, and the best of those it pruned."""
        entry = service.shelf.find(asked.model, translates=True)
        service.admit([asked.text])
        service.check_beam(asked.beam)
        return dict(await service.desk.do(lambda: _searched(service.interpreter(entry), asked)))

    @router.post("/score")
    async def score(asked: ScoreAsked) -> dict[str, Any]:
        """What each word costs by several language models, in bits."""
        entries = [service.shelf.find(name, translates=False) for name in _some(asked.models)]
        service.admit([asked.text])

        def work() -> dict[str, Any]:
            found = surprisals({entry.name: entry.loaded() for entry in entries}, asked.text.split("\n"))
            lines = [{"words": list(one.words), "bits": _finite(one.bits.T.tolist())} for one in found.sentences]
            return {"models": list(found.models), "sentences": lines}

        return dict(await service.desk.do(work))

    @router.post("/next")
    async def next_words(asked: NextAsked) -> dict[str, Any]:
        """The likeliest next words after a prefix, by several models."""
        entries = [service.shelf.find(name) for name in _some(asked.models)]
        service.admit([asked.prefix if isinstance(asked.prefix, str) else " ".join(asked.prefix), asked.source])

        def work() -> list[dict[str, Any]]:
            found = ((entry, _speaker(service, entry, asked.source)) for entry in entries)
            return [
                {"model": entry.name, "words": [one._asdict() for one in model.next_words(asked.prefix, asked.k)]}
                for entry, model in found
            ]

        return {"models": await service.desk.do(work)}

    @router.post("/sample")
    async def sample(asked: SampleAsked) -> dict[str, Any]:
        """Sentences drawn from a model."""
        entry = service.shelf.find(asked.model)
        service.admit([asked.prefix, asked.source])
        service.check_many(asked.n - 1)
        how = asked.model_dump(include={"prefix", "temperature", "top_k", "top_p", "max_words"})

        def work() -> list[str]:
            drawn: list[str] = _speaker(service, entry, asked.source).sample(asked.n, asked.seed, **how)
            return drawn

        return {"samples": await service.desk.do(work)}

    return router


def noted(path: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl; of very many, some from all over. One that is being written is left out."""
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found[:: 1 + len(found) // MOST_NOTED]


def _how(asked: TranslateAsked) -> dict[str, Any]:
    how: dict[str, Any] = {"length": asked.length}
    if asked.coverage:
        how["coverage"] = asked.coverage
    if asked.prefix:
        how["prefix"] = tuple(asked.prefix)
    return how


def _check_prefix(interpreter: Interpreter, asked: TranslateAsked) -> None:
    """A prefix is for one sentence, and of units that the translator can write."""
    if len(asked.texts) != 1 or len(interpreter.parted(asked.texts[0])) != 1:
        raise Refusal("a prefix is for a single sentence")
    vocab = interpreter.model.target.vocab
    strange = [unit for unit in asked.prefix if vocab.id(unit) == UNK and unit != SPECIALS[UNK]]
    if strange:
        raise Refusal(f"the translator has no unit {strange[0]!r} to begin with")


def _some(names: Sequence[str]) -> list[str]:
    if not names:
        raise Refusal("name at least one model")
    return list(dict.fromkeys(names))


def _speaker(service: Service, entry: Entry, source: str) -> Any:
    """Who says what comes next: a language model, or a translator that was given its source."""
    if not entry.translates:
        return entry.loaded()
    if not source.strip():
        raise Refusal(f"{entry.name} is a translator; give a source")
    interpreter = service.interpreter(entry)
    return interpreter.model.given(_one_piece(interpreter, source))


def _one_piece(interpreter: Interpreter, sentence: str) -> str:
    """A sentence as the translator reads it, if it is neither blank nor too long to be read at once."""
    line = interpreter.line(sentence)
    if not line.strip():
        raise Refusal("the sentence is blank; give one")
    if interpreter.model.is_overlong(line):
        raise Refusal(f"the sentence has more than {MOST_UNITS:,} units; send a shorter one")
    return line


def _text(parts: Sequence[Sentence]) -> dict[str, Any]:
    return {"text": whole(parts), "sentences": [_sentence(one) for one in parts]}


def _sentence(one: Sentence) -> dict[str, Any]:
    found = [_told(told, printed) for told, printed in zip(one.found, one.printed, strict=True)]
    return {"source": one.text, "gap": one.gap, "read": one.line, "translations": found}


def _told(told: Translated, text: str) -> dict[str, Any]:
    """A translation as plain values."""
    return {
        "text": text,
        "units": list(told.words),
        "source_units": list(told.source),
        "log_prob": told.log_prob,
        "score": told.score,
        "finished": told.finished,
        "attention": None
        if told.attention is None
        else [[round(value, 5) for value in row] for row in told.attention.tolist()],
        "replaced": [one.as_dict() for one in told.replaced],
    }


def _searched(interpreter: Interpreter, asked: LatticeAsked) -> dict[str, Any]:
    record = Lattice(pruned=asked.pruned)
    line, model = _one_piece(interpreter, asked.text), interpreter.model
    [best] = model.n_best([line], 1, asked.beam, length=asked.length, lattice=record)
    words = model.target.vocab.words
    nodes = [
        {
            "id": node.id,
            "parent": node.parent,
            "word": "" if node.parent is None else words[node.word],
            "log_prob": node.log_prob,
            "score": node.score,
            "fate": node.fate,
        }
        for node in record.nodes
    ]
    return {"source": line, "translation": _told(best[0], interpreter.print(best[0], asked.text)), "nodes": nodes}


def _finite(rows: Sequence[Sequence[float]]) -> list[list[float | None]]:
    """Infinite bits as null: JSON has no infinity."""
    return [[value if math.isfinite(value) else None for value in row] for row in rows]
