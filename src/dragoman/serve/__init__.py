"""A web service for models: a page for people, and two APIs for programs.

- `app`: the FastAPI application; `server`: running it with uvicorn;
- `service`: what both APIs share: models, limits, translation and language detection;
- `libretranslate`: the LibreTranslate API; `v1`: scores, n-best lists, attention, lattices, next words, samples, runs;
- `schemas`: requests and responses of `v1`; `errors`: error responses;
- `registry`: the models, loaded on first use;
- `batch_queue`: requests that wait together are processed in one batch;
- `middleware`: checks and limits before the application.

The package needs the extra `serve`: `pip install 'dragoman[serve]'`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RequestLimits(BaseModel):
    """Limits of requests. Each is an option of `dragoman serve`."""

    model_config = ConfigDict(frozen=True)

    characters: int = Field(default=5_000, description="characters per request, all texts together")
    texts: int = Field(default=64, description="texts per request")
    beam: int = Field(default=20, description="largest beam size")
    alternatives: int = Field(default=10, description="alternative translations, or additional samples")
    body: int = Field(default=256_000, description="bytes per request")
    queue: int = Field(default=64, description="waiting requests")
    seconds: float = Field(default=30.0, description="seconds per request, including the time in the queue")
    connections: int = Field(default=256, description="open connections")
