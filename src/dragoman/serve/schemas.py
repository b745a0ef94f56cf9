"""Requests and responses of the API under /v1. `GET /spec` publishes every field with its description."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, field_validator

from dragoman.core.defaults import DEFAULT_BEAM_SIZE, DEFAULT_LENGTH
from dragoman.search.hypothesis import Fate
from dragoman.serve import RequestLimits


def _finite_or_none(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None


# null stands for an infinite number, which JSON does not have
Number = Annotated[float | None, BeforeValidator(_finite_or_none)]

MODEL = Field(description="name of a model, see /v1/models", examples=["de-en"])
SENTENCE = Field(description="one sentence of plain text", examples=["Ein Hund bellt."])
BEAM = Field(default=DEFAULT_BEAM_SIZE, description="beam size, from 1 to the limit")
LENGTH_HANDLING = Field(
    default=DEFAULT_LENGTH,
    description="none, norm, prior or penalty:X",
    json_schema_extra={"pattern": r"^(none|norm|prior|penalty(:-?[0-9]{1,9}(\.[0-9]{1,9})?)?)$"},
    examples=["norm", "penalty:0.5"],
)


class StrictRequest(BaseModel):
    """A request in which unknown fields and values of other types are errors."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    api_key: str | None = Field(default=None, description="alternative to the header `Authorization: Bearer`")

    @field_validator("*", mode="before")
    @classmethod
    def _read_whole_number(cls, value: object) -> object:
        """Read 2.0 as 2, which is the same number in JSON."""
        return int(value) if isinstance(value, float) and value.is_integer() else value


class V1TranslateRequest(StrictRequest):
    """Texts to translate, each of one or more sentences."""

    model: str = MODEL
    texts: list[str] = Field(description="plain texts", examples=[["Ein Hund bellt. Eine Katze schläft."]])
    beam: int = BEAM
    n: int = Field(default=1, ge=1, description="number of translations per sentence")
    length: str = LENGTH_HANDLING
    coverage: float = Field(default=0.0, ge=0, description="weight of the coverage penalty")
    prefix: list[str] = Field(default=[], description="tokens that the translation of a single sentence starts with")


class AttentionRequest(StrictRequest):
    """A sentence and a given translation."""

    model: str = MODEL
    source: str = SENTENCE
    target: str = Field(description="the translation, as plain text", examples=["A dog barks."])


class LatticeRequest(StrictRequest):
    """A sentence whose search is recorded."""

    model: str = MODEL
    text: str = SENTENCE
    beam: int = BEAM
    length: str = LENGTH_HANDLING
    pruned: int = Field(default=5, ge=0, le=20, description="number of pruned hypotheses to return per step")


class ScoreRequest(StrictRequest):
    """A text to score word by word."""

    models: list[str] = Field(
        description="names of language models", json_schema_extra={"minItems": 1}, examples=[["kn5", "lstm"]]
    )
    text: str = Field(
        description="one sentence per line, raw or tokenised as the training text was", examples=["a dog barks ."]
    )


class NextWordsRequest(StrictRequest):
    """The start of a sentence."""

    models: list[str] = Field(
        description="names of language models or translators",
        json_schema_extra={"minItems": 1},
        examples=[["kn5", "de-en"]],
    )
    prefix: str | list[str] = Field(
        default="", description="a text, or, for a translator, a list of tokens", examples=["a dog", ["a", "dog"]]
    )
    source: str = Field(default="", description="for a translator: the sentence to translate")
    k: int = Field(default=10, ge=1, le=100, description="number of words")
    whole_words: bool = Field(
        default=False,
        description="for a translator whose tokens are pieces or characters: join them to words",
    )


class SampleRequest(StrictRequest):
    """Settings for sampling sentences."""

    model: str = MODEL
    n: int = Field(default=5, ge=1, description="number of sentences; at most one more than the limit of alternatives")
    seed: int = Field(default=1, ge=0, le=2**53, description="random seed")
    prefix: str = Field(default="", description="words that the sentences start with", examples=["the"])
    source: str = Field(default="", description="for a translator: the sentence to translate")
    temperature: float = Field(default=1.0, gt=0, le=100, description="below 1: more probable words; above: less")
    top_k: int | None = Field(default=None, ge=1, le=2**31, description="sample only from the k most probable words")
    top_p: float = Field(
        default=1.0, gt=0, le=1, description="sample only from the most probable words with this total probability"
    )
    max_words: int = Field(default=60, ge=1, le=200, description="maximum length of a sentence")
    show_unknown: bool = Field(
        default=False, description="write `<unk>` for an unknown word instead of spelling it or sampling another"
    )


class ModelInfo(BaseModel):
    """A model that requests can name."""

    name: str = Field(description="name for requests", examples=["de-en"])
    kind: str = Field(description="translator, or the kind of language model", examples=["translator", "ngram"])
    members: int = Field(description="number of models; more than one for an ensemble")
    units: dict[str, str] | None = Field(
        description="for a loaded model: the kind of tokens of its source and target, or of a language model's `text`",
        examples=[{"source": "word", "target": "word"}],
    )
    source: str | None = Field(description="for a translator: code of the source language, if known")
    target: str | None = Field(description="for a translator: code of the target language, if known")
    loaded: bool = Field(description="whether it is loaded; models are loaded on first use")
    problem: str | None = Field(description="why it could not be loaded")
    has_metrics: bool = Field(description="whether /v1/metrics/NAME has training metrics")
    examples: list[str] = Field(description="for a translator: texts that it can translate, if known")


class ModelsResponse(BaseModel):
    models: list[ModelInfo]
    limits: RequestLimits


