"""What the service's own interface answers: every field, and what it means. `GET /spec` tells them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from dragoman.search.lattice import Fate

Number = float | None  # null: minus infinity, of what a model holds impossible

TRANSLATION_EXAMPLE: dict[str, Any] = {
    "text": "A dog barks.",
    "units": ["a", "dog", "barks", "."],
    "source_units": ["ein", "hund", "bellt", "."],
    "log_prob": -0.31,
    "score": -0.062,
    "finished": True,
    "attention": [
        [0.91, 0.05, 0.01, 0.01, 0.02],
        [0.04, 0.9, 0.03, 0.01, 0.02],
        [0.01, 0.06, 0.9, 0.02, 0.01],
        [0.01, 0.01, 0.03, 0.93, 0.02],
        [0.01, 0.01, 0.02, 0.06, 0.9],
    ],
    "replaced": [],
}


class ErrorResponse(BaseModel):
    """Why a request is not answered."""

    error: str = Field(examples=["5,001 characters, and a request may have 5,000"])


class ModelInfo(BaseModel):
    """A model that can be asked for."""

    name: str = Field(description="what requests call it", examples=["de-en"])
    kind: str = Field(description="translator, or which kind of language model", examples=["translator", "ngram"])
    members: int = Field(description="how many models it consists of: of an ensemble, more than one")
    units: dict[str, str] | None = Field(
        description="of a translator that was loaded: what its source and target are cut into",
        examples=[{"source": "word", "target": "word"}],
    )
    source: str | None = Field(description="of a translator: code of the language it reads, if that is known")
    target: str | None = Field(description="of a translator: code of the language it writes, if that is known")
    loaded: bool = Field(description="models are loaded when they are first asked for")
    problem: str | None = Field(description="why it could not be loaded")


class LimitsInfo(BaseModel):
    """How much a request may ask for."""

    characters: int = Field(description="of all texts of a request")
    texts: int = Field(description="of a request")
    beam: int = Field(description="the widest")
    alternatives: int = Field(description="translations beside the best, or samples beside the first")
    body: int = Field(description="bytes of a request")
    queue: int = Field(description="requests that wait")
    seconds: float = Field(description="that a request may take, waiting included")
    connections: int = Field(description="that are open at a time")


class ModelsResponse(BaseModel):
    models: list[ModelInfo]
    limits: LimitsInfo


class MetricsResponse(BaseModel):
    model: str
    metrics: list[Any] = Field(
        description="entries of the training's metrics.jsonl, the oldest first; of very many, some from all over",
        examples=[[{"update": 100, "epoch": 1, "train_loss": 3.21}]],
    )
    seconds_ago: float | None = Field(description="when the last of them was noted down; null: there is none")


class RunInfo(BaseModel):
    """A directory that is served with all that is in it."""

    name: str = Field(description="what requests call it", examples=["ladder"])
    report: bool = Field(description="whether it has a report, which /v1/reports/NAME gives")


class RunsResponse(BaseModel):
    runs: list[RunInfo] = Field(description="directories that are served")


class ReplacedWordInfo(BaseModel):
    """What stands in the place of an unknown word."""

    place: int = Field(description="among the units of the translation, from 0")
    word: str
    source: str = Field(description="the source word that was looked at most")
    attention: float = Field(description="that it received")
    rule: str = Field(description="copied: the source word itself; lexicon: its translation by --lexicon")


class TranslationInfo(BaseModel):
    """A translation of a sentence, and how the translator came to it."""

    model_config = {"json_schema_extra": {"examples": [TRANSLATION_EXAMPLE]}}

    text: str = Field(description="as it is printed")
    units: list[str] = Field(description="as the translator wrote it")
    source_units: list[str] = Field(description="the source, as the translator read it")
    log_prob: Number = Field(description="log P(units | source), natural logarithm")
    score: Number = Field(description="what the search maximised: log_prob, after the handling of length and coverage")
    finished: bool = Field(description="false: cut off at the longest length allowed")
    attention: list[list[float]] | None = Field(
        description="where each unit was looked for: a row for each unit and `</s>`, a column for each source unit and "
        "`</s>`; null without attention, if the sentence was translated in pieces, or where an answer has a million "
        "numbers already"
    )
    replaced: list[ReplacedWordInfo] = Field(description="unknown words, and what the text has for them")


class SentenceInfo(BaseModel):
    source: str = Field(description="as it was sent")
    gap: str = Field(description="the space that comes after it")
    read: str = Field(description="as the translator reads it")
    translations: list[TranslationInfo] = Field(description="the best first")


class TextInfo(BaseModel):
    text: str = Field(description="the whole text, by the best translation of each sentence")
    sentences: list[SentenceInfo]


class TranslationsResponse(BaseModel):
    texts: list[TextInfo] = Field(description="in the order of the request")


class LatticeNodeInfo(BaseModel):
    """A hypothesis of a search: the one that it continues, and a unit."""

    id: int
    parent: int | None = Field(description="null: the empty beginning")
    word: str = Field(description="the unit; `</s>` for one that ends here")
    log_prob: Number = Field(description="of all its units: what is compared in a step")
    score: Number = Field(description="of one that ends here: what it is worth as a translation; of others, log_prob")
    fate: Fate = Field(description="whether the search kept it, finished it, or pruned it")


class LatticeResponse(BaseModel):
    source: str = Field(description="the sentence, as the translator reads it")
    translation: TranslationInfo = Field(description="the best that was found")
    nodes: list[LatticeNodeInfo] = Field(description="in the order in which the search came to them; parents first")


class SentenceScores(BaseModel):
    words: list[str] = Field(description="with `</s>`", examples=[["the", "dog", "</s>"]])
    bits: list[list[Number]] = Field(
        description="a row for each model, a column for each word: -log2 P(word | words before), unknown words paid "
        "for in full; null: impossible",
        examples=[[[3.1, 7.9, 4.2]]],
    )


class ScoresResponse(BaseModel):
    models: list[str] = Field(description="in the order of the rows")
    sentences: list[SentenceScores] = Field(description="one for each line")


class NextWordInfo(BaseModel):
    word: str
    prob: float


class ModelNextWords(BaseModel):
    model: str
    words: list[NextWordInfo] = Field(description="the likeliest first")


class NextWordsResponse(BaseModel):
    models: list[ModelNextWords]


class SamplesResponse(BaseModel):
    samples: list[str] = Field(description="one sentence each; the same for the same seed")
