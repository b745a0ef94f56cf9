"""What was found by the runs that are served: how trainings go, and reports, under /v1."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse

from dragoman.io.storage import METRICS_FILE, REPORT_FILE
from dragoman.serve.errors import NOT_FOUND, ApiError
from dragoman.serve.openapi import ERROR_RESPONSES
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.schemas import MetricsResponse, RunInfo, RunsResponse
from dragoman.serve.service import Service

MAX_ENTRIES = 1_000  # entries of a training that are told
# A report is shown within the page, and nowhere else. Its style is within it; nothing in it runs or is fetched.
FRAMED = {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox allow-same-origin"
    ),
    "x-frame-options": "SAMEORIGIN",
}


def create_router(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["dragoman"], responses=ERROR_RESPONSES)

    @router.get("/metrics/{name:path}", summary="See how a training goes")
    def metrics(name: str) -> MetricsResponse:
        """How the training of a model goes, or went: what it noted down, an entry for every look, and how many seconds
        ago the last."""
        path = _trained(service.registry, name) / METRICS_FILE
        ago = max(0.0, time.time() - path.stat().st_mtime) if path.is_file() else None
        return MetricsResponse(model=name, metrics=read_metrics(path), seconds_ago=ago)

    @router.get("/runs", summary="List the directories")
    def runs() -> RunsResponse:
        """The directories that are served, and which of them have a report."""
        return RunsResponse(
            runs=[RunInfo(name=run.name, report=run.report is not None) for run in service.registry.runs.values()]
        )

    @router.get("/reports/{name:path}", response_class=HTMLResponse, summary="Read a report")
    def report(name: str) -> FileResponse:
        """The report of a demo, a ladder or another run, as a page."""
        found = service.registry.get_run(name).report
        if found is None:
            raise ApiError(f"{name} has no {REPORT_FILE}; dragoman demo and dragoman ladder write one", NOT_FOUND)
        return FileResponse(found, media_type="text/html; charset=utf-8", headers=FRAMED)

    return router


def _trained(shelf: ModelRegistry, name: str) -> Path:
    """Where a model was trained, or several of a run together."""
    if name in shelf.runs and name not in shelf.entries:
        return shelf.runs[name].path
    return shelf.get(name).paths[0]


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl; of very many, some from all over. One that is being written is left out."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    found = [entry for line in lines if isinstance(entry := _read(line), dict)]
    looks = _thinned([place for place, entry in enumerate(found) if "dev_loss" in entry])
    others = _thinned([place for place, entry in enumerate(found) if "dev_loss" not in entry])
    return [found[place] for place in sorted([*looks, *others])]


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _thinned(places: list[int]) -> list[int]:
    """At most about as many as are told, the last among them."""
    step = 1 + len(places) // MAX_ENTRIES
    return places[::-1][::step]
