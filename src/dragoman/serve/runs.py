"""What was found by the runs that are served: how trainings go, and reports, under /v1."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse

from dragoman.io.storage import METRICS, REPORT
from dragoman.serve.errors import MISSING, Refusal
from dragoman.serve.openapi import ANSWERED
from dragoman.serve.registry import Shelf
from dragoman.serve.schemas import Metrics, Run, Runs
from dragoman.serve.service import Service

MOST_NOTED = 1_000  # entries of a training that are told
# A report is shown within the page, and nowhere else. Its style is within it; nothing in it runs or is fetched.
FRAMED = {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox allow-same-origin"
    ),
    "x-frame-options": "SAMEORIGIN",
}


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["dragoman"], responses=ANSWERED)

    @router.get("/metrics/{name:path}", summary="See how a training goes")
    def metrics(name: str) -> Metrics:
        """How the training of a model goes, or went: what it noted down, an entry for every look, and how many seconds
        ago the last."""
        path = _trained(service.shelf, name) / METRICS
        ago = max(0.0, time.time() - path.stat().st_mtime) if path.is_file() else None
        return Metrics(model=name, metrics=noted(path), seconds_ago=ago)

    @router.get("/runs", summary="List the directories")
    def runs() -> Runs:
        """The directories that are served, and which of them have a report."""
        return Runs(runs=[Run(name=run.name, report=run.report is not None) for run in service.shelf.runs.values()])

    @router.get("/reports/{name:path}", response_class=HTMLResponse, summary="Read a report")
    def report(name: str) -> FileResponse:
        """The report of a demo, a ladder or another run, as a page."""
        found = service.shelf.find_run(name).report
        if found is None:
            raise Refusal(f"{name} has no {REPORT}; dragoman demo and dragoman ladder write one", MISSING)
        return FileResponse(found, media_type="text/html; charset=utf-8", headers=FRAMED)

    return router


def _trained(shelf: Shelf, name: str) -> Path:
    """Where a model was trained, or several of a run together."""
    if name in shelf.runs and name not in shelf.entries:
        return shelf.runs[name].path
    return shelf.find(name).paths[0]


def noted(path: Path) -> list[dict[str, Any]]:
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
    step = 1 + len(places) // MOST_NOTED
    return places[::-1][::step]
