"""A web service for models: a page for people, and two APIs for programs.

- `app`: the FastAPI application; `server`: running it with uvicorn;
- `service`: what both APIs share: models, limits, translation and language detection;
- `libretranslate`: the LibreTranslate API; `v1`: scores, n-best lists, attention, lattices, next words, samples, runs;
- `schemas`: requests and responses of `v1`; `errors`: error responses; `description`: the OpenAPI description;
- `access`: who may use the service, and how much; `api_keys`: the file of API keys;
- `request_fields`: JSON, forms and query parameters of LibreTranslate's clients;
- `registry`: the models, loaded on first use;
- `batch_queue`: requests that wait together are processed in one batch;
- `middleware`: checks and limits before the application.

The package needs the extra `serve`: `pip install 'dragoman[serve]'`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    write_seconds: float = Field(default=60.0, description="seconds until a client has read a response")
    connections: int = Field(default=256, description="open connections")
    requests_per_minute: int | None = Field(default=None, description="requests per minute and key, or address")
    characters_per_minute: int | None = Field(default=None, description="characters per minute and key, or address")


@dataclass(frozen=True)
class ServerOptions:
    """Where and how the service listens. Each field is an option of `dragoman serve`."""

    host: str = "127.0.0.1"
    port: int = 5000
    host_names: Sequence[str] = ()
    cors_origin: str | None = None
    trusted_proxies: Sequence[str] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    shutdown_timeout: int = 10
