"""How much a service does for one request."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Limits(BaseModel):
    """Each can be set from the command line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    characters: int = Field(default=5_000, ge=1, description="characters of all texts of a request")
    texts: int = Field(default=64, ge=1, description="texts of a request")
    beam: int = Field(default=20, ge=1, description="the widest beam")
    alternatives: int = Field(default=10, ge=0, description="translations beside the best, or samples")
    body: int = Field(default=256_000, ge=1, description="bytes of a request")
    queue: int = Field(default=64, ge=1, description="requests that wait")
    seconds: float = Field(default=30.0, gt=0, description="that a request may take, waiting included")