class MetricsResponse(BaseModel):
    model: str
    metrics: list[dict[str, object]] = Field(
        description="entries of metrics.jsonl, oldest first; very long files are thinned out evenly",
        examples=[[{"update": 100, "epoch": 1, "train_loss": 3.21}]],
    )
    seconds_ago: float | None = Field(description="age of the last entry; null if there is none")
    token: str | None = Field(description="what losses are per: word, piece or character; null if it is not known")


class RunInfo(BaseModel):
    """A served directory."""

    name: str = Field(description="name for requests", examples=["ladder"])
    report: bool = Field(description="whether /v1/reports/NAME exists")


class RunsResponse(BaseModel):
    runs: list[RunInfo] = Field(description="served directories")


TRANSLATION_EXAMPLE: dict[str, JsonValue] = {
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
    "words": [
        {"text": "a", "first": 0, "end": 1},
        {"text": "dog", "first": 1, "end": 2},
        {"text": "barks", "first": 2, "end": 3},
        {"text": ".", "first": 3, "end": 4},
    ],
    "source_words": [
        {"text": "ein", "first": 0, "end": 1},
        {"text": "hund", "first": 1, "end": 2},
        {"text": "bellt", "first": 2, "end": 3},
        {"text": ".", "first": 3, "end": 4},
    ],
    "word_attention": None,
}


class ReplacedWordInfo(BaseModel):
    """A word that replaces an unknown word."""

    place: int = Field(description="index of the token in the translation")
    word: str
    source: str = Field(description="source word with the most attention")
    attention: float = Field(description="attention weight of the source word")
    rule: str = Field(description="copied: the source word itself; lexicon: its translation from --lexicon")


class WordInfo(BaseModel):
    """A word of a translation or of its source."""

    text: str
    first: int = Field(description="index of its first token")
    end: int = Field(description="index after its last token")


class TranslationInfo(BaseModel):
    """A translation of a sentence, with scores and attention."""

    model_config = {"json_schema_extra": {"examples": [TRANSLATION_EXAMPLE]}}

    text: str = Field(description="plain text")
    units: list[str] = Field(description="target tokens")
    source_units: list[str] = Field(description="source tokens")
    log_prob: Number = Field(description="log P(target | source), natural logarithm")
    score: Number = Field(description="search score: log_prob with length handling and coverage penalty")
    finished: bool = Field(description="false if the translation was cut off at the maximum length")
    attention: list[list[float]] | None = Field(
        description="attention weights: a row per target token and `</s>`, a column per source token and `</s>`; null "
        "if the model has no attention, if a long sentence was translated in parts, or if the response already has a "
        "million weights"
    )
    replaced: list[ReplacedWordInfo] = Field(description="replacements of unknown words")
    words: list[WordInfo] = Field(
        description="words of the translation; its tokens if it is a single word, or a text without spaces"
    )
    source_words: list[WordInfo] = Field(description="words of the source, with their tokens")
    word_attention: list[list[float]] | None = Field(
        description="attention between words and `</s>`: summed over the tokens of a source word, averaged over those of "
        "a target word; null if `attention` is"
    )


class SentenceInfo(BaseModel):
    source: str = Field(description="the sentence as sent")
    trailing_space: str = Field(serialization_alias="gap", description="white space after the sentence")
    tokenized: str = Field(serialization_alias="read", description="the sentence as the translator reads it")
    translations: list[TranslationInfo] = Field(description="best first")


class TextInfo(BaseModel):
    text: str = Field(description="the whole text, from the best translation of each sentence")
    sentences: list[SentenceInfo]
    warning: str | None = Field(
        default=None, description="set if the text is not in the source language, or mostly unknown to the translator"
    )


class TranslationsResponse(BaseModel):
    texts: list[TextInfo] = Field(description="in the order of the request")


class LatticeNodeInfo(BaseModel):
    """A hypothesis: its parent and one more token."""

    id: int
    parent: int | None = Field(description="null for the empty hypothesis")
    word: str = Field(description="the last token; `</s>` if the hypothesis is complete")
    log_prob: Number = Field(description="log-probability of all its tokens; decides which hypotheses are kept")
    score: Number = Field(description="for a complete hypothesis, its search score; otherwise log_prob")
    fate: Fate = Field(description="whether the search kept, finished or pruned it")


class LatticeResponse(BaseModel):
    source: str = Field(description="the sentence as the translator reads it")
    translation: TranslationInfo = Field(description="the best translation")
    nodes: list[LatticeNodeInfo] = Field(description="in the order of the search; parents come first")


class SentenceScores(BaseModel):
    words: list[str] = Field(
        description="words and `</s>`; in a script without spaces, the parts that no token of a model divides",
        examples=[["the", "dog", "</s>"]],
    )
    bits: list[list[Number]] = Field(
        description="surprisal -log2 P(word | previous words): a row per model, a column per word; includes the "
        "spelling of unknown words; null if the probability is zero",
        examples=[[[3.1, 7.9, 4.2]]],
    )


class ScoresResponse(BaseModel):
    models: list[str] = Field(description="in the order of the rows")
    sentences: list[SentenceScores] = Field(description="one per line")


class NextWordInfo(BaseModel):
    word: str = Field(description="a word; of a translator, a token. With … before it, it continues the last word")
    prob: float
    prefix: list[str] | None = Field(
        default=None, description="for words, if the prefix is a list of tokens: the prefix with those of this word"
    )
    text: str | None = Field(
        default=None,
        description="for words: the text to append to the prefix, with a space before a new word",
        examples=[" barks"],
    )


class ModelNextWords(BaseModel):
    model: str
    words: list[NextWordInfo] = Field(description="most probable first")


class NextWordsResponse(BaseModel):
    models: list[ModelNextWords]


class SamplesResponse(BaseModel):
    samples: list[str] = Field(description="one sentence each; the same seed gives the same sentences")
