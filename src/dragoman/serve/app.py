"""The service as one application: its protocols, its page, and one way to say no."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from dragoman.core.errors import DragomanError
from dragoman.serve import libretranslate as libre
from dragoman.serve import runs
from dragoman.serve import v1 as own
from dragoman.serve.errors import BAD_REQUEST, ApiError
from dragoman.serve.middleware import LOCAL_HOSTS, ASGIApplication, ProtectionMiddleware
from dragoman.serve.service import Service

PAGE = Path(__file__).parent / "page"


def create_app(
    service: Service,
    *,
    allowed_hosts: tuple[str, ...] = LOCAL_HOSTS,
    cors_origin: str | None = None,
    version: str = "1",
) -> ASGIApplication:
    """The service behind its guards."""
    limits = service.limits
    return ProtectionMiddleware(
        create_api(service, version),
        allowed_hosts=allowed_hosts,
        max_body=limits.body,
        seconds=limits.seconds,
        cors_origin=cors_origin,
    )


def create_api(service: Service, version: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.queue.close()

    app = FastAPI(
        title="dragoman",
        version=version,
        description="Language models and translators, and what is inside them.",
        docs_url=None,  # the usual pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.include_router(libre.create_router(service))
    app.include_router(own.create_router(service))
    app.include_router(runs.create_router(service))
    _refuse(app)

    @app.get("/spec", include_in_schema=False)
    def spec() -> dict[str, Any]:
        return app.openapi()

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    return app


def _refuse(app: FastAPI) -> None:
    """Whatever goes wrong is told as `{"error": ...}`."""

    @app.exception_handler(ApiError)
    async def refused(_: Request, error: ApiError) -> JSONResponse:
        return JSONResponse({"error": error.message}, error.status, error.headers)

    @app.exception_handler(DragomanError)
    async def impossible(_: Request, error: DragomanError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, BAD_REQUEST)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if request.method == "POST" and "json" not in request.headers.get("content-type", ""):
            return JSONResponse({"error": "send JSON, with the header Content-Type: application/json"}, BAD_REQUEST)
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        return JSONResponse({"error": f"{where}: {first['msg']}" if where else first["msg"]}, BAD_REQUEST)

    @app.exception_handler(HTTPException)
    async def known(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def unforeseen(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": "something went wrong here; the log has more"}, 500)
